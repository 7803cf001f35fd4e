#include "compiler/kernels/ragged_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/typical.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Kind = ScalarNode::Kind;

// What the host's and the device's compilers make of a constant and of an argument has the same bits.
constexpr std::array<std::string_view, 14> kTakesArguments = {"add", "sub",   "mul",  "div",   "neg",  "min",        "max",
                                                              "fma", "where", "less", "equal", "relu", "less_equal", "greater"};

std::vector<const Axis*> axes_of(const Kernel& kernel) {
  std::vector<const Axis*> all;
  for (const auto* list : {&kernel.axes, &kernel.reduction}) {
    for (const Axis& axis : *list) all.push_back(&axis);
  }
  return all;
}

// Every expression of sizes alone.
template <class AnyKernel, class Visit>
void each_size(AnyKernel& kernel, Visit visit) {
  if (!kernel.code) return;
  for (auto& e : kernel.code->space.extents) visit(e);
  for (auto& [name, dim] : kernel.code->space.dims) visit(dim);
  for (auto* list : {&kernel.code->loads, &kernel.code->stores}) {
    for (auto& access : *list) visit(access.offset);
  }
}

bool is_linear(const Kernel& kernel, const Expr& e) {
  const std::vector<const Axis*> axes = axes_of(kernel);
  const std::vector<std::string> symbols = e.symbols();
  if (std::any_of(symbols.begin(), symbols.end(), [](const std::string& s) { return dynamic_index(s).has_value(); }))
    return false;
  return std::all_of(axes.begin(), axes.end(), [&](const Axis* axis) {
    if (!e.uses(axis->name)) return true;
    const auto factor = e.coefficient(axis->name);
    return factor && std::none_of(axes.begin(), axes.end(), [&](const Axis* other) { return factor->uses(other->name); });
  });
}

// Constants that may be arguments: floats that only arithmetic uses.
std::vector<bool> numbers_that_may_differ(const Kernel& kernel) {
  std::vector<bool> may(kernel.nodes.size(), false);
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) {
    const ScalarNode& n = kernel.nodes[i];
    may[i] = n.kind == Kind::constant && (n.dtype == DType::f32 || n.dtype == DType::f16 || n.dtype == DType::bf16) &&
             std::isfinite(n.number);
  }
  for (const ScalarNode& n : kernel.nodes) {
    const bool takes =
        n.kind == Kind::apply && std::find(kTakesArguments.begin(), kTakesArguments.end(), n.op_name) != kTakesArguments.end();
    for (const NodeId a : n.args) may[static_cast<std::size_t>(a)] = may[static_cast<std::size_t>(a)] && takes;
  }
  for (const Store& s : kernel.stores) may[static_cast<std::size_t>(s.value)] = false;
  return may;
}

// "const float alpha = 0.5f;" without the number, which is the second; nothing if it is no number.
struct Constant {
  std::string head, number;
};
std::optional<Constant> number_in(const std::string& line) {
  const std::size_t at = line.find(" = ");
  if (at == std::string::npos || !line.starts_with("const ") || line.find('{') != std::string::npos) return std::nullopt;
  return Constant{line.substr(0, at + 3), line.substr(at + 3, line.size() - at - 4)};
}
bool is_float(const Constant& constant) { return constant.head.starts_with("const float "); }

std::string structure_of_code(const Code& code) {
  std::string text = fmt::format("code {}", static_cast<const void*>(code.body));
  for (const auto& [name, dim] : code.space.dims) text += " " + name;
  for (const std::string& line : code.space.constants) {
    const auto constant = number_in(line);
    text += "; " + (constant ? constant->head : line);
  }
  for (const auto* list : {&code.loads, &code.stores}) {
    for (const Code::Access& a : *list) text += fmt::format("; {} {} {}", fmt::join(a.axes, ","), a.node, a.pointer);
  }
  return text;
}

std::string structure_of_node(const ScalarNode& n, bool may_differ) {
  std::string text = fmt::format("{} {} {} {} {} {} {} {} [{}]\n", static_cast<int>(n.kind), name_of(n.dtype), n.operand,
                                 n.op_name, static_cast<const void*>(n.op), n.guard.size(), name_of(n.bits_from),
                                 name_of(n.bits_to), fmt::join(n.args, ","));
  return may_differ ? text : fmt::format("{} {}", n.number, text);
}

bool is_of_a_family(const Kernel& kernel) {
  if (kernel.contraction || !kernel.stages.empty() || kernel.stores.empty()) return false;
  if (kernel.anchor != Anchor::pointwise && kernel.anchor != Anchor::code) return false;
  if (kernel.code && (!kernel.code->body->group.empty() || kernel.code->body->checked)) return false;
  bool linear = true;
  each_index(kernel, [&](const Expr& e) { linear = linear && is_linear(kernel, e); });
  // Rows of what lies outside of a guard are constants of a size that is known.
  const bool guarded = !kernel.code && std::any_of(kernel.nodes.begin(), kernel.nodes.end(), [](const ScalarNode& n) {
    return n.kind == Kind::load && !n.guard.empty();
  });
  const bool replaced =
      std::any_of(kernel.operands.begin(), kernel.operands.end(), [](const Operand& o) { return o.replaced; });
  return linear && !guarded && !replaced;
}

