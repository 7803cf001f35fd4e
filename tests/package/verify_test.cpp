#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "runtime/package/memory.h"
#include "runtime/package/verify/verify.h"
#include "tests/package/verify_error.h"
#include "tests/runtime/plan_builder.h"

using namespace oclc;
using namespace oclc::test;

namespace {

ExprPtr code(std::vector<std::int64_t> values) {
  auto e = std::make_unique<fb::ExprT>();
  e->code = std::move(values);
  return e;
}

fb::LaunchT& first_launch(fb::PlanT& plan) { return *plan.entries[0]->steps[0]->body.AsLaunch(); }

// y += i for i in 0..T, with the counter as an argument, under an outer loop.
fb::PlanT loop_plan() {
  fb::PlanT plan = vector_plan();
  plan.symbols.push_back(symbol("i", 0, 100, true));
  plan.symbols.push_back(symbol("j", 0, 100, true));
  auto body =
      launch("plus", 0, {E::symbol(0)}, {1}, reads(4), writes(5), value(fb::ArgKind::int32, E::symbol(1) + E::symbol(2)));
  std::vector<std::unique_ptr<fb::StepT>> inner;
  inner.push_back(std::move(body));
  std::vector<std::unique_ptr<fb::StepT>> outer;
  outer.push_back(loop(E::symbol(1), 2, std::move(inner)));
  plan.entries[0]->steps[2] = loop(5, 1, std::move(outer));
  return plan;
}

fb::PlanT gemm_plan() {
  fb::PlanT plan = vector_plan();
  fb::BlasGemmT g;
  g.a = reads(0);
  g.b = reads(1);
  g.c = writes(3);
  g.m = E(1).ptr(), g.n = E(1).ptr(), g.k = E(1).ptr();
  g.lda = E(1).ptr(), g.ldb = E(1).ptr(), g.ldc = E(1).ptr();
  g.name = "gemm";
  plan.entries[0]->steps[0]->body.Set(std::move(g));
  return plan;
}

struct Mutation {
  const char* error;
  std::function<void(fb::PlanT&)> apply;
};

void check_all(const std::function<fb::PlanT()>& make, const std::vector<Mutation>& mutations) {
  {
    fb::PlanT plan = make();
    CHECK(verify_error(plan).empty());
  }
  for (const Mutation& m : mutations) {
    fb::PlanT plan = make();
    m.apply(plan);
    CHECK(verify_error(plan) == m.error);
  }
}

}  // namespace

TEST_CASE("case 62: wild symbols, programs and names are refused") {
  check_all(
      vector_plan,
      {
          {"symbol 0: has no name", [](auto& p) { p.symbols[0]->name = ""; }},
          {"symbol 1: the name 'N' is used twice", [](auto& p) { p.symbols.push_back(symbol("N", 0, 1)); }},
          {"symbol 0: its range 5 to 4 is not one of dimensions", [](auto& p) { p.symbols[0]->lo = 5, p.symbols[0]->hi = 4; }},
          {"symbol 0: its range -1 to 16777216 is not one of dimensions", [](auto& p) { p.symbols[0]->lo = -1; }},
          {"symbol 0: its name contains a NUL", [](auto& p) { p.symbols[0]->name = std::string("N\0x", 3); }},
          {"symbol 0: its name is longer than 8192 bytes", [](auto& p) { p.symbols[0]->name = std::string(70000, 'x'); }},
          {"program 0: has no source", [](auto& p) { p.programs[0]->source = ""; }},
          {"program 0: its source contains a NUL", [](auto& p) { p.programs[0]->source += std::string("\0", 1); }},
          {"program 0: its build options contain a control character", [](auto& p) { p.programs[0]->options = "-DX\n"; }},
          {"extension 0: wanted an identifier", [](auto& p) { p.extensions.push_back("cl_khr fp16"); }},
      });
}

