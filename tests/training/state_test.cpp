// State variables: entries read their old values and leave the new ones, whatever the order of kernels.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Runs the entries in turn, `rounds` times, on the device and by evaluate; the largest difference of results and state.
double worst_difference(const std::string& text, int rounds, bool fuse = true) {
  Module reference = parse_module(text, find_op);
  std::map<std::string, HostTensor> state;
  for (const StateVariable& variable : reference.states) {
    HostTensor zeros(variable.type.dtype, bind_shape(variable.type.shape, {}));
    state[variable.name] = variable.initial.data() ? variable.initial : zeros;
  }
  CompileOptions options = default_options();
  if (!fuse) options.disabled = {"fuse"};
  PlanRunner runner(std::make_shared<Module>(parse_module(text, find_op)), options);
  double worst = 0;
  unsigned seed = 1;
  for (int i = 0; i < rounds * static_cast<int>(reference.entries.size()); ++i) {
    const std::size_t entry = static_cast<std::size_t>(i) % reference.entries.size();
    const Graph& graph = *reference.entries[entry];
    std::vector<HostTensor> all, bound;
    for (const auto& input : graph.inputs()) {
      if (state.count(input->name)) {
        all.push_back(state.at(input->name));
        continue;
      }
      bound.push_back(random_tensor(input->type.dtype, bind_shape(input->type.shape, {}), seed++));
      all.push_back(bound.back());
    }
    const std::vector<HostTensor> wanted = evaluate(graph, all);
    const std::vector<HostTensor> found = runner.run(bound, {}, static_cast<std::uint32_t>(entry));
    std::size_t next = 0;
    for (std::size_t o = 0; o < wanted.size(); ++o) {
      const std::string& name = graph.outputs()[o].first;
      if (state.count(name))
        state.at(name) = wanted[o];
      else
        worst = std::max(worst, difference(found.at(next++), wanted[o]).max_rel);
    }
    for (const auto& [name, value] : state) {
      HostTensor now(value.dtype(), value.shape());
      runner.session().read_variable(name, now.mutable_data(), now.bytes());
      worst = std::max(worst, difference(now, value).max_rel);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("an update in place waits for the readers of the old value") {
  const std::string text = R"(
    module "m"
    state "w" : f32[17, 33] = f32[17, 33] random 3
    graph step(%x: f32[5, 17], %w: f32[17, 33]) {
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}
      %1 = tanh(%0)
      %2 = matmul(%x, %1) {trans_a=1, trans_b=0}
      %3 = sub(%w, %2)
      %4 = matmul(%1, %w) {trans_a=0, trans_b=1}
      return y=%4, w=%3
    })";
  CHECK(worst_difference(text, 4) < 1e-5);
  CHECK(worst_difference(text, 4, false) < 1e-5);
}

TEST_CASE("a step's state is what the next entry reads, and optimizer steps are one kernel") {
  const std::string text = R"(
    module "m"
    state "w" : f32[1003] = f32[1003] random 3
    state "v" : f32[1003]
    state "lr" : f32[] = f32[] [0.125]
    graph step(%g: f32[1003], %w: f32[1003], %v: f32[1003], %lr: f32[]) {
      %0 = mul(%v, %lr)
      %1 = add(%0, %g)
      %2 = mul(%1, %lr)
      %3 = sub(%w, %2)
      return v=%1, w=%3
    }
    graph read(%w: f32[1003], %x: f32[1003]) {
      %0 = mul(%x, %w)
      return y=%0
    })";
  CHECK(worst_difference(text, 3) < 1e-6);
  CHECK(worst_difference(text, 3, false) < 1e-6);
  CompileOptions options = default_options();
  CHECK(compile(std::make_shared<Module>(parse_module(text, find_op)), options).schedule.entries[0].steps.size() == 1);
}

TEST_CASE("two states made of one value read its parts before they are replaced") {
  const std::string text = R"(
    module "m"
    state "w" : f32[1003] = f32[1003] random 3
    state "v" : f32[1003] = f32[1003] random 4
    state "n" : f32[] = f32[] [1]
    graph step(%g: f32[1003], %w: f32[1003], %v: f32[1003], %n: f32[]) {
      %0 = mul(%v, %n)
      %1 = add(%0, %g)
      %2 = less(%n, %n)
      %3 = where(%2, %v, %1)
      %4 = sub(%w, %1)
      %5 = where(%2, %w, %4)
      return v=%3, w=%5
    })";
  CHECK(worst_difference(text, 3) < 1e-6);
  CHECK(worst_difference(text, 3, false) < 1e-6);
  CompileOptions options = default_options();
  CHECK(compile(std::make_shared<Module>(parse_module(text, find_op)), options).schedule.entries[0].steps.size() == 1);
}

