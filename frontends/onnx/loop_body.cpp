// Bodies that run several times: as the body of the core operator `loop`, with a condition or without, or read once for each
// trip.
#include "frontends/onnx/loop_body.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "compiler/ir/op_def.h"

namespace oclc::onnx {
namespace {

constexpr int kDeepestLoops = 8;               // within each other, as plans have them
constexpr std::int64_t kMostUnrolled = 1024;   // trips
constexpr std::int64_t kMostCollected = 4096;  // trips for whose results memory is had before their number is known
constexpr std::int64_t kUnrolledNodes = 64;    // trips times nodes that are read again for each trip

// Whether the size of `value` is a number that a node of the body reads when it runs.
bool has_read_size(const Graph& body, const Value& value) {
  for (const Node* node : body.nodes()) {
    if (node->op->name != "read_dims") continue;
    for (const Expr& size : value.type.shape) {
      for (const Expr& read : node->get<std::vector<Expr>>("dims"))
        if (size.uses(*read.symbol_name())) return true;
    }
  }
  return false;
}

// What runs several times, or perhaps not at all, cannot give tensors of a size that only it knows.
void check_sizes(const OpContext& c, const Graph& body) {
  for (const auto& [name, value] : body.outputs()) {
    if (has_read_size(body, *value))
      c.unsupported("results of a body whose sizes are known before it runs", value->type.text());
  }
}

}  // namespace

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

Lowering::Body::Body(Lowering& lowering, const OpContext& c, Scope& around)
    : counter(fmt::format("trip_{}", lowering.loops_)),
      builder(*body_.graph, c.b),
      scope(&around, builder),
      lowering_(lowering) {
  if (lowering.depth_ == kDeepestLoops)
    c.unsupported(fmt::format("at most {} loops and choices of the model's data within each other", kDeepestLoops), "more",
                  "give the inputs that the conditions need when compiling, or nest less");
  ++lowering.depth_;
  body_.graph->name = fmt::format("body{}", lowering.loops_++);
  scope.body = &body_;
}

void Lowering::Body::end() {
  --lowering_.depth_;
  is_open_ = false;
}

Lowering::Body::~Body() {
  if (is_open_) end();
  if (body_.graph) lowering_.discarded_.push_back(std::move(body_.graph));
}

std::vector<Value*> Lowering::Body::carry(const OpContext& c, const std::vector<Value*>& values) {
  std::vector<Value*> inputs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (lowering_.bundle(values[i])) c.unsupported("tensors carried from trip to trip", "a sequence");
    inputs.push_back(add_input(fmt::format("carried{}", i), values[i]->type));
  }
  return inputs;
}

// What `before` is concatenated with to give `next`, if nothing else reads it; else null.
Value* Lowering::Body::growth(const Value* next, const Value* before, std::int64_t& axis) {
  const Node* node = next->producer;
  if (!node || node->op->name != "concat" || node->inputs[0] != before || before->users.size() != 1) return nullptr;
  axis = node->get<std::int64_t>("axis");
  std::vector<Value*> rest(node->inputs.begin() + 1, node->inputs.end());
  if (rest.empty()) return nullptr;
  return rest.size() == 1 ? rest[0] : builder.concat(std::move(rest), axis);
}

void Lowering::Body::give(const OpContext& c, std::vector<Value*> outputs, const std::vector<Value*>& carried,
                          std::size_t first, bool collect) {
  if (!collect) outputs.resize(first + carried.size());
  std::vector<Value*> grown_by;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (lowering_.bundle(outputs[i])) c.unsupported("tensors as results of the body", "a sequence");
    if (i < first || i - first >= carried.size() || outputs[i]->type == carried[i - first]->type) continue;
    std::int64_t axis = 0;
    Value* more = growth(outputs[i], carried[i - first], axis);
    if (!more) {
      c.unsupported(fmt::format("a carried value {} of unchanging type {}, or one that only grows by a Concat", i - first,
                                carried[i - first]->type.text()),
                    outputs[i]->type.text());
    }
    grown_.push_back({i - first, axis});
    grown_by.push_back(more);
    outputs[i] = carried[i - first];
  }
  if (collect) outputs.insert(outputs.end(), grown_by.begin(), grown_by.end());
  for (std::size_t i = 0; i < outputs.size(); ++i) body_.graph->add_output(fmt::format("out{}", i), outputs[i]);
  check_sizes(c, *body_.graph);
}

