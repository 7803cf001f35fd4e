#include "compiler/codegen/text/reduction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/ir/typical.h"
#include "compiler/kernels/kernel_part.h"

namespace oclc {
namespace {

// Rows of a strip by which lines are asked for before they are added up, and rows from which on they are. Fewer rows of more
// than kFewColumns wait in the second-level cache, with what lies beside the strip, and the processor asks for the next ones.
constexpr std::int64_t kRowsAhead = 16, kFewestRows = 64, kFewestWideRows = 256, kFewColumns = 256;

}  // namespace

std::string initial_text(Stage::Combine combine, DType dtype) {
  if (dtype == DType::boolean) return combine == Stage::Combine::min ? "1" : "0";
  const double infinity = std::numeric_limits<double>::infinity();
  switch (combine) {
    case Stage::Combine::sum:
      return c_number(0, dtype);
    case Stage::Combine::product:
      return c_number(1, dtype);
    case Stage::Combine::max:
    case Stage::Combine::argmax_first:
    case Stage::Combine::argmax_last:
      return is_float(dtype)     ? c_number(-infinity, dtype)
             : !is_signed(dtype) ? "0"
                                 : fmt::format("(({})1 << {})", c_type(dtype), size_bytes(dtype) * 8 - 1);
    default:
      return is_float(dtype)     ? c_number(infinity, dtype)
             : !is_signed(dtype) ? fmt::format("({})~({})0", c_type(dtype), c_type(dtype))
                                 : fmt::format("({})~(({})1 << {})", c_type(dtype), c_type(dtype), size_bytes(dtype) * 8 - 1);
  }
}

std::string combine_text(Stage::Combine combine, DType dtype, const std::string& a, const std::string& b) {
  if (dtype == DType::boolean)
    return fmt::format("{} {} {}", a, combine == Stage::Combine::min ? "&&" : "||", b);  // lanes hold 0 or -1
  switch (combine) {
    case Stage::Combine::sum:
      return fmt::format("{} + {}", a, b);
    case Stage::Combine::product:
      return fmt::format("{} * {}", a, b);
    case Stage::Combine::max:
      return fmt::format("{}max({}, {})", is_float(dtype) ? "oclc_" : "", a, b);
    default:
      return fmt::format("{}min({}, {})", is_float(dtype) ? "oclc_" : "", a, b);
  }
}

std::string lane_function(Stage::Combine combine) {
  switch (combine) {
    case Stage::Combine::sum:
      return "oclc_lanes_sum";
    case Stage::Combine::product:
      return "oclc_lanes_product";
    case Stage::Combine::max:
      return "oclc_lanes_max";
    default:
      return "oclc_lanes_min";
  }
}

std::string beside_sum(const std::string& sum, const std::string& suffix) {
  const std::size_t bracket = std::min(sum.find('['), sum.size());
  return sum.substr(0, bracket) + suffix + sum.substr(bracket);
}

std::string carry_text(const std::string& sum, const std::string& term) {
  return fmt::format("oclc_add_carrying(&{}, &{}, {});", sum, beside_sum(sum, "_rest"), term);
}

void accumulate_term(Emitter& e, const Kernel& kernel, const Stage& stage, const std::string& name, bool vector, bool carry) {
  const ScalarNode& body = kernel.nodes[static_cast<std::size_t>(stage.body)];
  if (carry) {
    const std::string term = vector ? e.vector_value(stage.body) : e.value(stage.body);
    e.line(carry_text(name, term));
    return;
  }
  if (stage.combine == Stage::Combine::sum && body.kind == ScalarNode::Kind::apply && body.op_name == "mul" &&
      stage.accumulator == DType::f32) {
    const auto factor = [&](NodeId id) { return vector ? e.vector_value(id) : e.value(id); };
    e.line(fmt::format("{0} = fma({1}, {2}, {0});", name, factor(body.args[0]), factor(body.args[1])));
    return;
  }
  e.line(fmt::format(
      "{} = {};", name,
      combine_text(stage.combine, stage.accumulator, name, vector ? e.vector_value(stage.body) : e.value(stage.body))));
}

void compare_term(Emitter& e, const Stage& stage, const std::string& name) {
  const std::string x = e.value(stage.body);
  const bool largest = stage.combine == Stage::Combine::argmax_first || stage.combine == Stage::Combine::argmax_last;
  const bool last = stage.combine == Stage::Combine::argmax_last || stage.combine == Stage::Combine::argmin_last;
  const std::string position = e.value(stage.arg_index);
  // A NaN is taken, and then stays: comparisons with it are false.
  const std::string nan = !is_float(stage.accumulator) ? ""
                          : last                       ? fmt::format(" || isnan({})", x)
                                                       : fmt::format(" || (isnan({}) && !isnan({}))", x, name);
  e.line(fmt::format("if ({0} {1}{2} {3}{5}) {3} = {0}, {3}_at = {4};", x, largest ? ">" : "<", last ? "=" : "", name, position,
                     nan));
}

int end_of_shared_loops(const Emitter& e, const Kernel& kernel, int first) {
  const auto at = [&](int i) -> const Stage& { return kernel.stages[static_cast<std::size_t>(i)]; };
  int last = first + 1;
  if (at(first).arg_index >= 0) return last;
  for (; last < static_cast<int>(kernel.stages.size()); ++last) {
    if (at(last).axes != at(first).axes || at(last).arg_index >= 0) break;
    for (int i = first; i < last; ++i) {
      if (e.depends(at(last).body, fmt::format("stage {}", i))) return last;
    }
  }
  return last;
}

namespace {

// What the sums need.
Kernel summed(const Kernel& kernel) {
  std::vector<NodeId> bodies;
  for (const Stage& s : kernel.stages) bodies.push_back(s.body);
  Kernel part = kernel;
  keep_needed(part, std::move(bodies));
  return part;
}

}  // namespace

bool sums_along(const Kernel& kernel, const std::string& axis) {
  const Kernel part = summed(kernel);
  return std::any_of(part.nodes.begin(), part.nodes.end(), [&](const ScalarNode& n) {
    return n.kind == ScalarNode::Kind::load && n.index.coefficient(axis) == Expr(1);
  });
}

int loads_of_term(const Kernel& kernel) {
  const Kernel part = summed(kernel);
  return static_cast<int>(std::count_if(part.nodes.begin(), part.nodes.end(), [&](const ScalarNode& n) {
    return n.kind == ScalarNode::Kind::load && std::any_of(part.reduction.begin(), part.reduction.end(), [&](const Axis& a) {
             return n.index.coefficient(a.name) != Expr(0);
           });
  }));
}

std::set<std::string> rows_ahead(Emitter& e, const Kernel& kernel, const Axis& columns, const Axis& rows) {
  std::set<std::string> lines;
  if (typical(rows.extent) < (typical(columns.extent) > kFewColumns ? kFewestWideRows : kFewestRows)) return lines;
  for (const ScalarNode& node : kernel.nodes) {
    if (node.kind != ScalarNode::Kind::load || !node.guard.empty() || node.index.coefficient(columns.name) != Expr(1)) continue;
    const auto step = node.index.coefficient(rows.name);
    if (!step || *step == Expr(0)) continue;
    lines.insert(fmt::format("oclc_prefetch({} + {});", kernel.operands[static_cast<std::size_t>(node.operand)].name,
                             e.index(node.index + *step * Expr(kRowsAhead))));
  }
  return lines;
}

}  // namespace oclc
