#include "tools/io/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "runtime/package/writer.h"

namespace oclc::io {
namespace {

constexpr std::size_t kMaxHeader = 65536;
constexpr std::size_t kMaxRank = 32;

// The header's dictionary: a Python literal of which only this much is understood.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;

  void parse() {
    expect('{');
    bool seen[3] = {};
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0) fail("unknown key '" + key + "' in the header");
      if (seen[which]) fail("the key '" + key + "' appears twice in the header");
      seen[which] = true;
      if (which == 0) {
        if (peek() == '[') fail("structured element types are not supported");
        descr = quoted();
      } else if (which == 1) {
        fortran = boolean();
      } else {
        tuple();
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) fail("text after the header's dictionary");
    for (int i = 0; i < 3; ++i)
      if (!seen[i])
        fail(std::string("the header lacks the key '") + (i == 0 ? "descr" : i == 1 ? "fortran_order" : "shape") + "'");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw FileError(FileProblem::contents, where_ + ": " + what); }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail(std::string("the header is no dictionary literal: wanted '") + c + "' at character " + std::to_string(at_));
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"')
      fail("the header is no dictionary literal: wanted a string at character " + std::to_string(at_));
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\') fail("an escape in a string of the header");
      ++at_;
    }
    if (at_ == text_.size()) fail("a string of the header does not end");
    return std::string(text_.substr(begin, at_++ - begin));
  }
  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)})
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::strlen(word);
        return value;
      }
    fail("fortran_order is neither True nor False");
  }
  void tuple() {
    expect('(');
    while (!accept(')')) {
      peek();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc()) fail("the shape is no tuple of integers");
      at_ = static_cast<std::size_t>(end - text_.data());
      if (peek() == 'L') ++at_;  // written by Python 2
      shape.push_back(value);
      if (shape.size() > kMaxRank) fail("the rank is above " + std::to_string(kMaxRank));
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

struct Element {
  oclc_dtype dtype;
  bool swap;
};

Element element_type(const std::string& descr, const std::string& where) {
  struct Row {
    const char* code;
    oclc_dtype dtype;
  };
  static constexpr Row kRows[] = {{"f2", OCLC_F16}, {"f4", OCLC_F32}, {"f8", OCLC_F64}, {"i1", OCLC_I8},
                                  {"i2", OCLC_I16}, {"i4", OCLC_I32}, {"i8", OCLC_I64}, {"u1", OCLC_U8},
                                  {"u2", OCLC_U16}, {"u4", OCLC_U32}, {"u8", OCLC_U64}, {"b1", OCLC_BOOL}};
  if (descr.find('O') != descr.npos)
    throw FileError(FileProblem::contents,
                    where + ": element type '" + descr + "' is a pickled Python object, which is refused");
  if (descr.size() == 3)
    for (const Row& row : kRows)
      if (descr.substr(1) == row.code) {
        const char order = descr[0];
        if (order == '<' || order == '=' || (order == '|' && oclc_dtype_bytes(row.dtype) == 1)) return {row.dtype, false};
        if (order == '>') return {row.dtype, true};
      }
  throw FileError(FileProblem::contents, where + ": element type '" + descr + "' is not supported");
}

void swap_bytes(std::vector<std::byte>& data, std::size_t size) {
  for (std::size_t i = 0; i + size <= data.size(); i += size)
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i), data.begin() + static_cast<std::ptrdiff_t>(i + size));
}

// Column major to row major.
std::vector<std::byte> reordered(const std::vector<std::byte>& data, const std::vector<std::int64_t>& shape, std::size_t size) {
  std::vector<std::byte> result(data.size());
  std::vector<std::int64_t> index(shape.size(), 0);
  std::vector<std::size_t> stride(shape.size(), size);
  for (std::size_t d = 1; d < shape.size(); ++d) stride[d] = stride[d - 1] * static_cast<std::size_t>(shape[d - 1]);
  std::size_t from = 0;
  for (std::size_t to = 0; to < result.size(); to += size) {
    std::memcpy(result.data() + to, data.data() + from, size);
    for (std::size_t d = shape.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) break;
      from -= stride[d] * static_cast<std::size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return result;
}

}  // namespace

