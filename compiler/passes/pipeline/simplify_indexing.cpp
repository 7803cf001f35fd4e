// Gathers whose positions are known (one number, or a ramp along one axis) and provably inside the data become slices, reshapes
// and expands: index maps that cost nothing. Without it they would be loads of positions and dependent loads of data, as
// kernels.
#include <algorithm>

#include "compiler/ir/op_def.h"
#include "compiler/passes/pipeline/element.h"
#include "compiler/passes/pipeline/pass.h"
#include "compiler/passes/pipeline/rewrite.h"

namespace oclc {
namespace {

// Where along one axis of the data an output reads: at start + step * (its position on output axis `axis`).
struct Source {
  std::optional<std::size_t> axis;
  Expr start, size = 1;
  std::int64_t step = 1;
  bool inside = true;  // provably within the data
};

// Positions given by an integer tensor's element, along an axis of size `dim`.
std::optional<Source> source_of(const std::optional<Expr>& position, const Shape& shape, const Expr& dim) {
  auto ramp = position ? ramp_of(*position, shape.size()) : std::nullopt;
  if (!ramp) return std::nullopt;
  if (!known_nonnegative(*position)) {
    if (!known_less(*position, Expr(0))) return std::nullopt;
    ramp->start += dim;
  }
  Source source{ramp->axis, ramp->start};
  if (ramp->axis) {
    const auto step = ramp->step.constant();
    if (!step || *step == 0) return std::nullopt;
    source.step = *step;
    source.size = shape[*ramp->axis];
  }
  const Expr first = source.start, last = first + (source.size - 1) * Expr(source.step);
  source.inside = known_nonnegative(first) && known_less(first, dim) && known_nonnegative(last) && known_less(last, dim);
  return source;
}

// The data's elements along `axis` at the source's positions.
Value* gathered(Rewriter& rewrite, Value* data, std::size_t axis, const Source& source) {
  Value* positions = rewrite.call("iota", {},
                                  {{"shape", Shape{source.size}},
                                   {"axis", std::int64_t{0}},
                                   {"dtype", DType::i64},
                                   {"start", std::vector<Expr>{source.start}},
                                   {"step", std::vector<Expr>{Expr(source.step)}}});
  return rewrite.call("gather", {data, positions}, {{"axis", static_cast<std::int64_t>(axis)}});
}

// The output whose position (o0, o1, ...) reads the data at `sources`, one per axis of the data. No two sources share an output
// axis.
bool replace_by_slices(Graph& graph, Node* node, std::vector<Source> sources) {
  const Shape& shape = node->output()->type.shape;
  std::vector<Expr> starts, sizes;
  Ints steps;
  std::vector<std::pair<std::size_t, std::size_t>> order;  // output axis, data axis
  for (std::size_t i = 0; i < sources.size(); ++i) {
    starts.push_back(sources[i].start);
    sizes.push_back(sources[i].size);
    steps.push_back(sources[i].step);
    if (!sources[i].axis) continue;
    for (const auto& [axis, other] : order) {
      if (axis == *sources[i].axis) return false;
    }
    order.emplace_back(*sources[i].axis, i);
  }
  Rewriter rewrite(graph, node);
  Value* data = node->inputs[0];
  for (std::size_t i = 0; i < sources.size(); ++i) {
    // Positions that may lie outside stay positions, along their one axis.
    if (sources[i].inside) continue;
    data = gathered(rewrite, data, i, sources[i]);
    starts[i] = Expr(0);
    steps[i] = 1;
  }
  Value* cut = rewrite.slice(data, starts, sizes, steps);
  Shape kept;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].axis) kept.push_back(sizes[i]);
  }
  cut = rewrite.reshape(cut, kept);
  std::vector<std::pair<std::size_t, std::size_t>> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  Ints perm;
  Shape wanted(shape.size(), Expr(1));
  for (const auto& entry : sorted) {
    perm.push_back(std::find(order.begin(), order.end(), entry) - order.begin());
    wanted[entry.first] = shape[entry.first];
  }
  cut = rewrite.reshape(rewrite.transpose(cut, perm), wanted);
  return rewrite.replace(cut);
}

// All of a data axis, read along an output axis.
Source whole(std::size_t axis, const Expr& size) { return {axis, Expr(0), size, 1}; }

bool simplify_gather(Graph& graph, Node* node) {
  if (!is(node, "gather")) return false;
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  const auto axis = static_cast<std::size_t>(node->get<std::int64_t>("axis"));
  auto source = source_of(element(indices, positions(indices->type.shape)), indices->type.shape, data->type.shape[axis]);
  if (!source || !source->inside) return false;
  std::vector<Source> sources;
  for (std::size_t i = 0; i < data->type.rank(); ++i) {
    const std::size_t to = i < axis ? i : i + indices->type.rank() - 1;
    sources.push_back(whole(to, data->type.shape[i]));
  }
  if (source->axis) *source->axis += axis;
  sources[axis] = *source;
  return replace_by_slices(graph, node, sources);
}

bool simplify_gather_nd(Graph& graph, Node* node) {
  if (!is(node, "gather_nd")) return false;
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  const auto batch = static_cast<std::size_t>(node->get<std::int64_t>("batch_dims"));
  const Shape& shape = indices->type.shape;
  if (!shape.back().is_constant()) return false;
  const auto depth = static_cast<std::size_t>(shape.back().value());
  const Shape outer(shape.begin(), shape.end() - 1);
  std::vector<Source> sources;
  for (std::size_t i = 0; i < batch; ++i) sources.push_back(whole(i, data->type.shape[i]));
  std::vector<Expr> at = positions(outer);
  at.emplace_back(0);
  for (std::size_t i = 0; i < depth; ++i) {
    at.back() = Expr(static_cast<std::int64_t>(i));
    const auto source = source_of(element(indices, at), outer, data->type.shape[batch + i]);
    if (!source) return false;
    sources.push_back(*source);
  }
  for (std::size_t i = batch + depth; i < data->type.rank(); ++i)
    sources.push_back(whole(outer.size() + i - batch - depth, data->type.shape[i]));
  return replace_by_slices(graph, node, sources);
}

bool simplify_gather_elements(Graph& graph, Node* node) {
  if (!is(node, "gather_elements")) return false;
  const Value *data = node->inputs[0], *indices = node->inputs[1];
  const auto axis = static_cast<std::size_t>(node->get<std::int64_t>("axis"));
  const Shape& shape = indices->type.shape;
  const auto source = source_of(element(indices, positions(shape)), shape, data->type.shape[axis]);
  if (!source || !source->inside) return false;
  std::vector<Source> sources;
  for (std::size_t i = 0; i < shape.size(); ++i) sources.push_back(i == axis ? *source : whole(i, shape[i]));
  return replace_by_slices(graph, node, sources);
}

}  // namespace

bool simplify_indexing(Graph& graph, const PassContext&) {
  constexpr Rule kRules[] = {simplify_gather, simplify_gather_nd, simplify_gather_elements};
  return apply_rules(graph, kRules);
}

}  // namespace oclc
