#include "runtime/session/schedule.h"

#include <algorithm>

#include "runtime/device/sm90a.h"
#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/limits.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/expressions.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;

// NVIDIA's devices from this compute capability on let groups of a launch wait for one another and see each other's stores.
constexpr unsigned kSeesGroups = 70;

}  // namespace

std::string Schedule::Leaf::described() const {
  return "kernel '" + name + "'" + (nodes.empty() ? "" : " (nodes " + nodes + ")");
}

Schedule::Schedule(Context& context, const LoadedPlan& loaded, std::uint32_t entry, StringTable& strings, const RunLimit& limit)
    : context_(context),
      loaded_(loaded),
      programs_(&loaded.programs()),
      behind_(programs_->behind.get()),
      strings_(strings),
      items_see_(context.facts().device_class == OCLC_DEVICE_CPU),
      groups_see_(compute_capability(context.device()) >= kSeesGroups),
      segments_(package::segments_of(loaded.plan(), entry)),
      limit_(limit) {
  const fb::Plan& plan = loaded.plan();
  used_.assign(plan.symbols() ? plan.symbols()->size() : 0, false);
  nodes_ = make_nodes(plan.entries()->Get(entry)->steps());
  for (std::size_t i = 0; i < used_.size(); ++i)
    if (plan.symbols()->Get(static_cast<std::uint32_t>(i))->loop()) used_[i] = false;
}

// Notes the symbols of `e`; true if it depends on a loop counter.
bool Schedule::looping(const fb::Expr* e) {
  bool result = false;
  each_symbol(e, [&](int symbol) {
    used_[static_cast<std::size_t>(symbol)] = true;
    result = result || loaded_.plan().symbols()->Get(static_cast<std::uint32_t>(symbol))->loop();
  });
  return result;
}