char kind_of_stride(const Kernel& kernel, std::size_t at, const Expr& e) {
  const std::vector<const Axis*> axes = axes_of(kernel);
  if (axes[at]->extent == Expr(1)) return '?';
  if (!e.uses(axes[at]->name)) return '0';
  Expr row(1);
  for (std::size_t k = at + 1; k < axes.size(); ++k) {
    if (e.uses(axes[k]->name)) row *= axes[k]->extent;
  }
  return *e.coefficient(axes[at]->name) == row ? 'c' : 'p';
}

// Sizes and places of all members as symbols of one kernel.
class Arguments {
 public:
  using Column = std::vector<std::optional<Expr>>;  // by member; nothing where any value serves

  explicit Arguments(std::size_t members) : members_(members) {}

  Expr of(const Column& column) {
    const auto first = std::find_if(column.begin(), column.end(), [](const auto& e) { return e.has_value(); });
    if (first == column.end()) return Expr(0);
    const bool equal = std::all_of(column.begin(), column.end(), [&](const auto& e) { return !e || *e == **first; });
    if (equal && (*first)->is_constant()) return **first;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (fits(columns_[i], column)) return symbols_[i];
    }
    columns_.push_back(column);
    for (auto& e : columns_.back()) {
      if (!e) e = **first;
    }
    std::int64_t lowest = kUnbounded, highest = -kUnbounded;
    double sum = 0;
    for (const auto& e : columns_.back()) {
      lowest = std::min(lowest, e->lower());
      highest = std::max(highest, e->upper());
      sum += typical(*e);
    }
    const auto likely = static_cast<std::int64_t>(std::llround(sum / static_cast<double>(members_)));
    symbols_.push_back(
        Expr::symbol(fmt::format("of_member_{}", symbols_.size()), lowest, highest,
                     std::clamp<std::int64_t>(likely, std::max<std::int64_t>(lowest, 1), std::max<std::int64_t>(highest, 1))));
    return symbols_.back();
  }

  void move_to(Family& family) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      family.symbols.push_back(*symbols_[i].symbol_name());
      std::vector<Expr>& row = family.sizes.emplace_back();
      for (const auto& e : columns_[i]) row.push_back(*e);
    }
  }

 private:
  static bool fits(const Column& known, const Column& column) {
    for (std::size_t k = 0; k < known.size(); ++k) {
      if (column[k] && !(*column[k] == *known[k])) return false;
    }
    return true;
  }

  std::size_t members_;
  std::vector<Column> columns_;
  std::vector<Expr> symbols_;
};

class FamilyMaker {
 public:
  explicit FamilyMaker(std::span<const Kernel* const> members) : members_(members), arguments_(members.size()) {}

  Family run() {
    family_.kernel = *members_.front();
    Kernel& kernel = family_.kernel;
    extents(kernel.axes, [](const Kernel& k) -> const std::vector<Axis>& { return k.axes; });
    extents(kernel.reduction, [](const Kernel& k) -> const std::vector<Axis>& { return k.reduction; });
    unify_sizes();
    unify_indices();
    unify_constants();
    if (kernel.code) unify_attributes(*kernel.code);
    arguments_.move_to(family_);
    kernel.members = static_cast<std::int64_t>(members_.size());
    Expr flops(0), bytes(0);
    for (const Kernel* member : members_) {
      flops += Expr(typical_extent(member->flops));
      bytes += Expr(typical_extent(member->bytes));
    }
    kernel.flops = floor_div(flops, Expr(kernel.members));
    kernel.bytes = floor_div(bytes, Expr(kernel.members));
    return std::move(family_);
  }

 private:
  template <class Of>
  void extents(std::vector<Axis>& axes, Of of) {
    for (std::size_t a = 0; a < axes.size(); ++a) {
      Arguments::Column column;
      for (const Kernel* member : members_) column.emplace_back(of(*member)[a].extent);
      axes[a].extent = arguments_.of(column);
      axes[a].var = axes[a].extent == Expr(1) ? Expr(0) : Expr::axis(axes[a].name, axes[a].extent);
    }
  }

  template <class Each>
  std::vector<std::vector<Expr>> by_member(Each each) const {
    std::vector<std::vector<Expr>> all;
    for (const Kernel* member : members_) {
      std::vector<Expr>& list = all.emplace_back();
      each(*member, [&](const Expr& e) { list.push_back(e); });
    }
    return all;
  }

  void unify_sizes() {
    const auto all = by_member([](const Kernel& k, const auto& visit) { each_size(k, visit); });
    std::size_t at = 0;
    each_size(family_.kernel, [&](Expr& e) {
      Arguments::Column column;
      for (const auto& list : all) column.emplace_back(list[at]);
      e = arguments_.of(column);
      ++at;
    });
  }

