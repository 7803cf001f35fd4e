#include "compiler/passes/layout/conv_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/contraction/cpu/amx_tiles.h"
#include "compiler/ops/winograd.h"
#include "compiler/passes/gradients/gradient_windows.h"
#include "compiler/passes/layout/gathered_conv_cost.h"
#include "compiler/passes/layout/layout.h"
#include "compiler/passes/layout/unit_conv_cost.h"
#include "compiler/passes/pipeline/rewrite.h"
#include "compiler/support/error.h"
#include "compiler/targets/costs.h"

namespace oclc {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"implicit", "im2col", "direct", "winograd", "depthwise"};

// Cycles of the fused transforms for a tile and a vector.
struct TransformCycles {
  double channels, features;
};
TransformCycles transform_cycles(double points, std::int64_t tile) {
  if (points == 16) return {cost::kWinogradTwoInput, cost::kWinogradTwoOutput};
  if (tile == 4) return {cost::kWinogradFourInput, cost::kWinogradFourOutput};
  return {cost::kWinogradWideInput, cost::kWinogradWideOutput};
}

double number(const Expr& e) {
  SymbolValues values;
  for (const std::string& s : e.symbols()) values[s] = 1;
  return static_cast<double>(e.evaluate(values).value_or(1));
}

struct ConvSizes {
  double images, positions, channels, features, taps;  // channels and features of one group
  double groups;
  double input, output, weights;  // elements
};

ConvSizes sizes_of(const Node& conv) {
  const Shape &x = conv.inputs[0]->type.shape, &w = conv.inputs[1]->type.shape, &y = conv.output()->type.shape;
  ConvSizes s{};
  s.groups = static_cast<double>(conv.get<std::int64_t>("group"));
  s.images = number(y[0]);
  s.positions = number(product(std::span(y).subspan(2)));
  s.channels = number(w[1]);
  s.features = number(w[0]) / s.groups;
  s.taps = number(product(std::span(w).subspan(2)));
  s.input = number(product(x));
  s.output = number(product(y));
  s.weights = number(product(w));
  return s;
}

bool is_depthwise(const Node& conv) { return conv.get<std::int64_t>("group") != 1 && conv.inputs[1]->type.shape[1] == Expr(1); }

bool one_tap(const Node& conv) {
  const auto& pads = conv.get<Ints>("pads");
  return product(std::span(conv.inputs[1]->type.shape).subspan(2)) == Expr(1) &&
         std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; });
}

// Share of the peak that a blocked product reaches: short sums and few columns leave registers idle.
double product_efficiency(double rows, double columns, double inner, const Target& target) {
  const double lanes = target.lanes();
  const double fill = columns / (std::max(1.0, std::ceil(columns / lanes)) * lanes);
  return 0.95 * fill * inner / (inner + 8) * rows / (rows + 4);
}

// Fewer channels or features leave tiles of matrix units empty.
constexpr std::int64_t kNarrowOperand = 32;

// 3x3 convolutions of so many constant weights that unit_conv_cost.h says what they take.
bool counts_on_units(const Node& conv, const Target& target) {
  const Shape& w = conv.inputs[1]->type.shape;
  return target.multiplies_parts_in_groups() && winograd_tile(conv, true) == 4 && conv.get<std::int64_t>("group") == 1 &&
         all_ones(conv.get<Ints>("strides")) && all_ones(conv.get<Ints>("dilations")) && constant_of(conv.inputs[1]) &&
         w[0].value() >= kNarrowOperand && w[1].value() >= kNarrowOperand;
}

// Matrix units leave the products that Winograd saves cheaper than its transforms' way through memory, but for large windows of
// many channels.
bool gains_by_winograd(const Node& conv, const Target& target, bool large_window) {
  return !target.multiplies_tf32_fragments() || (large_window && counts_on_units(conv, target));
}

// Blocks of tiles whose transformed channels fit the cache beside a panel of results; each reads the weights.
double blocks_of_tiles(double tiles, double points, double channels, const Target& target) {
  const double tile_bytes = 4 * points * (channels + cost::kWinogradBesideChannels),
               budget = std::min(cost::kWinogradBlockShare * static_cast<double>(target.l2_bytes),
                                 static_cast<double>(target.local_bytes));
  return std::ceil(tiles / std::max(1.0, std::floor(budget / tile_bytes)));
}

