#include "frontends/onnx/model/tensors.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "frontends/onnx/fail.h"

namespace oclc::onnx {
namespace {

using oclc_onnx::TensorProto;

enum class Typed { none, float_data, int32_data, string_data, int64_data, double_data, uint64_data };

struct ElementType {
  std::int32_t number;
  std::string_view name;
  std::optional<DType> dtype;  // empty: not supported
  Typed typed = Typed::none;
};

// Numbers above 16 are newer than the message's own list.
constexpr ElementType kElementTypes[] = {
    {1, "FLOAT", DType::f32, Typed::float_data},
    {2, "UINT8", DType::u8, Typed::int32_data},
    {3, "INT8", DType::i8, Typed::int32_data},
    {4, "UINT16", DType::u16, Typed::int32_data},
    {5, "INT16", DType::i16, Typed::int32_data},
    {6, "INT32", DType::i32, Typed::int32_data},
    {7, "INT64", DType::i64, Typed::int64_data},
    {8, "STRING", DType::string, Typed::string_data},
    {9, "BOOL", DType::boolean, Typed::int32_data},
    {10, "FLOAT16", DType::f16, Typed::int32_data},
    {11, "DOUBLE", DType::f64, Typed::double_data},
    {12, "UINT32", DType::u32, Typed::uint64_data},
    {13, "UINT64", DType::u64, Typed::uint64_data},
    {14, "COMPLEX64", {}},
    {15, "COMPLEX128", {}},
    {16, "BFLOAT16", DType::bf16, Typed::int32_data},
    {17, "FLOAT8E4M3FN", DType::f8e4m3fn, Typed::int32_data},
    {18, "FLOAT8E4M3FNUZ", DType::f8e4m3fnuz, Typed::int32_data},
    {19, "FLOAT8E5M2", DType::f8e5m2, Typed::int32_data},
    {20, "FLOAT8E5M2FNUZ", DType::f8e5m2fnuz, Typed::int32_data},
    {21, "UINT4", DType::u4, Typed::int32_data},
    {22, "INT4", DType::i4, Typed::int32_data},
    {23, "FLOAT4E2M1", DType::f4e2m1, Typed::int32_data},
    {24, "FLOAT8E8M0", DType::f8e8m0, Typed::int32_data},
    {25, "UINT2", DType::u2, Typed::int32_data},
    {26, "INT2", DType::i2, Typed::int32_data},
    {27, "FLOAT6E2M3", {}},
    {28, "FLOAT6E3M2", {}},
};

const ElementType* find_type(std::int32_t number) {
  const auto* at = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                [&](const ElementType& t) { return t.number == number; });
  return at == std::end(kElementTypes) ? nullptr : at;
}

struct TypedField {
  Typed kind;
  std::string_view name;
  int count;
};

std::vector<TypedField> typed_fields(const TensorProto& t) {
  return {{Typed::float_data, "float_data", t.float_data_size()},    {Typed::int32_data, "int32_data", t.int32_data_size()},
          {Typed::int64_data, "int64_data", t.int64_data_size()},    {Typed::double_data, "double_data", t.double_data_size()},
          {Typed::uint64_data, "uint64_data", t.uint64_data_size()}, {Typed::string_data, "string_data", t.string_data_size()}};
}

std::string_view field_name(Typed kind) {
  switch (kind) {
    case Typed::float_data:
      return "float_data";
    case Typed::int32_data:
      return "int32_data";
    case Typed::string_data:
      return "string_data";
    case Typed::int64_data:
      return "int64_data";
    case Typed::double_data:
      return "double_data";
    case Typed::uint64_data:
      return "uint64_data";
    case Typed::none:
      break;
  }
  return "raw_data";
}

// Elements of the checked dimensions.
std::int64_t checked_elements(const TensorProto& tensor, const std::string& where, const ImportLimits& limits) {
  if (tensor.dims_size() > limits.rank)
    fail(fmt::format("{} of rank at most {}", where, limits.rank), fmt::format("rank {}", tensor.dims_size()));
  std::int64_t product = 1;  // without zeros, so that strides fit too
  bool empty = false;
  for (const std::int64_t dim : tensor.dims()) {
    if (dim < 0) fail(fmt::format("{} with dimensions of at least 0", where), std::to_string(dim));
    if (dim > limits.dim) fail(fmt::format("{} with dimensions of at most {}", where, limits.dim), std::to_string(dim));
    if (dim == 0) {
      empty = true;
    } else if (product > limits.elements / dim) {
      fail(fmt::format("{} of at most {} elements", where, limits.elements),
           fmt::format("[{}]", fmt::join(tensor.dims(), ", ")));
    } else {
      product *= dim;
    }
  }
  return empty ? 0 : product;
}

// int32_data carries narrower types; a value that does not fit would be misread.
void check_narrow(const TensorProto& tensor, DType dtype, const std::string& where) {
  std::int32_t lo = std::numeric_limits<std::int32_t>::min(), hi = std::numeric_limits<std::int32_t>::max();
  switch (dtype) {
    case DType::i8:
      lo = -128, hi = 127;
      break;
    case DType::i16:
      lo = -32768, hi = 32767;
      break;
    case DType::u8:
      lo = 0, hi = 255;
      break;
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      lo = 0, hi = 65535;
      break;
    default:
      if (!is_narrow(dtype)) return;
      lo = 0, hi = 255;
  }
  for (const std::int32_t value : tensor.int32_data()) {
    if (value < lo || value > hi)
      fail(fmt::format("{}: values of {} to {} in int32_data", where, lo, hi), std::to_string(value));
  }
}

// Texts end with a NUL where the runtime takes and gives them.
void check_texts(const TensorProto& tensor, const std::string& where) {
  for (const std::string& text : tensor.string_data()) {
    if (text.find('\0') != std::string::npos)
      fail(fmt::format("{} of texts without NUL", where), fmt::format("'{}'", printable(text)), {}, ExitCode::unsupported);
  }
}

// Two or four elements in a byte of the file, the first one in its low bits.
bool is_packed(DType dtype) { return width_bits(dtype) < 8; }

std::int64_t packed_bytes(DType dtype, std::int64_t elements) { return (elements * width_bits(dtype) + 7) / 8; }

HostTensor unpacked(DType dtype, const std::vector<std::int64_t>& shape, const std::byte* packed) {
  HostTensor out(dtype, shape);
  const int width = width_bits(dtype), each = 8 / width, top = 1 << (width - 1);
  const bool sign = dtype == DType::i4 || dtype == DType::i2;
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    const int part = std::to_integer<int>(packed[i / each]) >> (i % each * width) & ((1 << width) - 1);
    // The bits of a float; an integer's value, with its sign.
    out.mutable_data()[i] = static_cast<std::byte>(sign ? (part ^ top) - top : part);
  }
  return out;
}