TEST_CASE("case 62: malformed expressions are refused") {
  const auto bytes_of_a = [](std::vector<std::int64_t> c) { return [c](fb::PlanT& p) { p.buffers[0]->bytes = code(c); }; };
  std::vector<std::int64_t> deep;
  for (int i = 0; i < 65; ++i) deep.insert(deep.end(), {0, 1});
  for (int i = 0; i < 64; ++i) deep.push_back(2);
  check_all(vector_plan, {
                             {"buffer 0 'a' size: has no expression", [](auto& p) { p.buffers[0]->bytes = nullptr; }},
                             {"buffer 0 'a' size: has no expression", bytes_of_a({})},
                             {"buffer 0 'a' size: its expression ends within an operand", bytes_of_a({0})},
                             {"buffer 0 'a' size: its expression ends within an operand", bytes_of_a({1})},
                             {"buffer 0 'a' size: its expression lacks an operand", bytes_of_a({0, 1, 2})},
                             {"buffer 0 'a' size: its expression leaves 2 values", bytes_of_a({0, 1, 0, 2})},
                             {"buffer 0 'a' size: its expression has the unknown operation 8", bytes_of_a({0, 1, 0, 2, 8})},
                             {"buffer 0 'a' size: its expression has the unknown operation -1", bytes_of_a({-1})},
                             {"buffer 0 'a' size: symbol 1 of 1 symbols", bytes_of_a({1, 1})},
                             {"buffer 0 'a' size: symbol -1 of 1 symbols", bytes_of_a({1, -1})},
                             {"buffer 0 'a' size: its expression needs a stack deeper than 64", bytes_of_a(deep)},
                         });
}

TEST_CASE("case 62: wild buffers are refused") {
  check_all(
      vector_plan,
      {
          {"buffer 0 'a': unknown element type 99", [](auto& p) { p.buffers[0]->dtype = static_cast<fb::DType>(99); }},
          {"buffer 0 'a': unknown kind 5", [](auto& p) { p.buffers[0]->kind = static_cast<fb::BufferKind>(5); }},
          {"buffer 0 'a': only arena buffers may be aliases", [](auto& p) { p.buffers[0]->alias = 1; }},
          {"buffer 2 'w': its slice [64, +16) lies outside the constant section of 16 bytes",
           [](auto& p) { p.buffers[2]->constant_offset = 64; }},
          {"buffer 2 'w': its slice [0, +17) lies outside the constant section of 16 bytes",
           [](auto& p) { p.buffers[2]->bytes = E(17).ptr(); }},
          {"buffer 2 'w': its size is negative", [](auto& p) { p.buffers[2]->bytes = E(-4).ptr(); }},
          {"buffer 2 'w': its place in the constant section is not a multiple of 64",
           [](auto& p) { p.buffers[2]->constant_offset = 4, p.buffers[2]->bytes = E(8).ptr(); }},
          {"buffer 2 'w' size: its expression must be constant, found symbol 'N'",
           [](auto& p) { p.buffers[2]->bytes = E::symbol(0).ptr(); }},
          {"buffer 2 'w' size: its expression must be constant, found symbol 'N'",
           [](auto& p) { p.buffers[2]->kind = fb::BufferKind::state, p.buffers[2]->bytes = E::symbol(0).ptr(); }},
          {"buffer 3 'sum': entry point 1 of 1", [](auto& p) { p.buffers[3]->entry = 1; }},
          {"buffer 3 'sum': entry point -1 of 1", [](auto& p) { p.buffers[3]->entry = -1; }},
          {"buffer 3 'sum': its life 0 to 3 is not within the schedule of 3 launches", [](auto& p) { p.buffers[3]->last = 3; }},
          {"buffer 3 'sum': its life 2 to 1 is not within the schedule of 3 launches",
           [](auto& p) { p.buffers[3]->first = 2; }},
          {"buffer 3 'sum': its life -1 to 1 is not within the schedule of 3 launches",
           [](auto& p) { p.buffers[3]->first = -1; }},
          {"buffer 4 'scaled': is an alias of buffer 6 of 6", [](auto& p) { p.buffers[4]->alias = 6; }},
          {"buffer 4 'scaled': is an alias of buffer -2 of 6", [](auto& p) { p.buffers[4]->alias = -2; }},
          {"buffer 4 'scaled': is an alias of buffer 0 'a', which is no arena buffer of the same entry point",
           [](auto& p) { p.buffers[4]->alias = 0; }},
          {"buffer 3 'sum': a piece at 64, while offsets ascend from 0 in multiples of 128",
           [](auto& p) {
             p.buffers[3]->pieces = {{0, 0}, {64, 1}};
           }},
          {"buffer 3 'sum': a piece at 128, while offsets ascend from 0 in multiples of 128",
           [](auto& p) {
             p.buffers[3]->pieces = {{128, 0}};
           }},
          {"buffer 3 'sum': a piece at 0, while offsets ascend from 0 in multiples of 128",
           [](auto& p) {
             p.buffers[3]->pieces = {{0, 0}, {0, 1}};
           }},
          {"buffer 3 'sum': a piece used from 2 on, outside its life 0 to 1",
           [](auto& p) {
             p.buffers[3]->pieces = {{0, 0}, {128, 2}};
           }},
          {"buffer 3 'sum': its first piece is used from 1 on, itself from 0",
           [](auto& p) {
             p.buffers[3]->pieces = {{0, 1}, {128, 1}};
           }},
          {"buffer 4 'scaled': is an alias of buffer 3 'sum', whose pieces live apart",
           [](auto& p) {
             p.buffers[3]->pieces = {{0, 0}, {128, 1}};
           }},
          {"buffer 4 'scaled': has pieces and is an alias",
           [](auto& p) {
             p.buffers[4]->pieces = {{0, p.buffers[4]->first}};
           }},
          {"buffer 0 'a': only arena buffers have pieces",
           [](auto& p) {
             p.buffers[0]->pieces = {{0, 0}};
           }},
          {"buffer 3 'sum': its alias chain is a cycle", [](auto& p) { p.buffers[3]->alias = 4; }},
          {"buffer 4 'scaled': its alias chain is a cycle", [](auto& p) { p.buffers[4]->alias = 4; }},
      });
}

