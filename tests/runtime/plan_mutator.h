// Plans that are almost right: one is taken apart, a few of its values are changed, and it is put together with right
// checksums.
#pragma once
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/plan_builder.h"
#include "tests/support/edge_numbers.h"

namespace oclc::test {

class PlanMutator {
 public:
  explicit PlanMutator(std::uint64_t seed) : random_(seed) {}

  // Changes one to four things.
  void mutate(fb::PlanT& plan) {
    for (std::uint64_t left = below(4) + 1; left > 0; --left) change(plan);
  }

  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  template <class List>
  auto* pick(List& list) {
    return list.empty() ? nullptr : &list[static_cast<std::size_t>(below(list.size()))];
  }
  std::int64_t number() {
    return edge_number([this](std::uint64_t n) { return below(n); });
  }
  int index() { return static_cast<int>(below(14)) - 2; }
  std::string name() {
    const std::string names[] = {
        "", "a", "y", "predict", std::string("\x1b[0m"), std::string(9000, 'n'), std::string("x\0y", 3)};
    return names[below(std::size(names))];
  }

  void change(fb::PlanT& plan) {
    switch (below(12)) {
      case 0:
        return change_symbol(plan);
      case 1:
      case 2:
      case 3:
        if (auto* b = pick(plan.buffers)) change_buffer(plan, **b);
        return;
      case 4:
        if (auto* e = pick(plan.entries)) change_bindings(**e);
        return;
      case 5:
        if (auto* v = pick(plan.variables)) change_variable(**v);
        return;
      default:
        if (auto* e = pick(plan.entries)) change_steps((*e)->steps);
    }
  }

  void change_expr(ExprPtr& e) {
    if (!e || e->code.empty() || below(8) == 0) {
      e = below(9) == 0 ? std::make_unique<fb::ExprT>() : E(number()).ptr();
      return;
    }
    std::vector<std::int64_t>& code = e->code;
    switch (below(4)) {
      case 0:
        *pick(code) = number();
        return;
      case 1:
        code.back() = static_cast<std::int64_t>(below(9));
        return;
      case 2:
        code.insert(code.end(), {0, number(), static_cast<std::int64_t>(2 + below(6))});
        return;
      default:
        code.insert(code.end(), {1, static_cast<std::int64_t>(below(4)), static_cast<std::int64_t>(2 + below(6))});
    }
  }

  void change_symbol(fb::PlanT& plan) {
    if (below(4) == 0) {
      plan.symbols.push_back(symbol("added" + std::to_string(plan.symbols.size()), 0, 1 << 24, true));
      plan.symbols.back()->upper = E(number()).ptr();
      return;
    }
    auto* s = pick(plan.symbols);
    if (!s) return;
    switch (below(6)) {
      case 0:
        (*s)->lo = number();
        return;
      case 1:
        (*s)->hi = number();
        return;
      case 2:
        (*s)->loop = !(*s)->loop;
        return;
      case 3:
        (*s)->open = !(*s)->open;
        return;
      case 4:
        (*s)->name = name();
        return;
      default:
        change_expr((*s)->upper);
    }
  }

  void change_buffer(fb::PlanT& plan, fb::BufferT& b) {
    switch (below(10)) {
      case 0:
        b.kind = static_cast<fb::BufferKind>(below(6));
        return;
      case 1:
        b.dtype = static_cast<fb::DType>(below(22));
        return;
      case 2:
        b.constant_offset = static_cast<std::uint64_t>(number());
        return;
      case 3:
        b.has_initial = !b.has_initial;
        return;
      case 4:
        b.entry = index();
        return;
      case 5:
        b.first = index();
        return;
      case 6:
        b.last = index();
        return;
      case 7:
        b.alias = index();
        return;
      case 8:
        b.pieces.push_back(fb::Piece(number() / 128 * 128, index()));
        if (below(2) == 0) b.pieces.insert(b.pieces.begin(), fb::Piece(0, b.first));
        return;
      default:
        if (below(20) == 0) plan.buffers.push_back(std::make_unique<fb::BufferT>(b));
        change_expr(b.bytes);
    }
  }

  void change_bindings(fb::EntryT& e) {
    auto* b = pick(below(2) == 0 ? e.inputs : e.outputs);
    if (!b) return;
    switch (below(5)) {
      case 0:
        (*b)->dtype = static_cast<fb::DType>(below(22));
        return;
      case 1:
        (*b)->buffer = index();
        return;
      case 2:
        (*b)->name = name();
        return;
      case 3:
        (*b)->shape.push_back(E(number()).ptr());
        return;
      default:
        if (auto* d = pick((*b)->shape)) change_expr(*d);
    }
  }

