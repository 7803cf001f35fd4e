#include "compiler/codegen/loops/group_shape.h"

#include <algorithm>

#include "compiler/codegen/loops/collapse.h"
#include "compiler/codegen/text/index_type.h"
#include "compiler/codegen/text/reduction_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/ir/typical.h"
#include "compiler/kernels/axis_dependencies.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

// Fewer terms than this stay with one work-item; the same where few results leave the device idle, or one group computes all.
constexpr std::int64_t kFewTerms = 64, kFewTermsOfGroup = 16;
// Results of a launch are few where there are no more of them than this part of the work-items that a group for each compute
// unit has.
constexpr std::int64_t kIdleShare = 4;
// Results of unknown number: a few of them in a group do not keep others waiting, and many groups of one do.
constexpr std::int64_t kUnknownResults = 4096;
// Neighbouring results that a group may hold: as many floats as memory moves at once.
constexpr int kMostResults = 8;
// Work-items that share a result whose terms lie side by side, where results are many: they read a line of memory at once, and
// each adds up all their parts.
constexpr int kSharers = 32;
// Work-items that share a result at least, in a group that computes all results.
constexpr int kFewestSharers = 2;
// Fewer terms a work-item are not worth more work-items.
constexpr std::int64_t kFewTermsOfItem = 4;
// Work-items that keep a compute unit busy.
constexpr std::int64_t kBusyItems = 1024;
// Vectors that neighbours in a group read at least, a piece of a line of memory, and at most.
constexpr int kFewestVectors = 2, kMostVectorsOfItem = 4;
// Parts that each work-item adds up by itself, where it has added up vectors; none where sums are many, whose parts would fill
// its registers.
constexpr int kVectorParts = 8, kManySums = 4;
// Terms of the last of several sums that are asked for before the first sum, at most.
constexpr std::int64_t kMostAhead = 6;
// Terms that are asked for before the first is used, and what they may load together: more finds no registers. Twice as many of
// vectors of 16-bit numbers: as many bytes.
constexpr int kUnroll = 8, kMostLoads = 16;
// Results of a work-item, at most, where as many groups run as there are: their terms are asked for together.
constexpr int kMostEach = 4;

}  // namespace

GroupShape::GroupShape(const Kernel& kernel, const Target& target, std::int64_t groups, int items)
    : kernel_(kernel), target_(target), megakernel_groups_(groups), items_(items) {
  narrow_indices(kernel_);
  collapse_axes(kernel_);
  if (kernel_.axes.empty()) kernel_.axes.push_back({"one", Expr(1), Expr(0)});
  for (const Axis& a : kernel_.axes) all_ *= a.extent;
}

bool GroupShape::applies() const {
  if (kernel_.stages.empty()) return false;
  const DType dtype = kernel_.stages[0].accumulator;
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::i32 && dtype != DType::i64) return false;
  std::int64_t longest = 0;
  for (const Stage& s : kernel_.stages) {
    if (s.accumulator != dtype || s.arg_index >= 0) return false;
    longest = std::max(longest, likely_terms(s));
  }
  return longest >= (items_ > 0 || leaves_idle() ? kFewTermsOfGroup : kFewTerms);
}

void GroupShape::choose() {
  choose_lanes();
  items_ > 0 ? choose_shape_of_group() : choose_shape();
  unroll_ = std::clamp(kMostLoads / std::max(loads_of_term(kernel_), 1), 1, kUnroll);
  if (term_lanes_ > 1 && megakernel_groups_ == 0 &&
      std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(),
                  [](const ScalarNode& n) { return n.kind == ScalarNode::Kind::load && size_bytes(n.dtype) == 2; }))
    unroll_ *= 2;
  if (megakernel_groups_ > 0) {
    while (results_ * sharers_ < target_.work_group) results_ *= 2;
  } else {
    choose_ahead();
  }
}

Expr GroupShape::terms(const std::vector<int>& axes) const {
  Expr n(1);
  for (const int a : axes) n *= reduction(a).extent;
  return n;
}

