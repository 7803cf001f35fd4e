// liboclc_compiler.so: models become plans in this process, by its C functions.
#include <set>

#include "oclc/compiler.h"
#include "tests/cli/cli.h"

namespace compiler_library_test {

using namespace oclc;
using namespace oclc::test;

// Plan or error of these bytes.
struct Compiled {
  oclc_plan* plan = nullptr;
  oclc_error error = OCLC_INIT(oclc_error);
  oclc_status status = OCLC_OK;

  Compiled(const std::string& bytes, const oclc_compile_options* options) {
    status = oclc_compile(bytes.data(), bytes.size(), options, &plan, &error);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { oclc_plan_release(plan); }
};

oclc_compile_options for_cpu() {
  oclc_compile_options options = OCLC_INIT(oclc_compile_options);
  options.target = "cpu";
  return options;
}

std::string plan_target(const oclc_plan* plan) {
  oclc_plan_info info = OCLC_INIT(oclc_plan_info);
  REQUIRE(oclc_plan_get_info(plan, &info) == OCLC_OK);
  return std::string(info.target) + " " + info.precision;
}

TEST_CASE("a model in memory becomes a plan, and the file that was asked for is what oclc writes") {
  const ModelFolder folder;
  const std::string file = folder.at("library.bin");
  oclc_compile_options options = for_cpu();
  options.precision = "strict";
  options.output = file.c_str();
  const oclc_dim dim{"N", 3};
  options.dims = &dim;
  options.dim_count = 1;
  const Compiled c(small_model().bytes(), &options);
  REQUIRE_MESSAGE(c.status == OCLC_OK, c.error.message);
  CHECK(plan_target(c.plan) == "cpu strict");
  oclc_plan_info info = OCLC_INIT(oclc_plan_info);
  oclc_plan_get_info(c.plan, &info);
  CHECK(info.symbol_count == 0);
  REQUIRE(run_oclc(folder.model() + " --target cpu --precision strict --dim N=3 -q -o " + folder.at("tool.bin")).status == 0);
  CHECK(read_bytes(file) == read_bytes(folder.path / "tool.bin"));
}

TEST_CASE("training entries, stages and warnings") {
  std::set<std::string> told;
  oclc_compile_options options = for_cpu();
  options.loss = "cross_entropy";
  options.optimizer = "adam,lr=0.01";
  options.user = &told;
  options.progress = [](void* user, const char* stage) { static_cast<std::set<std::string>*>(user)->insert(stage); };
  const Compiled c(small_model().bytes(), &options);
  REQUIRE_MESSAGE(c.status == OCLC_OK, c.error.message);
  CHECK(told == std::set<std::string>{"graph", "passes", "kernels", "schedule", "codegen", "plan"});
  std::uint32_t entry = 0;
  CHECK(oclc_plan_find_entry(c.plan, "train_step", &entry, nullptr) == OCLC_OK);
}

TEST_CASE("what is wrong has its status and a message that names it") {
  const std::string good = small_model().bytes();
  oclc_compile_options options = for_cpu();
  const Compiled broken("no model", &options);
  CHECK(broken.status == OCLC_E_PLAN);
  CHECK(broken.plan == nullptr);
  CHECK(std::string(broken.error.message).size() > 10);
  Writer w;
  w.input("x", {2, 2}).output("y", {2, 2});
  w.node("NoSuchOperator", {"x"}, {"y"}, "odd");
  const Compiled unknown(w.bytes(), &options);
  CHECK(unknown.status == OCLC_E_UNSUPPORTED);
  CHECK(has(unknown.error.message, "NoSuchOperator"));
  options.target = "cpuu";
  const Compiled target(good, &options);
  CHECK(target.status == OCLC_E_ARGUMENT);
  CHECK(has(target.error.message, "did you mean 'cpu'?"));
  options.target = "cpu";
  options.device = "cpu";
  CHECK(Compiled(good, &options).status == OCLC_E_ARGUMENT);
  options = for_cpu();
  options.disable = "fold_batchnrom";
  const Compiled pass(good, &options);
  CHECK(pass.status == OCLC_E_ARGUMENT);
  CHECK(has(pass.error.message, "did you mean 'fold_batchnorm'?"));
  options = for_cpu();
  options.output = "/nonexistent/plan.bin";
  CHECK(Compiled(good, &options).status == OCLC_E_IO);
  oclc_plan* plan = nullptr;
  CHECK(oclc_compile(nullptr, 0, nullptr, &plan, nullptr) == OCLC_E_ARGUMENT);
  CHECK(oclc_compile(good.data(), good.size(), nullptr, nullptr, nullptr) == OCLC_E_ARGUMENT);
  CHECK(oclc_compile_file("/nonexistent/model.onnx", nullptr, &plan, nullptr) == OCLC_E_IO);
}

TEST_CASE("case 110: the library keeps what it is made of inside, and the example runs") {
  const std::string library = std::string(OCLC_BINARY_DIR) + "/lib/liboclc_compiler.so";
  const Outcome symbols = run("nm -D --defined-only " + library + " | awk '{ print $3 }' | c++filt");
  REQUIRE(symbols.status == 0);
  CHECK(has(symbols.text, "oclc_compile\n"));
  CHECK(has(symbols.text, "oclc::nn::linear("));
  for (const char* inside : {"fmt::", "google::protobuf", "sqlite3_", "oclc_onnx::"}) {
    const std::regex foreign("(^|\\n)[^\\n(<]*" + std::string(inside));
    CHECK_MESSAGE(!std::regex_search(symbols.text, foreign), inside);
  }
  const ModelFolder folder;
  const std::string example = std::string(OCLC_BINARY_DIR) + "/bin/compile_in_process ";
  const Outcome o = run("( " + example + folder.model() + " --device cpu 2>/dev/null )");
  CHECK(o.status == 0);
  CHECK_MESSAGE(matches(o.text, "y \\[1, 48\\]: element \\d+ is largest, [0-9.e-]+\n"), o.text);
  CHECK(run(std::string(OCLC_BINARY_DIR) + "/bin/compile_in_process /nonexistent").status == 6);
}

}  // namespace compiler_library_test