// Products of blocks of tiles beside the weights that stream in from memory, and the transforms in the cache.
double fused_winograd_seconds(const Node& conv, const ConvSizes& s, std::int64_t tile, const Target& target) {
  const double m = static_cast<double>(tile), window = m + std::sqrt(s.taps) - 1, points = window * window,
               width = target.vector_width;
  const Shape& y = conv.output()->type.shape;
  const double tiles = s.images * std::ceil(number(y[2]) / m) * std::ceil(number(y[3]) / m);
  const double products =
      2 * points * tiles * s.channels * s.features / (target.flops * product_efficiency(tiles, s.features, s.channels, target));
  const bool stalls = !target.has.software_prefetch, wide = has_wide_vectors(target);
  const double weight_bytes = points * s.channels * s.features * 4,
               again = wide ? (blocks_of_tiles(tiles, points, s.channels, target) - 1) * weight_bytes /
                                  cost::kWinogradAgainBytesPerSecond
                            : 0,
               weights = weight_bytes / (target.bytes_per_second * (wide ? cost::kWinogradStreamedShare : 1)) + again;
  const auto [input, output] = transform_cycles(points, tile);
  const double transforms = tiles * (s.channels * input + s.features * output) / width * (4 * width / target.flops);
  const double operands = (s.input + s.output) * 4 / target.bytes_per_second / 4;
  // Weights of run time are transformed by a launch of their own.
  const double filters = constant_of(conv.inputs[1]) ? 0 : weights + target.launch_seconds;
  // Few registers pass over a panel of weights several times, and the first time wait for it. Unknown many images may hide
  // that.
  const bool waits = stalls && y[0].is_constant() && weight_bytes > static_cast<double>(target.l2_bytes * target.compute_units);
  const double exposed = waits ? cost::kWinogradExposedWeights * weights : 0;
  return std::max(products + transforms + operands + exposed, weights) + filters + target.launch_seconds;
}

std::int64_t whole(double x) { return std::max<std::int64_t>(1, std::llround(x)); }

// Patches of few channels on tiles of bfloat16.
double patch_seconds(const Node& conv, const ConvSizes& s, const Target& target) {
  const Shape &x = conv.inputs[0]->type.shape, &w = conv.inputs[1]->type.shape, &y = conv.output()->type.shape;
  if (y.size() != 4 || s.groups != 1 || s.taps == 1 || s.channels >= kFewChannels || !x[2].is_constant() || !x[3].is_constant())
    return std::numeric_limits<double>::infinity();
  const auto &strides = conv.get<Ints>("strides"), &dilations = conv.get<Ints>("dilations");
  if (dilations[1] != 1) return std::numeric_limits<double>::infinity();
  const AmxPatchProduct p{whole(s.images),     whole(number(y[2])), whole(number(y[3])), whole(s.features), whole(s.channels),
                          whole(number(w[2])), whole(number(w[3])), strides[0],          strides[1],        dilations[0]};
  const auto chosen = choose_amx_patches(p, target);
  return chosen ? chosen->seconds : std::numeric_limits<double>::infinity();
}

// Products on tiles of bfloat16: of rows split for each tap, or once for all taps where a window of the image is.
double tile_unit_seconds(const Node& conv, const ConvSizes& s, const Target& target) {
  const double patches = patch_seconds(conv, s, target);
  if (!becomes_channels_last(conv.inputs[0])) return patches + target.launch_seconds;
  AmxProduct rows{whole(s.groups), whole(s.images * s.positions), whole(s.features), whole(s.taps), whole(s.channels)};
  rows.vectors = s.channels >= 16;
  const auto tiles = choose_amx_tiles(rows, target);
  double least = std::min(patches, tiles ? tiles->seconds : std::numeric_limits<double>::infinity());
  if (const auto digits = choose_amx_digits(rows, target)) least = std::min(least, digits->seconds);
  const Shape& y = conv.output()->type.shape;
  if (y.size() == 4 && s.groups == 1 && s.taps > 1 && s.channels >= 16) {
    const auto& strides = conv.get<Ints>("strides");
    const Shape& w = conv.inputs[1]->type.shape;
    AmxWindowProduct window;
    window.images = whole(s.images);
    window.rows = whole(number(y[2]));
    window.columns = whole(number(y[3]));
    window.features = whole(s.features);
    window.channels = whole(s.channels);
    window.taps = whole(s.taps);
    window.phases = strides[0] * strides[1];
    window.pitch = window.columns + 1;
    window.reach = (whole(number(w[2])) - 1) / strides[0] * window.pitch + (whole(number(w[3])) - 1) / strides[1];
    for (const auto& chosen : {choose_amx_window(window, target), choose_amx_window_digits(window, target)}) {
      if (chosen) least = std::min(least, chosen->seconds);
    }
  }
  return least + target.launch_seconds;
}

}  // namespace

