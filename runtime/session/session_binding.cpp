#include "runtime/session/session.h"

#include <algorithm>
#include <tuple>

#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/assumptions.h"
#include "runtime/session/expressions.h"
#include "runtime/session/solve_dims.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

// Of one element in the caller's memory.
std::uint64_t host_bytes(fb::DType dtype) {
  return dtype == fb::DType::string_ ? sizeof(const char*) : package::dtype_bytes(dtype);
}

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

void Session::ask_memory(const Port& p, const oclc_tensor& t, std::uint64_t& bytes, Bound& bound) const {
  std::size_t size = 0;
  cl_context owner = nullptr;
  check_cl(clGetMemObjectInfo(t.buffer, CL_MEM_SIZE, sizeof size, &size, nullptr), p.label + ": asking its cl_mem");
  check_cl(clGetMemObjectInfo(t.buffer, CL_MEM_CONTEXT, sizeof owner, &owner, nullptr), p.label + ": asking its cl_mem");
  if (owner != context_->cl())
    throw Failure(OCLC_E_BINDING, p.label + ": its cl_mem belongs to another cl_context than the session");
  const std::uint64_t element = host_bytes(p.binding->dtype());
  if (t.offset_bytes % element != 0)
    throw Failure(OCLC_E_BINDING, p.label + ": offset " + std::to_string(t.offset_bytes) +
                                      " is not a multiple of the element size " + std::to_string(element));
  if (t.offset_bytes > size || t.bytes > size - t.offset_bytes)
    throw Failure(OCLC_E_BINDING, p.label + ": offset " + std::to_string(t.offset_bytes) + " and size " +
                                      std::to_string(t.bytes) + " reach past the end of its cl_mem of " + std::to_string(size) +
                                      " bytes");
  bytes = size;
  bound.offset = t.offset_bytes;
  bound.root = t.buffer;
  bound.begin = t.offset_bytes;
  cl_mem parent = nullptr;
  if (clGetMemObjectInfo(t.buffer, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, nullptr) == CL_SUCCESS && parent) {
    std::size_t offset = 0;
    clGetMemObjectInfo(t.buffer, CL_MEM_OFFSET, sizeof offset, &offset, nullptr);
    bound.root = parent;
    bound.begin += offset;
  }
}

bool Session::move_port(Entry& e, Port& p, const oclc_tensor& t) {
  if (e.dirty || !p.bound || !p.bound->memory || !t.buffer || t.host || !t.shape || is_copied(p)) return false;
  Bound& bound = *p.bound;
  if (t.dtype != static_cast<oclc_dtype>(p.binding->dtype()) || t.rank != bound.shape.size() || t.bytes != bound.bytes ||
      t.bytes == 0 || t.offset_bytes % kPortAlignment != 0 || !std::equal(bound.shape.begin(), bound.shape.end(), t.shape))
    return false;
  if (bound.memory.get() == t.buffer && bound.offset == t.offset_bytes) return true;
  std::uint64_t size = 0;
  ask_memory(p, t, size, bound);
  bound.memory = ClMem::retain(t.buffer);
  p.generation = ++generation_;
  p.moved = e.moved = true;
  return true;
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
  if (move_port(e, p, *tensor)) return;
  check_tensor(p, *tensor);
  Bound bound;
  bound.has_shape = tensor->shape != nullptr || rank(*p.binding) == 0;
  if (tensor->shape) bound.shape.assign(tensor->shape, tensor->shape + tensor->rank);
  bound.host = tensor->host;
  bound.bytes = tensor->bytes;
  const std::uint64_t element = host_bytes(p.binding->dtype());
  const std::uint64_t needed = bound.has_shape ? elements(bound.shape, p.label) * element : 0;
  if (p.binding->dtype() == fb::DType::string_) {
    if (tensor->buffer) throw Failure(OCLC_E_BINDING, p.label + ": strings lie in host memory, found a cl_mem");
    if (p.input && tensor->host && bound.bytes >= needed) bound.texts = copy_texts(p, *tensor);
  }
  if (tensor->buffer) {
    std::uint64_t size = 0;
    ask_memory(p, *tensor, size, bound);
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
  const bool moved = p.in_place && p.bound && bound.host != p.bound->host;
  p.moves = p.moves || moved;
  p.bound = std::move(bound);
  if (same_place && !moved) return;
  p.generation = ++generation_;
  e.dirty = true;
}

// Values of the symbols from bound dims and from inputs whose shape has a symbol by itself. With `all`, every symbol that the
// entry point uses must have one.
std::vector<std::int64_t> Session::resolve_symbols(const Entry& e, bool all, std::vector<bool>* found) const {
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
  for (bool found = true; found;) {
    found = false;
    for (const Port& p : e.ports) {
      if (!p.input || !p.bound) continue;
      for (std::uint32_t d = 0; d < rank(*p.binding); ++d) {
        int symbol = -1;
        std::int64_t value = 0;
        if (!solve_dim(p.binding->shape()->Get(d), p.bound->shape[d], values, symbol, value)) continue;
        const fb::Symbol& info = *plan().symbols()->Get(static_cast<std::uint32_t>(symbol));
        if (info.loop() || info.upper()) continue;
        if (value < info.lo() || value > info.hi())
          throw Failure(OCLC_E_BINDING, "dimension '" + info.name()->str() + "': " + p.label + " dimension " +
                                            std::to_string(d) + " is " + std::to_string(p.bound->shape[d]) +
                                            ", outside the range that the plan was compiled for");
        values[static_cast<std::size_t>(symbol)] = value;
        found = true;
      }
    }
  }
  std::vector<bool> known(values.size(), true);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0) continue;
    if (all && e.used_symbols[i] && !plan().symbols()->Get(static_cast<std::uint32_t>(i))->loop())
      throw Failure(OCLC_E_BINDING, "dimension '" + plan().symbols()->Get(static_cast<std::uint32_t>(i))->name()->str() +
                                        "' has no value: bind the inputs of entry point '" + e.name +
                                        "' first, or the dimension itself");
    values[i] = 0;
    known[i] = false;
  }
  if (all) check_assumptions(plan(), values, known);
  if (found) *found = known;
  return package::largest_reads(plan(), values);
}

