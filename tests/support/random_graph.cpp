#include "tests/support/random_graph.h"

#include <algorithm>
#include <iterator>
#include <random>

#include "compiler/ops/builder.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, const RandomGraphOptions& options)
      : random_(seed), options_(options), graph_(std::make_unique<Graph>()), build_(*graph_) {}

  std::unique_ptr<Graph> run() {
    const std::int64_t inputs = between(1, 3);
    for (std::int64_t i = 0; i < inputs; ++i)
      keep(graph_->add_input("x" + std::to_string(i), {DType::f32, some_shape(between(0, 4))}), true);
    for (int i = 0; i < options_.nodes; ++i) {
      build_.set_source("node" + std::to_string(i));
      try {
        step();
      } catch (const CompileError&) {
        // The operands did not fit; nothing was added by the call that failed.
      }
    }
    std::size_t outputs = 0;
    for (const Entry& entry : values_) {
      if (entry.value->users.empty() || chance(10)) graph_->add_output("y" + std::to_string(outputs++), entry.value);
    }
    return std::move(graph_);
  }

 private:
  struct Entry {
    Value* value;
    bool exact;  // holds the same bits however it is computed
  };

  std::int64_t between(std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(hi - lo + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + between(0, static_cast<std::int64_t>(list.size()) - 1));
  }

  Expr some_dim() {
    if (options_.symbolic && chance(30)) return Expr::symbol(chance(50) ? "N" : "T");
    return chance(20) ? Expr(1) : Expr(between(1, options_.largest_dim));
  }
  Shape some_shape(std::int64_t rank) {
    Shape shape;
    for (std::int64_t i = 0; i < rank; ++i) shape.push_back(some_dim());
    return shape;
  }

  Value* keep(Value* value, bool exact) {
    if (value->type.rank() <= 6) values_.push_back({value, exact});
    return value;
  }

  // A value of the kind asked for, recent ones rather than old ones; CompileError if there is none.
  Entry pick(bool (*fits)(const Entry&)) {
    std::vector<Entry> all;
    std::copy_if(values_.begin(), values_.end(), std::back_inserter(all), fits);
    if (all.empty()) throw CompileError({.wanted = "an operand"});
    const auto n = static_cast<std::int64_t>(all.size());
    return all[static_cast<std::size_t>(std::max(between(0, n - 1), between(0, n - 1)))];
  }
  Entry pick_float() {
    return pick([](const Entry& e) { return e.value->type.dtype == DType::f32; });
  }

  HostTensor numbers(DType dtype, Ints shape) {
    HostTensor tensor(dtype, std::move(shape));
    const bool same = chance(25);
    const double number = one_of({0.0, 1.0, 2.0, 0.5, -1.0, 3.0});
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.set(i, same              ? number
                    : is_float(dtype) ? static_cast<double>(between(-1000, 1000)) / 1000
                                      : static_cast<double>(between(0, 3)));
    }
    return tensor;
  }

  // A constant that broadcasts against the value.
  Value* partner(const Value* x) {
    Ints shape;
    const auto drop = static_cast<std::size_t>(between(0, static_cast<std::int64_t>(x->type.rank())));
    for (std::size_t i = drop; i < x->type.rank(); ++i) {
      const Expr& dim = x->type.shape[i];
      shape.push_back(dim.is_constant() && chance(60) ? dim.value() : 1);
    }
    return build_.constant(numbers(x->type.dtype, shape));
  }

  Entry second(const Entry& x) {
    if (chance(50)) return {partner(x.value), true};
    std::vector<Entry> all;
    for (const Entry& e : values_) {
      if (e.value->type.dtype == x.value->type.dtype && (chance(30) || e.value->type.shape == x.value->type.shape))
        all.push_back(e);
    }
    return all.empty() ? x : all[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(all.size()) - 1))];
  }

  void step() {
    switch (between(0, 15)) {
      case 0:
      case 1:
        return unary();
      case 2:
      case 3:
      case 4:
        return binary();
      case 5:
      case 6:
      case 7:
        return movement();
      case 8:
        return slicing();
      case 9:
        return joining();
      case 10:
        return reduction();
      case 11:
        return options_.contractions ? matrix_product() : unary();
      case 12:
        return options_.contractions ? convolution() : binary();
      case 13:
      case 14:
        return options_.integers ? integers() : movement();
      default:
        return options_.loops && chance(30) ? loop() : row();
    }
  }

  void unary() {
    const Entry x = pick_float();
    Value* v = x.value;
    switch (between(0, 9)) {
      case 0:
        return void(keep(build_.call(one_of({"neg", "abs", "relu"}), {v}), x.exact));
      case 1:
        return void(keep(build_.call(one_of({"tanh", "sigmoid", "erf", "sin", "cos"}), {v}), false));
      case 2:
        return void(keep(build_.exp(build_.tanh(v)), false));
      case 3:
        return void(keep(
            build_.call(one_of({"sqrt", "rsqrt", "reciprocal", "log"}), {build_.add(build_.call("abs", {v}), 1.0)}), false));
      case 4: {
        Value* base = build_.add(build_.call("abs", {v}), 0.5);
        return void(keep(build_.pow(base, build_.scalar(DType::f32, one_of({2.0, 3.0, 0.5, -0.5, -1.0, 1.0, 1.5}))), false));
      }
      case 5:
        return void(keep(build_.div(v, build_.scalar(DType::f32, one_of({2.0, -4.0, 3.0, 1.0}))), false));
      case 6:
        return void(
            keep(build_.max(build_.min(v, build_.scalar(DType::f32, 0.75)), build_.scalar(DType::f32, one_of({0.0, -0.5}))),
                 x.exact));
      case 7:
        return void(keep(build_.mul(build_.mul(v, 0.3), 3.0), false));
      case 8:
        return void(keep(build_.mul(v, build_.sigmoid(v)), false));
      default:
        return void(keep(build_.call(one_of({"floor", "ceil", "round", "sign"}), {x.exact ? v : values_[0].value}), true));
    }
  }

  void binary() {
    const Entry a = pick_float(), b = second(a);
    std::vector<Value*> operands{a.value, b.value};
    if (chance(40)) std::swap(operands[0], operands[1]);
    if (chance(15))
      return void(keep(build_.call("div", {operands[0], build_.add(build_.call("abs", {operands[1]}), 0.5)}), false));
    if (chance(10)) return void(keep(build_.fma(a.value, partner(a.value), partner(a.value)), false));
    const bool choice = chance(30);
    keep(build_.call(choice ? one_of({"max", "min"}) : one_of({"add", "sub", "mul"}), operands), choice && a.exact && b.exact);
  }

  Ints permutation(std::size_t rank) {
    Ints perm;
    for (std::size_t i = 0; i < rank; ++i) perm.push_back(static_cast<std::int64_t>(i));
    if (chance(30) && rank >= 2)
      std::swap(perm[rank - 1], perm[rank - 2]);
    else
      std::shuffle(perm.begin(), perm.end(), random_);
    return perm;
  }

  void movement() {
    const Entry x = pick([](const Entry&) { return true; });
    Shape shape = x.value->type.shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    switch (between(0, 4)) {
      case 0:
        return void(keep(build_.transpose(x.value, permutation(shape.size())), x.exact));
      case 1: {  // an axis of size 1 comes or goes
        const auto at = shape.begin() + between(0, rank);
        if (at != shape.end() && *at == Expr(1))
          shape.erase(at);
        else
          shape.insert(at, Expr(1));
        return void(keep(build_.reshape(x.value, shape), x.exact));
      }
      case 2: {  // two axes become one, or one becomes two
        if (rank == 0) return;
        const auto at = static_cast<std::size_t>(between(0, rank - 1));
        if (shape[at].is_constant() && shape[at].value() % 2 == 0 && chance(60)) {
          shape[at] = Expr(shape[at].value() / 2);
          shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), Expr(2));
        } else if (at + 1 < shape.size()) {
          shape[at] *= shape[at + 1];
          shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        }
        return void(keep(build_.reshape(x.value, shape), x.exact));
      }
      case 3: {
        for (Expr& dim : shape) {
          if (dim == Expr(1) && chance(70)) dim = some_dim();
        }
        if (chance(30) && rank < 4) shape.insert(shape.begin(), some_dim());
        return void(keep(build_.expand(x.value, shape), x.exact));
      }
      default: {
        if (x.value->type.dtype != DType::f32) return;
        std::vector<Expr> before, after;
        for (std::int64_t i = 0; i < rank; ++i) {
          before.emplace_back(chance(30) ? between(0, 2) : 0);
          after.emplace_back(chance(30) ? between(0, 2) : 0);
        }
        return void(keep(build_.pad(x.value, before, after, one_of({0.0, 0.0, 1.0}), one_of({"constant", "edge"})), x.exact));
      }
    }
  }

  void slicing() {
    const Entry x = pick([](const Entry& e) { return e.value->type.rank() > 0; });
    const Shape& shape = x.value->type.shape;
    std::vector<Expr> starts(shape.size(), Expr(0)), sizes = shape;
    Ints steps(shape.size(), 1);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (!chance(60)) continue;
      if (!shape[i].is_constant()) {
        if (chance(50)) continue;
        if (chance(50)) starts[i] = shape[i] - 1;
        sizes[i] = Expr(1);
        continue;
      }
      const std::int64_t size = shape[i].value();
      if (size < 1) continue;
      const std::int64_t start = between(0, size - 1), step = one_of<std::int64_t>({1, 1, 1, 2, -1, -2});
      const std::int64_t most = step > 0 ? (size - 1 - start) / step + 1 : start / -step + 1;
      starts[i] = Expr(start);
      sizes[i] = Expr(between(1, most));
      steps[i] = step;
    }
    keep(build_.slice(x.value, starts, sizes, steps), x.exact);
  }

  void joining() {
    const Entry x = pick([](const Entry& e) { return e.value->type.rank() > 0; });
    const std::int64_t axis = between(0, static_cast<std::int64_t>(x.value->type.rank()) - 1);
    const auto at = static_cast<std::size_t>(axis);
    std::vector<Value*> pieces{x.value};
    bool exact = x.exact;
    if (chance(30) && x.value->type.shape[at].is_constant() && x.value->type.shape[at].value() >= 2) {
      // Split and joined again, in order or not.
      const std::int64_t size = x.value->type.shape[at].value(), cut = between(1, size - 1);
      pieces = {build_.slice_axis(x.value, axis, 0, Expr(cut)), build_.slice_axis(x.value, axis, Expr(cut), Expr(size - cut))};
      if (chance(30)) std::swap(pieces[0], pieces[1]);
    }
    for (const Entry& e : values_) {
      Shape other = e.value->type.shape;
      if (e.value->type.dtype != x.value->type.dtype || other.size() != x.value->type.rank()) continue;
      other[at] = x.value->type.shape[at];
      if (!(other == x.value->type.shape) || !chance(70) || pieces.size() > 4) continue;
      pieces.push_back(e.value);
      exact = exact && e.exact;
    }
    Value* joined = keep(build_.concat(pieces, axis), exact);
    if (chance(40) && pieces.size() > 1) {
      pieces.push_back(build_.concat({x.value}, axis));
      keep(build_.concat(pieces, axis), exact);
    }
    if (chance(40)) keep(build_.slice_axis(joined, axis, 0, joined->type.shape[at]), exact);
  }

  Ints some_axes(std::size_t rank) {
    Ints axes;
    for (std::size_t i = 0; i < rank; ++i) {
      if (chance(50)) axes.push_back(static_cast<std::int64_t>(i));
    }
    if (axes.empty()) axes.push_back(static_cast<std::int64_t>(rank) - 1);
    return axes;
  }

  void reduction() {
    Entry x = pick([](const Entry& e) { return e.value->type.dtype == DType::f32 && e.value->type.rank() > 0; });
    const bool keepdims = chance(50);
    const char* op = one_of({"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"});
    Value* reduced = keep(build_.reduce(op, x.value, some_axes(x.value->type.rank()), keepdims), false);
    if (chance(40) && reduced->type.rank() > 0)
      keep(build_.reduce(op, reduced, some_axes(reduced->type.rank()), chance(50)), false);
  }

  void row() {
    const Entry x = pick([](const Entry& e) { return e.value->type.dtype == DType::f32 && e.value->type.rank() > 0; });
    const auto last = static_cast<std::int64_t>(x.value->type.rank()) - 1;
    if (chance(60)) return void(keep(build_.softmax(x.value, between(0, last)), false));
    const Expr& dim = x.value->type.shape.back();
    if (!dim.is_constant()) return;
    Value* scale = build_.constant(numbers(DType::f32, {dim.value()}));
    keep(build_.layer_norm(x.value, scale, chance(50) ? build_.constant(numbers(DType::f32, {dim.value()})) : nullptr, last,
                           1e-2),
         false);
  }

  void matrix_product() {
    const Entry a = pick([](const Entry& e) { return e.value->type.dtype == DType::f32 && e.value->type.rank() >= 2; });
    if (chance(40)) {
      const Entry b = second(a);
      Value* other = b.value->type.rank() >= 2 ? b.value : a.value;
      if (chance(50))
        return void(keep(build_.matmul(a.value, build_.transpose(other, permutation(other->type.rank()))), false));
      return void(keep(build_.matmul(a.value, other, chance(50), chance(50)), false));
    }
    const Expr& depth = a.value->type.shape.back();
    if (!depth.is_constant()) return;
    const std::int64_t columns = between(1, options_.largest_dim);
    const bool flipped = chance(50);
    Value* w = build_.constant(numbers(DType::f32, flipped ? Ints{columns, depth.value()} : Ints{depth.value(), columns}));
    Value* product = flipped ? build_.matmul(a.value, chance(50) ? build_.transpose(w, {1, 0}) : w) : build_.matmul(a.value, w);
    if (chance(60)) product = build_.call(one_of({"mul", "add"}), {product, build_.constant(numbers(DType::f32, {columns}))});
    keep(product, false);
  }

  void convolution() {
    Entry x = pick([](const Entry& e) { return e.value->type.dtype == DType::f32 && e.value->type.rank() == 4; });
    const Shape& shape = x.value->type.shape;
    if (!shape[1].is_constant()) return;
    const std::int64_t kernel = between(1, 3);
    ConvOptions options;
    options.pads = {between(0, 1), between(0, 1), between(0, 1), between(0, 1)};
    options.strides = {between(1, 2), between(1, 2)};
    if (chance(20)) {
      PoolOptions pool;
      pool.kernel = {kernel, kernel};
      pool.strides = options.strides;
      if (kernel > 1) pool.pads = options.pads;
      return void(keep(chance(50) ? build_.max_pool(x.value, pool) : build_.avg_pool(x.value, pool), false));
    }
    const std::int64_t in = shape[1].value();
    options.group = chance(25) ? in : 1;
    const std::int64_t out = options.group * between(1, 3);
    Value* w = build_.constant(numbers(DType::f32, {out, in / options.group, kernel, kernel}));
    Value* from = chance(20) ? build_.pad(x.value, {0, 0, 1, 0}, {0, 0, 0, 1}) : x.value;
    Value* y = build_.conv(from, w, chance(50) ? build_.constant(numbers(DType::f32, {out})) : nullptr, options);
    if (chance(20)) keep(y, false);
    const auto channels = [&] { return build_.constant(numbers(DType::f32, {out, 1, 1})); };
    if (chance(50)) y = build_.fma(y, channels(), channels());
    if (chance(30)) y = build_.mul(y, channels());
    if (chance(30)) y = build_.add(y, channels());
    keep(y, false);
  }

  void integers() {
    switch (between(0, 6)) {
      case 0: {
        const Shape shape = some_shape(between(1, 3));
        return void(keep(build_.iota(shape, between(0, static_cast<std::int64_t>(shape.size()) - 1),
                                     chance(70) ? DType::i64 : DType::i32, between(-1, 2), between(-1, 2)),
                         true));
      }
      case 1: {
        const Entry a = pick([](const Entry& e) { return is_integer(e.value->type.dtype); });
        const Entry b = second(a);
        return void(
            keep(build_.call(one_of({"add", "sub", "mul", "max", "min", "less", "less_equal", "equal", "greater_equal"}),
                             {a.value, b.value}),
                 true));
      }
      case 2: {
        const Entry a = pick([](const Entry& e) { return e.exact; });
        if (a.value->type.dtype == DType::boolean) {
          const Entry b = second(a);
          return void(
              keep(chance(30) ? build_.call("not", {a.value}) : build_.call(one_of({"and", "or", "xor"}), {a.value, b.value}),
                   true));
        }
        return void(keep(build_.call(one_of({"less", "greater_equal"}), {a.value, partner(a.value)}), true));
      }
      case 3: {
        const Entry c = pick([](const Entry& e) { return e.value->type.dtype == DType::boolean; });
        const Entry a = pick_float();
        return void(keep(build_.where(c.value, a.value, chance(50) ? partner(a.value) : a.value), a.exact));
      }
      case 4: {
        const Entry a = pick([](const Entry& e) { return e.exact; });
        const DType dtype = one_of({DType::f32, DType::i64, DType::i32, DType::boolean});
        return void(keep(build_.cast(a.value, dtype), true));
      }
      case 5: {
        const Entry a = pick([](const Entry& e) { return is_integer(e.value->type.dtype) && e.value->type.rank() > 0; });
        const std::int64_t axis = between(0, static_cast<std::int64_t>(a.value->type.rank()) - 1);
        return void(keep(chance(50) ? build_.cumsum(a.value, axis, chance(50), chance(50))
                                    : build_.reduce(one_of({"reduce_sum", "reduce_max"}), a.value, {axis}, chance(50)),
                         true));
      }
      default:
        return gathering();
    }
  }

  void gathering() {
    const Entry data = pick([](const Entry& e) { return e.value->type.rank() > 0; });
    const std::int64_t axis = between(0, static_cast<std::int64_t>(data.value->type.rank()) - 1);
    const Expr dim = data.value->type.shape[static_cast<std::size_t>(axis)];
    Value* indices = nullptr;
    if (chance(40)) {
      indices = build_.iota({dim}, 0, DType::i64);
    } else {
      const std::int64_t size = dim.is_constant() ? dim.value() : 1;
      if (size < 1) return;
      Ints positions;
      const bool consecutive = chance(50);
      const std::int64_t first = between(0, size - 1), count = between(1, size - first);
      for (std::int64_t i = 0; i < count; ++i) positions.push_back(consecutive ? first + i : between(-size, size - 1));
      indices = chance(30) ? build_.constant(HostTensor::from_ints(std::span(positions).first(1)).reshaped({}))
                           : build_.ints(positions);
    }
    if (chance(30) && indices->type.rank() > 0) {
      // All axes, the last one of the data's axes first: gather_nd over [n, 1] positions.
      indices = build_.reshape(indices, {indices->type.shape[0], Expr(1)});
      if (axis == 0) return void(keep(build_.gather_nd(data.value, indices), data.exact));
    }
    keep(build_.gather(data.value, indices, axis), data.exact);
  }

  // h = tanh(h / 2 + x[t]) over the first axis of x.
  void loop() {
    const Entry x = pick([](const Entry& e) { return e.value->type.dtype == DType::f32 && e.value->type.rank() == 2; });
    const Shape shape = x.value->type.shape;
    const std::string counter = "t" + std::to_string(loops_++);
    auto body = std::make_unique<Graph>();
    body->name = "step";
    Value* h = body->add_input("h", {DType::f32, {Expr(1), shape[1]}});
    Value* all = body->add_input("x", x.value->type);
    Builder inner(*body, "step");
    const Expr t = Expr::axis(counter, shape[0]);
    Value* row = inner.slice_axis(all, 0, t, 1);
    Value* next = inner.tanh(inner.add(inner.mul(h, 0.5), inner.reshape(inner.reshape(row, {shape[1]}), {Expr(1), shape[1]})));
    body->add_output("h", next);
    body->add_output("result", inner.reshape(next, {shape[1]}));
    Value* start = build_.expand(build_.scalar(DType::f32, 0), {Expr(1), shape[1]});
    const Node* node = build_.loop(shape[0], counter, {start}, {x.value}, std::move(body));
    keep(node->output(0), false);
    keep(node->output(1), false);
  }

  std::mt19937_64 random_;
  RandomGraphOptions options_;
  std::unique_ptr<Graph> graph_;
  Builder build_;
  std::vector<Entry> values_;
  int loops_ = 0;
};

}  // namespace

std::unique_ptr<Graph> random_graph(std::uint64_t seed, const RandomGraphOptions& options) {
  return Generator(seed, options).run();
}

}  // namespace oclc
