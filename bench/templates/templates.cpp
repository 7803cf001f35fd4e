// Templates that memory bounds, at sizes beyond the last cache, beside what the device streams.
//
//   oclc-bench-templates [--mib N] [--device SEL] [--target NAME] [--benchmark_filter=softmax] [--benchmark_out=FILE.json] ..
//
// Each template runs as a compiled plan with its data on the device, in turns with a kernel of plain vector loads and stores
// that reads and writes as many bytes; the data of both lies in huge pages where a plan's values would. Columns, each of the
// fastest run: milliseconds, GB/s of operands and result, each byte counted once, and `stream`: the plain kernel's time over
// the template's. N: MiB of operands and result together (256).
#include <CL/cl.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ops/builder.h"
#include "frontends/cpp/typed/device_target.h"
#include "oclc/oclc.hpp"
#include "runtime/device/huge_pages.h"
#include "runtime/package/writer.h"

namespace {

using namespace oclc;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kStreamGroups = 64, kVectorBytes = 64;
constexpr double kSeconds = 0.5;  // of each benchmark

// Each work-group has one share of what is read and one of what is written.
constexpr const char* kStream = R"(
__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void stream(__global const float16* x, __global float16* y, long reads, long writes) {
  const long g = get_group_id(0), n = get_num_groups(0);
  const long read = reads * g / n, read_end = reads * (g + 1) / n, write = writes * g / n, write_end = writes * (g + 1) / n;
  const long both = min(read_end - read, write_end - write);
  float16 a = 1.0f, b = 0.0f;
  for (long k = 0; k < both; ++k) y[write + k] = x[read + k];
  long k = read + both;
  for (; k + 1 < read_end; k += 2) {
    a += x[k];
    b += x[k + 1];
  }
  if (k < read_end) a += x[k];
  for (long i = write + both; i < write_end; ++i) y[i] = a;
  if (a.s0 + b.s0 == 0.12345f) y[write] = b;  // what was read is wanted
})";

void checked(cl_int code, const char* what) {
  if (code != CL_SUCCESS) throw std::runtime_error(std::string(what) + ": " + std::to_string(code));
}