bool Session::is_computed(const fb::Expr* e) const {
  bool result = false;
  each_symbol(e, [&](int s) { result = result || plan().symbols()->Get(static_cast<std::uint32_t>(s))->upper(); });
  return result;
}

// Each dimension at its largest.
std::vector<std::int64_t> Session::largest_shape(const fb::Binding& binding, std::span<const package::Range> ranges) {
  std::vector<std::int64_t> shape;
  for (std::uint32_t d = 0; d < rank(binding); ++d) {
    const auto* code = binding.shape()->Get(d)->code();
    const auto range = package::evaluate_range({code->data(), code->size()}, ranges);
    if (!range) throw Failure(OCLC_E_BINDING, "a dimension overflows, or it divides by 0 or less, with these dimensions");
    shape.push_back(range->high);
  }
  return shape;
}

void Session::check_shapes(const Entry& e, std::span<const std::int64_t> symbols) const {
  const std::vector<package::Range> ranges = package::symbol_ranges(plan(), symbols);
  for (const Port& p : e.ports) {
    const auto* dims = p.binding->shape();
    const bool computed = dims && std::any_of(dims->begin(), dims->end(), [&](const fb::Expr* e) { return is_computed(e); });
    const std::vector<std::int64_t> shape = largest_shape(*p.binding, ranges);
    const std::uint64_t bytes = elements(shape, p.label) * package::dtype_bytes(p.binding->dtype());
    const std::uint64_t size = e.memory.sizes[static_cast<std::size_t>(p.binding->buffer())];
    if (!computed && bytes != size)
      throw Failure(OCLC_E_PLAN, package_->name() + ": invalid plan: " + p.label + " of shape " + shape_text(shape) +
                                     " takes " + std::to_string(bytes) + " bytes, its buffer has " + std::to_string(size));
    if (!p.bound) {
      if (p.input && size > 0) throw Failure(OCLC_E_BINDING, p.label + " of entry point '" + e.name + "' is not bound");
      continue;
    }
    if (p.bound->has_shape && !computed && p.bound->shape != shape)
      throw Failure(OCLC_E_BINDING, p.label + ": wanted shape " + shape_text(plan(), p.binding->shape()) + " = " +
                                        shape_text(shape) + ", found " + shape_text(p.bound->shape));
    check_room(p, size, shape_text(shape));
  }
  check_overlap(e);
}

