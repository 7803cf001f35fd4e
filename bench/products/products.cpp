// Matrix products and convolutions through compiled plans, all data on the device: time, rate and error of each.
//
//   oclc-bench-products [--device SEL] [--target NAME] [--precision P] [--disable PASS] [--seconds S] [--turns] [--save FILE]
//   SPEC...
//
//   SPEC   gemm:MxNxK                                both operands are inputs
//          left:MxNxK, right:MxNxK                   so, the left or the right one transposed: a gradient's
//          dense:MxNxK                               the right operand is constant
//          forward:IMAGESxCHANNELSxSIZExFEATURESxKERNELxSTRIDExPAD, and data:..., weights:... for the gradients
//
// Images are square, with their channels innermost; the forward convolution has constant weights, its gradients have none. A
// line a SPEC: its text, microseconds a run (runs of S seconds, 0.2, are enqueued without waiting), TFLOP/s, and the error: the
// norm of the difference to double precision over that of the result, on sampled elements. --turns: for each SPEC `ready`, then
// milliseconds a run for each line of standard input until an empty one, so that another program can have its turns in between.
// --save: the plan of the last SPEC goes to FILE, for oclrun and bench_megakernel, and nothing runs. --disable is repeatable.
#include <CL/cl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/ops/builder.h"
#include "frontends/cpp/typed/device_target.h"
#include "oclc/oclc.hpp"
#include "runtime/package/writer.h"

namespace {

using namespace oclc;
using Clock = std::chrono::steady_clock;
using Numbers = std::vector<std::int64_t>;

constexpr int kWarmRuns = 10, kRunsInARow = 20;
// Samples of a result, and the terms that all of them sum up.
constexpr double kMostSamples = 256, kMostTerms = 2e7;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

std::vector<float> random_floats(std::int64_t count, std::uint32_t state) {
  std::vector<float> x(at(count));
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
  }
  return x;
}

struct Options {
  std::string device, target, precision = "fp32", save;
  std::vector<std::string> disabled;
  double seconds = 0.2;
  bool turns = false;
  std::vector<std::string> specs;
};

// A product: what it computes, its operands' shapes, and an element of the result in double precision.
struct Work {
  double flops = 0;
  Numbers left, right, result;
  bool constant_right = false;
  std::function<Value*(Builder&, Value*, Value*)> build;
  std::function<double(const std::vector<float>&, const std::vector<float>&, std::int64_t)> element;
};

Numbers numbers_of(const std::string& spec, std::size_t from, std::size_t count) {
  Numbers numbers;
  for (std::size_t i = from; i < spec.size() && numbers.size() < count;) {
    char* end = nullptr;
    numbers.push_back(std::strtoll(spec.c_str() + i, &end, 10));
    i = static_cast<std::size_t>(end - spec.c_str()) + 1;
  }
  if (numbers.size() != count) throw std::runtime_error("wanted " + std::to_string(count) + " numbers, found " + spec);
  return numbers;
}

Work gemm(const Numbers& n, bool constant, bool left = false, bool right = false) {
  Work w;
  const std::int64_t rows = n[0], columns = n[1], inner = n[2];
  w.flops = 2.0 * static_cast<double>(n[0] * n[1] * n[2]);
  w.left = left ? Numbers{inner, rows} : Numbers{rows, inner};
  w.right = right ? Numbers{columns, inner} : Numbers{inner, columns};
  w.result = {rows, columns};
  w.constant_right = constant;
  w.build = [=](Builder& b, Value* x, Value* y) {
    return b.matmul(left ? b.transpose(x, {1, 0}) : x, right ? b.transpose(y, {1, 0}) : y);
  };
  w.element = [=](const std::vector<float>& x, const std::vector<float>& y, std::int64_t i) {
    const std::int64_t m = i / columns, n = i % columns;
    double sum = 0;
    for (std::int64_t k = 0; k < inner; ++k)
      sum += static_cast<double>(x[at(left ? k * rows + m : m * inner + k)]) *
             static_cast<double>(y[at(right ? n * inner + k : k * columns + n)]);
    return sum;
  };
  return w;
}

// x[image, y, x, channel], w[feature, channel, y, x], r[image, y, x, feature].
struct Convolution {
  std::int64_t images, channels, size, features, kernel, stride, pad, out;

