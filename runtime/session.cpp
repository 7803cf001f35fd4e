#include "runtime/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/expressions.h"
#include "runtime/failure.h"
#include "runtime/package/verify.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

template <class T>
std::uint32_t count(const flatbuffers::Vector<T>* list) {
  return list ? list->size() : 0;
}

std::uint32_t rank(const fb::Binding& binding) { return count(binding.shape()); }

std::uint64_t elements(std::span<const std::int64_t> shape, const std::string& label) {
  std::uint64_t product = 1;
  bool zero = false;
  for (const std::int64_t d : shape) {
    if (d < 0) throw Failure(OCLC_E_BINDING, label + ": its shape " + shape_text(shape) + " has a negative dimension");
    zero = zero || d == 0;
  }
  if (zero) return 0;
  for (const std::int64_t d : shape)
    if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(d), &product) || product > (std::uint64_t{1} << 60))
      throw Failure(OCLC_E_BINDING, label + ": its shape " + shape_text(shape) + " has too many elements");
  return product;
}

}  // namespace

Session::Session(std::shared_ptr<Context> context, std::shared_ptr<const package::Package> package)
    : context_(std::move(context)), package_(std::move(package)) {
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
      e.ports.push_back(std::move(p));
    }
  e.schedule = std::make_unique<Schedule>(*loaded_, index);
  e.used_symbols = e.schedule->used_symbols();
  const auto use = [&](int symbol) { e.used_symbols[static_cast<std::size_t>(symbol)] = true; };
  for (const Port& p : e.ports)
    for (std::uint32_t d = 0; d < rank(*p.binding); ++d) each_symbol(p.binding->shape()->Get(d), use);
  for (std::uint32_t i = 0; i < count(plan().buffers()); ++i) {
    const fb::Buffer& buffer = *plan().buffers()->Get(i);
    const bool ours = buffer.kind() == fb::BufferKind::arena ? buffer.entry() == static_cast<int>(index)
                                                             : std::any_of(e.ports.begin(), e.ports.end(), [&](const Port& p) {
                                                                 return p.binding->buffer() == static_cast<int>(i);
                                                               });
    if (ours) each_symbol(buffer.bytes(), use);
  }
}

void Session::make_state() {
  const std::uint32_t n = count(plan().buffers());
  states_.resize(n);
  state_sizes_.assign(n, 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    const fb::Buffer& buffer = *plan().buffers()->Get(i);
    if (buffer.kind() != fb::BufferKind::state) continue;
    state_sizes_[i] = static_cast<std::uint64_t>(evaluate(buffer.bytes(), {}, "state"));
    state_bytes_ += state_sizes_[i];
  }
  const oclc_device_info& facts = context_->facts();
  if (state_bytes_ + loaded_->constant_bytes() > facts.global_bytes)
    throw Failure(OCLC_E_MEMORY, "the plan's state takes " + std::to_string(state_bytes_) + " bytes and its constants " +
                                     std::to_string(loaded_->constant_bytes()) + ", device '" + facts.name + "' has " +
                                     std::to_string(facts.global_bytes));
  for (std::uint32_t i = 0; i < n; ++i)
    if (state_sizes_[i] > 0) states_[i] = allocate(state_sizes_[i], "state");
  reset_state();
}

void Session::reset_state() {
  context_->check_process();
  for (std::uint32_t i = 0; i < states_.size(); ++i)
    if (states_[i]) write_initial(i);
  check_cl(clFinish(context_->queue()), "writing the initial state");
}

void Session::write_initial(std::uint32_t index) {
  const fb::Buffer& buffer = *plan().buffers()->Get(index);
  const std::uint64_t bytes = state_sizes_[index];
  if (buffer.has_initial()) {
    const std::byte* data = package_->constants().data() + buffer.constant_offset();
    check_cl(clEnqueueWriteBuffer(context_->queue(), states_[index].get(), CL_FALSE, 0, bytes, data, 0, nullptr, nullptr),
             "writing the initial state");
    return;
  }
  const cl_uchar zero = 0;
  check_cl(clEnqueueFillBuffer(context_->queue(), states_[index].get(), &zero, 1, 0, bytes, 0, nullptr, nullptr),
           "writing the initial state");
}

