#include "compiler/codegen/user_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/codegen/text/index_type.h"
#include "compiler/codegen/text/kernel_text.h"
#include "compiler/codegen/text/scope.h"
#include "compiler/ir/division.h"
#include "compiler/ir/typical.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// Points of a tile on a CPU: enough that a launch's cost is spread, few enough that all cores have some.
constexpr std::int64_t kFewestPoints = 64, kMostPoints = 4096, kTilesOfUnit = 4;

class UserKernel {
 public:
  UserKernel(Kernel kernel, const Target& target)
      : kernel_(std::move(kernel)), target_(target), code_(*kernel_.code), body_(*code_.body) {
    narrow_indices(kernel_);
    mode_.wide_index = needs_wide_index(kernel_, code_.space.extents);
    index_ = mode_.wide_index ? "long" : "int";
    for (std::size_t k = 0; k < code_.space.extents.size(); ++k) ids_.push_back(fmt::format("oclc_id_{}", k));
    for (const Operand& o : kernel_.operands) {
      parameters_.push_back(fmt::format("__global {}{}* oclc_{}", o.written ? "" : "const ", c_type(o.dtype), o.name));
      passed_.push_back("oclc_" + o.name);
    }
    for (const std::string& s : kernel_.model_symbols()) {
      parameters_.push_back(fmt::format("const long oclc_dim_{}", s));
      passed_.push_back("oclc_dim_" + s);
    }
    for (const std::string& number : kernel_.numbers) {
      parameters_.push_back("const float oclc_" + number);
      passed_.push_back("oclc_" + number);
    }
  }

  GeneratedKernel run() {
    GeneratedKernel g;
    g.name = kernel_.name;
    g.arguments = arguments_of(kernel_);
    std::string functions;
    for (std::size_t i = 0; i < code_.loads.size(); ++i) functions += load_function(i);
    for (std::size_t i = 0; i < code_.stores.size(); ++i) functions += store_function(i);
    const std::string tile = tile_function(g);
    const std::string text = functions + define_calls() + point_function() + undefine_calls() + tile;
    // A group's work-items and local memory are its launch's.
    if (body_.group.empty()) g.tile_source = text;
    g.source = text + kernel_function(g);
    g.head = kernel_head(kernel_, g);
    return g;
  }

 private:
  const std::string& name() const { return kernel_.name; }
  bool checks() const { return body_.checked || !body_.group.empty(); }
  std::string extent(const Expr& e) const { return Emitter(kernel_, mode_).index(e); }

  // Operands and sizes under the names of the kernel's own code; the user's text sees others.
  std::string own_parameters() const { return parameter_list(kernel_, false); }
  std::string own_arguments() const {
    std::vector<std::string> names;
    for (const Operand& o : kernel_.operands) names.push_back(o.name);
    for (const std::string& s : kernel_.model_symbols()) names.push_back("dim_" + s);
    names.insert(names.end(), kernel_.numbers.begin(), kernel_.numbers.end());
    return fmt::format("{}", fmt::join(names, ", "));
  }

  std::vector<const Axis*> axes_of(const Code::Access& access) const {
    std::vector<const Axis*> axes;
    for (const int a : access.axes) axes.push_back(&kernel_.reduction[static_cast<std::size_t>(a)]);
    return axes;
  }

  std::string positions(const Code::Access& access) const {
    std::string text;
    for (const Axis* axis : axes_of(access)) text += fmt::format(", const {} {}", index_, axis->name);
    if (body_.checked) text += ", int* outside, const int call";
    return text;
  }

  // What a position outside of the operand ends in.
  std::string guard_of(const Code::Access& access, const std::string& result) const {
    const std::vector<const Axis*> axes = axes_of(access);
    if (!checks() || axes.empty()) return "";
    std::vector<std::string> outside;
    for (const Axis* axis : axes) outside.push_back(fmt::format("{0} < 0 || {0} >= {1}", axis->name, extent(axis->extent)));
    const std::string note = body_.checked ? " if (*outside == 0) *outside = call;" : "";
    return fmt::format("  if ({}) {{{} return{}; }}\n", fmt::join(outside, " || "), note, result);
  }

  static std::set<std::string> names_of(const std::vector<const Axis*>& axes) {
    std::set<std::string> names;
    for (const Axis* axis : axes) names.insert(axis->name);
    return names;
  }