std::string shape_text(const TensorProto& tensor) { return fmt::format("[{}]", fmt::join(tensor.dims(), ", ")); }

}  // namespace

std::string element_type_name(std::int32_t onnx_type) {
  const ElementType* type = find_type(onnx_type);
  return type ? std::string(type->name) : fmt::format("element type {}", onnx_type);
}

std::int32_t onnx_type(DType dtype) {
  const auto* at =
      std::find_if(std::begin(kElementTypes), std::end(kElementTypes), [&](const ElementType& t) { return t.dtype == dtype; });
  OCLC_CHECK(at != std::end(kElementTypes), "every element type has an ONNX number");
  return at->number;
}

std::string raw_data(const HostTensor& tensor) {
  if (!is_packed(tensor.dtype())) return std::string(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  const int width = width_bits(tensor.dtype()), each = 8 / width;
  std::string packed(static_cast<std::size_t>(packed_bytes(tensor.dtype(), tensor.elements())), '\0');
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    char& byte = packed[static_cast<std::size_t>(i / each)];
    byte = static_cast<char>(byte | (std::to_integer<int>(tensor.data()[i]) & ((1 << width) - 1)) << (i % each * width));
  }
  return packed;
}

DType element_type(std::int32_t onnx_type, const std::string& where) {
  const ElementType* type = find_type(onnx_type);
  if (!type) fail(fmt::format("{} of a known element type", where), std::to_string(onnx_type));
  if (!type->dtype) {
    fail(fmt::format("{} of a supported element type", where), std::string(type->name), "convert it to a number type first",
         ExitCode::unsupported);
  }
  return *type->dtype;
}

