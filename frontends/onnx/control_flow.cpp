// Operators that hold sub-graphs: If, Loop, Scan and SequenceMap. Where the condition is known the branch that is taken
// replaces its node; else both are loops that go round once or never. Bodies that run several times become the core operator
// `loop`, or are read once for each trip: where there are few trips, and where they carry sequences or values of changing
// shape.
#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/ir/op_def.h"
#include "frontends/onnx/attributes.h"
#include "frontends/onnx/lowering.h"
#include "frontends/onnx/op_uses.h"

namespace oclc::onnx {

using oclc_onnx::AttributeProto;
using oclc_onnx::GraphProto;
using oclc_onnx::NodeProto;

namespace {

constexpr std::int64_t kMostUnrolled = 1024;    // trips
constexpr std::int64_t kUnrolledNodes = 64;     // trips times nodes that are read again for each trip
constexpr std::int64_t kMostNodes = 1'000'000;  // of all bodies, each time they are read
constexpr std::int64_t kMostBatches = 1024;     // of Scan in opset 8
constexpr std::int64_t kMostTrips = std::int64_t{1} << 40;

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

// x[at, ...], without the axis.
Value* element_of(Builder& b, Value* x, std::size_t axis, const Expr& at) {
  Shape shape = x->type.shape;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  return b.reshape(b.slice_axis(x, static_cast<std::int64_t>(axis), at, Expr(1)), std::move(shape));
}

Value* stacked(Builder& b, const std::vector<Value*>& parts) {
  std::vector<Value*> rows;
  for (Value* part : parts) {
    Shape shape = part->type.shape;
    shape.insert(shape.begin(), Expr(1));
    rows.push_back(b.reshape(part, std::move(shape)));
  }
  return rows.size() == 1 ? rows[0] : b.concat(std::move(rows), 0);
}

// A boolean condition of one element.
void check_condition(const OpContext& c, const Value* condition) {
  if (condition->type.dtype != DType::boolean || !(condition->type.elements() == Expr(1)))
    c.fail("one bool as condition", condition->type.text());
}

[[noreturn]] void condition_not_known(const OpContext& c) {
  c.unsupported("a condition known when compiling", "one computed from the model's data",
                "export the model with the branch resolved");
}

// What runs several times, or perhaps not at all, cannot give tensors of a size that only it knows.
void check_sizes(const OpContext& c, const Graph& body) {
  for (const Node* node : body.nodes()) {
    if (node->op->name != "read_dims") continue;
    for (const auto& [name, value] : body.outputs()) {
      for (const Expr& size : value->type.shape) {
        for (const Expr& read : node->get<std::vector<Expr>>("dims")) {
          if (size.uses(*read.symbol_name()))
            c.unsupported("results of a body whose sizes are known before it runs", value->type.text());
        }
      }
    }
  }
}

}  // namespace

// A body that runs `trips` times, as Loop and Scan have it.
struct Lowering::Repeated {
  struct Scanned {
    Value* value;
    std::size_t axis;
    bool reverse;
  };
  GraphProto& body;
  std::optional<Expr> trips;     // none: until the condition ends it
  bool conditional = false;      // the body takes the number of the trip and a condition, and gives a condition
  const Value* start = nullptr;  // the condition before the first trip, unless it is known to be true
  std::vector<Value*> carried;   // before the first trip
  std::vector<Scanned> scanned{};
  std::string label;
};

// The body of a core loop in the making. What does not become one is kept: what is known of its values is kept by address.
class Lowering::Body {
 public:
  Body(Lowering& lowering, const OpContext& c, Scope& around)
      : counter(fmt::format("trip_{}", lowering.loops_)),
        builder(*body_.graph, c.label()),
        scope(&around, builder),
        lowering_(lowering) {
    body_.graph->name = fmt::format("body{}", lowering.loops_++);
    scope.body = &body_;
  }
  ~Body() {
    if (body_.graph) lowering_.discarded_.push_back(std::move(body_.graph));
  }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  Value* add_input(std::string name, TensorType type) { return body_.graph->add_input(std::move(name), std::move(type)); }

