#include "compiler/contraction/cpu/amx.h"

#include <algorithm>
#include <limits>

#include "compiler/contraction/cpu/chunks.h"
#include "compiler/contraction/cpu/winograd.h"
#include "compiler/ir/division.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr int kLanes = 16;
constexpr std::int64_t kPanel = 32;

template <class Tiles>
double seconds_of(const std::optional<Tiles>& tiles, double unhidden) {
  return tiles ? tiles->seconds + unhidden : std::numeric_limits<double>::infinity();
}

}  // namespace

std::optional<AmxWindowProduct> amx_window_product(const Problem& problem) {
  const auto fits = [](const ImageAxis& axis) {
    return axis.stride >= 1 && (axis.stride == 1 || axis.dilation == 1) && axis.taps >= axis.stride && axis.first <= axis.last;
  };
  if (!problem.window) return std::nullopt;
  const Window& image = *problem.window;
  const std::int64_t channels = problem.k.typical;
  if (image.per_channel != 1 || channels < kLanes || problem.taps == 1 || !fits(image.y) || !fits(image.x)) return std::nullopt;
  AmxWindowProduct p;
  p.images = image.images;
  p.rows = image.y.outputs;
  p.columns = image.x.outputs;
  p.features = problem.n.typical;
  p.channels = channels;
  p.taps = problem.taps;
  p.phases = image.y.stride * image.x.stride;
  const std::int64_t reach = (image.x.taps - 1) * image.x.dilation, width = (image.x.outputs - 1) * image.x.stride + reach + 1;
  // Zeros right of a row are those left of the next.
  const std::int64_t zeros_right = std::max<std::int64_t>(0, width - 1 - image.x.last);
  const std::int64_t shared = image.x.stride == 1 ? std::min(image.x.first, zeros_right) : 0;
  p.pitch = std::max(image.x.outputs, ceil_div(width, image.x.stride) - shared);
  p.reach = (image.y.taps - 1) * image.y.dilation / image.y.stride * p.pitch + reach / image.x.stride;
  return p;
}

std::optional<AmxPatchProduct> amx_patch_product(const Problem& problem) {
  if (!problem.window) return std::nullopt;
  const Window& image = *problem.window;
  const bool fits = problem.taps > 1 && problem.k.typical < kFewChannels && image.x.dilation == 1 &&
                    image.y.first <= image.y.last && image.x.first <= image.x.last;
  if (!fits) return std::nullopt;
  return AmxPatchProduct{image.images, image.y.outputs, image.x.outputs, problem.n.typical, problem.k.typical,
                         image.y.taps, image.x.taps,    image.y.stride,  image.x.stride,    image.y.dilation};
}

AmxProduct amx_product(const Problem& problem) {
  AmxProduct product{problem.g.typical, problem.m.typical, problem.n.typical, problem.taps, problem.k.typical};
  product.vectors = product.inner >= kLanes && problem.a.of_terms.can(1);
  return product;
}

std::optional<AmxPairProduct> amx_pair_product(const Problem& problem) {
  const bool by_columns = problem.b.of_outputs.takes(kLanes);
  if (!by_columns && !problem.b.of_terms.takes(kLanes)) return std::nullopt;
  AmxPairProduct p;
  p.turned_rows = problem.a.unit_rows && problem.a.of_outputs.takes(kLanes);
  if (!p.turned_rows && !problem.a.of_terms.takes(kLanes)) return std::nullopt;
  const auto seconds = [](const ContractionOperand& operand) {
    return copy_cycles(operand) * 2 * kPanel / cost::kAmxCyclesPerNanosecond * 1e-9;
  };
  p.groups = problem.g.typical;
  p.rows = problem.m.typical;
  p.columns = problem.n.typical;
  p.taps = problem.taps;
  p.inner = problem.k.typical;
  p.any_terms = !problem.k.known;
  p.copy_rows = seconds(problem.a);
  p.copy_columns = seconds(problem.b) * (by_columns ? 1 : 2);
  return p;
}

std::optional<StrategyCase::Amx> amx_estimates(const Problem& problem, const Target& target) {
  if (!target.multiplies_tiles() || !problem.b.constant) return std::nullopt;
  const AmxProduct product = amx_product(problem);
  // An image of bfloat16 is one where operands are rounded to it.
  const bool has_image =
      problem.a.stored == DType::f32 || (target.precision.bf16_products == 1 && problem.a.stored == DType::bf16);
  const auto window = has_image ? amx_window_product(problem) : std::nullopt;
  const auto patches = has_image ? amx_patch_product(problem) : std::nullopt;
  StrategyCase::Amx e;
  e.rows = choose_amx_tiles(product, target);
  e.limbs = choose_amx_digits(product, target);
  if (window) e.window = choose_amx_window(*window, target);
  if (window) e.limb_window = choose_amx_window_digits(*window, target);
  if (patches) e.patches = choose_amx_patches(*patches, target);
  const std::int64_t panels = product.groups * ceil_div(product.columns, kPanel),
                     parts_bytes = panels * product.steps() * parts_of(target.precision.bf16_products) * 2048,
                     limbs_bytes = panels * product.taps * ceil_div(product.inner, std::int64_t{64}) * kDigitStepBytes;
  e.parts_unhidden = unhidden_seconds(parts_bytes, target);
  e.limbs_unhidden = unhidden_seconds(limbs_bytes, target);
  e.parts_seconds = std::min(
      {seconds_of(e.rows, e.parts_unhidden), seconds_of(e.window, e.parts_unhidden), seconds_of(e.patches, e.parts_unhidden)});
  e.limbs_seconds = std::min(seconds_of(e.limbs, e.limbs_unhidden), seconds_of(e.limb_window, e.limbs_unhidden));
  e.fma_seconds = patches ? fma_window_seconds(*patches, target) : fma_seconds(product, target);
  return e;
}

}  // namespace oclc