// `size`: bytes of the port's buffer.
void Session::check_room(const Port& p, std::uint64_t size, const std::string& shape) const {
  if (!p.bound) return;
  const fb::DType dtype = p.binding->dtype();
  const std::uint64_t needed = p.bound->memory ? size : size / package::dtype_bytes(dtype) * host_bytes(dtype);
  if (p.bound->bytes < needed)
    throw Failure(OCLC_E_BINDING, p.label + ": shape " + shape + " needs " + std::to_string(needed) + " bytes, found " +
                                      std::to_string(p.bound->bytes) +
                                      (package::is_open(*p.binding, package::open_symbols(plan()))
                                           ? "; leave it unbound, and read it when the run is done"
                                           : ""));
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
      const std::uint64_t element = package::dtype_bytes(p.binding->dtype());
      ranges.push_back({&p, nullptr, begin, begin + size / element * host_bytes(p.binding->dtype())});
      continue;
    }
    ranges.push_back({&p, p.bound->root, p.bound->begin, p.bound->begin + size});
  }
  // By where they begin: each lies behind what ends before it, or overlaps one that ends last.
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return std::tie(a.root, a.begin) < std::tie(b.root, b.begin); });
  const Range* last = nullptr;     // that ends last, of those of the root
  const Range* written = nullptr;  // of outputs
  for (const Range& r : ranges) {
    if (last && last->root != r.root) last = written = nullptr;
    const Range* over = r.port->input ? written : last;
    if (over && over->end > r.begin) {
      const auto [first, second] = std::minmax(over->port, r.port);
      throw Failure(OCLC_E_BINDING, first->label + " and " + second->label + " overlap in memory");
    }
    if (!last || r.end > last->end) last = &r;
    if (!r.port->input && (!written || r.end > written->end)) written = &r;
  }
}

std::vector<std::int64_t> Session::shape(std::uint32_t index, oclc_direction direction, const char* name,
                                         std::uint64_t* bytes) {
  Entry& e = entry(index);
  const Port& p = port(e, direction, name);
  const bool ran = !e.dirty && !e.found.empty();
  std::vector<bool> known(dims_.size(), true);
  const auto symbols = ran ? e.found : resolve_symbols(e, false, &known);
  for (std::size_t i = 0; i < dims_.size(); ++i)
    known[i] = known[i] || plan().symbols()->Get(static_cast<std::uint32_t>(i))->upper();
  std::vector<std::int64_t> result;
  for (std::uint32_t d = 0; d < rank(*p.binding); ++d) {
    const fb::Expr* dimension = p.binding->shape()->Get(d);
    each_symbol(dimension, [&](int s) {
      if (!known[static_cast<std::size_t>(s)])
        throw Failure(OCLC_E_BINDING,
                      p.label + ": dimension '" + plan().symbols()->Get(static_cast<std::uint32_t>(s))->name()->str() +
                          "' has no value yet: bind the inputs of entry point '" + e.name + "' first, or the dimension itself");
    });
    if (ran) result.push_back(evaluate(dimension, symbols, "a dimension"));
  }
  const std::vector<std::int64_t> largest = largest_shape(*p.binding, package::symbol_ranges(plan(), symbols));
  if (!ran) result = largest;
  if (bytes) *bytes = elements(largest, p.label) * host_bytes(p.binding->dtype());
  return result;
}

std::vector<const fb::Binding*> Session::bindings(std::uint32_t index, oclc_direction direction) {
  std::vector<const fb::Binding*> list;
  for (const Port& p : entry(index).ports)
    if (p.input == (direction == OCLC_INPUT)) list.push_back(p.binding);
  return list;
}

void Session::check_name(std::uint32_t index, oclc_direction direction, const char* name) {
  port(entry(index), direction, name);
}

std::uint64_t Session::check_input(std::uint32_t index, const char* name, const oclc_tensor& tensor) {
  const Port& p = port(entry(index), OCLC_INPUT, name);
  check_tensor(p, tensor);
  if (p.binding->dtype() == fb::DType::string_)
    throw Failure(OCLC_E_UNSUPPORTED, p.label + ": trainers take numbers, found strings; run the entry point of a session");
  return elements({tensor.shape, tensor.rank}, p.label) * package::dtype_bytes(p.binding->dtype());
}

std::string Session::scalar_names(std::uint32_t index) {
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const Port& p : entry(index).ports)
    if (p.input && rank(*p.binding) == 0) add(p.binding->name()->str());
  for (std::uint32_t i = 0; i < count(plan().variables()); ++i)
    if (count(plan().variables()->Get(i)->shape()) == 0) add(plan().variables()->Get(i)->name()->str());
  return names.empty() ? "none" : names;
}

bool Session::writes_state(std::uint32_t index) {
  for (const Schedule::Leaf& leaf : entry(index).schedule->leaves())
    for (const Schedule::Leaf::Slot& slot : leaf.slots) {
      bool found = false;
      each_buffer(*slot.arg, [&](std::uint32_t buffer, bool writes) {
        found = found || (writes && plan().buffers()->Get(buffer)->kind() == fb::BufferKind::state);
      });
      if (found) return true;
    }
  return false;
}

void Session::unbind(std::uint32_t index) {
  Entry& e = entry(index);
  for (Port& p : e.ports) {
    p.bound.reset();
    p.generation = ++generation_;
  }
  e.dirty = true;
}

}  // namespace oclc::runtime
