#include "compiler/ops/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/ops/gradients/gradient_rules.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Exprs = std::vector<Expr>;

Ints or_fill(const Ints& list, std::size_t count, std::int64_t value) { return list.empty() ? Ints(count, value) : list; }

std::size_t spatial_axes(const Value* x) { return x->type.rank() < 2 ? 0 : x->type.rank() - 2; }

Attributes window_attributes(const Value* x, const Ints& strides, const Ints& dilations, const Ints& pads) {
  const std::size_t axes = spatial_axes(x);
  return {
      {"strides", or_fill(strides, axes, 1)}, {"dilations", or_fill(dilations, axes, 1)}, {"pads", or_fill(pads, 2 * axes, 0)}};
}

std::int64_t flag(bool value) { return value ? 1 : 0; }

}  // namespace

Node* Builder::node(std::string_view name, std::vector<Value*> inputs, Attributes attributes) {
  const OpDef& def = op(name);
  if (assumes()) fit_operands(def, inputs, attributes);
  return graph_.add(def, std::move(inputs), std::move(attributes), source_);
}

Value* Builder::call(std::string_view name, std::vector<Value*> inputs, Attributes attributes) {
  return node(name, std::move(inputs), std::move(attributes))->output();
}

Value* Builder::constant(HostTensor tensor, std::string name) {
  Value* value = call("constant", {}, {{"tensor", std::move(tensor)}});
  value->name = std::move(name);
  return value;
}

Value* Builder::scalar(DType dtype, double value) { return constant(HostTensor::scalar(dtype, value)); }

Value* Builder::floats(std::vector<float> values, Ints shape) {
  HostTensor tensor(DType::f32, std::move(shape));
  OCLC_CHECK(tensor.elements() == static_cast<std::int64_t>(values.size()), "number of values");
  if (!values.empty()) std::memcpy(tensor.mutable_data(), values.data(), tensor.bytes());
  return constant(std::move(tensor));
}

Value* Builder::ints(const Ints& values) { return constant(HostTensor::from_ints(values)); }

Value* Builder::exprs(Exprs values, Ints shape, DType dtype) {
  return call("exprs", {}, {{"values", std::move(values)}, {"shape", std::move(shape)}, {"dtype", dtype}});
}

Value* Builder::iota(Shape shape, std::int64_t axis, DType dtype, Expr start, Expr step) {
  if (!shape.empty()) axis = axis_of(axis, shape.size());
  return call("iota", {},
              {{"shape", std::move(shape)},
               {"axis", axis},
               {"dtype", dtype},
               {"start", Exprs{std::move(start)}},
               {"step", Exprs{std::move(step)}}});
}

std::int64_t Builder::axis_of(std::int64_t axis, std::size_t rank) const {
  // A bad axis goes through, so that the operator's own rule reports it with the node's name.
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

Value* Builder::norm_root(Value* x, double p) {
  const Attributes norm = {{std::string(kNorm), std::int64_t{1}}};
  if (p == 1) return x;
  return p == 2 ? call("sqrt", {x}, norm) : call("pow", {x, scalar(x->type.dtype, 1 / p)}, norm);
}

Value* Builder::cast(Value* x, DType dtype) {
  if (x->type.dtype == dtype) return x;
  if (dtype == DType::string) return call("number_to_string", {x});
  return call(x->type.dtype == DType::string ? "string_to_number" : "cast", {x}, {{"dtype", dtype}});
}

Value* Builder::reduce(std::string_view name, Value* x, const Ints& axes, bool keepdims) {
  Ints sorted;
  for (const std::int64_t axis : axes) sorted.push_back(axis_of(axis, x->type.rank()));
  std::sort(sorted.begin(), sorted.end());
  return call(name, {x}, {{"axes", std::move(sorted)}, {"keepdims", flag(keepdims)}});
}

Value* Builder::arg(std::string_view name, Value* x, std::int64_t axis, bool keepdims, bool select_last) {
  return call(name, {x},
              {{"axis", axis_of(axis, x->type.rank())}, {"keepdims", flag(keepdims)}, {"select_last", flag(select_last)}});
}

Value* Builder::softmax(Value* x, std::int64_t axis) { return call("softmax", {x}, {{"axis", axis_of(axis, x->type.rank())}}); }

Value* Builder::log_softmax(Value* x, std::int64_t axis) {
  return call("log_softmax", {x}, {{"axis", axis_of(axis, x->type.rank())}});
}

Value* Builder::layer_norm(Value* x, Value* scale, Value* bias, std::int64_t axis, double epsilon) {
  std::vector<Value*> inputs{x, scale};
  if (bias) inputs.push_back(bias);
  return call("layer_norm", std::move(inputs), {{"axis", axis_of(axis, x->type.rank())}, {"epsilon", epsilon}});
}

Value* Builder::rms_norm(Value* x, Value* scale, std::int64_t axis, double epsilon) {
  return call("rms_norm", {x, scale}, {{"axis", axis_of(axis, x->type.rank())}, {"epsilon", epsilon}});
}

Value* Builder::matmul(Value* a, Value* b, bool trans_a, bool trans_b) {
  return call("matmul", {a, b}, {{"trans_a", flag(trans_a)}, {"trans_b", flag(trans_b)}});
}

Value* Builder::conv(Value* x, Value* w, Value* bias, const ConvOptions& options) {
  Attributes attributes = window_attributes(x, options.strides, options.dilations, options.pads);
  attributes["group"] = options.group;
  std::vector<Value*> inputs{x, w};
  if (bias) inputs.push_back(bias);
  const Node* made = node("conv", std::move(inputs), std::move(attributes));
  Ints kernel;
  for (std::size_t i = 2; i < w->type.rank() && w->type.shape[i].is_constant(); ++i) kernel.push_back(w->type.shape[i].value());
  if (kernel.size() + 2 == w->type.rank()) fit_windows(*made, kernel, false);
  return made->output();
}

Value* Builder::max_pool(Value* x, const PoolOptions& options) {
  Attributes attributes = window_attributes(x, options.strides, options.dilations, options.pads);
  attributes["kernel"] = options.kernel;
  attributes["ceil_mode"] = flag(options.ceil_mode);
  const Node* made = node("max_pool", {x}, std::move(attributes));
  fit_windows(*made, options.kernel, true);
  return made->output();
}

Value* Builder::avg_pool(Value* x, const PoolOptions& options) {
  Attributes attributes = window_attributes(x, options.strides, options.dilations, options.pads);
  attributes["kernel"] = options.kernel;
  attributes["ceil_mode"] = flag(options.ceil_mode);
  attributes["count_include_pad"] = flag(options.count_include_pad);
  const Node* made = node("avg_pool", {x}, std::move(attributes));
  fit_windows(*made, options.kernel, true);
  return made->output();
}

Value* Builder::reshape(Value* x, Shape shape) { return call("reshape", {x}, {{"shape", std::move(shape)}}); }

Value* Builder::transpose(Value* x, Ints perm) { return call("transpose", {x}, {{"perm", std::move(perm)}}); }

Value* Builder::expand(Value* x, Shape shape) { return call("expand", {x}, {{"shape", std::move(shape)}}); }

Value* Builder::slice(Value* x, Exprs starts, Exprs sizes, Ints steps) {
  return call("slice", {x}, {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}, {"steps", std::move(steps)}});
}

