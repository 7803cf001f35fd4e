// One random valid use of an ONNX operator in the making.
#pragma once
#include <oclc_onnx.pb.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/tensor.h"
#include "frontends/onnx/model/tensors.h"

namespace oclc::fuzz {

using onnx::onnx_type;

using Dims = std::vector<std::int64_t>;

// The same seed gives the same numbers everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567) { next(); }
  std::uint64_t next();
  std::int64_t integer(std::int64_t low, std::int64_t high);  // both included
  double real(double low, double high);
  bool chance(double probability) { return real(0, 1) < probability; }
  template <class Container>
  auto pick(const Container& from) {
    return *(std::begin(from) + integer(0, static_cast<std::int64_t>(std::size(from)) - 1));
  }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return *(from.begin() + integer(0, static_cast<std::int64_t>(from.size()) - 1));
  }

 private:
  std::uint64_t state_;
};

// How many types any() has, and how many more stored() has.
constexpr int kUsualTypes = 13, kNarrowTypes = 7;

// Which numbers an operand holds.
struct Range {
  double low = -2, high = 2;
  bool strict = false;  // the operator takes no others: what other nodes computed must be looked at
  bool odd = false;     // infinities, NaN and negative zero may be among them
};

// What an operator does to rounding errors.
enum class Effect {
  moves,    // results are operands' elements
  ring,     // sums, products: exact as long as numbers are small integers
  decides,  // jumps: operands must be exact, and then the results are
  smooth
};

struct Operand {
  std::string name;  // empty: left out
  HostTensor value;
  bool known = false;  // an initializer
  bool exact = true;
};

// Where operands may come from beside new inputs: the values of a graph.
class Pool {
 public:
  virtual ~Pool() = default;
  virtual std::optional<Operand> take(DType dtype, const Dims& shape, const Range& range, bool exact) = 0;
  virtual std::optional<DType> type(const std::vector<DType>& among) = 0;
  virtual std::optional<Dims> shape(std::size_t least_rank, std::size_t most_rank) = 0;
};

class Draft {
 public:
  Draft(Random& random, std::int64_t version, std::string_view op, std::string_view spec_variant, std::string name_prefix,
        Pool* values)
      : r(random), opset(version), variant(spec_variant), prefix_(std::move(name_prefix)), pool_(values) {
    node.set_op_type(std::string(op));
  }

  Random& r;
  const std::int64_t opset;
  const std::string_view variant;
  oclc_onnx::NodeProto node;
  std::vector<Operand> operands;
  int outputs = 1;
  Effect effect = Effect::smooth;
  double tolerance = 1;  // in multiples of what is usual for the type
  double scale = 0;      // of the numbers that are summed up to the result, if that may be far smaller
  bool symbolic = true;  // dimensions may be symbols
  int in_turn = -1;      // from 0 on: types are taken in turn instead of by chance, this one first

  // Choices.
  DType type(const std::vector<DType>& among);
  DType floats() { return type({DType::f32, DType::f32, DType::f32, DType::f64, DType::f16, DType::bf16}); }
  DType numbers();  // floats and integers
  DType any();      // and bool
  DType stored();   // and what only conversions compute with, as far as the opset moves it
  DType index_type() { return r.pick({DType::i64, DType::i64, DType::i32}); }
  std::int64_t size();
  Dims shape(std::size_t least_rank = 0, std::size_t most_rank = 4);
  // A shape that broadcasts to `to`.
  Dims broadcast(const Dims& to);
  // A position among `rank` axes; as the attribute or operand says it, perhaps counted from the end.
  std::int64_t axis(std::size_t rank) { return r.integer(0, static_cast<std::int64_t>(rank) - 1); }
  std::int64_t spelled(std::int64_t axis, std::size_t rank) {
    return r.chance(0.4) ? axis - static_cast<std::int64_t>(rank) : axis;
  }
  // Some of `rank` axes in any order, each once.
  Dims some_axes(std::size_t rank, std::size_t least = 0);

  // Operands, in order.
  const HostTensor& input(DType dtype, const Dims& shape, const Range& range = {});
  const HostTensor& indices(DType dtype, const Dims& shape, std::int64_t size, bool negative = true);
  void known(HostTensor value);  // an initializer
  void known_ints(const Dims& values) { known(HostTensor::from_ints(values)); }
  void known_int(std::int64_t value);
  void none() { operands.emplace_back(); }

  // Attributes.
  void set(std::string_view name, std::int64_t value);
  void set(std::string_view name, int value) { set(name, static_cast<std::int64_t>(value)); }
  void set(std::string_view name, bool value) { set(name, std::int64_t{value}); }
  void set(std::string_view name, double value);
  void set(std::string_view name, const char* value) { set(name, std::string(value)); }
  void set(std::string_view name, const std::string& value);
  void set(std::string_view name, const Dims& values);
  void set(std::string_view name, const HostTensor& value);

  std::string output_name(int i) const { return prefix_ + "y" + std::to_string(i); }
  // Names of operands and outputs in the node.
  void finish();

 private:
  oclc_onnx::AttributeProto& attribute(std::string_view name, oclc_onnx::AttributeProto::AttributeType type);

  std::string prefix_;
  Pool* pool_;
};

HostTensor random_tensor(Random& r, DType dtype, const Dims& shape, const Range& range);
oclc_onnx::TensorProto tensor_proto(const HostTensor& value, const std::string& name);

}  // namespace oclc::fuzz