// So few results that a work-item each leaves most of the device idle, waiting for one term after another.
bool GroupShape::leaves_idle() const {
  return all_.is_constant() &&
         all_.value() <= std::int64_t{target_.work_group} * std::max(1, target_.compute_units) / kIdleShare;
}

std::int64_t GroupShape::likely_terms(const Stage& s) const { return typical_terms(terms(s.axes)); }

bool GroupShape::loads_along(const std::string& axis) const {
  return std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [&](const ScalarNode& n) {
    return n.kind == ScalarNode::Kind::load && n.index.coefficient(axis) == Expr(1);
  });
}

// Whole vectors of neighbours along an axis, in the sums and in what is stored.
bool GroupShape::fills_vectors(const Axis& axis) const {
  return floor_mod(axis.extent, Expr(kLanes)) == Expr(0) && loads_along(axis.name) &&
         can_vectorize(kernel_, axis.name, kLanes, DType::i16) &&
         std::all_of(kernel_.stores.begin(), kernel_.stores.end(),
                     [&](const Store& s) { return s.index.coefficient(axis.name).has_value(); });
}

// A work-item computes neighbouring results, or adds up neighbouring terms, as a vector.
void GroupShape::choose_lanes() {
  along_ = sums_along(kernel_, kernel_.axes.back().name);
  vectors_ = all_;
  if (kernel_.stages[0].accumulator != DType::f32) return;
  if (along_) {
    if (!fills_vectors(kernel_.axes.back())) return;
    result_lanes_ = kLanes;
    vectors_ = floor_div(all_, Expr(kLanes));
    return;
  }
  const int last = static_cast<int>(kernel_.reduction.size()) - 1;
  const auto over_last = [&](const std::vector<int>& axes) { return !axes.empty() && axes.back() == last; };
  if (std::all_of(kernel_.stages.begin(), kernel_.stages.end(), [&](const Stage& s) { return over_last(s.axes); }) &&
      std::all_of(kernel_.stores.begin(), kernel_.stores.end(),
                  [&](const Store& s) { return s.row_axes.empty() || over_last(s.row_axes); }) &&
      fills_vectors(kernel_.reduction.back()))
    term_lanes_ = kLanes;
}

// Results of a group lie side by side where loads run along them and groups are many; the rest of the group shares terms.
// Otherwise terms lie side by side, and so do those who share them.
void GroupShape::choose_shape() {
  const std::int64_t all = vectors_.is_constant() ? vectors_.value() : std::max(typical_extent(vectors_), kUnknownResults),
                     units = std::max(1, target_.compute_units);
  if (along_) {
    if (result_lanes_ > 1) results_ = kFewestVectors;
    while (results_ < (result_lanes_ > 1 ? kMostVectorsOfItem : kMostResults) && results_ * 2 <= all / units) results_ *= 2;
    sharers_ = std::max(1, target_.work_group / results_);
    while ((sharers_ & (sharers_ - 1)) != 0) --sharers_;
    return;
  }
  std::int64_t longest = 0;
  for (const Stage& s : kernel_.stages) longest = std::max(longest, likely_terms(s));
  sharers_ = 1;
  while (sharers_ * 2 <= std::min(kSharers, target_.work_group) && longest > sharers_ * term_lanes_) sharers_ *= 2;
  // Work-items that hold weights ahead take more registers each.
  const std::int64_t busy = load_of_weights() ? kBusyItems / 2 : kBusyItems;
  while (sharers_ * 2 <= target_.work_group && all * sharers_ < units * busy && longest >= 2 * kFewTermsOfItem * sharers_)
    sharers_ *= 2;
  while (results_ * 2 * sharers_ <= target_.work_group && results_ * 2 <= all / units) results_ *= 2;
}