bool Lowering::Body::computes_sizes(const std::vector<Value*>& results) const {
  return std::any_of(results.begin(), results.end(), [&](const Value* v) { return has_read_size(*body_.graph, *v); });
}

Outputs Lowering::Body::loop(OpContext& c, const Expr& trips, std::vector<Value*> carried, bool conditional) {
  std::vector<Value*> captured;
  for (const auto& [outer, within] : body_.captured) captured.push_back(outer);
  const Node* node = c.b.loop(trips, counter, std::move(carried), std::move(captured), std::move(body_.graph), conditional);
  Outputs out;
  for (const auto& output : node->outputs) out.push_back(output.get());
  return out;
}

void Lowering::Body::join_grown(OpContext& c, Outputs& out, const std::vector<Value*>& initial) {
  const std::size_t plain = out.size() - grown_.size();
  for (std::size_t i = 0; i < grown_.size(); ++i) {
    Value* pieces = out[plain + i];  // [trips, shape of one..]
    const auto axis = static_cast<std::size_t>(grown_[i].axis);
    Ints perm(pieces->type.rank());
    std::iota(perm.begin(), perm.end(), 0);
    std::rotate(perm.begin(), perm.begin() + 1, perm.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    Shape shape(pieces->type.shape.begin() + 1, pieces->type.shape.end());
    shape[axis] *= pieces->type.shape[0];
    Value* more = c.b.reshape(c.b.transpose(pieces, std::move(perm)), std::move(shape));
    out[grown_[i].carried] = c.b.concat({initial[grown_[i].carried], more}, grown_[i].axis);
  }
  out.resize(plain);
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
    if (!r.exact && (!goes_on || goes_on->int_at(0) == 0)) condition_not_known(c);
    outputs.erase(outputs.begin());
  }
  body.give(c, outputs, carried, 0);
  Outputs out = body.loop(c, *r.trips, r.carried);
  body.join_grown(c, out, r.carried);
  return out;
}

// The condition is computed in each trip: whether there is another, and how many there were, is carried too. Where results of
// all trips are collected and nothing says how many trips there may be, they are made twice: once to count them. (Random
// numbers are the same in both.)
Outputs Lowering::conditional(OpContext& c, const Repeated& r, Scope& scope, bool counts_only) {
  const auto states = r.carried.size();
  const bool gives_results = static_cast<std::size_t>(r.body.output_size()) > states + 1;
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
  body.give(c, outputs, carried, 2, !counts_only);
  const bool collects = !counts_only && (gives_results || body.grows());
  if (collects && (!r.trips || r.counted || (r.trips->is_constant() && r.trips->value() > kMostCollected))) {
    Repeated again = r;
    again.trips = c.b.read_dims(conditional(c, r, scope, true).at(0), "made", {Expr(kMostTrips)}).at(0);
    again.start = nullptr;
    again.exact = true;
    return rolled(c, again, scope);
  }
  Value* start = c.b.scalar(DType::i64, 1);
  if (r.start) start = c.b.reshape(c.b.cast(const_cast<Value*>(r.start), DType::i64), {});
  std::vector<Value*> begin{start, c.b.scalar(DType::i64, 0)};
  begin.insert(begin.end(), r.carried.begin(), r.carried.end());
  Outputs out = body.loop(c, most, std::move(begin), true);
  Value* trips = out[1];
  if (counts_only) return {c.b.reshape(trips, {Expr(1)})};
  out.erase(out.begin(), out.begin() + 2);
  if (!collects) return out;
  const Expr last = c.b.read_dims(c.b.reshape(trips, {Expr(1)}), "made", {most}).at(0);
  for (std::size_t i = states; i < out.size(); ++i) out[i] = c.b.slice_axis(out[i], 0, Expr(0), last);
  body.join_grown(c, out, r.carried);
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
