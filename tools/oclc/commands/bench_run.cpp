#include "tools/oclc/commands/bench_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

namespace oclc::tool {
namespace {

template <class T>
void fill(std::vector<std::byte>& bytes, std::mt19937& random, bool real) {
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const auto bits = static_cast<std::uint32_t>(random());
    const T value = real ? static_cast<T>(static_cast<double>(bits) / 2147483648.0 - 1) : static_cast<T>(bits >> 31);
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
}

void fill(oclc_dtype dtype, std::vector<std::byte>& bytes, std::mt19937& random) {
  if (dtype == OCLC_F32) return fill<float>(bytes, random, true);
  if (dtype == OCLC_F64) return fill<double>(bytes, random, true);
  if (dtype == OCLC_F16 || dtype == OCLC_BF16) return;  // zeros
  if (dtype == OCLC_STRING) {
    const char* text = "";
    for (std::size_t at = 0; at < bytes.size(); at += sizeof text) std::memcpy(bytes.data() + at, &text, sizeof text);
    return;
  }
  switch (oclc_dtype_bytes(dtype)) {
    case 1:
      return fill<std::uint8_t>(bytes, random, false);
    case 2:
      return fill<std::uint16_t>(bytes, random, false);
    case 4:
      return fill<std::uint32_t>(bytes, random, false);
    default:
      return fill<std::uint64_t>(bytes, random, false);
  }
}

template <class T>
double relative_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  double largest = 0, apart = 0;
  for (std::size_t at = 0; at + sizeof(T) <= b.size(); at += sizeof(T)) {
    T x, y;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    if (std::isnan(x) && std::isnan(y)) continue;
    const double d = x == y ? 0 : std::abs(static_cast<double>(x) - static_cast<double>(y));
    apart = d <= apart ? apart : d;  // keeps NaN
    if (std::isfinite(y)) largest = std::max(largest, std::abs(static_cast<double>(y)));
  }
  return apart == 0 ? 0 : apart / std::max(largest, 1e-30);
}

}  // namespace

BenchRun::BenchRun(const rt::Plan& plan, const rt::Context& context, const SymbolValues& dims, const std::string& entry)
    : session_(plan, context), entry_(plan.entry(entry)) {
  for (const auto& [name, value] : dims) session_.bind_dim(name, value);
  std::mt19937 random(1);
  for (const oclc_binding_info& info : plan.inputs(entry_)) fill(info.dtype, bind(OCLC_INPUT, info).bytes, random);
  for (const oclc_binding_info& info : plan.outputs(entry_))
    if (!info.open) bind(OCLC_OUTPUT, info);
}

BenchRun::Tensor& BenchRun::bind(oclc_direction direction, const oclc_binding_info& info) {
  const std::vector<std::int64_t> shape = session_.shape(entry_, direction, info.name);
  std::size_t bytes = oclc_dtype_bytes(info.dtype);
  for (const std::int64_t d : shape) bytes *= static_cast<std::size_t>(d);
  auto& list = direction == OCLC_INPUT ? inputs_ : outputs_;
  list.push_back(std::make_unique<Tensor>(Tensor{info.dtype, std::vector<std::byte>(bytes)}));
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  tensor.dtype = info.dtype;
  tensor.rank = static_cast<std::uint32_t>(shape.size());
  static constexpr std::int64_t kScalar = 0;
  tensor.shape = shape.empty() ? &kScalar : shape.data();
  tensor.host = list.back()->bytes.data();
  tensor.bytes = bytes;
  if (direction == OCLC_INPUT)
    session_.set_input(entry_, info.name, tensor);
  else
    session_.set_output(entry_, info.name, tensor);
  return *list.back();
}

double BenchRun::run_ms() {
  const auto begin = std::chrono::steady_clock::now();
  session_.run(entry_);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

double BenchRun::difference(const BenchRun& a, const BenchRun& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.outputs_.size(); ++i) {
    const Tensor &x = *a.outputs_[i], &y = *b.outputs_.at(i);
    double d = x.bytes == y.bytes ? 0 : 1;
    if (x.dtype == OCLC_F32) d = relative_difference<float>(x.bytes, y.bytes);
    if (x.dtype == OCLC_F64) d = relative_difference<double>(x.bytes, y.bytes);
    worst = d <= worst ? worst : d;
  }
  return worst;
}

double Times::at(double fraction) const {
  if (sorted_ms.empty()) return 0;
  const double place = fraction * static_cast<double>(sorted_ms.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted_ms.size() - 1);
  return sorted_ms[low] + (place - static_cast<double>(low)) * (sorted_ms[high] - sorted_ms[low]);
}

}  // namespace oclc::tool