ClMem Session::allocate(std::uint64_t bytes, const std::string& what) {
  const oclc_device_info& facts = context_->facts();
  if (bytes > facts.max_alloc_bytes)
    throw Failure(OCLC_E_MEMORY, what + " takes " + std::to_string(bytes) + " bytes, device '" + facts.name +
                                     "' allows at most " + std::to_string(facts.max_alloc_bytes) +
                                     " in one piece; use a smaller batch");
  cl_int code = CL_SUCCESS;
  ClMem memory(clCreateBuffer(context_->cl(), CL_MEM_READ_WRITE, bytes, nullptr, &code));
  check_cl(code, "allocating " + std::to_string(bytes) + " bytes for " + what);
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
  std::string known;
  for (Port& p : e.ports) {
    if (p.input != (direction == OCLC_INPUT)) continue;
    if (p.binding->name()->str() == name) return p;
    known += (known.empty() ? "" : ", ") + p.binding->name()->str();
  }
  throw Failure(OCLC_E_ARGUMENT, "entry point '" + e.name + "' has no " + (direction == OCLC_INPUT ? "input" : "output") +
                                     " '" + name + "'; it has: " + (known.empty() ? "none" : known));
}

void Session::bind_dim(const std::string& symbol, std::int64_t value) {
  std::string known;
  for (std::uint32_t i = 0; i < dims_.size(); ++i) {
    const fb::Symbol& s = *plan().symbols()->Get(i);
    if (s.loop()) continue;
    if (s.name()->str() != symbol) {
      known += (known.empty() ? "" : ", ") + s.name()->str();
      continue;
    }
    if (value >= 0 && (value < s.lo() || value > s.hi()))
      throw Failure(OCLC_E_BINDING, "dimension '" + symbol + "' = " + std::to_string(value) + " is outside the range " +
                                        std::to_string(s.lo()) + " to " + std::to_string(s.hi()) +
                                        " that the plan was compiled for");
    dims_[i] = value < 0 ? -1 : value;
    for (Entry& e : entries_) e.dirty = true;
    return;
  }
  throw Failure(OCLC_E_ARGUMENT, "the plan has no dimension '" + symbol + "'; it has: " + (known.empty() ? "none" : known));
}

void Session::check_tensor(const Port& p, const oclc_tensor& t) const {
  if (t.dtype != static_cast<oclc_dtype>(p.binding->dtype()))
    throw Failure(OCLC_E_BINDING, p.label + ": wanted " + oclc_dtype_name(static_cast<oclc_dtype>(p.binding->dtype())) +
                                      ", found " + oclc_dtype_name(t.dtype));
  if (t.host && t.buffer) throw Failure(OCLC_E_BINDING, p.label + ": give either `host` or `buffer`, not both");
  if (!t.shape) {
    if (p.input && rank(*p.binding) > 0) throw Failure(OCLC_E_BINDING, p.label + ": its shape is NULL");
    if (!p.input && rank(*p.binding) > 0) return;
  }
  if (t.rank != rank(*p.binding))
    throw Failure(OCLC_E_BINDING, p.label + ": wanted shape " + shape_text(plan(), p.binding->shape()) + ", found rank " +
                                      std::to_string(t.rank));
  const std::span<const std::int64_t> shape(t.shape, t.rank);
  for (std::uint32_t d = 0; d < t.rank; ++d) {
    const fb::Expr* e = p.binding->shape()->Get(d);
    bool symbolic = false;
    each_symbol(e, [&](int) { symbolic = true; });
    if (!symbolic && evaluate(e, {}, "a dimension") != shape[d])
      throw Failure(OCLC_E_BINDING,
                    p.label + ": wanted shape " + shape_text(plan(), p.binding->shape()) + ", found " + shape_text(shape));
  }
  elements(shape, p.label);
}

