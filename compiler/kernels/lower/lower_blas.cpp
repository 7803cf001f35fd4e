#include "compiler/kernels/lower/lower_blas.h"

#include <algorithm>

#include "compiler/kernels/index_maps.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

constexpr char kRow[] = "%row", kColumn[] = "%column", kInner[] = "%inner", kGroup[] = "%group";

// The axes of a kernel that play one part, as one flat axis.
struct Flat {
  Expr extent = 1;
  Shape shape;
  std::vector<const Axis*> axes;

  Flat(const std::vector<Axis>& all, const std::vector<int>& which) {
    for (const int i : which) {
      axes.push_back(&all[static_cast<std::size_t>(i)]);
      shape.push_back(axes.back()->extent);
      extent *= shape.back();
    }
  }
  void substitute_by(const char* name, Substitution& into) const {
    const auto coords = unflatten(Expr::axis(name, extent), shape);
    for (std::size_t i = 0; i < axes.size(); ++i) into[axes[i]->name] = coords[i];
  }
  Expr position() const {
    std::vector<Expr> coords;
    for (const Axis* a : axes) coords.push_back(a->var);
    return flatten(coords, shape);
  }
};

// A matrix in memory: element (first, second) of group g at offset + g * group + first * rows + second * columns.
struct Strides {
  Expr offset, group, first, second;
};

std::optional<Expr> stride(const Expr& index, const char* name, const Expr& extent) {
  if (extent == Expr(1) || !index.uses(name)) return Expr(0);
  return index.coefficient(name);
}

std::optional<Strides> strides_of(const Expr& index, const Substitution& flat, const char* first, const Expr& rows,
                                  const char* second, const Expr& columns, const Expr& groups) {
  const Expr e = index.substitute(flat);
  const auto g = stride(e, kGroup, groups), a = stride(e, first, rows), b = stride(e, second, columns);
  if (!g || !a || !b) return std::nullopt;
  const Expr offset = e.substitute({{kGroup, Expr(0)}, {first, Expr(0)}, {second, Expr(0)}});
  return Strides{offset, *g, *a, *b};
}

struct StoredMatrix {
  Expr leading;
  bool transposed = false;
};

// Row-major rows x columns, or its transpose.
std::optional<StoredMatrix> matrix_of(const Strides& s, const Expr& rows, const Expr& columns) {
  const auto fits = [](const Expr& unit, const Expr& step, const Expr& inner, const Expr& outer) {
    const bool unit_step = unit == Expr(1) || inner == Expr(1);
    return unit_step && (outer == Expr(1) || known_less_equal(inner, step));
  };
  if (fits(s.second, s.first, columns, rows)) return StoredMatrix{rows == Expr(1) ? columns : s.first, false};
  if (fits(s.first, s.second, rows, columns)) return StoredMatrix{columns == Expr(1) ? rows : s.second, true};
  return std::nullopt;
}

bool plain_load(const Kernel& kernel, const ScalarNode& n) {
  if (n.kind != ScalarNode::Kind::load || !n.guard.empty()) return false;
  if (kernel.operands[static_cast<std::size_t>(n.operand)].dtype != DType::f32) return false;
  return !reads_values(n.index);
}

// Makes nodes that no store needs constants and drops operands that nothing uses.
void prune(Kernel& kernel) {
  std::vector<NodeId> roots;
  for (const Store& store : kernel.stores) {
    roots.push_back(store.value);
    for (const std::string& s : store.index.symbols()) {
      if (const auto id = dynamic_index(s)) roots.push_back(*id);
    }
  }
  keep_needed(kernel, std::move(roots));
  drop_unused_operands(kernel);
}

// The kernel without its product: it loads what `g` stores to its buffer, at `index`.
Kernel epilogue_of(const Kernel& kernel, const Gemm& g, const Expr& index) {
  Kernel epilogue = kernel;
  epilogue.name = kernel.name + "_epilogue";
  epilogue.anchor = Anchor::pointwise;
  epilogue.contraction.reset();
  epilogue.stages.clear();
  epilogue.reduction.clear();
  epilogue.flops = kernel.flops - g.flops;
  epilogue.bytes = g.batch * g.stride_c * Expr(8);
  Operand product;
  product.buffer = g.c;
  product.name = "product";
  epilogue.operands.push_back(product);
  for (ScalarNode& n : epilogue.nodes) {
    if (n.kind != ScalarNode::Kind::reduced) continue;
    n.kind = ScalarNode::Kind::load;
    n.stage = -1;
    n.operand = static_cast<int>(epilogue.operands.size()) - 1;
    n.index = index;
  }
  prune(epilogue);
  return epilogue;
}

}  // namespace

