#include "compiler/kernels/ragged_objects.h"

#include <algorithm>

#include "compiler/support/error.h"

namespace oclc {

std::optional<std::size_t> RaggedObjects::find(int buffer) const {
  const Buffer& wanted = schedule_->buffers[static_cast<std::size_t>(buffer)];
  const bool shared = wanted.kind == BufferKind::arena || wanted.kind == BufferKind::constant;
  const auto found = std::find_if(list_.begin(), list_.end(), [&](const RaggedObject& o) {
    return o.kind == wanted.kind && o.dtype == wanted.dtype && (shared || o.buffer == buffer);
  });
  if (found == list_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - list_.begin());
}

void RaggedObjects::add(const Kernel& kernel) {
  for (const Operand& o : kernel.operands) {
    const Buffer& buffer = schedule_->buffers[static_cast<std::size_t>(o.buffer)];
    const auto known = find(o.buffer);
    if (!known) {
      list_.push_back({buffer.kind, buffer.dtype, o.buffer, o.written});
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