void Session::set_tensor(std::uint32_t index, oclc_direction direction, const char* name, const oclc_tensor* tensor) {
  Entry& e = entry(index);
  Port& p = port(e, direction, name);
  if (!tensor) {
    p.bound.reset();
    p.generation = ++generation_;
    e.dirty = true;
    return;
  }
  check_tensor(p, *tensor);
  Bound bound;
  bound.has_shape = tensor->shape != nullptr || rank(*p.binding) == 0;
  if (tensor->shape) bound.shape.assign(tensor->shape, tensor->shape + tensor->rank);
  bound.host = tensor->host;
  bound.bytes = tensor->bytes;
  const std::uint64_t element = package::dtype_bytes(p.binding->dtype());
  const std::uint64_t needed = bound.has_shape ? elements(bound.shape, p.label) * element : 0;
  if (tensor->buffer) {
    std::size_t size = 0;
    cl_context owner = nullptr;
    check_cl(clGetMemObjectInfo(tensor->buffer, CL_MEM_SIZE, sizeof size, &size, nullptr), p.label + ": asking its cl_mem");
    check_cl(clGetMemObjectInfo(tensor->buffer, CL_MEM_CONTEXT, sizeof owner, &owner, nullptr),
             p.label + ": asking its cl_mem");
    if (owner != context_->cl())
      throw Failure(OCLC_E_BINDING, p.label + ": its cl_mem belongs to another cl_context than the session");
    if (tensor->offset_bytes % element != 0)
      throw Failure(OCLC_E_BINDING, p.label + ": offset " + std::to_string(tensor->offset_bytes) +
                                        " is not a multiple of the element size " + std::to_string(element));
    if (tensor->offset_bytes > size || tensor->bytes > size - tensor->offset_bytes)
      throw Failure(OCLC_E_BINDING, p.label + ": offset " + std::to_string(tensor->offset_bytes) + " and size " +
                                        std::to_string(tensor->bytes) + " reach past the end of its cl_mem of " +
                                        std::to_string(size) + " bytes");
    bound.offset = tensor->offset_bytes;
    if (bound.bytes == 0) bound.bytes = size - bound.offset;
    bound.memory = ClMem::retain(tensor->buffer);
  } else if (!tensor->host) {
    if (needed > 0 || !bound.has_shape)
      throw Failure(OCLC_E_BINDING, p.label + ": both its host pointer and its cl_mem are NULL");
    bound.bytes = 0;
  }
  if (bound.bytes < needed)
    throw Failure(OCLC_E_BINDING, p.label + ": shape " + shape_text(bound.shape) + " needs " + std::to_string(needed) +
                                      " bytes, found " + std::to_string(bound.bytes));
  const bool same_place = p.bound && p.bound->memory.get() == bound.memory.get() && p.bound->offset == bound.offset &&
                          p.bound->shape == bound.shape && p.bound->has_shape == bound.has_shape &&
                          !bound.memory == !p.bound->memory && p.bound->bytes == bound.bytes;
  p.bound = std::move(bound);
  if (same_place) return;
  p.generation = ++generation_;
  e.dirty = true;
}

