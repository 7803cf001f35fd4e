// Canaries behind every buffer of a plan, and on both sides of its outputs: kernels write what is theirs, to the last odd
// element.
#include <CL/cl.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "compiler/ir/copy.h"
#include "compiler/ir/text.h"
#include "tests/runtime/plan_builder.h"
#include "tests/support/random_case.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace guarded_buffers_test {
namespace {

constexpr std::int64_t kGuard = 256;  // bytes
constexpr unsigned char kCanary = 0xa5;

// Kernels that write canaries behind a buffer's bytes, and count those that are no longer there.
constexpr const char* kGuards = R"(
#define GUARD(T, V)                                                                           \
  kernel void guard_##T(global T* p, long p0, long begin, long count) {                       \
    for (long i = 0; i < count; ++i) p[p0 + begin + i] = (T)V;                                \
  }                                                                                           \
  kernel void check_##T(global T* p, long p0, global int* d, long d0, long begin, long count) { \
    for (long i = 0; i < count; ++i) d[d0] += p[p0 + begin + i] != (T)V;                      \
  }
GUARD(uchar, 0xa5)
GUARD(ushort, 0xa5a5)
GUARD(uint, 0xa5a5a5a5u)
GUARD(ulong, 0xa5a5a5a5a5a5a5a5ul)
kernel void begin(global int* d, long d0) { d[d0] = 0; }
)";

struct Unit {
  const char* type;
  std::int64_t bytes;
};

Unit unit_of(fb::DType dtype) {
  switch (oclc_dtype_bytes(static_cast<oclc_dtype>(dtype))) {
    case 2:
      return {"ushort", 2};
    case 4:
      return {"uint", 4};
    case 8:
      return {"ulong", 8};
    default:
      return {"uchar", 1};
  }
}

// Leaves of the schedule, by which lives are numbered.
int leaves(const std::vector<std::unique_ptr<fb::StepT>>& steps) {
  int count = 0;
  for (const auto& step : steps) {
    const auto* l = step->body.AsLaunch();
    const auto* loop = step->body.AsLoop();
    count += loop ? leaves(loop->body) : l && !l->parts.empty() ? static_cast<int>(l->parts.size()) : 1;
  }
  return count;
}

bool reads_sizes(const std::vector<std::unique_ptr<fb::StepT>>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const auto& step) {
    const auto* loop = step->body.AsLoop();
    return step->body.AsRead() != nullptr || (loop && reads_sizes(loop->body));
  });
}

E copy_of(const ExprPtr& e) {
  E copy(0);
  copy.code = e->code;
  return copy;
}

