#include "runtime/package/memory.h"

#include <algorithm>
#include <string>

#include "runtime/package/error.h"
#include "runtime/package/verify/verify.h"

namespace oclc::package {

namespace {

// The last of `lives` is that of the whole buffer: it becomes the first piece's, and the others are tied to it.
void add_pieces(const oclc::plan::Buffer& buffer, std::uint64_t bytes, std::vector<BufferLife>& lives) {
  const auto& pieces = *buffer.pieces();
  const auto offset = [&](std::uint32_t i) {
    return i == pieces.size() ? bytes : std::min(bytes, static_cast<std::uint64_t>(pieces.Get(i)->offset()));
  };
  const BufferLife whole = lives.back();
  const int first = static_cast<int>(lives.size()) - 1;
  for (std::uint32_t i = 0; i < pieces.size(); ++i) {
    const BufferLife life{offset(i + 1) - offset(i), static_cast<int>(pieces.Get(i)->first()), whole.last, i == 0 ? -1 : first,
                          offset(i)};
    if (i == 0)
      lives.back() = life;
    else
      lives.push_back(life);
  }
}

// Calls `use(index)` for each symbol of `e`.
template <class F>
void each_symbol(const oclc::plan::Expr* e, F use) {
  if (!e || !e->code()) return;
  for (std::uint32_t i = 0; i < e->code()->size(); ++i) {
    const std::int64_t op = e->code()->Get(i);
    if (op > static_cast<std::int64_t>(ExprOp::symbol)) continue;
    ++i;
    if (op == static_cast<std::int64_t>(ExprOp::symbol)) use(static_cast<std::size_t>(e->code()->Get(i)));
  }
}

void number_reads(const oclc::plan::Plan& plan, const flatbuffers::Vector<flatbuffers::Offset<oclc::plan::Step>>* steps,
                  int& reads, std::vector<int>& of_symbol) {
  for (std::uint32_t i = 0; steps && i < steps->size(); ++i) {
    if (const auto* loop = steps->Get(i)->body_as_Loop()) number_reads(plan, loop->body(), reads, of_symbol);
    const auto* read = steps->Get(i)->body_as_Read();
    if (!read || !binds_open(plan, *read)) continue;
    ++reads;
    for (const int dim : *read->dims())
      if (plan.symbols()->Get(static_cast<std::uint32_t>(dim))->open()) of_symbol[static_cast<std::size_t>(dim)] = reads;
  }
}

}  // namespace

std::vector<bool> open_symbols(const oclc::plan::Plan& plan) {
  std::vector<bool> open;
  for (std::uint32_t i = 0; plan.symbols() && i < plan.symbols()->size(); ++i) {
    const auto* symbol = plan.symbols()->Get(i);
    bool waits = symbol->open();
    each_symbol(symbol->upper(), [&](std::size_t k) { waits = waits || open[k]; });  // which come before it
    open.push_back(waits);
  }
  return open;
}

bool is_open(const oclc::plan::Binding& binding, const std::vector<bool>& open_symbols) {
  bool open = false;
  for (std::uint32_t d = 0; binding.shape() && d < binding.shape()->size(); ++d)
    each_symbol(binding.shape()->Get(d), [&](std::size_t k) { open = open || open_symbols[k]; });
  return open;
}

bool binds_open(const oclc::plan::Plan& plan, const oclc::plan::Read& read) {
  return std::any_of(read.dims()->begin(), read.dims()->end(),
                     [&](int dim) { return plan.symbols()->Get(static_cast<std::uint32_t>(dim))->open(); });
}

Segments segments_of(const oclc::plan::Plan& plan, std::uint32_t entry) {
  Segments s;
  const std::uint32_t symbols = plan.symbols() ? plan.symbols()->size() : 0;
  s.reads.assign(symbols, 0);
  s.buffers.assign(plan.buffers() ? plan.buffers()->size() : 0, 0);
  int reads = 0;
  number_reads(plan, plan.entries()->Get(entry)->steps(), reads, s.reads);
  if (reads == 0) return s;
  // A dimension that is at most an open one waits for that.
  for (std::uint32_t i = 0; i < symbols; ++i) {
    if (!plan.symbols()->Get(i)->open())
      each_symbol(plan.symbols()->Get(i)->upper(), [&](std::size_t k) { s.reads[i] = std::max(s.reads[i], s.reads[k]); });
  }
  for (std::uint32_t i = 0; i < s.buffers.size(); ++i)
    each_symbol(plan.buffers()->Get(i)->bytes(), [&](std::size_t k) { s.buffers[i] = std::max(s.buffers[i], s.reads[k]); });
  return s;
}

std::vector<std::uint32_t> storages(const oclc::plan::Plan& plan) {
  const std::uint32_t n = plan.buffers() ? plan.buffers()->size() : 0;
  constexpr std::uint32_t kUnknown = UINT32_MAX;
  std::vector<std::uint32_t> storage(n, kUnknown), path;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint32_t at = i;
    for (path.clear(); storage[at] == kUnknown; at = static_cast<std::uint32_t>(plan.buffers()->Get(at)->alias())) {
      path.push_back(at);
      if (plan.buffers()->Get(at)->alias() < 0) storage[at] = at;
      if (storage[at] == at) break;
    }
    for (const std::uint32_t passed : path) storage[passed] = storage[at];
  }
  return storage;
}

