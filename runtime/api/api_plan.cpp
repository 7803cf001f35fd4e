#include "runtime/api/api.h"
#include "runtime/flat.h"
#include "runtime/package/container.h"
#include "runtime/package/memory.h"
#include "runtime/package/verify/verify.h"
#include "runtime/package/writer.h"
#include "runtime/program/plan_binaries.h"
#include "runtime/session/expressions.h"

using namespace oclc::runtime;
namespace fb = oclc::plan;
namespace pkg = oclc::package;

namespace {

const char* text(const flatbuffers::String* string) { return string ? string->c_str() : ""; }

// Whole shape, then each dimension.
template <class T>
const std::vector<std::string>& shape_texts(const oclc_plan& plan, std::size_t index, const T& binding) {
  const std::lock_guard lock(plan.mutex);
  std::vector<std::string>& texts = plan.texts[index];
  if (!texts.empty()) return texts;
  const fb::Plan& p = plan.package->plan();
  std::vector<std::string> made = {shape_text(p, binding.shape())};
  for (std::uint32_t d = 0; d < count(binding.shape()); ++d) made.push_back(expression_text(p, binding.shape()->Get(d)));
  return texts = std::move(made);
}

oclc_plan* make_plan(std::shared_ptr<const pkg::Package> package) {
  auto result = std::make_unique<oclc_plan>();
  const fb::Plan& plan = package->plan();
  if (plan.checkpoint())
    throw Failure(OCLC_E_PLAN, package->name() +
                                   ": a checkpoint, not a plan; load it into a session of its plan (oclrun PLAN --load-state)");
  for (std::uint32_t i = 0; i < count(plan.options()); ++i) result->options += (i ? " " : "") + plan.options()->Get(i)->str();
  std::uint32_t bindings = 0;
  for (std::uint32_t e = 0; e < count(plan.entries()); ++e) {
    result->first_text.push_back(bindings);
    bindings += count(plan.entries()->Get(e)->inputs()) + count(plan.entries()->Get(e)->outputs());
  }
  result->first_text.push_back(bindings);
  result->texts.resize(bindings + std::size_t{count(plan.variables())});
  result->open_symbols = pkg::open_symbols(plan);
  result->package = std::move(package);
  return result.release();
}

oclc_device_class class_of(fb::DeviceClass value) {
  return value == fb::DeviceClass::cpu ? OCLC_DEVICE_CPU : value == fb::DeviceClass::gpu ? OCLC_DEVICE_GPU : OCLC_DEVICE_OTHER;
}

const fb::Entry* find_entry(const oclc_plan* plan, std::uint32_t entry) {
  return plan && entry < count(plan->package->plan().entries()) ? plan->package->plan().entries()->Get(entry) : nullptr;
}

// The binding and where its texts are, or null.
const fb::Binding* find_binding(const oclc_plan* plan, std::uint32_t entry, oclc_direction direction, std::uint32_t index,
                                std::size_t* texts) {
  const fb::Entry* e = find_entry(plan, entry);
  if (!e || (direction != OCLC_INPUT && direction != OCLC_OUTPUT)) return nullptr;
  const auto* list = direction == OCLC_INPUT ? e->inputs() : e->outputs();
  if (index >= count(list)) return nullptr;
  *texts = plan->first_text[entry] + std::size_t{direction == OCLC_OUTPUT ? count(e->inputs()) : 0} + index;
  return list->Get(index);
}

std::uint32_t launches(const flatbuffers::Vector<flatbuffers::Offset<fb::Step>>* steps) {
  std::uint32_t total = 0;
  for (std::uint32_t i = 0; i < count(steps); ++i) {
    const auto* loop = steps->Get(i)->body_as_Loop();
    if (steps->Get(i)->body_as_Read() || steps->Get(i)->body_as_Host()) continue;
    total += loop ? launches(loop->body()) : 1;
  }
  return total;
}

std::vector<std::int64_t> symbol_values(const fb::Plan& plan, const oclc_dim* dims, std::uint32_t dim_count) {
  std::vector<std::int64_t> values(count(plan.symbols()), -1);
  for (std::uint32_t i = 0; i < dim_count; ++i) {
    need(dims[i].name, "the name of a dimension");
    bool found = false;
    for (std::uint32_t s = 0; s < values.size(); ++s)
      if (plan.symbols()->Get(s)->name()->str() == dims[i].name && !plan.symbols()->Get(s)->loop())
        values[s] = dims[i].value, found = true;
    if (!found) throw Failure(OCLC_E_ARGUMENT, std::string("the plan has no dimension '") + dims[i].name + "'");
  }
  return values;
}

void check_given(const fb::Plan& plan, const fb::Expr* e, std::vector<std::int64_t>& values) {
  each_symbol(e, [&](int s) {
    if (values[static_cast<std::size_t>(s)] < 0)
      throw Failure(OCLC_E_BINDING,
                    "dimension '" + plan.symbols()->Get(static_cast<std::uint32_t>(s))->name()->str() + "' has no value");
  });
}

oclc_memory_info memory_of(const pkg::Package& package, std::uint32_t entry, std::vector<std::int64_t> values) {
  const fb::Plan& plan = package.plan();
  const fb::Entry& e = *plan.entries()->Get(entry);
  for (std::uint32_t i = 0; i < values.size(); ++i)
    if (plan.symbols()->Get(i)->upper()) values[i] = 0;  // plan_memory knows the largest
  for (std::uint32_t i = 0; i < count(plan.buffers()); ++i) {
    const fb::Buffer& buffer = *plan.buffers()->Get(i);
    if (buffer.kind() == fb::BufferKind::arena && buffer.entry() == static_cast<int>(entry))
      check_given(plan, buffer.bytes(), values);
  }
  for (const auto* list : {e.inputs(), e.outputs()})
    for (std::uint32_t i = 0; i < count(list); ++i)
      check_given(plan, plan.buffers()->Get(static_cast<std::uint32_t>(list->Get(i)->buffer()))->bytes(), values);
  for (std::int64_t& value : values) value = std::max<std::int64_t>(value, 0);
  const pkg::EntryMemory memory = pkg::plan_memory(plan, entry, values);
  if (const std::string problem = pkg::problem_of_sizes(plan, entry, memory); !problem.empty())
    throw Failure(OCLC_E_BINDING, problem);
  oclc_memory_info info = OCLC_INIT(oclc_memory_info);
  info.arena_bytes = memory.arena_bytes;
  info.live_bytes = memory.live_bytes;
  for (std::uint32_t i = 0; i < count(plan.buffers()); ++i) {
    const auto kind = plan.buffers()->Get(i)->kind();
    if (kind == fb::BufferKind::constant) info.constant_bytes += memory.sizes[i];
    if (kind == fb::BufferKind::state) info.state_bytes += memory.sizes[i];
  }
  for (std::uint32_t i = 0; i < count(e.inputs()); ++i)
    info.input_bytes += memory.sizes[static_cast<std::size_t>(e.inputs()->Get(i)->buffer())];
  for (std::uint32_t i = 0; i < count(e.outputs()); ++i)
    info.output_bytes += memory.sizes[static_cast<std::size_t>(e.outputs()->Get(i)->buffer())];
  return info;
}

}  // namespace

