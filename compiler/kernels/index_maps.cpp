#include "compiler/kernels/index_maps.h"

#include <algorithm>
#include <array>

#include "compiler/support/error.h"

namespace oclc {
namespace {

using Sources = std::vector<MappedElement>;
using Ints = std::vector<std::int64_t>;

Sources reshape(const IndexMapContext& c) {
  return {{0, unflatten(flatten(c.coords, c.node.output()->type.shape), c.node.inputs[0]->type.shape), {}}};
}

Sources transpose(const IndexMapContext& c) {
  const auto& perm = c.node.get<Ints>("perm");
  std::vector<Expr> coords(c.coords.size());
  for (std::size_t i = 0; i < perm.size(); ++i) coords[static_cast<std::size_t>(perm[i])] = c.coords[i];
  return {{0, coords, {}}};
}

Sources expand(const IndexMapContext& c) { return {{0, broadcast_coords(c.coords, c.node.inputs[0]->type.shape), {}}}; }

Sources slice(const IndexMapContext& c) {
  const auto& starts = c.node.get<std::vector<Expr>>("starts");
  const auto& steps = c.node.get<Ints>("steps");
  std::vector<Expr> coords;
  for (std::size_t i = 0; i < starts.size(); ++i) coords.push_back(starts[i] + c.coords[i] * Expr(steps[i]));
  return {{0, coords, {}}};
}

Sources pad(const IndexMapContext& c) {
  const auto& before = c.node.get<std::vector<Expr>>("before");
  const std::string mode = c.node.get_or<std::string>("mode", "constant");
  const Shape& shape = c.node.inputs[0]->type.shape;
  MappedElement source{0, {}, {}};
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Expr at = c.coords[i] - before[i], last = shape[i] - 1;
    if (mode == "constant") {
      source.coords.push_back(at);
      add_condition(source.guard, at);
      add_condition(source.guard, last - at);
    } else if (mode == "edge") {
      source.coords.push_back(min(max(at, Expr(0)), last));
    } else {
      OCLC_CHECK(mode == "reflect", "pad mode " + mode);
      const Expr folded = max(at, -at);  // left of 0
      source.coords.push_back(min(folded, last * Expr(2) - folded));
    }
  }
  return {source};
}

Sources concat(const IndexMapContext& c) {
  const auto axis = static_cast<std::size_t>(c.node.get<std::int64_t>("axis"));
  Sources all;
  Expr start(0);
  for (std::size_t i = 0; i < c.node.inputs.size(); ++i) {
    const Expr size = c.node.inputs[i]->type.shape[axis];
    MappedElement source{i, c.coords, {}};
    source.coords[axis] = c.coords[axis] - start;
    add_condition(source.guard, source.coords[axis]);
    add_condition(source.guard, size - 1 - source.coords[axis]);
    start += size;
    all.push_back(std::move(source));
  }
  return all;
}

Sources gather(const IndexMapContext& c) {
  const auto axis = static_cast<std::size_t>(c.node.get<std::int64_t>("axis"));
  const std::size_t rank = c.node.inputs[1]->type.rank();
  const auto at = c.coords.begin() + static_cast<std::ptrdiff_t>(axis);
  const std::vector<Expr> index_coords(at, at + static_cast<std::ptrdiff_t>(rank));
  std::vector<Expr> coords(c.coords.begin(), at);
  coords.push_back(c.integer_at(1, index_coords, c.node.inputs[0]->type.shape[axis]));
  coords.insert(coords.end(), at + static_cast<std::ptrdiff_t>(rank), c.coords.end());
  return {{0, coords, {}}};
}

Sources gather_nd(const IndexMapContext& c) {
  const auto batch = static_cast<std::size_t>(c.node.get_or<std::int64_t>("batch_dims", 0));
  const Shape &data = c.node.inputs[0]->type.shape, &indices = c.node.inputs[1]->type.shape;
  const std::size_t prefix = indices.size() - 1;
  const auto depth = static_cast<std::size_t>(indices.back().value());
  std::vector<Expr> coords(c.coords.begin(), c.coords.begin() + static_cast<std::ptrdiff_t>(batch));
  for (std::size_t k = 0; k < depth; ++k) {
    std::vector<Expr> index_coords(c.coords.begin(), c.coords.begin() + static_cast<std::ptrdiff_t>(prefix));
    index_coords.emplace_back(static_cast<std::int64_t>(k));
    coords.push_back(c.integer_at(1, index_coords, data[batch + k]));
  }
  coords.insert(coords.end(), c.coords.begin() + static_cast<std::ptrdiff_t>(prefix), c.coords.end());
  return {{0, coords, {}}};
}

Sources gather_elements(const IndexMapContext& c) {
  const auto axis = static_cast<std::size_t>(c.node.get<std::int64_t>("axis"));
  std::vector<Expr> coords = c.coords;
  coords[axis] = c.integer_at(1, c.coords, c.node.inputs[0]->type.shape[axis]);
  return {{0, coords, {}}};
}

Sources unfold(const IndexMapContext& c) {
  const auto &kernel = c.node.get<Ints>("kernel"), &strides = c.node.get<Ints>("strides"),
             &dilations = c.node.get<Ints>("dilations"), &pads = c.node.get<Ints>("pads");
  const std::size_t axes = kernel.size(), lead = c.node.get<std::int64_t>("group") > 1 ? 1 : 0;
  const Shape& x = c.node.inputs[0]->type.shape;
  MappedElement source{0, {c.coords[lead]}, {}};
  source.coords.push_back(lead ? c.coords[0] * c.node.output()->type.shape.back() + c.coords.back() : c.coords.back());
  for (std::size_t i = 0; i < axes; ++i) {
    const Expr at =
        c.coords[lead + 1 + i] * Expr(strides[i]) + c.coords[lead + 1 + axes + i] * Expr(dilations[i]) - Expr(pads[i]);
    source.coords.push_back(at);
    add_condition(source.guard, at);
    add_condition(source.guard, x[i + 2] - 1 - at);
  }
  return {source};
}

Sources spread(const IndexMapContext& c) {
  const auto &starts = c.node.get<Ints>("starts"), &strides = c.node.get<Ints>("strides");
  const Shape& x = c.node.inputs[0]->type.shape;
  MappedElement source{0, {}, {}};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const Expr at = c.coords[i] - Expr(starts[i]), from = floor_div(at, Expr(strides[i]));
    source.coords.push_back(from);
    add_condition(source.guard, at);
    add_condition(source.guard, x[i] - 1 - from);
    if (strides[i] > 1) add_condition(source.guard, -floor_mod(at, Expr(strides[i])));
  }
  return {source};
}