  // Inputs for the values that go from trip to trip.
  std::vector<Value*> carry(const OpContext& c, const std::vector<Value*>& values) {
    std::vector<Value*> inputs;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (lowering_.bundle(values[i])) c.unsupported("tensors carried from trip to trip", "a sequence");
      inputs.push_back(add_input(fmt::format("carried{}", i), values[i]->type));
    }
    return inputs;
  }

  // The results of a trip: from `first` on, the next values of `carried`.
  void give(const OpContext& c, const std::vector<Value*>& outputs, const std::vector<Value*>& carried, std::size_t first) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (lowering_.bundle(outputs[i])) c.unsupported("tensors as results of the body", "a sequence");
      if (i >= first && i - first < carried.size() && !(outputs[i]->type == carried[i - first]->type)) {
        c.unsupported(fmt::format("a carried value {} of unchanging type {}", i - first, carried[i - first]->type.text()),
                      outputs[i]->type.text());
      }
      body_.graph->add_output(fmt::format("out{}", i), outputs[i]);
    }
    check_sizes(c, *body_.graph);
  }

  // The outputs of the loop.
  Outputs loop(OpContext& c, const Expr& trips, std::vector<Value*> carried, bool conditional = false) {
    std::vector<Value*> captured;
    for (const auto& [outer, within] : body_.captured) captured.push_back(outer);
    const Node* node = c.b.loop(trips, counter, std::move(carried), std::move(captured), std::move(body_.graph), conditional);
    Outputs out;
    for (const auto& output : node->outputs) out.push_back(output.get());
    return out;
  }

 private:
  LoopBody body_;

 public:
  const std::string counter;
  Builder builder;
  Scope scope;

 private:
  Lowering& lowering_;
};

Lowering::Control Lowering::control_of(const NodeProto& node) {
  if (!domain_name(node.domain()).empty()) return nullptr;
  static constexpr std::pair<std::string_view, Control> kControls[] = {{"If", &Lowering::branch},
                                                                       {"Loop", &Lowering::loop},
                                                                       {"Scan", &Lowering::scan},
                                                                       {"SequenceMap", &Lowering::sequence_map}};
  for (const auto& [name, read] : kControls) {
    if (name == node.op_type()) return read;
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
  expanded_ += body.node_size();
  if (expanded_ > kMostNodes) {
    c.fail(fmt::format("at most {} nodes after loops are unrolled", kMostNodes), "more",
           "the limit is there against damaged and hostile files");
  }
  require_supported(op_uses(model_, body, *call_->opsets, true, false));
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

Outputs Lowering::branch(OpContext& c, const NodeProto& node, Scope& scope) {
  const Value* condition = c.input(0);
  check_condition(c, condition);
  GraphProto* branches[2] = {};
  for (const bool taken : {false, true})
    branches[taken] = &body_of(c, node, taken ? "then_branch" : "else_branch", 0, node.output_size());
  for (int i = 0; i < node.output_size(); ++i) {
    const auto type = [&](bool taken) { return branches[taken]->output(i).type().tensor_type().elem_type(); };
    if (type(true) != 0 && type(false) != 0 && type(true) != type(false)) {
      c.fail(fmt::format("one type of output {} in both branches", i),
             fmt::format("{} and {}", element_type_name(type(true)), element_type_name(type(false))));
    }
  }
  const auto take = [&](const HostTensor& known) {
    Scope inner(&scope, *builder_);
    return expand(c, *branches[known.int_at(0) != 0], {}, inner, call_->prefix);
  };
  if (const auto known = constants_.find(condition)) return take(*known);
  try {
    return either_branch(c, condition, *branches[false], *branches[true], scope);
  } catch (const CompileError&) {
    if (const auto known = known_.find(condition)) return take(*known);
    throw;
  }
}

Outputs Lowering::either_branch(OpContext& c, const Value* condition, GraphProto& otherwise, GraphProto& then, Scope& scope) {
  Value* flag = c.b.reshape(c.b.cast(const_cast<Value*>(condition), DType::i64), {Expr(1)});
  const Expr taken = c.b.read_dims(flag, "taken", {Expr(1)}).at(0);
  std::vector<std::vector<Value*>> parts(static_cast<std::size_t>(then.output_size()));
  for (const bool which : {false, true}) {
    Body body(*this, c, scope);
    const std::vector<Value*> outputs = expand(c, which ? then : otherwise, {}, body.scope, call_->prefix);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (bundle(outputs[i])) condition_not_known(c);
      if (!which) continue;
      TensorType other = parts[i][0]->type;
      other.shape.erase(other.shape.begin());
      if (!(outputs[i]->type == other))
        c.unsupported(fmt::format("one type of output {} in both branches", i),
                      fmt::format("{} and {}", outputs[i]->type.text(), other.text()));
    }
    body.give(c, outputs, {}, 0);
    const Outputs rows = body.loop(c, which ? taken : Expr(1) - taken, {});
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i].push_back(rows[i]);
  }
  Outputs out;
  for (const auto& rows : parts) {
    Shape shape = rows[0]->type.shape;
    shape.erase(shape.begin());
    out.push_back(c.b.reshape(c.b.concat(rows, 0), std::move(shape)));
  }
  return out;
}