  void unify_indices() {
    const auto all = by_member([](const Kernel& k, const auto& visit) { each_index(k, visit); });
    std::size_t at = 0;
    each_index(family_.kernel, [&](Expr& e) {
      e = unified(all, at);
      ++at;
    });
  }

  Expr unified(const std::vector<std::vector<Expr>>& all, std::size_t at) {
    const std::vector<const Axis*> axes = axes_of(family_.kernel);
    Arguments::Column rest;
    for (std::size_t k = 0; k < all.size(); ++k) rest.emplace_back(at_first(*members_[k], all[k][at]));
    Expr sum = arguments_.of(rest);
    for (std::size_t a = 0; a < axes.size(); ++a) {
      Arguments::Column factors;
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (axes_of(*members_[k])[a]->extent == Expr(1))
          factors.emplace_back(std::nullopt);
        else
          factors.emplace_back(all[k][at].uses(axes[a]->name) ? *all[k][at].coefficient(axes[a]->name) : Expr(0));
      }
      sum += arguments_.of(factors) * axes[a]->var;
    }
    return sum;
  }

  // The place of a number among the kernel's.
  std::size_t number(const std::vector<double>& column) {
    for (std::size_t i = 0; i < family_.numbers.size(); ++i) {
      if (family_.numbers[i] == column) return i;
    }
    family_.numbers.push_back(column);
    family_.kernel.numbers.push_back(fmt::format("number_{}", family_.numbers.size() - 1));
    return family_.numbers.size() - 1;
  }

  void unify_constants() {
    const std::vector<bool> may = numbers_that_may_differ(family_.kernel);
    for (std::size_t i = 0; i < may.size(); ++i) {
      if (!may[i]) continue;
      std::vector<double> column;
      for (const Kernel* member : members_) column.push_back(member->nodes[i].number);
      if (std::all_of(column.begin(), column.end(), [&](double x) { return x == column.front(); })) continue;
      family_.kernel.nodes[i].argument = static_cast<int>(number(column));
    }
  }

  void unify_attributes(Code& code) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < code.space.constants.size(); ++i) {
      const std::string& line = code.space.constants[i];
      const bool equal = std::all_of(members_.begin(), members_.end(),
                                     [&](const Kernel* member) { return member->code->space.constants[i] == line; });
      if (equal) {
        lines.push_back(line);
        continue;
      }
      const Constant constant = number_in(line).value();
      std::vector<double> numbers;
      Arguments::Column integers;
      for (const Kernel* member : members_) {
        const std::string text = number_in(member->code->space.constants[i]).value().number;
        if (is_float(constant))
          numbers.push_back(std::stod(text));
        else
          integers.emplace_back(Expr(static_cast<std::int64_t>(std::stoll(text))));
      }
      if (is_float(constant)) {
        lines.push_back(fmt::format("{}oclc_{};", constant.head, family_.kernel.numbers[number(numbers)]));
        continue;
      }
      const std::size_t name = constant.head.find(' ', constant.head.find(' ') + 1) + 1;
      code.space.dims.emplace_back(constant.head.substr(name, constant.head.size() - name - 3), arguments_.of(integers));
    }
    code.space.constants = std::move(lines);
  }

  std::span<const Kernel* const> members_;
  Arguments arguments_;
  Family family_;
};

}  // namespace

bool FamilyKey::take(const FamilyKey& other) {
  if (structure.empty() || structure != other.structure || strides.size() != other.strides.size()) return false;
  std::string both = strides;
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (both[i] == '?')
      both[i] = other.strides[i];
    else if (other.strides[i] != '?' && other.strides[i] != both[i])
      return false;
  }
  strides = std::move(both);
  return true;
}

FamilyKey family_key(const Kernel& kernel) {
  FamilyKey key;
  if (!is_of_a_family(kernel)) return key;
  std::string text = std::string(name_of(kernel.anchor)) + "\n";
  for (const Axis* axis : axes_of(kernel)) text += axis->name + " ";
  text += fmt::format("{}\n", kernel.axes.size());
  for (const Operand& o : kernel.operands) text += fmt::format("{} {}{}\n", o.name, name_of(o.dtype), o.written ? "=" : "");
  const std::vector<bool> may = numbers_that_may_differ(kernel);
  for (std::size_t i = 0; i < kernel.nodes.size(); ++i) text += structure_of_node(kernel.nodes[i], may[i]);
  for (const Store& s : kernel.stores)
    text += fmt::format("{} {} {} [{}]\n", s.operand, s.value, s.guard.size(), fmt::join(s.row_axes, ","));
  if (kernel.code) text += structure_of_code(*kernel.code);
  const std::size_t axes = kernel.axes.size() + kernel.reduction.size();
  each_index(kernel, [&](const Expr& e) {
    for (std::size_t a = 0; a < axes; ++a) key.strides += kind_of_stride(kernel, a, e);
  });
  key.structure = std::move(text);
  return key;
}

Family family_of(std::span<const Kernel* const> members) {
  OCLC_CHECK(!members.empty(), "a family has members");
  return FamilyMaker(members).run();
}

}  // namespace oclc
