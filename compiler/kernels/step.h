// The steps of a schedule, which are done one after another: launches, work of the host, and forms of several steps.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/ir/expr.h"

namespace oclc {

struct Step;

// The launch of a kernel.
struct KernelStep {
  // Of weights of kernel `kernel` that its launch packs, from byte `from_byte` on; see schedule/prefetch_weights.h.
  struct Prefetch {
    int kernel = -1;
    std::int64_t from_byte = 0;
  };

  int kernel = -1;      // index into Schedule::kernels
  bool beside = false;  // in one launch with the kernel before it: neither needs the other
  std::optional<Prefetch> prefetch = {};
};

// A product of a library.
struct GemmStep {
  int gemm = -1;  // index into Schedule::gemms
};

// The host reads sizes that the device has computed.
struct ReadingStep {
  int reading = -1;  // index into Schedule::readings
};

// An operator that the host computes.
struct HostStep {
  int host = -1;  // index into Schedule::hosts
};

// `body` for each value of the symbol `counter` from 0 on, below `trip`.
struct LoopStep {
  Expr trip = 0;
  std::string counter = {};
  std::string condition = {};  // a symbol that the first step of `body` reads; the loop ends there if it is 0. Empty: none.
  // Inside a megakernel, where one work-group does each trip from beginning to end: symbol `slot` < `slots` tells where that
  // group keeps what the trip's kernels hand on. 0: groups share the tiles of each kernel.
  std::string slot = {};
  std::int64_t slots = 0;
  std::vector<Step> body;
};

// All of `body`, loops among it, is one kernel.
struct LoopKernelStep {
  std::vector<Step> body;
};

// `body` are loops of `trip` trips each: one work-group does all of one, none needs another.
struct ParallelLoopsStep {
  Expr trip = 0;
  std::vector<Step> body;
};

// One work-group for each `counter` < `trip` runs the kernels of `body` one after another.
struct WorkGroupStep {
  Expr trip = 0;
  std::string counter = {};
  std::vector<Step> body;
};

// Scores, softmax and weighted sum in `body` are one kernel, which stores the last alone.
struct AttentionStep {
  std::vector<Step> body;
};

// Kernels of one family (ragged_family.h) in `body`, of which none needs another, are one text with a table of their sizes and
// places.
struct RaggedStep {
  std::vector<Step> body;
};

// Kernels, loops, attention and ragged groups in `body` are one launch, whose work-groups claim their tiles.
struct MegakernelStep {
  std::vector<Step> body;
};

struct Step {
  using Form = std::variant<KernelStep, GemmStep, ReadingStep, HostStep, LoopStep, LoopKernelStep, ParallelLoopsStep,
                            WorkGroupStep, AttentionStep, RaggedStep, MegakernelStep>;
  Form form;

  template <class F>
  bool is() const {
    return std::holds_alternative<F>(form);
  }
  // Null if it is something else.
  template <class F>
  const F* as() const {
    return std::get_if<F>(&form);
  }
  template <class F>
  F* as() {
    return std::get_if<F>(&form);
  }

  bool is_kernel() const { return is<KernelStep>(); }
  // The kernel's index. InternalError if it is no kernel.
  int kernel() const;
  bool is_beside() const;
  // Whether its body is a list of steps that the plan, or a work-group, repeats.
  bool is_loop() const { return is<LoopStep>() || is<ParallelLoopsStep>(); }
  // A kernel, a library's product, or what the host does: it has no body.
  bool is_single() const;
  // The symbol that counts its trips; empty: none.
  const std::string& counter() const;
  // How often its body runs, if something counts that, else 0.
  Expr trip() const;
  // The steps that it consists of.
  std::span<const Step> body() const;
  std::span<Step> body();
};

// Calls of std::visit over Step::form: a case for each form that differs.
template <class... Case>
struct Cases : Case... {
  using Case::operator()...;
};
template <class... Case>
Cases(Case...) -> Cases<Case...>;

// How many of the first steps are one launch: the first, and those beside it.
std::size_t steps_of_launch(std::span<const Step> steps);

}  // namespace oclc
