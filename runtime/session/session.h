// A plan on a context: kernels, memory, bindings. One thread at a time.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/package/memory.h"
#include "runtime/session/command_buffer.h"
#include "runtime/session/loaded_plan.h"
#include "runtime/session/run_limit.h"
#include "runtime/session/schedule.h"

namespace oclc::runtime {

// Where kernels want inputs and outputs to begin.
constexpr std::uint64_t kPortAlignment = 16;

class Session {
 public:
  Session(std::shared_ptr<Context> context, std::shared_ptr<const package::Package> package);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void bind_dim(const std::string& symbol, std::int64_t value);
  void set_tensor(std::uint32_t entry, oclc_direction direction, const char* name, const oclc_tensor* tensor);
  std::vector<std::int64_t> shape(std::uint32_t entry, oclc_direction direction, const char* name, std::uint64_t* bytes);

  void prepare(std::uint32_t entry);
  void run(std::uint32_t entry);
  // Copies what the last run of the entry gave; waits.
  void read_output(std::uint32_t entry, const char* name, void* host, std::uint64_t bytes);
  // See oclc_session_map_output.
  std::span<const std::byte> map_output(std::uint32_t entry, const char* name);
  void unmap_output(std::uint32_t entry, const char* name);
  // Runs the entry so many times, the host in between neither feeding nor waiting, and waits; see oclc_session_run_steps.
  void run_steps(std::uint32_t entry, std::uint64_t steps, std::span<const oclc_series> series);
  // Without `flush` the driver may hold the commands back until somebody flushes the queue or waits.
  void enqueue(std::uint32_t entry, std::uint32_t wait_count, const cl_event* wait, cl_event* event, bool flush = true);

  void read_variable(const char* name, void* host, std::uint64_t bytes);
  void write_variable(const char* name, const void* host, std::uint64_t bytes);
  void reset_state();
  // The named variable, or null.
  const oclc::plan::Variable* variable(const std::string& name) const;
  struct VariablePlace {
    cl_mem memory;
    std::uint64_t offset;  // bytes
    std::uint64_t bytes;
  };
  VariablePlace variable_place(const oclc::plan::Variable& variable) const;
  // See checkpoint.h. When load_state throws for the file's sake, the state is as it was.
  void save_state(const std::string& path);
  void load_state(const std::string& path);
  std::uint64_t steps() const { return steps_; }
  void count_step() { ++steps_; }

  // From any thread: the run in progress fails with OCLC_E_CANCELLED before its next step.
  void cancel() { limit_.cancel(); }
  // Of runs from now on; 0: none. See oclc_session_set_time_limit.
  void set_time_limit(std::uint64_t ns) { time_limit_ns_ = ns; }

  // Enqueues without a marker or flush of its own.
  void submit(std::uint32_t entry);
  // Runs go launch by launch and fail with OCLC_E_NAN at the first that makes a NaN, see nan_check.h.
  void enable_nan_check(bool enabled) { nan_check_ = enabled; }

  // For trainers.
  Context& context() { return *context_; }
  const oclc::plan::Plan& plan() const { return loaded_->plan(); }
  std::string entry_name(std::uint32_t entry) { return this->entry(entry).name; }
  std::vector<const oclc::plan::Binding*> bindings(std::uint32_t entry, oclc_direction direction);
  // Failure listing the known names if there is none of this name.
  void check_name(std::uint32_t entry, oclc_direction direction, const char* name);
  // Failure if an input may not have this type or shape; its size in bytes otherwise.
  std::uint64_t check_input(std::uint32_t entry, const char* name, const oclc_tensor& tensor);
  std::string scalar_names(std::uint32_t entry);  // inputs of the entry and variables
  void unbind(std::uint32_t entry);
  bool writes_state(std::uint32_t entry);  // does any launch of it
  ClMem allocate(std::uint64_t bytes, const std::string& what);

  oclc_stats stats() const;
  void enable_profile(bool enabled);
  std::uint32_t launches(oclc_launch_info* infos, std::uint32_t capacity);
  std::uint32_t builds(oclc_build_info* infos, std::uint32_t capacity) const;

  std::string& message() { return message_; }
  cl_int& cl_code() { return cl_code_; }

 private:
  // What the caller gave for an input or output.
  struct Bound {
    std::vector<std::int64_t> shape;
    bool has_shape = false;
    void* host = nullptr;
    ClMem memory;
    std::uint64_t offset = 0;        // bytes into `memory`
    cl_mem root = nullptr;           // `memory`, or the buffer that it is a part of
    std::uint64_t begin = 0;         // bytes into `root`
    std::uint64_t bytes = 0;         // available
    std::vector<std::string> texts;  // of an input of strings, copied
  };
  struct Port {
    const oclc::plan::Binding* binding = nullptr;
    std::string label;  // "input 'x'"
    bool input = false;
    std::optional<Bound> bound;
    ClMem staging;  // device copy of host memory, or of an output that nobody reads
    std::uint64_t staging_bytes = 0;
    bool pooled = false;  // the copy is a part of the entry's pool
    Place copied;         // where the copy is
    ClMem wrapped;        // the caller's host memory as a buffer
    void* wrapped_host = nullptr;
    std::uint64_t wrapped_bytes = 0;
    bool in_place = false;  // kernels use `wrapped`, nothing is copied
    bool moves = false;     // the caller changes the host pointer between runs
    bool is_mapped = false;
    ClMem mapped_memory;  // null: it has no bytes
    void* mapped = nullptr;
    bool moved = false;  // only the place of its memory changed since the entry was prepared
    std::uint64_t generation = 0;
  };
  struct Entry {
    std::string name;
    std::vector<Port> ports;  // inputs, then outputs
    std::unique_ptr<Schedule> schedule;
    std::vector<bool> used_symbols;
    package::EntryMemory memory;
    std::vector<std::int64_t> symbols;  // of `memory`
    std::vector<std::int64_t> found;    // `symbols` with what the last run's Read steps found; empty: there are none
    bool laid_out = false;              // `memory` is that of `symbols`
    std::unique_ptr<CommandBuffer> recorded;
    bool recording_failed = false;
    bool dirty = true;          // a binding changed
    bool moved = false;         // ports did, see there
    std::size_t next_port = 0;  // callers bind in order
    bool was_enqueued = false;  // as it is bound, launch by launch
    // Copies of the ports that are pooled.
    ClMem pool;
    std::uint64_t pool_bytes = 0, pool_generation = 0;
    // Arenas of the segments from 1 on, see memory.h. They only grow.
    struct Late {
      ClMem memory;
      std::uint64_t bytes = 0, generation = 0;
    };
    std::vector<Late> late;
  };

