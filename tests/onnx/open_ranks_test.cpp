// Ranks that depend on sizes which are open.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/support/error.h"
#include "tests/onnx/onnx_model.h"
#include "tests/support/run_plan.h"

namespace oclc::test::open_ranks_test {

std::unique_ptr<Module> read(const Writer& w, std::vector<std::string>& warnings, ImportOptions options = {}) {
  options.warn = [&](const std::string& text) { warnings.push_back(text); };
  return w.import(options);
}

std::size_t result_rank(const Module& module) { return module.entries[0]->outputs()[0].second->type.rank(); }

TEST_CASE("Squeeze without axes says which open axes it keeps") {
  Writer w(11);
  w.input("x", {"n", 3, 1, "m"}).output("y");
  w.node("Squeeze", {"x"}, {"y"}, "squeeze");
  std::vector<std::string> warnings;
  CHECK(result_rank(*read(w, warnings)) == 3);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0] ==
        "node 'squeeze' (Squeeze): axis 0 of size n is kept, also where it is 1; give that size, or axes to squeeze");
  CHECK(warnings[1].find("axis 3 of size m is kept") != std::string::npos);
  warnings.clear();
  ImportOptions given;
  given.shapes["x"] = {1, 3, 1, 2};
  CHECK(result_rank(*read(w, warnings, given)) == 2);
  CHECK(warnings.empty());
}

// A speech model's last layer: its file says that there is one number, of a batch of any size.
TEST_CASE("a squeezed result of declared rank has that rank, and its open axis is 1") {
  Writer w(11);
  w.input("x", {"batch", 4}).output("y", {});
  w.floats("w", {4, 1}, {1, 2, 3, 4});
  w.node("MatMul", {"x", "w"}, {"product"}, "product");
  w.node("Squeeze", {"product"}, {"number"}, "squeeze");
  w.node("Sigmoid", {"number"}, {"y"}, "sigmoid");
  std::vector<std::string> warnings;
  CHECK(result_rank(*read(w, warnings)) == 0);
  CHECK(std::count(warnings.begin(), warnings.end(),
                   "node 'squeeze': batch and 1 are taken for equal, and compared when the plan runs") == 1);
  PlanRunner runner(std::shared_ptr<Module>(read(w, warnings)), default_options());
  const HostTensor one = random_tensor(DType::f32, {1, 4}, 1), two = random_tensor(DType::f32, {2, 4}, 1);
  CHECK(runner.run(std::vector<HostTensor>{one})[0].shape().empty());
  CHECK_THROWS_AS(runner.run(std::vector<HostTensor>{two}), rt::Error);
  ImportOptions given;
  given.shapes["x"] = {2, 4};
  CHECK(result_rank(*read(w, warnings, given)) == 1);
}

TEST_CASE("a result of another declared rank keeps its own where no squeeze is the reason") {
  // Declared with as many axes as it has, with too few though nothing is squeezed, and with one fewer than can be squeezed.
  for (const int form : {0, 1, 2}) {
    CAPTURE(form);
    Writer w(11);
    w.input("x", {"n", 3, "m"});
    form == 0 ? w.output("y", {"n", 3, "m"}) : form == 1 ? w.output("y", {3}) : w.output("y", {"n", 3});
    w.node(form == 1 ? "Relu" : "Squeeze", {"x"}, {"y"}, "last");
    std::vector<std::string> warnings;
    CHECK(result_rank(*read(w, warnings)) == 3);
    CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& text) {
            return text.find("is declared with") != std::string::npos;
          }) == (form != 0));
  }
}

// A speech model's end: a state for one sequence, then a squeeze of all that is 1.
TEST_CASE("A state's batch is that of the sequences, and what follows squeezes it") {
  for (const bool layout : {false, true}) {
    Writer w(14);
    layout ? w.input("x", {"batch", "steps", 2}) : w.input("x", {"steps", "batch", 2});
    w.output("y");
    w.floats("w", {1, 9, 2}, std::vector<float>(18, 0.1F)).floats("r", {1, 9, 3}, std::vector<float>(27, 0.2F));
    w.floats("h", {1, 1, 3}, {0.5F, -0.5F, 1});
    NodeProto& gru = w.node("GRU", {"x", "w", "r", "", "", "h"}, {"", "last"}, "gru");
    set_int(gru, "hidden_size", 3);
    if (layout) set_int(gru, "layout", 1);
    w.node("Squeeze", {"last"}, {"y"}, "squeeze");
    std::vector<std::string> warnings;
    CHECK(result_rank(*read(w, warnings)) == 1);
    CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& text) {
      return text == "node 'gru': batch and 1 are taken for equal, and compared when the plan runs";
    }));
    PlanRunner runner(std::shared_ptr<Module>(read(w, warnings)), default_options());
    const auto x = [&](std::int64_t batch) {
      return std::vector<HostTensor>{random_tensor(
          DType::f32, layout ? std::vector<std::int64_t>{batch, 4, 2} : std::vector<std::int64_t>{4, batch, 2}, 1)};
    };
    CHECK(runner.run(x(1))[0].shape() == std::vector<std::int64_t>{3});
    CHECK_THROWS_AS(runner.run(x(2)), rt::Error);
  }
}

}  // namespace oclc::test::open_ranks_test
