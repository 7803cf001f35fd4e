// All that is done to a graph before kernels are made of it: the pipeline, whose passes repeat, and the passes before and
// behind it, which run once.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/passes/gradients/recompute.h"
#include "compiler/passes/layout/choose_convolution.h"
#include "compiler/passes/pipeline/pass.h"

namespace oclc {

// What the passes are told.
struct GraphContext {
  ConvolutionOptions convolutions;  // with the target, under the contract of precision
  PassContext pipeline;             // its `disabled` names passes of the pipeline alone
  std::vector<std::string> disabled = {};
  std::int64_t recompute_bytes = kRecomputeNone;
  DType mixed = DType::f32;  // what entries that train store activations as
  std::span<const StateVariable> states = {};

  bool runs(std::string_view name) const;
};

struct GraphPass {
  std::string_view name;  // for --disable
  void (*function)(Graph&, const GraphContext&);
  bool (*applies)(const GraphContext&);
  std::string_view reason;  // why it stands there
};

// In order.
std::span<const GraphPass> graph_passes();

// Runs those that are not disabled and apply over each of the module's graphs. InternalError naming the pass where
// `pipeline.verify_each` asks for it and a graph is no longer well-formed.
void run_graph_passes(Module& module, const GraphContext& context);

}  // namespace oclc
