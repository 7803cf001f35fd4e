// Convolutions as loops over registers: depthwise ones, and any other by the strategy conv_direct. One point of the iteration
// space computes neighbouring positions of one feature, which share weights; features are innermost, so that vectors run over
// them.
#include <algorithm>

#include "compiler/kernels/lower/lower_kernel.h"

namespace oclc {
namespace {

// Positions along the last axis that one point computes, if there are as many.
constexpr std::int64_t kPositions = 4;
// The most where they shall divide the axis.
constexpr std::int64_t kMostPositions = 7;
// Lines that one point computes, at most.
constexpr std::int64_t kMostLines = 2;
// Windows up to this many taps are unrolled where a feature has one channel: neighbours share what they read, too.
constexpr std::int64_t kUnrolledTaps = 25;

class DirectConvolution {
 public:
  DirectConvolution(KernelBuilder& b, const Node& node)
      : b_(b), node_(node), x_(node.inputs[0]), w_(node.inputs[1]), shape_(node.output()->type.shape) {
    const Shape& sw = w_->type.shape;
    group_ = Expr(node.get_or<std::int64_t>("group", 1));
    in_group_ = sw[1];
    out_group_ = floor_div(sw[0], group_);
    depthwise_ = in_group_ == Expr(1) && group_ != Expr(1);
    for (std::size_t i = 2; i < sw.size(); ++i) taps_ *= sw[i].value();
  }

  void lower() {
    add_axes();
    const bool unrolled = depthwise_ && taps_ <= kUnrolledTaps;
    if (!unrolled) {
      for (std::size_t i = 2; i < shape_.size(); ++i)
        tap_.push_back(b_.add_reduction("tap_" + spatial_name(i - 2, shape_.size() - 2), w_->type.shape[i]));
      channel_ = b_.add_reduction("in_c", in_group_);
    }
    std::vector<std::vector<Expr>> coords(static_cast<std::size_t>(lines_ * positions_), coords_);
    for (std::int64_t p = 0; p < lines_ * positions_; ++p) {
      std::vector<Expr>& at = coords[static_cast<std::size_t>(p)];
      at.back() = at.back() * Expr(positions_) + Expr(p % positions_);
      if (lines_ > 1) at[at.size() - 2] = at[at.size() - 2] * Expr(lines_) + Expr(p / positions_);
    }
    const std::vector<NodeId> sums = unrolled ? unrolled_sums(coords) : std::vector<NodeId>{};
    for (std::size_t p = 0; p < coords.size(); ++p) {
      std::vector<Expr> guard;
      if (positions_ > 1 && !known_less(coords[p].back(), shape_.back())) guard.push_back(shape_.back() - 1 - coords[p].back());
      NodeId value = unrolled ? sums[p] : sum(coords[p]);
      if (node_.inputs.size() > 2 && node_.inputs[2])
        value = b_.apply("add", {value, b_.element(node_.inputs[2], {coords[p][1]})});
      b_.parts.push_back({std::move(coords[p]), value, std::move(guard)});
    }
    b_.bind(node_.output(), b_.parts[0].coords, b_.parts[0].node);
  }

 private:
  void add_axes() {
    const std::size_t rank = shape_.size();
    positions_ = shape_.back().is_constant() ? positions_of(shape_.back().value()) : kPositions;
    if (depthwise_ && rank > 3) lines_ = lines_of(shape_[rank - 2]);
    coords_.resize(rank);
    coords_[0] = b_.add_axis("image", shape_[0]);
    if (group_ != Expr(1) && !depthwise_) g_ = b_.add_axis("group", group_);
    Shape extents = shape_;
    extents.back() = ceil_div(shape_.back(), Expr(positions_));
    extents[rank - 2] = floor_div(extents[rank - 2], Expr(lines_));
    for (std::size_t i = 2; i < rank; ++i) coords_[i] = b_.add_axis("out_" + spatial_name(i - 2, rank - 2), extents[i]);
    feature_ = b_.add_axis("out_c", depthwise_ ? shape_[1] : out_group_);
    coords_[1] = g_ * out_group_ + feature_;
  }

