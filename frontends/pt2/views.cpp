#include "frontends/pt2/views.h"

#include <algorithm>

#include "frontends/pt2/onnx_call.h"
#include "frontends/pt2/table.h"

namespace oclc::pt2 {
namespace {

constexpr std::string_view kViews[] = {
    "aten._unsafe_view.default",
    "aten.adjoint.default",
    "aten.alias.default",
    "aten.as_strided.default",
    "aten.broadcast_to.default",
    "aten.chunk.default",
    "aten.conj.default",
    "aten.detach.default",
    "aten.detach_.default",
    "aten.diagonal.default",
    "aten.dsplit.array",
    "aten.dsplit.int",
    "aten.expand.default",
    "aten.expand_as.default",
    "aten.hsplit.array",
    "aten.hsplit.int",
    "aten.mH.default",
    "aten.mT.default",
    "aten.matrix_H.default",
    "aten.moveaxis.int",
    "aten.moveaxis.intlist",
    "aten.movedim.int",
    "aten.movedim.intlist",
    "aten.narrow.default",
    "aten.numpy_T.default",
    "aten.permute.default",
    "aten.positive.default",
    "aten.ravel.default",
    "aten.real.default",
    "aten.reshape_as.default",
    "aten.select.int",
    "aten.slice.Tensor",
    "aten.split.Tensor",
    "aten.split_with_sizes.default",
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
    "aten.swapaxes.default",
    "aten.swapdims.default",
    "aten.t.default",
    "aten.tensor_split.indices",
    "aten.tensor_split.sections",
    "aten.transpose.int",
    "aten.unbind.int",
    "aten.unflatten.int",
    "aten.unfold.default",
    "aten.unsqueeze.default",
    "aten.view.default",
    "aten.view_as.default",
    "aten.vsplit.array",
    "aten.vsplit.int",
    "prims.broadcast_in_dim.default",
    "prims.collapse_view.default",
    "prims.split_dim.default",
    "prims.squeeze.default",
    "prims.transpose.default",
    "prims.view_of.default",
};

// A view where strides, types or modes allow it, and a copy else.
constexpr std::string_view kViewsOrCopies[] = {
    "aten._reshape_alias.default",
    "aten.alpha_dropout.default",
    "aten.atleast_1d.Sequence",
    "aten.atleast_1d.default",
    "aten.atleast_2d.Sequence",
    "aten.atleast_2d.default",
    "aten.atleast_3d.Sequence",
    "aten.atleast_3d.default",
    "aten.broadcast_tensors.default",
    "aten.contiguous.default",
    "aten.dropout.default",
    "aten.feature_alpha_dropout.default",
    "aten.feature_dropout.default",
    "aten.flatten.using_ints",
    "aten.meshgrid.default",
    "aten.meshgrid.indexing",
    "aten.reshape.default",
    "aten.resolve_conj.default",
    "aten.resolve_neg.default",
    "aten.to.device",
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten.to.other",
    "aten.to.prim_Device",
    "aten.to.prim_dtype",
    "aten.to.prim_other",
    "aten.type_as.default",
    "prims.reshape.default",
};

template <std::size_t n>
bool is_one_of(const std::string_view (&names)[n], std::string_view target) {
  return std::find(std::begin(names), std::end(names), target) != std::end(names);
}

// Of those, with the elements in the same order.
constexpr std::string_view kReshapes[] = {
    "aten._unsafe_view.default",   "aten.alias.default",      "aten.conj.default",     "aten.detach.default",
    "aten.detach_.default",        "aten.positive.default",   "aten.ravel.default",    "aten.real.default",
    "aten.reshape_as.default",     "aten.squeeze.default",    "aten.squeeze.dim",      "aten.squeeze.dims",
    "aten.unflatten.int",          "aten.unsqueeze.default",  "aten.view.default",     "aten.view_as.default",
    "prims.collapse_view.default", "prims.split_dim.default", "prims.squeeze.default", "prims.view_of.default",
};

// Operators that write "src" into the view that another takes with the same arguments.
constexpr std::pair<std::string_view, std::string_view> kScatters[] = {
    {"aten.slice.Tensor", "aten.slice_scatter.default"},
    {"aten.select.int", "aten.select_scatter.default"},
    {"aten.diagonal.default", "aten.diagonal_scatter.default"},
    {"aten.as_strided.default", "aten.as_strided_scatter.default"},
};

std::string first_tensor(const ProgramNode& node) {
  for (const auto& [name, arg] : node.arguments)
    if (arg.is(Arg::Kind::tensor)) return arg.name;
  return {};
}

}  // namespace

void Views::note(const ProgramNode& node) {
  if (is_one_of(kViews, node.target)) {
    const std::string operand = first_tensor(node);
    for (const Arg& result : node.results) for_each_tensor(result, [&](const std::string& name) { add(name, operand, &node); });
  } else if (is_one_of(kViewsOrCopies, node.target)) {
    for (const auto& [name, arg] : node.arguments)
      for_each_tensor(arg, [&](const std::string& operand) {
        for (const Arg& result : node.results)
          for_each_tensor(result, [&](const std::string& one) { join(one, operand, true); });
      });
  }
}

std::shared_ptr<Views::Group> Views::group_of(const std::string& name) {
  std::shared_ptr<Group>& group = groups_[name];
  if (!group) group = std::make_shared<Group>(Group{{name}, false});
  return group;
}

void Views::join(const std::string& a, const std::string& b, bool uncertain) {
  std::shared_ptr<Group> kept = group_of(a), other = group_of(b);
  kept->uncertain = kept->uncertain || other->uncertain || uncertain;
  if (kept == other) return;
  if (kept->names.size() < other->names.size()) {
    other->uncertain = kept->uncertain;
    std::swap(kept, other);
  }
  for (const std::string& name : other->names) groups_[name] = kept;
  kept->names.merge(other->names);
}

bool Views::uncertain(const std::string& name) const {
  const auto found = groups_.find(name);
  return found != groups_.end() && found->second->uncertain;
}

std::set<std::string> Views::group(const std::string& name) const {
  const auto found = groups_.find(name);
  return found == groups_.end() ? std::set<std::string>{name} : found->second->names;
}

void Views::note_same(const std::string& name, const std::string& of) { add(name, of, nullptr); }

void Views::add(const std::string& name, const std::string& of, const ProgramNode* node) {
  if (name.empty() || of.empty() || name == of) return;
  views_[name] = {of, node};
  roots_[name] = root(of);
  join(name, of, false);
}

const Views::View* Views::find(std::string_view name) const {
  const auto found = views_.find(name);
  return found == views_.end() ? nullptr : &found->second;
}

std::string Views::root(const std::string& name) const {
  const auto known = roots_.find(name);
  return known == roots_.end() ? name : known->second;
}

Value* written_into(AtenContext& c, const std::string& name, const ProgramNode& view, Value* value, Values& values) {
  constexpr std::string_view kWritten = "what is written";  // no program names a tensor so
  const std::string operand = first_tensor(view);
  Value* whole = values.at(operand);
  if (is_one_of(kReshapes, view.target)) return c.b.reshape(value, whole->type.shape);
  const auto read = [&](const ProgramNode& node) {
    AtenContext own(c.b, *find_row(node.target), node, c.so_far());
    return find_row(node.target)->read(own);
  };
  for (const auto& [takes, writes] : kScatters) {
    if (view.target != takes) continue;
    ProgramNode node = view;
    node.target = std::string(writes);
    node.arguments.emplace_back("src", Arg{.kind = Arg::Kind::tensor, .name = std::string(kWritten)});
    values[std::string(kWritten)] = value;
    Value* result = read(node).at(0);
    values.erase(std::string(kWritten));
    return result;
  }
  // The view of elements' places says where each of its own lies.
  const Expr count = whole->type.elements();
  values[operand] = c.b.reshape(c.b.iota({count}, 0, DType::i64), whole->type.shape);
  const Outputs places = read(view);
  values[operand] = whole;
  std::size_t at = 0, i = 0;
  for (const Arg& result : view.results)
    for_each_tensor(result, [&](const std::string& one) {
      if (one == name) at = i;
      ++i;
    });
  const auto flat = [&](Value* v) { return c.b.reshape(v, {v->type.elements()}); };
  Value* y = onnx_call(c, "ScatterElements", {flat(whole), flat(places.at(at)), flat(value)}, {{"axis", std::int64_t{0}}})[0];
  return c.b.reshape(y, whole->type.shape);
}

}  // namespace oclc::pt2
