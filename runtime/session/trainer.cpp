#include "runtime/session/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/failure.h"
#include "runtime/session/expressions.h"
#include "runtime/session/scalar.h"

namespace oclc::runtime {
namespace {

constexpr std::size_t kMaxAhead = 16;
constexpr std::uint64_t kValueStride = 64;    // of the scalar outputs in their common memory
constexpr std::uint64_t kDirectBytes = 4096;  // smaller batches are not worth a transfer of their own
constexpr std::size_t kKeptResults = 65536;

void wait_for(const ClEvent& event, const std::string& what) {
  if (!event) return;
  cl_event raw = event.get();
  check_cl(clWaitForEvents(1, &raw), what);
}

}  // namespace

Trainer::Trainer(std::shared_ptr<Session> session, std::uint32_t entry)
    : session_(std::move(session)), context_(session_->context()), entry_(entry), counts_(session_->writes_state(entry)) {
  context_.check_process();
  for (const auto* binding : session_->bindings(entry, OCLC_INPUT)) {
    Input input;
    input.name = binding->name()->str();
    input.dtype = static_cast<oclc_dtype>(binding->dtype());
    inputs_.push_back(std::move(input));
  }
  if (!context_.facts().unified_memory) {
    cl_int code = CL_SUCCESS;
    transfers_ = ClQueue(clCreateCommandQueue(context_.cl(), context_.device(), 0, &code));
    check_cl(code, "creating the queue of transfers");
  }
  bind_values();
}

Trainer::~Trainer() {
  if (transfers_) clFinish(transfers_.get());
  if (context_.queue()) clFinish(context_.queue());
  session_->unbind(entry_);
}

// The scalar outputs share a memory object, so that one transfer brings them all.
void Trainer::bind_values() {
  bool found_loss = false;
  for (const auto* binding : session_->bindings(entry_, OCLC_OUTPUT)) {
    if (binding->shape() && binding->shape()->size() > 0) continue;
    if (values_.size() == OCLC_STEP_VALUES) break;
    if (binding->name()->str() == "loss") loss_ = values_.size(), found_loss = true;
    values_.push_back({binding->name()->str(), static_cast<oclc_dtype>(binding->dtype())});
  }
  if (!found_loss) loss_ = 0;
  const std::uint64_t bytes = std::max<std::size_t>(values_.size(), 1) * kValueStride;
  value_memory_ = session_->allocate(bytes, "scalar outputs");
  for (std::size_t i = 0; i < values_.size(); ++i) {
    oclc_tensor t = OCLC_INIT(oclc_tensor);
    t.dtype = values_[i].dtype;
    t.buffer = value_memory_.get();
    t.offset_bytes = i * kValueStride;
    t.bytes = oclc_dtype_bytes(t.dtype);
    session_->set_tensor(entry_, OCLC_OUTPUT, values_[i].name.c_str(), &t);
  }
  for (std::size_t i = 0; i < kMaxAhead; ++i) value_slots_.emplace_back(context_, bytes);
}

Trainer::Input& Trainer::find_input(const char* name) {
  for (Input& input : inputs_)
    if (name && input.name == name) return input;
  session_->check_name(entry_, OCLC_INPUT, name);  // throws
  throw Failure(OCLC_E_INTERNAL, "an input of the trainer is missing");
}

void Trainer::feed(const char* name, const oclc_tensor& batch) {
  if (!batch.host && batch.bytes > 0)
    throw Failure(OCLC_E_BINDING, "input '" + std::string(name ? name : "") + "': its host pointer is NULL");
  if (batch.rank > 0 && !batch.shape)
    throw Failure(OCLC_E_BINDING, "input '" + std::string(name ? name : "") + "': its shape is NULL");
  std::uint64_t bytes = 0;
  std::byte* memory = this->memory(name, batch.dtype, {batch.shape, batch.rank}, &bytes);
  Input& input = find_input(name);
  if (batch.bytes < bytes) {
    input.fresh = false;
    throw Failure(OCLC_E_BINDING, "input '" + input.name + "': shape " + shape_text(input.shape) + " needs " +
                                      std::to_string(bytes) + " bytes, found " + std::to_string(batch.bytes));
  }
  if (bytes > 0) std::memcpy(memory, batch.host, bytes);
}

std::byte* Trainer::memory(const char* name, oclc_dtype dtype, std::span<const std::int64_t> shape, std::uint64_t* bytes) {
  Input& input = find_input(name);
  static constexpr std::int64_t kScalar = 0;
  oclc_tensor t = OCLC_INIT(oclc_tensor);
  t.dtype = dtype;
  t.rank = static_cast<std::uint32_t>(shape.size());
  t.shape = shape.empty() ? &kScalar : shape.data();
  const std::uint64_t size = session_->check_input(entry_, name, t);
  if (!input.bound || !std::equal(shape.begin(), shape.end(), input.shape.begin(), input.shape.end()) || input.bytes != size)
    shape_input(input, shape);
  *bytes = input.bytes;
  if (input.bytes == 0) return nullptr;
  std::byte* memory = free_slot(input.slots, input.present, "transferring input '" + input.name + "'").host.data();
  input.fresh = true;
  return memory;
}

// Memory for batches of another shape, once nothing uses the old.
void Trainer::shape_input(Input& input, std::span<const std::int64_t> shape) {
  static constexpr std::int64_t kScalar = 0;
  harvest(0);
  if (transfers_) check_cl(clFinish(transfers_.get()), "waiting for transfers");
  std::uint64_t bytes = oclc_dtype_bytes(input.dtype);
  for (const std::int64_t d : shape) bytes *= static_cast<std::uint64_t>(d);
  oclc_tensor t = OCLC_INIT(oclc_tensor);
  t.dtype = input.dtype;
  t.rank = static_cast<std::uint32_t>(shape.size());
  t.shape = shape.empty() ? &kScalar : shape.data();
  t.bytes = bytes;
  ClMem device;
  std::vector<Slot> slots;
  if (bytes > 0) {
    device = session_->allocate(bytes, "input '" + input.name + "'");
    t.buffer = device.get();
    slots.resize(bytes <= kDirectBytes ? kMaxAhead : 2);
    for (Slot& slot : slots) {
      slot.host = PinnedMemory(context_, bytes);
      if (transfers_ && bytes > kDirectBytes) slot.upload = session_->allocate(bytes, "a batch of input '" + input.name + "'");
    }
  }
  session_->set_tensor(entry_, OCLC_INPUT, input.name.c_str(), &t);
  input.shape.assign(shape.begin(), shape.end());
  input.bytes = bytes;
  input.device = std::move(device);
  input.slots = std::move(slots);
  input.present = 0;
  input.bound = true;
}

Trainer::Slot& Trainer::free_slot(std::vector<Slot>& slots, std::size_t present, const std::string& what) {
  Slot& slot = slots[present];
  wait_for(slot.written, what);
  slot.written.reset();
  return slot;
}

void Trainer::set(const char* name, double value) {
  if (!name) throw Failure(OCLC_E_ARGUMENT, "the name of the hyper-parameter is NULL");
  for (Input& input : inputs_) {
    if (input.name != name) continue;
    std::uint64_t bytes = 0;
    put_scalar(memory(name, input.dtype, {}, &bytes), input.dtype, value);
    return;
  }
  set_variable(name, value);
}

void Trainer::set_variable(const std::string& name, double value) {
  auto at = std::find_if(settings_.begin(), settings_.end(), [&](const Setting& s) { return s.name == name; });
  if (at == settings_.end()) {
    const oclc::plan::Variable* v = session_->variable(name);
    if (!v)
      throw Failure(OCLC_E_ARGUMENT,
                    "no scalar input or variable '" + name + "'; the plan's scalars: " + session_->scalar_names(entry_));
    const Session::VariablePlace place = session_->variable_place(*v);
    if (v->shape() && v->shape()->size() > 0)
      throw Failure(OCLC_E_ARGUMENT,
                    "variable '" + name + "' is no scalar: its shape is " + shape_text(session_->plan(), v->shape()));
    settings_.push_back({name, place, {}, 0, false});
    at = settings_.end() - 1;
    at->slots.resize(kMaxAhead);
    for (Slot& slot : at->slots) slot.host = PinnedMemory(context_, place.bytes);
  }
  const auto dtype = static_cast<oclc_dtype>(session_->variable(name)->dtype());
  put_scalar(free_slot(at->slots, at->present, "setting variable '" + name + "'").host.data(), dtype, value);
  at->fresh = true;
}

void Trainer::check_complete() const {
  std::string missing;
  for (const Input& input : inputs_)
    if (!input.bound) missing += (missing.empty() ? "'" : ", '") + input.name + "'";
  if (!missing.empty())
    throw Failure(OCLC_E_BINDING, "entry point '" + session_->entry_name(entry_) + "' has no value for input " + missing);
}

void Trainer::upload(Input& input) {
  Slot& slot = input.slots[input.present];
  const cl_command_queue queue = context_.queue();
  cl_event written = nullptr;
  const std::string what = "writing input '" + input.name + "'";
  if (!slot.upload) {
    check_cl(clEnqueueWriteBuffer(queue, input.device.get(), CL_FALSE, 0, input.bytes, slot.host.data(), 0, nullptr, &written),
             what);
    slot.written = ClEvent(written);
  } else {
    cl_event before = slot.copied.get();
    check_cl(clEnqueueWriteBuffer(transfers_.get(), slot.upload.get(), CL_FALSE, 0, input.bytes, slot.host.data(),
                                  before ? 1 : 0, before ? &before : nullptr, &written),
             what);
    slot.written = ClEvent(written);
    check_cl(clFlush(transfers_.get()), what);
    cl_event copied = nullptr;
    check_cl(clEnqueueCopyBuffer(queue, slot.upload.get(), input.device.get(), 0, 0, input.bytes, 1, &written, &copied), what);
    slot.copied = ClEvent(copied);
  }
  input.fresh = false;
  input.present = (input.present + 1) % input.slots.size();
}

// Short steps may be many in flight, so that waking up for each does not cost more than the step; long ones two, so that a
// caller who stops waits for no more.
std::size_t Trainer::ahead() const {
  return static_cast<std::size_t>(std::clamp(0.01 / std::max(step_seconds_, 1e-9), 2.0, static_cast<double>(kMaxAhead)));
}

void Trainer::step() {
  check_complete();
  harvest(ahead() - 1);
  session_->prepare(entry_);
  const cl_command_queue queue = context_.queue();
  try {
    for (Input& input : inputs_)
      if (input.fresh) upload(input);
    for (Setting& s : settings_) {
      if (!s.fresh) continue;
      cl_event written = nullptr;
      check_cl(clEnqueueWriteBuffer(queue, s.place.memory, CL_FALSE, s.place.offset, s.place.bytes,
                                    s.slots[s.present].host.data(), 0, nullptr, &written),
               "setting variable '" + s.name + "'");
      s.slots[s.present].written = ClEvent(written);
      s.present = (s.present + 1) % s.slots.size();
      s.fresh = false;
    }
    session_->submit(entry_);
    const std::uint64_t number = next();
    const std::size_t slot = number % kMaxAhead;
    cl_event done = nullptr;
    check_cl(
        clEnqueueReadBuffer(queue, value_memory_.get(), CL_FALSE, 0, std::max<std::size_t>(values_.size(), 1) * kValueStride,
                            value_slots_[slot].data(), 0, nullptr, &done),
        "reading the results of a step");
    pending_.push_back({number, slot, ClEvent(done)});
    if (counts_)
      session_->count_step();
    else
      ++own_steps_;
    check_cl(clFlush(queue), "starting a step");
  } catch (...) {
    clFinish(queue);
    throw;
  }
}

// Collects what has finished; waits until at most `keep` steps are under way.
void Trainer::harvest(std::size_t keep) {
  while (!pending_.empty()) {
    const Pending& front = pending_.front();
    if (pending_.size() > keep) {
      wait_for(front.done, "running a step");
    } else {
      cl_int status = CL_QUEUED;
      check_cl(clGetEventInfo(front.done.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
               "asking for a step");
      if (status < 0) check_cl(status, "running a step");
      if (status != CL_COMPLETE) return;
    }
    collect(front);
    pending_.pop_front();
  }
}

void Trainer::collect(const Pending& pending) {
  oclc_step_result result = OCLC_INIT(oclc_step_result);
  result.step = pending.step;
  result.value_count = static_cast<std::uint32_t>(values_.size());
  for (std::size_t i = 0; i < values_.size(); ++i)
    result.values[i] = get_scalar(value_slots_[pending.slot].data() + i * kValueStride, values_[i].dtype);
  result.loss = values_.empty() ? std::nan("") : result.values[loss_];
  if (results_.size() == kKeptResults) results_.pop_front();
  results_.push_back(result);
  const auto now = std::chrono::steady_clock::now();
  if (last_.time_since_epoch().count() != 0) {
    const double seconds = std::chrono::duration<double>(now - last_).count();
    step_seconds_ += 0.2 * (seconds - step_seconds_);
  }
  last_ = now;
}

std::uint32_t Trainer::results(bool wait, oclc_step_result* results, std::uint32_t capacity) {
  harvest(wait ? 0 : kMaxAhead);
  const auto n = results ? std::min<std::size_t>(capacity, results_.size()) : 0;
  for (std::size_t i = 0; i < n; ++i) {
    oclc_step_result result = results_.front();
    result.size = results->size;
    std::memcpy(reinterpret_cast<char*>(results) + i * result.size, &result, std::min(result.size, sizeof result));
    results_.pop_front();
  }
  return static_cast<std::uint32_t>(n);
}

const char* Trainer::value_name(std::uint32_t index) const {
  return index < values_.size() ? values_[index].name.c_str() : nullptr;
}

}  // namespace oclc::runtime