// Values of the symbols from bound dims and from inputs whose shape has a symbol by itself. With `all`, every symbol that the
// entry point uses must have one.
std::vector<std::int64_t> Session::resolve_symbols(const Entry& e, bool all) const {
  std::vector<std::int64_t> values(dims_.size(), -1);
  std::vector<std::string> sources(dims_.size());
  for (std::size_t i = 0; i < dims_.size(); ++i)
    if ((values[i] = dims_[i]) >= 0) sources[i] = "bound to " + std::to_string(dims_[i]);
  for (const Port& p : e.ports) {
    if (!p.input || !p.bound) continue;
    for (std::uint32_t d = 0; d < rank(*p.binding); ++d) {
      const int symbol = plain_symbol(p.binding->shape()->Get(d));
      if (symbol < 0) continue;
      const auto s = static_cast<std::size_t>(symbol);
      const std::int64_t value = p.bound->shape[d];
      const std::string source = p.label + " dimension " + std::to_string(d) + " is " + std::to_string(value);
      const fb::Symbol& info = *plan().symbols()->Get(static_cast<std::uint32_t>(symbol));
      if (values[s] >= 0 && values[s] != value)
        throw Failure(OCLC_E_BINDING,
                      "dimension '" + info.name()->str() + "' is inconsistent: " + sources[s] + ", but " + source);
      if (value < info.lo() || value > info.hi())
        throw Failure(OCLC_E_BINDING, "dimension '" + info.name()->str() + "': " + source + ", outside the range " +
                                          std::to_string(info.lo()) + " to " + std::to_string(info.hi()) +
                                          " that the plan was compiled for");
      values[s] = value;
      sources[s] = source;
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0) continue;
    if (all && e.used_symbols[i] && !plan().symbols()->Get(static_cast<std::uint32_t>(i))->loop())
      throw Failure(OCLC_E_BINDING, "dimension '" + plan().symbols()->Get(static_cast<std::uint32_t>(i))->name()->str() +
                                        "' has no value: bind the inputs of entry point '" + e.name +
                                        "' first, or the dimension itself");
    values[i] = 0;
  }
  return values;
}

void Session::check_shapes(const Entry& e, std::span<const std::int64_t> symbols) const {
  for (const Port& p : e.ports) {
    std::vector<std::int64_t> shape;
    for (std::uint32_t d = 0; d < rank(*p.binding); ++d)
      shape.push_back(evaluate(p.binding->shape()->Get(d), symbols, "a dimension"));
    const std::uint64_t bytes = elements(shape, p.label) * package::dtype_bytes(p.binding->dtype());
    const std::uint64_t size = e.memory.sizes[static_cast<std::size_t>(p.binding->buffer())];
    if (bytes != size)
      throw Failure(OCLC_E_PLAN, package_->name() + ": invalid plan: " + p.label + " of shape " + shape_text(shape) +
                                     " takes " + std::to_string(bytes) + " bytes, its buffer has " + std::to_string(size));
    if (!p.bound) {
      if (p.input && size > 0) throw Failure(OCLC_E_BINDING, p.label + " of entry point '" + e.name + "' is not bound");
      continue;
    }
    if (p.bound->has_shape && p.bound->shape != shape)
      throw Failure(OCLC_E_BINDING, p.label + ": wanted shape " + shape_text(plan(), p.binding->shape()) + " = " +
                                        shape_text(shape) + ", found " + shape_text(p.bound->shape));
    if (p.bound->bytes < size)
      throw Failure(OCLC_E_BINDING, p.label + ": shape " + shape_text(shape) + " needs " + std::to_string(size) +
                                        " bytes, found " + std::to_string(p.bound->bytes));
  }
  check_overlap(e);
}

