#include "runtime/expressions.h"

#include <vector>

#include "runtime/failure.h"
#include "runtime/package/expr_code.h"

namespace oclc::runtime {

namespace fb = oclc::plan;
using package::ExprOp;

std::int64_t evaluate(const fb::Expr* e, std::span<const std::int64_t> symbols, const char* what, std::int64_t otherwise) {
  if (!e || !e->code() || e->code()->size() == 0) return otherwise;
  const auto value = package::evaluate({e->code()->data(), e->code()->size()}, symbols);
  if (!value)
    throw Failure(OCLC_E_BINDING, std::string(what) + ": its value overflows or divides by zero with these dimensions");
  return *value;
}

int plain_symbol(const fb::Expr* e) {
  if (!e || !e->code() || e->code()->size() != 2 || e->code()->Get(0) != static_cast<std::int64_t>(ExprOp::symbol)) return -1;
  return static_cast<int>(e->code()->Get(1));
}

std::string expression_text(const fb::Plan& plan, const fb::Expr* e) {
  struct Part {
    std::string text;
    int strength;  // 3 atom, 2 product, 1 sum
  };
  if (!e || !e->code()) return "?";
  std::vector<Part> stack;
  for (std::uint32_t i = 0; i < e->code()->size(); ++i) {
    const auto op = static_cast<ExprOp>(e->code()->Get(i));
    if (op == ExprOp::constant) {
      const std::int64_t value = e->code()->Get(++i);
      stack.push_back({std::to_string(value), value < 0 ? 1 : 3});
      continue;
    }
    if (op == ExprOp::symbol) {
      stack.push_back({plan.symbols()->Get(static_cast<std::uint32_t>(e->code()->Get(++i)))->name()->str(), 3});
      continue;
    }
    const Part b = stack.back();
    stack.pop_back();
    Part& a = stack.back();
    const auto wrapped = [](const Part& p, int needed) { return p.strength >= needed ? p.text : "(" + p.text + ")"; };
    switch (op) {
      case ExprOp::add:
        a = b.text.starts_with('-') ? Part{a.text + " - " + b.text.substr(1), 1} : Part{a.text + " + " + b.text, 1};
        break;
      case ExprOp::mul:
        a = {wrapped(a, 2) + "*" + wrapped(b, 2), 2};
        break;
      case ExprOp::floor_div:
        a = {wrapped(a, 2) + "/" + wrapped(b, 3), 2};
        break;
      case ExprOp::mod:
        a = {wrapped(a, 2) + "%" + wrapped(b, 3), 2};
        break;
      default:
        a = {std::string(op == ExprOp::min ? "min(" : "max(") + a.text + ", " + b.text + ")", 3};
    }
  }
  return stack.back().text;
}

std::string shape_text(const fb::Plan& plan, const flatbuffers::Vector<flatbuffers::Offset<fb::Expr>>* shape) {
  std::string text = "[";
  for (std::uint32_t d = 0; shape && d < shape->size(); ++d) text += (d ? ", " : "") + expression_text(plan, shape->Get(d));
  return text + "]";
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

}  // namespace oclc::runtime