  void change_variable(fb::VariableT& v) {
    switch (below(4)) {
      case 0:
        v.buffer = index();
        return;
      case 1:
        v.offset = number();
        return;
      case 2:
        v.dtype = static_cast<fb::DType>(below(22));
        return;
      default:
        if (auto* d = pick(v.shape)) change_expr(*d);
    }
  }

  void change_arg(std::unique_ptr<fb::ArgT>& a) {
    if (!a) a = std::make_unique<fb::ArgT>();
    switch (below(8)) {
      case 0:
        a->kind = static_cast<fb::ArgKind>(below(6));
        return;
      case 4:
        a->kind = fb::ArgKind::rows;
        a->numbers.resize(below(9));
        return;
      case 5: {
        auto& cell = a->cells.emplace_back(std::make_unique<fb::CellT>());
        cell->at = static_cast<std::uint32_t>(below(9));
        cell->buffer = index();
        cell->base = index();
        cell->plus = static_cast<int>(below(9)) - 1;
        cell->writes = below(2) == 0;
        change_expr(cell->value);
        return;
      }
      case 1:
        a->buffer = index();
        return;
      case 2:
        a->writes = !a->writes;
        return;
      case 3:
        a->shared = !a->shared;
        return;
      default:
        change_expr(a->value);
    }
  }

  void change_steps(std::vector<std::unique_ptr<fb::StepT>>& steps) {
    if (steps.empty()) return;
    const std::size_t at = static_cast<std::size_t>(below(steps.size()));
    switch (below(12)) {
      case 0:
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at));
        return;
      case 1:
        steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(at), std::make_unique<fb::StepT>(*steps[at]));
        return;
      case 2:
        std::swap(steps[at], steps[static_cast<std::size_t>(below(steps.size()))]);
        return;
      case 3: {
        std::vector<std::unique_ptr<fb::StepT>> body;
        body.push_back(std::make_unique<fb::StepT>(*steps[at]));
        steps[at] = loop(number(), index(), std::move(body));
        return;
      }
      default:
        change_step(*steps[at]);
    }
  }

  void change_step(fb::StepT& step) {
    if (auto* l = step.body.AsLaunch()) return change_launch(*l);
    if (auto* l = step.body.AsLoop()) {
      if (below(2) == 0) return change_steps(l->body);
      if (below(2) == 0) return change_expr(l->trip);
      (below(2) == 0 ? l->counter : l->condition) = index();
      return;
    }
    if (auto* r = step.body.AsRead()) {
      if (below(2) == 0) return change_arg(r->from);
      r->dims.push_back(index());
      return;
    }
    if (auto* h = step.body.AsHost()) return change_host(*h);
    if (auto* g = step.body.AsBlasGemm()) {
      ExprPtr* sizes[] = {&g->m, &g->n, &g->k, &g->lda, &g->ldb, &g->ldc, &g->batch, &g->stride_a, &g->stride_b, &g->stride_c};
      std::unique_ptr<fb::ArgT>* operands[] = {&g->a, &g->b, &g->c};
      if (below(3) == 0) return change_arg(*operands[below(3)]);
      change_expr(*sizes[below(std::size(sizes))]);
      if (below(4) == 0) g->trans_a = !g->trans_a;
    }
  }

  void change_launch(fb::LaunchT& l) {
    switch (below(8)) {
      case 0:
        if (auto* g = pick(l.global)) change_expr(*g);
        return;
      case 1:
        if (auto* size = pick(l.local)) *size = static_cast<std::uint32_t>(number());
        return;
      case 2:
        if (!l.args.empty()) l.args.erase(l.args.begin() + static_cast<std::ptrdiff_t>(below(l.args.size())));
        return;
      case 3:
        if (auto* a = pick(l.args)) l.args.push_back(std::make_unique<fb::ArgT>(**a));
        return;
      case 4: {
        auto part = std::make_unique<fb::PartT>();
        part->name = name();
        if (auto* a = pick(l.args)) part->args.push_back(std::make_unique<fb::ArgT>(**a));
        l.parts.push_back(std::move(part));
        return;
      }
      default:
        if (auto* a = pick(l.args)) change_arg(*a);
    }
  }

  void change_host(fb::HostT& h) {
    switch (below(5)) {
      case 0:
        h.op = std::vector<std::string>{"string_concat",    "string_split",     "number_to_string",
                                        "string_to_number", "regex_full_match", "none"}[static_cast<std::size_t>(below(6))];
        return;
      case 1:
        if (auto* i = pick(h.integers)) *i = number();
        return;
      case 2:
        h.texts.push_back(name());
        return;
      default: {
        auto* o = pick(below(2) == 0 ? h.inputs : h.outputs);
        if (!o) return;
        if (below(2) == 0) return change_arg((*o)->at);
        if (auto* d = pick((*o)->shape)) change_expr(*d);
      }
    }
  }

  std::mt19937_64 random_;
};

}  // namespace oclc::test
