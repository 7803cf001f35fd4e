// Which ONNX operators are read, and how, by opset.
#pragma once
#include <span>
#include <string_view>

#include "frontends/onnx/context.h"

namespace oclc::onnx {

// The row that holds for `op` in `opset` of its domain; null if there is none. Names of operators outside of ONNX's own domain
// begin with the domain and a dot.
const OpRow* find_row(std::string_view op, std::int64_t opset);

// All rows, sorted by name and opset.
std::vector<const OpRow*> all_rows();

// Whether the operator's reader knows what to do with tensors of strings.
bool takes_strings(std::string_view op);

// The families, one file each.
std::span<const OpRow> math_rows();
std::span<const OpRow> activation_rows();
std::span<const OpRow> reduction_rows();
std::span<const OpRow> shape_rows();
std::span<const OpRow> movement_rows();
std::span<const OpRow> indexing_rows();
std::span<const OpRow> convolution_rows();
std::span<const OpRow> normalization_rows();
std::span<const OpRow> recurrent_rows();
std::span<const OpRow> selection_rows();
std::span<const OpRow> detection_rows();
std::span<const OpRow> training_rows();
std::span<const OpRow> legacy_rows();
std::span<const OpRow> loss_rows();
std::span<const OpRow> quantization_rows();
std::span<const OpRow> resize_rows();
std::span<const OpRow> scatter_rows();
std::span<const OpRow> signal_rows();
std::span<const OpRow> linear_rows();
std::span<const OpRow> image_rows();
std::span<const OpRow> region_rows();
std::span<const OpRow> sequence_rows();
std::span<const OpRow> attention_rows();
std::span<const OpRow> ngram_rows();
std::span<const OpRow> sampling_rows();
std::span<const OpRow> string_rows();
std::span<const OpRow> state_rows();
std::span<const OpRow> fused_rows();
std::span<const OpRow> ml_rows();
std::span<const OpRow> map_rows();
std::span<const OpRow> svm_rows();
std::span<const OpRow> fused_attention_rows();
std::span<const OpRow> fused_quantized_rows();

// Where the elements of the vector `flags` are true, in order: a vector whose length is known when the plan runs.
Value* positions_of(OpContext& c, Value* flags);

// x as a float of 8 or 4 bits. What rounds to more than the largest finite number becomes that if it saturates, and else
// infinite or NaN, as the type has it; those of 4 bits always saturate.
Value* as_narrow_float(OpContext& c, Value* x, DType dtype, bool saturates);

// Positions in the file must lie inside of the tensor, element i of them along an axis of sizes[i % sizes.size()]; negative
// ones count from the end. Those that are computed are brought inside when the plan runs.
void check_positions(const OpContext& c, const Value* positions, std::span<const Expr> sizes);

}  // namespace oclc::onnx
