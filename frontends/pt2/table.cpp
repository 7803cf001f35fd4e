#include "frontends/pt2/table.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "frontends/pt2/complex.h"

namespace oclc::pt2 {
namespace {

const std::unordered_map<std::string_view, const OpRow*>& table() {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const OpRow*> map;
    for (const std::span<const OpRow> family :
         {pointwise_rows(), activation_rows(),  reduction_rows(),     view_rows(),          strided_rows(),  creation_rows(),
          linear_rows(),    convolution_rows(), pooling_rows(),       normalization_rows(), indexing_rows(), sampling_rows(),
          random_rows(),    loss_rows(),        order_rows(),         special_rows(),       padding_rows(),  bag_rows(),
          bit_rows(),       function_rows(),    rearrangement_rows(), product_rows(),       recurrent_rows()})
      for (const OpRow& row : family) map.emplace(row.op, &row);
    for (const Alias& alias : aliases()) map.emplace(alias.name, map.at(alias.as));
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

std::vector<std::string_view> operators() {
  std::vector<std::string_view> names;
  for (const auto& [name, row] : table()) names.push_back(name);
  for (const std::string_view name : complex_operators()) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace oclc::pt2