TEST_CASE("case 62: wild bindings and variables are refused") {
  check_all(
      vector_plan,
      {
          {"entry point 'predict' input 0: buffer 6 of 6", [](auto& p) { p.entries[0]->inputs[0]->buffer = 6; }},
          {"entry point 'predict' input 0: buffer -1 of 6", [](auto& p) { p.entries[0]->inputs[0]->buffer = -1; }},
          {"entry point 'predict' input 0: buffer 5 'y' is not of kind input",
           [](auto& p) { p.entries[0]->inputs[0]->buffer = 5; }},
          {"entry point 'predict' input 1: buffer 0 'a' is bound twice", [](auto& p) { p.entries[0]->inputs[1]->buffer = 0; }},
          {"entry point 'predict' input 1: the name 'a' is used twice", [](auto& p) { p.entries[0]->inputs[1]->name = "a"; }},
          {"entry point 'predict' output 0: unknown element type 99",
           [](auto& p) { p.entries[0]->outputs[0]->dtype = static_cast<fb::DType>(99); }},
          {"entry point 'predict' input 0 dimension 0: symbol 4 of 1 symbols",
           [](auto& p) { p.entries[0]->inputs[0]->shape[0] = E::symbol(4).ptr(); }},
          {"entry point 'predict' input 0: rank 33 is above 32",
           [](auto& p) {
             while (p.entries[0]->inputs[0]->shape.size() < 33) p.entries[0]->inputs[0]->shape.push_back(E(1).ptr());
           }},
          {"entry point 'predict' input 0 dimension 0: uses the symbol 'late' before it is read",
           [](auto& p) {
             p.symbols.push_back(symbol("late", 0, 100, true));
             p.symbols.back()->upper = E(100).ptr();
             p.entries[0]->inputs[0]->shape[0] = E::symbol(1).ptr();
           }},
          {"entry point 1: the name 'predict' is used twice", [](auto& p) { p.entries.push_back(entry("predict")); }},
          {"variable 0: buffer 0 'a' is not of kind state",
           [](auto& p) { p.variables.push_back(std::make_unique<fb::VariableT>()), p.variables[0]->name = "v"; }},
          {"variable 0: buffer 60 of 6",
           [](auto& p) {
             p.variables.push_back(std::make_unique<fb::VariableT>()), p.variables[0]->name = "v", p.variables[0]->buffer = 60;
           }},
      });
}

