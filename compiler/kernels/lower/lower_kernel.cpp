#include "compiler/kernels/lower/lower_kernel.h"

#include <algorithm>
#include <array>

#include "compiler/kernels/identifier.h"
#include "compiler/kernels/index_maps.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

struct AnchorRow {
  std::string_view op;
  Anchor anchor;
  void (*lower)(KernelBuilder&, const Node&);
};

constexpr std::array<AnchorRow, 21> kAnchors = {
    {{"matmul", Anchor::contraction, lower_matmul},
     {"conv", Anchor::contraction, lower_conv},
     {"max_pool", Anchor::reduce, lower_pool},
     {"avg_pool", Anchor::reduce, lower_pool},
     {"reduce_sum", Anchor::reduce, lower_reduction},
     {"reduce_mean", Anchor::reduce, lower_reduction},
     {"reduce_max", Anchor::reduce, lower_reduction},
     {"reduce_min", Anchor::reduce, lower_reduction},
     {"reduce_prod", Anchor::reduce, lower_reduction},
     {"argmax", Anchor::reduce, lower_reduction},
     {"argmin", Anchor::reduce, lower_reduction},
     {"softmax", Anchor::row, lower_row},
     {"log_softmax", Anchor::row, lower_row},
     {"layer_norm", Anchor::row, lower_row},
     {"rms_norm", Anchor::row, lower_row},
     {"cumsum", Anchor::reduce, lower_cumsum},
     {"winograd_input", Anchor::winograd_input, lower_winograd_input},
     {"winograd_output", Anchor::winograd_output, lower_winograd_output},
     {"winograd_gradient", Anchor::winograd_input, lower_winograd_gradient},
     {"winograd_filter_gradient", Anchor::winograd_output, lower_winograd_filter_gradient},
     {"", Anchor::pointwise, nullptr}}};

// Coordinates of a group value from those of the group value it is made of.
std::vector<Expr> forward_coords(const Node& node, const std::vector<Expr>& from) {
  if (node.op->name == "reshape") return unflatten(flatten(from, node.inputs[0]->type.shape), node.output()->type.shape);
  if (node.op->name == "transpose") {
    std::vector<Expr> coords;
    for (const std::int64_t p : node.get<std::vector<std::int64_t>>("perm"))
      coords.push_back(from[static_cast<std::size_t>(p)]);
    return coords;
  }
  // Broadcasting may have put unit dimensions in front.
  std::vector<Expr> coords(node.output()->type.rank() - from.size(), Expr(0));
  coords.insert(coords.end(), from.begin(), from.end());
  return coords;
}

std::vector<int> row_axes_of(const Kernel& kernel, const std::vector<Expr>& coords) {
  std::vector<int> axes;
  for (std::size_t i = 0; i < kernel.reduction.size(); ++i) {
    const bool used =
        std::any_of(coords.begin(), coords.end(), [&](const Expr& e) { return e.uses(kernel.reduction[i].name); });
    if (used) axes.push_back(static_cast<int>(i));
  }
  return axes;
}

// Axes of a pointwise kernel, outermost address first.
std::vector<Expr> pointwise_axes(KernelBuilder& b, const TensorType& type, const Layout& layout) {
  std::vector<Expr> coords(type.rank());
  for (std::size_t i = 0; i < type.rank(); ++i) {
    const std::size_t d = layout.is_row_major() ? i : static_cast<std::size_t>(layout.order[i]);
    coords[d] = b.add_axis("i" + std::to_string(d), type.shape[d]);
  }
  return coords;
}

// The end of the node's name in the model, without what passes appended to it.
std::string identifier(std::string_view source) {
  constexpr std::size_t kLongest = 48;
  const std::string id = identifier_part(source.substr(0, source.find('+')));
  return id.size() > kLongest ? id.substr(id.size() - kLongest) : id;
}

// "<node>_<operators>": the prefix keeps it apart from the words of OpenCL C.
std::string kernel_name(const Group& group) {
  std::string name = "k_" + identifier(group.nodes.front()->source);
  int count = 0;
  for (const Node* node : group.nodes) {
    if (is_bijective_movement(*node) && group.nodes.size() > 1) continue;
    if (++count > 4) break;
    name += (name.ends_with('_') ? "" : "_") + std::string(node->op->name);
  }
  return name;
}

