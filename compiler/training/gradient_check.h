// Compares gradients with finite differences on the host reference, in double.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

struct GradientCheckOptions {
  std::uint64_t seed = 1;
  bool all_nodes = false;                               // else one node of each operator, attributes and shapes
  std::function<void(std::string_view what)> progress;  // may be empty
};

// The nodes of one operator. Errors are relative to what a random direction of that length gives on average.
struct OperatorCheck {
  std::string op;
  std::size_t nodes = 0, checked = 0;
  std::int64_t kinks = 0;  // results left out: the differences to the two sides disagree there, or the result is huge
  double error = 0;
  std::string worst;  // source of the node with that error
};

struct GradientCheck {
  std::vector<OperatorCheck> operators;  // worst first
  // Along one random direction of all variables: the gradients' product with it, and the finite difference.
  double derivative = 0, difference = 0, model_error = 0;
  std::int64_t variables = 0;  // numbers
  double worst() const;        // NaN if any error is
};

// Variables are the floating-point inputs, drawn from [-1, 1), and the floating-point constants of more than one element;
// integer inputs are 0, 1 and 2 at random. The loss is a random projection of the floating-point outputs. All dimensions are
// constants. CompileError as from add_gradients.
GradientCheck check_gradients(const Graph& graph, const GradientCheckOptions& options = {});

// The graph's outputs with all floating-point numbers computed in double; constants are what their types round them to.
std::vector<HostTensor> evaluate_in_double(const Graph& graph, const std::vector<HostTensor>& inputs);

}  // namespace oclc