TEST_CASE("variables lie within their buffers and apart from each other") {
  const auto plan = [] {
    fb::PlanT p = vector_plan();
    p.buffers.push_back(buffer("parameters", fb::BufferKind::state, 40));
    const auto part = [&](const std::string& name, std::int64_t offset, std::vector<std::int64_t> shape) {
      auto v = std::make_unique<fb::VariableT>();
      v->name = name;
      v->buffer = 6;
      v->offset = offset;
      for (const std::int64_t d : shape) v->shape.push_back(E(d).ptr());
      p.variables.push_back(std::move(v));
    };
    part("w", 4, {2, 3});
    part("b", 0, {4});
    return p;
  };
  check_all(plan, {
                      {"variable 'w': its 6 elements from 5 on lie outside buffer 6 'parameters' of 10",
                       [](auto& p) { p.variables[0]->offset = 5; }},
                      {"variable 'b': its 4 elements from -1 on lie outside buffer 6 'parameters' of 10",
                       [](auto& p) { p.variables[1]->offset = -1; }},
                      {"variable 'b': its 4 elements from 9223372036854775807 on lie outside buffer 6 'parameters' of 10",
                       [](auto& p) { p.variables[1]->offset = INT64_MAX; }},
                      {"variable 'w': its too many elements from 4 on lie outside buffer 6 'parameters' of 10",
                       [](auto& p) { p.variables[0]->shape[0] = E(INT64_MAX).ptr(); }},
                      {"variable 'w': dimension 1 is negative", [](auto& p) { p.variables[0]->shape[1] = E(-3).ptr(); }},
                      {"variable 0 dimension 0: its expression must be constant, found symbol 'N'",
                       [](auto& p) { p.variables[0]->shape[0] = E::symbol(0).ptr(); }},
                      {"buffer 6: its variables 'b' and 'w' overlap", [](auto& p) { p.variables[0]->offset = 3; }},
                      {"variable 'w': wanted the element type f32 of buffer 6 'parameters', found i32",
                       [](auto& p) { p.variables[0]->dtype = fb::DType::i32; }},
                      {"entry point 'predict' input 0: the limit of its values is -2",
                       [](auto& p) { p.entries[0]->inputs[0]->limit = -2; }},
                  });
}