std::string_view name_of(ConvolutionStrategy strategy) { return kNames.at(static_cast<std::size_t>(strategy)); }

double estimate_seconds(const Node& conv, ConvolutionStrategy strategy, std::int64_t tile, const Target& target) {
  if (counts_on_units(conv, target)) {
    if (strategy == ConvolutionStrategy::implicit) return unit_product_seconds(UnitConvolution(conv), target);
    if (strategy == ConvolutionStrategy::winograd)
      return unit_winograd_seconds(UnitConvolution(conv), static_cast<double>(tile), target);
  }
  const ConvSizes s = sizes_of(conv);
  if (strategy == ConvolutionStrategy::implicit && target.multiplies_tiles()) {
    Target plain = target;
    plain.precision.bf16_products = 0;
    const double fma = estimate_seconds(conv, strategy, tile, plain);
    if (!constant_of(conv.inputs[1])) return fma;
    const double tiles = tile_unit_seconds(conv, s, target);
    return tiles_gain(tiles, fma, target) ? tiles : fma;
  }
  const double rows = s.images * s.positions, inner = s.channels * s.taps, flops = 2 * rows * inner * s.features * s.groups;
  // What fits the second-level caches, one a core or one for all of a GPU, moves four times as fast as memory.
  const auto move = [&](double elements) {
    const double bytes = elements * 4;
    return bytes / (bytes > static_cast<double>(target.all_l2_bytes()) ? target.bytes_per_second : target.bytes_per_second * 4);
  };
  const double operands = move(s.input) + move(s.weights) + move(s.output);
  switch (strategy) {
    case ConvolutionStrategy::implicit: {
      // Few channels: a CPU copies a window of the image first, others work out the pointers of the taps too often.
      const Shape& image = conv.inputs[0]->type.shape;
      const bool window = target.has_vector_templates() && s.groups == 1 && image.size() == 4 && image[2].is_constant() &&
                          image[3].is_constant();
      const double few = window ? 0.85 : 0.6;
      const double efficiency = product_efficiency(rows, s.features, inner, target) * (s.channels < 8 && s.taps > 1 ? few : 1);
      return std::max(flops / (target.flops * efficiency), operands) + target.launch_seconds;
    }
    case ConvolutionStrategy::im2col: {
      // Fewer channels than lanes are gathered one by one.
      const double matrix = rows * inner * s.groups,
                   gather = s.channels < target.vector_width ? matrix * cost::kGatherSeconds : 0;
      return std::max(flops / (target.flops * product_efficiency(rows, s.features, inner, target)), operands) +
             2 * move(matrix) + gather + 2 * target.launch_seconds;
    }
    case ConvolutionStrategy::direct:
    case ConvolutionStrategy::depthwise:
      return std::max(flops / (target.flops * 0.25), operands) + target.launch_seconds;
    case ConvolutionStrategy::winograd: {
      if (fuses_winograd(conv, target)) return fused_winograd_seconds(conv, s, tile, target);
      const Winograd& f = winograd(tile);
      const double m = static_cast<double>(tile), window = static_cast<double>(f.window);
      const Shape& y = conv.output()->type.shape;
      const double tiles = s.images * std::ceil(number(y[2]) / m) * std::ceil(number(y[3]) / m), points = window * window;
      const double products = 2 * points * tiles * s.channels * s.features /
                              (target.flops * product_efficiency(tiles, s.features, s.channels, target));
      const double transforms =
          2 * move(points * tiles * s.channels) + 2 * move(points * tiles * s.features) + move(s.input) + move(s.output);
      return std::max(products / cost::kWinogradProducts, move(points * s.channels * s.features)) + transforms +
             3 * target.launch_seconds;
    }
  }
  check_failed("strategy", "conv_cost.cpp", 0, "strategy");
}

