#include "tools/io/onnx_weights.h"

#include <filesystem>
#include <iterator>
#include <string_view>

#include "runtime/package/writer.h"

namespace oclc::io {
namespace {

// Field numbers of onnx.proto.
constexpr std::uint64_t kModelGraph = 7;
constexpr std::uint64_t kGraphInitializer = 5;
constexpr std::uint64_t kTensorDims = 1;
constexpr std::uint64_t kTensorDataType = 2;
constexpr std::uint64_t kTensorName = 8;
constexpr std::uint64_t kTensorRawData = 9;
constexpr std::uint64_t kTensorDataLocation = 14;
constexpr std::uint64_t kMaxFileBytes = (std::uint64_t{1} << 31) - 1;

bool is_data(std::uint64_t field) {
  return (field >= 4 && field <= 7) || (field >= 9 && field <= 11) || field == 13 || field == kTensorDataLocation;
}

// ONNX's numbers of the element types, in the order of oclc_dtype.
constexpr int kOnnxTypes[] = {1, 11, 10, 16, 3, 5, 6, 7, 2, 4, 12, 13, 9, 8, 17, 18, 19, 20, 23, 22, 21, 24, 26, 25};
static_assert(std::size(kOnnxTypes) == OCLC_U2 + 1);

int onnx_type(oclc_dtype dtype) { return kOnnxTypes[dtype]; }

// The name of one of ONNX's element types.
std::string type_text(std::uint64_t type) {
  for (int d = OCLC_F32; d <= OCLC_U2; ++d)
    if (static_cast<std::uint64_t>(kOnnxTypes[d]) == type) return oclc_dtype_name(static_cast<oclc_dtype>(d));
  return "element type " + std::to_string(type) + " of ONNX";
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// A field of a message: its number, wire type, value, and all its bytes with the tag.
struct Field {
  std::uint64_t number = 0;
  unsigned wire = 0;
  std::uint64_t varint = 0;
  std::string_view bytes;
  std::string_view whole;
};

class Fields {
 public:
  Fields(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool next(Field& f) {
    if (at_ == text_.size()) return false;
    const std::size_t begin = at_;
    const std::uint64_t tag = varint();
    f = {tag >> 3, static_cast<unsigned>(tag & 7), 0, {}, {}};
    switch (f.wire) {
      case 0:
        f.varint = varint();
        break;
      case 1:
        f.bytes = take(8);
        break;
      case 2:
        f.bytes = take(varint());
        break;
      case 5:
        f.bytes = take(4);
        break;
      default:
        fail();
    }
    f.whole = text_.substr(begin, at_ - begin);
    return true;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == text_.size()) fail();
      const auto byte = static_cast<unsigned char>(text_[at_++]);
      value |= std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    fail();
  }
  bool done() const { return at_ == text_.size(); }
  [[noreturn]] void fail() const { throw FileError(FileProblem::contents, file_ + ": not an ONNX model: damaged at a field"); }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > text_.size() - at_) fail();
    const std::string_view result = text_.substr(at_, size);
    at_ += size;
    return result;
  }
  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
}

void put_bytes(std::string& out, std::uint64_t field, std::string_view bytes) {
  put_varint(out, field << 3 | 2);
  put_varint(out, bytes.size());
  out.append(bytes);
}

class Replacer {
 public:
  Replacer(const std::string& model, const FindWeight& find) : model_(model), find_(find) {}

  std::string model(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    Fields fields(text, model_);
    bool has_graph = false;
    for (Field f; fields.next(f);) {
      if (f.number == kModelGraph && f.wire == 2) {
        has_graph = true;
        put_bytes(out, kModelGraph, graph(f.bytes));
      } else {
        out.append(f.whole);
      }
    }
    if (!has_graph) throw FileError(FileProblem::contents, model_ + ": not an ONNX model: it has no graph");
    return out;
  }

  ReplacedWeights result;
  std::vector<std::string> external;  // kept initializers in other files

 private:
  std::string graph(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    Fields fields(text, model_);
    for (Field f; fields.next(f);) {
      if (f.number == kGraphInitializer && f.wire == 2)
        initializer(out, f);
      else
        out.append(f.whole);
    }
    return out;
  }

  void initializer(std::string& out, const Field& whole) {
    std::string name;
    std::vector<std::int64_t> dims;
    std::uint64_t type = 0;
    bool elsewhere = false;
    std::string kept;
    Fields fields(whole.bytes, model_);
    for (Field f; fields.next(f);) {
      if (f.number == kTensorName && f.wire == 2) name = f.bytes;
      if (f.number == kTensorDataType && f.wire == 0) type = f.varint;
      if (f.number == kTensorDataLocation && f.wire == 0) elsewhere = f.varint == 1;
      if (f.number == kTensorDims && f.wire == 0) dims.push_back(static_cast<std::int64_t>(f.varint));
      if (f.number == kTensorDims && f.wire == 2)
        for (Fields packed(f.bytes, model_); !packed.done();) dims.push_back(static_cast<std::int64_t>(packed.varint()));
      if (!is_data(f.number)) kept.append(f.whole);
    }
    const std::optional<Tensor> value = find_(name);
    if (!value) {
      result.kept.push_back(name);
      if (elsewhere) external.push_back(name);
      out.append(whole.whole);
      return;
    }
    if (type != static_cast<std::uint64_t>(onnx_type(value->dtype)) || dims != value->shape)
      throw FileError(FileProblem::contents, model_ + ": initializer '" + name + "': wanted " + oclc_dtype_name(value->dtype) +
                                                 " " + shape_text(value->shape) + " as in the state, found " + type_text(type) +
                                                 " " + shape_text(dims));
    put_bytes(kept, kTensorRawData, {reinterpret_cast<const char*>(value->data.data()), value->data.size()});
    put_bytes(out, kGraphInitializer, kept);
    ++result.replaced;
  }

  const std::string& model_;
  const FindWeight& find_;
};

std::filesystem::path folder_of(const std::string& path) {
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  return std::filesystem::weakly_canonical(folder.empty() ? "." : folder, error);
}

}  // namespace

ReplacedWeights replace_onnx_weights(const std::string& model, const std::string& path, const FindWeight& find) {
  const std::string text = read_file(model, kMaxFileBytes);
  Replacer replacer(model, find);
  const std::string out = replacer.model(text);
  if (replacer.result.replaced == 0)
    throw FileError(FileProblem::contents, model +
                                               ": none of its initializers is in the state; is it the model that the plan "
                                               "was compiled from?");
  if (!replacer.external.empty() && folder_of(model) != folder_of(path))
    throw FileError(FileProblem::contents, path + ": initializer '" + replacer.external[0] +
                                               "' was not trained and lies in a file beside " + model +
                                               ": write the trained model into the same folder");
  if (out.size() > kMaxFileBytes)
    throw FileError(FileProblem::contents, path + ": the model would have " + std::to_string(out.size()) +
                                               " bytes, an ONNX file may have " + std::to_string(kMaxFileBytes));
  try {
    package::write_file(path, std::as_bytes(std::span(out)));
  } catch (const package::Error& error) {
    throw FileError(FileProblem::io, error.what());
  }
  return replacer.result;
}

}  // namespace oclc::io
