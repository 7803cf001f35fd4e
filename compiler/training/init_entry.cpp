#include "compiler/training/init_entry.h"

#include <cmath>

#include "compiler/ops/builder.h"
#include "compiler/ops/random.h"

namespace oclc {
namespace {

// Dropout counts its steps up from 0.
constexpr std::uint32_t kInitStep = 0xFFFFFFFF;

struct Spread {
  double mean = 0, deviation = 0;
};

Spread spread_of(const HostTensor& values, std::int64_t begin, std::int64_t count) {
  Spread s;
  bool equal = true;
  for (std::int64_t i = 0; i < count; ++i) {
    s.mean += values.at(begin + i) / static_cast<double>(count);
    equal = equal && values.at(begin + i) == values.at(begin);
  }
  if (equal) return {count == 0 ? 0 : values.at(begin), 0};
  for (std::int64_t i = 0; i < count; ++i)
    s.deviation += std::pow(values.at(begin + i) - s.mean, 2) / static_cast<double>(count);
  s.deviation = std::sqrt(s.deviation);
  return s;
}

Value* drawn_parameters(Builder& b, const StateVariable& state, Value* seed) {
  const auto word = [&](std::uint32_t value) { return b.exprs({Expr(static_cast<std::int64_t>(value))}, {}, DType::u32); };
  std::vector<Value*> pieces;
  std::uint32_t number = 0;
  for (const StatePart& part : state.parts) {
    std::int64_t count = 1;
    for (const std::int64_t d : part.shape) count *= d;
    const Spread spread = spread_of(state.initial, part.offset, count);
    b.set_source(part.name);
    const std::uint32_t offset = number++ * kStreamStep;
    if (spread.deviation == 0) {
      pieces.push_back(b.expand(b.scalar(DType::f32, spread.mean), {Expr(count)}));
      continue;
    }
    Value* bits = b.call("random_bits", {b.iota({Expr(count)}, 0, DType::u32), word(kInitStep), b.add(seed, word(offset))});
    Value* drawn = b.cast(b.div(bits, word(256)), DType::f32);
    const double half = std::sqrt(3) * spread.deviation;
    pieces.push_back(b.fma(drawn, b.scalar(DType::f32, 2 * half * 0x1p-24), b.scalar(DType::f32, spread.mean - half)));
  }
  b.set_source("init");
  return pieces.size() == 1 ? pieces[0] : b.concat(pieces, 0);
}

}  // namespace

std::unique_ptr<Graph> init_entry(std::span<const StateVariable> states) {
  auto graph = std::make_unique<Graph>();
  graph->name = "init";
  Builder b(*graph, "init");
  Value* seed = graph->add_input(std::string(kRandomSeed), {DType::u32, {}});
  Value* parameters = nullptr;
  for (const StateVariable& state : states) {
    if (state.name == "parameters" || state.name == "ema") {
      if (!parameters) parameters = drawn_parameters(b, state, seed);
      graph->add_output(state.name, parameters);
    } else if (state.name == "statistics" || state.name.starts_with("optimizer.") || state.name.starts_with("gradients") ||
               state.name == "random.step" || state.name == "loss_scale" || state.name == "loss_scale.good_steps") {
      Value* initial =
          state.initial.data() ? b.constant(state.initial) : b.expand(b.scalar(state.type.dtype, 0), state.type.shape);
      graph->add_output(state.name, initial);
    }
  }
  return graph;
}

}  // namespace oclc