bool fuses_winograd(const Node& conv, const Target& target) {
  if (!becomes_channels_last(conv.inputs[0])) return false;
  const Expr channels = conv.inputs[1]->type.shape[1];
  return target.has_vector_templates() && channels.is_constant() && channels.value() % target.vector_width == 0;
}

std::string refusal(const Node& conv, ConvolutionStrategy strategy, const ConvolutionOptions& options) {
  const Shape &x = conv.inputs[0]->type.shape, &w = conv.inputs[1]->type.shape;
  if (strategy == ConvolutionStrategy::im2col && one_tap(conv) && all_ones(conv.get<Ints>("strides")))
    return "with one tap the matrix is the input itself";
  if (strategy != ConvolutionStrategy::winograd) return {};
  if (!options.target.precision.may_transform()) return "the strict contract excludes Winograd";
  if (x.size() != 4 || winograd_tile(conv, true) == 0) return "Winograd needs a filter of 3x3 or 5x5";
  if (conv.get<std::int64_t>("group") != 1) return "Winograd needs a single group";
  if (!all_ones(conv.get<Ints>("strides")) || !all_ones(conv.get<Ints>("dilations")))
    return "Winograd needs stride and dilation 1";
  if (!x[2].is_constant() || !x[3].is_constant()) return "Winograd needs known image sizes";
  if (!constant_of(conv.inputs[1]) && !fuses_winograd(conv, options.target))
    return "Winograd needs constant weights, or a CPU and channels that are innermost and fill its vectors";
  if (conv.output()->type.dtype != DType::f32) return "Winograd needs single precision";
  if (!(w[2] == Expr(kWinogradFilter)) && !fuses_winograd(conv, options.target))
    return "Winograd of 5x5 needs a CPU and channels that fill its vectors";
  return {};
}

std::int64_t winograd_tile(const Node& conv, bool large_window) {
  const Shape& w = conv.inputs[1]->type.shape;
  if (w.size() != 4 || !w[2].is_constant() || !(w[2] == w[3])) return 0;
  const std::int64_t tile = (large_window ? 6 : 4) - w[2].value() + 1;
  return has_winograd(tile, w[2].value()) ? tile : 0;
}

double gain_of_large_window(const Node& conv, const ConvolutionOptions& options) {
  using enum ConvolutionStrategy;
  if (is_depthwise(conv) || !refusal(conv, winograd, options).empty() || !gains_by_winograd(conv, options.target, true))
    return 0;
  // Forward in training, its rounding errors turn signs of activations that are almost zero, and their gradients with them.
  if (!constant_of(conv.inputs[1]) && !conv.has(kAdjoint)) return 0;
  constexpr double never = std::numeric_limits<double>::infinity();
  const std::int64_t small = winograd_tile(conv, false);
  const double large = estimate_seconds(conv, winograd, winograd_tile(conv, true), options.target),
               others = options.strategy == "winograd" ? never : estimate_seconds(conv, implicit, 0, options.target);
  if (counts_on_units(conv, options.target))
    return large + cost::kThreeLaunchSeconds < cost::kWinogradRoundingGain * others ? others - large : 0;
  return std::min(others, small == 0 ? never : estimate_seconds(conv, winograd, small, options.target)) - large;
}

std::string strategy_key(const Node& conv, const ConvolutionOptions& options, bool large_window) {
  std::vector<std::int64_t> sizes;
  for (const Value* v : {conv.inputs[0], conv.inputs[1]}) {
    for (const Expr& e : v->type.shape) {
      if (!e.is_constant()) return {};
      sizes.push_back(e.value());
    }
  }
  for (const char* name : {"strides", "dilations", "pads"}) {
    const auto& list = conv.get<Ints>(name);
    sizes.insert(sizes.end(), list.begin(), list.end());
  }
  sizes.push_back(conv.get<std::int64_t>("group"));
  sizes.push_back(large_window ? 4 : 2);
  return tuning_key(fmt::format("conv_{}", name_of(options.target.precision.contract)), sizes);
}

