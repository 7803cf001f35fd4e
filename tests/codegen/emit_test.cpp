// What code generation makes of choices: nothing of its own.
#include "compiler/codegen/contraction/emit.h"

#include <fmt/format.h>

#include <set>

#include "compiler/codegen/codegen.h"
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Products of constant and of given operands, of few rows and of many, and convolutions with and without a window.
void add_contractions(PlanCheck& check) {
  Builder& b = check.b;
  const auto weights = [&](const Ints& shape) { return b.constant(random_tensor(DType::f32, shape, 5)); };
  check.out("large", b.matmul(check.input({512, 1024}), weights({1024, 768})));
  check.out("given", b.matmul(check.input({320, 1024}), check.input({1024, 768})));
  check.out("few rows", b.matmul(check.input({4, 2048}), check.input({2048, 2048})));
  check.out("columns", b.matmul(check.input({4, 2048}), check.input({2048, 2048}), false, true));
  check.out("one row", b.matmul(check.input({1, 1024}), weights({1024, 9000})));
  check.out("tiny", b.matmul(check.input({5, 7}), weights({7, 5})));
  ConvOptions same;
  same.pads = {1, 1, 1, 1};
  check.out("stem", b.conv(check.input({1, 3, 64, 64}), weights({32, 3, 3, 3}), nullptr, same));
  check.out("3x3", b.conv(check.input({1, 128, 28, 28}), weights({128, 128, 3, 3}), nullptr, same));
  check.out("1x1", b.conv(check.input({1, 128, 28, 28}), weights({256, 128, 1, 1}), nullptr, {}));
}

// The template that a choice names; empty: it has none.
std::string_view template_of(const Choice& choice) {
  const auto* gpu = std::get_if<GpuChoice>(&choice.tiles);
  return gpu && gpu->sm90a ? gpu->sm90a->template_name() : row_of(choice.strategy).text_template;
}

}  // namespace

TEST_CASE("the text of every contraction is made of the template of its choice") {
  PlanCheck check;
  add_contractions(check);
  std::set<StrategyId> seen;
  for (const char* name : {"cpu", "cpu-256", "cpu-amx", "gpu", "h200"}) {
    for (const Contract contract : {Contract::fp32, Contract::tf32}) {
      CompileOptions options = default_options();
      options.target = find_target(name);
      options.precision = std::string(name_of(contract));
      const Schedule schedule = compile(module_of(copy_graph(*check.graph)), options).schedule;
      Target target = options.target;
      target.precision = precision_under(contract, false);
      for (const Kernel& kernel : schedule.kernels) {
        if (!kernel.contraction || !kernel.contraction->choice) continue;
        const Choice& choice = *kernel.contraction->choice;
        const std::string_view wanted = template_of(choice);
        if (wanted.empty() || choice.strategy == StrategyId::loops) continue;
        CAPTURE(choice.text());
        const std::string made_of = generate(kernel, schedule.buffers, target).schedule;
        CHECK_MESSAGE(made_of.find(fmt::format(" {},", wanted)) != std::string::npos, made_of);
        seen.insert(choice.strategy);
      }
    }
  }
  CHECK(seen.size() >= 12);
}