std::optional<BlasLowering> lower_blas(const Kernel& kernel, const std::function<int(const Expr& elements)>& new_buffer,
                                       std::string& why_not) {
  const auto refuse = [&](const char* reason) {
    why_not = reason;
    return std::nullopt;
  };
  if (!kernel.contraction || kernel.stages.size() != 1) return refuse("not a contraction");
  const Contraction& c = *kernel.contraction;
  const ScalarNode &a = kernel.nodes[static_cast<std::size_t>(c.a)], &b = kernel.nodes[static_cast<std::size_t>(c.b)];
  if (kernel.stages[0].accumulator != DType::f32) return refuse("the library multiplies single precision only");
  if (!plain_load(kernel, a) || !plain_load(kernel, b)) return refuse("an operand is padded or computed while it is read");
  const Flat group(kernel.axes, c.batch), row(kernel.axes, c.m), column(kernel.axes, c.n), inner(kernel.reduction, c.k);
  Substitution flat;
  group.substitute_by(kGroup, flat);
  row.substitute_by(kRow, flat);
  column.substitute_by(kColumn, flat);
  inner.substitute_by(kInner, flat);
  const auto sa = strides_of(a.index, flat, kRow, row.extent, kInner, inner.extent, group.extent),
             sb = strides_of(b.index, flat, kInner, inner.extent, kColumn, column.extent, group.extent);
  if (!sa || !sb) return refuse("an operand has no regular strides");
  const auto ma = matrix_of(*sa, row.extent, inner.extent), mb = matrix_of(*sb, inner.extent, column.extent);
  if (!ma || !mb) return refuse("an operand is not a matrix with unit stride");

  BlasLowering result;
  Gemm& g = result.gemm;
  g.name = kernel.name + "_gemm";
  g.a = kernel.operands[static_cast<std::size_t>(a.operand)].buffer;
  g.b = kernel.operands[static_cast<std::size_t>(b.operand)].buffer;
  g.offset_a = sa->offset;
  g.offset_b = sb->offset;
  g.m = row.extent;
  g.n = column.extent;
  g.k = inner.extent;
  g.lda = ma->leading;
  g.ldb = mb->leading;
  g.trans_a = ma->transposed;
  g.trans_b = mb->transposed;
  g.batch = group.extent;
  g.stride_a = sa->group;
  g.stride_b = sb->group;
  g.sources = kernel.sources;
  g.flops = group.extent * row.extent * column.extent * inner.extent * Expr(2);
  g.bytes = group.extent * (row.extent * inner.extent + inner.extent * column.extent + row.extent * column.extent) * Expr(4);

  const auto is_sum = [&](NodeId id) { return kernel.nodes[static_cast<std::size_t>(id)].kind == ScalarNode::Kind::reduced; };
  if (kernel.stores.size() == 1 && is_sum(kernel.stores[0].value) && kernel.stores[0].guard.empty()) {
    const Store& store = kernel.stores[0];
    const auto sc = strides_of(store.index, flat, kRow, row.extent, kColumn, column.extent, group.extent);
    const auto mc = sc ? matrix_of(*sc, row.extent, column.extent) : std::nullopt;
    if (mc && !mc->transposed && kernel.operands[static_cast<std::size_t>(store.operand)].dtype == DType::f32) {
      g.c = kernel.operands[static_cast<std::size_t>(store.operand)].buffer;
      g.offset_c = sc->offset;
      g.ldc = mc->leading;
      g.stride_c = sc->group;
      return result;
    }
  }
  g.ldc = column.extent;
  g.stride_c = row.extent * column.extent;
  g.c = new_buffer(group.extent * g.stride_c);

  result.epilogue =
      epilogue_of(kernel, g, (group.position() * row.extent + row.position()) * column.extent + column.position());
  return result;
}

}  // namespace oclc