  std::string load_function(std::size_t i) const {
    const Code::Access& access = code_.loads[i];
    if (access.node < 0) return "";
    const ScalarNode& node = kernel_.nodes[static_cast<std::size_t>(access.node)];
    Emitter e(kernel_, mode_);
    e.open("", names_of(axes_of(access)));
    e.line(fmt::format("return {};", e.value(access.node)));
    e.close();
    return fmt::format("{} {}_load_{}({}{}) {{\n{}{}}}\n", value_type(node.dtype), name(), i, own_parameters(),
                       positions(access), guard_of(access, " 0"), e.text());
  }

  // The stores that are made of the output's elements.
  std::vector<const Store*> stores_of(const Code::Access& access) const {
    std::vector<const Store*> list;
    for (const Store& store : kernel_.stores) {
      std::vector<NodeId> stack{store.value};
      std::vector<bool> seen(kernel_.nodes.size(), false);
      while (!stack.empty()) {
        const NodeId at = stack.back();
        stack.pop_back();
        if (seen[static_cast<std::size_t>(at)]) continue;
        seen[static_cast<std::size_t>(at)] = true;
        const auto& args = kernel_.nodes[static_cast<std::size_t>(at)].args;
        stack.insert(stack.end(), args.begin(), args.end());
      }
      if (seen[static_cast<std::size_t>(access.node)]) list.push_back(&store);
    }
    return list;
  }

  std::string store_function(std::size_t i) const {
    const Code::Access& access = code_.stores[i];
    const ScalarNode& node = kernel_.nodes[static_cast<std::size_t>(access.node)];
    Emitter e(kernel_, mode_);
    e.open("", names_of(axes_of(access)));
    e.define(access.node, "stored");
    for (const Store* store : stores_of(access)) e.store(*store);
    e.close();
    return fmt::format("void {}_store_{}({}{}, const {} stored) {{\n{}{}}}\n", name(), i, own_parameters(), positions(access),
                       value_type(node.dtype), guard_of(access, ""), e.text());
  }

  // Parameters of a macro: the call, positions, and what follows them.
  static std::string macro_parameters(std::size_t positions, bool value) {
    std::string text = "call";
    for (std::size_t d = 0; d < positions; ++d) text += fmt::format(", p{}", d);
    return text + (value ? ", v" : "");
  }

  // `first`: the macro's parameter that is the first position.
  std::string call_of(const std::string& function, std::size_t positions, bool value, std::size_t first = 0) const {
    std::string text = fmt::format("{}({}", function, fmt::join(passed_, ", "));
    for (std::size_t d = 0; d < positions; ++d) text += fmt::format(", p{}", first + d);
    if (body_.checked) text += ", oclc_outside, call";
    return text + (value ? ", v)" : ")");
  }

  std::string define_calls() {
    std::string text;
    const auto define = [&](const std::string& macro, const std::string& parameters, const std::string& value) {
      text += fmt::format("#define {}{} {}\n", macro, parameters.empty() ? "" : "(" + parameters + ")", value);
      defined_.push_back(macro);
    };
    for (std::size_t i = 0; i < body_.inputs.size(); ++i) {
      const UserOperand& operand = body_.inputs[i];
      const bool there = i < code_.loads.size() && (code_.loads[i].node >= 0 || code_.loads[i].pointer >= 0);
      const std::string load = "OCLC_LOAD_" + operand.name;
      define("OCLC_HAS_" + operand.name, "", there ? "1" : "0");
      if (operand.variable) {
        define("OCLC_COUNT_" + operand.name, "", std::to_string(code_.loads.size() - std::min(i, code_.loads.size())));
        define(load, macro_parameters(operand.rank + 1, false), variable_load(i));
        continue;
      }
      if (operand.element)
        define(load, macro_parameters(operand.rank, false),
               there ? call_of(fmt::format("{}_load_{}", name(), i), operand.rank, false) : "0");
      if (operand.pointer) define("OCLC_POINTER_" + operand.name, "", there ? pointer_to(code_.loads[i]) : "0");
    }
    for (std::size_t i = 0; i < code_.stores.size(); ++i) {
      const UserOperand& operand = body_.outputs[i];
      define("OCLC_STORE_" + operand.name, macro_parameters(operand.rank, true),
             call_of(fmt::format("{}_store_{}", name(), i), operand.rank, true));
      if (operand.pointer) define("OCLC_POINTER_" + operand.name, "", pointer_to(code_.stores[i]));
    }
    return text;
  }

