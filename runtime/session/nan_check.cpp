#include "runtime/session/nan_check.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/verify/verify.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

// A buffer is read in pieces: the host needs no memory of its size.
constexpr std::uint64_t kBytesAtATime = std::uint64_t{4} << 20;

// Sign removed, NaNs lie above the bits of infinity.
template <class T, class Found>
void each_special(const std::vector<std::byte>& bytes, T infinity, Found found) {
  constexpr T kMagnitude = static_cast<T>(~T{0}) >> 1;
  for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(T), sizeof(T));
    bits = static_cast<T>(bits & kMagnitude);
    if (bits >= infinity) found(i, bits > infinity);
  }
}

bool is_float(fb::DType dtype) { return dtype <= fb::DType::bf16; }

}  // namespace

NanCheck::NanCheck(Context& context, const LoadedPlan& loaded, std::uint32_t entry, const package::EntryMemory& memory,
                   const std::vector<std::uint64_t>& state_sizes, const Schedule& schedule)
    : context_(context), loaded_(loaded), entry_(entry), memory_(memory), state_sizes_(state_sizes), schedule_(schedule) {
  const auto& buffers = *loaded.plan().buffers();
  const std::uint32_t n = buffers.size();
  root_ = package::storages(loaded.plan());
  first_.assign(n, INT_MAX);
  storage_.assign(n, 0);
  cleared_.assign(n, false);
  for (std::uint32_t i = 0; i < n; ++i) {
    first_[root_[i]] = std::min(first_[root_[i]], buffers.Get(i)->first());
    storage_[root_[i]] = std::max(storage_[root_[i]], memory.sizes[i]);
  }
}

// Of a buffer whose pieces live apart: those that `index` is the first to use, or else all that begun by then.
std::vector<NanCheck::Range> NanCheck::ranges(std::uint32_t buffer, int index, bool just_begun) const {
  const auto* pieces = loaded_.plan().buffers()->Get(buffer)->pieces();
  std::vector<Range> list;
  for (std::uint32_t i = 0; i < count(pieces); ++i) {
    const std::int64_t first = pieces->Get(i)->first();
    const std::uint64_t bytes = bytes_of(buffer);
    const auto begin = static_cast<std::uint64_t>(pieces->Get(i)->offset());
    const std::uint64_t end =
        i + 1 < pieces->size() ? std::min(static_cast<std::uint64_t>(pieces->Get(i + 1)->offset()), bytes) : bytes;
    if ((just_begun ? first == index : first <= index) && begin < end) list.push_back({begin, end - begin});
  }
  return list;
}

std::uint64_t NanCheck::bytes_of(std::uint32_t buffer) const {
  return loaded_.plan().buffers()->Get(buffer)->kind() == fb::BufferKind::state ? state_sizes_[buffer] : memory_.sizes[buffer];
}

// Counts what is special among the elements in host_, of which the first is element `base` of its buffer.
void NanCheck::look_at(fb::DType dtype, std::uint64_t base, Finding& finding) const {
  const auto found = [&](std::size_t i, bool nan) {
    if (nan ? finding.nans == 0 : finding.nans + finding.infinities == 0) finding.first = base + i;
    ++(nan ? finding.nans : finding.infinities);
  };
  switch (dtype) {
    case fb::DType::f64:
      return each_special<std::uint64_t>(host_, 0x7ff0000000000000u, found);
    case fb::DType::f32:
      return each_special<std::uint32_t>(host_, 0x7f800000u, found);
    case fb::DType::f16:
      return each_special<std::uint16_t>(host_, 0x7c00u, found);
    default:
      return each_special<std::uint16_t>(host_, 0x7f80u, found);
  }
}

NanCheck::Finding NanCheck::look(std::uint32_t index, int step) {
  Finding finding;
  const fb::Buffer& buffer = *loaded_.plan().buffers()->Get(index);
  const std::uint64_t bytes = bytes_of(index);
  if (!is_float(buffer.dtype()) || bytes == 0) return finding;
  const Place& place = schedule_.places()[index];
  const std::uint64_t size = package::dtype_bytes(buffer.dtype());
  std::vector<Range> alive{{0, bytes}};
  if (count(buffer.pieces()) > 0) alive = ranges(index, step, false);
  finding.elements = bytes / size;
  for (const Range& range : alive) {
    for (std::uint64_t at = 0; at < range.bytes; at += kBytesAtATime) {
      host_.resize(std::min(range.bytes - at, kBytesAtATime));
      const std::uint64_t from = range.begin + at;
      check_cl(clEnqueueReadBuffer(context_.queue(), place.memory, CL_TRUE, place.offset + from, host_.size(), host_.data(), 0,
                                   nullptr, nullptr),
               "looking for NaN");
      look_at(buffer.dtype(), from / size, finding);
    }
  }
  return finding;
}

