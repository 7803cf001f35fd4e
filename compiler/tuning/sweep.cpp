#include "compiler/tuning/sweep.h"

#include <fmt/format.h>

#include <random>

#include "compiler/ops/builder.h"

namespace oclc {
namespace {

// A convolution of a square picture; `pad` keeps its size but for the stride.
struct Drawn {
  std::int64_t images = 1, channels = 32, features = 32, size = 14, kernel = 3, stride = 1, dilation = 1, groups = 1;

  std::int64_t pad() const { return (kernel - 1) / 2 * dilation; }
  std::int64_t out() const { return (size + 2 * pad() - (kernel - 1) * dilation - 1) / stride + 1; }
  std::int64_t multiplications() const { return images * out() * out() * features * channels / groups * kernel * kernel; }
};

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  TuningJob job(int kind) {
    switch (kind % 8) {
      case 0: {
        const std::int64_t groups = one_of({2, 4, 8, 16, 32}), width = one_of({8, 16, 24, 32, 40, 48, 64});
        return convolution("grouped", within({.channels = groups * width, .features = groups * width, .groups = groups}));
      }
      case 1: {
        const std::int64_t channels = 8 * between(2, 48);
        return convolution("depthwise", within({.channels = channels,
                                                .features = channels,
                                                .kernel = one_of({3, 5, 7}),
                                                .stride = one_of({1, 1, 2}),
                                                .groups = channels}));
      }
      case 2:
        return convolution("dilated", within({.channels = any_channels(),
                                              .features = any_channels(),
                                              .kernel = one_of({3, 3, 5}),
                                              .dilation = one_of({2, 3, 4})}));
      case 3:
        return convolution("strided", within({.channels = one_of({3, 4, 24, 48, 64, 96, 128}),
                                              .features = any_channels(),
                                              .kernel = one_of({2, 3, 5, 7}),
                                              .stride = one_of({2, 2, 4})}));
      case 4:
        return convolution("pointwise", within({.channels = between(5, 250), .features = between(5, 250), .kernel = 1}));
      case 5:
        return batched_product();
      case 6:
        return convolution("normed", within({.channels = any_channels(), .features = any_channels(), .kernel = one_of({1, 3})}),
                           Around::norms);
      default: {
        const std::int64_t groups = one_of({2, 3, 4, 8});
        return convolution("shuffled",
                           within({.channels = groups * 8 * between(2, 12),
                                   .features = groups * 8 * between(2, 12),
                                   .kernel = 1,
                                   .groups = groups}),
                           Around::shuffle);
      }
    }
  }

  // Of those that a sweep's kinds leave out.
  TuningJob large(int kind) {
    const auto many = [&] { return one_of({16, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, 1536}); };
    switch (kind % 6) {
      case 0:
        return convolution("dense", fitting({.channels = many(), .features = many(), .size = any_size()}));
      case 1:
        return convolution("pointwise", fitting({.channels = many(), .features = many(), .size = any_size(), .kernel = 1}));
      case 2:
        return convolution("first", {.channels = 3,
                                     .features = one_of({16, 32, 64, 96, 192, 384, 768}),
                                     .size = one_of({96, 160, 224, 256}),
                                     .kernel = one_of({3, 5, 7, 11, 16}),
                                     .stride = one_of({2, 4, 8, 16})});
      case 3:
      case 4:
        return product_job(one_of({1, 1, 1, 2, 8, 49, 64, 128, 197, 256}), one_of({64, 256, 512, 768, 1280, 2048, 3072, 4096}),
                           one_of({64, 256, 512, 768, 1000, 1280, 2048, 3072, 4096}));
      default:
        return convolution("squeezed", {.channels = many(), .features = many(), .size = 1, .kernel = 1});
    }
  }

 private:
  enum class Around { nothing, norms, shuffle };

  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  std::int64_t one_of(std::initializer_list<std::int64_t> list) {
    return list.begin()[between(0, static_cast<std::int64_t>(list.size()) - 1)];
  }
  std::int64_t any_channels() { return one_of({16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192}); }

  // With a size and images that keep the multiply-adds below the limit.
  Drawn within(Drawn d) {
    d.size = one_of({7, 10, 14, 19, 20, 28, 38, 40, 56});
    d.images = one_of({1, 1, 2, 8});
    while (d.multiplications() > kSweepMultiplications && d.images > 1) d.images /= 2;
    while (d.multiplications() > kSweepMultiplications && d.size > 7) d.size = d.size * 3 / 4;
    return d;
  }