  explicit Convolution(const Numbers& n)
      : images(n[0]), channels(n[1]), size(n[2]), features(n[3]), kernel(n[4]), stride(n[5]), pad(n[6]) {
    out = (size + 2 * pad - kernel) / stride + 1;
  }

  double flops() const { return 2.0 * static_cast<double>(images * out * out * features * channels * kernel * kernel); }
  Numbers image() const { return {images, size, size, channels}; }
  Numbers result() const { return {images, out, out, features}; }
  Numbers weights() const { return {features, channels, kernel, kernel}; }
  std::int64_t x_at(std::int64_t i, std::int64_t y, std::int64_t x, std::int64_t c) const {
    return ((i * size + y) * size + x) * channels + c;
  }
  std::int64_t r_at(std::int64_t i, std::int64_t y, std::int64_t x, std::int64_t f) const {
    return ((i * out + y) * out + x) * features + f;
  }
  bool inside(std::int64_t y, std::int64_t x) const { return y >= 0 && x >= 0 && y < size && x < size; }
  Attributes attributes() const {
    return {{"strides", Ints{stride, stride}},
            {"dilations", Ints{1, 1}},
            {"pads", Ints{pad, pad, pad, pad}},
            {"group", std::int64_t{1}}};
  }
};

constexpr int kToPlanes[] = {0, 3, 1, 2}, kToChannelsLast[] = {0, 2, 3, 1};
Ints order(const int (&axes)[4]) { return {axes[0], axes[1], axes[2], axes[3]}; }

Work forward(const Convolution& c) {
  Work w;
  w.left = c.image();
  w.right = c.weights();
  w.result = c.result();
  w.constant_right = true;
  w.build = [c](Builder& b, Value* x, Value* y) {
    Value* r = b.call("conv", {b.transpose(x, order(kToPlanes)), y}, c.attributes());
    return b.transpose(r, order(kToChannelsLast));
  };
  w.element = [c](const std::vector<float>& x, const std::vector<float>& y, std::int64_t i) {
    const std::int64_t f = i % c.features, ox = i / c.features % c.out, oy = i / c.features / c.out % c.out,
                       image = i / c.features / c.out / c.out;
    double sum = 0;
    for (std::int64_t ky = 0; ky < c.kernel; ++ky) {
      for (std::int64_t kx = 0; kx < c.kernel; ++kx) {
        const std::int64_t iy = oy * c.stride + ky - c.pad, ix = ox * c.stride + kx - c.pad;
        if (!c.inside(iy, ix)) continue;
        for (std::int64_t ch = 0; ch < c.channels; ++ch)
          sum += static_cast<double>(x[at(c.x_at(image, iy, ix, ch))]) *
                 static_cast<double>(y[at(((f * c.channels + ch) * c.kernel + ky) * c.kernel + kx)]);
      }
    }
    return sum;
  };
  return w;
}

Work data_gradient(const Convolution& c) {
  Work w;
  w.left = c.result();
  w.right = c.weights();
  w.result = c.image();
  w.build = [c](Builder& b, Value* g, Value* y) {
    Attributes attributes = c.attributes();
    attributes.emplace("output_shape", std::vector<Expr>{Expr(c.size), Expr(c.size)});
    Value* x = b.call("conv_transpose", {b.transpose(g, order(kToPlanes)), y}, std::move(attributes));
    return b.transpose(x, order(kToChannelsLast));
  };
  w.element = [c](const std::vector<float>& g, const std::vector<float>& y, std::int64_t i) {
    const std::int64_t ch = i % c.channels, ix = i / c.channels % c.size, iy = i / c.channels / c.size % c.size,
                       image = i / c.channels / c.size / c.size;
    double sum = 0;
    for (std::int64_t ky = 0; ky < c.kernel; ++ky) {
      for (std::int64_t kx = 0; kx < c.kernel; ++kx) {
        const std::int64_t oy = iy + c.pad - ky, ox = ix + c.pad - kx;
        if (oy < 0 || ox < 0 || oy % c.stride || ox % c.stride || oy / c.stride >= c.out || ox / c.stride >= c.out) continue;
        for (std::int64_t f = 0; f < c.features; ++f)
          sum += static_cast<double>(g[at(c.r_at(image, oy / c.stride, ox / c.stride, f))]) *
                 static_cast<double>(y[at(((f * c.channels + ch) * c.kernel + ky) * c.kernel + kx)]);
      }
    }
    return sum;
  };
  return w;
}

