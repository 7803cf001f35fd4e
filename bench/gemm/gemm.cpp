// Single-precision products C = A B through compiled plans beside OpenBLAS and CLBlast in the same process, alternately, on all
// cores.
//
//   oclc-bench-gemm [PRECISION] [ROUNDS] [MxNxK ..]      PRECISION: strict (default), fp32 or fast
//
// The shapes are those of the fourteen networks of tests/models, odd sizes and skinny ones. Each is timed with B constant,
// packed when the plan is made, and with B as an input; times include the run's launch. Operands and results begin on cache
// lines, as they do in a network; MxNxK names those of the shapes that are wanted. `ratio` is OpenBLAS's median time
// divided by oclc's: above 1 oclc is faster. OpenBLAS runs its SKYLAKEX kernels where the processor has AVX-512: its detection
// knows no processors that are newer than it. CLBlast runs on the same device, as `oclc --gemm clblast` has it; its ratio is to
// oclc's product with B as an input.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ops/builder.h"
#include "frontends/cpp/typed/device_target.h"
#include "oclc/oclc.hpp"
#include "runtime/package/writer.h"

namespace {

using namespace oclc;

struct GemmShape {
  std::int64_t m, n, k;
  const char* from;
};

constexpr GemmShape kShapes[] = {{128, 768, 768, "bert q, k, v"},
                                 {128, 3072, 768, "bert up"},
                                 {128, 768, 3072, "bert down"},
                                 {197, 2304, 768, "vit q, k, v"},
                                 {197, 3072, 768, "vit up"},
                                 {197, 768, 3072, "vit down"},
                                 {128, 50257, 768, "gpt2 logits"},
                                 {1, 50257, 768, "gpt2 decode logits"},
                                 {1, 2304, 768, "gpt2 decode q, k, v"},
                                 {1, 4096, 9216, "alexnet classifier"},
                                 {8, 4096, 4096, "alexnet, 8 images"},
                                 {1, 1000, 2048, "resnet50 classifier"},
                                 {3136, 64, 256, "resnet50 layer1"},
                                 {3136, 256, 64, "resnet50 layer1 out"},
                                 {784, 128, 512, "resnet50 layer2"},
                                 {784, 512, 128, "resnet50 layer2 out"},
                                 {196, 256, 1024, "resnet50 layer3"},
                                 {196, 1024, 256, "resnet50 layer3 out"},
                                 {49, 512, 2048, "resnet50 layer4"},
                                 {49, 2048, 512, "resnet50 layer4 out"},
                                 {12544, 96, 16, "mobilenet first"},
                                 {196, 384, 64, "mobilenet middle"},
                                 {49, 320, 960, "mobilenet last"},
                                 {8, 1024, 256, "lstm step"},
                                 {1024, 1000, 512, "lstm logits"},
                                 {512, 512, 512, "square"},
                                 {1024, 1024, 1024, "square"},
                                 {2048, 2048, 2048, "square"},
                                 {333, 777, 555, "odd"},
                                 {1001, 37, 1999, "odd, narrow"},
                                 {17, 4099, 129, "odd, flat"},
                                 {4096, 16, 4096, "skinny"}};

// CLBlast's products are so much longer that a part of the repetitions will do.
constexpr int kClblastShare = 8;

using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);

Sgemm load_openblas() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw")) setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 1);
#endif
  // Its threads otherwise spin for 20 ms behind each product, on the core that oclc's next run needs.
  setenv("OPENBLAS_THREAD_TIMEOUT", "4", 1);
  void* library = dlopen("libopenblas.so.0", RTLD_NOW);
  return library ? reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm")) : nullptr;
}

// Memory that begins on a cache line.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kLine)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, kLine); }
  bool operator==(const LineAllocator&) const = default;
};
using Floats = std::vector<float, LineAllocator<float>>;

Floats numbers(std::int64_t count, std::uint32_t state) {
  Floats x(static_cast<std::size_t>(count));
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
  }
  return x;
}

oclc_tensor host_tensor(const std::vector<std::int64_t>& shape, Floats& data) {
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  tensor.dtype = OCLC_F32;
  tensor.rank = static_cast<std::uint32_t>(shape.size());
  tensor.shape = shape.data();
  tensor.host = data.data();
  tensor.bytes = data.size() * sizeof(float);
  return tensor;
}