  std::int64_t any_size() { return one_of({7, 10, 14, 20, 28, 40, 56, 80, 112}); }

  Drawn fitting(Drawn d) {
    while (d.multiplications() > kCalibrationMultiplications) d.size /= 2;
    return d;
  }

  HostTensor numbers(std::vector<std::int64_t> shape) {
    HostTensor tensor(DType::f32, std::move(shape));
    for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, static_cast<double>(random_()) / 2147483648.0 - 1);
    return tensor;
  }

  // Of each position, over its channels.
  Value* norm(Builder& b, Value* x, std::int64_t channels) {
    Value* last = b.transpose(x, {0, 2, 3, 1});
    last = b.layer_norm(last, b.constant(numbers({channels})), b.constant(numbers({channels})));
    return b.transpose(last, {0, 3, 1, 2});
  }

  Value* shuffle(Builder& b, Value* x, const Drawn& d) {
    Value* grouped = b.reshape(x, {Expr(d.images), Expr(d.groups), Expr(d.channels / d.groups), Expr(d.size), Expr(d.size)});
    return b.reshape(b.transpose(grouped, {0, 2, 1, 3, 4}), {Expr(d.images), Expr(d.channels), Expr(d.size), Expr(d.size)});
  }

  TuningJob convolution(std::string_view kind, const Drawn& d, Around around = Around::nothing) {
    auto graph = std::make_shared<Graph>();
    graph->name = "predict";
    Builder b(*graph, "around");
    Value* x = graph->add_input("x0", {DType::f32, {Expr(d.images), Expr(d.channels), Expr(d.size), Expr(d.size)}});
    const PoolOptions one{.kernel = {1, 1}, .strides = {1, 1}, .dilations = {1, 1}, .pads = {0, 0, 0, 0}};
    x = b.max_pool(x, one);
    // A choice may take in what stands around the convolution: all of it is timed.
    b.set_source(std::string(kTimedNode));
    if (around == Around::norms) x = norm(b, x, d.channels);
    if (around == Around::shuffle) x = shuffle(b, x, d);
    Value* weights = b.constant(numbers({d.features, d.channels / d.groups, d.kernel, d.kernel}));
    const std::int64_t pad = d.pad();
    Value* y = b.conv(x, weights, b.constant(numbers({d.features})),
                      {.strides = {d.stride, d.stride},
                       .dilations = {d.dilation, d.dilation},
                       .pads = {pad, pad, pad, pad},
                       .group = d.groups});
    y = around == Around::norms ? norm(b, y, d.features) : b.relu(y);
    b.set_source("around");
    graph->add_output("y", b.max_pool(y, one));
    return {fmt::format("{} conv {}x{}x{}x{} -> {}, {}x{}, stride {}, dilation {}, groups {}", kind, d.images, d.channels,
                        d.size, d.size, d.features, d.kernel, d.kernel, d.stride, d.dilation, d.groups),
            graph};
  }

  TuningJob batched_product() {
    std::int64_t batch = one_of({1, 4, 12, 16, 48}), rows = between(1, 200), inner = one_of({16, 32, 64, 80, 96, 197, 256}),
                 columns = between(8, 260);
    while (batch * rows * inner * columns > kSweepMultiplications) batch = (batch + 1) / 2;
    const bool turned = between(0, 1) == 1;
    auto graph = std::make_shared<Graph>();
    graph->name = "predict";
    Builder b(*graph, std::string(kTimedNode));
    Value* left = graph->add_input("x0", {DType::f32, {Expr(batch), Expr(rows), Expr(inner)}});
    Value* right =
        graph->add_input("x1", {DType::f32, {Expr(batch), Expr(turned ? columns : inner), Expr(turned ? inner : columns)}});
    graph->add_output("y", b.matmul(left, right, false, turned));
    return {fmt::format("batched product {} x {}x{}x{}{}", batch, rows, inner, columns, turned ? ", right transposed" : ""),
            graph};
  }

  std::mt19937 random_;
};

}  // namespace

std::vector<TuningJob> sweep_jobs(int count, std::uint32_t seed) {
  Draw draw(seed);
  std::vector<TuningJob> jobs;
  for (int i = 0; i < count; ++i) jobs.push_back(draw.job(i));
  return jobs;
}

std::vector<TuningJob> calibration_jobs(int count, std::uint32_t seed) {
  Draw draw(seed);
  std::vector<TuningJob> jobs;
  for (int i = 0; i < count; ++i) jobs.push_back(i % 2 == 0 ? draw.job(i / 2) : draw.large(i / 2));
  return jobs;
}

}  // namespace oclc
