#include "tools/io/tensor_proto.h"

#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "runtime/package/narrow.h"

namespace oclc::io {
namespace {

// Field numbers of TensorProto in onnx.proto.
enum TensorField : std::uint64_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kExternalData = 13,
  kDataLocation = 14
};

enum Wire : std::uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

class Reader {
 public:
  Reader(std::string_view text, const std::string& where) : text_(text), where_(where) {}
  [[noreturn]] void fail(const std::string& what) const { throw FileError(FileProblem::contents, where_ + ": " + what); }
  bool done() const { return at_ == text_.size(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (done()) fail("not an ONNX tensor: truncated");
      const auto byte = static_cast<unsigned char>(text_[at_++]);
      value |= shift < 64 ? std::uint64_t{byte & 127u} << shift : 0;
      if (byte < 128) return value;
    }
    fail("not an ONNX tensor: an integer longer than 10 bytes");
  }
  std::string_view bytes(std::uint64_t size) {
    if (size > text_.size() - at_) fail("not an ONNX tensor: a field reaches past the end");
    const std::string_view result = text_.substr(at_, size);
    at_ += size;
    return result;
  }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }

 private:
  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

std::optional<oclc_dtype> dtype_of(std::uint64_t onnx) {
  switch (onnx) {
    case 1:
      return OCLC_F32;
    case 2:
      return OCLC_U8;
    case 3:
      return OCLC_I8;
    case 4:
      return OCLC_U16;
    case 5:
      return OCLC_I16;
    case 6:
      return OCLC_I32;
    case 7:
      return OCLC_I64;
    case 8:
      return OCLC_STRING;
    case 9:
      return OCLC_BOOL;
    case 10:
      return OCLC_F16;
    case 11:
      return OCLC_F64;
    case 12:
      return OCLC_U32;
    case 13:
      return OCLC_U64;
    case 16:
      return OCLC_BF16;
    case 17:
      return OCLC_F8E4M3FN;
    case 18:
      return OCLC_F8E4M3FNUZ;
    case 19:
      return OCLC_F8E5M2;
    case 20:
      return OCLC_F8E5M2FNUZ;
    case 21:
      return OCLC_U4;
    case 22:
      return OCLC_I4;
    case 23:
      return OCLC_F4E2M1;
    case 24:
      return OCLC_F8E8M0;
    case 25:
      return OCLC_U2;
    case 26:
      return OCLC_I2;
    default:
      return std::nullopt;
  }
}

struct TensorFields {
  std::vector<std::int64_t> dims;
  std::uint64_t data_type = 0;
  std::string name;
  std::optional<std::string_view> raw;
  std::vector<std::uint64_t> integers;  // int32_data, int64_data, uint64_data
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::string> texts;
};

template <class Read>
void repeated(Reader& reader, std::uint64_t wire, std::uint64_t scalar_wire, const std::string& where, Read read) {
  if (wire == scalar_wire) {
    read(reader);
  } else if (wire == kBytes) {
    Reader packed(reader.bytes(reader.varint()), where);
    while (!packed.done()) read(packed);
  } else {
    reader.fail("not an ONNX tensor: a field has the wrong type");
  }
}

void skip(Reader& reader, std::uint64_t wire) {
  switch (wire) {
    case kVarint:
      reader.varint();
      break;
    case kFixed64:
      reader.bytes(8);
      break;
    case kBytes:
      reader.bytes(reader.varint());
      break;
    case kFixed32:
      reader.bytes(4);
      break;
    default:
      reader.fail("not an ONNX tensor: unknown wire type " + std::to_string(wire));
  }
}

TensorFields read_fields(std::string_view bytes, const std::string& where) {
  Reader reader(bytes, where);
  TensorFields f;
  while (!reader.done()) {
    const std::uint64_t key = reader.varint();
    const std::uint64_t wire = key & 7;
    const auto integers = [&](Reader& r) { f.integers.push_back(r.varint()); };
    switch (key >> 3) {
      case kDims:
        repeated(reader, wire, kVarint, where, [&](Reader& r) { f.dims.push_back(static_cast<std::int64_t>(r.varint())); });
        if (f.dims.size() > 32) reader.fail("its rank is above 32");
        break;
      case kDataType:
        if (wire != kVarint) reader.fail("not an ONNX tensor: a field has the wrong type");
        f.data_type = reader.varint();
        break;
      case kFloatData:
        repeated(reader, wire, kFixed32, where, [&](Reader& r) { f.floats.push_back(r.fixed<float>()); });
        break;
      case kDoubleData:
        repeated(reader, wire, kFixed64, where, [&](Reader& r) { f.doubles.push_back(r.fixed<double>()); });
        break;
      case kInt32Data:
      case kInt64Data:
      case kUint64Data:
        repeated(reader, wire, kVarint, where, integers);
        break;
      case kName:
        if (wire != kBytes) reader.fail("not an ONNX tensor: a field has the wrong type");
        f.name = reader.bytes(reader.varint());
        break;
      case kRawData:
        if (wire != kBytes) reader.fail("not an ONNX tensor: a field has the wrong type");
        f.raw = reader.bytes(reader.varint());
        break;
      case kStringData:
        if (wire != kBytes) reader.fail("not an ONNX tensor: a field has the wrong type");
        f.texts.emplace_back(reader.bytes(reader.varint()));
        if (f.texts.back().find('\0') != std::string::npos) reader.fail("a string contains a NUL");
        break;
      case kSegment:
        reader.fail("segmented tensors are not supported");
      case kExternalData:
        reader.fail("external data are not supported here");
      default:
        skip(reader, wire);
    }
  }
  return f;
}

template <class To, class From>
void store(std::vector<std::byte>& data, const std::vector<From>& values) {
  data.resize(values.size() * sizeof(To));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const To value = static_cast<To>(values[i]);
    std::memcpy(data.data() + i * sizeof(To), &value, sizeof(To));
  }
}