  // One of several inputs, by its number; the last stands for those that there are not.
  std::string variable_load(std::size_t first) const {
    const std::size_t rank = body_.inputs[first].rank;
    std::string text;
    for (std::size_t i = code_.loads.size(); i-- > first;) {
      const std::string call = call_of(fmt::format("{}_load_{}", name(), i), rank, false, 1);
      text = text.empty() ? call : fmt::format("((p0) == {} ? {} : {})", i - first, call, text);
    }
    return text.empty() ? "0" : text;
  }

  std::string pointer_to(const Code::Access& access) const {
    const Operand& operand = kernel_.operands[static_cast<std::size_t>(access.pointer)];
    std::string offset = access.offset.c_text([](std::string_view s) { return fmt::format("oclc_dim_{}", s); });
    return fmt::format("(oclc_{} + ({}))", operand.name, offset);
  }

  std::string undefine_calls() const {
    std::string text;
    for (const std::string& macro : defined_) text += fmt::format("#undef {}\n", macro);
    return text;
  }

  // Local memory is declared in the kernel and handed on.
  std::string local_parameters() const {
    std::string text;
    for (const UserLocal& local : code_.space.locals) text += fmt::format(", __local {}* {}", local.type, local.name);
    return text;
  }

  std::string local_arguments() const {
    std::string text;
    for (const UserLocal& local : code_.space.locals) text += ", " + local.name;
    return text;
  }

  std::string point_function() const {
    std::vector<std::string> list = parameters_;
    for (const std::string& id : ids_) list.push_back(fmt::format("const {} {}", index_, id));
    std::string text = fmt::format("void {}_point({}{}{}) {{\n", name(), fmt::join(list, ", "), local_parameters(),
                                   body_.checked ? ", int* oclc_outside" : "");
    for (const auto& [dim, size] : code_.space.dims)
      text += fmt::format("  const {} {} = {};\n", index_, dim,
                          size.c_text([](std::string_view s) { return fmt::format("oclc_dim_{}", s); }));
    for (const std::string& constant : code_.space.constants) text += "  " + constant + "\n";
    return text + body_.text + "\n}\n";
  }

  std::string call_point(const std::vector<std::string>& ids) const {
    std::string point = ids.empty() ? "" : fmt::format(", {}", fmt::join(ids, ", "));
    if (!body_.checked) return fmt::format("{}_point({}{}{});", name(), own_arguments(), point, local_arguments());
    // The flags have the shape of the space.
    return fmt::format(
        "{{ int outside = 0; {0}_point({1}{2}{3}, &outside); int flagged = 0; {0}_store_{4}({1}{2}, &flagged, 0, outside); }}",
        name(), own_arguments(), point, local_arguments(), code_.stores.size() - 1);
  }

  std::string tile_function(GeneratedKernel& g) const {
    std::string text =
        fmt::format("void {}_tile({}{}, const {} tile) {{\n", name(), own_parameters(), local_parameters(), index_);
    if (!body_.group.empty())
      text += groups_of_space(g);
    else if (target_.items_are_cores())
      text += loops_of_core(g);
    else
      text += point_of_item(g);
    return text + "}\n\n";
  }

  Expr points() const { return product(code_.space.extents); }

  // Declares the coordinates of point `from`, but for the last `without`.
  std::string coordinates(const std::string& from, std::size_t without) const {
    std::string text;
    const auto& extents = code_.space.extents;
    const std::size_t count = extents.size() - std::min(without, extents.size());
    Expr below(1);
    std::vector<std::string> lines;
    for (std::size_t k = extents.size(); k-- > 0;) {
      const std::string quotient = below == Expr(1) ? from : fmt::format("{} / ({})", from, extent(below));
      if (k < count)
        lines.push_back(fmt::format("  const {} {} = {};\n", index_, ids_[k],
                                    k == 0 ? quotient : fmt::format("{} % ({})", quotient, extent(extents[k]))));
      below *= extents[k];
    }
    for (std::size_t i = lines.size(); i-- > 0;) text += lines[i];
    return text;
  }