void Session::check_overlap(const Entry& e) const {
  struct Range {
    const Port* port;
    const void* root;  // memory object or address space
    std::uint64_t begin, end;
  };
  std::vector<Range> ranges;
  for (const Port& p : e.ports) {
    const std::uint64_t size = e.memory.sizes[static_cast<std::size_t>(p.binding->buffer())];
    if (!p.bound || size == 0) continue;
    if (!p.bound->memory) {
      if (p.input) continue;  // copied to the device before anything is written
      const auto begin = reinterpret_cast<std::uintptr_t>(p.bound->host);
      ranges.push_back({&p, nullptr, begin, begin + size});
      continue;
    }
    cl_mem root = p.bound->memory.get();
    std::uint64_t begin = p.bound->offset;
    cl_mem parent = nullptr;
    if (clGetMemObjectInfo(root, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, nullptr) == CL_SUCCESS && parent) {
      std::size_t offset = 0;
      clGetMemObjectInfo(root, CL_MEM_OFFSET, sizeof offset, &offset, nullptr);
      root = parent;
      begin += offset;
    }
    ranges.push_back({&p, root, begin, begin + size});
  }
  for (std::size_t i = 0; i < ranges.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const Range& a = ranges[j];
      const Range& b = ranges[i];
      if (a.port->input && b.port->input) continue;
      if (a.root == b.root && a.begin < b.end && b.begin < a.end)
        throw Failure(OCLC_E_BINDING, a.port->label + " and " + b.port->label + " overlap in memory");
    }
}

void Session::check_memory(const Entry& e, const package::EntryMemory& memory) const {
  const oclc_device_info& facts = context_->facts();
  std::uint64_t ports = 0;
  for (const Port& p : e.ports) ports += memory.sizes[static_cast<std::size_t>(p.binding->buffer())];
  const std::uint64_t total = memory.arena_bytes + ports + state_bytes_ + loaded_->constant_bytes();
  if (total > facts.global_bytes)
    throw Failure(OCLC_E_MEMORY,
                  "entry point '" + e.name + "' takes " + std::to_string(total) + " bytes with these dimensions (arena " +
                      std::to_string(memory.arena_bytes) + ", inputs and outputs " + std::to_string(ports) + ", state " +
                      std::to_string(state_bytes_) + ", constants " + std::to_string(loaded_->constant_bytes()) +
                      "), device '" + facts.name + "' has " + std::to_string(facts.global_bytes) + "; use a smaller batch");
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

Place Session::port_place(Port& p, std::uint64_t bytes) {
  if (bytes == 0) return {nothing_.get(), 0, 0};
  if (p.bound && p.bound->memory) return {p.bound->memory.get(), p.bound->offset, p.generation};
  if (p.staging_bytes < bytes) {
    stats_.staging_bytes -= p.staging_bytes;
    p.staging.reset();
    p.staging_bytes = 0;
    p.staging = allocate(bytes, p.label);
    p.staging_bytes = bytes;
    stats_.staging_bytes += bytes;
    p.generation = ++generation_;
  }
  return {p.staging.get(), 0, p.generation};
}

std::vector<Place> Session::places(Entry& e) {
  const std::uint32_t n = count(plan().buffers());
  std::vector<Place> result(n, Place{nothing_.get(), 0, 0});
  for (std::uint32_t i = 0; i < n; ++i) {
    const fb::Buffer& buffer = *plan().buffers()->Get(i);
    if (e.memory.sizes[i] == 0 && buffer.kind() != fb::BufferKind::constant && buffer.kind() != fb::BufferKind::state) continue;
    switch (buffer.kind()) {
      case fb::BufferKind::arena:
        result[i] = {arena_.get(), e.memory.offsets[i], arena_generation_};
        break;
      case fb::BufferKind::constant:
        if (loaded_->constant(i).memory) result[i] = loaded_->constant(i);
        break;
      case fb::BufferKind::state:
        if (states_[i]) result[i] = {states_[i].get(), 0, 0};
        break;
      default:
        break;
    }
  }
  for (Port& p : e.ports) {
    const auto buffer = static_cast<std::size_t>(p.binding->buffer());
    result[buffer] = port_place(p, e.memory.sizes[buffer]);
  }
  return result;
}

void Session::prepare(std::uint32_t index) {
  Entry& e = entry(index);
  context_->check_process();
  if (!e.dirty) return;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::int64_t> symbols = resolve_symbols(e, true);
  if (!e.laid_out || symbols != e.symbols) {
    package::EntryMemory memory = package::plan_memory(plan(), index, symbols);
    check_memory(e, memory);
    e.memory = std::move(memory);
    e.laid_out = false;
  }
  check_shapes(e, symbols);
  ensure_arena(e.memory.arena_bytes);
  if (e.schedule->bind(symbols, places(e))) e.recorded.reset();
  e.symbols = std::move(symbols);
  e.laid_out = true;
  e.recording_failed = false;
  e.dirty = false;
  stats_.live_bytes = e.memory.live_bytes;
  ++stats_.preparations;
  stats_.prepare_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count());
}

