// Device memory of a plan for given symbol values. The compiler prints it, the runtime allocates by it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan_generated.h"
#include "runtime/package/arena.h"
#include "runtime/package/expr_code.h"

namespace oclc::package {

struct EntryMemory {
  std::vector<std::uint64_t> sizes;    // bytes of every buffer of the plan (0 for arena buffers of other entry points)
  std::vector<std::uint64_t> offsets;  // of this entry point's arena buffers in the arena (an alias has its storage's offset)
  std::uint64_t arena_bytes = 0;
  std::uint64_t live_bytes = 0;
};

// Behind which Read step of an entry point sizes are known: those that bind open symbols are numbered from 1 on, in the order
// of the schedule; 0 stands for the beginning.
struct Segments {
  std::vector<int> reads;    // of each symbol
  std::vector<int> buffers;  // of each buffer's size
};
// Of each symbol, whether it is open or its largest value depends on one that is.
std::vector<bool> open_symbols(const oclc::plan::Plan& plan);
// Whether the shape of an input or output depends on those.
bool is_open(const oclc::plan::Binding& binding, const std::vector<bool>& open_symbols);
bool binds_open(const oclc::plan::Plan& plan, const oclc::plan::Read& read);
Segments segments_of(const oclc::plan::Plan& plan, std::uint32_t entry);

// Of each buffer, the one whose storage it shares in the end, often itself.
std::vector<std::uint32_t> storages(const oclc::plan::Plan& plan);

// What values the symbols may have while the plan runs: `symbols`, and for those that Read steps bind all up to their bounds,
// open ones aside.
std::vector<Range> symbol_ranges(const oclc::plan::Plan& plan, std::span<const std::int64_t> symbols);

// `symbols` with the upper bounds of those that Read steps bind, open ones aside.
std::vector<std::int64_t> largest_reads(const oclc::plan::Plan& plan, std::span<const std::int64_t> symbols);

// Lays out the arena of entry point `entry`: the buffers of one segment, which has an arena of its own; those of others count
// as empty. `symbols[i]` is the value of plan symbol i (those bound while the plan runs: any, but the open ones known by then).
// Throws Error{invalid} if a size is negative or overflows. `plan` is verified.
EntryMemory plan_memory(const oclc::plan::Plan& plan, std::uint32_t entry, std::span<const std::int64_t> symbols,
                        int segment = 0);

// What is too large about the memory of an entry point on any device, or empty: buffers of plans for any size have at most
// kMaxElements elements, and all together fewer than 2^60 bytes. Compiler's figures, `oclc_plan_memory` and runs ask it.
std::string problem_of_sizes(const oclc::plan::Plan& plan, std::uint32_t entry, const EntryMemory& memory);

}  // namespace oclc::package
