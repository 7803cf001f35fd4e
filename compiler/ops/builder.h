// Adds core operators to a graph with checked, typed calls. Used by the front ends and by tests.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

class Assumptions;

using Attributes = std::map<std::string, Attribute, std::less<>>;
using Ints = std::vector<std::int64_t>;

struct ConvOptions {
  // Empty: ones, ones, zeros. Pads: all begins, then all ends.
  Ints strides{}, dilations{}, pads{};
  std::int64_t group = 1;
};

// A bound that stands for none: memory for what depends on such a dimension is had when it is read.
inline constexpr std::int64_t kOpenDim = std::int64_t{1} << 40;

struct PoolOptions {
  Ints kernel{}, strides{}, dilations{}, pads{};
  bool ceil_mode = false;
  bool count_include_pad = false;  // average only
};

// All calls throw CompileError, naming the source, if operands do not fit. Axes may be negative here.
class Builder {
 public:
  explicit Builder(Graph& graph, std::string source = {}) : graph_(graph), source_(std::move(source)) {}
  // For a body, with the source and the assumptions of the builder around it.
  Builder(Graph& graph, const Builder& around) : graph_(graph), source_(around.source_), assumptions_(around.assumptions_) {}

  Graph& graph() const { return graph_; }
  // Name of the model's node that the following calls stand for.
  void set_source(std::string source) { source_ = std::move(source); }
  const std::string& source() const { return source_; }
  // Where operands must have equal dimensions that are not known to be equal they are taken for such from here on. Null: that
  // is an error.
  void assume(Assumptions* assumptions) { assumptions_ = assumptions; }
  Assumptions* assumptions() const { return assumptions_; }
  bool assumes() const;  // that dimensions are equal where an operator asks for it
  // x under the dimensions `shape`, if they may be taken for its own; else x itself.
  Value* fit(Value* x, const Shape& shape);

  // The operator's first output.
  Value* call(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {});
  Node* node(std::string_view op, std::vector<Value*> inputs, Attributes attributes = {});

  // Generators.
  Value* constant(HostTensor tensor, std::string name = {});
  Value* scalar(DType dtype, double value);
  Value* floats(std::vector<float> values, Ints shape);
  Value* ints(const Ints& values);  // i64 vector
  Value* exprs(std::vector<Expr> values, Ints shape, DType dtype = DType::i64);
  Value* iota(Shape shape, std::int64_t axis, DType dtype, Expr start = 0, Expr step = 1);

  // Elementwise.
  Value* unary(std::string_view op, Value* x) { return call(op, {x}); }
  Value* add(Value* a, Value* b) { return call("add", {a, b}); }
  Value* sub(Value* a, Value* b) { return call("sub", {a, b}); }
  Value* mul(Value* a, Value* b) { return call("mul", {a, b}); }
  Value* div(Value* a, Value* b) { return call("div", {a, b}); }
  Value* pow(Value* a, Value* b) { return call("pow", {a, b}); }
  Value* max(Value* a, Value* b) { return call("max", {a, b}); }
  Value* min(Value* a, Value* b) { return call("min", {a, b}); }
  Value* fma(Value* a, Value* b, Value* c) { return call("fma", {a, b, c}); }
  Value* where(Value* condition, Value* a, Value* b) { return call("where", {condition, a, b}); }
  Value* cast(Value* x, DType dtype);  // x itself if it has the dtype; also between numbers and strings
  Value* relu(Value* x) { return call("relu", {x}); }
  Value* sigmoid(Value* x) { return call("sigmoid", {x}); }
  Value* tanh(Value* x) { return call("tanh", {x}); }
  Value* erf(Value* x) { return call("erf", {x}); }
  Value* exp(Value* x) { return call("exp", {x}); }
  Value* sqrt(Value* x) { return call("sqrt", {x}); }
  // x^(1/p) of a sum of p-th powers: the root of a norm, through which no gradient flows where it is 0.
  Value* norm_root(Value* x, double p);
  // With a number of x's dtype.
  Value* add(Value* x, double number) { return add(x, scalar(x->type.dtype, number)); }
  Value* mul(Value* x, double number) { return mul(x, scalar(x->type.dtype, number)); }

