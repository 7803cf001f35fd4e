// Weight gradients of convolutions as products of moved rows, on a target that lays out both operands of a product.
#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

struct GradientCase {
  const char* name;
  Ints x, y, kernel, strides, pads;
  std::int64_t group = 1;
};

void add(PlanCheck& check, const GradientCase& c) {
  check.out(
      c.name,
      check.b.call(
          "conv_weight_grad", {check.input(c.x), check.input(c.y)},
          {{"kernel", c.kernel}, {"strides", c.strides}, {"dilations", Ints{1, 1}}, {"pads", c.pads}, {"group", c.group}}));
}

// Unfolding operators of the graph that are made for loads, and others.
std::pair<int, int> unfolds(const GradientCase& c, const std::vector<std::string>& disabled = {}) {
  PlanCheck check;
  add(check, c);
  CompileOptions options = default_options();
  options.target = find_target("h200");
  options.disabled = disabled;
  const auto module = module_of(copy_graph(*check.graph));
  run_pipeline(*module, options);
  std::pair<int, int> count{0, 0};
  for (const Node* node : module->entries[0]->nodes()) {
    if (node->op->name == "unfold") ++(node->has("gathered") ? count.first : count.second);
  }
  return count;
}

// Taps of a row of the window that patches have.
std::int64_t row_of_patch(const GradientCase& c, const char* target) {
  PlanCheck check;
  add(check, c);
  CompileOptions options = default_options();
  options.target = find_target(target);
  const auto module = module_of(copy_graph(*check.graph));
  run_pipeline(*module, options);
  for (const Node* node : module->entries[0]->nodes()) {
    if (node->op->name == "unfold") return node->get<Ints>("kernel").back();
  }
  return 0;
}

// Shapes that sums of taps are of, those of the image or of the positions.
Ints summed(const GradientCase& c, const char* target) {
  PlanCheck check;
  add(check, c);
  CompileOptions options = default_options();
  options.target = find_target(target);
  const auto module = module_of(copy_graph(*check.graph));
  run_pipeline(*module, options);
  for (const Node* node : module->entries[0]->nodes()) {
    if (node->op->name != "reduce_sum") continue;
    Ints sizes;
    for (const Expr& e : node->inputs[0]->type.shape) sizes.push_back(e.value());
    return sizes;
  }
  return {};
}

const GradientCase kSame{"same", {2, 32, 16, 14}, {2, 48, 16, 14}, {3, 3}, {1, 1}, {1, 1, 1, 1}};

}  // namespace