// A plan of one product, ready to run on these operands.
class Product {
 public:
  Product(const rt::Context& context, const GemmShape& s, Floats& a, Floats& b, Floats& c, bool constant_b,
          const std::string& precision, const std::string& engine = "own")
      : a_shape_{s.m, s.k}, b_shape_{s.k, s.n}, c_shape_{s.m, s.n} {
    auto graph = std::make_unique<Graph>();
    Builder builder(*graph, "gemm");
    Value* x = graph->add_input("a", {DType::f32, {Expr(s.m), Expr(s.k)}});
    Value* y = nullptr;
    if (constant_b) {
      HostTensor w(DType::f32, b_shape_);
      std::copy(b.begin(), b.end(), reinterpret_cast<float*>(w.mutable_data()));
      y = builder.constant(std::move(w), "b");
    } else {
      y = graph->add_input("b", {DType::f32, {Expr(s.k), Expr(s.n)}});
    }
    graph->add_output("c", builder.matmul(x, y));
    auto module = std::make_shared<Module>();
    module->name = "gemm";
    module->entries.push_back(std::move(graph));
    CompileOptions options;
    options.target = target_of(context.device());
    options.precision = precision;
    options.gemm = engine;
    Compiled compiled = compile(std::move(module), options);
    package_ = package::package_to_memory(std::as_bytes(std::span(compiled.plan.metadata)), compiled.plan.constants);
    plan_ = rt::Plan::load(package_.data(), package_.size());
    session_ = std::make_unique<rt::Session>(plan_, context);
    session_->set_input(0, "a", host_tensor(a_shape_, a));
    if (!constant_b) session_->set_input(0, "b", host_tensor(b_shape_, b));
    session_->set_output(0, "c", host_tensor(c_shape_, c));
  }

  void run() { session_->run(0); }

 private:
  std::vector<std::int64_t> a_shape_, b_shape_, c_shape_;
  std::vector<std::byte> package_;
  rt::Plan plan_;
  std::unique_ptr<rt::Session> session_;
};

double seconds(const auto& body, int repetitions) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repetitions; ++i) body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repetitions;
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const std::string precision = argc > 1 ? argv[1] : "strict";
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
  const Sgemm sgemm = load_openblas();
  if (!sgemm) {
    std::fprintf(
        stderr, "oclc-bench-gemm: error: wanted libopenblas.so.0 with cblas_sgemm; try apt-get install libopenblas0-pthread\n");
    return 5;
  }
  const rt::Context context("cpu");
  std::printf("%s, precision %s, GFLOP/s\n%-30s %9s %9s %9s %9s   %s\n", context.device().name, precision.c_str(), "m x n x k",
              "openblas", "clblast", "B const", "B input", "ratios to OpenBLAS, to CLBlast, largest difference");
  std::vector<double> constant_ratios, input_ratios, clblast_ratios;
  const std::vector<std::string> wanted(argv + std::min(argc, 3), argv + argc);
  for (const GemmShape& s : kShapes) {
    const std::string name = std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    Floats a = numbers(s.m * s.k, 1), b = numbers(s.k * s.n, 2), c[4];
    for (auto& x : c) x.resize(static_cast<std::size_t>(s.m * s.n));
    Product constant(context, s, a, b, c[0], true, precision), input(context, s, a, b, c[1], false, precision),
        clblast(context, s, a, b, c[3], false, precision, "clblast");
    const auto blas = [&] {
      const int m = static_cast<int>(s.m), n = static_cast<int>(s.n), k = static_cast<int>(s.k);
      sgemm(101, 111, 111, m, n, k, 1.0f, a.data(), k, b.data(), n, 0.0f, c[2].data(), n);
    };
    const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    const int repetitions = std::clamp(static_cast<int>(4e9 / flops), 1, 500);
    std::vector<double> times[4];
    for (int round = -1; round < rounds; ++round) {
      const double t[] = {seconds([&] { constant.run(); }, repetitions), seconds([&] { input.run(); }, repetitions),
                          seconds(blas, repetitions),
                          seconds([&] { clblast.run(); }, (repetitions + kClblastShare - 1) / kClblastShare)};
      for (int i = 0; i < 4 && round >= 0; ++i) times[i].push_back(t[i]);
    }
    float difference = 0, largest = 0;
    for (std::size_t i = 0; i < c[2].size(); ++i) {
      largest = std::max(largest, std::abs(c[2][i]));
      for (int side : {0, 1, 3}) difference = std::max(difference, std::abs(c[side][i] - c[2][i]));
    }
    const double own = median(times[0]), with_input = median(times[1]), theirs = median(times[2]),
                 clblast_time = median(times[3]);
    constant_ratios.push_back(theirs / own);
    input_ratios.push_back(theirs / with_input);
    clblast_ratios.push_back(clblast_time / with_input);
    std::printf("%-6ldx%6ldx%5ld %-20s %7.1f %9.1f %9.1f %9.1f   %.2f %.2f  %.1f  %.1e\n", static_cast<long>(s.m),
                static_cast<long>(s.n), static_cast<long>(s.k), s.from, flops / theirs * 1e-9, flops / clblast_time * 1e-9,
                flops / own * 1e-9, flops / with_input * 1e-9, theirs / own, theirs / with_input, clblast_time / with_input,
                static_cast<double>(difference / largest));
    std::fflush(stdout);
  }
  if (constant_ratios.empty()) return 0;
  const auto least = [](const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); };
  std::printf(
      "ratio: B constant median %.2f, smallest %.2f; B input median %.2f, smallest %.2f; CLBlast median %.1f, smallest %.1f\n",
      median(constant_ratios), least(constant_ratios), median(input_ratios), least(input_ratios), median(clblast_ratios),
      least(clblast_ratios));
}