std::vector<std::int64_t> Session::shape(std::uint32_t index, oclc_direction direction, const char* name,
                                         std::uint64_t* bytes) {
  Entry& e = entry(index);
  const Port& p = port(e, direction, name);
  const auto symbols = resolve_symbols(e, false);
  std::vector<bool> known(symbols.size(), false);
  for (std::size_t i = 0; i < dims_.size(); ++i) known[i] = dims_[i] >= 0;
  for (const Port& q : e.ports)
    for (std::uint32_t d = 0; q.input && q.bound && d < rank(*q.binding); ++d)
      if (const int s = plain_symbol(q.binding->shape()->Get(d)); s >= 0) known[static_cast<std::size_t>(s)] = true;
  std::vector<std::int64_t> result;
  for (std::uint32_t d = 0; d < rank(*p.binding); ++d) {
    const fb::Expr* dimension = p.binding->shape()->Get(d);
    each_symbol(dimension, [&](int s) {
      if (!known[static_cast<std::size_t>(s)])
        throw Failure(OCLC_E_BINDING,
                      p.label + ": dimension '" + plan().symbols()->Get(static_cast<std::uint32_t>(s))->name()->str() +
                          "' has no value yet: bind the inputs of entry point '" + e.name + "' first, or the dimension itself");
    });
    result.push_back(evaluate(dimension, symbols, "a dimension"));
  }
  const std::uint64_t size = elements(result, p.label) * package::dtype_bytes(p.binding->dtype());
  if (bytes) *bytes = size;
  return result;
}

void Session::enqueue_commands(Entry& e, std::uint32_t wait_count, const cl_event* wait) {
  const cl_command_queue queue = context_->queue();
  if (wait_count > 0)
    check_cl(clEnqueueBarrierWithWaitList(queue, wait_count, wait, nullptr), "waiting for the caller's events");
  for (const Port& p : e.ports) {
    const std::uint64_t bytes = e.memory.sizes[static_cast<std::size_t>(p.binding->buffer())];
    if (p.input && bytes > 0 && p.bound && p.bound->host)
      check_cl(clEnqueueWriteBuffer(queue, p.staging.get(), CL_FALSE, 0, bytes, p.bound->host, 0, nullptr, nullptr),
               "writing " + p.label);
  }
  records_.clear();
  recorded_schedule_ = profile_ ? e.schedule.get() : nullptr;
  stats_.command_buffer = 0;
  if (!profile_ && !e.recorded && !e.recording_failed && e.schedule->replayable() && CommandBuffer::wanted(*context_)) {
    e.recorded = CommandBuffer::record(*context_, *e.schedule);
    e.recording_failed = !e.recorded;
  }
  if (e.recorded && !profile_) {
    e.recorded->enqueue();
    stats_.launches = e.recorded->launches();
    stats_.command_buffer = 1;
  } else {
    scratch_ = e.symbols;
    stats_.launches = e.schedule->enqueue(queue, scratch_, profile_ ? &records_ : nullptr);
  }
  for (const Port& p : e.ports) {
    const std::uint64_t bytes = e.memory.sizes[static_cast<std::size_t>(p.binding->buffer())];
    if (!p.input && bytes > 0 && p.bound && p.bound->host)
      check_cl(clEnqueueReadBuffer(queue, p.staging.get(), CL_FALSE, 0, bytes, p.bound->host, 0, nullptr, nullptr),
               "reading " + p.label);
  }
}

