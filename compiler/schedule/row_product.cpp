#include "compiler/schedule/row_product.h"
#include "compiler/targets/costs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace oclc {
namespace {

constexpr int kBits = 12, kLargestTwelve = (1 << (kBits - 1)) - 1, kLargestScale = 16, kScaled = 8, kItemTerms = 32,
              kItemsOfChunk = kTermsOfChunk / kItemTerms, kItemWords = kItemTerms * kBits / 32, kScaleBits = 4;

bool is_plain(const ScalarNode& n) { return n.kind == ScalarNode::Kind::load && n.dtype == DType::f32 && n.guard.empty(); }

// Place of number i of a work-item among the terms of a chunk.
constexpr std::int64_t term_of(std::int64_t item, std::int64_t i) { return i / 4 * kItemTerms + item * 4 + i % 4; }

// Writes rows, and adds up what they lose.
class TwelveBits {
 public:
  TwelveBits(const HostTensor& weights, const RowProduct& product)
      : product_(product),
        from_(reinterpret_cast<const float*>(weights.data())),
        packed_(DType::u32, {product.results * (words_of_row(product.terms) + 1)}),
        to_(reinterpret_cast<std::uint32_t*>(packed_.mutable_data())) {}

  std::optional<HostTensor> run() {
    for (std::int64_t r = 0; r < product_.results; ++r) {
      if (!row(r)) return std::nullopt;
    }
    return std::move(packed_);
  }

 private:
  bool row(std::int64_t r) {
    const float* from = from_ + r * product_.terms;
    std::uint32_t* words = to_ + r * words_of_row(product_.terms);
    const std::int64_t chunks = product_.terms / kTermsOfChunk;
    auto* scales = reinterpret_cast<std::uint16_t*>(words + chunks * kItemsOfChunk * kItemWords);
    float largest = 0;
    for (std::int64_t i = 0; i < product_.terms; ++i) {
      if (!std::isfinite(from[i])) return false;
      largest = std::max(largest, std::fabs(from[i]));
    }
    const float unit = largest / (kLargestTwelve * kLargestScale);
    if (unit > 0 && unit < std::numeric_limits<float>::min()) return false;
    to_[product_.results * words_of_row(product_.terms) + r] = std::bit_cast<std::uint32_t>(unit);
    all_ = errors_ = 0;
    for (std::int64_t c = 0; c < chunks; ++c) {
      for (std::int64_t item = 0; item < kItemsOfChunk; ++item)
        scales[c * kItemsOfChunk + item] =
            numbers(from + c * kTermsOfChunk, item, unit, words + c * kItemsOfChunk * kItemWords);
    }
    return errors_ <= cost::kRoundingOfTwelve * cost::kRoundingOfTwelve * all_;
  }

  // Those of a work-item; what tells by how much each eight are scaled.
  std::uint16_t numbers(const float* from, std::int64_t item, float unit, std::uint32_t* words) {
    std::array<std::uint32_t, kItemWords> own{};
    std::uint32_t scales = 0;
    for (int first = 0; first < kItemTerms; first += kScaled) {
      float largest = 0;
      for (int i = first; i < first + kScaled; ++i) largest = std::max(largest, std::fabs(from[term_of(item, i)]));
      const int scale =
          unit > 0 ? std::clamp(static_cast<int>(std::ceil(largest / (unit * kLargestTwelve))), 1, kLargestScale) : 1;
      scales |= static_cast<std::uint32_t>(scale - 1) << first / kScaled * kScaleBits;
      const double step = static_cast<double>(unit) * scale;
      for (int i = first; i < first + kScaled; ++i) {
        const double x = from[term_of(item, i)];
        const int number =
            unit > 0 ? std::clamp(static_cast<int>(std::nearbyint(x / step)), -kLargestTwelve, kLargestTwelve) : 0;
        const double error = number * step - x;
        all_ += x * x;
        errors_ += error * error;
        const std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::uint32_t>(number) & ((1u << kBits) - 1))
                                   << i * kBits % 32;
        own[static_cast<std::size_t>(i * kBits / 32)] |= static_cast<std::uint32_t>(bits);
        if (bits >> 32 != 0) own[static_cast<std::size_t>(i * kBits / 32 + 1)] |= static_cast<std::uint32_t>(bits >> 32);
      }
    }
    for (std::size_t w = 0; w < own.size(); ++w)
      words[static_cast<std::int64_t>(w / 4) * kItemsOfChunk * 4 + item * 4 + static_cast<std::int64_t>(w % 4)] = own[w];
    return static_cast<std::uint16_t>(scales);
  }

  const RowProduct& product_;
  const float* from_;
  HostTensor packed_;
  std::uint32_t* to_;
  double all_ = 0, errors_ = 0;  // squares of a row's weights and of what they lose
};

}  // namespace

std::optional<RowProduct> row_product(const Kernel& kernel, const std::vector<Buffer>& buffers, const Target& target) {
  if (!target.has_group_templates() || !target.precision.rounds_operands()) return std::nullopt;
  if (kernel.contraction || kernel.anchor != Anchor::reduce || kernel.stages.size() != 1 || kernel.reduction.size() != 1 ||
      kernel.axes.empty())
    return std::nullopt;
  const Stage& stage = kernel.stages[0];
  const ScalarNode& body = kernel.nodes[static_cast<std::size_t>(stage.body)];
  if (stage.combine != Stage::Combine::sum || stage.accumulator != DType::f32 || body.op_name != "mul") return std::nullopt;
  const Axis &term = kernel.reduction[0], &result = kernel.axes.back();
  if (!term.extent.is_constant() || !result.extent.is_constant() ||
      std::any_of(kernel.axes.begin(), kernel.axes.end() - 1, [](const Axis& a) { return a.extent != Expr(1); }) ||
      std::any_of(kernel.stores.begin(), kernel.stores.end(), [](const Store& s) { return !s.row_axes.empty(); }))
    return std::nullopt;
  RowProduct p;
  p.results = result.extent.value();
  p.terms = term.extent.value();
  if (p.terms % kTermsOfChunk != 0 ||
      static_cast<double>(p.results * p.terms) * 4 < target.bytes_per_second * target.launch_seconds)
    return std::nullopt;
  for (const NodeId id : body.args) {
    const ScalarNode& n = kernel.nodes[static_cast<std::size_t>(id)];
    if (!is_plain(n)) return std::nullopt;
    if (n.index == result.var * Expr(p.terms) + term.var)
      p.weights = id;
    else if (n.index.coefficient(term.name) == Expr(1) && !n.index.uses(result.name))
      p.row = id;
  }
  if (p.row < 0 || p.weights < 0) return std::nullopt;
  const int operand = kernel.nodes[static_cast<std::size_t>(p.weights)].operand;
  const Buffer& buffer = buffers[static_cast<std::size_t>(kernel.operands[static_cast<std::size_t>(operand)].buffer)];
  const auto reads_it = [&](const ScalarNode& n) { return n.kind == ScalarNode::Kind::load && n.operand == operand; };
  if (buffer.kind != BufferKind::constant || buffer.dtype != DType::f32 || buffer.constant.elements() != p.results * p.terms ||
      std::count_if(kernel.nodes.begin(), kernel.nodes.end(), reads_it) != 1)
    return std::nullopt;
  return p;
}

std::optional<HostTensor> in_twelve_bits(const HostTensor& weights, const RowProduct& product) {
  return TwelveBits(weights, product).run();
}

}  // namespace oclc