// The first `count` numbers of `width` bits in the bytes, low ones first; integers with their sign.
std::vector<std::byte> unpacked(const std::vector<std::byte>& packed, std::uint64_t count, unsigned width, bool sign) {
  const std::uint64_t each = 8 / width;
  const int mask = (1 << width) - 1, top = 1 << (width - 1);
  std::vector<std::byte> data(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const int part = std::to_integer<int>(packed[i / each]) >> (i % each * width) & mask;
    data[i] = static_cast<std::byte>(sign ? (part ^ top) - top : part);
  }
  return data;
}

}  // namespace

Tensor parse_tensor_proto(const std::string& bytes, const std::string& where) {
  const TensorFields f = read_fields(bytes, where);
  const auto fail = [&](const std::string& what) { throw FileError(FileProblem::contents, where + ": " + what); };
  const auto dtype = dtype_of(f.data_type);
  if (!dtype) fail("ONNX element type " + std::to_string(f.data_type) + " is not supported");
  Tensor tensor;
  tensor.name = f.name;
  tensor.dtype = *dtype;
  tensor.shape = f.dims;
  const std::uint64_t size = tensor_bytes(where, tensor.dtype, tensor.shape);
  const int carriers = (f.raw ? 1 : 0) + !f.integers.empty() + !f.floats.empty() + !f.doubles.empty() + !f.texts.empty();
  if (carriers > 1) fail("it has its data in several fields");
  if (tensor.dtype == OCLC_STRING) {
    if (carriers > 0 && f.texts.empty()) fail("its strings are not in string_data");
    tensor.set_texts(f.texts);
  } else if (!f.texts.empty()) {
    fail("it holds strings where its element type is " + std::string(oclc_dtype_name(tensor.dtype)));
  } else if (f.raw) {
    const auto* begin = reinterpret_cast<const std::byte*>(f.raw->data());
    tensor.data.assign(begin, begin + f.raw->size());
  } else if (tensor.dtype == OCLC_F32) {
    store<float>(tensor.data, f.floats);
  } else if (tensor.dtype == OCLC_F64) {
    store<double>(tensor.data, f.doubles);
  } else {
    switch (oclc_dtype_bytes(tensor.dtype)) {
      case 1:
        store<std::uint8_t>(tensor.data, f.integers);
        break;
      case 2:
        store<std::uint16_t>(tensor.data, f.integers);
        break;
      case 4:
        store<std::uint32_t>(tensor.data, f.integers);
        break;
      default:
        store<std::uint64_t>(tensor.data, f.integers);
    }
  }
  const auto width = static_cast<unsigned>(package::narrow_width(static_cast<plan::DType>(tensor.dtype)));
  if (width < 8 && tensor.data.size() == (size * width + 7) / 8)
    tensor.data = unpacked(tensor.data, size, width, tensor.dtype == OCLC_I4 || tensor.dtype == OCLC_I2);
  if (tensor.data.size() != size)
    fail("its shape needs " + std::to_string(size) + " bytes, found " + std::to_string(tensor.data.size()));
  if (tensor.dtype == OCLC_BOOL)
    for (std::byte& b : tensor.data) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  return tensor;
}

Tensor read_tensor_proto(const std::string& path) { return parse_tensor_proto(read_file(path, std::uint64_t{1} << 31), path); }

}  // namespace oclc::io
