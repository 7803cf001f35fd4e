// What can be found wrong with an operator before it is used.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "compiler/ops/op_list.h"
#include "compiler/support/nearest.h"
#include "frontends/op/head.h"

namespace oclc::custom {
namespace {

constexpr std::string_view kOnePerOperand[] = {"has", "len"};

class Check {
 public:
  explicit Check(const CustomOp& op) : op_(op) {
    for (const Operand& operand : op.in) {
      for (const Formula& dim : operand.dims) {
        if (dim.form == Form::name && !op.attribute(dim.name)) dims_.insert(dim.name);
      }
    }
  }

  void run() {
    for (const std::vector<Operand>* list : {&op_.in, &op_.out}) {
      for (const Operand& operand : *list) {
        if (dims_.count(operand.name))
          fail_at(op_.file, operand.place, "another name for an operand than for a dimension",
                  fmt::format("'{}'", operand.name));
        for (const Formula& dim : operand.dims) size(dim, fmt::format("a dimension of '{}'", operand.name));
      }
    }
    for (const Condition& condition : op_.conditions) size(condition.formula, "'where'");
    for (const Formula& extent : op_.each) size(extent, "'each'");
    for (const Local& local : op_.locals) size(local.elements, "'local'");
    if (op_.flops) size(*op_.flops, "'flops'");
    if (op_.bytes) size(*op_.bytes, "'bytes'");
    if (op_.in_code()) return;
    for (const Line& line : op_.lines) check(line);
    for (const Operand& output : op_.out) {
      if (!made_.count(output.name))
        fail_at(op_.file, output.place, fmt::format("a line of the formula that gives '{}'", output.name), "none");
    }
  }

 private:
  using Indices = std::set<std::string, std::less<>>;

  [[noreturn]] void fail(const Formula& at, std::string wanted, std::string found, std::string advice = {}) const {
    fail_at(op_.file, at.place, std::move(wanted), std::move(found), std::move(advice));
  }

  // Dimensions and conditions are of dimensions, attributes and numbers.
  void size(const Formula& f, const std::string& what) const {
    switch (f.form) {
      case Form::number:
        if (!f.whole) fail(f, "integers in " + what, f.name);
        break;
      case Form::text:
        break;
      case Form::name:
        if (!dims_.count(f.name) && !op_.attribute(f.name)) {
          std::vector<std::string> known(dims_.begin(), dims_.end());
          for (const AttributeRow& a : op_.attributes) known.push_back(a.name);
          fail(f, fmt::format("names that 'in' or 'attr' has in {}", what), fmt::format("'{}'", f.name),
               did_you_mean(f.name, known));
        }
        break;
      case Form::unary:
      case Form::binary:
        break;
      case Form::call:
        if ((f.name == "min" || f.name == "max") && f.parts.size() == 2) break;
        [[fallthrough]];
      default:
        fail(f, fmt::format("numbers, names, + - * / % min max in {}", what), fmt::format("'{}'", text_of(f)));
    }
    for (const Formula& part : f.parts) size(part, what);
  }

  void check(const Line& line) {
    const Formula& target = line.target;
    if (op_.operand(target.name) || op_.attribute(target.name) || dims_.count(target.name))
      fail(target, "an output or a new name on the left", fmt::format("'{}', which is given", target.name));
    const Operand* output = op_.output(target.name);
    if (made_.count(target.name) && !line.adds)
      fail(target, "one line for each result", fmt::format("'{}' twice", target.name));
    if (target.form == Form::element && output && output->dims.size() != target.parts.size())
      fail(target, fmt::format("{} indices, as '{}' is declared", output->dims.size(), target.name),
           std::to_string(target.parts.size()));
    Indices indices;
    if (line.adds) {
      accumulated(line, output, indices);
    } else {
      for (const Formula& part : target.parts) {
        if (part.form != Form::name)
          fail(part, "an index on the left", fmt::format("'{}'", text_of(part)), "positions that are computed need '+='");
        add_index(part, part.name, indices);
      }
    }
    value(line.value, indices, target.form == Form::name);
    made_[target.name] = target.form == Form::element ? target.parts.size() : 0;
  }

  void accumulated(const Line& line, const Operand* output, Indices& indices) {
    const Formula& target = line.target;
    if (target.form != Form::element || !output)
      fail(target, "an output with indices before '+='", fmt::format("'{}'", text_of(target)));
    if (output->leading) fail(target, "an output without \"...\" before '+='", fmt::format("'{}'", target.name));
    // Indices of computed positions count as those on the left.
    for (const Formula& part : target.parts) {
      if (part.form == Form::name && !is_known(part.name)) add_index(part, part.name, indices);
    }
    int computed = 0;
    for (const Formula& part : target.parts) {
      if (part.form == Form::name && indices.count(part.name)) continue;
      ++computed;
      collect(part, indices);
      value(part, indices, false);
    }
    if (computed != 1) fail(target, "one computed position before '+='", std::to_string(computed));
  }

  void collect(const Formula& f, Indices& indices) const {
    for (const Formula& part : f.parts) collect(part, indices);
    if (f.form == Form::name && !is_known(f.name)) indices.insert(f.name);
  }

  bool is_known(std::string_view name) const {
    return op_.operand(name) || op_.attribute(name) || dims_.count(name) || made_.count(name) || op_.output(name);
  }

