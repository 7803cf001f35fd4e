// Passes: rewrites of a graph that keep what it computes within the numeric contract of op_def.h. One free function in one file
// each; pipeline.cpp lists them in order, with the reason for each. All are idempotent.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

struct PassContext {
  std::vector<std::string> disabled;            // names of passes that are switched off
  std::int64_t fold_result_bytes = 64LL << 20;  // largest constant that constant folding makes
  std::int64_t fold_total_bytes = 1LL << 30;    // of all constants that one run of constant folding makes
  std::int64_t fold_growth_bytes = 1LL << 20;   // larger results are made only if they are not much larger than the operands
  std::int64_t fold_text_bytes = 1LL << 20;     // the longest texts that constant folding makes of one node, all together
  std::int64_t fold_flops = 1LL << 27;          // of all constants of run_passes: a quarter of a second; devices do the rest
  std::int64_t* folded_flops = nullptr;         // counts them; of the call where it is null
  bool joins_products = true;                   // products of one left operand are joined: see join_products.cpp
  bool separates_classes = false;               // launches are cheaper than products with zeros: see split_stride_phases.cpp
  bool lays_out_operands = false;               // the target's products have both operands laid out before they multiply
  bool multiplies_integers = false;  // matrix units take integers of 8 bits faster than floats: see multiply_integers.cpp
#ifdef NDEBUG
  bool verify_each = false;  // verify the graph after each pass
#else
  bool verify_each = true;
#endif
  std::function<void(std::string_view pass, const Graph& graph)> after;  // called after each pass that changed the graph
};

using PassFunction = bool (*)(Graph&, const PassContext&);  // true: the graph changed

struct PassRow {
  std::string_view name;
  PassFunction function;
  std::string_view reason;
};

// All passes in order. run_passes repeats the list until none of them changes the graph.
const std::vector<PassRow>& pipeline();

// Names that --disable accepts besides those of the pipeline are given by `others`. CompileError (usage) listing the known
// names if a disabled name is unknown.
void check_pass_names(const std::vector<std::string>& disabled, const std::vector<std::string>& others = {});

// Runs the pipeline over the graph and the bodies of its nodes. InternalError naming the pass if the graph is no longer
// well-formed. True if anything changed.
bool run_passes(Graph& graph, const PassContext& context = {});

// The passes. Each file's head says what the pass does and what goes wrong without it.
bool canonicalize(Graph& graph, const PassContext& context);
bool cse(Graph& graph, const PassContext& context);
bool dce(Graph& graph, const PassContext& context);
bool expand_gradients(Graph& graph, const PassContext& context);
bool fold_batchnorm(Graph& graph, const PassContext& context);
bool fold_constants(Graph& graph, const PassContext& context);
bool fold_ramps(Graph& graph, const PassContext& context);
bool fold_shapes(Graph& graph, const PassContext& context);
bool join_products(Graph& graph, const PassContext& context);
bool look_up_products(Graph& graph, const PassContext& context);
bool multiply_integers(Graph& graph, const PassContext& context);
bool simplify_concat(Graph& graph, const PassContext& context);
bool simplify_indexing(Graph& graph, const PassContext& context);
bool simplify_movement(Graph& graph, const PassContext& context);
bool sink_movement(Graph& graph, const PassContext& context);
bool sink_scalars(Graph& graph, const PassContext& context);

}  // namespace oclc
