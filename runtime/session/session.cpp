#include "runtime/session/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "runtime/device/huge_pages.h"
#include "runtime/device/quirks.h"
#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/container.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/expressions.h"

namespace oclc::runtime {

namespace fb = oclc::plan;

namespace {

// Less is copied faster than it is bound.
constexpr std::uint64_t kLeastSharedBytes = 16 << 10;

}  // namespace

Session::Session(std::shared_ptr<Context> context, std::shared_ptr<const package::Package> package)
    : context_(std::move(context)), package_(std::move(package)), strings_(package_->plan()) {
  context_->check_process();
  loaded_ = context_->load(context_, package_);
  stats_ = OCLC_INIT(oclc_stats);
  dims_.assign(count(plan().symbols()), -1);
  nothing_ = allocate(package::kArenaAlignment, "a placeholder");
  entries_.resize(count(plan().entries()));
  for (std::uint32_t i = 0; i < entries_.size(); ++i) make_entry(i);
  make_state();
}

Session::~Session() {
  for (Entry& e : entries_)
    for (Port& p : e.ports)
      if (p.mapped_memory && context_->queue())
        clEnqueueUnmapMemObject(context_->queue(), p.mapped_memory.get(), p.mapped, 0, nullptr, nullptr);
  if (context_->queue()) clFinish(context_->queue());
}

void Session::make_entry(std::uint32_t index) {
  const fb::Entry& source = *plan().entries()->Get(index);
  Entry& e = entries_[index];
  e.name = source.name()->str();
  for (const auto& [list, input] : {std::pair(source.inputs(), true), std::pair(source.outputs(), false)})
    for (std::uint32_t i = 0; i < count(list); ++i) {
      Port p;
      p.binding = list->Get(i);
      p.label = (input ? "input '" : "output '") + p.binding->name()->str() + "'";
      p.input = input;
      p.pooled = plan().buffers()->Get(static_cast<std::uint32_t>(p.binding->buffer()))->pooled();
      e.ports.push_back(std::move(p));
    }
  e.schedule = std::make_unique<Schedule>(*context_, *loaded_, index, strings_, limit_);
  e.schedule->set_lay_out([this, index](int segment, std::span<const std::int64_t> symbols, std::vector<Place>& places) {
    lay_out(index, segment, symbols, places);
  });
  e.used_symbols = e.schedule->used_symbols();
  const auto use = [&](int symbol) { e.used_symbols[static_cast<std::size_t>(symbol)] = true; };
  for (const Port& p : e.ports)
    for (std::uint32_t d = 0; d < rank(*p.binding); ++d) each_symbol(p.binding->shape()->Get(d), use);
  for (const Port& p : e.ports)
    each_symbol(plan().buffers()->Get(static_cast<std::uint32_t>(p.binding->buffer()))->bytes(), use);
  for (std::uint32_t i = 0; i < count(plan().buffers()); ++i) {
    const fb::Buffer& buffer = *plan().buffers()->Get(i);
    if (buffer.kind() == fb::BufferKind::arena && buffer.entry() == static_cast<int>(index)) each_symbol(buffer.bytes(), use);
  }
}

ClMem Session::allocate(std::uint64_t bytes, const std::string& what) {
  ClMem memory = context_->allocate(bytes, what);
  if (context_->facts().device_class == OCLC_DEVICE_CPU && bytes >= kLeastHuge && context_->queue())
    use_huge_pages(context_->queue(), memory.get(), bytes);
  return memory;
}

Session::Entry& Session::entry(std::uint32_t index) {
  if (index >= entries_.size())
    throw Failure(OCLC_E_ARGUMENT, "entry point " + std::to_string(index) + " of " + std::to_string(entries_.size()));
  return entries_[index];
}

Session::Port& Session::port(Entry& e, oclc_direction direction, const char* name) {
  if (direction != OCLC_INPUT && direction != OCLC_OUTPUT) throw Failure(OCLC_E_ARGUMENT, "unknown direction");
  if (!name) throw Failure(OCLC_E_ARGUMENT, "the name of the input or output is NULL");
  const bool input = direction == OCLC_INPUT;
  for (std::size_t i = 0; i < e.ports.size(); ++i) {
    const std::size_t at = (e.next_port + i) % e.ports.size();
    Port& p = e.ports[at];
    if (p.input != input || p.binding->name()->string_view() != name) continue;
    e.next_port = at + 1;
    return p;
  }
  std::string known;
  for (const Port& p : e.ports)
    if (p.input == input) known += (known.empty() ? "" : ", ") + p.binding->name()->str();
  throw Failure(OCLC_E_ARGUMENT, "entry point '" + e.name + "' has no " + (direction == OCLC_INPUT ? "input" : "output") +
                                     " '" + name + "'; it has: " + (known.empty() ? "none" : known));
}

void Session::check_memory(const Entry& e, const package::EntryMemory& memory) const {
  const auto index = static_cast<std::uint32_t>(&e - entries_.data());
  if (const std::string problem = package::problem_of_sizes(plan(), index, memory); !problem.empty())
    throw Failure(OCLC_E_BINDING, problem);
  std::uint64_t ports = 0;
  for (const Port& p : e.ports) ports += memory.sizes[static_cast<std::size_t>(p.binding->buffer())];
  const std::uint64_t total = memory.arena_bytes + ports + state_bytes_ + loaded_->constant_bytes();
  if (total > context_->memory_bytes())
    throw Failure(OCLC_E_MEMORY, "entry point '" + e.name + "' takes " + std::to_string(total) +
                                     " bytes with these dimensions (arena " + std::to_string(memory.arena_bytes) +
                                     ", inputs and outputs " + std::to_string(ports) + ", state " +
                                     std::to_string(state_bytes_) + ", constants " + std::to_string(loaded_->constant_bytes()) +
                                     "), " + context_->memory_text() + "; use a smaller batch");
}

void Session::ensure_arena(std::uint64_t bytes) {
  if (bytes <= arena_bytes_) return;
  arena_.reset();
  arena_bytes_ = 0;
  arena_ = allocate(bytes, "the arena");
  arena_bytes_ = bytes;
  arena_generation_ = ++generation_;
  for (Entry& e : entries_) e.dirty = true;
}

// Kernels address inputs and outputs as vectors: what begins elsewhere in a caller's buffer is copied.
bool Session::is_copied(const Port& p) const {
  return p.bound && p.bound->memory && (p.pooled || p.bound->offset % kPortAlignment != 0);
}

// Kernels may use the caller's host memory itself where the driver promises as much, unless it overlaps another port's: results
// would be written over what is still to be read.
bool Session::shares_host_memory(const Entry& e, const Port& p, std::uint64_t bytes) const {
  if (!has(context_->quirks(), Quirk::host_memory_is_seen) || !p.bound || !p.bound->host || p.moves) return false;
  if (bytes < kLeastSharedBytes || p.bound->bytes < bytes || p.binding->dtype() == fb::DType::string_) return false;
  const auto* begin = static_cast<const std::byte*>(p.bound->host);
  if (reinterpret_cast<std::uintptr_t>(begin) % kPortAlignment != 0) return false;
  return std::none_of(e.ports.begin(), e.ports.end(), [&](const Port& other) {
    if (&other == &p || !other.bound || !other.bound->host) return false;
    const auto* start = static_cast<const std::byte*>(other.bound->host);
    return std::less<>()(start, begin + bytes) && std::less<>()(begin, start + other.bound->bytes);
  });
}

Place Session::port_place(const Entry& e, Port& p, std::uint64_t bytes) {
  p.in_place = false;
  if (p.pooled && e.pool) return p.copied;  // empty ones too
  if (bytes == 0) return {nothing_.get(), 0, 0};
  if (p.bound && p.bound->memory && !is_copied(p)) return {p.bound->memory.get(), p.bound->offset, p.generation, bytes};
  if (shares_host_memory(e, p, bytes)) {
    if (p.wrapped_host != p.bound->host || p.wrapped_bytes != bytes) {
      cl_int code = CL_SUCCESS;
      p.wrapped = ClMem(clCreateBuffer(context_->cl(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, p.bound->host, &code));
      check_cl(code, "using the host memory of " + p.label);
      p.wrapped_host = p.bound->host;
      p.wrapped_bytes = bytes;
      p.generation = ++generation_;
    }
    p.in_place = true;
    return {p.wrapped.get(), 0, p.generation, bytes};
  }
  if (p.staging_bytes < bytes) {
    stats_.staging_bytes -= p.staging_bytes;
    p.staging.reset();
    p.staging_bytes = 0;
    p.staging = allocate(bytes, p.label);
    p.staging_bytes = bytes;
    stats_.staging_bytes += bytes;
    p.generation = ++generation_;
  }
  return p.copied = {p.staging.get(), 0, p.generation, bytes};
}

void Session::lay_out_pool(Entry& e) {
  std::uint64_t total = 0;
  for (Port& p : e.ports) {
    if (!p.pooled) continue;
    const std::uint64_t bytes = e.memory.sizes[static_cast<std::size_t>(p.binding->buffer())];
    p.copied = {nullptr, total, 0, bytes};
    total += package::align_up(bytes, package::kArenaAlignment);
  }
  if (total > e.pool_bytes) {
    stats_.staging_bytes -= e.pool_bytes;
    e.pool.reset();
    e.pool_bytes = 0;
    e.pool = allocate(total, "small inputs and outputs");
    e.pool_bytes = total;
    stats_.staging_bytes += total;
    e.pool_generation = ++generation_;
  }
  for (Port& p : e.ports) {
    if (!p.pooled) continue;
    p.copied.memory = e.pool.get();
    p.copied.generation = e.pool_generation;
  }
}

std::vector<Place> Session::places(Entry& e) {
  const std::uint32_t n = count(plan().buffers());
  std::vector<Place> result(n, Place{nothing_.get(), 0, 0});
  for (std::uint32_t i = 0; i < n; ++i) {
    const fb::Buffer& buffer = *plan().buffers()->Get(i);
    // All of an arena's buffers lie in it, empty ones too.
    if (e.memory.sizes[i] == 0 && (buffer.kind() != fb::BufferKind::arena || !arena_) &&
        buffer.kind() != fb::BufferKind::constant && buffer.kind() != fb::BufferKind::state)
      continue;
    switch (buffer.kind()) {
      case fb::BufferKind::arena:
        result[i] = {arena_.get(), e.memory.offsets[i], arena_generation_, e.memory.sizes[i]};
        break;
      case fb::BufferKind::constant:
        if (loaded_->constant(i).memory) result[i] = loaded_->constant(i);
        break;
      case fb::BufferKind::state:
        if (states_[i]) result[i] = {states_[i].get(), state_offsets_[i], 0, state_sizes_[i]};
        break;
      default:
        break;
    }
  }
  lay_out_pool(e);
  for (Port& p : e.ports) {
    const auto buffer = static_cast<std::size_t>(p.binding->buffer());
    result[buffer] = port_place(e, p, e.memory.sizes[buffer]);
  }
  return result;
}

void Session::lay_out(std::uint32_t index, int segment, std::span<const std::int64_t> symbols, std::vector<Place>& places) {
  Entry& e = entry(index);
  const std::vector<int> segments = package::segments_of(plan(), index).buffers;
  package::EntryMemory memory;
  try {
    memory = package::plan_memory(plan(), index, symbols, segment);
  } catch (const package::Error& error) {
    throw Failure(OCLC_E_BINDING, std::string(error.what()) + ", which the model computes");
  }
  if (e.late.size() < static_cast<std::size_t>(segment)) e.late.resize(static_cast<std::size_t>(segment));
  Entry::Late& late = e.late[static_cast<std::size_t>(segment) - 1];
  std::uint64_t others = 0;
  for (const Entry::Late& other : e.late) others += &other == &late ? 0 : other.bytes;
  package::EntryMemory all = e.memory;
  all.arena_bytes += others + memory.arena_bytes;
  for (std::size_t i = 0; i < segments.size(); ++i)
    if (segments[i] == segment) all.sizes[i] = memory.sizes[i];
  check_memory(e, all);
  if (memory.arena_bytes > late.bytes) {
    late.memory.reset();
    late.bytes = 0;
    late.memory = allocate(memory.arena_bytes, "what depends on sizes that the model computes");
    late.bytes = memory.arena_bytes;
    late.generation = ++generation_;
  }
  for (std::uint32_t i = 0; i < segments.size(); ++i) {
    if (segments[i] != segment) continue;
    e.memory.sizes[i] = memory.sizes[i];
    e.memory.offsets[i] = memory.offsets[i];
    if (plan().buffers()->Get(i)->kind() != fb::BufferKind::arena) continue;
    places[i] = memory.sizes[i] == 0 ? Place{nothing_.get(), 0, 0}
                                     : Place{late.memory.get(), memory.offsets[i], late.generation, memory.sizes[i]};
  }
  for (Port& p : e.ports) {
    const auto buffer = static_cast<std::size_t>(p.binding->buffer());
    if (segments[buffer] != segment) continue;
    check_room(p, memory.sizes[buffer], shape_text(plan(), p.binding->shape()));
    places[buffer] = port_place(e, p, memory.sizes[buffer]);
  }
  check_overlap(e);
}

void Session::prepare(std::uint32_t index) {
  Entry& e = entry(index);
  context_->check_process();
  check_unmapped(e);
  if (!e.dirty && !e.moved) return;
  if (!e.dirty) return prepare_moved(e);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::int64_t> symbols = resolve_symbols(e, true);
  if (!e.laid_out || symbols != e.symbols) {
    package::EntryMemory memory = package::plan_memory(plan(), index, symbols);  // what waits for a Read step comes in lay_out
    check_memory(e, memory);
    e.memory = std::move(memory);
    e.laid_out = false;
  }
  check_shapes(e, symbols);
  ensure_arena(e.memory.arena_bytes);
  if (e.schedule->bind(symbols, places(e))) {
    e.recorded.reset();
    e.was_enqueued = false;
  }
  e.symbols = std::move(symbols);
  e.laid_out = true;
  e.recording_failed = false;
  e.dirty = e.moved = false;
  for (Port& p : e.ports) p.moved = false;
  stats_.live_bytes = e.memory.live_bytes;
  ++stats_.preparations;
  stats_.prepare_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
}

// Sizes, and with them all but the arguments that pass the ports' memory, are those of the last preparation.
void Session::prepare_moved(Entry& e) {
  check_overlap(e);
  std::vector<std::pair<std::size_t, Place>> moved;
  for (Port& p : e.ports) {
    if (!p.moved) continue;
    const auto buffer = static_cast<std::size_t>(p.binding->buffer());
    moved.emplace_back(buffer, port_place(e, p, e.memory.sizes[buffer]));
    p.moved = false;
  }
  e.moved = false;
  if (e.schedule->move(moved, e.symbols)) {
    e.recorded.reset();
    e.was_enqueued = false;
  }
  ++stats_.preparations;
}

oclc_stats Session::stats() const {
  oclc_stats stats = stats_;
  stats.arena_bytes = arena_bytes_;
  for (const Entry& e : entries_)
    for (const Entry::Late& late : e.late) stats.arena_bytes += late.bytes;
  stats.constant_bytes = loaded_->constant_bytes();
  stats.state_bytes = state_bytes_;
  stats.train_steps = steps_;
  stats.build_ns = loaded_->build_ns();
  stats.upload_ns = loaded_->upload_ns();
  stats.programs_built = loaded_->programs_built();
  stats.programs_cached = loaded_->programs_cached();
  stats.constants_shared = loaded_->constants_shared();
  return stats;
}

void Session::enable_profile(bool enabled) {
  profile_ = enabled;
  if (!enabled) records_.clear();
}

std::uint32_t Session::launches(oclc_launch_info* infos, std::uint32_t capacity) {
  const auto total = static_cast<std::uint32_t>(records_.size());
  if (total > 0) check_cl(clFinish(context_->queue()), "waiting for the run");
  for (std::uint32_t i = 0; infos && i < std::min(total, capacity); ++i) {
    const LaunchRecord& record = records_[i];
    const Schedule::Leaf& launch = recorded_schedule_->leaves()[record.leaf];
    const Schedule::Leaf& leaf = record.part < 0 ? launch : launch.parts[static_cast<std::size_t>(record.part)];
    const auto* anchor = leaf.part ? leaf.part->anchor() : leaf.launch ? leaf.launch->anchor() : nullptr;
    oclc_launch_info info = OCLC_INIT(oclc_launch_info);
    info.name = leaf.name.c_str();
    info.nodes = leaf.nodes.c_str();
    info.anchor = leaf.gemm ? "blas_gemm" : anchor ? anchor->c_str() : "";
    info.step = leaf.step;
    cl_ulong start = 0;
    cl_ulong end = 0;
    if (record.event && context_->profiling() &&
        clGetEventProfilingInfo(record.event.get(), CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr) == CL_SUCCESS &&
        clGetEventProfilingInfo(record.event.get(), CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr) == CL_SUCCESS) {
      info.start_ns = start;
      info.end_ns = end;
    }
    info.flops = record.flops;
    info.bytes = record.bytes;
    const auto* title = leaf.part || !leaf.launch ? nullptr : leaf.launch->title();
    info.title = title ? title->c_str() : info.name;
    info.instances = leaf.part ? leaf.part->instances() : leaf.launch ? leaf.launch->instances() : 0;
    info.size = infos->size;
    std::memcpy(reinterpret_cast<char*>(infos) + i * infos->size, &info, std::min(infos->size, sizeof info));
  }
  return total;
}

std::uint32_t Session::builds(oclc_build_info* infos, std::uint32_t capacity) const {
  const std::vector<BuildInfo>& all = loaded_->builds();
  const auto total = static_cast<std::uint32_t>(all.size());
  for (std::uint32_t i = 0; infos && i < std::min(total, capacity); ++i) {
    oclc_build_info info = OCLC_INIT(oclc_build_info);
    info.name = all[i].name.c_str();
    info.text_bytes = all[i].text_bytes;
    info.kernels = all[i].kernels;
    info.build_ns = all[i].ns;
    info.cached = all[i].from_cache;
    info.by_builder = all[i].by_builder;
    info.from_plan = all[i].from_plan;
    info.size = infos->size;
    std::memcpy(reinterpret_cast<char*>(infos) + i * infos->size, &info, std::min(infos->size, sizeof info));
  }
  return total;
}

}  // namespace oclc::runtime
