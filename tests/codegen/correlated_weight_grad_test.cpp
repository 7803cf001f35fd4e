// Weight gradients as convolutions of images with features, on a target that lays out both operands of a product.
#include <algorithm>

#include "tests/codegen/plan_check.h"

using namespace oclc;
using namespace oclc::test;

namespace {

struct Gradient {
  const char* name;
  Ints x, y, kernel, strides, pads, dilations{1, 1};
};

void add(PlanCheck& check, const Gradient& g) {
  check.out(g.name, check.b.call("conv_weight_grad", {check.input(g.x), check.input(g.y)},
                                 {{"kernel", g.kernel},
                                  {"strides", g.strides},
                                  {"dilations", g.dilations},
                                  {"pads", g.pads},
                                  {"group", std::int64_t{1}}}));
}

bool correlates(const Gradient& g, const char* target = "h200", const std::vector<std::string>& disabled = {}) {
  PlanCheck check;
  add(check, g);
  CompileOptions options = default_options();
  options.target = find_target(target);
  options.disabled = disabled;
  const auto module = module_of(copy_graph(*check.graph));
  run_pipeline(*module, options);
  const auto nodes = module->entries[0]->nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return n->op->name == "conv"; });
}

const Gradient kFirst{"first", {16, 3, 39, 40}, {16, 32, 8, 8}, {11, 11}, {4, 4}, {2, 2, 0, 0}};

}  // namespace

TEST_CASE("weight gradients as convolutions of images with features are those of patches") {
  PlanCheck check;
  // Lines that no window reads; windows that jump; margins of one side alone and dilated taps; terms that are no whole steps.
  for (const Gradient& g : {kFirst, Gradient{"strides", {32, 16, 10, 10}, {32, 32, 5, 5}, {3, 3}, {2, 2}, {1, 1, 1, 1}},
                            Gradient{"lopsided", {16, 32, 9, 8}, {16, 32, 7, 9}, {3, 2}, {1, 1}, {0, 1, 2, 2}, {2, 2}},
                            Gradient{"flat", {20, 12, 9, 9}, {20, 36, 9, 9}, {5, 5}, {1, 1}, {2, 2, 2, 2}}}) {
    CAPTURE(g.name);
    CHECK(correlates(g));
    add(check, g);
  }
  CHECK(check.problem("h200", true, 2e-6, evaluate(*check.graph, check.inputs, check.symbols)) == "");
}

TEST_CASE("weight gradients keep patches for few images, few rows or features, one tap and where products are not packed") {
  CHECK_FALSE(correlates({"images", {8, 3, 39, 40}, {8, 32, 8, 8}, {11, 11}, {4, 4}, {2, 2, 0, 0}}));
  CHECK_FALSE(correlates({"rows", {16, 3, 16, 16}, {16, 32, 16, 16}, {3, 3}, {1, 1}, {1, 1, 1, 1}}));
  CHECK_FALSE(correlates({"features", {16, 3, 39, 40}, {16, 16, 8, 8}, {11, 11}, {4, 4}, {2, 2, 0, 0}}));
  CHECK_FALSE(correlates({"one tap", {16, 128, 8, 8}, {16, 32, 4, 4}, {1, 1}, {2, 2}, {0, 0, 0, 0}}));
  CHECK_FALSE(correlates(kFirst, "h200", {"pack_b"}));
  CHECK_FALSE(correlates(kFirst, "gpu"));
}

TEST_CASE("lines of a window that is an image are cut where tiles are few, and a large copy reads and writes whole sectors") {
  PlanCheck check;
  add(check, {"deep", {64, 3, 120, 120}, {64, 64, 30, 30}, {11, 11}, {4, 4}, {4, 4, 3, 3}});
  CompileOptions options = default_options();
  options.target = find_target("h200");
  const Compiled compiled = compile(module_of(copy_graph(*check.graph)), options);
  const auto& kernels = compiled.schedule.kernels;
  CHECK(std::any_of(kernels.begin(), kernels.end(), [](const Kernel& k) {
    return k.contraction && k.reduction.size() == 3 && k.reduction[0].extent == Expr(1) &&
           k.reduction[1].name == "tap_x_of_part";
  }));
  const auto& files = compiled.plan.files;
  CHECK(std::any_of(files.begin(), files.end(),
                    [](const GeneratedFile& f) { return f.source.find("i1_lane = element % (16)") != std::string::npos; }));
}
