#include "frontends/cpp/weight_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "compiler/support/error.h"

namespace oclc::nn {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMostRank = 32;

[[noreturn]] void refuse(const std::string& file, const std::string& wanted, const std::string& found,
                         ExitCode code = ExitCode::bad_model) {
  throw CompileError({.stage = "weights", .wanted = fmt::format("{}: {}", file, wanted), .found = found, .exit_code = code});
}

// A file in memory, read only.
class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) refuse(path.string(), "a file that can be read", std::strerror(errno), ExitCode::io);
    struct ::stat status {};
    const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    if (regular && status.st_size > 0) {
      size_ = static_cast<std::size_t>(status.st_size);
      data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    ::close(file);
    if (!regular || data_ == MAP_FAILED || size_ == 0)
      refuse(path.string(), "a file of tensors", regular ? "an empty one" : "no regular file", ExitCode::io);
  }
  ~Mapping() { ::munmap(data_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Bytes bytes() const { return {static_cast<const std::byte*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

// Little endian; the caller has checked the place.
template <class T>
T number_at(Bytes bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Bytes of a tensor, if they can be counted.
std::optional<std::uint64_t> bytes_of(DType dtype, const std::vector<std::int64_t>& shape) {
  std::uint64_t bytes = size_bytes(dtype);
  for (const std::int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes)) return std::nullopt;
  }
  return bytes;
}

std::optional<DType> named(std::string_view name, std::span<const std::pair<std::string_view, DType>> rows) {
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.first == name; });
  return at == rows.end() ? std::nullopt : std::optional(at->second);
}

// JSON's other numbers are none: 1e30 is no size.
bool are_integers(const nlohmann::json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const auto& n) { return n.is_number_integer(); });
}

HostTensor safe_tensor(const std::string& where, const nlohmann::json& entry, Bytes data,
                       const std::shared_ptr<const Mapping>& owner) {
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"F32", DType::f32}, {"F64", DType::f64}, {"F16", DType::f16},     {"BF16", DType::bf16}, {"I8", DType::i8},
      {"I16", DType::i16}, {"I32", DType::i32}, {"I64", DType::i64},     {"U8", DType::u8},     {"U16", DType::u16},
      {"U32", DType::u32}, {"U64", DType::u64}, {"BOOL", DType::boolean}};
  try {
    const auto dtype = named(entry.at("dtype").get<std::string>(), kTypes);
    if (!are_integers(entry.at("shape")) || !are_integers(entry.at("data_offsets")))
      refuse(where, "whole numbers as shape and data_offsets", entry.dump().substr(0, 120));
    const auto shape = entry.at("shape").get<std::vector<std::int64_t>>();
    const auto places = entry.at("data_offsets").get<std::array<std::uint64_t, 2>>();
    if (!dtype) refuse(where, "an element type of safetensors that is known", entry.at("dtype").dump());
    const auto bytes = bytes_of(*dtype, shape);
    if (shape.size() > kMostRank || !bytes || places[0] > places[1] || places[1] > data.size() ||
        places[1] - places[0] != *bytes)
      refuse(where, "a place within the file that fits the shape", entry.dump());
    return {*dtype, shape, data.data() + places[0], owner};
  } catch (const nlohmann::json::exception&) {
    refuse(where, "an entry with dtype, shape and data_offsets", entry.dump().substr(0, 120));
  }
}

// The value behind `key` in the header of a .npy file, up to the comma behind it that is in no parentheses.
std::string value_of(const std::string& where, std::string_view header, std::string_view key) {
  const std::size_t at = header.find(fmt::format("'{}':", key));
  if (at == header.npos) refuse(where, fmt::format("a header of .npy with '{}'", key), std::string(header.substr(0, 80)));
  std::size_t begin = at + key.size() + 3;
  while (begin < header.size() && header[begin] == ' ') ++begin;
  const std::size_t end = begin < header.size() ? header.find(header[begin] == '(' ? ')' : ',', begin) : header.npos;
  if (end == header.npos) refuse(where, "a whole header of .npy", std::string(header.substr(0, 80)));
  return std::string(header.substr(begin, end - begin));
}