void Session::enqueue(std::uint32_t index, std::uint32_t wait_count, const cl_event* wait, cl_event* event) {
  if (wait_count > 0 && !wait) throw Failure(OCLC_E_ARGUMENT, "the wait list is NULL");
  prepare(index);
  cl_event done = nullptr;
  try {
    enqueue_commands(entries_[index], wait_count, wait);
    check_cl(clEnqueueMarkerWithWaitList(context_->queue(), 0, nullptr, event ? &done : nullptr), "marking the end of the run");
    check_cl(clFlush(context_->queue()), "starting the run");
  } catch (...) {
    // What was enqueued still uses the caller's memory.
    if (done) clReleaseEvent(done);
    clFinish(context_->queue());
    throw;
  }
  if (event) *event = done;
}

void Session::run(std::uint32_t index) {
  cl_event done = nullptr;
  enqueue(index, 0, nullptr, &done);
  const ClEvent owner(done);
  check_cl(clWaitForEvents(1, &done), "running entry point '" + entries_[index].name + "'");
}

std::uint32_t Session::find_variable(const char* name, std::uint64_t bytes) const {
  if (!name) throw Failure(OCLC_E_ARGUMENT, "the name of the variable is NULL");
  for (std::uint32_t i = 0; i < count(plan().variables()); ++i) {
    const fb::Variable& v = *plan().variables()->Get(i);
    if (v.name()->str() != name) continue;
    const auto buffer = static_cast<std::uint32_t>(v.buffer());
    if (state_sizes_[buffer] != bytes)
      throw Failure(OCLC_E_ARGUMENT, std::string("variable '") + name + "' has " + std::to_string(state_sizes_[buffer]) +
                                         " bytes, found " + std::to_string(bytes));
    return buffer;
  }
  throw Failure(OCLC_E_ARGUMENT, std::string("the plan has no variable '") + name + "'");
}

void Session::read_variable(const char* name, void* host, std::uint64_t bytes) {
  const std::uint32_t buffer = find_variable(name, bytes);
  if (bytes == 0) return;
  if (!host) throw Failure(OCLC_E_ARGUMENT, std::string("variable '") + name + "': the host pointer is NULL");
  context_->check_process();
  check_cl(clEnqueueReadBuffer(context_->queue(), states_[buffer].get(), CL_TRUE, 0, bytes, host, 0, nullptr, nullptr),
           "reading a variable");
}

void Session::write_variable(const char* name, const void* host, std::uint64_t bytes) {
  const std::uint32_t buffer = find_variable(name, bytes);
  if (bytes == 0) return;
  if (!host) throw Failure(OCLC_E_ARGUMENT, std::string("variable '") + name + "': the host pointer is NULL");
  context_->check_process();
  check_cl(clEnqueueWriteBuffer(context_->queue(), states_[buffer].get(), CL_TRUE, 0, bytes, host, 0, nullptr, nullptr),
           "writing a variable");
}

oclc_stats Session::stats() const {
  oclc_stats stats = stats_;
  stats.arena_bytes = arena_bytes_;
  stats.constant_bytes = loaded_->constant_bytes();
  stats.state_bytes = state_bytes_;
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
    const Schedule::Leaf& leaf = recorded_schedule_->leaves()[record.leaf];
    oclc_launch_info info = OCLC_INIT(oclc_launch_info);
    info.name = leaf.name.c_str();
    info.nodes = leaf.nodes.c_str();
    info.anchor = leaf.launch ? (leaf.launch->anchor() ? leaf.launch->anchor()->c_str() : "") : "blas_gemm";
    info.step = record.leaf;
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
    info.size = infos->size;
    std::memcpy(reinterpret_cast<char*>(infos) + i * infos->size, &info, std::min(infos->size, sizeof info));
  }
  return total;
}

}  // namespace oclc::runtime