Sources store(const IndexMapContext& c) { return {{0, c.coords, {}}}; }

constexpr std::array<IndexMap, 12> kIndexMaps = {{{"reshape", reshape},
                                                  {"transpose", transpose},
                                                  {"expand", expand},
                                                  {"slice", slice},
                                                  {"pad", pad},
                                                  {"concat", concat},
                                                  {"gather", gather},
                                                  {"gather_nd", gather_nd},
                                                  {"gather_elements", gather_elements},
                                                  {"unfold", unfold},
                                                  {"spread", spread},
                                                  {"store", store}}};

}  // namespace

const IndexMap* find_index_map(std::string_view op) {
  const auto at = std::find_if(kIndexMaps.begin(), kIndexMaps.end(), [&](const IndexMap& row) { return row.op == op; });
  return at == kIndexMaps.end() ? nullptr : &*at;
}

std::vector<Expr> unflatten(const Expr& flat, const Shape& shape) {
  std::vector<Expr> coords(shape.size());
  Expr rest = flat;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == Expr(0) || shape[i] == Expr(1)) {
      coords[i] = Expr(0);
      continue;
    }
    coords[i] = i == 0 ? rest : floor_mod(rest, shape[i]);
    rest = floor_div(rest, shape[i]);
  }
  return coords;
}

Expr flatten(const std::vector<Expr>& coords, const Shape& shape) {
  Expr flat(0);
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + coords[i];
  return flat;
}

std::vector<Expr> broadcast_coords(const std::vector<Expr>& coords, const Shape& from) {
  std::vector<Expr> result;
  const std::size_t skip = coords.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) result.push_back(from[i] == Expr(1) ? Expr(0) : coords[skip + i]);
  return result;
}

void add_condition(std::vector<Expr>& guard, const Expr& condition) {
  if (known_nonnegative(condition) || std::find(guard.begin(), guard.end(), condition) != guard.end()) return;
  guard.push_back(condition);
}

}  // namespace oclc