  // Reductions: "reduce_sum", ... and "argmax", "argmin".
  Value* reduce(std::string_view op, Value* x, const Ints& axes, bool keepdims);
  Value* arg(std::string_view op, Value* x, std::int64_t axis, bool keepdims, bool select_last = false);

  // Rows.
  Value* softmax(Value* x, std::int64_t axis = -1);
  Value* log_softmax(Value* x, std::int64_t axis = -1);
  Value* layer_norm(Value* x, Value* scale, Value* bias, std::int64_t axis = -1, double epsilon = 1e-5);  // bias may be null
  Value* rms_norm(Value* x, Value* scale, std::int64_t axis = -1, double epsilon = 1e-5);

  // Contractions and windows.
  Value* matmul(Value* a, Value* b, bool trans_a = false, bool trans_b = false);
  Value* conv(Value* x, Value* w, Value* bias, const ConvOptions& options);  // bias may be null
  Value* max_pool(Value* x, const PoolOptions& options);
  Value* avg_pool(Value* x, const PoolOptions& options);

  // Movement.
  Value* reshape(Value* x, Shape shape);
  Value* transpose(Value* x, Ints perm);
  Value* expand(Value* x, Shape shape);
  Value* slice(Value* x, std::vector<Expr> starts, std::vector<Expr> sizes, Ints steps);
  // One axis, unit step, all of the other axes.
  Value* slice_axis(Value* x, std::int64_t axis, const Expr& start, const Expr& size);
  Value* pad(Value* x, std::vector<Expr> before, std::vector<Expr> after, double value = 0, std::string mode = "constant");
  Value* concat(std::vector<Value*> values, std::int64_t axis);

  // Indexing and scans.
  Value* gather(Value* data, Value* indices, std::int64_t axis = 0);
  Value* gather_nd(Value* data, Value* indices, std::int64_t batch_dims = 0);
  Value* gather_elements(Value* data, Value* indices, std::int64_t axis);
  Value* cumsum(Value* x, std::int64_t axis, bool exclusive = false, bool reverse = false);

  // The loop's outputs: final carried values, then per-trip results. `body` takes the carried, then the captured values; it
  // gives the next carried values, then the results of one trip. It reads the number of the trip as the symbol `counter`. A
  // conditional loop ends before the first trip at whose begin the first carried value, an i64[] of 0 or 1, is 0; the results
  // of trips that are not made have no particular value.
  Node* loop(const Expr& trip, std::string counter, std::vector<Value*> carried, std::vector<Value*> captured,
             std::unique_ptr<Graph> body, bool conditional = false);

  // New dimension symbols, named after `name`, with the elements of the small integer tensor `x` as values, known when the plan
  // runs: 0 <= symbol <= upper, which may be kOpenDim. The graph wants nest_read_dims afterwards.
  std::vector<Expr> read_dims(Value* x, std::string_view name, const std::vector<Expr>& upper);

 private:
  std::int64_t axis_of(std::int64_t axis, std::size_t rank) const;
  // assumptions.cpp
  void fit_operands(const OpDef& op, std::vector<Value*>& inputs, Attributes& attributes);
  void fit_broadcast(std::vector<Value*>& inputs, std::size_t last_axes);
  void fit_product(std::vector<Value*>& inputs, const Attributes& attributes);
  void fit_concat(std::vector<Value*>& inputs, std::int64_t axis);
  Value* fit_elements(Value* x, const Shape& shape);
  // Notes how long the data must be for the windows of a node.
  void fit_windows(const Node& node, const Ints& kernel, bool cut);

  Graph& graph_;
  std::string source_;
  Assumptions* assumptions_ = nullptr;
};

}  // namespace oclc