std::vector<TunedChoice> strategy_choices(const Node& conv, const ConvolutionOptions& options, bool large_window) {
  std::vector<TunedChoice> list;
  if (is_depthwise(conv)) return list;
  using enum ConvolutionStrategy;
  for (const ConvolutionStrategy s : {implicit, im2col, direct, winograd}) {
    if (!refusal(conv, s, options).empty()) continue;
    const auto number = static_cast<std::int64_t>(s);
    if (s != winograd) {
      list.push_back({number, 0});
      continue;
    }
    for (const bool large : {false, true}) {
      const std::int64_t tile = winograd_tile(conv, large);
      if (tile != 0 && (large_window || !large)) list.push_back({number, tile});
    }
  }
  return list;
}

ConvolutionCost choose_strategy(const Node& conv, const ConvolutionOptions& options, bool large_window) {
  using enum ConvolutionStrategy;
  ConvolutionCost choice;
  if (is_depthwise(conv)) {
    choice.strategy = depthwise;
    choice.reason = "depthwise: one input channel a group";
    return choice;
  }
  choice.winograd_tile = winograd_tile(conv, large_window);
  const auto why_not = [&](ConvolutionStrategy s) -> std::string {
    std::string reason = refusal(conv, s, options);
    return reason.empty() && s == winograd && choice.winograd_tile == 0 ? "its rounding errors exceed the contract's" : reason;
  };
  const auto label = [&](ConvolutionStrategy s) {
    return s == winograd
               ? fmt::format("winograd F({0}x{0},{1}x{1})", choice.winograd_tile, conv.inputs[1]->type.shape[2].value())
               : std::string(name_of(s));
  };
  if (options.strategy != "auto") {
    for (const ConvolutionStrategy s : {implicit, im2col, direct, winograd}) {
      if (name_of(s) != options.strategy) continue;
      const std::string reason = why_not(s);
      choice.strategy = reason.empty() ? s : implicit;
      choice.reason =
          reason.empty() ? label(s) + " as asked" : fmt::format("implicit instead of {}: {}", options.strategy, reason);
      return choice;
    }
    throw CompileError({.stage = "choose_convolution",
                        .wanted = "auto, im2col, implicit, direct or winograd",
                        .found = "--conv " + options.strategy,
                        .exit_code = ExitCode::usage});
  }
  std::vector<std::pair<double, ConvolutionStrategy>> costs;
  const auto gathered = gathered_seconds(conv, options);
  // Loads of a GPU's implicit product gather as those of a matrix of patches do, without writing it.
  const bool gathers = options.target.has_group_templates() && !(gathered && gathered->patches);
  for (const ConvolutionStrategy s : {implicit, im2col, direct, winograd}) {
    if (why_not(s).empty() && !(gathers && s == im2col) &&
        !(s == winograd && !gains_by_winograd(conv, options.target, large_window)))
      costs.emplace_back(estimate_seconds(conv, s, choice.winograd_tile, options.target), s);
  }
  const auto cheaper = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(costs.begin(), costs.end(), cheaper);
  // The rates above are those of long products.
  if (gathered && costs.front().second != winograd) {
    for (auto& [seconds, s] : costs) {
      if (s == implicit) seconds = std::max(seconds, gathered->product);
      if (s == direct) seconds = gathered->sums;
      if (s == im2col) seconds = std::max(seconds, *gathered->patches);
    }
    std::stable_sort(costs.begin(), costs.end(), cheaper);
  }
  choice.strategy = costs.front().second;
  for (const auto& [seconds, s] : costs)
    choice.reason += fmt::format("{}{} {:.3g} ms",
                                 choice.reason.empty()                          ? ""
                                 : choice.reason.find(';') == std::string::npos ? "; "
                                                                                : ", ",
                                 label(s), seconds * 1e3);
  const std::string key = options.target.tuning ? strategy_key(conv, options, large_window) : std::string();
  if (key.empty()) return choice;
  const TunedChoice modelled{static_cast<std::int64_t>(choice.strategy),
                             choice.strategy == winograd ? choice.winograd_tile : 0};
  const TunedChoice* tuned = find_tuned(options.target, {key, modelled});
  const std::vector<TunedChoice> legal = strategy_choices(conv, options, large_window);
  if (!tuned || std::find(legal.begin(), legal.end(), *tuned) == legal.end()) return choice;
  choice.strategy = static_cast<ConvolutionStrategy>((*tuned)[0]);
  if (choice.strategy == winograd) choice.winograd_tile = (*tuned)[1];
  choice.reason = label(choice.strategy) + " as timed; by the model " + choice.reason;
  return choice;
}

}  // namespace oclc
