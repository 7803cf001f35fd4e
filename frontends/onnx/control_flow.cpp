// Operators that hold sub-graphs, but If: Loop, Scan, SequenceMap and FlexAttention. Bodies that run several times become the
// core operator `loop`, or are read once for each trip: where there are few trips, and where they carry sequences or values of
// changing shape.
#include <algorithm>
#include <numeric>

#include "compiler/ir/op_def.h"
#include "frontends/onnx/attributes.h"
#include "frontends/onnx/loop_body.h"
#include "frontends/onnx/op_uses.h"
#include "frontends/onnx/ops/attention.h"

namespace oclc::onnx {

using oclc_onnx::AttributeProto;
using oclc_onnx::GraphProto;
using oclc_onnx::NodeProto;

namespace {

constexpr std::int64_t kMostBatches = 1024;  // of Scan in opset 8

// Sets a variable back, also when an exception passes.
template <class T>
class Restored {
 public:
  Restored(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~Restored() { variable_ = before_; }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace

Lowering::Control Lowering::control_of(const NodeProto& node) {
  static constexpr std::pair<std::string_view, Control> kControls[] = {
      {"If", &Lowering::branch},
      {"Loop", &Lowering::loop},
      {"Scan", &Lowering::scan},
      {"SequenceMap", &Lowering::sequence_map},
      {"ai.onnx.preview.FlexAttention", &Lowering::flex_attention}};
  const std::string op = op_label(node);
  for (const auto& [name, read] : kControls) {
    if (name == op) return read;
  }
  return nullptr;
}

void Lowering::control(Control read, NodeProto& node, std::vector<Value*> inputs, const std::string& label, std::int64_t opset,
                       Scope& scope) {
  static constexpr OpRow kRow{"", 1, 0, kAnyNumber};
  builder_->set_source(label);
  OpContext context(*this, *builder_, kRow, node, std::move(inputs), label, opset);
  try {
    bind(node, (this->*read)(context, node, scope), context, scope);
  } catch (const CompileError& error) {
    if (error.parts().stage == "import") throw;
    context.fail(error.parts().wanted, error.parts().found, error.parts().advice, error.parts().exit_code);
  }
}

GraphProto& Lowering::body_of(OpContext& c, const NodeProto& node, std::string_view name, int inputs, int outputs) {
  const AttributeProto* attribute = this->attribute(node, name);
  if (!attribute || !attribute->has_g())
    c.fail(fmt::format("a graph as attribute '{}'", name), attribute ? "none" : "no such attribute");
  auto& body = const_cast<GraphProto&>(attribute->g());
  if (body.output_size() != outputs) c.fail(fmt::format("{} outputs of {}", outputs, name), std::to_string(body.output_size()));
  if (body.input_size() != inputs)
    c.fail(inputs == 0 ? fmt::format("no inputs of {}", name) : fmt::format("{} inputs of {}", inputs, name),
           std::to_string(body.input_size()));
  return body;
}

std::vector<Value*> Lowering::expand(OpContext& c, GraphProto& body, const std::vector<Value*>& inputs, Scope& inner,
                                     const std::string& prefix) {
  c.count_made(1 + body.node_size());
  require_supported(op_uses(model_, body, *call_->opsets, true, false, ops_.get()));
  add_constants(body, inner);
  for (std::size_t i = 0; i < inputs.size(); ++i) inner.values[body.input(static_cast<int>(i)).name()] = inputs[i];
  Call next = *call_;
  next.prefix = prefix;
  const Restored<const Call*> call(call_, &next);
  const Restored<Builder*> builder(builder_, inner.builder);
  nodes(*body.mutable_node(), model_.schedules.at(&body), inner);
  std::vector<Value*> outputs;
  for (const auto& output : body.output()) outputs.push_back(lookup(output.name(), inner));
  inner.builder->set_source(c.label());
  return outputs;
}

Outputs Lowering::loop(OpContext& c, const NodeProto& node, Scope& scope) {
  if (c.inputs() < 2) c.fail("inputs for the trip count and the condition", fmt::format("{} inputs", c.inputs()));
  const auto carried = static_cast<int>(c.inputs()) - 2;
  if (node.output_size() < carried)
    c.fail(fmt::format("{} outputs or more, as values are carried", carried), std::to_string(node.output_size()));
  Repeated r{body_of(c, node, "body", carried + 2, node.output_size() + 1), {}, true, nullptr, {}, {}, c.label()};
  for (int i = 0; i < carried; ++i) r.carried.push_back(c.input(static_cast<std::size_t>(i) + 2));
  if (Value* count = c.optional_input(0)) {
    // Bodies that are read once for each trip want it known.
    const bool bundles = std::any_of(r.carried.begin(), r.carried.end(), [&](const Value* v) { return bundle(v) != nullptr; });
    if (count->type.elements() != Expr(1) || !is_integer(count->type.dtype)) c.fail("one trip count", count->type.text());
    if (count->content || constants_.find(count) || bundles || (ask_for_trips_ && c.known(0))) {
      const Expr trips = c.content(0, "the trip count").at(0);
      r.trips = known_nonnegative(trips) ? trips : max(trips, Expr(0));
    } else {
      Value* most = c.b.min(c.b.cast(c.b.reshape(count, {Expr(1)}), DType::i64), c.b.exprs({Expr(kMostTrips)}, {}));
      r.trips = c.b.read_dims(c.b.max(most, c.b.scalar(DType::i64, 0)), "trips", {Expr(kMostTrips)}).at(0);
      r.counted = true;
    }
  }
  if (const Value* condition = c.optional_input(1)) {
    check_condition(c, condition);
    if (const auto known = constants_.find(condition)) {
      if (known->int_at(0) == 0) r.trips = Expr(0);
    } else {
      r.start = condition;
    }
  }
  return repeat(c, r, scope);
}

Outputs Lowering::scan(OpContext& c, const NodeProto& node, Scope& scope) {
  if (c.opset() < 9) return scan_batches(c, node, scope);
  const std::int64_t count = c.integer("num_scan_inputs");
  if (count < 1 || count > static_cast<std::int64_t>(c.inputs()))
    c.fail(fmt::format("1 to {} scan inputs", c.inputs()), std::to_string(count));
  const auto scans = static_cast<std::size_t>(count), states = c.inputs() - scans;
  if (static_cast<std::size_t>(node.output_size()) < states)
    c.fail(fmt::format("{} outputs or more, one for each state", states), std::to_string(node.output_size()));
  const std::size_t results = static_cast<std::size_t>(node.output_size()) - states;
  Repeated r{body_of(c, node, "body", static_cast<int>(c.inputs()), node.output_size()), {}, false, nullptr, {}, {}, c.label()};
  const auto list = [&](std::string_view name, std::size_t size) {
    Ints values = c.integers(name, Ints(size, 0));
    if (values.size() != size) c.fail(fmt::format("{} numbers as {}", size, name), std::to_string(values.size()));
    return values;
  };
  const Ints axes = list("scan_input_axes", scans), directions = list("scan_input_directions", scans);
  for (std::size_t i = 0; i < states; ++i) r.carried.push_back(c.input(i));
  for (std::size_t i = 0; i < scans; ++i) {
    Value* x = c.input(states + i);
    if (bundle(x)) c.fail(fmt::format("a tensor as scan input {}", i), "a sequence");
    const std::size_t axis = c.axis(axes[i], x->type.rank());
    const Expr& size = x->type.shape[axis];
    if (r.trips && !(*r.trips == size))
      c.fail(fmt::format("scan inputs of one length, {}", r.trips->text()), fmt::format("{} of input {}", size.text(), i));
    r.trips = size;
    r.scanned.push_back({x, axis, directions[i] != 0});
  }
  Outputs out = repeat(c, r, scope);
  const Ints result_axes = list("scan_output_axes", results), result_directions = list("scan_output_directions", results);
  for (std::size_t i = 0; i < results; ++i) {
    Value*& y = out[states + i];
    const std::size_t rank = y->type.rank(), axis = c.axis(result_axes[i], rank);
    if (result_directions[i] != 0) {
      std::vector<Expr> starts(rank, Expr(0));
      Ints steps(rank, 1);
      starts[0] = y->type.shape[0] - 1;
      steps[0] = -1;
      y = c.b.slice(y, std::move(starts), y->type.shape, std::move(steps));
    }
    if (axis == 0) continue;
    Ints perm(rank - 1);
    std::iota(perm.begin(), perm.end(), 1);
    perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(axis), 0);
    y = c.b.transpose(y, std::move(perm));
  }
  return out;
}

// Opset 8: axis 0 of all operands counts the members of a batch, axis 1 of the scanned ones the steps.
Outputs Lowering::scan_batches(OpContext& c, const NodeProto& node, Scope& scope) {
  const std::int64_t count = c.integer("num_scan_inputs");
  const auto operands = static_cast<std::int64_t>(c.inputs()) - 1;
  if (count < 1 || count > operands) c.fail(fmt::format("1 to {} scan inputs", operands), std::to_string(count));
  const auto states = static_cast<std::size_t>(operands - count);
  GraphProto& body = body_of(c, node, "body", static_cast<int>(operands), node.output_size());
  const Ints directions = c.integers("directions", Ints(static_cast<std::size_t>(count), 0));
  if (directions.size() != static_cast<std::size_t>(count))
    c.fail(fmt::format("{} directions", count), std::to_string(directions.size()));
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    if (c.rank(i) < (i > states ? 2u : 1u) || !(c.shape(i)[0] == c.shape(1)[0]))
      c.fail(fmt::format("input {} with the axes of a batch{}", i, i > states ? " and of steps" : ""), c.input(i)->type.text());
  }
  const Expr batch = c.shape(1)[0], steps = c.shape(states + 1)[1];
  if (!batch.is_constant() || batch.value() < 1 || batch.value() > kMostBatches)
    c.unsupported(fmt::format("a batch of 1 to {}", kMostBatches), batch.text(), "give it with --dim, or use opset 9");
  if (c.optional_input(0)) {
    for (const Expr& length : c.content(0, "the lengths of sequences")) {
      if (!(length == steps)) c.unsupported("sequences of full length", length.text(), "leave out the input sequence_lens");
    }
  }
  std::vector<std::vector<Value*>> parts;
  for (std::int64_t member = 0; member < batch.value(); ++member) {
    Repeated r{body, steps, false, nullptr, {}, {}, c.label()};
    for (std::size_t i = 1; i < c.inputs(); ++i) {
      Value* x = element_of(c.b, c.input(i), 0, Expr(member));
      if (i <= states) {
        r.carried.push_back(x);
      } else {
        if (!(x->type.shape[0] == steps)) c.fail(fmt::format("{} steps of input {}", steps.text(), i), c.input(i)->type.text());
        r.scanned.push_back({x, 0, directions[i - 1 - states] != 0});
      }
    }
    const Outputs one = repeat(c, r, scope);
    parts.resize(one.size());
    for (std::size_t i = 0; i < one.size(); ++i) parts[i].push_back(one[i]);
  }
  Outputs out;
  for (const auto& values : parts) out.push_back(stacked(c.b, values));
  return out;
}

Outputs Lowering::sequence_map(OpContext& c, const NodeProto& node, Scope& scope) {
  GraphProto& body = body_of(c, node, "body", static_cast<int>(c.inputs()), node.output_size());
  const std::size_t count = c.sequence(0).size();
  std::vector<std::vector<Value*>> results(static_cast<std::size_t>(node.output_size()));
  for (std::size_t at = 0; at < count; ++at) {
    std::vector<Value*> inputs;
    for (std::size_t i = 0; i < c.inputs(); ++i) {
      if (!bundle(c.input(i))) {
        inputs.push_back(c.input(i));
        continue;
      }
      const std::vector<Value*>& items = c.sequence(i);
      if (items.size() != count) c.fail(fmt::format("{} elements of input {}", count, i), std::to_string(items.size()));
      inputs.push_back(items[at]);
    }
    Scope inner(&scope, *builder_);
    const auto outputs = expand(c, body, inputs, inner, fmt::format("{}/{}/", c.label(), at));
    for (std::size_t i = 0; i < outputs.size(); ++i) results[i].push_back(outputs[i]);
  }
  Outputs out;
  for (auto& items : results) out.push_back(c.make_sequence(std::move(items)));
  return out;
}

// Attention whose scores and shares the model's own graphs may change.
Outputs Lowering::flex_attention(OpContext& c, const NodeProto& node, Scope& scope) {
  Value *q = c.input(0), *k = c.input(1), *v = c.input(2);
  for (const Value* x : {q, k, v})
    if (x->type.rank() != 4) c.fail("operands of rank 4", x->type.text());
  const DType own = q->type.dtype, precise = c.dtype("softmax_precision", own == DType::f64 ? DType::f64 : DType::f32);
  const Expr heads = q->type.shape[1];
  const auto changed = [&](std::string_view name, Value* x) {
    if (!c.has(name)) return x;
    Scope inner(&scope, *builder_);
    Value* y = expand(c, body_of(c, node, name, 1, 1), {x}, inner, fmt::format("{}/{}/", c.label(), name)).at(0);
    if (bundle(y) || !(y->type == x->type))
      c.fail(fmt::format("{} that gives {}", name, x->type.text()), bundle(y) ? "a sequence" : y->type.text());
    return y;
  };
  k = c.b.cast(repeated_heads(c, k, heads), precise);
  Value* scores = c.b.mul(c.b.matmul(c.b.cast(q, precise), k, false, true), score_scale(c, q));
  Value* shares = changed("prob_mod", c.b.softmax(changed("score_mod", scores), 3));
  return {c.b.cast(c.b.matmul(shares, c.b.cast(repeated_heads(c, v, heads), precise)), own)};
}

}  // namespace oclc::onnx