HostTensor npy_tensor(const std::string& where, Bytes file, const std::shared_ptr<const Mapping>& owner) {
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"'<f4'", DType::f32}, {"'<f8'", DType::f64}, {"'<f2'", DType::f16}, {"'|i1'", DType::i8},
      {"'<i2'", DType::i16}, {"'<i4'", DType::i32}, {"'<i8'", DType::i64}, {"'|u1'", DType::u8},
      {"'<u2'", DType::u16}, {"'<u4'", DType::u32}, {"'<u8'", DType::u64}, {"'|b1'", DType::boolean}};
  if (file.size() < 12 || std::memcmp(file.data(), "\x93NUMPY", 6) != 0)
    refuse(where, "a member in NumPy's .npy format", "another");
  const bool first = number_at<std::uint8_t>(file, 6) == 1;
  const std::size_t begin = first ? 10 : 12,
                    length = first ? number_at<std::uint16_t>(file, 8) : number_at<std::uint32_t>(file, 8);
  if (length > file.size() - begin) refuse(where, "a header of .npy within the member", fmt::format("{} bytes", length));
  const std::string_view header(reinterpret_cast<const char*>(file.data()) + begin, length);
  const std::string descr = value_of(where, header, "descr"), order = value_of(where, header, "fortran_order");
  const auto dtype = named(descr, kTypes);
  if (!dtype) refuse(where, "little-endian numbers", descr);
  if (order != "False") refuse(where, "C order (np.ascontiguousarray)", "fortran_order " + order);
  std::vector<std::int64_t> shape;
  const std::string dims = value_of(where, header, "shape");
  for (const char *at = dims.data() + 1, *end = dims.data() + dims.size(); at < end;) {
    std::int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    if (error != std::errc() || dim < 0) refuse(where, "a shape of whole numbers", dims);
    shape.push_back(dim);
    at = next;
    while (at < end && (*at == ',' || *at == ' ')) ++at;
  }
  const auto bytes = bytes_of(*dtype, shape);
  if (shape.size() > kMostRank || !bytes || file.size() - begin - length != *bytes)
    refuse(where, fmt::format("the bytes of shape {})", dims), fmt::format("{}", file.size() - begin - length));
  return {*dtype, shape, file.data() + begin + length, owner};
}

std::uint32_t crc32(Bytes bytes) {
  static const std::array<std::uint32_t, 256> kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
      table[i] = c;
    }
    return table;
  }();
  std::uint32_t c = ~0u;
  for (const std::byte b : bytes) c = kTable[(c ^ std::to_integer<std::uint32_t>(b)) & 255] ^ c >> 8;
  return ~c;
}

// A member of a ZIP archive, as its directory has it (PKWARE's APPNOTE 4.3.12; 4.5.3 for sizes of more than 32 bits).
struct Member {
  std::string name;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, size = 0, header = 0;
};

constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;

