#include "runtime/session/session.h"

#include "runtime/failure.h"
#include "runtime/flat.h"
#include "runtime/package/checkpoint.h"
#include "runtime/package/container.h"
#include "runtime/package/verify/verify.h"
#include "runtime/session/expressions.h"

namespace oclc::runtime {

namespace fb = oclc::plan;

void Session::make_state() {
  const std::uint32_t n = count(plan().buffers());
  states_.resize(n);
  state_offsets_.assign(n, 0);
  state_sizes_.assign(n, 0);
  for (std::uint32_t i = 0; i < n; ++i) {
    const fb::Buffer& buffer = *plan().buffers()->Get(i);
    if (buffer.kind() != fb::BufferKind::state) continue;
    state_sizes_[i] = static_cast<std::uint64_t>(evaluate(buffer.bytes(), {}, "state"));
    if (__builtin_add_overflow(state_bytes_, state_sizes_[i], &state_bytes_)) state_bytes_ = UINT64_MAX;
  }
  if (state_bytes_ > context_->memory_bytes() || loaded_->constant_bytes() > context_->memory_bytes() - state_bytes_)
    throw Failure(OCLC_E_MEMORY, "the plan's state takes " + std::to_string(state_bytes_) + " bytes and its constants " +
                                     std::to_string(loaded_->constant_bytes()) + ", " + context_->memory_text());
  std::uint64_t pooled = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (state_sizes_[i] == 0) continue;
    if (!plan().buffers()->Get(i)->pooled()) {
      states_[i] = allocate(state_sizes_[i], "state");
      continue;
    }
    state_offsets_[i] = pooled;
    pooled += package::align_up(state_sizes_[i], package::kArenaAlignment);
  }
  const ClMem pool = pooled > 0 ? allocate(pooled, "small states") : ClMem();
  for (std::uint32_t i = 0; pool && i < n; ++i)
    if (plan().buffers()->Get(i)->pooled() && plan().buffers()->Get(i)->kind() == fb::BufferKind::state)
      states_[i] = ClMem::retain(pool.get());  // empty ones too
  reset_state();
}

void Session::reset_state() {
  context_->check_process();
  for (std::uint32_t i = 0; i < states_.size(); ++i)
    if (state_sizes_[i] > 0) write_initial(i);
  check_cl(clFinish(context_->queue()), "writing the initial state");
  steps_ = 0;
}

void Session::write_initial(std::uint32_t index) {
  const fb::Buffer& buffer = *plan().buffers()->Get(index);
  const std::uint64_t bytes = state_sizes_[index];
  if (buffer.has_initial()) {
    const std::byte* data = package_->constants().data() + buffer.constant_offset();
    check_cl(clEnqueueWriteBuffer(context_->queue(), states_[index].get(), CL_FALSE, state_offsets_[index], bytes, data, 0,
                                  nullptr, nullptr),
             "writing the initial state");
    return;
  }
  context_->clear(states_[index].get(), state_offsets_[index], bytes);
}

const fb::Variable* Session::variable(const std::string& name) const {
  for (std::uint32_t i = 0; i < count(plan().variables()); ++i)
    if (plan().variables()->Get(i)->name()->str() == name) return plan().variables()->Get(i);
  return nullptr;
}

Session::VariablePlace Session::find_variable(const char* name, const void* host, std::uint64_t bytes) const {
  if (!name) throw Failure(OCLC_E_ARGUMENT, "the name of the variable is NULL");
  const fb::Variable* v = variable(name);
  if (!v) throw Failure(OCLC_E_ARGUMENT, std::string("the plan has no variable '") + name + "'");
  const VariablePlace place = variable_place(*v);
  if (place.bytes != bytes)
    throw Failure(OCLC_E_ARGUMENT, std::string("variable '") + name + "' has " + std::to_string(place.bytes) +
                                       " bytes, found " + std::to_string(bytes));
  if (bytes > 0 && !host) throw Failure(OCLC_E_ARGUMENT, std::string("variable '") + name + "': the host pointer is NULL");
  return place;
}

Session::VariablePlace Session::variable_place(const fb::Variable& v) const {
  std::uint64_t elements = 1;
  for (std::uint32_t d = 0; d < count(v.shape()); ++d)
    elements *= static_cast<std::uint64_t>(evaluate(v.shape()->Get(d), {}, "a dimension"));
  const std::uint64_t element = package::dtype_bytes(v.dtype());
  const auto buffer = static_cast<std::size_t>(v.buffer());
  return {states_[buffer].get(), state_offsets_[buffer] + static_cast<std::uint64_t>(v.offset()) * element, elements * element};
}

void Session::read_variable(const char* name, void* host, std::uint64_t bytes) {
  const VariablePlace place = find_variable(name, host, bytes);
  if (bytes == 0) return;
  context_->check_process();
  check_cl(clEnqueueReadBuffer(context_->queue(), place.memory, CL_TRUE, place.offset, bytes, host, 0, nullptr, nullptr),
           "reading a variable");
}

void Session::write_variable(const char* name, const void* host, std::uint64_t bytes) {
  const VariablePlace place = find_variable(name, host, bytes);
  if (bytes == 0) return;
  context_->check_process();
  check_cl(clEnqueueWriteBuffer(context_->queue(), place.memory, CL_TRUE, place.offset, bytes, host, 0, nullptr, nullptr),
           "writing a variable");
}

void Session::save_state(const std::string& path) {
  context_->check_process();
  const auto read = [&](std::uint32_t index, std::uint64_t begin, std::span<std::byte> out) {
    const VariablePlace place = variable_place(*plan().variables()->Get(index));
    check_cl(clEnqueueReadBuffer(context_->queue(), place.memory, CL_TRUE, place.offset + begin, out.size(), out.data(), 0,
                                 nullptr, nullptr),
             "reading a variable");
  };
  package::write_checkpoint(path, plan(), steps_, read);
}

void Session::load_state(const std::string& path) {
  context_->check_process();
  const package::Checkpoint checkpoint = package::Checkpoint::open(path);
  const auto values = checkpoint.values_for(plan());
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    if (values[i].empty()) continue;
    const VariablePlace place = variable_place(*plan().variables()->Get(i));
    check_cl(clEnqueueWriteBuffer(context_->queue(), place.memory, CL_FALSE, place.offset, values[i].size(), values[i].data(),
                                  0, nullptr, nullptr),
             "writing a variable");
  }
  check_cl(clFinish(context_->queue()), "writing the variables");
  steps_ = checkpoint.steps();
}

}  // namespace oclc::runtime
