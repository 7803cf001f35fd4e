#include "compiler/plan/buffer_lives.h"

#include <algorithm>

namespace oclc {
namespace {

std::int64_t known_bytes(const Buffer& b) { return b.elements.value() * static_cast<std::int64_t>(size_bytes(b.dtype)); }

bool has(const std::vector<HostOperand>& list, int buffer) {
  return std::any_of(list.begin(), list.end(), [&](const HostOperand& o) { return o.buffer == buffer; });
}

}  // namespace

void BufferLives::begin_entry(int entry) {
  clock_ = 0;
  entry_ = entry;
}

void BufferLives::touch(int buffer, int at) {
  if (static_cast<std::size_t>(buffer) >= lives_.size()) lives_.resize(buffers_.size());
  Life& life = lives_[static_cast<std::size_t>(buffer)];
  if (life.first < 0) life.first = at;
  life.last = std::max(life.last, at);
  life.entry = entry_;
}

void BufferLives::touch_operand(const Kernel& kernel, std::size_t operand, int at) {
  const int buffer = kernel.operands[operand].buffer;
  touch(buffer, at);
  const Buffer& b = buffers_[static_cast<std::size_t>(buffer)];
  if (b.kind != BufferKind::arena || !b.elements.is_constant()) return;
  for (const BufferUse& use : uses_of(kernel, operand, known_bytes(b), at)) uses_[buffer].push_back(use);
}

void BufferLives::touch_whole(int buffer, int at) {
  touch(buffer, at);
  whole_.insert(buffer);
}

void BufferLives::add_loop(int begin, std::span<const Step> body) { loops_.push_back({begin, clock_ - 1, body}); }

void BufferLives::extend_over_loops() {
  for (const Loop& loop : loops_) {
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      Life& life = lives_[i];
      if (life.entry != entry_ || life.last < loop.begin || life.first > loop.end) continue;
      whole_.insert(static_cast<int>(i));
      const bool inside = life.first >= loop.begin && life.last <= loop.end;
      if (inside && first_use_writes(loop.body, static_cast<int>(i)).value_or(true)) continue;
      life.first = std::min(life.first, loop.begin);
      life.last = std::max(life.last, loop.end);
    }
  }
  loops_.clear();
}

Life BufferLives::of(int buffer) const {
  return static_cast<std::size_t>(buffer) < lives_.size() ? lives_[static_cast<std::size_t>(buffer)] : Life();
}

std::vector<plan::Piece> BufferLives::pieces(int buffer) const {
  const auto uses = uses_.find(buffer);
  if (uses == uses_.end() || whole_.count(buffer)) return {};
  std::vector<plan::Piece> out;
  for (const BufferPiece& p : pieces_of(known_bytes(buffers_[static_cast<std::size_t>(buffer)]), uses->second))
    out.emplace_back(p.offset, p.first);
  return out;
}

std::optional<bool> BufferLives::first_use_writes(std::span<const Step> list, int buffer) const {
  for (const Step& step : list) {
    if (const auto* product = step.as<GemmStep>()) {
      const Gemm& g = schedule_.gemms[static_cast<std::size_t>(product->gemm)];
      if (g.a == buffer || g.b == buffer) return false;
      if (g.c == buffer) return true;
      continue;
    }
    if (const auto* sizes = step.as<ReadingStep>()) {
      if (schedule_.readings[static_cast<std::size_t>(sizes->reading)].buffer == buffer) return false;
      continue;
    }
    if (const auto* host = step.as<HostStep>()) {
      const HostCall& call = schedule_.hosts[static_cast<std::size_t>(host->host)];
      if (has(call.inputs, buffer)) return false;
      if (has(call.outputs, buffer)) return true;
      continue;
    }
    if (step.is<MegakernelStep>()) {
      if (const auto writes = first_use_writes(step.body(), buffer)) return writes;
      continue;
    }
    if (!step.is_kernel()) return false;
    const Kernel& kernel = schedule_.kernel(step);
    bool reads = false, writes = false;
    for (const Operand& o : kernel.operands) {
      if (o.buffer != buffer) continue;
      (o.written ? writes : reads) = true;
    }
    if (reads) return false;
    if (writes) return true;
  }
  return std::nullopt;
}

}  // namespace oclc