Outputs Lowering::loop(OpContext& c, const NodeProto& node, Scope& scope) {
  if (c.inputs() < 2) c.fail("inputs for the trip count and the condition", fmt::format("{} inputs", c.inputs()));
  const auto carried = static_cast<int>(c.inputs()) - 2;
  if (node.output_size() < carried)
    c.fail(fmt::format("{} outputs or more, as values are carried", carried), std::to_string(node.output_size()));
  Repeated r{body_of(c, node, "body", carried + 2, node.output_size() + 1), {}, true, nullptr, {}, {}, c.label()};
  for (int i = 0; i < carried; ++i) r.carried.push_back(c.input(static_cast<std::size_t>(i) + 2));
  if (Value* count = c.optional_input(0)) {
    // Memory for what all trips give, and bodies that are read once for each trip, want it known.
    const bool collects = node.output_size() > carried ||
                          std::any_of(r.carried.begin(), r.carried.end(), [&](const Value* v) { return bundle(v) != nullptr; });
    if (count->type.elements() != Expr(1) || !is_integer(count->type.dtype)) c.fail("one trip count", count->type.text());
    if (count->content || constants_.find(count) || collects) {
      const Expr trips = c.content(0, "the trip count").at(0);
      r.trips = known_nonnegative(trips) ? trips : max(trips, Expr(0));
    } else {
      Value* least = c.b.max(c.b.cast(c.b.reshape(count, {Expr(1)}), DType::i64), c.b.scalar(DType::i64, 0));
      r.trips = c.b.read_dims(least, "trips", {Expr(kMostTrips)}).at(0);
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

std::vector<Value*> Lowering::body_inputs(const Repeated& r, const Expr& at, const std::vector<Value*>& carried, Scope& inner) {
  Builder& b = *inner.builder;
  b.set_source(r.label);
  std::vector<Value*> inputs;
  if (r.conditional) {
    // Scalars; some exporters declare vectors of one element.
    const auto shape = [&](int i) {
      const auto& type = r.body.input(i).type().tensor_type();
      return type.has_shape() && type.shape().dim_size() == 1 ? Ints{1} : Ints{};
    };
    inputs.push_back(b.exprs({at}, shape(0)));
    inputs.push_back(b.exprs({Expr(1)}, shape(1), DType::boolean));
  }
  inputs.insert(inputs.end(), carried.begin(), carried.end());
  for (const Repeated::Scanned& s : r.scanned) {
    Value* x = inner.body ? capture(s.value, inner) : s.value;
    inputs.push_back(element_of(b, x, s.axis, s.reverse ? x->type.shape[s.axis] - 1 - at : at));
  }
  return inputs;
}

// The last carried values, then the results of the trips, stacked on a new first axis.
Outputs Lowering::repeat(OpContext& c, const Repeated& r, Scope& scope) {
  const auto fixed = r.trips ? r.trips->constant() : std::nullopt;
  if (fixed && *fixed == 0) return never_run(c, r, scope);
  const bool bundles = std::any_of(r.carried.begin(), r.carried.end(), [&](const Value* v) { return bundle(v) != nullptr; });
  const std::int64_t most = std::min(fixed.value_or(kMostUnrolled), kMostUnrolled);
  const bool few = fixed && *fixed <= kUnrolledNodes && *fixed * r.body.node_size() <= kUnrolledNodes;
  const bool all_known = fixed || !r.trips;  // the body can be read once for each trip
  const bool unroll_first = !r.trips || (all_known && bundles) || few || (states_ && fixed && *fixed <= kMostUnrolled);
  // Ways to compute it, the best first.
  std::vector<std::function<Outputs()>> ways;
  const auto unroll = [&](KnownValues& known) { return [&] { return unrolled(c, r, most, known, scope); }; };
  if (!r.start && unroll_first) ways.push_back(unroll(constants_));
  if (!r.start && r.trips) ways.push_back([&] { return rolled(c, r, scope); });
  if (!r.start && !unroll_first && all_known) ways.push_back(unroll(constants_));
  if (r.conditional) ways.push_back([&] { return conditional(c, r, scope); });
  if (all_known) ways.push_back(unroll(known_));
  for (std::size_t i = 0; i + 1 < ways.size(); ++i) {
    try {
      return ways[i]();
    } catch (const CompileError&) {
    }
  }
  return ways.back()();
}

Outputs Lowering::rolled(OpContext& c, const Repeated& r, Scope& scope) {
  Body body(*this, c, scope);
  const std::vector<Value*> carried = body.carry(c, r.carried);
  const std::vector<Value*> inputs = body_inputs(r, Expr::axis(body.counter, *r.trips), carried, body.scope);
  std::vector<Value*> outputs = expand(c, r.body, inputs, body.scope, c.label() + "/");
  if (r.conditional) {
    check_condition(c, outputs[0]);
    const auto goes_on = constants_.find(outputs[0]);
    if (!goes_on || goes_on->int_at(0) == 0) condition_not_known(c);
    outputs.erase(outputs.begin());
  }
  body.give(c, outputs, carried, 0);
  return body.loop(c, *r.trips, r.carried);
}

// The condition is computed in each trip: whether there is another, and how many there were, is carried too.
Outputs Lowering::conditional(OpContext& c, const Repeated& r, Scope& scope) {
  const auto states = r.carried.size();
  const bool collects = static_cast<std::size_t>(r.body.output_size()) > states + 1;
  if (!r.trips && collects) c.unsupported("a trip count, as results of all trips are collected", "none");
  Body body(*this, c, scope);
  const Expr most = r.trips.value_or(Expr(kMostTrips));
  const TensorType number{DType::i64, {}};
  body.add_input("goes_on", number);
  Value* made = body.add_input("made", number);
  const std::vector<Value*> carried = body.carry(c, r.carried);
  const std::vector<Value*> inputs = body_inputs(r, Expr::axis(body.counter, most), carried, body.scope);
  std::vector<Value*> outputs = expand(c, r.body, inputs, body.scope, c.label() + "/");
  check_condition(c, outputs[0]);
  if (const auto goes_on = constants_.find(outputs[0]); goes_on && goes_on->int_at(0) != 0 && !r.trips)
    c.fail("a condition or a trip count that ends the loop", "none");
  outputs[0] = body.builder.reshape(body.builder.cast(outputs[0], DType::i64), {});
  outputs.insert(outputs.begin() + 1, body.builder.add(made, body.builder.scalar(DType::i64, 1)));
  body.give(c, outputs, carried, 2);
  Value* start = c.b.scalar(DType::i64, 1);
  if (r.start) start = c.b.reshape(c.b.cast(const_cast<Value*>(r.start), DType::i64), {});
  std::vector<Value*> begin{start, c.b.scalar(DType::i64, 0)};
  begin.insert(begin.end(), r.carried.begin(), r.carried.end());
  Outputs out = body.loop(c, most, std::move(begin), true);
  Value* trips = out[1];
  out.erase(out.begin(), out.begin() + 2);
  if (!collects) return out;
  const Expr last = c.b.read_dims(c.b.reshape(trips, {Expr(1)}), "made", {most}).at(0);
  for (std::size_t i = states; i < out.size(); ++i) out[i] = c.b.slice_axis(out[i], 0, Expr(0), last);
  return out;
}

Outputs Lowering::unrolled(OpContext& c, const Repeated& r, std::int64_t most, KnownValues& known, Scope& scope) {
  if (r.start) {
    const auto begins = known.find(r.start);
    if (!begins) condition_not_known(c);
    if (begins->int_at(0) == 0) return never_run(c, r, scope);
  }
  std::vector<Value*> carried = r.carried;
  std::vector<std::vector<Value*>> results;
  const std::size_t first = r.conditional ? 1 : 0;
  const std::int64_t wanted = r.trips ? r.trips->constant().value_or(-1) : -1;
  for (std::int64_t trip = 0;; ++trip) {
    if (trip == most && trip == wanted) break;
    if (trip == most) c.unsupported(fmt::format("a loop whose condition ends it within {} trips", kMostUnrolled), "more trips");
    Scope inner(&scope, *builder_);
    std::vector<Value*> outputs =
        expand(c, r.body, body_inputs(r, Expr(trip), carried, inner), inner, fmt::format("{}/{}/", c.label(), trip));
    std::copy_n(outputs.begin() + static_cast<std::ptrdiff_t>(first), carried.size(), carried.begin());
    results.resize(outputs.size() - first - carried.size());
    for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back(outputs[first + carried.size() + i]);
    if (!r.conditional || trip + 1 == wanted) continue;
    check_condition(c, outputs[0]);
    const auto goes_on = known.find(outputs[0]);
    if (!goes_on) condition_not_known(c);
    if (goes_on->int_at(0) == 0) break;
  }
  for (const auto& parts : results) carried.push_back(stacked(c.b, parts));
  return carried;
}

// The carried values as they are, and results without elements: what a trip would give tells their types.
Outputs Lowering::never_run(OpContext& c, const Repeated& r, Scope& scope) {
  const std::size_t first = r.conditional ? 1 : 0;
  const auto states = static_cast<int>(first + r.carried.size());
  Outputs out = r.carried;
  if (r.body.output_size() == states) return out;
  Body body(*this, c, scope);
  std::vector<Value*> carried;
  for (Value* value : r.carried) carried.push_back(capture(value, body.scope));
  Repeated none{r.body, r.trips, r.conditional, nullptr, {}, {}, r.label};
  std::vector<Value*> inputs = body_inputs(none, Expr(0), carried, body.scope);
  for (const Repeated::Scanned& s : r.scanned) {
    TensorType type = s.value->type;
    type.shape.erase(type.shape.begin() + static_cast<std::ptrdiff_t>(s.axis));
    inputs.push_back(body.add_input("scanned", std::move(type)));
  }
  const std::vector<Value*> outputs = expand(c, r.body, inputs, body.scope, c.label() + "/");
  for (auto i = static_cast<std::size_t>(states); i < outputs.size(); ++i) {
    const TensorType& type = outputs[i]->type;
    Shape shape = type.shape;
    shape.insert(shape.begin(), Expr(0));
    out.push_back(c.b.expand(c.b.scalar(type.dtype, 0), std::move(shape)));
  }
  return out;
}

}  // namespace oclc::onnx