Value* Builder::slice_axis(Value* x, std::int64_t axis, const Expr& start, const Expr& size) {
  const std::int64_t at = axis_of(axis, x->type.rank());
  if (at < 0 || at >= static_cast<std::int64_t>(x->type.rank())) {
    throw CompileError({.stage = "graph",
                        .node = source_,
                        .op = "slice",
                        .wanted = "an axis of " + x->type.text(),
                        .found = "axis " + std::to_string(axis)});
  }
  Exprs starts(x->type.rank(), Expr(0)), sizes = x->type.shape;
  starts[static_cast<std::size_t>(at)] = start;
  sizes[static_cast<std::size_t>(at)] = size;
  return slice(x, std::move(starts), std::move(sizes), Ints(x->type.rank(), 1));
}

Value* Builder::pad(Value* x, Exprs before, Exprs after, double value, std::string mode) {
  return call("pad", {x},
              {{"before", std::move(before)}, {"after", std::move(after)}, {"value", value}, {"mode", std::move(mode)}});
}

Value* Builder::concat(std::vector<Value*> values, std::int64_t axis) {
  const std::size_t rank = values.empty() ? 0 : values[0]->type.rank();
  return call("concat", std::move(values), {{"axis", axis_of(axis, rank)}});
}

Value* Builder::gather(Value* data, Value* indices, std::int64_t axis) {
  return call("gather", {data, indices}, {{"axis", axis_of(axis, data->type.rank())}});
}

Value* Builder::gather_nd(Value* data, Value* indices, std::int64_t batch_dims) {
  return call("gather_nd", {data, indices}, {{"batch_dims", batch_dims}});
}

Value* Builder::gather_elements(Value* data, Value* indices, std::int64_t axis) {
  return call("gather_elements", {data, indices}, {{"axis", axis_of(axis, data->type.rank())}});
}

Value* Builder::cumsum(Value* x, std::int64_t axis, bool exclusive, bool reverse) {
  return call("cumsum", {x},
              {{"axis", axis_of(axis, x->type.rank())}, {"exclusive", flag(exclusive)}, {"reverse", flag(reverse)}});
}

Node* Builder::loop(const Expr& trip, std::string counter, std::vector<Value*> carried, std::vector<Value*> captured,
                    std::unique_ptr<Graph> body, bool conditional) {
  Attributes attributes{
      {"trip", Exprs{trip}}, {"counter", std::move(counter)}, {"carried", static_cast<std::int64_t>(carried.size())}};
  if (conditional) attributes.emplace("conditional", std::int64_t{1});
  carried.insert(carried.end(), captured.begin(), captured.end());
  std::vector<std::unique_ptr<Graph>> bodies;
  bodies.push_back(std::move(body));
  return graph_.add(op("loop"), std::move(carried), std::move(attributes), source_, nullptr, std::move(bodies));
}

std::vector<Expr> Builder::read_dims(Value* x, std::string_view name, const std::vector<Expr>& upper) {
  Exprs dims;
  for (const Expr& most : upper) {
    const std::string symbol = fmt::format("{}{}_{}_{}", name, graph_.name, x->id, dims.size());
    dims.push_back(Expr::symbol(symbol, 0, most.upper()));
  }
  call("read_dims", {x}, {{"dims", dims}, {"upper", upper}});
  return dims;
}

}  // namespace oclc