Work weight_gradient(const Convolution& c) {
  Work w;
  w.left = c.image();
  w.right = c.result();
  w.result = c.weights();
  w.build = [c](Builder& b, Value* x, Value* g) {
    Attributes attributes = c.attributes();
    attributes.emplace("kernel", Ints{c.kernel, c.kernel});
    return b.call("conv_weight_grad", {b.transpose(x, order(kToPlanes)), b.transpose(g, order(kToPlanes))},
                  std::move(attributes));
  };
  w.element = [c](const std::vector<float>& x, const std::vector<float>& g, std::int64_t i) {
    const std::int64_t kx = i % c.kernel, ky = i / c.kernel % c.kernel, ch = i / c.kernel / c.kernel % c.channels,
                       f = i / c.kernel / c.kernel / c.channels;
    double sum = 0;
    for (std::int64_t image = 0; image < c.images; ++image) {
      for (std::int64_t oy = 0; oy < c.out; ++oy) {
        for (std::int64_t ox = 0; ox < c.out; ++ox) {
          const std::int64_t iy = oy * c.stride + ky - c.pad, ix = ox * c.stride + kx - c.pad;
          if (c.inside(iy, ix))
            sum += static_cast<double>(x[at(c.x_at(image, iy, ix, ch))]) * static_cast<double>(g[at(c.r_at(image, oy, ox, f))]);
        }
      }
    }
    return sum;
  };
  return w;
}

Work work_of(const std::string& spec) {
  const auto colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  const std::size_t from = colon == std::string::npos ? spec.size() : colon + 1;
  if (kind == "gemm" || kind == "dense" || kind == "left" || kind == "right")
    return gemm(numbers_of(spec, from, 3), kind == "dense", kind == "left", kind == "right");
  if (kind != "forward" && kind != "data" && kind != "weights")
    throw std::runtime_error("wanted gemm, left, right, dense, forward, data or weights, found " + spec);
  const Convolution c(numbers_of(spec, from, 7));
  Work w = kind == "forward" ? forward(c) : kind == "data" ? data_gradient(c) : weight_gradient(c);
  w.flops = c.flops();
  return w;
}

std::int64_t count_of(const Numbers& shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

Shape shape_of(const Numbers& extents) {
  Shape shape;
  for (const std::int64_t extent : extents) shape.emplace_back(extent);
  return shape;
}

// A buffer of the device, as the runtime takes it.
class DeviceData {
 public:
  DeviceData(cl_context context, const Numbers& shape, std::vector<float>& data) : shape_(shape) {
    cl_int code = 0;
    buffer_ =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, data.size() * sizeof(float), data.data(), &code);
    if (code != CL_SUCCESS) throw std::runtime_error("no memory on the device");
    tensor.dtype = OCLC_F32;
    tensor.rank = static_cast<std::uint32_t>(shape_.size());
    tensor.shape = shape_.data();
    tensor.buffer = buffer_;
  }
  DeviceData(const DeviceData&) = delete;
  DeviceData& operator=(const DeviceData&) = delete;
  ~DeviceData() { clReleaseMemObject(buffer_); }

  oclc_tensor tensor = OCLC_INIT(oclc_tensor);

 private:
  Numbers shape_;
  cl_mem buffer_ = nullptr;
};

