// Buffers: their places, their lives, what shares storage.
#include "runtime/package/verify/plan_verifier.h"

#include <algorithm>
#include <climits>

#include "runtime/package/arena.h"

namespace oclc::package {

namespace fb = oclc::plan;

int PlanVerifier::parts_of(const fb::Launch& l) { return std::max(1, static_cast<int>(count(l.parts()))); }

void PlanVerifier::schedule_sizes() {
  if (count(plan_.entries()) > kMaxEntries)
    reject("entry points", number(count(plan_.entries())) + ", allowed are " + number(kMaxEntries));
  for (std::uint32_t i = 0; i < count(plan_.entries()); ++i) sizes_.push_back(leaves(plan_.entries()->Get(i)->steps(), 0));
}

std::int64_t PlanVerifier::leaves(const flatbuffers::Vector<flatbuffers::Offset<fb::Step>>* steps, std::uint32_t depth) const {
  if (depth > kMaxLoopDepth) reject("schedule", "loops are nested deeper than " + number(kMaxLoopDepth));
  std::int64_t total = 0;
  for (std::uint32_t i = 0; i < count(steps); ++i) {
    const auto* loop = steps->Get(i)->body_as_Loop();
    const auto* launch = steps->Get(i)->body_as_Launch();
    if (steps->Get(i)->body_as_Read()) continue;
    total += loop ? leaves(loop->body(), depth + 1) : launch ? parts_of(*launch) : 1;
  }
  return total;
}

std::string PlanVerifier::buffer_name(std::int64_t index) const {
  const auto* buffer = plan_.buffers()->Get(static_cast<std::uint32_t>(index));
  return "buffer " + number(index) + " '" + std::string(text(buffer->name())) + "'";
}

void PlanVerifier::buffers() {
  if (count(plan_.buffers()) > kMaxBuffers)
    reject("buffers", number(count(plan_.buffers())) + ", allowed are " + number(kMaxBuffers));
  use_.assign(count(plan_.buffers()), 0);
  for (std::uint32_t i = 0; i < count(plan_.buffers()); ++i) {
    const auto* buffer = plan_.buffers()->Get(i);
    name("buffer " + number(i), buffer->name(), false);
    const std::string where = buffer_name(i);
    dtype(where, buffer->dtype());
    if (buffer->kind() > fb::BufferKind::MAX) reject(where, "unknown kind " + number(static_cast<int>(buffer->kind())));
    expr(where + " size", buffer->bytes(), Scope::symbolic);
    if (buffer->kind() != fb::BufferKind::arena && buffer->alias() != -1) reject(where, "only arena buffers may be aliases");
    const bool port = buffer->kind() == fb::BufferKind::input || buffer->kind() == fb::BufferKind::output;
    if (buffer->pooled() && !port && buffer->kind() != fb::BufferKind::state)
      reject(where, "only states, inputs and outputs are pooled");
    if (buffer->pooled() && port && (buffer->dtype() == fb::DType::string_ || has_open_size(buffer->bytes())))
      reject(where, "is pooled, but holds strings or has a size that is read late");
    if (buffer->kind() != fb::BufferKind::arena && count(buffer->pieces()) > 0) reject(where, "only arena buffers have pieces");
    switch (buffer->kind()) {
      case fb::BufferKind::arena:
        arena_buffer(where, *buffer);
        break;
      case fb::BufferKind::constant:
        constant_slice(where, *buffer);
        break;
      case fb::BufferKind::state:
        if (buffer->has_initial())
          constant_slice(where, *buffer);
        else if (constant_value(where + " size", buffer->bytes()) < 0)
          reject(where, "its size is negative");
        break;
      default:
        break;
    }
  }
}

void PlanVerifier::constant_slice(const std::string& where, const fb::Buffer& buffer) const {
  const std::int64_t bytes = constant_value(where + " size", buffer.bytes());
  if (bytes < 0) reject(where, "its size is negative");
  const auto size = static_cast<std::uint64_t>(bytes);
  if (size > constant_bytes_ || buffer.constant_offset() > constant_bytes_ - size)
    reject(where, "its slice [" + std::to_string(buffer.constant_offset()) + ", +" + std::to_string(size) +
                      ") lies outside the constant section of " + std::to_string(constant_bytes_) + " bytes");
  if (buffer.constant_offset() % 64 != 0) reject(where, "its place in the constant section is not a multiple of 64");
}

void PlanVerifier::arena_buffer(const std::string& where, const fb::Buffer& buffer) const {
  if (buffer.entry() < 0 || static_cast<std::size_t>(buffer.entry()) >= sizes_.size())
    reject(where, "entry point " + number(buffer.entry()) + " of " + number(static_cast<std::int64_t>(sizes_.size())));
  const std::int64_t size = sizes_[static_cast<std::size_t>(buffer.entry())];
  // What no step uses, all buffers of an empty schedule too, stands at the beginning.
  if (buffer.first() < 0 || buffer.last() < buffer.first() || buffer.last() >= std::max<std::int64_t>(size, 1))
    reject(where, "its life " + number(buffer.first()) + " to " + number(buffer.last()) + " is not within the schedule of " +
                      number(size) + " launches");
  pieces(where, buffer);
  if (buffer.alias() == -1) return;
  if (buffer.alias() < -1 || buffer.alias() >= static_cast<std::int64_t>(count(plan_.buffers())))
    reject(where, "is an alias of buffer " + number(buffer.alias()) + " of " + number(count(plan_.buffers())));
  const auto* target = plan_.buffers()->Get(static_cast<std::uint32_t>(buffer.alias()));
  if (target->kind() != fb::BufferKind::arena || target->entry() != buffer.entry())
    reject(where, "is an alias of " + buffer_name(buffer.alias()) + ", which is no arena buffer of the same entry point");
  for (const fb::Expr* size : {buffer.bytes(), target->bytes()}) {
    for (const std::int64_t used : symbols_of(*size)) {
      if (plan_.symbols()->Get(static_cast<std::uint32_t>(used))->upper())
        reject(where, "is an alias, and its size or the storage's is known only when the plan runs");
    }
  }
  if (count(target->pieces()) > 0) reject(where, "is an alias of " + buffer_name(buffer.alias()) + ", whose pieces live apart");
}

void PlanVerifier::pieces(const std::string& where, const fb::Buffer& buffer) const {
  if (count(buffer.pieces()) == 0) return;
  if (buffer.alias() >= 0) reject(where, "has pieces and is an alias");
  refer(count(buffer.pieces()) * sizeof(fb::Piece));
  const std::vector<std::int64_t> symbols = symbols_of(*buffer.bytes());
  const std::int64_t bytes = symbols.empty() ? constant_value(where + " size", buffer.bytes()) : INT64_MAX;
  std::int64_t earliest = INT_MAX, before = -1;
  for (const fb::Piece* piece : *buffer.pieces()) {
    if (piece->offset() <= before || (before < 0 && piece->offset() != 0) ||
        piece->offset() % static_cast<std::int64_t>(kArenaAlignment) != 0)
      reject(where, "a piece at " + number(piece->offset()) + ", while offsets ascend from 0 in multiples of " +
                        number(static_cast<std::int64_t>(kArenaAlignment)));
    if (piece->first() < buffer.first() || piece->first() > buffer.last())
      reject(where, "a piece used from " + number(piece->first()) + " on, outside its life " + number(buffer.first()) + " to " +
                        number(buffer.last()));
    if (piece->offset() > 0 && piece->offset() - static_cast<std::int64_t>(kArenaAlignment) >= bytes)
      reject(where, "a piece at " + number(piece->offset()) + ", beyond its " + number(bytes) + " bytes");
    before = piece->offset();
    earliest = std::min(earliest, piece->first());
  }
  if (earliest != buffer.first())
    reject(where, "its first piece is used from " + number(earliest) + " on, itself from " + number(buffer.first()));
}

void PlanVerifier::alias_chains() {
  const std::uint32_t n = count(plan_.buffers());
  root_.assign(n, -1);
  first_.assign(n, INT_MAX);
  last_.assign(n, 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    std::vector<std::uint32_t> path;
    std::int64_t at = i;
    while (root_[static_cast<std::size_t>(at)] < 0) {
      path.push_back(static_cast<std::uint32_t>(at));
      if (path.size() > n) reject(buffer_name(i), "its alias chain is a cycle");
      const int next = plan_.buffers()->Get(static_cast<std::uint32_t>(at))->alias();
      if (next < 0) break;
      at = next;
    }
    const std::int64_t root = root_[static_cast<std::size_t>(at)] < 0 ? at : root_[static_cast<std::size_t>(at)];
    for (const std::uint32_t p : path) root_[p] = root;
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto* buffer = plan_.buffers()->Get(i);
    const auto root = static_cast<std::size_t>(root_[i]);
    first_[root] = std::min(first_[root], buffer->first());
    last_[root] = std::max(last_[root], buffer->last());
  }
}

}  // namespace oclc::package
