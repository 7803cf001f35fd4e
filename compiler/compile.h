// The compiler's public header: from a module to a plan, stage by stage (compile.cpp).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/codegen/contraction/choose.h"
#include "compiler/ir/graph.h"
#include "compiler/kernels/lower/lower.h"
#include "compiler/passes/gradients/recompute.h"
#include "compiler/plan/build_plan.h"
#include "compiler/targets/target.h"

namespace oclc {

struct CompileOptions {
  Target target;
  std::vector<std::string> disabled;  // names of passes; "fuse" gives one kernel an operator
  std::string precision = "fp32";     // strict, fp32, fast, tf32, bf16
  std::string conv = "auto";          // auto, im2col, implicit, direct, winograd
  std::string gemm = "own";           // own, clblast
  // Values of the forward pass of at least so many bytes are computed again for the backward pass; see
  // passes/gradients/recompute.h.
  std::int64_t recompute_bytes = kRecomputeNone;
  // Kernels may take numbers below the smallest normal one for 0, where the device has such a mode; see
  // docs/choices/numbers.md.
  bool flushes_subnormals = false;
  DType mixed = DType::f32;  // f16, bf16: what training entries store activations as; see passes/gradients/mixed_precision.h
  std::function<void(std::string_view stage)> progress;  // may be empty
  bool report = false;
  std::string stop_after;          // a stage, behind which what follows in Compiled stays empty; empty: none
  std::vector<InputLimit> limits;  // of the inputs' values, from build_training()
};

// The stages, in order; also the names that --stop-after takes.
inline constexpr std::string_view kStages[] = {"graph", "passes", "kernels", "schedule", "codegen", "plan"};

struct Compiled {
  std::shared_ptr<Module> module;  // owns what the plan's constants refer to
  Schedule schedule;
  BuiltPlan plan;
  // With CompileOptions::report.
  std::vector<NodeFate> fates;
  std::vector<RankedContraction> contractions;
};

// Compiles `module`, which is rewritten. Throws CompileError. Thread-safe for different modules.
Compiled compile(std::shared_ptr<Module> module, const CompileOptions& options);

// The module after the passes, without going further.
void run_pipeline(Module& module, const CompileOptions& options);

}  // namespace oclc