  void add_index(const Formula& at, const std::string& name, Indices& indices) const {
    if (is_known(name)) fail(at, "an index that nothing else is called", fmt::format("'{}'", name));
    if (!indices.insert(name).second) fail(at, "each index once", fmt::format("'{}' twice", name));
  }

  void value(const Formula& f, const Indices& indices, bool whole) const {
    switch (f.form) {
      case Form::number:
      case Form::text:
      case Form::unary:
      case Form::binary:
      case Form::choice:
        break;
      case Form::name:
        return name(f, indices, whole);
      case Form::element:
      case Form::padded:
        element(f);
        break;
      case Form::call:
        if (call(f)) return;
        break;
      case Form::reduce: {
        Indices inner = indices;
        for (const std::string& index : f.indices) add_index(f, index, inner);
        return value(f.parts[0], inner, whole);
      }
    }
    const std::span<const Formula> parts(f.parts);
    for (const Formula& part : parts) value(part, indices, whole);
  }

  void name(const Formula& f, const Indices& indices, bool whole) const {
    const Operand* operand = op_.operand(f.name);
    if (!operand && made_.count(f.name)) operand = op_.output(f.name);
    const auto made = made_.find(f.name);
    const std::size_t rank = operand ? operand->dims.size() : made == made_.end() ? 0 : made->second;
    if (operand && operand->variable)
      fail(f, fmt::format("'{}[n, ..]' with the number of the operand first", f.name), fmt::format("'{}'", f.name));
    if (rank > 0 && !whole) {
      fail(f,
           fmt::format("{} of '{}', which has {}", rank == 1 ? "an index" : fmt::format("{} indices", rank), f.name,
                       rank == 1 ? "one dimension" : fmt::format("{} dimensions", rank)),
           "none");
    }
    if (!indices.count(f.name) && !is_known(f.name)) unknown(f, indices);
    if (op_.output(f.name) && !made_.count(f.name)) fail(f, "a result of a line above", fmt::format("'{}'", f.name));
  }

  void element(const Formula& f) const {
    const std::size_t given = f.parts.size() - (f.form == Form::padded ? 1 : 0);
    const Operand* operand = op_.operand(f.name);
    const auto made = made_.find(f.name);
    const AttributeRow* attribute = op_.attribute(f.name);
    std::size_t rank = 0;
    if (operand) {
      rank = operand->dims.size() + (operand->variable ? 1 : 0);
    } else if (made != made_.end()) {
      rank = made->second;
      if (const Operand* output = op_.output(f.name)) rank = output->dims.size();
    } else if (attribute && is_list(*attribute)) {
      rank = 1;
    } else if (attribute) {
      fail(f, "a list or an operand before '['", fmt::format("the attribute '{}'", f.name));
    } else {
      unknown(f, {});
    }
    if (given != rank)
      fail(f, fmt::format("{} {} of '{}'", rank, rank == 1 ? "index" : "indices", f.name), std::to_string(given));
  }

  static bool is_list(const AttributeRow& row) {
    return std::holds_alternative<Ints>(row.value) || std::holds_alternative<std::vector<double>>(row.value);
  }

  // True if its parts are no values.
  bool call(const Formula& f) const {
    if (std::find(std::begin(kOnePerOperand), std::end(kOnePerOperand), f.name) != std::end(kOnePerOperand)) {
      const Operand* operand = f.parts.size() == 1 && f.parts[0].form == Form::name ? op_.operand(f.parts[0].name) : nullptr;
      const bool fits = operand && (f.name == "has" ? operand->optional : operand->variable);
      if (!fits)
        fail(f, f.name == "has" ? "an optional operand in has()" : "an operand of variable number in len()",
             fmt::format("'{}'", text_of(f)));
      return true;
    }
    const int wanted = arity_of(f.name);
    if (wanted == 0) fail(f, "a function", fmt::format("'{}'", f.name), did_you_mean(f.name, function_names()));
    if (static_cast<std::size_t>(wanted) != f.parts.size())
      fail(f, fmt::format("{} {} of {}()", wanted, wanted == 1 ? "argument" : "arguments", f.name),
           std::to_string(f.parts.size()));
    return false;
  }

  [[noreturn]] void unknown(const Formula& f, const Indices& indices) const {
    std::vector<std::string> known(indices.begin(), indices.end());
    for (const Operand& o : op_.in) known.push_back(o.name);
    for (const auto& [name, rank] : made_) known.push_back(name);
    for (const AttributeRow& a : op_.attributes) known.push_back(a.name);
    known.insert(known.end(), dims_.begin(), dims_.end());
    fail(f, "an operand, an attribute, a dimension, a result of a line above, or an index that is on the left or summed over",
         fmt::format("'{}'", f.name), did_you_mean(f.name, known));
  }

  const CustomOp& op_;
  std::set<std::string, std::less<>> dims_;
  std::map<std::string, std::size_t, std::less<>> made_;  // results so far, with their numbers of indices
};

}  // namespace

void check_op(const CustomOp& op) { Check(op).run(); }

int arity_of(std::string_view function) {
  if (const auto dtype = dtype_of(function)) return *dtype == DType::string || is_narrow(*dtype) ? 0 : 1;
  for (const OpDef& def : elementwise_ops()) {
    if (def.name == function) return def.min_inputs;
  }
  return 0;
}

std::vector<std::string> function_names() {
  std::vector<std::string> names = {"has", "len", "sum", "mean", "pad"};
  for (const OpDef& def : elementwise_ops()) names.emplace_back(def.name);
  return names;
}

}  // namespace oclc::custom
