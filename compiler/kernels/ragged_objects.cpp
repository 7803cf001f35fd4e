#include "compiler/kernels/ragged_objects.h"

#include <algorithm>

#include "compiler/ir/typical.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

// States and ports of more bytes keep objects of their own: host memory of larger ports is used in place.
constexpr std::int64_t kMostPooledState = 1 << 20, kMostPooledPort = 16 << 10;

}  // namespace

RaggedObjects RaggedObjects::of_group(const Schedule& schedule, std::span<const Kernel* const> members) {
  RaggedObjects apart(schedule, false), pooled(schedule, true);
  for (const Kernel* member : members) {
    apart.add(*member);
    pooled.add(*member);
  }
  return apart.list_.size() <= kMostRaggedObjects ? apart : pooled;
}

RaggedObject::Kind RaggedObjects::kind_of(int number) const {
  const Buffer& buffer = schedule_->buffers[static_cast<std::size_t>(number)];
  const std::int64_t bytes = typical_extent(buffer.elements) * static_cast<std::int64_t>(size_bytes(buffer.dtype));
  switch (buffer.kind) {
    case BufferKind::arena:
      return RaggedObject::Kind::arena;
    case BufferKind::constant:
      return RaggedObject::Kind::constants;
    case BufferKind::state:
      return buffer.elements.is_constant() && bytes <= kMostPooledState ? RaggedObject::Kind::states : RaggedObject::Kind::own;
    default:
      return pools_ports_ && bytes <= kMostPooledPort && buffer.dtype != DType::string ? RaggedObject::Kind::ports
                                                                                       : RaggedObject::Kind::own;
  }
}

bool RaggedObjects::is_pooled(int buffer) const {
  const RaggedObject::Kind kind = kind_of(buffer);
  return kind == RaggedObject::Kind::states || kind == RaggedObject::Kind::ports;
}

std::optional<std::size_t> RaggedObjects::find(int buffer) const {
  const RaggedObject::Kind kind = kind_of(buffer);
  const DType dtype = schedule_->buffers[static_cast<std::size_t>(buffer)].dtype;
  const auto found = std::find_if(list_.begin(), list_.end(), [&](const RaggedObject& o) {
    return o.kind == kind && o.dtype == dtype && (kind != RaggedObject::Kind::own || o.buffer == buffer);
  });
  if (found == list_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - list_.begin());
}

void RaggedObjects::add(const Kernel& kernel) {
  for (const Operand& o : kernel.operands) {
    const auto known = find(o.buffer);
    if (!known) {
      list_.push_back({kind_of(o.buffer), schedule_->buffers[static_cast<std::size_t>(o.buffer)].dtype, o.buffer, o.written});
      continue;
    }
    RaggedObject& object = list_[*known];
    if (o.written && !object.written) object.buffer = o.buffer;
    object.written = object.written || o.written;
  }
}

std::size_t RaggedObjects::of(int buffer) const {
  const auto known = find(buffer);
  OCLC_CHECK(known, "an operand of a ragged group lies in one of its memory objects");
  return *known;
}

std::size_t RaggedObjects::count_with(const Kernel& kernel) const {
  RaggedObjects more = *this;
  more.add(kernel);
  return more.list_.size();
}

}  // namespace oclc
