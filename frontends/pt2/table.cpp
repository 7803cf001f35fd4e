#include "frontends/pt2/table.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace oclc::pt2 {
namespace {

const std::unordered_map<std::string_view, const OpRow*>& table() {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const OpRow*> map;
    for (const std::span<const OpRow> family :
         {pointwise_rows(), activation_rows(), reduction_rows(), view_rows(), creation_rows(), linear_rows(),
          convolution_rows(), pooling_rows(), normalization_rows(), indexing_rows(), sampling_rows(), random_rows(),
          loss_rows()})
      for (const OpRow& row : family) map.emplace(row.op, &row);
    return map;
  }();
  return rows;
}

}  // namespace

const OpRow* find_row(std::string_view target) {
  const auto found = table().find(target);
  return found == table().end() ? nullptr : found->second;
}

const OpRow* find_row_in_place(std::string_view target) {
  const std::size_t overload = target.rfind('.');
  if (overload == target.npos || overload == 0 || target[overload - 1] != '_') return nullptr;
  return find_row(std::string(target.substr(0, overload - 1)) + std::string(target.substr(overload)));
}

bool gives_a_view(const OpRow& row) {
  const std::span<const OpRow> views = view_rows();
  return &row >= views.data() && &row < views.data() + views.size();
}

std::vector<std::string_view> operators() {
  std::vector<std::string_view> names;
  for (const auto& [name, row] : table()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace oclc::pt2
