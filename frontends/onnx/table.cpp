#include "frontends/onnx/table.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "frontends/onnx/import.h"

namespace oclc::onnx {

std::span<const OpRow> random_rows();

namespace {

using Family = std::span<const OpRow> (*)();

constexpr Family kFamilies[] = {math_rows,
                                activation_rows,
                                reduction_rows,
                                shape_rows,
                                movement_rows,
                                indexing_rows,
                                convolution_rows,
                                normalization_rows,
                                recurrent_rows,
                                training_rows,
                                legacy_rows,
                                random_rows,
                                loss_rows,
                                quantization_rows,
                                resize_rows,
                                scatter_rows,
                                signal_rows,
                                linear_rows,
                                image_rows,
                                region_rows,
                                selection_rows,
                                sequence_rows,
                                attention_rows,
                                ngram_rows,
                                sampling_rows,
                                detection_rows,
                                string_rows,
                                state_rows,
                                fused_rows,
                                fused_attention_rows,
                                fused_quantized_rows,
                                ml_rows,
                                map_rows,
                                svm_rows};

}  // namespace

std::vector<const OpRow*> all_rows() {
  std::vector<const OpRow*> rows;
  for (const Family family : kFamilies) {
    for (const OpRow& row : family()) rows.push_back(&row);
  }
  std::sort(rows.begin(), rows.end(),
            [](const OpRow* a, const OpRow* b) { return std::pair(a->op, a->since) < std::pair(b->op, b->since); });
  return rows;
}

const OpRow* find_row(std::string_view op, std::int64_t opset) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, std::vector<const OpRow*>> rows;
    for (const Family family : kFamilies) {
      for (const OpRow& row : family()) rows[row.op].push_back(&row);
    }
    return rows;
  }();
  const auto at = by_name.find(op);
  if (at == by_name.end()) return nullptr;
  const OpRow* best = nullptr;
  for (const OpRow* row : at->second) {
    if (row->since <= opset && (!best || row->since > best->since)) best = row;
  }
  return best;
}

}  // namespace oclc::onnx

namespace oclc {

std::vector<std::string_view> onnx_operators() {
  std::vector<std::string_view> names;
  for (const onnx::OpRow* row : onnx::all_rows()) {
    if (names.empty() || names.back() != row->op) names.push_back(row->op);
  }
  return names;
}

}  // namespace oclc