Tensor parse_npy(const std::string& bytes, const std::string& where) {
  const auto fail = [&](const std::string& what) -> void { throw FileError(FileProblem::contents, where + ": " + what); };
  if (bytes.starts_with("PK\x03\x04")) fail("it is an .npz archive; give one of its .npy files");
  if (bytes.size() < 10 || bytes.compare(0, 6, "\x93NUMPY") != 0) fail("not an .npy file (wrong magic number)");
  const auto major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3 || bytes[7] != 0)
    fail(".npy version " + std::to_string(major) + "." + std::to_string(static_cast<unsigned char>(bytes[7])) +
         " is not supported");
  const std::size_t prefix = major == 1 ? 10 : 12;
  if (bytes.size() < prefix) fail("truncated within the header");
  std::size_t header = 0;
  for (std::size_t i = 8; i < prefix; ++i) header |= std::size_t{static_cast<unsigned char>(bytes[i])} << 8 * (i - 8);
  if (header > kMaxHeader)
    fail("its header claims " + std::to_string(header) + " bytes, at most " + std::to_string(kMaxHeader) + " are allowed");
  if (header > bytes.size() - prefix) fail("truncated within the header");

  HeaderParser parser(std::string_view(bytes).substr(prefix, header), where);
  parser.parse();
  const Element element = element_type(parser.descr, where);
  Tensor tensor;
  tensor.dtype = element.dtype;
  tensor.shape = parser.shape;
  const std::uint64_t size = tensor_bytes(where, tensor.dtype, tensor.shape);
  const std::uint64_t found = bytes.size() - prefix - header;
  if (size != found) fail("its shape needs " + std::to_string(size) + " bytes, found " + std::to_string(found));
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data()) + prefix + header;
  tensor.data.assign(begin, begin + size);
  const std::size_t width = oclc_dtype_bytes(tensor.dtype);
  if (element.swap) swap_bytes(tensor.data, width);
  if (parser.fortran && tensor.shape.size() > 1) tensor.data = reordered(tensor.data, tensor.shape, width);
  if (tensor.dtype == OCLC_BOOL)
    for (std::byte& b : tensor.data) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  return tensor;
}

Tensor read_npy(const std::string& path) { return parse_npy(read_file(path, std::uint64_t{1} << 40), path); }

void write_npy(const std::string& path, const Tensor& tensor) {
  static constexpr const char* kCodes[] = {"<f4", "<f8", "<f2", "<f4", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4",
                                           "<u8", "|b1", "",    "<f4", "<f4", "<f4", "<f4", "<f4", "|i1", "|u1"};
  if (tensor.dtype == OCLC_STRING)
    throw FileError(FileProblem::contents, path + ": .npy files hold numbers, found strings in '" + tensor.name + "'");
  std::string header = std::string("{'descr': '") + kCodes[tensor.dtype] + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t d : tensor.shape) header += std::to_string(d) + ", ";
  if (tensor.shape.size() > 1) header.resize(header.size() - 2);
  if (tensor.shape.size() == 1) header.pop_back();
  header += "), }";
  // The data start on a multiple of 64 bytes.
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  if (tensor.dtype == OCLC_BF16 || (tensor.dtype >= OCLC_F8E4M3FN && tensor.dtype <= OCLC_F4E2M1)) {
    for (std::uint64_t i = 0; i < tensor.elements(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(tensor.at(i)));
      for (int b = 0; b < 4; ++b) bytes += static_cast<char>(bits >> 8 * b);
    }
  } else {
    bytes.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  try {
    package::write_file(path, std::as_bytes(std::span(bytes)));
  } catch (const package::Error& error) {
    throw FileError(FileProblem::io, error.what());
  }
}

}  // namespace oclc::io