std::vector<Schedule::Node> Schedule::make_nodes(const Steps* steps) {
  std::vector<Node> nodes;
  for (std::uint32_t i = 0; steps && i < steps->size(); ++i) {
    const fb::Step& step = *steps->Get(i);
    Node node;
    if (const auto* launch = step.body_as_Launch()) {
      node.leaf = make_launch(*launch);
    } else if (const auto* gemm = step.body_as_BlasGemm()) {
      node.leaf = make_gemm(*gemm);
      replayable_ = false;
    } else if (const auto* read = step.body_as_Read()) {
      node.read = read;
      if (package::binds_open(loaded_.plan(), *read)) node.segment = ++segment_count_;
      reads_ = true;
      looping(read->from()->value());
      for (const int dim : *read->dims()) looping(loaded_.plan().symbols()->Get(static_cast<std::uint32_t>(dim))->upper());
      replayable_ = false;
    } else if (const auto* host = step.body_as_Host()) {
      node.host = host;
      ++next_step_;
      for (const auto* list : {host->inputs(), host->outputs()})
        for (std::uint32_t k = 0; k < count(list); ++k) {
          looping(list->Get(k)->at()->value());
          for (std::uint32_t d = 0; d < count(list->Get(k)->shape()); ++d) looping(list->Get(k)->shape()->Get(d));
        }
      replayable_ = false;
    } else {
      const auto* loop = step.body_as_Loop();
      looping(loop->trip());
      node.trip = loop->trip();
      node.counter = loop->counter();
      node.condition = loop->condition();
      node.body = make_nodes(loop->body());
      replayable_ = false;
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// Whether the buffer's place is found while the plan runs.
bool Schedule::is_laid_out_late(const fb::Arg& arg) const {
  bool late = false;
  each_buffer(arg, [&](std::uint32_t buffer, bool) { late = late || segments_.buffers[buffer] > 0; });
  return late;
}

bool Schedule::is_looping(const fb::Arg& arg) {
  bool result = looping(arg.value());
  for (std::uint32_t i = 0; i < count(arg.cells()); ++i) result = looping(arg.cells()->Get(i)->value()) || result;
  return result;
}

// The first argument that passes the memory object of all buffers of the argument's kind.
int Schedule::first_of_kind(const fb::Launch& launch, const fb::Arg& arg) const {
  const auto kind_of = [&](const fb::Arg& a) {
    return loaded_.plan().buffers()->Get(static_cast<std::uint32_t>(a.buffer()))->kind();
  };
  int i = 0;
  for (const fb::Arg* a : *launch.args()) {
    if (a->kind() == fb::ArgKind::buffer && !a->shared() && kind_of(*a) == kind_of(arg)) return i;
    ++i;
  }
  return -1;  // no verified plan
}

const fb::Program& Schedule::program_of(const fb::Launch& launch) const {
  return *loaded_.plan().programs()->Get(static_cast<std::uint32_t>(launch.program()));
}

const std::vector<Piece>& Schedule::pieces_of(const fb::Launch& launch) const {
  return programs_->pieces_of[static_cast<std::size_t>(launch.program())];
}

ClKernel Schedule::make_kernel(const fb::Launch& launch, const std::string& name, std::size_t piece) const {
  cl_int code = CL_SUCCESS;
  ClKernel kernel(clCreateKernel(programs_->units[pieces_of(launch)[piece].unit].get(), name.c_str(), &code));
  if (code == CL_INVALID_KERNEL_NAME)
    throw Failure(OCLC_E_PLAN,
                  loaded_.package().name() + ": invalid plan: program '" + program_of(launch).name()->str() +
                      "' has no kernel '" + name + "'",
                  code);
  check_cl(code, "creating kernel '" + name + "'");
  return kernel;
}

int Schedule::make_launch(const fb::Launch& launch) {
  Leaf leaf;
  leaf.launch = &launch;
  leaf.name = launch.name()->str();
  leaf.nodes = joined(launch.nodes());
  leaf.kernel = make_kernel(launch, leaf.name);
  check_local_memory(leaf);
  cl_uint index = 0;
  for (std::uint32_t i = 0; launch.args() && i < launch.args()->size(); ++i) {
    Leaf::Slot slot;
    slot.arg = launch.args()->Get(i);
    slot.index = index;
    slot.looping = is_looping(*slot.arg);
    leaf.looping = leaf.looping || slot.looping || is_laid_out_late(*slot.arg);
    if (slot.arg->kind() == fb::ArgKind::rows) {
      slot.table = static_cast<int>(leaf.tables.size());
      leaf.tables.emplace_back();
    }
    if (slot.arg->shared()) slot.object = first_of_kind(launch, *slot.arg);
    index += slot.arg->kind() == fb::ArgKind::buffer && !slot.arg->shared() ? 2 : 1;
    leaf.slots.push_back(slot);
  }
  leaf.step = next_step_;
  next_step_ += std::max(1u, launch.parts() ? launch.parts()->size() : 0);
  if (launch.parts() && launch.parts()->size() > 0) {
    leaf.part_index = index;
    index += 2;
  }
  leaf.arguments = index;
  check_signature(leaf, leaf.kernel.get());
  leaf.dims = launch.global()->size();
  for (cl_uint d = 0; d < leaf.dims; ++d) {
    leaf.local[d] = launch.local()->Get(d);
    leaf.looping = looping(launch.global()->Get(d)) || leaf.looping;
  }
  leaf.looping = looping(launch.flops()) || leaf.looping;
  leaf.looping = looping(launch.bytes()) || leaf.looping;
  check_limits(leaf);
  if (leaf.part_index > 0) {
    leaf.apart = must_be_apart(leaf) || in_pieces(leaf);
    if (must_be_apart(leaf)) replayable_ = false;
  }
  add_runs(leaf);
  if (leaf.part_index > 0) add_parts(leaf);
  leaves_.push_back(std::move(leaf));
  return static_cast<int>(leaves_.size()) - 1;
}

int Schedule::make_gemm(const fb::BlasGemm& gemm) {
  if (!blas_) blas_ = Blas::load();
  Leaf leaf;
  leaf.gemm = &gemm;
  leaf.step = next_step_++;
  leaf.name = gemm.name() ? gemm.name()->str() : "gemm";
  leaf.nodes = joined(gemm.nodes());
  for (const fb::Expr* e : {gemm.m(), gemm.n(), gemm.k(), gemm.lda(), gemm.ldb(), gemm.ldc(), gemm.batch(), gemm.stride_a(),
                            gemm.stride_b(), gemm.stride_c(), gemm.flops(), gemm.bytes()})
    leaf.looping = looping(e) || leaf.looping;
  for (const fb::Arg* arg : {gemm.a(), gemm.b(), gemm.c()}) {
    Leaf::Slot slot;
    slot.arg = arg;
    slot.looping = looping(arg->value());
    leaf.looping = leaf.looping || slot.looping || is_laid_out_late(*arg);
    leaf.slots.push_back(slot);
  }
  leaves_.push_back(std::move(leaf));
  return static_cast<int>(leaves_.size()) - 1;
}

bool Schedule::evaluate_geometry(Leaf& leaf, std::span<const std::int64_t> symbols) {
  const fb::Expr* flops = leaf.launch ? leaf.launch->flops() : leaf.gemm->flops();
  const fb::Expr* bytes = leaf.launch ? leaf.launch->bytes() : leaf.gemm->bytes();
  leaf.flops = static_cast<double>(evaluate(flops, symbols, "flops"));
  leaf.bytes = static_cast<double>(evaluate(bytes, symbols, "bytes"));
  if (leaf.gemm) return true;
  for (Leaf& part : leaf.parts) {
    part.flops = static_cast<double>(evaluate(part.part->flops(), symbols, "flops"));
    part.bytes = static_cast<double>(evaluate(part.part->bytes(), symbols, "bytes"));
  }
  bool changed = false;
  bool empty = false;
  for (cl_uint d = 0; d < leaf.dims; ++d) {
    const std::int64_t size = evaluate(leaf.launch->global()->Get(d), symbols, "a launch size");
    if (size < 0 || size >= package::kMaxGlobalSize || size % static_cast<std::int64_t>(leaf.local[d]) != 0)
      reject(leaf.described() + " has global size " + std::to_string(size) + " and local size " +
             std::to_string(leaf.local[d]) + " in dimension " + std::to_string(d));
    changed = changed || leaf.global[d] != static_cast<std::size_t>(size);
    leaf.global[d] = static_cast<std::size_t>(size);
    empty = empty || size == 0;
  }
  changed = changed || leaf.empty != empty;
  leaf.empty = empty;
  if (!empty) check_items(leaf);
  return changed;
}

bool Schedule::set_slot(Leaf& leaf, Leaf::Slot& slot, std::span<const std::int64_t> symbols) {
  const auto kind = slot.arg->kind();
  if (kind == fb::ArgKind::rows) return set_table(leaf, slot, symbols);
  std::int64_t value = evaluate(slot.arg->value(), symbols, "a kernel argument");
  Place place;
  if (kind == fb::ArgKind::buffer) {
    place = places_[static_cast<std::size_t>(slot.arg->buffer())];
    const auto* buffer = loaded_.plan().buffers()->Get(static_cast<std::uint32_t>(slot.arg->buffer()));
    const std::uint64_t element = package::dtype_bytes(buffer->dtype());
    if (is_laid_out_late(*slot.arg)) {
      const std::int64_t bytes = evaluate(buffer->bytes(), symbols, "the size of a buffer");
      if (bytes < 0 || static_cast<std::uint64_t>(bytes) > place.bytes)
        reject(leaf.described() + " uses buffer " + std::to_string(slot.arg->buffer()) + " with " + std::to_string(bytes) +
               " bytes, which were " + std::to_string(place.bytes) + " when it was laid out");
    }
    // Nothing of an empty buffer is used, wherever it begins.
    if (place.bytes == 0) value = 0;
    if (value < 0 || static_cast<std::uint64_t>(value) > place.bytes / element)
      reject(leaf.described() + " uses buffer " + std::to_string(slot.arg->buffer()) + " from element " +
             std::to_string(value) + " on, which has " + std::to_string(place.bytes / element));
    value += static_cast<std::int64_t>(place.offset / element);
  }
  if (slot.object >= 0 && place.memory != leaf.slots[static_cast<std::size_t>(slot.object)].place.memory)
    throw Failure(OCLC_E_UNSUPPORTED, leaf.described() + " wants all constants in one memory object, device '" +
                                          context_.facts().name + "' allows at most " +
                                          std::to_string(context_.facts().max_alloc_bytes) +
                                          " bytes in one; compile the model with --disable=merge_arguments");
  if (slot.set && slot.value == value && slot.place.memory == place.memory && slot.place.generation == place.generation)
    return false;
  slot.set = true;
  slot.value = value;
  slot.place = place;
  if (leaf.gemm) return true;
  set_argument(leaf, slot, leaf.kernel.get());
  for (const ClKernel& kernel : leaf.part_kernels) set_argument(leaf, slot, kernel.get());
  return true;
}

void Schedule::set_argument(const Leaf& leaf, const Leaf::Slot& slot, cl_kernel kernel) {
  cl_int code = CL_SUCCESS;
  const std::int64_t value = slot.value;
  switch (slot.arg->kind()) {
    case fb::ArgKind::buffer: {
      const cl_long offset = value;
      if (slot.object < 0) code = clSetKernelArg(kernel, slot.index, sizeof(cl_mem), &slot.place.memory);
      if (code == CL_SUCCESS) code = clSetKernelArg(kernel, slot.index + (slot.object < 0 ? 1 : 0), sizeof offset, &offset);
      break;
    }
    case fb::ArgKind::int32: {
      if (value < INT32_MIN || value > INT32_MAX)
        throw Failure(OCLC_E_BINDING, leaf.described() + " argument " + std::to_string(slot.index) + ": " +
                                          std::to_string(value) +
                                          " does not fit 32 bits; the dimensions are too large for this plan");
      const auto narrow = static_cast<cl_int>(value);
      code = clSetKernelArg(kernel, slot.index, sizeof narrow, &narrow);
      break;
    }
    case fb::ArgKind::int64: {
      const cl_long wide = value;
      code = clSetKernelArg(kernel, slot.index, sizeof wide, &wide);
      break;
    }
    case fb::ArgKind::local: {
      const oclc_device_info& facts = context_.facts();
      if (value <= 0 || static_cast<std::uint64_t>(value) > facts.local_bytes)
        throw Failure(OCLC_E_UNSUPPORTED, leaf.described() + " wants " + std::to_string(value) +
                                              " bytes of local memory, device '" + facts.name + "' has " +
                                              std::to_string(facts.local_bytes));
      code = clSetKernelArg(kernel, slot.index, static_cast<std::size_t>(value), nullptr);
      break;
    }
    case fb::ArgKind::rows: {
      const cl_mem memory = leaf.tables[static_cast<std::size_t>(slot.table)].memory.get();
      code = clSetKernelArg(kernel, slot.index, sizeof memory, &memory);
      break;
    }
  }
  check_cl(code, "setting argument " + std::to_string(slot.index) + " of " + leaf.described());
}

bool Schedule::set_arguments(Leaf& leaf, std::span<const std::int64_t> symbols, bool only_looping) {
  bool changed = false;
  for (Leaf::Slot& slot : leaf.slots)
    if (slot.looping || !only_looping) changed = set_slot(leaf, slot, symbols) || changed;
  return changed;
}

bool Schedule::bind(std::span<const std::int64_t> symbols, std::span<const Place> places) {
  places_.assign(places.begin(), places.end());
  bool changed = false;
  for (Leaf& leaf : leaves_) {
    // What depends on a counter waits for its loop, and what is laid out late for that; the rest of its arguments is set now.
    if (!leaf.looping) changed = evaluate_geometry(leaf, symbols) || changed;
    for (Leaf::Slot& slot : leaf.slots)
      if (!slot.looping && !is_laid_out_late(*slot.arg) && !leaf.empty) changed = set_slot(leaf, slot, symbols) || changed;
  }
  return changed;
}

}  // namespace oclc::runtime
