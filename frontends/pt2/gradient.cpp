#include "frontends/pt2/gradient.h"

#include <numeric>

#include "compiler/ops/gradients/autodiff.h"

namespace oclc::pt2 {

std::vector<Value*> gradients_of(AtenContext& c, const std::vector<Value*>& operands, Value* gradient,
                                 const std::function<Value*(const std::vector<Value*>&)>& forward) {
  // Operands of their own, so that no path leads from one through the graph before it to another.
  std::vector<Value*> own;
  for (Value* operand : operands) own.push_back(c.b.reshape(operand, operand->type.shape));
  Value* y = forward(own);
  Ints axes(y->type.rank());
  std::iota(axes.begin(), axes.end(), 0);
  Value* product = c.b.mul(y, c.b.cast(gradient, y->type.dtype));
  Value* loss = axes.empty() ? product : c.b.reduce("reduce_sum", product, axes, false);
  return add_gradients(c.b.graph(), loss, own);
}

}  // namespace oclc::pt2
