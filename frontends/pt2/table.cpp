#include "frontends/pt2/table.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "frontends/pt2/complex.h"

namespace oclc::pt2 {
namespace {

struct Alias {
  std::string_view name, as;
};

// torch's primitive operators, of which its decompositions are made, with the arguments of ATen's.
constexpr Alias kPrimitives[] = {
    {"prims.abs.default", "aten.abs.default"},
    {"prims.acos.default", "aten.acos.default"},
    {"prims.acosh.default", "aten.acosh.default"},
    {"prims.add.default", "aten.add.Tensor"},
    {"prims.asin.default", "aten.asin.default"},
    {"prims.asinh.default", "aten.asinh.default"},
    {"prims.atan.default", "aten.atan.default"},
    {"prims.atan2.default", "aten.atan2.default"},
    {"prims.atanh.default", "aten.atanh.default"},
    {"prims.bessel_i0.default", "aten.i0.default"},
    {"prims.bessel_i0e.default", "aten.special_i0e.default"},
    {"prims.bessel_i1.default", "aten.special_i1.default"},
    {"prims.bessel_i1e.default", "aten.special_i1e.default"},
    {"prims.bitwise_and.default", "aten.bitwise_and.Tensor"},
    {"prims.bitwise_not.default", "aten.bitwise_not.default"},
    {"prims.bitwise_or.default", "aten.bitwise_or.Tensor"},
    {"prims.bitwise_xor.default", "aten.bitwise_xor.Tensor"},
    {"prims.cat.default", "aten.cat.default"},
    {"prims.ceil.default", "aten.ceil.default"},
    {"prims.clone.default", "aten.clone.default"},
    {"prims.cos.default", "aten.cos.default"},
    {"prims.cosh.default", "aten.cosh.default"},
    {"prims.digamma.default", "aten.digamma.default"},
    {"prims.div.default", "aten.div.Tensor"},
    {"prims.eq.default", "aten.eq.Tensor"},
    {"prims.erf.default", "aten.erf.default"},
    {"prims.erf_inv.default", "aten.erfinv.default"},
    {"prims.erfc.default", "aten.erfc.default"},
    {"prims.erfcx.default", "aten.special_erfcx.default"},
    {"prims.exp.default", "aten.exp.default"},
    {"prims.exp2.default", "aten.exp2.default"},
    {"prims.expm1.default", "aten.expm1.default"},
    {"prims.floor.default", "aten.floor.default"},
    {"prims.fmax.default", "aten.fmax.default"},
    {"prims.fmin.default", "aten.fmin.default"},
    {"prims.fmod.default", "aten.fmod.Tensor"},
    {"prims.ge.default", "aten.ge.Tensor"},
    {"prims.gt.default", "aten.gt.Tensor"},
    {"prims.hypot.default", "aten.hypot.default"},
    {"prims.isfinite.default", "aten.isfinite.default"},
    {"prims.le.default", "aten.le.Tensor"},
    {"prims.lgamma.default", "aten.lgamma.default"},
    {"prims.log.default", "aten.log.default"},
    {"prims.log10.default", "aten.log10.default"},
    {"prims.log1p.default", "aten.log1p.default"},
    {"prims.log2.default", "aten.log2.default"},
    {"prims.lt.default", "aten.lt.Tensor"},
    {"prims.maximum.default", "aten.maximum.default"},
    {"prims.minimum.default", "aten.minimum.default"},
    {"prims.mul.default", "aten.mul.Tensor"},
    {"prims.ne.default", "aten.ne.Tensor"},
    {"prims.neg.default", "aten.neg.default"},
    {"prims.reciprocal.default", "aten.reciprocal.default"},
    {"prims.remainder.default", "aten.remainder.Tensor"},
    {"prims.round.default", "aten.round.default"},
    {"prims.rsqrt.default", "aten.rsqrt.default"},
    {"prims.shift_left.default", "aten.bitwise_left_shift.Tensor"},
    {"prims.shift_right_arithmetic.default", "aten.bitwise_right_shift.Tensor"},
    {"prims.sign.default", "aten.sign.default"},
    {"prims.signbit.default", "aten.signbit.default"},
    {"prims.sin.default", "aten.sin.default"},
    {"prims.sinh.default", "aten.sinh.default"},
    {"prims.sqrt.default", "aten.sqrt.default"},
    {"prims.sub.default", "aten.sub.Tensor"},
    {"prims.tan.default", "aten.tan.default"},
    {"prims.tanh.default", "aten.tanh.default"},
    {"prims.trunc.default", "aten.trunc.default"},
};

const std::unordered_map<std::string_view, const OpRow*>& table() {
  static const auto rows = [] {
    std::unordered_map<std::string_view, const OpRow*> map;
    for (const std::span<const OpRow> family :
         {pointwise_rows(), activation_rows(), reduction_rows(), view_rows(), strided_rows(), creation_rows(), linear_rows(),
          convolution_rows(), pooling_rows(), normalization_rows(), indexing_rows(), sampling_rows(), random_rows(),
          loss_rows(), order_rows(), special_rows(), padding_rows(), bag_rows(), bit_rows()})
      for (const OpRow& row : family) map.emplace(row.op, &row);
    for (const Alias& primitive : kPrimitives) map.emplace(primitive.name, map.at(primitive.as));
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
  for (const std::span<const OpRow> views : {view_rows(), strided_rows()})
    if (&row >= views.data() && &row < views.data() + views.size()) return true;
  return false;
}

bool is_view(std::string_view target) {
  constexpr std::string_view kViews[] = {
      "aten.alias.default",        "aten.detach.default",         "aten.view.default",
      "aten._unsafe_view.default", "aten.view_as.default",        "aten.squeeze.default",
      "aten.squeeze.dim",          "aten.squeeze.dims",           "aten.unsqueeze.default",
      "aten.expand.default",       "aten.expand_as.default",      "aten.permute.default",
      "aten.transpose.int",        "aten.swapaxes.default",       "aten.t.default",
      "aten.select.int",           "aten.slice.Tensor",           "aten.split_with_sizes.default",
      "aten.split.Tensor",         "aten.chunk.default",          "aten.unbind.int",
      "aten.diagonal.default",     "aten.as_strided.default",     "aten.unfold.default",
      "prims.view_of.default",     "prims.collapse_view.default", "prims.split_dim.default",
      "prims.squeeze.default",     "prims.transpose.default",     "prims.broadcast_in_dim.default",
  };
  return std::find(std::begin(kViews), std::end(kViews), target) != std::end(kViews);
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