extern "C" {

oclc_status oclc_plan_load(const char* path, uint32_t flags, oclc_plan** plan, oclc_error* error) {
  return guarded(error, [&] {
    need(path, "path");
    need(plan, "plan");
    if (flags & ~OCLC_LOAD_COPY) throw Failure(OCLC_E_ARGUMENT, "unknown flags " + std::to_string(flags));
    *plan = make_plan(pkg::Package::open(path, flags & OCLC_LOAD_COPY ? pkg::Residence::copied : pkg::Residence::mapped));
  });
}

oclc_status oclc_plan_load_memory(const void* bytes, size_t size, oclc_plan** plan, oclc_error* error) {
  return guarded(error, [&] {
    if (size > 0) need(bytes, "bytes");
    need(plan, "plan");
    *plan = make_plan(pkg::Package::from_memory({static_cast<const std::byte*>(bytes), size}));
  });
}

oclc_status oclc_plan_borrow_memory(const void* bytes, size_t size, void (*release)(void* user), void* user, oclc_plan** plan,
                                    oclc_error* error) {
  return guarded(error, [&] {
    if (size > 0) need(bytes, "bytes");
    need(plan, "plan");
    if (reinterpret_cast<std::uintptr_t>(bytes) % pkg::kConstantsAlignment != 0)
      throw Failure(OCLC_E_ARGUMENT, "bytes: wanted an address that is a multiple of " +
                                         std::to_string(pkg::kConstantsAlignment) + ", as constants are used where they lie, " +
                                         "found one " +
                                         std::to_string(reinterpret_cast<std::uintptr_t>(bytes) % pkg::kConstantsAlignment) +
                                         " bytes behind; oclc_plan_load_memory copies bytes from anywhere");
    auto borrowed = std::make_shared<pkg::Lender>(release, user);
    *plan = make_plan(pkg::Package::borrow({static_cast<const std::byte*>(bytes), size}, borrowed));
    borrowed->keep();
  });
}

void oclc_plan_release(oclc_plan* plan) { delete plan; }

void oclc_plan_formats(uint32_t* oldest, uint32_t* newest) {
  if (oldest) *oldest = pkg::kOldestVersion;
  if (newest) *newest = pkg::kFormatVersion;
}

oclc_status oclc_plan_write_binaries(oclc_plan* plan, oclc_context* context, const char* path, oclc_error* error) {
  return guarded(error, [&] {
    need(plan, "plan");
    need(context, "context");
    need(path, "path");
    Context& on = *context->context;
    if (!on.builds_whole()) throw Failure(OCLC_E_ARGUMENT, "oclc_plan_write_binaries: wanted a context made with for_binaries");
    const std::shared_ptr<LoadedPlan> loaded = on.load(context->context, plan->package);
    const std::vector<std::uint8_t> binaries = make_binaries(on, loaded->first_programs(), *plan->package);
    pkg::write_with_binaries(path, *plan->package, std::as_bytes(std::span(binaries)));
  });
}

oclc_status oclc_plan_get_info(const oclc_plan* plan, oclc_plan_info* info) {
  if (!plan) return OCLC_E_ARGUMENT;
  const fb::Plan& p = plan->package->plan();
  oclc_plan_info value = OCLC_INIT(oclc_plan_info);
  value.model = text(p.model());
  value.producer = text(p.producer());
  value.target = text(p.target());
  value.precision = text(p.precision());
  value.options = plan->options.c_str();
  value.entry_count = count(p.entries());
  value.symbol_count = count(p.symbols());
  value.variable_count = count(p.variables());
  value.program_count = count(p.programs());
  value.constant_bytes = plan->package->constants().size();
  value.format = plan->package->format();
  value.device_class = class_of(p.device_class());
  value.metadata_count = count(p.metadata());
  return give(info, value);
}

oclc_status oclc_plan_get_metadata(const oclc_plan* plan, uint32_t index, const char** name, const char** value) {
  if (!plan || index >= count(plan->package->plan().metadata())) return OCLC_E_ARGUMENT;
  const fb::Property& property = *plan->package->plan().metadata()->Get(index);
  if (name) *name = text(property.name());
  if (value) *value = text(property.value());
  return OCLC_OK;
}

oclc_status oclc_plan_get_symbol(const oclc_plan* plan, uint32_t index, oclc_symbol_info* info) {
  if (!plan || index >= count(plan->package->plan().symbols())) return OCLC_E_ARGUMENT;
  const fb::Symbol& symbol = *plan->package->plan().symbols()->Get(index);
  oclc_symbol_info value = OCLC_INIT(oclc_symbol_info);
  value.name = text(symbol.name());
  value.lo = symbol.lo();
  value.hi = symbol.hi();
  value.loop_counter = symbol.loop();
  return give(info, value);
}

oclc_status oclc_plan_get_entry(const oclc_plan* plan, uint32_t entry, oclc_entry_info* info) {
  const fb::Entry* e = find_entry(plan, entry);
  if (!e) return OCLC_E_ARGUMENT;
  oclc_entry_info value = OCLC_INIT(oclc_entry_info);
  value.name = text(e->name());
  value.input_count = count(e->inputs());
  value.output_count = count(e->outputs());
  value.launch_count = launches(e->steps());
  return give(info, value);
}

oclc_status oclc_plan_find_entry(const oclc_plan* plan, const char* name, uint32_t* entry, oclc_error* error) {
  return guarded(error, [&] {
    need(plan, "plan");
    need(name, "name");
    need(entry, "entry");
    const auto* entries = plan->package->plan().entries();
    std::string known;
    for (std::uint32_t i = 0; i < count(entries); ++i) {
      if (entries->Get(i)->name()->str() == name) {
        *entry = i;
        return;
      }
      known += (i ? ", " : "") + entries->Get(i)->name()->str();
    }
    throw Failure(OCLC_E_ARGUMENT,
                  std::string("the plan has no entry point '") + name + "'; it has: " + (known.empty() ? "none" : known));
  });
}

oclc_status oclc_plan_get_binding(const oclc_plan* plan, uint32_t entry, oclc_direction direction, uint32_t index,
                                  oclc_binding_info* info) {
  std::size_t texts = 0;
  const fb::Binding* binding = find_binding(plan, entry, direction, index, &texts);
  if (!binding) return OCLC_E_ARGUMENT;
  oclc_binding_info value = OCLC_INIT(oclc_binding_info);
  value.name = text(binding->name());
  value.shape_text = shape_texts(*plan, texts, *binding)[0].c_str();
  value.dtype = static_cast<oclc_dtype>(binding->dtype());
  value.rank = count(binding->shape());
  value.limit = binding->limit();
  value.also_count = count(binding->also());
  value.also = value.also_count ? binding->also()->data() : nullptr;
  value.open = direction == OCLC_OUTPUT && pkg::is_open(*binding, plan->open_symbols);
  return give(info, value);
}

const char* oclc_plan_dimension_text(const oclc_plan* plan, uint32_t entry, oclc_direction direction, uint32_t index,
                                     uint32_t dimension) {
  std::size_t texts = 0;
  const fb::Binding* binding = find_binding(plan, entry, direction, index, &texts);
  if (!binding || dimension >= count(binding->shape())) return nullptr;
  return shape_texts(*plan, texts, *binding)[dimension + std::size_t{1}].c_str();
}

oclc_status oclc_plan_get_variable(const oclc_plan* plan, uint32_t index, oclc_binding_info* info) {
  if (!plan || index >= count(plan->package->plan().variables())) return OCLC_E_ARGUMENT;
  const fb::Variable& variable = *plan->package->plan().variables()->Get(index);
  oclc_binding_info value = OCLC_INIT(oclc_binding_info);
  value.name = text(variable.name());
  value.shape_text = shape_texts(*plan, plan->first_text.back() + std::size_t{index}, variable)[0].c_str();
  value.dtype = static_cast<oclc_dtype>(variable.dtype());
  value.rank = count(variable.shape());
  if (count(variable.carried_from()) > 0) value.carried_from = text(variable.carried_from());
  return give(info, value);
}

oclc_status oclc_plan_get_variable_shape(const oclc_plan* plan, uint32_t index, int64_t* shape, uint32_t capacity,
                                         uint64_t* bytes) {
  if (!plan || index >= count(plan->package->plan().variables())) return OCLC_E_ARGUMENT;
  const fb::Variable& variable = *plan->package->plan().variables()->Get(index);
  std::uint64_t size = pkg::dtype_bytes(variable.dtype());
  for (std::uint32_t d = 0; d < count(variable.shape()); ++d) {
    const std::int64_t value = evaluate(variable.shape()->Get(d), {}, "a dimension");
    size *= static_cast<std::uint64_t>(value);
    if (shape && d < capacity) shape[d] = value;
  }
  if (bytes) *bytes = size;
  return OCLC_OK;
}

oclc_status oclc_plan_get_program(const oclc_plan* plan, uint32_t index, const char** name, const char** source) {
  if (!plan || index >= count(plan->package->plan().programs())) return OCLC_E_ARGUMENT;
  const fb::Program& program = *plan->package->plan().programs()->Get(index);
  if (name) *name = text(program.name());
  if (source) *source = text(program.source());
  return OCLC_OK;
}

oclc_status oclc_plan_memory(const oclc_plan* plan, uint32_t entry, const oclc_dim* dims, uint32_t dim_count,
                             oclc_memory_info* info, oclc_error* error) {
  return guarded(error, [&] {
    need(plan, "plan");
    need(info, "info");
    if (dim_count > 0) need(dims, "dims");
    if (!find_entry(plan, entry)) throw Failure(OCLC_E_ARGUMENT, "the plan has no entry point " + std::to_string(entry));
    if (give(info, memory_of(*plan->package, entry, symbol_values(plan->package->plan(), dims, dim_count))) != OCLC_OK)
      throw Failure(OCLC_E_ARGUMENT, "info: its size is not set");
  });
}

}  // extern "C"
