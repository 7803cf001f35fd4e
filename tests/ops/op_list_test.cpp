#include <doctest/doctest.h>

#include <cctype>
#include <set>

#include "compiler/ops/builder.h"
#include "compiler/ops/op_list.h"
#include "compiler/support/error.h"

using namespace oclc;

TEST_CASE("every operator is complete") {
  std::set<std::string_view> names, of_training;
  for (const OpDef& def : training_ops()) of_training.insert(def.name);
  for (const OpDef* def : all_ops()) {
    CAPTURE(def->name);
    CHECK(names.insert(def->name).second);
    CHECK(&op(def->name) == def);
    CHECK_FALSE(def->formula.empty());
    CHECK(static_cast<bool>(def->infer));
    CHECK(static_cast<bool>(def->eval));
    CHECK(static_cast<bool>(def->cost));
    // Only what build_training replaces needs no lowering.
    CHECK((def->kind == OpKind::opaque) == (of_training.count(def->name) != 0));
    CHECK(def->min_inputs >= 0);
    CHECK(def->max_inputs >= def->min_inputs);
    CHECK((def->kind == OpKind::generator) == (def->max_inputs == 0));
    CHECK((def->scalar != nullptr) == (def->kind == OpKind::elementwise && def->name != "cast" && def->name != "bitcast"));
  }
  CHECK(names.size() >= 70);
}

TEST_CASE("every elementwise operator has text and reference for the same types") {
  for (const OpDef* def : all_ops()) {
    if (!def->scalar) continue;
    CAPTURE(def->name);
    const ScalarOp& scalar = *def->scalar;
    CHECK(scalar.float_text.empty() == (scalar.on_float == nullptr));
    CHECK(scalar.integer_text.empty() == (scalar.on_int == nullptr));
    CHECK_FALSE((scalar.float_text.empty() && scalar.integer_text.empty()));
    CHECK(scalar.flops >= 1);
    // Each operand is named in the text.
    for (int i = 0; i < def->min_inputs; ++i) {
      const char operand = static_cast<char>('a' + i);
      for (const std::string_view text : {scalar.float_text, scalar.integer_text}) {
        if (text.empty()) continue;
        bool named = false;
        for (std::size_t at = text.find(operand); at != std::string_view::npos; at = text.find(operand, at + 1)) {
          const auto is_word = [&](std::size_t k) {
            return k < text.size() && (std::isalnum(static_cast<unsigned char>(text[k])) != 0 || text[k] == '_');
          };
          named = named || (!is_word(at + 1) && (at == 0 || !is_word(at - 1)));
        }
        CHECK(named);
      }
    }
  }
}

TEST_CASE("an unknown operator is an internal error") {
  CHECK(find_op("no_such_op") == nullptr);
  CHECK_THROWS_AS(op("no_such_op"), InternalError);
}

TEST_CASE("costs count floating-point operations") {
  Graph graph;
  const Expr n = Expr::symbol("N");
  Value* x = graph.add_input("x", {DType::f32, {n, 3, 8, 8}});
  Value* w = graph.add_input("w", {DType::f32, {16, 3, 3, 3}});
  Builder b(graph);
  const auto flops = [](const Value* v) { return v->producer->op->cost(*v->producer).flops; };
  CHECK(flops(b.conv(x, w, nullptr, {.pads = {1, 1, 1, 1}})) == n * Expr(16 * 64 * 27 * 2));
  CHECK(flops(b.matmul(x, x, false, true)) == n * Expr(3 * 8 * 8 * 8 * 2));
  CHECK(flops(b.add(x, x)) == n * Expr(192));
  CHECK(flops(b.fma(x, x, x)) == n * Expr(384));
  CHECK(flops(b.max_pool(x, {.kernel = {2, 2}, .strides = {2, 2}})) == n * Expr(3 * 16 * 4));
  CHECK(flops(b.reshape(x, {n * Expr(192)})) == Expr(0));
}