// Binds the results of the group's nodes from `first` on, where `guard` holds.
void lower_nodes(KernelBuilder& b, const Group& group, std::size_t first, const std::vector<Expr>& guard, bool count) {
  std::vector<Expr> root_coords;
  for (std::size_t i = first; i < group.nodes.size(); ++i) {
    const Node& node = *group.nodes[i];
    if (node.op->kind == OpKind::reduction && group.anchor && group.anchor->op->kind == OpKind::reduction) {
      b.note(node);  // a sibling of the anchor
      b.shares_axes = true;
      lower_reduction(b, node);
      continue;
    }
    const Value* from = nullptr;
    for (const Value* input : node.inputs) {
      if (b.bound_coords(input) && (!from || input->type.rank() > from->type.rank())) from = input;
    }
    const bool in_row = !b.row_coords.empty() && node.op->kind == OpKind::elementwise &&
                        node.output()->type.shape == group.anchor->inputs[0]->type.shape;
    if (!from && !in_row) {  // a root of a pointwise kernel; all have one shape
      if (root_coords.empty()) root_coords = pointwise_axes(b, node.output()->type, node.output()->layout);
      const std::vector<Expr>& coords = root_coords;
      b.bind(node.output(), coords, b.root(node.output(), coords));
      b.kernel.is_copy = node.op->kind == OpKind::movement;
      continue;
    }
    const std::vector<Expr> coords = in_row ? b.row_coords : forward_coords(node, *b.bound_coords(from));
    if (count) b.note(node);
    if (is_bijective_movement(node)) {
      b.bind(node.output(), coords, b.element(from, *b.bound_coords(from)));
      continue;
    }
    std::vector<NodeId> args;
    for (const Value* input : node.inputs) {
      args.push_back(b.bound_coords(input) ? b.element(input, *b.bound_coords(input))
                                           : b.element(input, broadcast_coords(coords, input->type.shape), guard));
    }
    NodeId result = -1;
    if (!node.op->scalar) {
      result = b.converted(node, args[0]);
    } else {
      result = b.apply(*node.op, std::move(args));
      b.kernel.nodes[static_cast<std::size_t>(result)].dtype = computed_as(node.output()->type.dtype);
    }
    b.bind(node.output(), coords, result);
  }
}

void store_outputs(KernelBuilder& b, const Group& group, const std::vector<Expr>& guard) {
  for (const Value* output : group.outputs) {
    const std::vector<Expr> coords = *b.bound_coords(output);
    b.store(output, coords, b.element(output, coords), row_axes_of(b.kernel, coords), guard);
    if (b.kernel.anchor == Anchor::reduce && !b.kernel.stores.back().row_axes.empty()) b.kernel.anchor = Anchor::row;
  }
}

}  // namespace

Kernel lower_group(const Group& group, const LoweringInputs& inputs) {
  KernelBuilder b(inputs);
  b.kernel.name = kernel_name(group);
  if (group.anchor && body_of(*group.anchor)) {
    b.note(*group.anchor);
    lower_code(b, *group.anchor);
    b.kernel.anchor = Anchor::code;
  } else if (group.anchor) {
    const auto row =
        std::find_if(kAnchors.begin(), kAnchors.end(), [&](const AnchorRow& r) { return r.op == group.anchor->op->name; });
    OCLC_CHECK(row != kAnchors.end(), "no kernel for operator " + std::string(group.anchor->op->name));
    b.note(*group.anchor);
    row->lower(b, *group.anchor);
    b.kernel.anchor = row->anchor;
    if (b.kernel.anchor == Anchor::contraction && !b.kernel.contraction) b.kernel.anchor = Anchor::reduce;
  }
  const std::size_t first = group.anchor ? 1 : 0;
  const UserOp* own = group.anchor ? as_user_op(*group.anchor->op) : nullptr;
  if (b.parts.empty()) {
    lower_nodes(b, group, first, {}, true);
    store_outputs(b, group, {});
  }
  for (std::size_t i = 0; i < b.parts.size(); ++i) {
    const KernelBuilder::Part part = b.parts[i];
    b.bind(group.anchor->output(), part.coords, part.node);
    lower_nodes(b, group, first, part.guard, i == 0);
    store_outputs(b, group, part.guard);
  }
  if (own && own->bytes) b.kernel.bytes = own->bytes(*group.anchor).value_or(b.kernel.bytes);
  return std::move(b.kernel);
}

Kernel lower_copy(const Value* value, const Storage& target, const LoweringInputs& inputs) {
  KernelBuilder b(inputs);
  b.kernel.name = "k_" + (value->producer ? identifier(value->producer->source) + "_" : std::string()) + "copy";
  b.kernel.is_copy = true;
  const std::vector<Expr> coords = pointwise_axes(b, value->type, value->layout);
  if (value->producer) b.note(*value->producer);
  b.store_to(target, value->type.dtype, coords, b.element(value, coords), value->name.empty() ? "y" : value->name);
  return std::move(b.kernel);
}

}  // namespace oclc
