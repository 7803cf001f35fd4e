// Which operators of ATen are read, and how.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "frontends/pt2/context.h"

namespace oclc::pt2 {

// Null if there is none.
const OpRow* find_row(std::string_view target);
// The row of the operator of which `target` is the form that writes into its operand: of "aten.add.Tensor" for
// "aten.add_.Tensor". Null if there is none.
const OpRow* find_row_in_place(std::string_view target);
// All names, sorted.
std::vector<std::string_view> operators();

// An operator by another name.
struct Alias {
  std::string_view name, as;
};
std::span<const Alias> aliases();

// The families, one file each.
std::span<const OpRow> pointwise_rows();
std::span<const OpRow> activation_rows();
std::span<const OpRow> reduction_rows();
std::span<const OpRow> view_rows();
std::span<const OpRow> strided_rows();
std::span<const OpRow> creation_rows();
std::span<const OpRow> linear_rows();
std::span<const OpRow> convolution_rows();
std::span<const OpRow> pooling_rows();
std::span<const OpRow> normalization_rows();
std::span<const OpRow> indexing_rows();
std::span<const OpRow> sampling_rows();
std::span<const OpRow> random_rows();
std::span<const OpRow> loss_rows();
std::span<const OpRow> order_rows();
std::span<const OpRow> special_rows();
std::span<const OpRow> padding_rows();
std::span<const OpRow> bag_rows();
std::span<const OpRow> bit_rows();
std::span<const OpRow> function_rows();
std::span<const OpRow> rearrangement_rows();
std::span<const OpRow> product_rows();
std::span<const OpRow> recurrent_rows();

}  // namespace oclc::pt2