  Entry& entry(std::uint32_t index);
  Port& port(Entry& entry, oclc_direction direction, const char* name);
  void make_entry(std::uint32_t index);
  void make_state();
  void check_tensor(const Port& port, const oclc_tensor& tensor) const;
  // Asks a cl_mem of the caller: its size, whether it fits, and where it lies.
  void ask_memory(const Port& port, const oclc_tensor& tensor, std::uint64_t& size, Bound& bound) const;
  // Takes another place for what is bound: false if more than that differs.
  bool move_port(Entry& entry, Port& port, const oclc_tensor& tensor);
  void prepare_moved(Entry& entry);
  std::vector<std::int64_t> resolve_symbols(const Entry& entry, bool all, std::vector<bool>* found = nullptr) const;
  bool is_computed(const oclc::plan::Expr* e) const;  // from what a Read step finds
  static std::vector<std::int64_t> largest_shape(const oclc::plan::Binding& binding, std::span<const package::Range> ranges);
  void check_shapes(const Entry& entry, std::span<const std::int64_t> symbols) const;
  void check_overlap(const Entry& entry) const;
  void check_memory(const Entry& entry, const package::EntryMemory& memory) const;
  void ensure_arena(std::uint64_t bytes);
  // Memory for what a Read step has found the sizes of.
  void lay_out(std::uint32_t entry, int segment, std::span<const std::int64_t> symbols, std::vector<Place>& places);
  void check_room(const Port& port, std::uint64_t size, const std::string& shape) const;
  std::vector<Place> places(Entry& entry);
  bool is_copied(const Port& p) const;
  bool shares_host_memory(const Entry& entry, const Port& port, std::uint64_t bytes) const;
  Place port_place(const Entry& entry, Port& port, std::uint64_t bytes);
  // Places for the entry's ports that are pooled.
  void lay_out_pool(Entry& entry);
  // Between the caller's memory and the device: consecutive steps have both at the ends alone.
  struct Transfers {
    bool in = true, out = true;
  };
  struct Series;
  class LentPorts;
  void bind_series(std::uint32_t entry, std::uint64_t steps, const oclc_series& given, Series& series);
  void enqueue_steps(Entry& entry, std::span<Series> series, std::uint64_t first, std::uint64_t end, std::uint64_t steps);
  void enqueue_commands(Entry& entry, std::uint32_t wait_count, const cl_event* wait, Transfers transfers);
  void copy(const Port& port, const Place& from, const Place& to, std::uint64_t bytes);
  void write_inputs(const Entry& entry);
  void enqueue_schedule(Entry& entry);
  std::uint64_t found_bytes(const Entry& entry, const Port& port, std::span<const std::int64_t> symbols) const;
  void read_outputs(const Entry& entry);
  // Failure unless the last run of the entry computed it with what is bound now.
  void check_ran(const Entry& entry, const Port& port) const;
  void check_unmapped(const Entry& entry) const;
  void write_initial(std::uint32_t buffer);
  std::vector<std::string> copy_texts(const Port& port, const oclc_tensor& tensor) const;
  void write_texts(const Port& port);
  void read_texts(const Port& port, std::uint64_t bytes);
  VariablePlace find_variable(const char* name, const void* host, std::uint64_t bytes) const;

  std::shared_ptr<Context> context_;
  std::shared_ptr<const package::Package> package_;
  std::shared_ptr<LoadedPlan> loaded_;
  std::chrono::steady_clock::time_point created_ = std::chrono::steady_clock::now();
  StringTable strings_;  // of the last run
  std::vector<Entry> entries_;
  std::vector<std::int64_t> dims_;  // bound by the caller, -1: not
  std::vector<ClMem> states_;       // of state buffers; those that are pooled have one
  std::vector<std::uint64_t> state_offsets_;
  std::vector<std::uint64_t> state_sizes_;
  std::uint64_t state_bytes_ = 0;
  std::uint64_t steps_ = 0;  // of training, that led to the state
  ClMem arena_;
  std::uint64_t arena_bytes_ = 0;
  std::uint64_t arena_generation_ = 0;
  std::vector<std::int64_t> scratch_;  // symbols during a run, with loop counters
  ClMem nothing_;                      // stands for buffers without bytes
  std::uint64_t generation_ = 1;

  RunLimit limit_;
  std::uint64_t time_limit_ns_ = 0;
  bool nan_check_ = false;
  bool profile_ = false;
  std::vector<LaunchRecord> records_;
  const Schedule* recorded_schedule_ = nullptr;
  oclc_stats stats_{};
  std::uint64_t unoptimized_ns_ = 0;       // of runs behind the first with unoptimized kernels
  std::uint32_t unoptimized_submits_ = 0;  // of such runs that nobody waited for
  std::string message_;
  cl_int cl_code_ = 0;
};

}  // namespace oclc::runtime