std::vector<Member> members_of(const std::string& where, Bytes file) {
  const auto broken = [&](const char* what) { refuse(where, "a whole ZIP archive, as np.savez writes it", what); };
  if (file.size() < kEndBytes) broken("too few bytes");
  std::size_t end = file.size() - kEndBytes;
  while (number_at<std::uint32_t>(file, end) != 0x06054b50u) {
    if (end == 0 || file.size() - end > kEndBytes + 65535) broken("no end of a directory");
    --end;
  }
  const std::size_t count = number_at<std::uint16_t>(file, end + 10);
  std::size_t at = number_at<std::uint32_t>(file, end + 16);
  std::vector<Member> members;
  for (std::size_t i = 0; i < count; ++i) {
    if (at > end || end - at < kEntryBytes || number_at<std::uint32_t>(file, at) != 0x02014b50u) broken("a damaged directory");
    const std::size_t name = number_at<std::uint16_t>(file, at + 28), extra = number_at<std::uint16_t>(file, at + 30),
                      comment = number_at<std::uint16_t>(file, at + 32);
    if (end - at - kEntryBytes < name + extra + comment) broken("a damaged directory");
    Member m;
    m.method = number_at<std::uint16_t>(file, at + 10);
    m.crc = number_at<std::uint32_t>(file, at + 16);
    m.packed = number_at<std::uint32_t>(file, at + 20), m.size = number_at<std::uint32_t>(file, at + 24);
    m.header = number_at<std::uint32_t>(file, at + 42);
    m.name.assign(reinterpret_cast<const char*>(file.data()) + at + kEntryBytes, name);
    for (std::size_t e = at + kEntryBytes + name, last = e + extra; last - e >= 4;) {
      const std::size_t id = number_at<std::uint16_t>(file, e), bytes = number_at<std::uint16_t>(file, e + 2);
      if (last - e - 4 < bytes) broken("a damaged directory");
      std::size_t place = e + 4;
      for (std::uint64_t* value : {&m.size, &m.packed, &m.header}) {
        if (id != 1 || *value != 0xFFFFFFFFu || place + 8 > e + 4 + bytes) continue;
        *value = number_at<std::uint64_t>(file, place);
        place += 8;
      }
      e += 4 + bytes;
    }
    members.push_back(std::move(m));
    at += kEntryBytes + name + extra + comment;
  }
  return members;
}

}  // namespace

NamedTensors read_safetensors(const std::filesystem::path& path) {
  const auto owner = std::make_shared<const Mapping>(path);
  const Bytes file = owner->bytes();
  const std::string name = path.string();
  const std::uint64_t length = file.size() < 8 ? 0 : number_at<std::uint64_t>(file, 0);
  if (file.size() < 8 || length > kMostHeaderBytes || length > file.size() - 8)
    refuse(name, "a safetensors file, which begins with the length of its header", fmt::format("{} bytes", file.size()));
  const auto* text = reinterpret_cast<const char*>(file.data()) + 8;
  const nlohmann::json header = nlohmann::json::parse(text, text + length, nullptr, false);
  if (!header.is_object()) refuse(name, "a JSON object as header", std::string(text, std::min<std::size_t>(length, 40)));
  NamedTensors tensors;
  for (const auto& [key, entry] : header.items()) {
    if (key != "__metadata__")
      tensors.emplace(key, safe_tensor(fmt::format("{}: tensor '{}'", name, key), entry, file.subspan(8 + length), owner));
  }
  return tensors;
}

NamedTensors read_npz(const std::filesystem::path& path) {
  const auto owner = std::make_shared<const Mapping>(path);
  const Bytes file = owner->bytes();
  NamedTensors tensors;
  for (const Member& m : members_of(path.string(), file)) {
    const std::string where = fmt::format("{}: member '{}'", path.string(), m.name);
    if (m.method != 0) refuse(where, "stored members (np.savez, not np.savez_compressed)", fmt::format("method {}", m.method));
    if (m.header > file.size() || file.size() - m.header < kLocalBytes ||
        number_at<std::uint32_t>(file, m.header) != 0x04034b50u)
      refuse(where, "a place within the file", fmt::format("{}", m.header));
    const std::uint64_t begin =
        m.header + kLocalBytes + number_at<std::uint16_t>(file, m.header + 26) + number_at<std::uint16_t>(file, m.header + 28);
    if (begin > file.size() || m.size > file.size() - begin || m.packed != m.size)
      refuse(where, "a place within the file", fmt::format("{} + {}", begin, m.size));
    const Bytes bytes = file.subspan(begin, m.size);
    if (crc32(bytes) != m.crc) refuse(where, "the checksum of the directory", "another: the file is damaged");
    tensors.emplace(m.name.ends_with(".npy") ? m.name.substr(0, m.name.size() - 4) : m.name, npy_tensor(where, bytes, owner));
  }
  return tensors;
}

}  // namespace oclc::nn