TEST_CASE("weight gradients of moved rows are those of patches") {
  PlanCheck check;
  for (const GradientCase& c :
       {kSame, GradientCase{"uneven margins", {1, 33, 23, 20}, {1, 36, 23, 19}, {2, 4}, {1, 1}, {1, 2, 0, 0}}}) {
    CAPTURE(c.name);
    CHECK(unfolds(c) == std::pair(2, 0));
    add(check, c);
  }
  CHECK(check.problem("h200", true, 2e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
}

TEST_CASE("weight gradients keep patches where margins are wide, windows jump, channels are few or products are not packed") {
  CHECK(unfolds({"margins", {4, 32, 7, 7}, {4, 32, 7, 7}, {3, 3}, {1, 1}, {1, 1, 1, 1}}).first == 0);
  CHECK(unfolds({"strides", {2, 32, 16, 16}, {2, 32, 8, 8}, {3, 3}, {2, 2}, {1, 1, 1, 1}}).first == 0);
  CHECK(unfolds({"channels", {2, 3, 32, 32}, {2, 32, 32, 32}, {3, 3}, {1, 1}, {1, 1, 1, 1}}).first == 0);
  CHECK(unfolds(kSame, {"pack_b"}).first == 0);
}

TEST_CASE("weight gradients of many positions are Winograd's") {
  PlanCheck check;
  const GradientCase wide{"wide", {2, 32, 40, 38}, {2, 36, 40, 38}, {3, 3}, {1, 1}, {1, 1, 1, 1}};
  CHECK(unfolds(wide) == std::pair(0, 0));
  CHECK(unfolds(wide, {"choose_convolution"}) != std::pair(0, 0));
  add(check, wide);
  CHECK(check.problem("h200", true, 2e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
}

TEST_CASE("windows of few channels are widened to whole vectors where both operands are laid out") {
  const GradientCase first{"first", {2, 3, 37, 40}, {2, 24, 19, 20}, {7, 7}, {2, 2}, {3, 3, 3, 3}};
  const GradientCase lopsided{"lopsided", {2, 1, 40, 33}, {2, 20, 30, 8}, {11, 6}, {1, 4}, {0, 1, 0, 0}};
  PlanCheck check;
  for (const GradientCase& c : {first, lopsided}) {
    CAPTURE(c.name);
    CHECK(row_of_patch(c, "h200") == 8);
    CHECK(row_of_patch(c, "gpu") == c.kernel.back());
    add(check, c);
  }
  CHECK(check.problem("h200", true, 2e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
  // Small patches; whole vectors; rows that would grow by half.
  CHECK(row_of_patch({"small", {2, 3, 20, 20}, {2, 24, 20, 20}, {3, 3}, {1, 1}, {1, 1, 1, 1}}, "h200") == 3);
  CHECK(row_of_patch({"whole", {2, 4, 37, 40}, {2, 24, 19, 20}, {7, 7}, {2, 2}, {3, 3, 3, 3}}, "h200") == 7);
  CHECK(row_of_patch({"grown", {2, 3, 40, 40}, {2, 24, 20, 20}, {5, 5}, {2, 2}, {2, 2, 2, 2}}, "h200") == 5);
}

TEST_CASE("depthwise weight gradients with stride 1 are sums over the image where both operands are laid out") {
  const GradientCase even{"even", {2, 8, 9, 10}, {2, 8, 9, 10}, {3, 3}, {1, 1}, {1, 1, 1, 1}, 8},
      lopsided{"lopsided", {3, 12, 20, 9}, {3, 12, 19, 10}, {5, 3}, {1, 1}, {1, 2, 2, 1}, 12},
      strided{"strided", {2, 8, 9, 10}, {2, 8, 5, 5}, {3, 3}, {2, 2}, {1, 1, 1, 1}, 8},
      far{"far", {2, 8, 4, 4}, {2, 8, 10, 10}, {3, 3}, {1, 1}, {4, 4, 4, 4}, 8};
  PlanCheck check;
  for (const GradientCase& c : {even, lopsided, strided, far}) {
    CAPTURE(c.name);
    const bool gains = c.strides[0] == 1 && c.pads[0] < c.kernel[0];
    CHECK(summed(c, "h200") == (gains ? c.x : c.y));
    CHECK(summed(c, "gpu") == c.y);
    add(check, c);
  }
  CHECK(check.problem("h200", true, 2e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
}

TEST_CASE("strided data gradients are a convolution for each class of positions on an H200") {
  PlanCheck check;
  Value *y = check.input({2, 32, 7, 9}), *w = check.input({32, 48, 3, 3});
  check.out("x", check.b.call("conv_transpose", {y, w},
                              {{"strides", Ints{2, 2}},
                               {"dilations", Ints{1, 1}},
                               {"pads", Ints{1, 1, 1, 1}},
                               {"group", std::int64_t{1}},
                               {"output_shape", std::vector<Expr>{Expr(14), Expr(17)}}}));
  const auto convolutions = [&](const char* target) {
    CompileOptions options = default_options();
    options.target = find_target(target);
    const auto module = module_of(copy_graph(*check.graph));
    run_pipeline(*module, options);
    int count = 0;
    for (const Node* node : module->entries[0]->nodes()) count += node->op->name == "conv";
    return count;
  };
  CHECK(convolutions("h200") > convolutions("gpu"));
  CHECK(check.problem("h200", true, 2e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
  CHECK(check.problem("h200", false, 2e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
}

TEST_CASE("long products of few results have parts of few terms") {
  PlanCheck check;
  add(check, {"narrow", {32, 24, 32, 40}, {32, 32, 32, 40}, {1, 1}, {1, 1}, {0, 0, 0, 0}});
  CompileOptions options = default_options();
  options.target = find_target("h200");
  const Schedule schedule = compile(module_of(copy_graph(*check.graph)), options).schedule;
  CHECK(std::any_of(schedule.kernels.begin(), schedule.kernels.end(),
                    [](const Kernel& k) { return k.contraction && k.axes[0].name == "part" && k.axes[0].extent == Expr(80); }));
  CHECK(check.problem("h200", true, 1e-5, evaluate(*check.graph, check.inputs, check.symbols)) == "");
}

TEST_CASE("depthwise data gradients with a stride compute as many lines at a time, odd sizes line by line") {
  for (const std::int64_t size : {16, 15}) {
    PlanCheck check;
    Value *y = check.input({2, 12, 8, 8}), *w = check.input({12, 1, 3, 3});
    check.out("x", check.b.call("conv_transpose", {y, w},
                                {{"strides", Ints{2, 2}},
                                 {"dilations", Ints{1, 1}},
                                 {"pads", Ints{1, 1, 1, 1}},
                                 {"group", std::int64_t{12}},
                                 {"output_shape", std::vector<Expr>{Expr(size), Expr(size)}}}));
    const auto wanted = evaluate(*check.graph, check.inputs, check.symbols);
    for (const char* target : {"gpu", "h200", "cpu"}) CHECK(check.problem(target, true, 1e-6, wanted) == "");
  }
}
