// What the readers of classical models share.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/onnx/context.h"

namespace oclc::onnx {

Value* feature_numbers(OpContext& c, const std::vector<double>& values, DType dtype = DType::f32);
// Input 0 as rows of features, floats.
Value* rows_of(OpContext& c);
std::string post_transform(OpContext& c);
// y[N, targets] as the attribute post_transform says.
Value* transformed(OpContext& c, Value* y, std::string_view how);

// values[k] where keys[k] is x; nowhere: `otherwise`, [1].
Value* looked_up(OpContext& c, Value* x, Value* keys, Value* values, Value* otherwise);

// Of the classes: integers, or texts.
struct Labels {
  Ints whole;
  std::vector<std::string> texts;
  std::int64_t count() const { return static_cast<std::int64_t>(std::max(whole.size(), texts.size())); }
};

// Those that the attribute of that name gives, or classlabels_strings.
Labels labels_of(OpContext& c, std::string_view whole);
// The labels of the classes at `at`[N].
Value* labels_at(OpContext& c, Value* at, const Ints& whole, const std::vector<std::string>& texts);

}  // namespace oclc::onnx