void check_tensor(const TensorProto& tensor, const std::string& where, const ImportLimits& limits, ExternalFiles& files) {
  const std::int64_t elements = checked_elements(tensor, where, limits);
  const bool external = tensor.data_location() == TensorProto::EXTERNAL;
  if (external) files.declare(tensor, where, std::nullopt);
  const DType dtype = element_type(tensor.data_type(), where);
  const ElementType& type = *find_type(tensor.data_type());
  if (tensor.has_segment()) fail(fmt::format("{} in one piece", where), "a segment of it", {}, ExitCode::unsupported);
  const std::int64_t values = is_packed(dtype) ? packed_bytes(dtype, elements) : elements;
  const std::int64_t bytes = values * static_cast<std::int64_t>(size_bytes(dtype));
  int typed = 0;
  for (const TypedField& field : typed_fields(tensor)) {
    if (field.count == 0) continue;
    if (external || tensor.has_raw_data()) {
      fail(fmt::format("{} with its data in one place", where),
           fmt::format("both {} and {}", external ? "external data" : "raw_data", field.name));
    }
    if (field.kind != type.typed)
      fail(fmt::format("{}: {} data in {}", where, type.name, field_name(type.typed)), fmt::format("{}", field.name));
    typed = field.count;
  }
  if (dtype == DType::string && (external || tensor.has_raw_data()))
    fail(fmt::format("{}: STRING data in string_data", where), external ? "external data" : "raw_data");
  if (external) {
    if (tensor.has_raw_data() && !tensor.raw_data().empty())
      fail(fmt::format("{} with its data in one place", where), "both external data and raw_data");
    files.declare(tensor, where, bytes);
    return;
  }
  if (tensor.has_raw_data()) {
    if (static_cast<std::int64_t>(tensor.raw_data().size()) != bytes) {
      fail(fmt::format("{}: {} bytes of raw_data for {} {}", where, bytes, type.name, shape_text(tensor)),
           std::to_string(tensor.raw_data().size()));
    }
    return;
  }
  if (typed != values) {
    fail(fmt::format("{}: {} values in {} for {} {}", where, values, field_name(type.typed), type.name, shape_text(tensor)),
         std::to_string(typed));
  }
  check_narrow(tensor, dtype, where);
  check_texts(tensor, where);
}

const HostTensor& TensorStore::get(TensorProto& tensor) {
  const auto at = decoded_.find(&tensor);
  if (at != decoded_.end()) return at->second;
  return decoded_.emplace(&tensor, decode(tensor)).first->second;
}

HostTensor TensorStore::decode(TensorProto& tensor) {
  const DType dtype = *find_type(tensor.data_type())->dtype;
  const std::vector<std::int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  const std::byte* data = nullptr;
  std::shared_ptr<const void> owner;
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    const ExternalFiles::Block block = files_.read(tensor);
    data = block.data;
    owner = block.owner;
  } else if (tensor.has_raw_data()) {
    auto bytes = std::shared_ptr<std::string>(tensor.release_raw_data());
    data = reinterpret_cast<const std::byte*>(bytes->data());
    owner = std::move(bytes);
  } else {
    if (dtype == DType::string)
      return HostTensor::from_texts(std::vector<std::string>(tensor.string_data().begin(), tensor.string_data().end()), shape);
    if (is_packed(dtype)) {
      std::vector<std::byte> bytes;
      for (const std::int32_t pair : tensor.int32_data()) bytes.push_back(static_cast<std::byte>(pair));
      return unpacked(dtype, shape, bytes.data());
    }
    HostTensor out(dtype, shape);
    const auto copy = [&](const auto& values) {
      std::int64_t i = 0;
      for (const auto value : values) {
        // Floats go by their bits, through memory.
        if (out.elements() > i)
          std::memcpy(out.mutable_data() + static_cast<std::size_t>(i) * size_bytes(dtype), &value, size_bytes(dtype));
        ++i;
      }
    };
    if (dtype == DType::boolean) {
      for (int i = 0; i < tensor.int32_data_size(); ++i) out.set_int(i, tensor.int32_data(i) != 0);
    } else {
      // Numbers are little-endian here and on the wire, so the low bytes of a wider value are the narrow value.
      copy(tensor.float_data());
      copy(tensor.int32_data());
      copy(tensor.int64_data());
      copy(tensor.double_data());
      copy(tensor.uint64_data());
    }
    return out;
  }
  if (is_packed(dtype)) return unpacked(dtype, shape, data);
  HostTensor out(dtype, shape, data, std::move(owner));
  if (dtype != DType::boolean) return out;
  const std::int64_t count = out.elements();
  if (std::all_of(data, data + count, [](std::byte b) { return b <= std::byte{1}; })) return out;
  HostTensor normal(dtype, shape);
  for (std::int64_t i = 0; i < count; ++i) normal.set_int(i, data[i] != std::byte{0});
  return normal;
}

}  // namespace oclc::onnx
