// Steps of an entry point one after another: batches through double-buffered transfers, results without a round trip per step.
// The contract is train.h.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oclc/train.h"
#include "runtime/device/pinned.h"
#include "runtime/session/session.h"

namespace oclc::runtime {

class Trainer {
 public:
  Trainer(std::shared_ptr<Session> session, std::uint32_t entry);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void feed(const char* input, const oclc_tensor& batch);
  std::byte* memory(const char* input, oclc_dtype dtype, std::span<const std::int64_t> shape, std::uint64_t* bytes);
  void set(const char* name, double value);
  void step();
  std::uint32_t results(bool wait, oclc_step_result* results, std::uint32_t capacity);
  const char* value_name(std::uint32_t index) const;
  // Number of the next step.
  std::uint64_t next() const { return (counts_ ? session_->steps() : own_steps_) + 1; }

  std::string& message() { return message_; }

 private:
  // Host memory of one batch on its way. `written`: it may be filled again. `copied`: its device copy may be written again.
  struct Slot {
    PinnedMemory host;
    ClMem upload;  // on devices with their own memory
    ClEvent written;
    ClEvent copied;
  };
  struct Input {
    std::string name;
    oclc_dtype dtype = OCLC_F32;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;
    bool bound = false;
    bool fresh = false;  // the next step takes the present slot
    ClMem device;
    std::vector<Slot> slots;
    std::size_t present = 0;
  };
  // A scalar variable to be set before the next step.
  struct Setting {
    std::string name;
    Session::VariablePlace place;
    std::vector<Slot> slots;
    std::size_t present = 0;
    bool fresh = false;
  };
  struct Value {
    std::string name;
    oclc_dtype dtype;
  };
  struct Pending {
    std::uint64_t step;
    std::size_t slot;
    ClEvent done;
  };

  void bind_values();
  Input& find_input(const char* name);
  void shape_input(Input& input, std::span<const std::int64_t> shape);
  Slot& free_slot(std::vector<Slot>& slots, std::size_t present, const std::string& what);
  void set_variable(const std::string& name, double value);
  void check_complete() const;
  void upload(Input& input);
  void harvest(std::size_t keep);
  void collect(const Pending& pending);
  std::size_t ahead() const;

  std::shared_ptr<Session> session_;
  Context& context_;
  std::uint32_t entry_;
  bool counts_;  // its steps change the state
  std::uint64_t own_steps_ = 0;
  ClQueue transfers_;  // null: the device shares the host's memory
  std::vector<Input> inputs_;
  std::vector<Setting> settings_;
  std::vector<Value> values_;
  std::size_t loss_ = 0;
  ClMem value_memory_;
  std::vector<PinnedMemory> value_slots_;
  std::deque<Pending> pending_;
  std::deque<oclc_step_result> results_;
  std::chrono::steady_clock::time_point last_{};
  double step_seconds_ = 1;
  std::string message_;
};

}  // namespace oclc::runtime