  // Lines that one point computes: where elements are spread over every second line, two lines know which taps meet gaps.
  std::int64_t lines_of(const Expr& extent) const {
    const Node* spread = x_->producer;
    if (b_.even_positions() || !spread || spread->op->name != "spread") return 1;
    const std::int64_t stride = spread->get<std::vector<std::int64_t>>("strides")[shape_.size() - 2];
    return stride <= kMostLines && extent.is_constant() && extent.value() % stride == 0 ? stride : 1;
  }

  std::int64_t positions_of(std::int64_t extent) const {
    const std::int64_t usual = std::clamp<std::int64_t>(extent, 1, kPositions);
    if (!b_.even_positions() || extent % usual == 0) return usual;
    for (std::int64_t n = kMostPositions; n > 1; --n) {
      if (extent % n == 0) return n;
    }
    return usual;
  }

  // The factors of one tap and channel at an output position.
  std::pair<NodeId, NodeId> factors(const std::vector<Expr>& coords, const std::vector<Expr>& tap, const Expr& channel) {
    std::vector<Expr> xc(shape_.size()), wc(shape_.size()), guard;
    xc[0] = coords[0];
    xc[1] = depthwise_ ? floor_div(feature_, out_group_) : g_ * in_group_ + channel;
    wc[0] = coords[1];
    wc[1] = channel;
    for (std::size_t i = 2; i < shape_.size(); ++i) {
      wc[i] = tap[i - 2];
      xc[i] = window_position(node_, i - 2, coords[i], tap[i - 2], x_->type.shape[i], guard);
    }
    return {b_.guarded(b_.element(x_, xc, guard), {}, guard, 0), b_.element(w_, wc)};
  }

  NodeId sum(const std::vector<Expr>& coords) {
    const auto [a, weight] = factors(coords, tap_, channel_);
    const DType dtype = node_.output()->type.dtype;
    return b_.reduced(add_stage(b_, Stage::Combine::sum, b_.apply("mul", {a, weight}), dtype), dtype);
  }

  // Tap by tap, so that a weight serves all positions and what neighbours read serves each of them before the next tap's.
  std::vector<NodeId> unrolled_sums(const std::vector<std::vector<Expr>>& coords) {
    std::vector<NodeId> totals(coords.size(), -1);
    std::vector<Expr> tap(shape_.size() - 2);
    for (std::int64_t t = 0; t < taps_; ++t) {
      std::int64_t rest = t;
      for (std::size_t i = tap.size(); i-- > 0;) {
        const std::int64_t extent = w_->type.shape[i + 2].value();
        tap[i] = Expr(rest % extent);
        rest /= extent;
      }
      for (std::size_t p = 0; p < coords.size(); ++p) {
        const auto [a, weight] = factors(coords[p], tap, Expr(0));
        if (b_.at(a).kind == ScalarNode::Kind::constant && b_.at(a).number == 0) continue;  // a gap between spread elements
        totals[p] = totals[p] < 0 ? b_.apply("mul", {a, weight}) : b_.apply("fma", {a, weight, totals[p]});
      }
    }
    for (NodeId& total : totals) {
      if (total < 0) total = b_.number(node_.output()->type.dtype, 0);
    }
    return totals;
  }

  KernelBuilder& b_;
  const Node& node_;
  const Value *x_, *w_;
  const Shape& shape_;
  Expr group_, in_group_, out_group_, g_ = 0, feature_, channel_;
  bool depthwise_ = false;
  std::int64_t taps_ = 1, positions_ = 1, lines_ = 1;
  std::vector<Expr> coords_;  // of the output; the last one counts blocks of positions
  std::vector<Expr> tap_;
};

}  // namespace

void lower_conv_direct(KernelBuilder& b, const Node& node) { DirectConvolution(b, node).lower(); }

}  // namespace oclc
