// Every differentiable operator on awkward operands, and its gradients beside finite differences of the reference in double.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ops/builder.h"

namespace oclc::test {

// One operator on operands of these shapes. Floating-point operands are drawn from [low, high); integer ones are given.
struct GradientCase {
  std::string_view op;
  std::vector<Ints> shapes{};
  Attributes attributes{};
  double low = -1, high = 1;
  std::map<std::size_t, HostTensor> given{};  // operands that are no variables
  std::size_t outputs = SIZE_MAX;             // that the loss reads

  std::string text() const;                  // of the shapes
  std::vector<HostTensor> operands() const;  // floats in double
};

// Does a gradient flow through the operator? Not through those that are constant almost everywhere.
bool is_differentiable(const OpDef& def);

// Sizes 0, 1, 3, 17 and primes, broadcasting, strides, dilations, groups and asymmetric pads.
std::vector<GradientCase> gradient_cases();

// The tensor with floats of another type.
HostTensor as_floats(const HostTensor& t, DType dtype);

// A case as part of a graph: a random projection of its results as loss, and the gradients of its floating-point operands,
// which are inputs.
struct DifferentiatedCase {
  std::vector<std::size_t> variables;  // the operands that are inputs
  Value* loss = nullptr;
  std::vector<Value*> gradients;  // one a variable
};
DifferentiatedCase differentiate(Graph& graph, const GradientCase& c, const std::vector<HostTensor>& operands, DType dtype);

// The gradients of a case in double and, as central differences of the loss, what they should be: one tensor a variable.
struct GradientReference {
  std::vector<HostTensor> gradients, differences;
};
GradientReference reference_gradients(const GradientCase& c);

// Largest deviation relative to the largest magnitude; NaN if one is.
double gradient_deviation(const HostTensor& found, const HostTensor& wanted);

// The worst deviations of each operator's cases.
class GradientTable {
 public:
  void add(const GradientCase& c, std::string_view column, double deviation);
  // A row an operator: its cases, the worst deviation of each column, and the shapes where the last column is worst.
  std::string text() const;

 private:
  struct Row {
    std::size_t cases = 0;
    std::map<std::string, double, std::less<>> worst;
    std::string shapes;
  };
  std::vector<std::string> columns_;
  std::map<std::string, Row, std::less<>> rows_;
  const GradientCase* last_ = nullptr;
};

}  // namespace oclc::test
