#include "tools/io/tensor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <system_error>

#include "runtime/package/narrow.h"

namespace oclc::io {
namespace {

template <class T>
T load(const std::vector<std::byte>& data, std::uint64_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw FileError(FileProblem::io, path + ": " + what + ": " + std::generic_category().message(error));
}

}  // namespace

float widen_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits >> 10 & 31u;
  const std::uint32_t fraction = bits & 1023u;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign ? -1.0f : 1.0f);
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

float widen_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint64_t Tensor::elements() const { return data.size() / oclc_dtype_bytes(dtype); }

const char* Tensor::text_at(std::uint64_t i) const { return load<const char*>(data, i); }

void Tensor::set_texts(std::vector<std::string> values) {
  texts = std::make_shared<const std::vector<std::string>>(std::move(values));
  data.resize(texts->size() * sizeof(const char*));
  for (std::size_t i = 0; i < texts->size(); ++i) {
    const char* text = (*texts)[i].c_str();
    std::memcpy(data.data() + i * sizeof text, &text, sizeof text);
  }
}

double Tensor::at(std::uint64_t i) const {
  switch (dtype) {
    case OCLC_F32:
      return load<float>(data, i);
    case OCLC_F64:
      return load<double>(data, i);
    case OCLC_F16:
      return widen_half(load<std::uint16_t>(data, i));
    case OCLC_BF16:
      return widen_bfloat16(load<std::uint16_t>(data, i));
    case OCLC_I8:
      return load<std::int8_t>(data, i);
    case OCLC_I16:
      return load<std::int16_t>(data, i);
    case OCLC_I32:
      return load<std::int32_t>(data, i);
    case OCLC_I64:
      return static_cast<double>(load<std::int64_t>(data, i));
    case OCLC_U16:
      return load<std::uint16_t>(data, i);
    case OCLC_U32:
      return load<std::uint32_t>(data, i);
    case OCLC_U64:
      return static_cast<double>(load<std::uint64_t>(data, i));
    case OCLC_F8E4M3FN:
    case OCLC_F8E4M3FNUZ:
    case OCLC_F8E5M2:
    case OCLC_F8E5M2FNUZ:
    case OCLC_F4E2M1:
    case OCLC_I4:
    case OCLC_U4:
    case OCLC_F8E8M0:
    case OCLC_I2:
    case OCLC_U2:
      return static_cast<double>(package::narrow_value(static_cast<plan::DType>(dtype), load<std::uint8_t>(data, i)));
    default:
      return load<std::uint8_t>(data, i);
  }
}

std::uint64_t tensor_bytes(const std::string& where, oclc_dtype dtype, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = oclc_dtype_bytes(dtype);
  bool zero = false;
  for (const std::int64_t d : shape) {
    if (d < 0) throw FileError(FileProblem::contents, where + ": dimension " + std::to_string(d) + " is negative");
    zero = zero || d == 0;
  }
  if (zero) return 0;
  for (const std::int64_t d : shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(d), &bytes) || bytes > std::uint64_t{1} << 62)
      throw FileError(FileProblem::contents, where + ": its shape has too many elements");
  return bytes;
}

std::string read_file(const std::string& path, std::uint64_t limit) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(path, "cannot open", errno);
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{descriptor};
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail(path, "cannot stat", errno);
  if (S_ISDIR(status.st_mode)) fail(path, "cannot read", EISDIR);
  if (!S_ISREG(status.st_mode))
    throw FileError(FileProblem::io, path + ": wanted a regular file, found a device, pipe or socket");
  if (static_cast<std::uint64_t>(status.st_size) > limit)
    throw FileError(FileProblem::contents,
                    path + ": wanted at most " + std::to_string(limit) + " bytes, found " + std::to_string(status.st_size));
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(descriptor, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot read", errno);
    if (got == 0) throw FileError(FileProblem::io, path + ": the file became shorter while it was read");
    done += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace oclc::io
