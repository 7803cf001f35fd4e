// Dropout.
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// The forms that write call it so.
Value* operand(AtenContext& c) { return c.tensor(c.has("self") ? "self" : "input"); }

// In a program that is trained the entry point decides; else the operator as it stands.
Outputs dropout(AtenContext& c) {
  Value* x = operand(c);
  const double p = c.real("p");
  if (c.training()) return {c.b.call("dropout", {x}, {{"ratio", p}})};
  if (!c.flag("train", true) || p == 0) return {x};
  c.refuse("dropout in eval mode, or p = 0", "dropout that draws",
           "call model.eval() before exporting, or export for training");
}

// Of whole channels, or that keeps mean and variance.
Outputs other_dropout(AtenContext& c) {
  if (!c.flag("train", true) || c.real("p") == 0) return {operand(c)};
  c.refuse("dropout of elements where a program draws", c.node().target,
           "call model.eval() before exporting, or use nn.Dropout");
}

Outputs native_dropout(AtenContext& c) {
  Value* x = c.tensor("input");
  const double p = c.real("p");
  if (c.has("train") && !c.flag("train"))
    return {x, c.b.expand(c.b.cast(c.b.scalar(DType::u8, 1), DType::boolean), x->type.shape)};
  if (p == 0) return {x, c.b.expand(c.b.cast(c.b.scalar(DType::u8, 1), DType::boolean), x->type.shape)};
  c.refuse("dropout that draws nothing", "p > 0 in training", "use TrainStep, whose plans draw on the device, or p = 0");
}

constexpr OpRow kRandomRows[] = {
    {"aten.dropout.default", dropout},
    {"aten.alpha_dropout.default", other_dropout},
    {"aten.feature_dropout.default", other_dropout},
    {"aten.feature_alpha_dropout.default", other_dropout},
    {"aten.native_dropout.default", native_dropout},
};

}  // namespace

std::span<const OpRow> random_rows() { return kRandomRows; }

}  // namespace oclc::pt2
