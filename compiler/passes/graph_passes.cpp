#include "compiler/passes/graph_passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/passes/gradients/mixed_precision.h"
#include "compiler/passes/gradients/split_updates.h"
#include "compiler/passes/gradients/winograd_gradients.h"
#include "compiler/passes/layout/keep_nchw.h"
#include "compiler/passes/layout/layout.h"
#include "compiler/passes/layout/split_concats.h"
#include "compiler/passes/layout/widen_images.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

bool always(const GraphContext&) { return true; }
bool chooses(const GraphContext& c) { return c.runs("choose_convolution"); }
bool chooses_layouts(const GraphContext& c) { return chooses(c) && c.runs("assign_layouts"); }
bool fuses(const GraphContext& c) { return c.runs("fuse"); }

void store_activations_of(Graph& graph, const GraphContext& c) {
  if (!updates_state(graph, c.states)) {
    if (c.convolutions.target.precision.contract == Contract::bf16) store_activations(graph, c.states, DType::bf16, true);
  } else if (c.mixed != DType::f32) {
    store_activations(graph, c.states, c.mixed);
  }
}

constexpr GraphPass kGraphPasses[] = {
    {"winograd_gradients", [](Graph& g, const GraphContext& c) { winograd_gradients(g, c.convolutions); }, chooses,
     "the pipeline expands the other gradients of weights to sums"},
    {"pipeline", [](Graph& g, const GraphContext& c) { run_passes(g, c.pipeline); }, always, "pipeline.cpp tells"},
    {"recompute", [](Graph& g, const GraphContext& c) { recompute(g, c.recompute_bytes); }, always,
     "copies nodes, which the pipeline would join again"},
    {"keep_nchw", [](Graph& g, const GraphContext& c) { keep_nchw(g, c.convolutions.target); }, chooses,
     "before layouts are chosen for what it leaves"},
    {"lay_out_images", [](Graph& g, const GraphContext& c) { lay_out_images(g, c.convolutions.target); }, chooses_layouts,
     "convolutions are chosen for the layout of what they read"},
    {"widen_images", [](Graph& g, const GraphContext& c) { widen_images(g, c.convolutions.target); }, chooses,
     "convolutions are chosen for the channels that they read"},
    {"choose_convolution", [](Graph& g, const GraphContext& c) { choose_convolution(g, c.convolutions); }, always,
     "the pipeline knows conv alone"},
    {"split_updates", [](Graph& g, const GraphContext& c) { split_updates(g, c.convolutions.target); }, fuses,
     "makes slices that the pipeline would join again"},
    {"assign_layouts", [](Graph& g, const GraphContext&) { assign_layouts(g); }, always,
     "asks for each convolution's strategy"},
    {"split_concats", [](Graph& g, const GraphContext&) { split_concats(g); }, always,
     "the pipeline would join what it splits, layouts are chosen for the whole"},
    {"store_activations", store_activations_of, always, "no pass has to know what is stored in 16 bits"},
};

}  // namespace

bool GraphContext::runs(std::string_view name) const {
  return std::find(disabled.begin(), disabled.end(), name) == disabled.end();
}

std::span<const GraphPass> graph_passes() { return kGraphPasses; }

void run_graph_passes(Module& module, const GraphContext& context) {
  for (const GraphPass& pass : kGraphPasses) {
    if (!context.runs(pass.name) || !pass.applies(context)) continue;
    for (const auto& graph : module.entries) {
      pass.function(*graph, context);
      if (!context.pipeline.verify_each) continue;
      const std::string problem = verify(*graph);
      OCLC_CHECK(problem.empty(), fmt::format("after pass {}: {}", pass.name, problem));
    }
  }
}

}  // namespace oclc
