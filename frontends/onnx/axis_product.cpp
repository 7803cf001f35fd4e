#include "frontends/onnx/axis_product.h"

namespace oclc::onnx {

Value* axis_product(Builder& b, Value* x, std::size_t axis, HostTensor shares) {
  std::vector<std::int64_t> perm;
  for (std::size_t i = 0; i < x->type.rank(); ++i)
    if (i != axis) perm.push_back(static_cast<std::int64_t>(i));
  perm.push_back(static_cast<std::int64_t>(axis));
  Value* last = b.transpose(x, perm);
  Value* y = b.matmul(last, b.cast(b.constant(std::move(shares)), x->type.dtype), false, true);
  std::vector<std::int64_t> back(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) back[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return b.transpose(y, back);
}

}  // namespace oclc::onnx
