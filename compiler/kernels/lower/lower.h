// From graphs to a schedule of kernels over buffers: the stage `kernels`.
#pragma once
#include "compiler/kernels/fusion/group.h"
#include "compiler/kernels/kernel.h"

namespace oclc {

struct LowerOptions {
  bool fuse = true;
  bool blas = false;  // products with plain operands by a GEMM library
  // Neighbouring positions that a work-item computes divide an image's row, rather than being as many everywhere: for
  // vectors, where what lies beyond a row's end costs every vector of channels.
  bool even_positions = false;
  bool lays_out_operands = false;  // see GroupOptions
  bool copies_operands = false;    // see GroupOptions
  FusionCosts costs{};             // see GroupOptions
};

// What became of each node, for --report.
struct NodeFate {
  std::string source, op, fate;
  std::string why_not;  // why it was not fused into its readers, or empty
};

// Every entry of the module. Throws CompileError for operators without a kernel.
Schedule lower(const Module& module, const LowerOptions& options, std::vector<NodeFate>* report = nullptr);

}  // namespace oclc