  std::string loops_of_core(GeneratedKernel& g) const {
    std::int64_t tile = kMostPoints;
    const Expr all = points();
    // Of a family the points of all members.
    if (all.is_constant() || kernel_.members > 0)
      tile = std::clamp(ceil_div(typical_extent(all) * std::max<std::int64_t>(1, kernel_.members),
                                 kTilesOfUnit * std::max(1, target_.compute_units)),
                        kFewestPoints, kMostPoints);
    g.groups = {ceil_div(all, Expr(tile))};
    g.local = {1};
    g.schedule = fmt::format("{} points a tile", tile);
    std::string text = fmt::format("  const {0} end = min((tile + 1) * ({0}){1}, ({0})({2}));\n", index_, tile, extent(all));
    text += fmt::format("  {0} point = tile * ({0}){1};\n", index_, tile);
    if (ids_.empty()) return text + fmt::format("  for (; point < end; ++point) {}\n", call_point({}));
    const std::string last = extent(code_.space.extents.back());
    text += "  while (point < end) {\n";
    text += coordinates("point", 1);
    text += fmt::format("  const {0} first = point % ({1}), stop = min(first + end - point, ({0})({1}));\n", index_, last);
    text += fmt::format("  for ({0} {1} = first; {1} < stop; ++{1}) {2}\n", index_, ids_.back(), call_point(ids_));
    return text + "  point += stop - first;\n  }\n";
  }

  std::string point_of_item(GeneratedKernel& g) const {
    const std::int64_t group = target_.work_group;
    g.groups = {ceil_div(points(), Expr(group))};
    g.local = {static_cast<std::uint32_t>(group)};
    g.schedule = "a point a work-item";
    std::string text = fmt::format("  const {0} point = tile * ({0}){1} + get_local_id(0);\n", index_, group);
    text += fmt::format("  if (point >= {}) return;\n", extent(points()));
    return text + coordinates("point", 0) + "  " + call_point(ids_) + "\n";
  }

  // Groups lie over the space in blocks; items beyond its end run as well, for the sake of barriers.
  std::string groups_of_space(GeneratedKernel& g) const {
    const auto& extents = code_.space.extents;
    std::vector<std::int64_t> sides(extents.size(), 1);
    for (std::size_t k = 0; k < body_.group.size(); ++k) sides[extents.size() - body_.group.size() + k] = body_.group[k];
    std::int64_t items = 1;
    Expr groups(1);
    for (std::size_t k = 0; k < sides.size(); ++k) {
      items *= sides[k];
      groups *= ceil_div(extents[k], Expr(sides[k]));
    }
    g.groups = {groups};
    g.local = {static_cast<std::uint32_t>(items)};
    g.schedule = fmt::format("groups of {}", fmt::join(sides, " x "));
    std::string text = fmt::format("  {} oclc_block = tile, oclc_item = get_local_id(0);\n", index_);
    for (std::size_t k = sides.size(); k-- > 0;) {
      const std::string blocks = extent(ceil_div(extents[k], Expr(sides[k])));
      text += fmt::format("  const {} {} = (oclc_block % ({})) * {} + oclc_item % {};\n", index_, ids_[k], blocks, sides[k],
                          sides[k]);
      text += fmt::format("  oclc_block /= {}; oclc_item /= {};\n", "(" + blocks + ")", sides[k]);
    }
    return text + "  " + call_point(ids_) + "\n";
  }

  std::string kernel_function(const GeneratedKernel& g) const {
    std::string text = fmt::format("__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}) {{\n", g.local[0],
                                   name(), parameter_list(kernel_, true));
    for (const UserLocal& local : code_.space.locals)
      text += fmt::format("  __local {} {}[{}];\n", local.type, local.name, local.elements);
    return text + fmt::format("  {}_tile({}{}, get_group_id(0));\n}}\n", name(), argument_list(kernel_), local_arguments());
  }

  Kernel kernel_;
  const Target& target_;
  const Code& code_;
  const UserBody& body_;
  EmitMode mode_;
  std::string index_;
  std::vector<std::string> ids_, parameters_, passed_, defined_;
};

}  // namespace

GeneratedKernel generate_user_kernel(Kernel kernel, const Target& target) {
  return UserKernel(std::move(kernel), target).run();
}

}  // namespace oclc