void measure(const rt::Context& context, const Options& options, const std::string& spec) {
  const Work work = work_of(spec);
  std::vector<float> left = random_floats(count_of(work.left), 1), right = random_floats(count_of(work.right), 2);
  std::vector<float> result(at(count_of(work.result)), std::nanf(""));
  auto graph = std::make_unique<Graph>();
  Builder builder(*graph, "product");
  Value* a = graph->add_input("a", {DType::f32, shape_of(work.left)});
  Value* b = nullptr;
  if (work.constant_right) {
    HostTensor constant(DType::f32, work.right);
    std::copy(right.begin(), right.end(), reinterpret_cast<float*>(constant.mutable_data()));
    b = builder.constant(std::move(constant), "b");
  } else {
    b = graph->add_input("b", {DType::f32, shape_of(work.right)});
  }
  graph->add_output("c", work.build(builder, a, b));
  auto module = std::make_shared<Module>();
  module->name = "product";
  module->entries.push_back(std::move(graph));
  CompileOptions compile_options;
  compile_options.target = options.target.empty() ? target_of(context.device()) : find_target(options.target);
  compile_options.precision = options.precision;
  compile_options.disabled = options.disabled;
  const Compiled compiled = compile(std::move(module), compile_options);
  const auto package = package::package_to_memory(std::as_bytes(std::span(compiled.plan.metadata)), compiled.plan.constants);
  if (!options.save.empty()) {
    std::ofstream(options.save, std::ios::binary)
        .write(reinterpret_cast<const char*>(package.data()), static_cast<std::streamsize>(package.size()));
    return;
  }
  const rt::Plan plan = rt::Plan::load(package.data(), package.size());
  rt::Session session(plan, context);

  cl_command_queue queue = oclc_context_cl_queue(context.get());
  cl_context cl = oclc_context_cl_context(context.get());
  const DeviceData x(cl, work.left, left), y(cl, work.right, right), r(cl, work.result, result);
  session.set_input(0, "a", x.tensor);
  if (!work.constant_right) session.set_input(0, "b", y.tensor);
  session.set_output(0, "c", r.tensor);
  for (int i = 0; i < kWarmRuns; ++i) session.run(0);
  const auto stretch = [&] {
    int runs = 0;
    const auto begin = Clock::now();
    const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    while (runs == 0 || elapsed() < options.seconds) {
      for (int i = 0; i < kRunsInARow; ++i, ++runs) clReleaseEvent(session.enqueue(0));
      clFinish(queue);
    }
    return elapsed() / runs;
  };
  if (options.turns) {
    std::puts("ready");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line) && !line.empty();) {
      std::printf("%.5f\n", stretch() * 1e3);
      std::fflush(stdout);
    }
  }
  const double seconds = stretch();

  clEnqueueReadBuffer(queue, r.tensor.buffer, CL_TRUE, 0, result.size() * sizeof(float), result.data(), 0, nullptr, nullptr);
  double difference = 0, norm = 0;
  const auto count = static_cast<std::int64_t>(result.size());
  const double terms = work.flops / 2 / static_cast<double>(count);
  const int samples = static_cast<int>(std::clamp(kMostTerms / terms, 8.0, kMostSamples));
  for (int i = 0; i < samples; ++i) {
    // The last elements are among the samples.
    const std::int64_t element = i < 8 ? count - 1 - i % count : (std::int64_t{i} * 2654435761) % count;
    const double wanted = work.element(left, right, element), found = result[at(element)];
    difference += (found - wanted) * (found - wanted);
    norm += wanted * wanted;
  }
  const double error = std::sqrt(difference / norm);
  std::printf("%-36s %-6s us %10.1f TFLOP/s %8.3f error %.1e\n", spec.c_str(), options.precision.c_str(), seconds * 1e6,
              work.flops / seconds * 1e-12, error);
  std::fflush(stdout);
}

Options read_options(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto next = [&] { return std::string(++i < argc ? argv[i] : ""); };
    if (word == "--device")
      o.device = next();
    else if (word == "--target")
      o.target = next();
    else if (word == "--precision")
      o.precision = next();
    else if (word == "--seconds")
      o.seconds = std::stod(next());
    else if (word == "--disable")
      o.disabled.push_back(next());
    else if (word == "--save")
      o.save = next();
    else if (word == "--turns")
      o.turns = true;
    else
      o.specs.push_back(word);
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = read_options(argc, argv);
  oclc_context_options wish = OCLC_INIT(oclc_context_options);
  if (!options.device.empty()) wish.device = options.device.c_str();
  wish.message = [](void*, oclc_severity, const char* text) { std::fprintf(stderr, "%s\n", text); };
  const rt::Context context(wish);
  for (const std::string& spec : options.specs) measure(context, options, spec);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "oclc-bench-products: error: %s\n", error.what());
  return 1;
}