std::vector<Range> symbol_ranges(const oclc::plan::Plan& plan, std::span<const std::int64_t> symbols) {
  std::vector<Range> ranges;
  for (const std::int64_t value : symbols) ranges.push_back({value, value});
  for (std::uint32_t i = 0; plan.symbols() && i < plan.symbols()->size(); ++i) {
    const auto* symbol = plan.symbols()->Get(i);
    if (!symbol->upper() || symbol->open()) continue;
    const auto upper = evaluate_range({symbol->upper()->code()->data(), symbol->upper()->code()->size()}, ranges);
    if (!upper || upper->high < 0)
      throw Error(ErrorKind::invalid, "the largest value of '" + symbol->name()->str() + "' " +
                                          (upper ? "is negative" : "overflows") + " with these dimensions");
    ranges[i] = {std::min(symbol->lo(), upper->high), upper->high};
  }
  return ranges;
}

std::vector<std::int64_t> largest_reads(const oclc::plan::Plan& plan, std::span<const std::int64_t> symbols) {
  std::vector<std::int64_t> values;
  for (const Range& range : symbol_ranges(plan, symbols)) values.push_back(range.high);
  return values;
}

EntryMemory plan_memory(const oclc::plan::Plan& plan, std::uint32_t entry, std::span<const std::int64_t> given, int segment) {
  const std::vector<Range> symbols = symbol_ranges(plan, given);
  const std::vector<int> segments = segments_of(plan, entry).buffers;
  EntryMemory memory;
  const std::uint32_t n = plan.buffers() ? plan.buffers()->size() : 0;
  memory.sizes.assign(n, 0);
  memory.offsets.assign(n, 0);
  const std::vector<std::uint32_t> root = storages(plan);
  std::vector<int> life_of(n, -1);
  std::vector<BufferLife> lives;
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto* buffer = plan.buffers()->Get(i);
    const bool arena = buffer->kind() == oclc::plan::BufferKind::arena;
    if ((arena && buffer->entry() != static_cast<int>(entry)) || segments[i] != segment) continue;
    const auto bytes = evaluate_range({buffer->bytes()->code()->data(), buffer->bytes()->code()->size()}, symbols);
    if (!bytes || bytes->high < 0)
      throw Error(ErrorKind::invalid, "the size of buffer '" + (buffer->name() ? buffer->name()->str() : std::to_string(i)) +
                                          (bytes ? "' is negative" : "' overflows") + " with these dimensions");
    memory.sizes[i] = static_cast<std::uint64_t>(bytes->high);
    if (!arena) continue;
    const std::uint32_t storage = root[i];
    if (life_of[storage] < 0) {
      life_of[storage] = static_cast<int>(lives.size());
      lives.push_back({0, buffer->first(), buffer->last()});
    }
    BufferLife& life = lives[static_cast<std::size_t>(life_of[storage])];
    life.bytes = std::max(life.bytes, memory.sizes[i]);
    life.first = std::min(life.first, buffer->first());
    life.last = std::max(life.last, buffer->last());
    if (buffer->pieces() && buffer->pieces()->size() > 0) add_pieces(*buffer, memory.sizes[i], lives);
  }
  const ArenaLayout layout = layout_arena(lives);
  memory.arena_bytes = layout.bytes;
  memory.live_bytes = layout.live_bytes;
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto* buffer = plan.buffers()->Get(i);
    if (buffer->kind() == oclc::plan::BufferKind::arena && buffer->entry() == static_cast<int>(entry) && segments[i] == segment)
      memory.offsets[i] = layout.offsets[static_cast<std::size_t>(life_of[root[i]])];
  }
  return memory;
}

std::string problem_of_sizes(const oclc::plan::Plan& plan, std::uint32_t entry, const EntryMemory& memory) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;
  const auto* symbols = plan.symbols();
  const bool any_size = symbols && std::any_of(symbols->begin(), symbols->end(),
                                               [](const oclc::plan::Symbol* s) { return !s->loop() && s->hi() == INT64_MAX; });
  std::uint64_t total = memory.arena_bytes;
  for (std::uint32_t i = 0; i < memory.sizes.size(); ++i) {
    const auto& buffer = *plan.buffers()->Get(i);
    const bool arena = buffer.kind() == oclc::plan::BufferKind::arena;
    const std::uint64_t elements = memory.sizes[i] / dtype_bytes(buffer.dtype());
    if (any_size && elements > kMaxElements)
      return "buffer '" + (buffer.name() ? buffer.name()->str() : std::to_string(i)) + "' of entry point '" +
             plan.entries()->Get(entry)->name()->str() + "' has " + std::to_string(elements) +
             " elements with these dimensions; a plan for any size has at most " + std::to_string(kMaxElements) +
             " in one: compile the model for this size with --dim";
    if (!arena && (memory.sizes[i] > kMaxBytes || (total += memory.sizes[i]) > kMaxBytes))
      return "entry point '" + plan.entries()->Get(entry)->name()->str() +
             "' takes more than 2^60 bytes with these dimensions; use a smaller batch";
  }
  return {};
}

}  // namespace oclc::package