std::string NanCheck::described(std::uint32_t index) const {
  const fb::Buffer& buffer = *loaded_.plan().buffers()->Get(index);
  return buffer.name() && buffer.name()->size() > 0 ? "buffer '" + buffer.name()->str() + "'"
                                                    : "buffer " + std::to_string(index);
}

void NanCheck::begin() {
  const auto refuse = [&](const std::string& what, const Finding& finding) {
    throw Failure(OCLC_E_NAN, what + " holds a NaN at element " + std::to_string(finding.first) + " (" +
                                  std::to_string(finding.nans) + " of " + std::to_string(finding.elements) +
                                  "), before anything ran");
  };
  const fb::Entry& entry = *loaded_.plan().entries()->Get(entry_);
  for (std::uint32_t i = 0; i < count(entry.inputs()); ++i)
    if (const Finding f = look(static_cast<std::uint32_t>(entry.inputs()->Get(i)->buffer())); f.nans > 0)
      refuse("input '" + entry.inputs()->Get(i)->name()->str() + "'", f);
  const auto* variables = loaded_.plan().variables();
  for (std::uint32_t b = 0; b < count(loaded_.plan().buffers()); ++b) {
    if (loaded_.plan().buffers()->Get(b)->kind() != fb::BufferKind::state) continue;
    const Finding f = look(b);
    if (f.nans == 0) continue;
    // The variable that the element belongs to has the last offset before it.
    const fb::Variable* owner = nullptr;
    for (std::uint32_t i = 0; i < count(variables); ++i) {
      const fb::Variable* v = variables->Get(i);
      if (v->buffer() != static_cast<int>(b) || static_cast<std::uint64_t>(v->offset()) > f.first) continue;
      if (!owner || v->offset() > owner->offset()) owner = v;
    }
    if (!owner) refuse(described(b), f);
    Finding within = f;
    within.first -= static_cast<std::uint64_t>(owner->offset());
    refuse("variable '" + owner->name()->str() + "'", within);
  }
}

// What lay in the arena before is no value of this run.
void NanCheck::before(const Schedule::Leaf& leaf, std::uint32_t index) {
  for (const auto& slot : leaf.slots) each_buffer(*slot.arg, [&](std::uint32_t buffer, bool) { clear_before(buffer, index); });
}

void NanCheck::clear_before(std::uint32_t buffer, std::uint32_t index) {
  if (loaded_.plan().buffers()->Get(buffer)->kind() != fb::BufferKind::arena) return;
  const std::uint32_t root = root_[buffer];
  const Place& place = schedule_.places()[buffer];
  const auto clear = [&](const Range& range) { context_.clear(place.memory, place.offset + range.begin, range.bytes); };
  if (count(loaded_.plan().buffers()->Get(buffer)->pieces()) > 0) {
    for (const Range& range : ranges(buffer, static_cast<int>(index), true)) clear(range);
    return;
  }
  if (cleared_[root] || first_[root] != static_cast<int>(index) || storage_[root] == 0) return;
  cleared_[root] = true;
  clear({0, storage_[root]});
}

void NanCheck::after(const Schedule::Leaf& leaf, std::uint32_t index) {
  std::vector<std::uint32_t> written;
  for (const auto& slot : leaf.slots)
    each_buffer(*slot.arg, [&](std::uint32_t buffer, bool writes) {
      if (writes) written.push_back(buffer);
    });
  for (const std::uint32_t buffer : written) {
    const Finding f = look(buffer, static_cast<int>(index));
    const std::string who = (leaf.nodes.empty() ? "" : "node " + leaf.nodes + ", ") + "kernel '" + leaf.name + "', launch " +
                            std::to_string(index) + " of entry point '" + loaded_.plan().entries()->Get(entry_)->name()->str() +
                            "'";
    if (f.nans > 0)
      throw Failure(OCLC_E_NAN, who + ", made a NaN: " + described(buffer) + " at element " + std::to_string(f.first) + " (" +
                                    std::to_string(f.nans) + " of " + std::to_string(f.elements) +
                                    "); what it read holds no NaN" +
                                    (infinity_.empty() ? "" : ", but there are infinities, first made by " + infinity_));
    if (f.infinities > 0 && infinity_.empty()) infinity_ = who;
  }
}

}  // namespace oclc::runtime
