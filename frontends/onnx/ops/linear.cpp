// Einstein sums and determinants.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "frontends/onnx/table.h"
#include "frontends/op/product.h"

namespace oclc::onnx {
namespace {

using custom::arranged;
using custom::holds;
using custom::Lettered;
using custom::Letters;
using custom::product_of;
using custom::summed;

// Letters of operands; the axes that "..." stands for are the digits up to '9', right-aligned: '9' is the last of them.

struct Equation {
  std::vector<Letters> operands;
  Letters result;
};

Letters expanded(OpContext& c, const std::string& term, std::size_t covered) {
  Letters out;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.') {
      if (term.compare(i, 3, "...") != 0 || covered > 9) c.fail("an equation with at most 9 axes as ...", printable(term));
      for (std::size_t k = 0; k < covered; ++k) out += static_cast<char>('9' - static_cast<int>(covered - 1 - k));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      out += term[i];
    } else {
      c.fail("letters, commas, -> and ... as equation", printable(term));
    }
  }
  return out;
}

Equation parse_equation(OpContext& c) {
  std::string text = c.text("equation");
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (const char letter : left) {
    if (letter == ',')
      terms.emplace_back();
    else
      terms.back() += letter;
  }
  if (terms.size() != c.inputs()) c.fail(fmt::format("an equation of {} operands", c.inputs()), printable(text));
  Equation e;
  std::size_t widest = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const bool dots = terms[i].find('.') != std::string::npos;
    const std::size_t own = terms[i].size() - (dots ? 3 : 0);
    if (c.rank(i) < own || (!dots && c.rank(i) != own))
      c.fail(fmt::format("operand {} with the axes '{}'", i, printable(terms[i])), c.input(i)->type.text());
    widest = std::max(widest, c.rank(i) - own);
    e.operands.push_back(expanded(c, terms[i], c.rank(i) - own));
  }
  if (arrow != std::string::npos) {
    e.result = expanded(c, text.substr(arrow + 2), widest);
  } else {
    // The axes of "...", then the letters that occur once, sorted.
    std::map<char, int> count;
    for (const Letters& letters : e.operands) {
      for (const char letter : letters) ++count[letter];
    }
    for (const auto& [letter, times] : count) {
      if (times == 1 || std::isdigit(static_cast<unsigned char>(letter))) e.result += letter;
    }
  }
  return e;
}

// Axes that have one letter become their diagonal.
Lettered without_repeats(OpContext& c, Lettered x) {
  for (std::size_t i = 0; i < x.letters.size(); ++i) {
    const std::size_t j = x.letters.find(x.letters[i], i + 1);
    if (j == Letters::npos) continue;
    Shape shape = x.value->type.shape;
    if (!(shape[i] == shape[j])) c.fail("equal sizes along axes of one letter", x.value->type.text());
    const auto ramp = [&](std::size_t axis) {
      Shape line(shape.size(), Expr(1));
      line[axis] = shape[axis];
      return c.b.iota(line, static_cast<std::int64_t>(axis), DType::i64);
    };
    Value* kept = c.b.where(c.b.call("equal", {ramp(i), ramp(j)}), x.value, c.b.scalar(x.value->type.dtype, 0));
    x.value = c.b.reduce("reduce_sum", kept, {static_cast<std::int64_t>(j)}, false);
    x.letters.erase(j, 1);
    return without_repeats(c, std::move(x));
  }
  return x;
}

Outputs einsum(OpContext& c) {
  const Equation e = parse_equation(c);
  const auto needed_after = [&](std::size_t i) {
    Letters needed = e.result;
    for (std::size_t k = i; k < e.operands.size(); ++k) needed += e.operands[k];
    return needed;
  };
  Lettered sum = without_repeats(c, {c.input(0), e.operands[0]});
  sum = summed(c.b, sum, needed_after(1));
  for (std::size_t i = 1; i < e.operands.size(); ++i) {
    const Lettered next = summed(c.b, without_repeats(c, {c.input(i), e.operands[i]}), sum.letters + needed_after(i + 1));
    sum = product_of(c.b, sum, next, needed_after(i + 1));
  }
  for (const char letter : e.result) {
    if (!holds(sum.letters, letter)) c.fail("letters of the operands in the result", fmt::format("'{}'", letter));
  }
  return {arranged(c.b, sum, e.result)};
}

// Square matrices [.., n, n], as [count, n, n].
struct SquareMatrices {
  explicit SquareMatrices(OpContext& c) : x(c.input(0)) {
    const std::size_t rank = x->type.rank();
    if (rank < 2 || !(x->type.shape[rank - 1] == x->type.shape[rank - 2])) c.fail("square matrices", x->type.text());
    n = x->type.shape.back();
    count = product(std::span<const Expr>(x->type.shape).first(rank - 2));
    all = c.b.reshape(x, {count, n, n});
  }