// Gives every arena buffer a place of its own with room behind it, and adds steps that fill and check the room. The number of
// buffers.
int guard(fb::PlanT& plan) {
  fb::EntryT& entry = *plan.entries.at(0);
  const int program_index = static_cast<int>(plan.programs.size()), damage = static_cast<int>(plan.buffers.size());
  plan.programs.push_back(program("guards", kGuards));
  std::vector<std::unique_ptr<fb::StepT>> before, behind;
  before.push_back(launch("begin", program_index, {1}, {1}, writes(damage)));
  for (int i = 0; i < damage; ++i) {
    fb::BufferT& b = *plan.buffers[static_cast<std::size_t>(i)];
    if (b.kind != fb::BufferKind::arena || b.alias >= 0 || b.entry != 0) continue;
    const Unit unit = unit_of(b.dtype);
    const E begin = copy_of(b.bytes).then(unit.bytes, ExprOp::floor_div);
    const auto number = [](const E& e) { return value(fb::ArgKind::int64, e); };
    before.push_back(launch(std::string("guard_") + unit.type, program_index, {1}, {1}, writes(i), number(begin),
                            number(kGuard / unit.bytes)));
    behind.push_back(launch(std::string("check_") + unit.type, program_index, {1}, {1}, writes(i), writes(damage),
                            number(begin), number(kGuard / unit.bytes)));
    b.bytes = (copy_of(b.bytes) + kGuard).ptr();
  }
  const int guarded = static_cast<int>(behind.size());
  entry.steps.insert(entry.steps.begin(), std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
  entry.steps.insert(entry.steps.end(), std::make_move_iterator(behind.begin()), std::make_move_iterator(behind.end()));
  plan.buffers.push_back(buffer("damage", fb::BufferKind::output, 4, fb::DType::i32));
  entry.outputs.push_back(binding("damage", damage, {1}, fb::DType::i32));
  for (auto& b : plan.buffers) {
    if (b->kind != fb::BufferKind::arena || b->entry != 0) continue;
    b->first = 0;
    b->last = leaves(entry.steps) - 1;
    b->pieces.clear();
  }
  return guarded;
}

// An output in memory that goes on before and behind it.
class GuardedOutput {
 public:
  GuardedOutput(const rt::Context& context, rt::Session& session, const std::string& name, DType dtype)
      : queue_(context.cl_queue()), result_(dtype, session.shape(0, OCLC_OUTPUT, name)) {
    std::vector<unsigned char> canaries(result_.bytes() + 2 * kGuard, kCanary);
    memory_ = clCreateBuffer(context.cl_context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, canaries.size(), canaries.data(),
                             nullptr);
    REQUIRE(memory_ != nullptr);
    oclc_tensor tensor = OCLC_INIT(oclc_tensor);
    tensor.dtype = static_cast<oclc_dtype>(dtype);
    tensor.rank = static_cast<std::uint32_t>(result_.shape().size());
    tensor.shape = result_.shape().data();
    tensor.buffer = memory_;
    tensor.offset_bytes = kGuard;
    session.set_output(0, name, tensor);
  }
  ~GuardedOutput() { clReleaseMemObject(memory_); }
  GuardedOutput(const GuardedOutput&) = delete;
  GuardedOutput& operator=(const GuardedOutput&) = delete;

  // What lies between the canaries, which must be whole.
  HostTensor read() {
    std::vector<unsigned char> all(result_.bytes() + 2 * kGuard);
    REQUIRE(clEnqueueReadBuffer(queue_, memory_, CL_TRUE, 0, all.size(), all.data(), 0, nullptr, nullptr) == CL_SUCCESS);
    const auto whole = [](unsigned char c) { return c == kCanary; };
    CHECK(std::all_of(all.begin(), all.begin() + kGuard, whole));
    CHECK(std::all_of(all.end() - kGuard, all.end(), whole));
    std::memcpy(result_.mutable_data(), all.data() + kGuard, result_.bytes());
    return result_;
  }

 private:
  cl_command_queue queue_;
  HostTensor result_;
  cl_mem memory_ = nullptr;
};

struct Guarded {
  int buffers = 0;      // with canaries behind them
  std::string problem;  // of the results; empty: they are the reference's
};

Guarded run_guarded(const RandomCase& test, const CompileOptions& options) {
  Guarded guarded;
  const Compiled compiled = compile(module_of(copy_graph(*test.graph)), options);
  fb::PlanT plan;
  fb::GetPlan(compiled.plan.metadata.data())->UnPackTo(&plan);
  if (reads_sizes(plan.entries.at(0)->steps)) return guarded;
  guarded.buffers = guard(plan);
  const std::vector<std::byte> bytes = package::package_to_memory(metadata(plan), compiled.plan.constants);
  const rt::Plan loaded = rt::Plan::load(bytes.data(), bytes.size());
  const char* selected = std::getenv("OCLC_TEST_DEVICE");
  const rt::Context context(std::string(selected ? selected : "cpu"));
  rt::Session session(loaded, context);
  const EntrySchedule& entry = compiled.schedule.entries.at(0);
  for (const auto& [symbol, value] : test.symbols) session.bind_dim(symbol, value);
  for (std::size_t i = 0; i < test.inputs.size(); ++i) {
    const HostTensor& input = test.inputs[i];
    oclc_tensor tensor = OCLC_INIT(oclc_tensor);
    tensor.dtype = static_cast<oclc_dtype>(input.dtype());
    tensor.rank = static_cast<std::uint32_t>(input.shape().size());
    tensor.shape = input.shape().data();
    tensor.host = const_cast<std::byte*>(input.data());  // inputs are only read
    tensor.bytes = input.bytes();
    session.set_input(0, entry.inputs[i].first, tensor);
  }
  std::vector<std::unique_ptr<GuardedOutput>> outputs;
  for (const auto& [name, type] : entry.outputs)
    outputs.push_back(std::make_unique<GuardedOutput>(context, session, name, type.dtype));
  std::int32_t damage = -1;
  session.set_output(0, "damage", &damage, {1});
  session.run(0);
  std::vector<HostTensor> found;
  for (const auto& output : outputs) found.push_back(output->read());
  CHECK(damage == 0);
  guarded.problem = test.problem(found);
  return guarded;
}

}  // namespace

TEST_CASE("case 96: no kernel writes behind a buffer or around an output") {
  int buffers = 0, graphs = 0;
  for (const std::uint64_t seed : random_seeds(6)) {
    const auto test = random_case(seed, {.nodes = 12, .symbolic = seed % 2 == 0});
    if (!test) continue;
    for (const bool fuse : {false, true}) {
      CompileOptions options = default_options();
      if (!fuse) options.disabled = {"fuse"};
      INFO("seed " << seed << (fuse ? ", fused\n" : ", unfused\n") << print_graph(*test->graph, {.max_elements = 1 << 20}));
      const Guarded guarded = run_guarded(*test, options);
      CHECK(guarded.problem == "");
      buffers += guarded.buffers;
      ++graphs;
    }
  }
  CHECK(graphs > 0);
  CHECK(buffers > graphs);
}

// Guards that are touched are found: a kernel that stores one element too many.
TEST_CASE("case 96: one element too many is seen") {
  fb::PlanT plan = vector_plan();
  plan.programs[0]->source.replace(plan.programs[0]->source.find("y[y0 + i] = x[x0 + i] * w"), 9, "y[y0 + i + 1]");
  CHECK(guard(plan) == 1);
  const std::vector<std::byte> bytes = finish(plan, {1, 2, 3, 4});
  rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), rt::Context(std::string("cpu")));
  const std::vector<float> a(5, 1);
  std::vector<float> y(5);
  std::int32_t damage = -1;
  session.set_input(0, "a", a.data(), {5});
  session.set_input(0, "b", a.data(), {5});
  session.set_output(0, "y", y.data(), {5});
  session.set_output(0, "damage", &damage, {1});
  session.run(0);
  CHECK(damage == 1);
}

}  // namespace guarded_buffers_test
