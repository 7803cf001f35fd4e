#include "frontends/onnx/input_elements.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <charconv>

#include "frontends/onnx/fail.h"
#include "frontends/onnx/model/tensors.h"

namespace oclc::onnx {
namespace {

constexpr std::int64_t kLongestSequence = 4096;

}  // namespace

using oclc_onnx::TensorShapeProto;
using oclc_onnx::ValueInfoProto;

std::string where_of(const std::string& input) { return fmt::format("input '{}'", printable(input)); }

bool is_open(const TensorShapeProto::Dimension& dim) { return !dim.has_dim_value() || dim.dim_value() == -1; }

HostTensor value_of_text(const ValueInfoProto& input, const std::vector<std::string>& numbers) {
  const auto& type = input.type().tensor_type();
  const DType dtype = element_type(type.elem_type(), where_of(input.name()));
  if (!is_float(dtype) && !is_integer(dtype) && dtype != DType::boolean)
    fail(where_of(input.name()) + " of numbers, whose value can be given", std::string(name_of(dtype)), {}, ExitCode::usage);
  const auto count = static_cast<std::int64_t>(numbers.size());
  std::vector<std::int64_t> shape;
  for (const auto& dim : type.shape().dim()) {
    if (is_open(dim) && type.shape().dim_size() > 1)
      fail(where_of(input.name()) + " of known size, whose value can be given", "one of open size",
           "give it with --shape or --dim", ExitCode::usage);
    shape.push_back(is_open(dim) ? count : dim.dim_value());
  }
  HostTensor value(dtype, shape);
  if (count != 1 && count != value.elements())
    fail(fmt::format("1 or {} numbers as the value of {}", value.elements(), where_of(input.name())), std::to_string(count), {},
         ExitCode::usage);
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    const std::string& text = numbers[static_cast<std::size_t>(count == 1 ? 0 : i)];
    const char* end = text.data() + text.size();
    double real = 0;
    std::int64_t whole = 0;
    const bool known = text == "true" || text == "false";
    if (known) whole = text == "true" ? 1 : 0;
    const auto [at, error] =
        is_float(dtype) ? std::from_chars(text.data(), end, real) : std::from_chars(text.data(), end, whole);
    if (!(known && !is_float(dtype)) && (error != std::errc() || at != end))
      fail(fmt::format("a number of {} in the value of {}", name_of(dtype), where_of(input.name())),
           fmt::format("'{}'", printable(text)), {}, ExitCode::usage);
    if (is_float(dtype)) {
      value.set(i, real);
    } else {
      value.set_int(i, whole);
    }
  }
  return value;
}

namespace {

// Keys and values of a map, vectors of one length.
std::vector<ValueInfoProto> entries_of_map(const ValueInfoProto& input, const oclc_onnx::TypeProto::Map& map,
                                           Inputs::Sequence& sequence) {
  sequence.count = 2;
  std::vector<ValueInfoProto> out(2);
  out[0].set_name(input.name() + ".keys");
  out[0].mutable_type()->mutable_tensor_type()->set_elem_type(map.key_type());
  out[1].set_name(input.name() + ".values");
  out[1].mutable_type()->mutable_tensor_type()->set_elem_type(map.value_type().tensor_type().elem_type());
  for (ValueInfoProto& entry : out)
    entry.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param(input.name() + "_entries");
  return out;
}

}  // namespace

std::vector<ValueInfoProto> elements_of(const ValueInfoProto& input, const ImportOptions& options, Inputs::Sequence& sequence) {
  const oclc_onnx::TypeProto* type = &input.type();
  const auto given = options.lengths.find(input.name());
  const bool optional = type->has_optional_type();
  if (optional) type = &type->optional_type().elem_type();
  if (type->has_map_type()) {
    if (given != options.lengths.end())
      fail(fmt::format("no length of {}, which is a map", where_of(input.name())), std::to_string(given->second), {},
           ExitCode::usage);
    return entries_of_map(input, type->map_type(), sequence);
  }
  sequence.none = optional && given != options.lengths.end() && given->second == -1;
  if (sequence.none) return {};
  const bool tensor = type->has_tensor_type();
  if (tensor && given != options.lengths.end()) {
    fail(fmt::format("no length of {}, which holds a tensor, or -1 for none", where_of(input.name())),
         std::to_string(given->second), {}, ExitCode::usage);
  }
  if (!tensor && given == options.lengths.end()) {
    fail(fmt::format("{} of a length known when compiling", where_of(input.name())), "a sequence",
         fmt::format("give it with --length {}=N", printable(input.name())), ExitCode::unsupported);
  }
  if (!tensor && (given->second < 0 || given->second > kLongestSequence)) {
    fail(fmt::format("a length from 0 to {} of {}", kLongestSequence, where_of(input.name())), std::to_string(given->second),
         {}, ExitCode::usage);
  }
  const std::int64_t count = tensor ? 1 : given->second;
  sequence.count = static_cast<std::size_t>(count);
  std::vector<ValueInfoProto> out;
  for (std::int64_t i = 0; i < count; ++i) {
    ValueInfoProto& element = out.emplace_back();
    element.set_name(tensor ? input.name() : fmt::format("{}.{}", input.name(), i));
    *element.mutable_type() = tensor ? *type : type->sequence_type().elem_type();
    // Elements may differ in shape: what is given goes before what is declared for all of them.
    const auto shape = options.shapes.find(element.name());
    if (tensor || shape == options.shapes.end()) continue;
    auto& declared = *element.mutable_type()->mutable_tensor_type()->mutable_shape();
    declared.clear_dim();
    for (const std::int64_t d : shape->second) declared.add_dim()->set_dim_value(d);
  }
  return out;
}

}  // namespace oclc::onnx