TEST_CASE("case 62: wild launches are refused") {
  const std::string where = "entry point 'predict' step 0 'add'";
  check_all(
      vector_plan,
      {
          {"entry point 'predict' step 0: unknown kind of step 0", [](auto& p) { p.entries[0]->steps[0]->body.Reset(); }},
          {"entry point 'predict' step 0: its kernel name is not an identifier", [](auto& p) { first_launch(p).name = "a b"; }},
          {"entry point 'predict' step 0 'add': program 1 of 1", [](auto& p) { first_launch(p).program = 1; }},
          {"entry point 'predict' step 0 'add': program -1 of 1", [](auto& p) { first_launch(p).program = -1; }},
          {"entry point 'predict' step 0 'add' argument 0: unknown kind 5",
           [](auto& p) { first_launch(p).args[0]->kind = static_cast<fb::ArgKind>(5); }},
          {"entry point 'predict' step 0 'add' argument 0: buffer 6 of 6",
           [](auto& p) { first_launch(p).args[0]->buffer = 6; }},
          {"entry point 'predict' step 0 'add' argument 0: buffer -1 of 6",
           [](auto& p) { first_launch(p).args[0]->buffer = -1; }},
          {"entry point 'predict' step 0 'add' argument 0: buffer 0 'a' is written, but is an input",
           [](auto& p) { first_launch(p).args[0]->writes = true; }},
          {"entry point 'predict' step 1 'scale' argument 1: buffer 2 'w' is written, but is a constant",
           [](auto& p) { p.entries[0]->steps[1]->body.AsLaunch()->args[1]->writes = true; }},
          {"entry point 'predict' step 2 'plus' argument 2: only buffers can be written",
           [](auto& p) { p.entries[0]->steps[2]->body.AsLaunch()->args[2]->writes = true; }},
          {"entry point 'predict' step 2 'plus' argument 2: has no expression",
           [](auto& p) { p.entries[0]->steps[2]->body.AsLaunch()->args[2]->value = nullptr; }},
          {"entry point 'predict' step 2 'plus' argument 0: buffer 4 'scaled' is used at step 2, outside its life 0 to 1",
           [](auto& p) { p.buffers[4]->last = 1; }},
          {"entry point 'predict' step 0 'add' argument 1: buffer 1 'b' is shared, but neither scratch nor a constant",
           [](auto& p) { first_launch(p).args[1]->shared = true; }},
          {"entry point 'predict' step 1 'scale' argument 0: buffer 3 'sum' is shared, but no argument before passes its "
           "memory "
           "object",
           [](auto& p) { p.entries[0]->steps[1]->body.AsLaunch()->args[0]->shared = true; }},
          {"entry point 'predict' step 1 'scale' argument 1: buffer 2 'w' is shared, but no argument before passes its memory "
           "object",
           [](auto& p) { p.entries[0]->steps[1]->body.AsLaunch()->args[1]->shared = true; }},
          {"entry point 'predict' step 2 'plus' argument 2: is shared, but not a buffer",
           [](auto& p) { p.entries[0]->steps[2]->body.AsLaunch()->args[2]->shared = true; }},
          {"entry point 'predict' step 1 'scale' argument 2: buffer 4 'scaled' is shared, but its size is read late",
           [](auto& p) {
             p.symbols.push_back(symbol("late", 0, 100, true));
             p.symbols.back()->upper = E(100).ptr();
             p.symbols.back()->open = true;
             p.buffers[4]->bytes = (E::symbol(1) * 4).ptr();
             p.buffers[4]->alias = -1;
             p.entries[0]->steps[1]->body.AsLaunch()->args[2]->shared = true;
             p.buffers.push_back(buffer("n", fb::BufferKind::input, 4));
             p.buffers.back()->dtype = fb::DType::i32;
             p.entries[0]->inputs.push_back(binding("n", 6, {1}));
             p.entries[0]->inputs.back()->dtype = fb::DType::i32;
             fb::ReadT read;
             read.from = reads(6);
             read.dims = {1};
             auto step = std::make_unique<fb::StepT>();
             step->body.Set(std::move(read));
             p.entries[0]->steps.insert(p.entries[0]->steps.begin(), std::move(step));
           }},
          {"entry point 'predict' step 0 'add': wanted 1 to 3 dimensions of equal number in `global` and `local`, found 0 and "
           "1",
           [](auto& p) { first_launch(p).global.clear(); }},
          {"entry point 'predict' step 0 'add': wanted 1 to 3 dimensions of equal number in `global` and `local`, found 1 and "
           "0",
           [](auto& p) { first_launch(p).local.clear(); }},
          {"entry point 'predict' step 0 'add': wanted 1 to 3 dimensions of equal number in `global` and `local`, found 4 and "
           "1",
           [](auto& p) {
             while (first_launch(p).global.size() < 4) first_launch(p).global.push_back(E(1).ptr());
           }},
          {"entry point 'predict' step 0 'add': local size 0 in dimension 0", [](auto& p) { first_launch(p).local[0] = 0; }},
          {"entry point 'predict' step 0 'add': local size 4294967295 in dimension 0",
           [](auto& p) { first_launch(p).local[0] = UINT32_MAX; }},
          {"entry point 'predict' step 0 'add': has more than 1024 arguments",
           [](auto& p) {
             while (first_launch(p).args.size() < 1025) first_launch(p).args.push_back(value(fb::ArgKind::int32, 1));
           }},
          {"entry point 'other' step 0 'add' argument 0: buffer 0 'a' is not bound by this entry point",
           [](auto& p) {
             auto other = entry("other");
             other->steps.push_back(launch("add", 0, {E(1)}, {1}, reads(0)));
             p.entries.push_back(std::move(other));
           }},
          {"entry point 'other' step 0 'add' argument 0: buffer 3 'sum' belongs to another entry point",
           [](auto& p) {
             auto other = entry("other");
             other->steps.push_back(launch("add", 0, {E(1)}, {1}, reads(3)));
             p.entries.push_back(std::move(other));
           }},
          {"entry point 'predict' step 0 'add': its work-group is larger than 65536 work-items",
           [](auto& p) {
             first_launch(p).local = {1024, 1024}, first_launch(p).global.push_back(E(1).ptr());
           }},
      });
}

TEST_CASE("case 62: wild loops are refused") {
  const auto outer = [](fb::PlanT& p) { return p.entries[0]->steps[2]->body.AsLoop(); };
  check_all(
      loop_plan,
      {
          {"entry point 'predict' step 2: loop counter 3 of 3 symbols", [&](auto& p) { outer(p)->counter = 3; }},
          {"entry point 'predict' step 2: loop counter -1 of 3 symbols", [&](auto& p) { outer(p)->counter = -1; }},
          {"entry point 'predict' step 2: its loop counter is not a loop symbol", [&](auto& p) { outer(p)->counter = 0; }},
          {"entry point 'predict' step 2 trip count: uses the loop counter 'i' outside its loop",
           [&](auto& p) { outer(p)->trip = E::symbol(1).ptr(); }},
          {"entry point 'predict' step 2: two nested loops use one counter",
           [&](auto& p) { outer(p)->body[0]->body.AsLoop()->counter = 1; }},
          {"entry point 'predict' step 0 'add' argument 0 offset: uses the loop counter 'j' outside its loop",
           [](auto& p) { first_launch(p).args[0]->value = E::symbol(2).ptr(); }},
          {"buffer 0 'a' size: uses the loop counter 'i' outside its loop",
           [](auto& p) { p.buffers[0]->bytes = E::symbol(1).ptr(); }},
          {"schedule: loops are nested deeper than 8",
           [](auto& p) {
             for (int d = 0; d < 9; ++d) {
               std::vector<std::unique_ptr<fb::StepT>> body;
               body.push_back(std::move(p.entries[0]->steps[2]));
               p.entries[0]->steps[2] = loop(1, 1, std::move(body));
             }
           }},
      });
}

