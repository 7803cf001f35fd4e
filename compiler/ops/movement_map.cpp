#include "compiler/ops/movement_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Exprs = std::vector<Expr>;

struct Call {
  const Node& node;
  const std::vector<Sizes>& shapes;
  const SymbolValues& symbols;
  const MovementVisit& visit;
  Sizes result;  // sizes of the result
};

Sizes bind(const Exprs& list, const SymbolValues& symbols) {
  Sizes values;
  for (const Expr& e : list) {
    const auto value = e.evaluate(symbols);
    if (!value) reject("values for the symbols", "none for " + e.text());
    values.push_back(*value);
  }
  return values;
}

void same_order(const Call& call) {
  const std::int64_t count = count_of(call.result);
  for (std::int64_t i = 0; i < count; ++i) call.visit(i, 0, i);
}

void strided(const Call& call, std::int64_t start, Sizes strides) {
  walk(call.result, {std::move(strides)}, [&](std::int64_t i, const Sizes& at) { call.visit(i, 0, start + at[0]); });
}

void transpose(const Call& call) {
  const Sizes own = row_major_strides(call.shapes[0]);
  Sizes strides;
  for (const std::int64_t axis : call.node.get<Sizes>("perm")) strides.push_back(own[static_cast<std::size_t>(axis)]);
  strided(call, 0, std::move(strides));
}

void expand(const Call& call) { strided(call, 0, broadcast_strides(call.shapes[0], call.result)); }

void slice(const Call& call) {
  const Sizes starts = bind(call.node.get<Exprs>("starts"), call.symbols);
  const auto& steps = call.node.get<Sizes>("steps");
  Sizes strides = row_major_strides(call.shapes[0]);
  std::int64_t start = 0;
  if (count_of(call.result) == 0) return;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const std::int64_t dim = call.shapes[0][i], last = starts[i] + (call.result[i] - 1) * steps[i];
    if (starts[i] < 0 || starts[i] >= dim || last < 0 || last >= dim) {
      reject(fmt::format("positions inside axis {} of size {}", i, dim), fmt::format("{} to {}", starts[i], last));
    }
    start += starts[i] * strides[i];
    strides[i] *= steps[i];
  }
  strided(call, start, std::move(strides));
}

// Position in the data for a position relative to its begin, or -1 for the fill value.
std::int64_t padded(std::int64_t i, std::int64_t size, const std::string& mode) {
  if (i >= 0 && i < size) return i;
  if (mode == "edge") return i < 0 ? 0 : size - 1;
  if (mode == "reflect") return i < 0 ? -i : 2 * (size - 1) - i;
  return -1;
}

void pad(const Call& call) {
  const Sizes before = bind(call.node.get<Exprs>("before"), call.symbols);
  const std::string& mode = call.node.get<std::string>("mode");
  const Sizes& data = call.shapes[0];
  const Sizes own = row_major_strides(data), outer = row_major_strides(call.result);
  const std::int64_t count = count_of(call.result);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = 0;
    for (std::size_t axis = 0; axis < data.size() && at >= 0; ++axis) {
      const std::int64_t position = padded(i / outer[axis] % call.result[axis] - before[axis], data[axis], mode);
      if (position >= data[axis] || (mode != "constant" && position < 0)) {
        reject(fmt::format("padding of axis {} shorter than its size", axis),
               fmt::format("size {} for mode {}", data[axis], mode));
      }
      at = position < 0 ? -1 : at + position * own[axis];
    }
    if (at >= 0) call.visit(i, 0, at);
  }
}

void concat(const Call& call) {
  const auto axis = static_cast<std::size_t>(call.node.get<std::int64_t>("axis"));
  const AxisView whole(call.result, axis);
  std::int64_t position = 0;
  for (std::int64_t o = 0; o < whole.outer; ++o) {
    for (std::size_t operand = 0; operand < call.shapes.size(); ++operand) {
      const std::int64_t block = call.shapes[operand][axis] * whole.inner;
      for (std::int64_t k = 0; k < block; ++k) call.visit(position++, operand, o * block + k);
    }
  }
}

struct MapRow {
  std::string_view op;
  void (*map)(const Call& call);
};

constexpr MapRow kMapRows[] = {
    {"reshape", same_order}, {"transpose", transpose}, {"expand", expand}, {"slice", slice}, {"pad", pad}, {"concat", concat}};

}  // namespace

void visit_movement(const Node& node, const std::vector<Sizes>& shapes, const SymbolValues& symbols,
                    const MovementVisit& visit) {
  const auto row =
      std::find_if(std::begin(kMapRows), std::end(kMapRows), [&](const MapRow& r) { return r.op == node.op->name; });
  OCLC_CHECK(row != std::end(kMapRows), "no index map of " + std::string(node.op->name));
  row->map({node, shapes, symbols, visit, bind_shape(node.output(0)->type.shape, symbols)});
}

}  // namespace oclc
