#include "frontends/op/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/ops/shape_rules.h"

namespace oclc::custom {
namespace {

std::size_t place_of(const Letters& letters, char letter) { return letters.find(letter); }

// The size of each letter, where it is not 1.
std::map<char, Expr> sizes_of(const Lettered& a, const Lettered& b) {
  std::map<char, Expr> sizes;
  for (const Lettered* x : {&a, &b}) {
    for (std::size_t i = 0; i < x->letters.size(); ++i) {
      const Expr& size = x->value->type.shape[i];
      const auto [at, fresh] = sizes.emplace(x->letters[i], size);
      if (!fresh && at->second == Expr(1)) at->second = size;
      if (!(at->second == size) && !(size == Expr(1)))
        reject(fmt::format("one size of axis '{}'", x->letters[i]), fmt::format("{} and {}", at->second.text(), size.text()));
    }
  }
  return sizes;
}

}  // namespace

Lettered summed(Builder& b, Lettered x, const Letters& needed) {
  Ints axes;
  Letters left;
  for (std::size_t i = 0; i < x.letters.size(); ++i) {
    if (holds(needed, x.letters[i])) {
      left += x.letters[i];
    } else {
      axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (axes.empty()) return x;
  return {b.reduce("reduce_sum", x.value, axes, false), left};
}

Value* arranged(Builder& b, const Lettered& x, const Letters& letters) {
  Ints perm;
  Shape shape;
  for (const char letter : letters) {
    if (!holds(x.letters, letter)) {
      shape.emplace_back(1);
      continue;
    }
    perm.push_back(static_cast<std::int64_t>(place_of(x.letters, letter)));
    shape.push_back(x.value->type.shape[place_of(x.letters, letter)]);
  }
  const bool sorted = std::is_sorted(perm.begin(), perm.end());
  return b.reshape(sorted ? x.value : b.transpose(x.value, perm), std::move(shape));
}

Lettered product_of(Builder& builder, const Lettered& a, const Lettered& b, const Letters& needed) {
  const std::map<char, Expr> sizes = sizes_of(a, b);
  Letters batch, rows, columns, inner;
  bool repeats = false;
  for (const char letter : a.letters) {
    if (!holds(b.letters, letter)) {
      rows += letter;
      continue;
    }
    (holds(needed, letter) ? batch : inner) += letter;
    repeats =
        repeats || !(a.value->type.shape[place_of(a.letters, letter)] == b.value->type.shape[place_of(b.letters, letter)]);
  }
  for (const char letter : b.letters) {
    if (!holds(a.letters, letter)) columns += letter;
  }
  if (inner.empty() || repeats) {
    const Letters all = batch + rows + columns + inner;
    return summed(builder, {builder.mul(arranged(builder, a, all), arranged(builder, b, all)), all}, needed);
  }
  const auto size_of = [&](const Letters& letters) {
    Expr size = 1;
    for (const char letter : letters) size *= sizes.at(letter);
    return size;
  };
  Shape shape;
  for (const char letter : batch + rows + columns) shape.push_back(sizes.at(letter));
  Value* left = builder.reshape(arranged(builder, a, batch + rows + inner), {size_of(batch), size_of(rows), size_of(inner)});
  Value* right =
      builder.reshape(arranged(builder, b, batch + inner + columns), {size_of(batch), size_of(inner), size_of(columns)});
  return {builder.reshape(builder.matmul(left, right), std::move(shape)), batch + rows + columns};
}

}  // namespace oclc::custom
