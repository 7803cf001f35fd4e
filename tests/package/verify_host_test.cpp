#include <doctest/doctest.h>

#include <functional>
#include <random>

#include "runtime/package/memory.h"
#include "runtime/package/verify/verify.h"
#include "tests/package/verify_error.h"
#include "tests/runtime/string_plan.h"

using namespace oclc;
using namespace oclc::test;

TEST_CASE("a plan of host steps without kernels is legal") { CHECK(verify_error(string_plan(), 0) == ""); }

TEST_CASE("case 62: wild host steps and strings are refused") {
  const auto host = [](fb::PlanT& p) -> fb::HostT& { return *p.entries[0]->steps[0]->body.AsHost(); };
  const struct {
    const char* error;
    std::function<void(fb::PlanT&)> apply;
  } kWild[] = {
      {"entry point 'predict' step 0: unknown operator of the host 'no_such'", [&](auto& p) { host(p).op = "no_such"; }},
      {"entry point 'predict' step 0: unknown operator of the host ''", [&](auto& p) { host(p).op = ""; }},
      {"entry point 'predict' step 0 'string_normalize': it has 2 integer settings, found 0",
       [&](auto& p) { host(p).integers.clear(); }},
      {"entry point 'predict' step 0 'string_normalize': change is 0, 1 or 2", [&](auto& p) { host(p).integers[1] = 7; }},
      {"entry point 'predict' step 0 input: wanted 1 operands, found 0", [&](auto& p) { host(p).inputs.clear(); }},
      {"entry point 'predict' step 0 output: wanted 2 operands, found 1", [&](auto& p) { host(p).outputs.pop_back(); }},
      {"entry point 'predict' step 0 input 0: is not a buffer", [&](auto& p) { host(p).inputs[0]->at = nullptr; }},
      {"entry point 'predict' step 0 input 0: is not a buffer",
       [&](auto& p) { host(p).inputs[0]->at->kind = fb::ArgKind::int64; }},
      {"entry point 'predict' step 0 input 0: buffer 9 of 4", [&](auto& p) { host(p).inputs[0]->at->buffer = 9; }},
      {"entry point 'predict' step 0 input 0: its buffer holds i64, which the operator does not take there",
       [&](auto& p) { host(p).inputs[0]->at->buffer = 2; }},
      {"entry point 'predict' step 0 output 1: its buffer holds string_, which the operator does not take there",
       [&](auto& p) { host(p).outputs[1]->at->buffer = 1; }},
      {"entry point 'predict' step 0 output 0: is not marked as written",
       [&](auto& p) { host(p).outputs[0]->at->writes = false; }},
      {"entry point 'predict' step 0 input 0: is marked as written",
       [&](auto& p) { host(p).inputs[0]->at->writes = true, host(p).inputs[0]->at->buffer = 1; }},
      {"entry point 'predict' step 0 input 0 dimension 0: has no expression",
       [&](auto& p) { host(p).inputs[0]->shape[0]->code.clear(); }},
      {"entry point 'predict' step 0 output 0 dimension 0: uses the symbol 'kept' before it is read",
       [&](auto& p) { host(p).outputs[0]->shape[0] = E::symbol(1).ptr(); }},
      {"entry point 'predict' step 0 node 0: its name contains a NUL",
       [&](auto& p) { host(p).nodes = {std::string("a\0b", 3)}; }},
      {"entry point 'predict' step 0 output 1: buffer 2 'count' is used at step 0, outside its life 1 to 1",
       [](auto& p) { p.buffers[2]->first = p.buffers[2]->last = 1; }},
      {"string 0: is not empty", [](auto& p) { p.strings[0] = "a"; }},
      {"string 1: occurs twice", [](auto& p) { p.strings.push_back(""); }},
      {"string 1: contains a NUL", [](auto& p) { p.strings.push_back(std::string("a\0b", 3)); }},
      {"buffer 0: holds texts in a plan without strings", [](auto& p) { p.strings.clear(); }},
      {"buffer 3: state that holds texts",
       [](auto& p) { p.buffers[3]->kind = fb::BufferKind::state, p.buffers[3]->dtype = fb::DType::string_; }},
      {"binding 'x': texts are bound to numbers, or numbers to texts",
       [](auto& p) { p.entries[0]->inputs[0]->dtype = fb::DType::i32; }},
      {"binding 'n': texts are bound to numbers, or numbers to texts",
       [](auto& p) { p.entries[0]->outputs[1]->dtype = fb::DType::string_; }},
  };
  for (const auto& wild : kWild) {
    fb::PlanT plan = string_plan();
    wild.apply(plan);
    CHECK(verify_error(plan, 0) == wild.error);
  }
}

TEST_CASE("case 62: damaged metadata of host steps never crashes") {
  const auto good = metadata(string_plan());
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = good;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      const std::size_t at = random() % bytes.size();
      if (random() % 2)
        bytes[at] ^= std::byte{1} << (random() % 8);
      else
        bytes[at] = static_cast<std::byte>(random());
    }
    try {
      package::verify_metadata(bytes, 0);
    } catch (const package::Error&) {
      ++refused;
    }
  }
  CHECK(refused > 5000);
}
