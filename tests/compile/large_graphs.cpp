#include "tests/compile/large_graphs.h"

#include <fmt/format.h>

#include "compiler/ops/builder.h"

namespace oclc::test {
namespace {

constexpr int kLargest = 1'000'000;

const Expr kBatch = Expr::symbol("N");

class Net {
 public:
  explicit Net(Shape shape) : b(*graph_) { x = graph_->add_input("x", {DType::f32, std::move(shape)}); }
  bool below(int nodes) const { return static_cast<int>(graph_->size()) < nodes; }
  std::shared_ptr<Module> done(Value* y, std::vector<Expr> symbols = {}) {
    graph_->add_output("y", y);
    auto module = std::make_shared<Module>();
    module->name = "large";
    module->symbols = std::move(symbols);
    module->entries.push_back(std::move(graph_));
    return module;
  }

 private:
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();

 public:
  Builder b;
  Value* x = nullptr;
};

std::shared_ptr<Module> chain(int nodes) {
  Net n({Expr(64)});
  Value* y = n.x;
  while (n.below(nodes)) y = n.b.unary(n.below(nodes / 2) ? "sin" : "tanh", y);
  return n.done(y);
}

// Both operands of each node are one value: 2^n paths.
std::shared_ptr<Module> doubled(int nodes) {
  Net n({Expr(64)});
  Value* y = n.x;
  while (n.below(nodes)) y = n.b.mul(n.b.unary("sin", y), y);
  return n.done(y);
}

// Many values of one, summed up one after another.
std::shared_ptr<Module> fan(int nodes) {
  Net n({Expr(64)});
  std::vector<Value*> branches;
  while (n.below(nodes * 2 / 3)) branches.push_back(n.b.unary("sin", n.b.mul(n.x, static_cast<double>(branches.size()) + 0.5)));
  Value* y = branches[0];
  for (std::size_t i = 1; i < branches.size(); ++i) y = n.b.add(y, branches[i]);
  return n.done(y);
}

// The same, summed up in pairs.
std::shared_ptr<Module> tree(int nodes) {
  Net n({Expr(64)});
  std::vector<Value*> level;
  while (n.below(nodes / 2)) level.push_back(n.b.unary("sin", n.b.add(n.x, static_cast<double>(level.size()))));
  while (level.size() > 1) {
    std::vector<Value*> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(n.b.mul(level[i], level[i + 1]));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = std::move(next);
  }
  return n.done(level[0]);
}

std::shared_ptr<Module> means(int nodes) {
  Net n({Expr(16), Expr(64)});
  Value* y = n.x;
  while (n.below(nodes)) y = n.b.sub(y, n.b.reduce("reduce_mean", y, {1}, true));
  return n.done(y);
}

Value* roll(Builder& b, Value* x, std::int64_t axis, std::int64_t by) {
  const Expr size = x->type.shape[static_cast<std::size_t>(axis)];
  return b.concat({b.slice_axis(x, axis, Expr(by), size - Expr(by)), b.slice_axis(x, axis, Expr(0), Expr(by))}, axis);
}

std::shared_ptr<Module> rolls(int nodes) {
  Net n({Expr(1), Expr(56), Expr(56), Expr(8)});
  Value* y = n.x;
  while (n.below(nodes)) y = roll(n.b, roll(n.b, n.b.relu(y), 1, 3), 2, 3);
  return n.done(y);
}

// Windows of an image, mixed by a product, and back: a transformer of shifted windows without its attention.
std::shared_ptr<Module> shifted_windows(int nodes) {
  const std::int64_t side = 14, window = 7, channels = 16;
  Net n({kBatch, Expr(side), Expr(side), Expr(channels)});
  Value* weight = n.b.floats(std::vector<float>(channels * channels, 0.05F), {channels, channels});
  Value* y = n.x;
  for (int block = 0; n.below(nodes); ++block) {
    Value* z = block % 2 == 0 ? y : roll(n.b, roll(n.b, y, 1, 3), 2, 3);
    z = n.b.reshape(z, {kBatch, Expr(side / window), Expr(window), Expr(side / window), Expr(window), Expr(channels)});
    z = n.b.reshape(n.b.transpose(z, {0, 1, 3, 2, 4, 5}), {kBatch * Expr(4), Expr(window * window), Expr(channels)});
    z = n.b.relu(n.b.matmul(z, weight));
    z = n.b.reshape(z, {kBatch, Expr(side / window), Expr(side / window), Expr(window), Expr(window), Expr(channels)});
    z = n.b.reshape(n.b.transpose(z, {0, 1, 3, 2, 4, 5}), {kBatch, Expr(side), Expr(side), Expr(channels)});
    y = n.b.add(y, block % 2 == 0 ? z : roll(n.b, roll(n.b, z, 1, side - 3), 2, side - 3));
  }
  return n.done(y, {kBatch});
}

// Channel shuffles without work between them, whose index expressions do not become simple: the groups change.
std::shared_ptr<Module> shuffles(int nodes) {
  Net n({kBatch, Expr(60), Expr(6)});
  Value* y = n.x;
  for (int i = 0; n.below(nodes); ++i) {
    const std::int64_t groups = i % 3 == 0 ? 4 : i % 3 == 1 ? 5 : 6;
    y = n.b.transpose(n.b.reshape(y, {Expr(groups), Expr(60 / groups), kBatch * Expr(6)}), {1, 0, 2});
    y = n.b.reshape(y, {kBatch, Expr(60), Expr(6)});
  }
  return n.done(y, {kBatch});
}

std::shared_ptr<Module> pads(int nodes) {
  Net n({Expr(32), Expr(32)});
  Value* y = n.x;
  while (n.below(nodes)) {
    y = n.b.pad(y, {Expr(2), Expr(1)}, {Expr(1), Expr(2)}, 0, "reflect");
    y = n.b.slice_axis(n.b.slice_axis(y, 0, Expr(1), Expr(32)), 1, Expr(2), Expr(32));
  }
  return n.done(y);
}

// Each node is wanted at two places by the one behind it.
std::shared_ptr<Module> self_concats(int nodes) {
  Net n({Expr(64)});
  Value* y = n.x;
  while (n.below(nodes))
    y = n.b.slice(n.b.concat({y, y}, 0), {Expr(1)}, {Expr(64)}, {2}),
    y = n.b.slice(n.b.concat({y, n.b.relu(y)}, 0), {Expr(3)}, {Expr(64)}, {1});
  return n.done(y);
}

std::shared_ptr<Module> gathers(int nodes) {
  Net n({Expr(64)});
  Value* at = n.b.graph().add_input("at", {DType::i64, {Expr(40)}});
  Value* y = n.x;
  while (n.below(nodes)) y = n.b.slice_axis(n.b.concat({n.b.gather(y, at), y}, 0), 0, Expr(5), Expr(64));
  return n.done(y);
}

std::shared_ptr<Module> symbolic_concats(int nodes) {
  Net n({kBatch});
  Value* y = n.x;
  for (int i = 0; n.below(nodes); ++i)
    y = n.b.slice_axis(n.b.concat({y, n.b.unary("sin", n.x)}, 0), 0, Expr(i % 7), y->type.shape[0] + Expr(1));
  return n.done(y, {kBatch});
}

std::shared_ptr<Module> residual_tower(int nodes) {
  Net n({Expr(4), Expr(32)});
  Value* weight = n.b.floats(std::vector<float>(32 * 32, 0.05F), {32, 32});
  Value* y = n.x;
  while (n.below(nodes)) y = n.b.add(y, n.b.mul(n.b.relu(n.b.matmul(y, weight)), 0.5));
  return n.done(y);
}

std::shared_ptr<Module> wide_concat(int nodes) {
  Net n({Expr(2), Expr(3)});
  std::vector<Value*> pieces;
  while (n.below(nodes)) pieces.push_back(n.b.slice_axis(n.x, 1, Expr(static_cast<std::int64_t>(pieces.size()) % 3), Expr(1)));
  return n.done(n.b.concat(pieces, 1));
}

std::shared_ptr<Module> wide_sum_of_inputs(int nodes) {
  Net n({Expr(8)});
  Value* y = n.x;
  for (int i = 0; n.below(nodes); ++i) y = n.b.add(y, n.b.graph().add_input(fmt::format("x{}", i), {DType::f32, {Expr(8)}}));
  return n.done(y);
}

Value* loop_of(Builder& b, Value* x, int depth, int& counter) {
  auto body = std::make_unique<Graph>();
  Builder inner(*body);
  Value* carried = body->add_input("c", x->type);
  Value* y = inner.mul(inner.unary("sin", carried), 0.5);
  if (depth > 1) y = loop_of(inner, y, depth - 1, counter);
  body->add_output("o", inner.add(y, carried));
  return b.loop(Expr(3), fmt::format("t{}", counter++), {x}, {}, std::move(body))->output();
}

// Loops five deep, one after another.
std::shared_ptr<Module> nested_loops(int nodes) {
  Net n({Expr(8)});
  Value* y = n.x;
  int counter = 0;
  for (int made = 0; made < nodes; made += 20) y = n.b.relu(loop_of(n.b, y, 5, counter));
  return n.done(y);
}

}  // namespace

const std::vector<GraphKind>& graph_kinds() {
  static const std::vector<GraphKind> kKinds = {{"chain", kLargest, chain},
                                                {"doubled", kLargest, doubled},
                                                {"fan", kLargest, fan},
                                                {"tree", kLargest, tree},
                                                {"means", kLargest, means},
                                                {"rolls", kLargest, rolls},
                                                {"shifted_windows", kLargest, shifted_windows},
                                                {"shuffles", kLargest, shuffles},
                                                {"pads", kLargest, pads},
                                                {"self_concats", kLargest, self_concats},
                                                {"gathers", kLargest, gathers},
                                                {"symbolic_concats", 2000, symbolic_concats},
                                                {"residual_tower", kLargest, residual_tower},
                                                {"wide_concat", kLargest, wide_concat},
                                                {"wide_sum_of_inputs", 10000, wide_sum_of_inputs},
                                                {"nested_loops", kLargest, nested_loops}};
  return kKinds;
}

}  // namespace oclc::test