TEST_CASE("case 62: wild GEMM steps are refused") {
  const auto g = [](fb::PlanT& p) { return p.entries[0]->steps[0]->body.AsBlasGemm(); };
  check_all(
      gemm_plan,
      {
          {"entry point 'predict' step 0 operand A: is missing", [&](auto& p) { g(p)->a = nullptr; }},
          {"entry point 'predict' step 0 operand B: is not a buffer", [&](auto& p) { g(p)->b = value(fb::ArgKind::int32, 1); }},
          {"entry point 'predict' step 0 operand C: is not marked as written", [&](auto& p) { g(p)->c->writes = false; }},
          {"entry point 'predict' step 0 operand A: wanted float32, found f64",
           [](auto& p) { p.buffers[0]->dtype = fb::DType::f64; }},
          {"entry point 'predict' step 0 k: has no expression", [&](auto& p) { g(p)->k = nullptr; }},
          {"entry point 'predict' step 0 batch: its expression ends within an operand",
           [&](auto& p) { g(p)->batch = code({1}); }},
      });
}

TEST_CASE("case 62: expressions whose numbers are not aligned are refused") {
  // The size of buffer 0 becomes [add]; its vector then begins 4 bytes later, where 2 is read as a length.
  fb::PlanT plan = loop_plan();
  plan.buffers[0]->bytes = code({2, 0, 0});
  auto bytes = metadata(plan);
  const auto* size = fb::GetPlan(bytes.data())->buffers()->Get(0)->bytes();
  auto* field = const_cast<std::uint8_t*>(reinterpret_cast<const flatbuffers::Table*>(size)->GetAddressOf(fb::Expr::VT_CODE));
  flatbuffers::WriteScalar(field, flatbuffers::ReadScalar<flatbuffers::uoffset_t>(field) + 4);
  CHECK_THROWS_WITH_AS(package::verify_metadata(bytes, 16), "buffer 0 'a' size: its numbers are not aligned", package::Error);
}

TEST_CASE("case 62: damaged metadata with right checksums never crashes") {
  const auto good = metadata(loop_plan());
  std::mt19937 random(5);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = good;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] ^= std::byte{1} << (random() % 8);
          break;
        case 1:
          bytes[at] = static_cast<std::byte>(random());
          break;
        default:
          for (std::size_t i = at / 4 * 4; i < std::min(bytes.size(), at / 4 * 4 + 4); ++i) bytes[i] = std::byte{0xff};
      }
    }
    try {
      const auto& plan = package::verify_metadata(bytes, 16);
      const std::vector<std::int64_t> symbols(plan.symbols() ? plan.symbols()->size() : 0, 3);
      for (std::uint32_t e = 0; plan.entries() && e < plan.entries()->size(); ++e) package::plan_memory(plan, e, symbols);
    } catch (const std::exception&) {
      ++refused;
    }
  }
  CHECK(refused > 5000);
}

TEST_CASE("plan memory: aliases share storage, lives are merged") {
  const auto package = package::Package::from_memory(vector_plan_bytes());
  const std::int64_t n = 1000;
  const auto memory = package::plan_memory(package->plan(), 0, {&n, 1});
  CHECK(memory.arena_bytes == 4096);
  CHECK(memory.live_bytes == 4000);
  CHECK(memory.sizes[0] == 4000);
  CHECK(memory.offsets[3] == memory.offsets[4]);
  const std::int64_t zero = 0;
  CHECK(package::plan_memory(package->plan(), 0, {&zero, 1}).arena_bytes == 0);
  const std::int64_t negative = -1;
  CHECK_THROWS_WITH(package::plan_memory(package->plan(), 0, {&negative, 1}),
                    "the size of buffer 'a' is negative with these dimensions");
  const std::int64_t huge = INT64_MAX / 2;
  CHECK_THROWS_WITH(package::plan_memory(package->plan(), 0, {&huge, 1}),
                    "the size of buffer 'a' overflows with these dimensions");
}
