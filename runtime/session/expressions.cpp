#include "runtime/session/expressions.h"

#include <string_view>
#include <utility>
#include <vector>

#include "runtime/failure.h"
#include "runtime/package/expr_code.h"
#include "runtime/package/limits.h"

namespace oclc::runtime {

namespace fb = oclc::plan;
using package::ExprOp;

std::int64_t evaluate(const fb::Expr* e, std::span<const std::int64_t> symbols, const char* what, std::int64_t otherwise) {
  if (!e || !e->code() || e->code()->size() == 0) return otherwise;
  const auto value = package::evaluate({e->code()->data(), e->code()->size()}, symbols);
  if (!value)
    throw Failure(OCLC_E_BINDING,
                  std::string(what) + ": its value overflows, or it divides by 0 or less, with these dimensions");
  return *value;
}

int plain_symbol(const fb::Expr* e) {
  if (!e || !e->code() || e->code()->size() != 2 || e->code()->Get(0) != static_cast<std::int64_t>(ExprOp::symbol)) return -1;
  return static_cast<int>(e->code()->Get(1));
}

namespace {

struct Part {
  std::string text;
  int strength;  // 3 atom, 2 product, 1 sum

  void append(std::string_view more) {
    if (text.size() < package::kMaxShownBytes) text += more;
    cut();
  }
  void prepend(std::string_view more) {
    text.insert(0, more);
    cut();
  }
  void wrap(int needed) {
    if (strength >= needed) return;
    prepend("(");
    append(")");
  }
  // Longer than anybody reads.
  void cut() {
    if (text.size() >= package::kMaxShownBytes) text.replace(package::kMaxShownBytes - 3, text.npos, "...");
  }
};

void join(Part& a, Part b, ExprOp op) {
  switch (op) {
    case ExprOp::add: {
      const bool minus = b.text.starts_with('-');
      a.append(minus ? " - " : " + ");
      a.append(std::string_view(b.text).substr(minus ? 1 : 0));
      a.strength = 1;
      return;
    }
    case ExprOp::mul:
    case ExprOp::floor_div:
    case ExprOp::mod:
      a.wrap(2);
      b.wrap(op == ExprOp::mul ? 2 : 3);
      a.append(op == ExprOp::mul ? "*" : op == ExprOp::mod ? "%" : "/");
      a.append(b.text);
      a.strength = 2;
      return;
    default:
      a.prepend(op == ExprOp::min ? "min(" : "max(");
      a.append(", ");
      a.append(b.text);
      a.append(")");
      a.strength = 3;
  }
}

}  // namespace

std::string expression_text(const fb::Plan& plan, const fb::Expr* e) {
  if (!e || !e->code()) return "?";
  std::vector<Part> stack;
  for (std::uint32_t i = 0; i < e->code()->size(); ++i) {
    const auto op = static_cast<ExprOp>(e->code()->Get(i));
    if (op == ExprOp::constant || op == ExprOp::symbol) {
      const std::int64_t value = e->code()->Get(++i);
      stack.push_back({"", op == ExprOp::constant && value < 0 ? 1 : 3});
      stack.back().append(op == ExprOp::constant ? std::to_string(value)
                                                 : plan.symbols()->Get(static_cast<std::uint32_t>(value))->name()->str());
      continue;
    }
    Part b = std::move(stack.back());
    stack.pop_back();
    join(stack.back(), std::move(b), op);
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