TEST_CASE("exchanged and permuted state goes through a copy") {
  const std::string text = R"(
    module "m"
    state "a" : f32[24] = f32[24] random 1
    state "b" : f32[24] = f32[24] random 2
    state "c" : f32[6, 6] = f32[6, 6] random 3
    graph step(%a: f32[24], %b: f32[24], %c: f32[6, 6]) {
      %0 = transpose(%c) {perm=[1, 0]}
      %1 = neg(%0)
      return a=%b, b=%a, c=%1
    })";
  CHECK(worst_difference(text, 3) == 0);
  CHECK(worst_difference(text, 3, false) == 0);
}

TEST_CASE("slices of one state are updated each by its kernel") {
  const std::string text = R"(
    module "m"
    state "s" : f32[50] = f32[50] random 1
    graph step(%x: f32[7, 20], %s: f32[50]) {
      %0 = slice(%s) {starts=(0), sizes=(20), steps=[1]}
      %1 = slice(%s) {starts=(20), sizes=(20), steps=[1]}
      %2 = slice(%s) {starts=(40), sizes=(10), steps=[1]}
      %3 = reduce_sum(%x) {axes=[0], keepdims=0}
      %4 = mul(%0, %3)
      %5 = reduce_max(%x) {axes=[0], keepdims=0}
      %6 = add(%1, %5)
      %7 = neg(%2)
      %8 = concat(%4, %6, %7) {axis=0}
      return y=%0, s=%8
    })";
  CHECK(worst_difference(text, 3) < 1e-6);
  CHECK(worst_difference(text, 3, false) < 1e-6);
}

TEST_CASE("state that an entry leaves alone stays") {
  const std::string text = R"(
    module "m"
    state "s" : f32[5] = f32[5] random 1
    graph step(%x: f32[5], %s: f32[5]) {
      %0 = add(%x, %s)
      return y=%0, s=%s
    })";
  CHECK(worst_difference(text, 2) < 1e-6);
  CompileOptions options = default_options();
  CHECK(compile(std::make_shared<Module>(parse_module(text, find_op)), options).schedule.kernels.size() == 1);
}

TEST_CASE("sums that are one kernel keep their values") {
  const std::string text = R"(
    module "m"
    state "s" : f32[19]
    graph step(%x: f32[7, 19, 3], %y: f32[7, 19, 3], %s: f32[19]) {
      %0 = reduce_sum(%x) {axes=[0, 2], keepdims=0}
      %1 = mul(%x, %y)
      %2 = reduce_sum(%1) {axes=[0, 2], keepdims=0}
      %3 = reduce_max(%x) {axes=[0, 2], keepdims=0}
      %4 = add(%2, %3)
      %5 = add(%s, %4)
      return y=%0, s=%5
    })";
  CHECK(worst_difference(text, 3) < 1e-6);
  CHECK(worst_difference(text, 3, false) < 1e-6);
}

TEST_CASE("reductions of rows, what one gives another, and the rows' own results are one kernel") {
  const std::string text = R"(
    module "m"
    graph step(%x: f32[24, 35], %d: f32[24, 35], %r: f32[24, 35]) {
      %0 = reduce_mean(%x) {axes=[1], keepdims=1}
      %1 = sub(%x, %0)
      %2 = mul(%1, %1)
      %3 = reduce_mean(%2) {axes=[1], keepdims=1}
      %4 = rsqrt(%3)
      %5 = mul(%1, %d)
      %6 = reduce_mean(%5) {axes=[1], keepdims=1}
      %7 = mul(%6, %4)
      %8 = mul(%1, %7)
      %9 = sub(%d, %8)
      %10 = mul(%9, %4)
      %11 = add(%10, %r)
      %12 = reduce_sum(%5) {axes=[0], keepdims=1}
      return y=%11, s=%12, v=%3
    })";
  CHECK(worst_difference(text, 2) < 1e-5);
  CHECK(worst_difference(text, 2, false) < 1e-5);
  CompileOptions options = default_options();
  CHECK(compile(std::make_shared<Module>(parse_module(text, find_op)), options).schedule.kernels.size() == 2);
}
