// Dropout.
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

// In a program that is trained the entry point decides; else the operator as it stands.
Outputs dropout(AtenContext& c) {
  Value* x = c.tensor("input");
  const double p = c.real("p");
  if (c.training()) return {c.b.call("dropout", {x}, {{"ratio", p}})};
  if (!c.flag("train", true) || p == 0) return {x};
  c.refuse("dropout in eval mode, or p = 0", "dropout that draws",
           "call model.eval() before exporting, or export for training");
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
    {"aten.native_dropout.default", native_dropout},
};

}  // namespace

std::span<const OpRow> random_rows() { return kRandomRows; }

}  // namespace oclc::pt2
