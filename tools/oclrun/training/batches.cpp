#include "tools/oclrun/training/batches.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "tools/oclrun/inputs.h"

namespace oclc::oclrun {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw io::FileError(io::FileProblem::contents, file + ": " + what);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// "[17, 3]" of element `index`.
std::string index_text(std::uint64_t index, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    at[d] = static_cast<std::int64_t>(index % static_cast<std::uint64_t>(shape[d]));
    index /= static_cast<std::uint64_t>(shape[d]);
  }
  return shape_text(at);
}

template <class T>
std::int64_t integer_at(const io::Tensor& t, std::uint64_t i) {
  T value;
  std::memcpy(&value, t.data.data() + i * sizeof value, sizeof value);
  return static_cast<std::int64_t>(value);
}

std::int64_t integer(const io::Tensor& t, std::uint64_t i) {
  switch (t.dtype) {
    case OCLC_I8:
      return integer_at<std::int8_t>(t, i);
    case OCLC_I16:
      return integer_at<std::int16_t>(t, i);
    case OCLC_I32:
      return integer_at<std::int32_t>(t, i);
    case OCLC_I64:
      return integer_at<std::int64_t>(t, i);
    case OCLC_U16:
      return integer_at<std::uint16_t>(t, i);
    case OCLC_U32:
      return integer_at<std::uint32_t>(t, i);
    case OCLC_U64:
      return integer_at<std::int64_t>(t, i);  // huge values become negative, which is out of range as well
    default:
      return integer_at<std::uint8_t>(t, i);
  }
}

}  // namespace

void check_limit(const oclc_binding_info& input, const std::string& file, const io::Tensor& t) {
  if (input.limit <= 0 || t.dtype <= OCLC_BF16) return;
  const auto* end = input.also + input.also_count;
  for (std::uint64_t i = 0; i < t.elements(); ++i) {
    const std::int64_t value = integer(t, i);
    if ((value >= 0 && value < input.limit) || std::find(input.also, end, value) != end) continue;
    std::string also;
    for (const auto* a = input.also; a != end; ++a) also += " or " + std::to_string(*a);
    refuse(file, "element " + index_text(i, t.shape) + ": wanted 0 to " + std::to_string(input.limit - 1) + also +
                     " for input '" + input.name + "', found " + std::to_string(value));
  }
}

std::uint64_t philox(std::uint64_t key, std::uint64_t a, std::uint64_t b) {
  std::array<std::uint32_t, 4> c = {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32),
                                    static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(b >> 32)};
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c[0] | std::uint64_t{c[1]} << 32;
}

std::vector<std::uint64_t> shuffled(std::uint64_t count, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::uint64_t> order(count);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  for (std::uint64_t i = count; i-- > 1;) {
    __extension__ using Wide = unsigned __int128;
    const auto j = static_cast<std::uint64_t>(static_cast<Wide>(philox(seed, i, epoch)) * (i + 1) >> 64);
    std::swap(order[i], order[j]);
  }
  return order;
}

void Batches::add(const oclc_binding_info& input, const std::string& file, const std::optional<Scale>& scale) {
  Source source{file, read_tensor(file), {}, input.dtype, scale};
  source.samples.name = input.name;
  const io::Tensor& t = source.samples;
  if (scale && (input.dtype != OCLC_F32 || t.dtype == OCLC_STRING))
    refuse(file, std::string("wanted numbers for a float32 input with --scale, found ") + oclc_dtype_name(t.dtype) +
                     " for input '" + input.name + "' of " + oclc_dtype_name(input.dtype));
  if (t.dtype != input.dtype && !scale)
    refuse(file,
           std::string("wanted ") + oclc_dtype_name(input.dtype) + " for input '" + input.name + "', found " +
               oclc_dtype_name(t.dtype) +
               (input.dtype == OCLC_F32 && t.dtype != OCLC_STRING ? std::string("; --scale ") + input.name + "=FACTOR converts"
                                                                  : ""));
  if (t.shape.size() != input.rank)
    refuse(file, std::string("wanted samples along the first axis of ") + input.shape_text + " for input '" + input.name +
                     "', found shape " + shape_text(t.shape));
  if (t.elements() == 0) refuse(file, "holds no samples: its shape is " + shape_text(t.shape));
  const auto count = static_cast<std::uint64_t>(t.shape[0]);
  if (!sources_.empty() && count != count_)
    refuse(file, "has " + std::to_string(count) + " samples, " + sources_[0].file + " has " + std::to_string(count_));
  check_limit(input, file, t);
  count_ = count;
  source.shape = t.shape;
  sources_.push_back(std::move(source));
}

void Batches::set_size(std::int64_t size) {
  size_ = static_cast<std::uint64_t>(size);
  for (Source& source : sources_) {
    if (size_ > count_)
      refuse(source.file, "has " + std::to_string(count_) + " samples, a batch takes " + std::to_string(size));
    source.shape[0] = size;
  }
}

std::uint64_t Batches::sample_at(std::uint64_t place) {
  const std::uint64_t epoch = place / count_;
  if (!shuffle_) return place % count_;
  if (epoch != epoch_) {
    order_ = shuffled(count_, seed_, epoch);
    epoch_ = epoch;
  }
  return order_[place % count_];
}

void Batches::fill(std::size_t index, std::uint64_t batch, std::byte* to) {
  const Source& source = sources_[index];
  const io::Tensor& t = source.samples;
  if (source.scale) {
    const std::uint64_t values = t.elements() / count_;
    for (std::uint64_t i = 0; i < size_; ++i) {
      const std::uint64_t place = batch * size_ + i;
      const std::uint64_t first = sample_at(place) * values;
      for (std::uint64_t k = 0; k < values; ++k) {
        const auto value = static_cast<float>(t.at(first + k) * source.scale->factor + source.scale->offset);
        std::memcpy(to + (i * values + k) * sizeof value, &value, sizeof value);
      }
    }
    return;
  }
  const std::uint64_t bytes = t.data.size() / count_;
  for (std::uint64_t i = 0; i < size_; ++i)
    std::memcpy(to + i * bytes, t.data.data() + sample_at(batch * size_ + i) * bytes, bytes);
}

}  // namespace oclc::oclrun