// One group computes all results: as many at once as leave each some work-items.
void GroupShape::choose_shape_of_group() {
  const std::int64_t fewest = along_ ? kFewestSharers : kVectorParts,
                     all = vectors_.is_constant() ? vectors_.value() : kUnknownResults;
  while (results_ < all && results_ * 2 * fewest <= items_) results_ *= 2;
  sharers_ = items_ / results_;
}

// The load for the last of several sums that each result makes of its own, a weight: asked for before the first sum, memory
// sends it while the others are added up.
std::optional<NodeId> GroupShape::load_of_weights() const {
  const Stage& last = kernel_.stages.back();
  if (items_ > 0 || kernel_.stages.size() < 2 || result_lanes_ > 1 || last.accumulator != DType::f32) return std::nullopt;
  Kernel part = kernel_;
  keep_needed(part, {last.body});
  std::optional<NodeId> found;
  for (std::size_t i = 0; i < part.nodes.size(); ++i) {
    const ScalarNode& n = part.nodes[i];
    if (n.kind != ScalarNode::Kind::load || !n.guard.empty() || reads_values(n.index)) continue;
    const auto runs_along = [&](const Axis& a) { return n.index.uses(a.name); };
    if (std::none_of(kernel_.axes.begin(), kernel_.axes.end(), runs_along) || !runs_along(reduction(last.axes.back())))
      continue;
    if (found) return std::nullopt;
    found = static_cast<NodeId>(i);
  }
  return found;
}

// Nothing where a work-item has many terms of it or an unknown number: they lie in registers, and loops are unrolled.
void GroupShape::choose_ahead() {
  const Expr step(std::int64_t{sharers_} * term_lanes_), all = terms(kernel_.stages.back().axes), rounds = floor_div(all, step);
  ahead_ = load_of_weights();
  if (ahead_ && rounds.is_constant() && rounds.value() > 1 && rounds.value() <= kMostAhead && rounds * step == all)
    unroll_ = std::max(unroll_, static_cast<int>(rounds.value()));
  else
    ahead_.reset();
}

int GroupShape::parts_of_result(int sums) const {
  return result_lanes_ * term_lanes_ == 1 ? kSharers : sums >= kManySums ? 1 : kVectorParts;
}

bool GroupShape::sums_sharers(const Stage& s, int parts) const {
  return megakernel_groups_ > 0 && s.combine == Stage::Combine::sum && s.accumulator == DType::f32 && term_lanes_ > 1 &&
         parts == kVectorParts && sharers_ >= kVectorParts;
}

bool GroupShape::carries(const Stage& s) const {
  return s.combine == Stage::Combine::sum && s.accumulator == DType::f32 &&
         static_cast<double>(typical_extent(terms(s.axes)) / (sharers_ * term_lanes_)) > cost::kCarriedSum;
}

void GroupShape::choose_each(const Emitter& e) {
  if (megakernel_groups_ == 0 || along_ || !vectors_.is_constant()) return;
  const Stage& last = kernel_.stages.back();
  const auto is_one = [](const Axis& a) { return a.extent == Expr(1); };
  if (std::any_of(kernel_.axes.begin(), kernel_.axes.end() - 1, [&](const Axis& a) { return !is_one(a); }) || carries(last) ||
      std::any_of(kernel_.stages.begin(), kernel_.stages.end() - 1,
                  [&](const Stage& s) { return e.depends(s.body, kernel_.axes.back().name); }) ||
      (kernel_.stages.size() > 1 && !e.depends(last.body, kernel_.axes.back().name)) ||
      std::any_of(kernel_.stores.begin(), kernel_.stores.end(), [](const Store& s) { return !s.row_axes.empty(); }) ||
      !sums_sharers(last, parts_of_result(1)))
    return;
  several_ = true;
  const std::int64_t tiles = (vectors_.value() + results_ - 1) / results_;
  each_ = static_cast<int>(
      std::clamp<std::int64_t>((tiles + megakernel_groups_ - 1) / megakernel_groups_, 1, std::min(kMostEach, sharers_)));
}

}  // namespace oclc
