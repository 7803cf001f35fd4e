// Which strategy computes each contraction of a schedule: decided once, before code is generated.
#pragma once
#include <vector>

#include "compiler/kernels/kernel.h"
#include "compiler/targets/target.h"

namespace oclc {

// The target under the contract of precision that the kernel's contraction has: products of integers have a stricter one.
Target target_of(const Kernel& kernel, const Target& target);
// All rows of the table for a kernel's contraction, the best first; a row whose form the constant weights do not have has no
// choice. A contraction that no template can say has the row of loops alone.
std::vector<Candidate> candidates_of(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target);
// The best of them.
Choice choose(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target);
// As a part of a GPU's launch that does several kernels: a small GEMM, or nothing.
std::optional<Choice> choose_part(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target);

// What the table says of a kernel's contraction.
struct RankedContraction {
  std::string kernel;
  std::vector<Candidate> candidates;  // the first is its choice
};

// Keeps the choice in every contraction of the schedule. All candidates are put into `ranked`, unless it is null.
void choose_contractions(Schedule& schedule, const Target& target, std::vector<RankedContraction>* ranked = nullptr);

}  // namespace oclc
