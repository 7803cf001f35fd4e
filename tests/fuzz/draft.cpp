#include "tests/fuzz/draft.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace oclc::fuzz {

using oclc_onnx::AttributeProto;

std::uint64_t Random::next() {  // splitmix64
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::int64_t Random::integer(std::int64_t low, std::int64_t high) {
  if (high <= low) return low;
  return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
}

double Random::real(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }

HostTensor random_tensor(Random& r, DType dtype, const Dims& shape, const Range& range) {
  HostTensor tensor(dtype, shape);
  const double low = is_signed(dtype) || dtype == DType::boolean ? range.low : std::max(range.low, 0.0);
  const double high = std::max(range.high, low);
  // Small integers meet each other, zero and one more often than numbers between them do.
  const bool whole = !is_float(dtype) || r.chance(0.3);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    if (dtype == DType::boolean) {
      tensor.set_int(i, r.chance(0.5) ? 1 : 0);
    } else if (range.odd && is_float(dtype) && r.chance(0.05)) {
      constexpr double kInf = std::numeric_limits<double>::infinity();
      tensor.set(i, r.pick({kInf, -kInf, std::nan(""), -0.0, 0.0}));
    } else if (whole && std::floor(high) >= std::ceil(low)) {
      const auto value = r.integer(static_cast<std::int64_t>(std::ceil(low)), static_cast<std::int64_t>(std::floor(high)));
      is_float(dtype) ? tensor.set(i, static_cast<double>(value)) : tensor.set_int(i, value);
    } else {
      tensor.set(i, r.real(low, high));
    }
  }
  return tensor;
}

oclc_onnx::TensorProto tensor_proto(const HostTensor& value, const std::string& name) {
  oclc_onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(onnx_type(value.dtype()));
  for (const std::int64_t dim : value.shape()) proto.add_dims(dim);
  proto.set_raw_data(onnx::raw_data(value));
  return proto;
}

DType Draft::type(const std::vector<DType>& among) {
  if (in_turn >= 0) return among[static_cast<std::size_t>(in_turn) % among.size()];
  if (pool_ && r.chance(0.8)) {
    if (const auto found = pool_->type(among)) return *found;
  }
  return r.pick(among);
}

DType Draft::numbers() {
  if (in_turn < 0 && r.chance(0.55)) return floats();
  static const std::vector<DType> kIntegers{DType::i8, DType::i16, DType::i32, DType::i64,
                                            DType::u8, DType::u16, DType::u32, DType::u64};
  if (in_turn < 0) return type(kIntegers);
  return type({DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8,
               DType::u16, DType::u32, DType::u64});
}

DType Draft::any() { return (in_turn >= 0 ? in_turn == kUsualTypes - 1 : r.chance(0.1)) ? DType::boolean : numbers(); }

DType Draft::stored() {
  static const std::vector<DType> kNarrow{DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz,
                                          DType::i4,       DType::u4,         DType::f4e2m1};
  const std::size_t known = opset >= 23 ? 7 : opset >= 21 ? 6 : opset >= 19 ? 4 : 0;
  if (in_turn >= kUsualTypes) return kNarrow[static_cast<std::size_t>(in_turn - kUsualTypes) % kNarrow.size()];
  if (in_turn >= 0 || known == 0 || pool_ || !r.chance(0.15)) return any();
  return kNarrow[static_cast<std::size_t>(r.integer(0, static_cast<std::int64_t>(known) - 1))];
}

std::int64_t Draft::size() {
  if (!pool_ && r.chance(0.02)) return 0;
  if (r.chance(0.15)) return 1;
  return r.chance(0.1) ? r.integer(8, 19) : r.integer(2, 7);
}

Dims Draft::shape(std::size_t least_rank, std::size_t most_rank) {
  if (pool_ && r.chance(0.7)) {
    if (const auto found = pool_->shape(least_rank, most_rank)) return *found;
  }
  Dims dims(static_cast<std::size_t>(r.integer(static_cast<std::int64_t>(least_rank), static_cast<std::int64_t>(most_rank))));
  for (std::int64_t& dim : dims) dim = size();
  return dims;
}

Dims Draft::broadcast(const Dims& to) {
  if (r.chance(0.4)) return to;
  Dims dims(to.begin() + (r.chance(0.5) ? r.integer(0, static_cast<std::int64_t>(to.size())) : 0), to.end());
  for (std::int64_t& dim : dims) {
    if (r.chance(0.3)) dim = 1;
  }
  return dims;
}

Dims Draft::some_axes(std::size_t rank, std::size_t least) {
  Dims all(rank);
  std::iota(all.begin(), all.end(), 0);
  for (std::size_t i = rank; i > 1; --i)
    std::swap(all[i - 1], all[static_cast<std::size_t>(r.integer(0, static_cast<std::int64_t>(i) - 1))]);
  all.resize(static_cast<std::size_t>(r.integer(static_cast<std::int64_t>(least), static_cast<std::int64_t>(rank))));
  return all;
}

const HostTensor& Draft::input(DType dtype, const Dims& shape, const Range& range) {
  if (pool_ && r.chance(0.85)) {
    if (auto found = pool_->take(dtype, shape, range, effect == Effect::decides)) {
      operands.push_back(std::move(*found));
      return operands.back().value;
    }
  }
  Operand& operand = operands.emplace_back();
  operand.name = prefix_ + "x" + std::to_string(operands.size() - 1);
  operand.value = random_tensor(r, dtype, shape, pool_ ? Range{range.low, range.high, range.strict, false} : range);
  operand.known = r.chance(0.15);
  return operand.value;
}

const HostTensor& Draft::indices(DType dtype, const Dims& shape, std::int64_t size, bool negative) {
  const Effect before = effect;
  effect = Effect::decides;  // integers are exact anyway
  input(dtype, shape, {static_cast<double>(negative ? -size : 0), static_cast<double>(size - 1), true});
  effect = before;
  return operands.back().value;
}

void Draft::known(HostTensor value) {
  operands.push_back({prefix_ + "x" + std::to_string(operands.size()), std::move(value), true});
}

void Draft::known_int(std::int64_t value) {
  HostTensor tensor(DType::i64, {});
  tensor.set_int(0, value);
  known(std::move(tensor));
}

AttributeProto& Draft::attribute(std::string_view name, AttributeProto::AttributeType type) {
  AttributeProto& a = *node.add_attribute();
  a.set_name(std::string(name));
  a.set_type(type);
  return a;
}

void Draft::set(std::string_view name, std::int64_t value) { attribute(name, AttributeProto::INT).set_i(value); }
void Draft::set(std::string_view name, double value) {
  attribute(name, AttributeProto::FLOAT).set_f(static_cast<float>(value));
}
void Draft::set(std::string_view name, const std::string& value) { attribute(name, AttributeProto::STRING).set_s(value); }
void Draft::set(std::string_view name, const Dims& values) {
  AttributeProto& a = attribute(name, AttributeProto::INTS);
  for (const std::int64_t value : values) a.add_ints(value);
}
void Draft::set(std::string_view name, const HostTensor& value) {
  *attribute(name, AttributeProto::TENSOR).mutable_t() = tensor_proto(value, "");
}

void Draft::finish() {
  while (!operands.empty() && operands.back().name.empty()) operands.pop_back();
  for (const Operand& operand : operands) node.add_input(operand.name);
  for (int i = 0; i < outputs; ++i) node.add_output(output_name(i));
}

}  // namespace oclc::fuzz
