// Keys of the head that belong to operators in OpenCL C, once their values are read: shapes of what they say, and the formulas
// of gradients, whose left sides have the indices that run over the operand's dimensions.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontends/op/code.h"
#include "frontends/op/head.h"

namespace oclc::custom {
namespace {

using BoundIndices = std::set<std::string, std::less<>>;

// Indices that stand alone somewhere, in order, with the dimension that they run over.
class FreeIndices {
 public:
  explicit FreeIndices(const CustomOp& op) : op_(op) {}

  void collect(const Formula& f, BoundIndices bound) {
    if (f.form == Form::reduce) bound.insert(f.indices.begin(), f.indices.end());
    if (f.form == Form::element || f.form == Form::padded) positions(f, bound);
    for (const Formula& part : f.parts) collect(part, bound);
  }

  std::vector<std::pair<std::string, std::string>> found;  // index, dimension

 private:
  void positions(const Formula& f, const BoundIndices& bound) {
    std::string_view name = f.name;
    const Operand* operand = op_.operand(name);
    if (!operand) operand = op_.output(name.starts_with("d_") ? name.substr(2) : name);
    const std::size_t skipped = f.form == Form::padded ? 1 : 0;
    if (!operand || operand->dims.size() + skipped != f.parts.size()) return;
    for (std::size_t k = 0; k < operand->dims.size(); ++k) {
      const Formula& at = f.parts[k + skipped];
      if (at.form == Form::name && bound.count(at.name) == 0 && !op_.attribute(at.name) && !op_.operand(at.name))
        found.emplace_back(at.name, text_of(operand->dims[k]));
    }
  }

  const CustomOp& op_;
};

Formula named(std::string name, const Place& place) {
  Formula f;
  f.form = Form::name;
  f.name = std::move(name);
  f.place = place;
  return f;
}

Formula target_of(const CustomOp& op, const Operand& operand, const Formula& value) {
  Formula target = named("d_" + operand.name, value.place);
  if (operand.dims.empty()) return target;
  target.form = Form::element;
  FreeIndices indices(op);
  indices.collect(value, {});
  BoundIndices taken;
  for (const Formula& dim : operand.dims) {
    const std::string wanted = text_of(dim);
    const auto at = std::find_if(indices.found.begin(), indices.found.end(),
                                 [&](const auto& i) { return i.second == wanted && taken.count(i.first) == 0; });
    if (at == indices.found.end())
      fail_at(
          op.file, value.place,
          fmt::format("an index over {} of '{}' in its gradient, where it stands alone: an operand of that dimension has it",
                      wanted, operand.name),
          "none");
    taken.insert(at->first);
    target.parts.push_back(named(at->first, value.place));
  }
  return target;
}

// An operator of formulas that says something of another one, which computes by OpenCL C.
std::shared_ptr<CustomOp> formulas_beside(const CustomOp& op) {
  auto formulas = std::make_shared<CustomOp>();
  formulas->name = op.name;
  formulas->for_host = true;
  formulas->file = op.file;
  formulas->place = op.place;
  formulas->types = op.types;
  formulas->attributes = op.attributes;
  return formulas;
}

}  // namespace

std::shared_ptr<const CustomOp> reference_of(const CustomOp& op, std::vector<Line> lines) {
  const auto formula = formulas_beside(op);
  formula->in = op.in;
  formula->out = op.out;
  formula->conditions = op.conditions;
  formula->lines = std::move(lines);
  check_op(*formula);
  return formula;
}

void set_gradient(CustomOp& op, const std::vector<std::pair<std::string, Formula>>& formulas) {
  const auto rule = formulas_beside(op);
  for (const Operand& operand : op.in) {
    if (!operand.variable) rule->in.push_back(operand);
  }
  rule->in.insert(rule->in.end(), op.out.begin(), op.out.end());
  for (Operand operand : op.out) {
    operand.name = "d_" + operand.name;
    rule->in.push_back(std::move(operand));
  }
  if (!op.in.empty() && op.in.back().variable) rule->in.push_back(op.in.back());
  for (const auto& [name, value] : formulas) {
    const Operand* operand = op.operand(name);
    if (!operand || operand->variable)
      fail_at(op.file, value.place, "gradients of inputs that are not of variable number", fmt::format("'{}'", name));
    Operand result = *operand;
    result.name = "d_" + name;
    result.optional = false;
    rule->out.push_back(std::move(result));
    rule->lines.push_back({target_of(op, *operand, value), false, value});
    op.differentiated.push_back(static_cast<std::size_t>(operand - op.in.data()));
  }
  check_op(*rule);
  op.gradient = std::move(rule);
}

void check_code(const CustomOp& op) {
  const auto fail = [&](const Place& place, std::string wanted, std::string found) {
    fail_at(op.file, place, std::move(wanted), std::move(found));
  };
  if (!op.scalar.empty()) {
    const Function* f = op.code->function(op.scalar);
    if (!f) fail(op.place, fmt::format("a function '{}' in the file, as 'scalar' of {} says", op.scalar, op.name), "none");
    if (op.out.size() != 1) fail(op.place, "one output of a function of elements", std::to_string(op.out.size()));
    for (const auto* list : {&op.in, &op.out}) {
      for (const Operand& o : *list) {
        if (!o.leading || !o.dims.empty() || o.optional || o.variable)
          fail(o.place, fmt::format("'{}: {}[...]', an element of which the function takes", o.name, o.type), "another form");
      }
    }
    std::map<std::string, std::string, std::less<>> words;
    for (const AttributeRow& row : op.attributes) {
      if (std::holds_alternative<double>(row.value) || std::holds_alternative<std::int64_t>(row.value)) words[row.name] = "1";
    }
    scalar_text(op, *f, words);
    return;
  }
  if (op.code->bodies.count(op.kernel) == 0)
    fail(op.place, fmt::format("OP({}) {{ .. }} in the file, as 'kernel' of {} says", op.kernel, op.name), "none");
  for (const auto* list : {&op.in, &op.out}) {
    for (const Operand& o : *list) {
      if (o.leading) fail(o.place, fmt::format("named dimensions of '{}' in a kernel", o.name), "'...'");
    }
  }
  if (op.group.size() > op.each.size())
    fail(op.place, "a 'group' of at most as many dimensions as 'each'",
         fmt::format("{} and {}", op.group.size(), op.each.size()));
  body_of(op, Build::plain);
}

}  // namespace oclc::custom
