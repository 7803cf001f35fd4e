// Which pieces of a buffer begin to live when.
#include <algorithm>

#include "compiler/plan/buffer_pieces.h"

#include <doctest/doctest.h>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/training/training.h"
#include "plan_generated.h"
#include "runtime/package/memory.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

std::string text(const std::vector<BufferPiece>& pieces) {
  std::string out;
  for (const BufferPiece& p : pieces)
    out += (out.empty() ? "" : " ") + std::to_string(p.offset) + "@" + std::to_string(p.first);
  return out;
}

// `layers` products of squares with a bias, trained by gradient descent with momentum.
std::shared_ptr<Module> network(int layers) {
  std::string states, parameters, body, x = "%x";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    states += "state \"w" + n + "\" : f32[256, 256] = f32[256, 256] random " + n + "\n";
    parameters += ", %w" + n + ": f32[256, 256]";
    body += "%" + std::to_string(2 * i) + " = matmul(" + x + ", %w" + n + ") {trans_a=0, trans_b=0}\n%" +
            std::to_string(2 * i + 1) + " = relu(%" + std::to_string(2 * i) + ")\n";
    x = "%" + std::to_string(2 * i + 1);
  }
  auto module = std::make_shared<Module>(parse_module(
      "module \"m\"\n" + states + "graph predict(%x: f32[512, 256]" + parameters + ") {\n" + body + "return y=" + x + "\n}\n",
      find_op));
  build_training(*module, {parse_loss("mse"), parse_optimizer("sgd,lr=0.001,momentum=0.9"), {}, {}, 3});
  return module;
}

}  // namespace

TEST_CASE("pieces begin with the first use of their bytes") {
  const std::vector<BufferUse> uses{{3 * kMiB, 4 * kMiB, 5}, {2 * kMiB, 3 * kMiB, 6}, {0, 2 * kMiB, 8}, {0, 4 * kMiB, 9}};
  CHECK(text(pieces_of(4 * kMiB, uses)) == "0@8 2097152@6 3145728@5");
}

TEST_CASE("a piece that two uses meet begins with the earlier one") {
  const std::vector<BufferUse> uses{{kMiB / 2 + 4, kMiB, 3}, {0, kMiB / 2 + 4, 7}};
  CHECK(text(pieces_of(kMiB, uses)) == "0@7 524288@3");
}

TEST_CASE("small uses between large ones are pieces of their own, as long as there are few") {
  std::vector<BufferUse> uses;
  for (int i = 0; i < 100; ++i) {
    uses.push_back({i * kMiB, (i + 1) * kMiB - 1024, 300 - 2 * i});
    uses.push_back({(i + 1) * kMiB - 1024, (i + 1) * kMiB, 50 - i / 2});
  }
  const std::vector<BufferUse> few(uses.begin(), uses.begin() + 4);
  CHECK(text(pieces_of(2 * kMiB, few)) == "0@300 1047552@50 1048576@298 2096128@50");
  const std::vector<BufferPiece> many = pieces_of(100 * kMiB, uses);
  CHECK(many.size() == 64);
  std::int64_t early = 0;  // bytes that live before step 100
  for (std::size_t i = 0; i < many.size(); ++i) {
    if (many[i].first < 100) early += (i + 1 < many.size() ? many[i + 1].offset : 100 * kMiB) - many[i].offset;
  }
  CHECK(early < 80 * kMiB);
}

TEST_CASE("a buffer that is small, is used whole at once or has bytes that nobody uses is one piece") {
  CHECK(pieces_of(1024, std::vector<BufferUse>{{0, 512, 1}, {512, 1024, 2}}).empty());
  CHECK(pieces_of(kMiB, std::vector<BufferUse>{{0, kMiB, 1}, {0, kMiB, 2}}).empty());
  CHECK(pieces_of(kMiB, std::vector<BufferUse>{{0, kMiB / 2, 1}}).empty());
}

TEST_CASE("gradients of parameters come alive one after another") {
  const PlanRunner runner(network(12), default_options());
  const plan::Plan& plan = *plan::GetPlan(runner.compiled().plan.metadata.data());
  std::size_t most = 0;
  for (const plan::Buffer* buffer : *plan.buffers())
    most = std::max<std::size_t>(most, buffer->pieces() ? buffer->pieces()->size() : 0);
  CHECK(most >= 8);
  const package::EntryMemory memory = package::plan_memory(plan, 1, {});
  CHECK(static_cast<double>(memory.arena_bytes) <= 1.05 * static_cast<double>(memory.live_bytes));
}
