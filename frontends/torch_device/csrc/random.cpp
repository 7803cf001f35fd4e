// Random numbers by a kernel of the device: number i of a draw is a function of the generator's seed and place alone, so that
// results repeat on every device.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/Resize.h>
#include <c10/util/MathConstants.h>
#include <torch/library.h>

#include <cmath>

#include "frontends/torch_device/csrc/compiled.h"
#include "frontends/torch_device/csrc/copies.h"
#include "frontends/torch_device/csrc/generator.h"
#include "frontends/torch_device/csrc/operators.h"

namespace oclc::torch_device {
namespace {

// Philox 4x32-10 (Salmon et al., 2011). Item i makes elements 4 i to 4 i + 3. MODE 0: uniform in [a, b); 1: normal with mean a
// and deviation b; 2: 1 with probability a; 3: exponential with rate a. For p: its own probability for each element.
constexpr const char* kRandom = R"(
uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; ++round) {
    const uint low0 = counter.x * 0xD2511F53u, high0 = mul_hi(counter.x, 0xD2511F53u);
    const uint low1 = counter.z * 0xCD9E8D57u, high1 = mul_hi(counter.z, 0xCD9E8D57u);
    counter = (uint4)(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}
float unit(uint bits) { return (float)(bits >> 8) * 0x1p-24f; }
__kernel void random_numbers(__global float* to, __global const float* p, ulong count, uint2 seed, ulong offset, float a, float b) {
  const ulong i = get_global_id(0);
  if (4 * i >= count) return;
  const ulong at = offset + i;
  const uint4 bits = philox((uint4)((uint)at, (uint)(at >> 32), 0, 0), seed);
  float4 u = (float4)(unit(bits.x), unit(bits.y), unit(bits.z), unit(bits.w));
  float v[4];
#if MODE == 1
  const float r0 = sqrt(-2.0f * log(1.0f - u.x)), r1 = sqrt(-2.0f * log(1.0f - u.z));
  v[0] = a + b * (r0 * cospi(2.0f * u.y));
  v[1] = a + b * (r0 * sinpi(2.0f * u.y));
  v[2] = a + b * (r1 * cospi(2.0f * u.w));
  v[3] = a + b * (r1 * sinpi(2.0f * u.w));
#elif MODE == 3
  u = -log(1.0f - u) / a;
  v[0] = u.x, v[1] = u.y, v[2] = u.z, v[3] = u.w;
#else
  v[0] = u.x, v[1] = u.y, v[2] = u.z, v[3] = u.w;
#endif
  for (int k = 0; k < 4 && 4 * i + k < count; ++k) {
#if MODE == 0
    const float x = a + v[k] * (b - a);
    to[4 * i + k] = x < b || a == b ? x : a;
#elif MODE == 2
    to[4 * i + k] = v[k] < (p ? p[4 * i + k] : a) ? 1.0f : 0.0f;
#else
    to[4 * i + k] = v[k];
#endif
  }
}
)";

enum class Mode { kUniform, kNormal, kBernoulli, kExponential };

// Fills `self`, of any floating-point or, with Bernoulli, any type. `p`: contiguous float32, or undefined.
at::Tensor& fill_random(at::Tensor& self, Mode mode, double a, double b, const std::optional<at::Generator>& generator,
                        const at::Tensor& p = {}) {
  if (self.numel() == 0) return self;
  const bool direct = self.scalar_type() == at::kFloat && self.is_contiguous();
  at::Tensor to =
      direct ? self : at::empty(self.sizes(), self.options().dtype(at::kFloat).memory_format(at::MemoryFormat::Contiguous));
  Device& d = device(self.device().index());
  const auto count = static_cast<cl_ulong>(to.numel());
  const Draw begin = draw(generator, d.index, (count + 3) / 4);
  // A part of a buffer that does not begin at its start is a buffer of its own for the kernel: its numbers are made elsewhere.
  at::Tensor numbers = place_of(to).offset == 0 ? to : at::empty(to.sizes(), to.options());
  const at::Tensor chances = p.defined() && place_of(p).offset != 0 ? p.clone() : p;
  {
    const std::lock_guard lock(d.mutex);
    cl_kernel kernel = kernel_of(d, kRandom, "random_numbers", "-DMODE=" + std::to_string(static_cast<int>(mode)));
    const Place place = place_of(numbers);
    const cl_mem probability = chances.defined() ? place_of(chances).memory : nullptr;
    const cl_uint2 seed{{static_cast<cl_uint>(begin.seed), static_cast<cl_uint>(begin.seed >> 32)}};
    const auto first = static_cast<float>(a), second = static_cast<float>(b);
    const std::pair<std::size_t, const void*> arguments[] = {{sizeof(cl_mem), &place.memory},
                                                             {sizeof(cl_mem), probability ? &probability : nullptr},
                                                             {sizeof count, &count},
                                                             {sizeof seed, &seed},
                                                             {sizeof begin.offset, &begin.offset},
                                                             {sizeof first, &first},
                                                             {sizeof second, &second}};
    for (cl_uint i = 0; i < std::size(arguments); ++i)
      check(cl::clSetKernelArg(kernel, i, arguments[i].first, arguments[i].second), "setting an argument of random numbers");
    launch(d, kernel, (count + 3) / 4);
  }
  if (!numbers.is_same(self)) self.copy_(numbers);
  return self;
}

at::Tensor& uniform(at::Tensor& self, double from, double to, std::optional<at::Generator> generator) {
  TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
  return fill_random(self, Mode::kUniform, from, to, generator);
}

at::Tensor& normal(at::Tensor& self, double mean, double deviation, std::optional<at::Generator> generator) {
  TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  return fill_random(self, Mode::kNormal, mean, deviation, generator);
}

at::Tensor& exponential(at::Tensor& self, double rate, std::optional<at::Generator> generator) {
  TORCH_CHECK(rate > 0, "exponential_ expects lambda > 0.0, but found lambda=", rate);
  return fill_random(self, Mode::kExponential, rate, 0, generator);
}

at::Tensor& bernoulli(at::Tensor& self, double p, std::optional<at::Generator> generator) {
  TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
  return fill_random(self, Mode::kBernoulli, p, 0, generator);
}

at::Tensor& bernoulli_tensor(at::Tensor& self, const at::Tensor& p, std::optional<at::Generator> generator) {
  const at::Tensor chances = p.to(self.device()).to(at::kFloat).expand_as(self).contiguous();
  return fill_random(self, Mode::kBernoulli, 0, 0, generator, chances);
}

at::Tensor& bernoulli_out(const at::Tensor& p, std::optional<at::Generator> generator, at::Tensor& out) {
  out.resize_(p.sizes());
  return bernoulli_tensor(out, p, std::move(generator));
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> train) {
  if (!train.value_or(true) || p == 0) return {input.clone(), at::ones(input.sizes(), input.options().dtype(at::kBool))};
  at::Tensor mask = at::empty(input.sizes(), input.options().dtype(at::kBool));
  bernoulli(mask, 1 - p, std::nullopt);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return {input * mask * scale, mask};
}

at::Tensor normal_around(const at::Tensor& mean, const at::Tensor& deviation, std::optional<at::Generator> generator) {
  TORCH_CHECK(deviation.numel() == 0 || deviation.ge(0).all().item().toBool(), "normal expects all elements of std >= 0.0");
  const at::Tensor sum = mean + deviation;  // of the common type and size
  at::Tensor numbers = at::empty(sum.sizes(), sum.options());
  return normal(numbers, 0, 1, generator).mul_(deviation).add_(mean);
}

at::Tensor normal_around_number(double mean, const at::Tensor& deviation, std::optional<at::Generator> generator) {
  return normal_around(at::full({}, mean, deviation.options()), deviation, std::move(generator));
}

at::Tensor normal_of_deviation(const at::Tensor& mean, double deviation, std::optional<at::Generator> generator) {
  TORCH_CHECK(deviation >= 0, "normal expects std >= 0.0, but found std ", deviation);
  at::Tensor numbers = at::empty(mean.sizes(), mean.options());
  return normal(numbers, 0, deviation, generator).add_(mean);
}

at::Tensor& log_normal(at::Tensor& self, double mean, double deviation, std::optional<at::Generator> generator) {
  TORCH_CHECK(deviation > 0, "log_normal_ expects std > 0.0, but found std=", deviation);
  return normal(self, mean, deviation, generator).exp_();
}

at::Tensor& cauchy(at::Tensor& self, double median, double sigma, std::optional<at::Generator> generator) {
  TORCH_CHECK(sigma > 0, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  at::Tensor numbers = at::empty(self.sizes(), self.options().dtype(at::kFloat));
  self.copy_(uniform(numbers, -0.5, 0.5, generator).mul_(c10::pi<double>).tan_().mul_(sigma).add_(median));
  return self;
}

// How often one must draw until the first success.
at::Tensor& geometric(at::Tensor& self, double p, std::optional<at::Generator> generator) {
  TORCH_CHECK(0 < p && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
  at::Tensor numbers = at::empty(self.sizes(), self.options().dtype(at::kFloat));
  self.copy_(exponential(numbers, -std::log1p(-p), generator).ceil_().clamp_min_(1));
  return self;
}

// Without replacement: the largest of p / e with e drawn from the exponential distribution (Efraimidis and Spirakis, 2006).
// With it: where uniform numbers fall among the sums of p.
at::Tensor multinomial(const at::Tensor& p, c10::SymInt samples, bool replacement, std::optional<at::Generator> generator) {
  const std::int64_t count = samples.expect_int();
  TORCH_CHECK(p.dim() == 1 || p.dim() == 2, "prob_dist must be 1 or 2 dim");
  TORCH_CHECK(at::isFloatingType(p.scalar_type()),
              "multinomial only supports floating-point dtypes for input, got: ", p.scalar_type());
  TORCH_CHECK(count > 0, "cannot sample n_sample <= 0 samples");
  TORCH_CHECK(replacement || count <= p.size(-1), "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  const at::Tensor chances = p.to(at::kFloat);
  const at::Tensor sums = chances.cumsum(-1);
  TORCH_CHECK(at::isfinite(chances).all().item().toBool() && chances.ge(0).all().item().toBool(),
              "probability tensor contains either `inf`, `nan` or element < 0");
  const at::Tensor all = sums.narrow(-1, p.size(-1) - 1, 1);
  TORCH_CHECK(all.gt(0).all().item().toBool(), "invalid multinomial distribution (sum of probabilities <= 0)");
  if (replacement) {
    std::vector<std::int64_t> shape = p.sizes().vec();
    shape.back() = count;
    at::Tensor drawn = at::empty(shape, chances.options());
    return at::searchsorted(sums, uniform(drawn, 0, 1, generator).mul_(all), false, true).clamp_max_(p.size(-1) - 1);
  }
  at::Tensor drawn = at::empty(p.sizes(), chances.options());
  const at::Tensor races = chances.div(exponential(drawn, 1, generator).clamp_min_(1e-30));
  return count == 1 ? races.argmax(-1, true) : std::get<1>(races.topk(count, -1));
}

at::Tensor& multinomial_out(const at::Tensor& p, c10::SymInt samples, bool replacement, std::optional<at::Generator> generator,
                            at::Tensor& out) {
  const at::Tensor found = multinomial(p, std::move(samples), replacement, std::move(generator));
  at::native::resize_output(out, found.sizes());
  return out.copy_(found);
}

// Integers in [from, from + range). A range of up to 2^24, which a float holds, is drawn on the device; a wider one by the
// CPU's numbers, from a seed that the device's generator gives.
at::Tensor& integers(at::Tensor& self, std::int64_t from, std::uint64_t range, const std::optional<at::Generator>& generator) {
  if (self.numel() == 0) return self;
  TORCH_CHECK(range > 0, "random_ expects 'from' to be less than 'to'");
  if (range <= (1u << 24)) {
    at::Tensor numbers = at::empty(self.sizes(), self.options().dtype(at::kFloat));
    uniform(numbers, 0, static_cast<double>(range), generator);
    self.copy_(numbers.floor_().to(at::kLong).add_(from));
    return self;
  }
  const Draw begin = draw(generator, self.device().index(), 1);
  at::Generator host = at::detail::createCPUGenerator(begin.seed ^ (begin.offset * 0x9E3779B97F4A7C15u));
  at::Tensor numbers = at::empty(self.sizes(), self.options().device(at::kCPU));
  if (range == 0xFFFFFFFFFFFFFFFFu)
    numbers.random_(from, std::nullopt, host);
  else
    numbers.random_(from, from + static_cast<std::int64_t>(range), host);
  self.copy_(numbers);
  return self;
}

at::Tensor& random_between(at::Tensor& self, std::int64_t from, std::optional<std::int64_t> to,
                           std::optional<at::Generator> generator) {
  if (!to) return integers(self, from, 0xFFFFFFFFFFFFFFFFu, generator);
  TORCH_CHECK(from < *to, "random_ expects 'from' to be less than 'to', but got from=", from, " >= to=", *to);
  return integers(self, from, static_cast<std::uint64_t>(*to) - static_cast<std::uint64_t>(from), generator);
}

at::Tensor& random_below(at::Tensor& self, std::int64_t to, std::optional<at::Generator> generator) {
  return random_between(self, 0, to, std::move(generator));
}

at::Tensor& random_any(at::Tensor& self, std::optional<at::Generator> generator) {
  const at::ScalarType type = self.scalar_type();
  const std::uint64_t range = type == at::kBool       ? 2
                              : type == at::kByte     ? 256
                              : type == at::kChar     ? 128
                              : type == at::kShort    ? 32768
                              : type == at::kBFloat16 ? 257
                              : type == at::kHalf     ? 2049
                              : type == at::kFloat    ? (1u << 24)
                              : type == at::kInt      ? (1ull << 31)
                              : type == at::kDouble   ? (1ull << 53)
                                                      : 0x7FFFFFFFFFFFFFFFull;
  return integers(self, 0, range, generator);
}

// The order of random numbers.
at::Tensor& randperm(c10::SymInt n, std::optional<at::Generator> generator, at::Tensor& out) {
  const std::int64_t count = n.expect_int();
  TORCH_CHECK(count >= 0, "n must be non-negative, got", count);
  const Draw begin = draw(generator, out.device().index(), 1);
  at::Generator host = at::detail::createCPUGenerator(begin.seed ^ (begin.offset * 0x9E3779B97F4A7C15u));
  out.resize_({count});
  out.copy_(at::randperm(count, host, at::TensorOptions().dtype(out.scalar_type())));
  return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("uniform_", uniform);
  m.impl("normal_", normal);
  m.impl("exponential_", exponential);
  m.impl("normal.Tensor_Tensor", normal_around);
  m.impl("normal.float_Tensor", normal_around_number);
  m.impl("normal.Tensor_float", normal_of_deviation);
  m.impl("log_normal_", log_normal);
  m.impl("cauchy_", cauchy);
  m.impl("geometric_", geometric);
  m.impl("multinomial", multinomial);
  m.impl("multinomial.out", multinomial_out);
  m.impl("bernoulli_.float", bernoulli);
  m.impl("bernoulli_.Tensor", bernoulli_tensor);
  m.impl("bernoulli.out", bernoulli_out);
  m.impl("native_dropout", native_dropout);
  m.impl("random_", random_any);
  m.impl("random_.to", random_below);
  m.impl("random_.from", random_between);
  m.impl("randperm.generator_out", randperm);
}

}  // namespace
}  // namespace oclc::torch_device
