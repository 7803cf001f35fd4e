#include "compiler/training/loss_scale.h"

namespace oclc {
namespace {

constexpr std::string_view kScale = "loss_scale", kGoodSteps = "loss_scale.good_steps",
                           kInterval = "loss_scale.growth_interval";
constexpr double kFirstScale = 65536, kFirstInterval = 2000, kGrowth = 2, kBackoff = 0.5;
// The scale grows no further.
constexpr double kLargest = 0x1p120;
// Row length of the first of two searches through all gradients.
constexpr std::int64_t kRow = 4096;

}  // namespace

const std::vector<MixedRow>& mixed_types() {
  static const std::vector<MixedRow> kRows = {{"f16", {"scale", "growth_interval"}, DType::f16, true},
                                              {"bf16", {}, DType::bf16, false}};
  return kRows;
}

LossScale::LossScale(Graph& graph, const NamedNumbers& numbers) {
  std::vector<Value*> inputs;
  for (const StateVariable& state : states(numbers)) inputs.push_back(graph.add_input(state.name, state.type));
  scale_ = inputs[0];
  good_steps_ = inputs[1];
  interval_ = inputs[2];
}

Value* LossScale::scaled(Builder& b, Value* loss) const { return b.mul(loss, scale_); }

Value* LossScale::unscaled(Builder& b, Value* gradients) const {
  return b.mul(gradients, b.div(b.scalar(DType::f32, 1), scale_));
}

Value* LossScale::found_bad(Builder& b, Value* gradients) {
  Value* bad = b.cast(b.call("or", {b.unary("is_nan", gradients), b.unary("is_inf", gradients)}), DType::f32);
  const std::int64_t size = gradients->type.shape[0].value(), rows = (size + kRow - 1) / kRow;
  bad = b.reshape(b.pad(bad, {Expr(0)}, {Expr(rows * kRow - size)}), {Expr(rows), Expr(kRow)});
  bad = b.reduce("reduce_max", b.reduce("reduce_max", bad, {1}, false), {0}, false);
  return b.call("greater", {bad, b.scalar(DType::f32, 0)});
}

void LossScale::update(Graph& graph, Builder& b, Value* bad) const {
  const auto number = [&](double x) { return b.scalar(DType::f32, x); };
  Value* steps = b.add(good_steps_, 1.0);
  Value* grows = b.call("greater_equal", {steps, interval_});
  Value* larger = b.where(grows, b.min(b.mul(scale_, kGrowth), number(kLargest)), scale_);
  graph.add_output(std::string(kScale), b.where(bad, b.mul(scale_, kBackoff), larger));
  graph.add_output(std::string(kGoodSteps), b.where(b.call("or", {bad, grows}), number(0), steps));
}

std::vector<StateVariable> LossScale::states(const NamedNumbers& numbers) {
  const auto state = [](std::string_view name, double value) {
    const HostTensor initial = HostTensor::scalar(DType::f32, value);
    return StateVariable{std::string(name), initial.type(), initial, {}};
  };
  return {state(kScale, numbers.get("scale", kFirstScale)), state(kGoodSteps, 0),
          state(kInterval, numbers.get("growth_interval", kFirstInterval))};
}

}  // namespace oclc