struct Memory {
  // In huge pages where the runtime would ask for them.
  Memory(const rt::Context& context, std::int64_t size) {
    cl_int code = 0;
    const auto bytes = static_cast<std::size_t>(size);
    handle = clCreateBuffer(context.cl_context(), CL_MEM_READ_WRITE, bytes, nullptr, &code);
    checked(code, "allocating a buffer");
    if (context.device().device_class == OCLC_DEVICE_CPU && bytes >= runtime::kLeastHuge)
      runtime::use_huge_pages(context.cl_queue(), handle, bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { clReleaseMemObject(handle); }
  void fill(cl_command_queue queue, float value, std::int64_t bytes) const {
    checked(clEnqueueFillBuffer(queue, handle, &value, sizeof value, 0, static_cast<std::size_t>(bytes), 0, nullptr, nullptr),
            "filling a buffer");
  }
  cl_mem handle = nullptr;
};

// A template: its operands' shapes for an amount of data, and the graph.
struct Row {
  const char* name;
  std::vector<Ints> (*operands)(std::int64_t elements);
  Value* (*build)(Builder& b, const std::vector<Value*>& x);
};

std::int64_t at_least_1(std::int64_t n) { return std::max<std::int64_t>(n, 1); }

template <int kParts, std::int64_t... kTail>
std::vector<Ints> shapes(std::int64_t elements) {
  std::int64_t tail = 1;
  ((tail *= kTail), ...);
  // The result is one more part.
  const std::int64_t first = at_least_1(elements / (kParts + 1) / tail);
  return std::vector<Ints>(kParts, Ints{first, kTail...});
}

HostTensor values(Ints shape, float value) {
  HostTensor t(DType::f32, std::move(shape));
  std::fill_n(reinterpret_cast<float*>(t.mutable_data()), t.elements(), value);
  return t;
}

// What `f` makes of images whose channels are innermost, as they are between the layers of a network.
Value* as_planes(Builder& b, Value* x, Value* (*f)(Builder& b, Value* x)) {
  return b.transpose(f(b, b.transpose(x, {0, 3, 1, 2})), {0, 2, 3, 1});
}

template <std::int64_t kStride>
Value* depthwise(Builder& b, Value* x) {
  const std::int64_t channels = x->type.shape[1].value();
  return b.conv(x, b.constant(values({channels, 1, 3, 3}, 0.125f)), b.constant(values({channels}, 0.5f)),
                {.strides = {kStride, kStride}, .pads = {1, 1, 1, 1}, .group = channels});
}

template <std::int64_t kSize, std::int64_t kStride, std::int64_t kPad>
Value* max_pool(Builder& b, Value* x) {
  return b.max_pool(x, {.kernel = {kSize, kSize}, .strides = {kStride, kStride}, .pads = Ints(4, kPad)});
}

template <std::int64_t kSize, std::int64_t kStride, std::int64_t kPad>
Value* average_pool(Builder& b, Value* x) {
  return b.avg_pool(x, {.kernel = {kSize, kSize}, .strides = {kStride, kStride}, .pads = Ints(4, kPad)});
}

Value* gelu(Builder& b, Value* x) { return b.mul(b.mul(x, 0.5), b.add(b.erf(b.mul(x, 0.70710678118654752)), 1.0)); }

const Row kRows[] = {
    {"relu", shapes<1, 64, 56, 56>, [](Builder& b, const std::vector<Value*>& x) { return b.relu(x[0]); }},
    {"add", shapes<2, 64, 56, 56>, [](Builder& b, const std::vector<Value*>& x) { return b.add(x[0], x[1]); }},
    {"scale, shift, relu by channel", shapes<1, 64, 56, 56>,
     [](Builder& b, const std::vector<Value*>& x) {
       return b.relu(b.add(b.mul(x[0], b.constant(values({64, 1, 1}, 0.5f))), b.constant(values({64, 1, 1}, 0.25f))));
     }},
    {"sigmoid", shapes<1, 768>, [](Builder& b, const std::vector<Value*>& x) { return b.sigmoid(x[0]); }},
    {"gelu", shapes<1, 3072>, [](Builder& b, const std::vector<Value*>& x) { return gelu(b, x[0]); }},
    {"softmax of 128", shapes<1, 128>, [](Builder& b, const std::vector<Value*>& x) { return b.softmax(x[0]); }},
    {"softmax of 1000", shapes<1, 1000>, [](Builder& b, const std::vector<Value*>& x) { return b.softmax(x[0]); }},
    {"layer norm of 768", shapes<1, 768>,
     [](Builder& b, const std::vector<Value*>& x) {
       return b.layer_norm(x[0], b.constant(values({768}, 2)), b.constant(values({768}, 1)));
     }},
    {"rms norm of 1024", shapes<1, 1024>,
     [](Builder& b, const std::vector<Value*>& x) { return b.rms_norm(x[0], b.constant(values({1024}, 2))); }},
    {"sum of rows of 1024", shapes<1, 1024>,
     [](Builder& b, const std::vector<Value*>& x) { return b.reduce("reduce_sum", x[0], {1}, false); }},
    {"sum of columns", shapes<1, 1024>,
     [](Builder& b, const std::vector<Value*>& x) { return b.reduce("reduce_sum", x[0], {0}, false); }},
    {"mean of 7x7", shapes<1, 512, 7, 7>,
     [](Builder& b, const std::vector<Value*>& x) {
       return b.reduce("reduce_mean", x[0], {2, 3}, false);
     }},
    {"max pool 3x3, stride 2", shapes<1, 112, 112, 64>,
     [](Builder& b, const std::vector<Value*>& x) { return as_planes(b, x[0], max_pool<3, 2, 1>); }},
    {"max pool 2x2, stride 2", shapes<1, 112, 112, 64>,
     [](Builder& b, const std::vector<Value*>& x) { return as_planes(b, x[0], max_pool<2, 2, 0>); }},
    {"average pool 2x2, stride 2", shapes<1, 56, 56, 128>,
     [](Builder& b, const std::vector<Value*>& x) { return as_planes(b, x[0], average_pool<2, 2, 0>); }},
    {"average pool 3x3", shapes<1, 28, 28, 192>,
     [](Builder& b, const std::vector<Value*>& x) { return as_planes(b, x[0], average_pool<3, 1, 1>); }},
    {"depthwise 3x3", shapes<1, 112, 112, 32>,
     [](Builder& b, const std::vector<Value*>& x) { return as_planes(b, x[0], depthwise<1>); }},
    {"depthwise 3x3, stride 2", shapes<1, 112, 112, 96>,
     [](Builder& b, const std::vector<Value*>& x) { return as_planes(b, x[0], depthwise<2>); }},
    {"depthwise 3x3 of 14x14", shapes<1, 14, 14, 384>,
     [](Builder& b, const std::vector<Value*>& x) { return as_planes(b, x[0], depthwise<1>); }},
    {"max pool 3x3, stride 2, of planes", shapes<1, 64, 112, 112>,
     [](Builder& b, const std::vector<Value*>& x) { return max_pool<3, 2, 1>(b, x[0]); }},
    {"average pool 3x3 of planes", shapes<1, 192, 28, 28>,
     [](Builder& b, const std::vector<Value*>& x) { return average_pool<3, 1, 1>(b, x[0]); }},
    {"depthwise 3x3 of planes", shapes<1, 32, 112, 112>,
     [](Builder& b, const std::vector<Value*>& x) { return depthwise<1>(b, x[0]); }},
    {"transpose to channels last", shapes<1, 64, 3136>,
     [](Builder& b, const std::vector<Value*>& x) { return b.transpose(x[0], {0, 2, 1}); }},
};

struct Options {
  std::string device, target;
  std::int64_t mib = 256;
};

class Bench {
 public:
  Bench(const rt::Context& context, const Options& options) : context_(context), options_(options) {
    cl_device_id device = nullptr;
    cl_int code = clGetCommandQueueInfo(context.cl_queue(), CL_QUEUE_DEVICE, sizeof device, &device, nullptr);
    checked(code, "asking the device");
    const char* source = kStream;
    program_ = clCreateProgramWithSource(context.cl_context(), 1, &source, nullptr, &code);
    checked(code, "creating the stream kernel");
    checked(clBuildProgram(program_, 1, &device, "", nullptr, nullptr), "building the stream kernel");
    stream_ = clCreateKernel(program_, "stream", &code);
    checked(code, "creating the stream kernel");
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    clReleaseKernel(stream_);
    clReleaseProgram(program_);
  }

  void measure(benchmark::State& state, const Row& row) {
    const std::vector<Ints> shapes = row.operands((options_.mib << 20) / static_cast<std::int64_t>(sizeof(float)));
    auto graph = std::make_unique<Graph>();
    Builder builder(*graph, "template");
    std::vector<Value*> operands;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      operands.push_back(graph->add_input("x" + std::to_string(i), {DType::f32, Shape(shapes[i].begin(), shapes[i].end())}));
    Value* result = row.build(builder, operands);
    Ints result_shape;
    for (const Expr& extent : result->type.shape) result_shape.push_back(extent.value());
    graph->add_output("y", result);
    auto module = std::make_shared<Module>();
    module->name = "template";
    module->entries.push_back(std::move(graph));
    CompileOptions options;
    options.target = options_.target.empty() ? target_of(context_.device()) : find_target(options_.target);
    const Compiled compiled = compile(std::move(module), options);
    const auto package = package::package_to_memory(std::as_bytes(std::span(compiled.plan.metadata)), compiled.plan.constants);
    const rt::Plan plan = rt::Plan::load(package.data(), package.size());
    rt::Session session(plan, context_);

    cl_command_queue queue = context_.cl_queue();
    std::vector<std::unique_ptr<Memory>> memories;
    const auto tensor = [&](const Ints& shape) {
      const std::int64_t size = bytes_of(shape);
      memories.push_back(std::make_unique<Memory>(context_, size));
      memories.back()->fill(queue, 0.5f, size);
      oclc_tensor t = OCLC_INIT(oclc_tensor);
      t.dtype = OCLC_F32;
      t.rank = static_cast<std::uint32_t>(shape.size());
      t.shape = shape.data();
      t.buffer = memories.back()->handle;
      return t;
    };
    std::int64_t read = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      session.set_input(0, "x" + std::to_string(i), tensor(shapes[i]));
      read += bytes_of(shapes[i]);
    }
    session.set_output(0, "y", tensor(result_shape));
    const std::int64_t written = bytes_of(result_shape);
    const Memory from(context_, read), to(context_, std::max(written, kVectorBytes));
    from.fill(queue, 0.5f, read);
    to.fill(queue, 0.5f, written);
    const cl_long reads = read / kVectorBytes, writes = written / kVectorBytes;
    clSetKernelArg(stream_, 0, sizeof(cl_mem), &from.handle);
    clSetKernelArg(stream_, 1, sizeof(cl_mem), &to.handle);
    clSetKernelArg(stream_, 2, sizeof reads, &reads);
    clSetKernelArg(stream_, 3, sizeof writes, &writes);
    const auto run_stream = [&] {
      const std::size_t groups = kStreamGroups, one = 1;
      checked(clEnqueueNDRangeKernel(queue, stream_, 1, nullptr, &groups, &one, 0, nullptr, nullptr), "the stream kernel");
      clFinish(queue);
    };
    const auto run_template = [&] { session.run(0); };
    run_template();
    run_stream();
    double best = 1e9, best_stream = 1e9;
    for (auto _ : state) {
      best_stream = std::min(best_stream, seconds(run_stream));
      const double time = seconds(run_template);
      best = std::min(best, time);
      state.SetIterationTime(time);
    }
    state.counters["ms"] = best * 1e3;
    state.counters["GB/s"] = static_cast<double>(read + written) / best * 1e-9;
    state.counters["stream"] = best_stream / best;
  }

 private:
  static std::int64_t bytes_of(const Ints& shape) {
    std::int64_t bytes = sizeof(float);
    for (const std::int64_t extent : shape) bytes *= extent;
    return bytes;
  }
  template <class Run>
  static double seconds(const Run& run) {
    const auto begin = Clock::now();
    run();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  const rt::Context& context_;
  const Options& options_;
  cl_program program_ = nullptr;
  cl_kernel stream_ = nullptr;
};

Options read_options(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--device")
      o.device = value;
    else if (word == "--target")
      o.target = value;
    else if (word == "--mib")
      o.mib = std::stoll(value);
    else
      throw std::runtime_error("wanted --device, --target, --mib or an option of Google Benchmark, found " + word);
    ++i;
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) try {
  benchmark::Initialize(&argc, argv);
  const Options options = read_options(argc, argv);
  oclc_context_options wish = OCLC_INIT(oclc_context_options);
  if (!options.device.empty()) wish.device = options.device.c_str();
  const rt::Context context(wish);
  Bench bench(context, options);
  for (const Row& row : kRows) {
    benchmark::RegisterBenchmark(row.name, [&](benchmark::State& state) { bench.measure(state, row); })
        ->UseManualTime()
        ->MinTime(kSeconds)
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::ConsoleReporter table(
      static_cast<benchmark::ConsoleReporter::OutputOptions>(benchmark::ConsoleReporter::OO_Tabular));
  benchmark::RunSpecifiedBenchmarks(&table);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "oclc-bench-templates: error: %s\n", error.what());
  return 1;
}
