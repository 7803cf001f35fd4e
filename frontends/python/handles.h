// Plans, contexts and sessions of the runtime as the classes of `oclc._core`. oclc/plan.py and its neighbours make Python's
// words of them.
#pragma once
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontends/python/failure.h"
#include "frontends/python/tensors.h"
#include "oclc/oclc.h"
#include "oclc/train.h"

namespace oclc::python {

struct EntryPorts {
  std::string name;
  std::vector<Port> inputs, outputs;
};

class Plan {
 public:
  // Of a file, which stays mapped.
  explicit Plan(std::string path);
  // Of a file's bytes.
  explicit Plan(std::vector<std::byte> bytes);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  oclc_plan* get() const { return plan_; }
  const std::vector<EntryPorts>& entries() const { return entries_; }
  const EntryPorts& entry(std::uint32_t index) const;
  // The file's bytes.
  nanobind::bytes bytes() const;
  void save(const std::string& path) const;

 private:
  std::vector<std::byte> file_bytes() const;
  void read_entries();

  std::string path_;
  std::vector<std::byte> bytes_;
  oclc_plan* plan_ = nullptr;
  std::vector<EntryPorts> entries_;
};

class Context {
 public:
  // `cl_context` and `cl_queue`: the caller's objects as numbers, or 0.
  Context(const std::string& device, std::uintptr_t cl_context, std::uintptr_t cl_queue, bool profiling,
          const std::optional<std::string>& cache_dir);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  oclc_context* get() const { return context_; }
  void check_process() const;

 private:
  oclc_context* context_ = nullptr;
  pid_t process_ = ::getpid();
};

class Session;

// A run that was enqueued. Holds what the run reads and writes.
class Running {
 public:
  Running(std::shared_ptr<Session> session, _cl_event* event, std::vector<HeldTensor> memory);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void wait();
  bool done() const;

 private:
  std::shared_ptr<Session> session_;
  _cl_event* event_;
  std::vector<HeldTensor> memory_;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Plan> plan, std::shared_ptr<Context> context);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Inputs in the entry's order. Outputs: None makes an array. Gives the outputs in order.
  nanobind::list run(std::uint32_t entry, nanobind::list inputs, nanobind::list outputs);
  // The same without waiting: a Running and the outputs.
  nanobind::tuple enqueue(std::uint32_t entry, nanobind::list inputs, nanobind::list outputs);
  // Runs the entry so many times. An input of one dimension more than the port's has a value for each step. Gives the outputs
  // of which `wanted` says true, [steps, ..].
  nanobind::list run_steps(std::uint32_t entry, std::uint64_t steps, nanobind::list inputs, nanobind::list wanted);
  // Contiguous host memory by address, for callers that know it: shapes of the inputs, then addresses of inputs and outputs.
  void run_addresses(std::uint32_t entry, nanobind::list shapes, nanobind::list inputs, nanobind::list outputs);

  nanobind::object read_variable(const std::string& name);
  void write_variable(const std::string& name, nanobind::handle value);
  void reset_state();
  void save_state(const std::string& path);
  void load_state(const std::string& path);
  void bind_dim(const std::string& symbol, std::int64_t value);
  void enable_profile(bool enabled);
  void enable_nan_check(bool enabled);
  nanobind::list launches();
  nanobind::dict stats();
  void cancel() { oclc_session_cancel(session_); }

  // Held while a call uses the session; raises oclc.Error where another thread does.
  class Use {
   public:
    explicit Use(Session& session);
    ~Use() { session_.busy_.store(false, std::memory_order_release); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Session& session_;
  };

  oclc_session* get() const { return session_; }
  const Plan& plan() const { return *plan_; }
  void check(oclc_status status) const;

 private:
  std::vector<HeldTensor> bind_inputs(std::uint32_t entry, nanobind::list inputs);
  // Appends to `memory`; those that are known after the run alone have no memory.
  void bind_outputs(std::uint32_t entry, nanobind::list outputs, std::vector<HeldTensor>& memory);
  std::vector<std::int64_t> output_shape(std::uint32_t entry, const Port& port, std::uint64_t* bytes) const;
  nanobind::list results(std::uint32_t entry, nanobind::list outputs, std::vector<HeldTensor>& memory);
  std::uint32_t variable_index(const std::string& name) const;

  std::shared_ptr<Plan> plan_;
  std::shared_ptr<Context> context_;
  oclc_session* session_ = nullptr;
  std::atomic<bool> busy_{false};
  std::uint64_t copies_ = 0;
  std::vector<std::vector<HeldTensor>> bound_;  // of each entry: what the runtime still knows the addresses of
};

class Trainer {
 public:
  Trainer(std::shared_ptr<Session> session, std::uint32_t entry);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void feed(const std::string& input, nanobind::handle batch);
  void set(const std::string& name, double value);
  void step();
  std::uint64_t next_step() const { return oclc_trainer_next_step(trainer_); }
  // (step, loss, [values]) of the steps that have finished since the last call.
  nanobind::list results(bool wait);
  std::vector<std::string> value_names() const;

 private:
  void check(oclc_status status) const;

  std::shared_ptr<Session> session_;
  std::uint32_t entry_;
  oclc_trainer* trainer_ = nullptr;
  pid_t process_ = ::getpid();
};

void bind_context(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_session(nanobind::module_& module);
void bind_trainer(nanobind::module_& module);
void bind_compile(nanobind::module_& module);

}  // namespace oclc::python