  Value* x;
  Value* all;
  Expr n, count;
};

// A step of Gaussian elimination with partial pivoting, of a loop over columns whose body `b` builds: column k of `a`,
// [count, n, columns].
struct EliminationStep {
  EliminationStep(Builder& b, Value* a, const Expr& k) {
    const DType dtype = a->type.dtype;
    row = b.iota({Expr(1), a->type.shape[1], Expr(1)}, 1, DType::i64);
    step = b.exprs({k}, {});
    Value* left = b.call("greater_equal", {row, step});
    Value* size = b.where(left, b.unary("abs", b.slice_axis(a, 2, k, Expr(1))), b.scalar(dtype, -1));
    pivot_row = b.arg("argmax", size, 1, true);
    chosen = b.gather_elements(a, b.expand(pivot_row, {a->type.shape[0], Expr(1), a->type.shape[2]}), 1);
    pivot = b.slice_axis(chosen, 2, k, Expr(1));
    swapped = b.where(b.call("equal", {row, pivot_row}), b.slice_axis(a, 1, k, Expr(1)), a);
  }

  Value *row, *step;      // numbers of the rows, and k
  Value* pivot_row;       // [count, 1, 1]
  Value *chosen, *pivot;  // that row, and its element in column k
  Value* swapped;         // `a` with row k in the place of the chosen one
};

// [.., n, n] -> [..]
Outputs determinant(OpContext& c) {
  const SquareMatrices m(c);
  const DType dtype = m.x->type.dtype;
  Value* one = c.b.expand(c.b.scalar(dtype, 1), {m.count, Expr(1), Expr(1)});
  const std::string counter = fmt::format("elimination_step_{}", c.b.graph().size());
  auto body = std::make_unique<Graph>();
  body->name = "step";
  Builder b(*body, c.b);
  Value *a = body->add_input("a", m.all->type), *found = body->add_input("found", one->type);
  const Expr k = Expr::axis(counter, m.n);
  const EliminationStep s(b, a, k);
  Value* zero = b.scalar(dtype, 0);
  Value* swapped = b.where(b.call("equal", {s.row, s.step}), s.chosen, s.swapped);
  Value* below = b.call("and", {b.call("greater", {s.row, s.step}), b.unary("not", b.call("equal", {s.pivot, zero}))});
  Value* factor = b.where(below, b.div(b.slice_axis(swapped, 2, k, Expr(1)), s.pivot), zero);
  Value* sign = b.where(b.call("equal", {s.pivot_row, s.step}), b.scalar(dtype, 1), b.scalar(dtype, -1));
  body->add_output("a", b.sub(swapped, b.mul(factor, s.chosen)));
  body->add_output("found", b.mul(found, b.mul(s.pivot, sign)));
  const Node* loop = c.b.loop(m.n, counter, {m.all, one}, {}, std::move(body));
  return {c.b.reshape(loop->output(1), Shape(m.x->type.shape.begin(), m.x->type.shape.end() - 2))};
}

// [.., n, n] -> [.., n, n], by elimination of [A | 1].
Outputs inverse(OpContext& c) {
  const SquareMatrices m(c);
  const Expr& n = m.n;
  Value* same = c.b.call("equal", {c.b.iota({n, Expr(1)}, 0, DType::i64), c.b.iota({Expr(1), n}, 1, DType::i64)});
  Value* unit = c.b.expand(c.b.reshape(c.b.cast(same, m.x->type.dtype), {Expr(1), n, n}), {m.count, n, n});
  Value* start = c.b.concat({m.all, unit}, 2);
  const std::string counter = fmt::format("inversion_step_{}", c.b.graph().size());
  auto body = std::make_unique<Graph>();
  body->name = "step";
  Builder b(*body, c.b);
  Value* a = body->add_input("a", start->type);
  const Expr k = Expr::axis(counter, n);
  const EliminationStep s(b, a, k);
  Value* scaled = b.div(s.chosen, s.pivot);
  Value* factor = b.slice_axis(s.swapped, 2, k, Expr(1));
  body->add_output("a", b.where(b.call("equal", {s.row, s.step}), scaled, b.sub(s.swapped, b.mul(factor, scaled))));
  const Node* loop = c.b.loop(n, counter, {start}, {}, std::move(body));
  return {c.b.reshape(c.b.slice_axis(loop->output(0), 2, n, n), m.x->type.shape)};
}

constexpr OpRow kLinearRows[] = {
    {"com.microsoft.Inverse", 1, 1, 1, inverse},
    {"Det", 11, 1, 1, determinant},
    {"Einsum", 12, 1, kAnyNumber, einsum},
};

}  // namespace

std::span<const OpRow> linear_rows() { return kLinearRows; }

}  // namespace oclc::onnx
