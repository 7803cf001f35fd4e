// The steps of an entry point made ready for a device: kernels, their arguments and geometry for the present symbols.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/package/memory.h"
#include "runtime/session/blas.h"
#include "runtime/session/loaded_plan.h"
#include "runtime/session/run_limit.h"
#include "runtime/session/strings.h"

namespace oclc::runtime {

// One executed launch, kept when profiling.
struct LaunchRecord {
  std::uint32_t leaf = 0;
  int part = -1;  // of the leaf, if it ran in parts
  ClEvent event;
  double flops = 0;
  double bytes = 0;
};

class Schedule {
 public:
  // Creates the kernels and checks them against the device. `context` is the session's, whose OpenCL context is that of
  // `loaded`.
  Schedule(Context& context, const LoadedPlan& loaded, std::uint32_t entry, StringTable& strings, const RunLimit& limit);

  // A run begins, of one or more calls of enqueue: no launch of it stands in the queue.
  void begin_run() { mark_.reset(); }

  struct Leaf {
    const oclc::plan::Launch* launch = nullptr;  // or
    const oclc::plan::BlasGemm* gemm = nullptr;
    ClKernel kernel;
    std::uint32_t step = 0;  // schedule index of the launch, or of its first part
    bool looping = false;    // depends on a loop counter: evaluated anew per trip
    struct Slot {            // one entry of `args`
      const oclc::plan::Arg* arg = nullptr;
      cl_uint index = 0;  // of the (first) kernel argument
      int object = -1;    // not negative: the slot that passes the memory object
      bool looping = false;
      bool set = false;
      Place place;
      std::int64_t value = 0;
      int table = -1;  // not negative: of `tables`
    };
    std::vector<Slot> slots;
    struct Table {  // what an argument of rows passes
      std::vector<std::int64_t> numbers;
      ClMem memory;
    };
    std::vector<Table> tables;
    cl_uint arguments = 0;  // of the kernel
    cl_uint dims = 1;
    std::size_t global[3] = {1, 1, 1};
    std::size_t local[3] = {1, 1, 1};
    bool empty = false;  // nothing to do with the present symbols
    std::string name;
    std::string nodes;
    double flops = 0;
    double bytes = 0;
    // Steps that the launch does one after another: their names, costs and the buffers they use. The kernel's arguments from
    // `part_index` on say which of them to run.
    std::vector<Leaf> parts;
    bool apart = false;                      // parts are launched one by one
    const oclc::plan::Part* part = nullptr;  // that this is
    cl_uint part_index = 0;
    // Of parts that are launched one by one: kernels of the launch's arguments, and which of them does the part; the launch's
    // own if there is none.
    std::vector<ClKernel> part_kernels;
    cl_kernel does = nullptr;
    // What a run enqueues: the launch's kernel; or, where its parts were built apart, a kernel for each piece of them, the
    // first in `kernel` and the others in `part_kernels`.
    struct Run {
      cl_kernel kernel = nullptr;
      cl_int first = 0, last = 0;  // parts
      int unit = -1;               // not negative: of builders, who may still be at it
    };
    std::vector<Run> runs;
    const Run& run_of(cl_int number) const {
      return *std::find_if(runs.begin(), runs.end(), [&](const Run& run) { return number < run.last; });
    }

    std::string described() const;  // the kernel and its nodes, for messages
  };
  const std::vector<Leaf>& leaves() const { return leaves_; }

  // Symbols that any step uses, loop counters excluded.
  const std::vector<bool>& used_symbols() const { return used_; }
  bool reads() const { return reads_; }  // the host reads dimensions between launches
  // Launches alone, none in a loop, and no kernel that builders are at.
  bool replayable() const { return replayable_ && !behind_ && (builders_done_ || !programs_->builders); }
  // The kernels were compiled without optimization, or are those of a launch's parts.
  bool unoptimized() const { return behind_ != nullptr; }
  // The optimized ones are being compiled.
  bool optimizing() const { return behind_ && asked_behind_; }
  // They are so much faster that who runs on and on is served better by waiting.
  bool worth_waiting() const { return optimizing() && programs_->unoptimized; }
  // Waits until they are.
  void wait_for_optimized();

  // Works out geometry and arguments. `places[i]` is where buffer i lies. True if anything changed.
  bool bind(std::span<const std::int64_t> symbols, std::span<const Place> places);
  // After `bind`, with its symbols: other places for buffers of as many bytes.
  bool move(std::span<const std::pair<std::size_t, Place>> moved, std::span<const std::int64_t> symbols);

  // Told of every launch, or of every part of those that have parts; `index` is its schedule index.
  class Watch {
   public:
    virtual ~Watch() = default;
    virtual void before(const Leaf& leaf, std::uint32_t index) = 0;
    virtual void after(const Leaf& leaf, std::uint32_t index) = 0;
  };

  // Enqueues everything. `symbols` are those of `bind`; loop counters in it are scratch. Records launches if `records` is set.
  // With records or a watch, launches with parts run part by part. Returns the number of launches. Threads that are awake are
  // told of the first one.
  std::uint32_t enqueue(cl_command_queue queue, std::vector<std::int64_t>& symbols, std::vector<LaunchRecord>* records,
                        Watch* watch = nullptr);
  const std::vector<Place>& places() const { return places_; }  // of `bind`, and of what was laid out since

  // Finds places for the buffers of a segment (see memory.h), behind whose Read step the host stands.
  using LayOut = std::function<void(int segment, std::span<const std::int64_t> symbols, std::vector<Place>& places)>;
  void set_lay_out(LayOut lay_out) { lay_out_ = std::move(lay_out); }

 private:
  struct Node {
    int leaf = -1;
    const oclc::plan::Read* read = nullptr;
    int segment = 0;                         // of the read, if it binds open symbols
    const oclc::plan::Host* host = nullptr;  // or a loop:
    const oclc::plan::Expr* trip = nullptr;
    int counter = -1;
    int condition = -1;  // symbol
    std::vector<Node> body;
  };
  using Steps = flatbuffers::Vector<flatbuffers::Offset<oclc::plan::Step>>;

  std::vector<Node> make_nodes(const Steps* steps);
  int first_of_kind(const oclc::plan::Launch& launch, const oclc::plan::Arg& arg) const;
  int make_launch(const oclc::plan::Launch& launch);
  void check_local_memory(const Leaf& leaf) const;
  int make_gemm(const oclc::plan::BlasGemm& gemm);
  void check_limits(const Leaf& leaf) const;
  // Whether the kernel's parameters are what the plan passes, as far as the driver tells: an argument of another kind would be
  // taken for a pointer.
  void check_signature(const Leaf& leaf, cl_kernel kernel) const;
  void check_scalar(const Leaf& leaf, cl_kernel kernel, cl_uint index, std::string_view wanted) const;
  void check_pointer(const Leaf& leaf, cl_kernel kernel, const Leaf::Slot& slot) const;
  // Whether a launch's work-items are as many as its buffers give work to.
  void check_items(const Leaf& leaf) const;
  // Whether the `batches` matrices of a product's operand, `stride` elements apart, lie within its buffer, those that are
  // written apart from each other.
  struct Matrix {
    std::uint64_t rows, columns, row_stride, batches, stride;
  };
  void check_matrix(const Leaf& leaf, const Leaf::Slot& slot, const Matrix& matrix) const;
  [[noreturn]] void reject(const std::string& what) const;  // the plan
  bool looping(const oclc::plan::Expr* e);
  bool is_laid_out_late(const oclc::plan::Arg& arg) const;
  bool is_looping(const oclc::plan::Arg& arg);
  bool evaluate_geometry(Leaf& leaf, std::span<const std::int64_t> symbols);
  bool set_arguments(Leaf& leaf, std::span<const std::int64_t> symbols, bool only_looping);
  void set_argument(const Leaf& leaf, const Leaf::Slot& slot, cl_kernel kernel);
  bool set_slot(Leaf& leaf, Leaf::Slot& slot, std::span<const std::int64_t> symbols);
  // The same for rows: true if a number of them changed.
  bool set_table(Leaf& leaf, Leaf::Slot& slot, std::span<const std::int64_t> symbols);
  std::int64_t number_of(const Leaf& leaf, const oclc::plan::Cell& cell, std::span<const std::int64_t> symbols) const;
  void run(std::span<const Node> nodes);
  void run_loop(const Node& node);
  // Counts one of the host's steps; Failure if there are too many, or the run is to end before its time.
  void count_step();
  // Waits for the device now and then: what a driver keeps for a launch is gone when it is done.
  void count_launch();
  // Waits for the launch before the last one.
  void pace();
  void read_dims(const oclc::plan::Read& read, int segment);
  void run_leaf(Leaf& leaf);
  void run_parts(Leaf& leaf);
  void choose_parts(const Leaf& leaf, cl_kernel kernel, cl_int first, cl_int last);
  const oclc::plan::Program& program_of(const oclc::plan::Launch& launch) const;
  const std::vector<Piece>& pieces_of(const oclc::plan::Launch& launch) const;
  // Whether the device's groups, or work-items, do not wait for one another.
  bool must_be_apart(const Leaf& leaf) const;
  // Whether its program holds the parts' own kernels instead of it.
  bool in_pieces(const Leaf& leaf) const;
  ClKernel make_kernel(const oclc::plan::Launch& launch, const std::string& name, std::size_t piece = 0) const;
  void add_runs(Leaf& leaf);
  // Takes the optimized kernels, if they are compiled: true.
  bool take_optimized();
  // Calls `use` for the kernels that builders compile behind, until it says false. Those of launches without parts are not
  // among them: they cannot be run for nothing, and the first run with the optimized ones compiles them.
  bool all_behind(const std::function<bool(std::uint32_t unit, const std::string& kernel)>& use) const;
  void ask_behind();
  void leave_marks() const;
  // Asks builders for the kernels of theirs; waits for that of a run.
  void ask_builders();
  void wait_for_builders(const Leaf& leaf, const Leaf::Run& run);
  // While builders are waited for: progress. Failure if the run is to end before its time.
  void look_at(const Builders& builders) const;
  void add_parts(Leaf& leaf);
  void take_part_kernels(Leaf& leaf);
  void run_gemm(const Leaf& leaf, cl_event* event);
  void zero_gemm(const oclc_clblast_gemm_args& args, cl_event* event);

  Context& context_;
  const LoadedPlan& loaded_;
  const BuiltPrograms* programs_;  // of which the kernels are
  Builders* behind_;               // or null: they stay
  bool asked_behind_ = false;
  StringTable& strings_;
  std::vector<Leaf> leaves_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> uses_;  // of each buffer: leaf and slot; since a `move`
  std::vector<Node> nodes_;
  std::vector<bool> used_;
  // Whether groups of one launch may wait for each other in memory, which OpenCL C 1.2 promises nowhere: CPUs keep it for
  // groups of one work-item, some GPUs for groups of several, whose code is written for them. Parts of other launches are
  // launched one by one.
  const bool items_see_, groups_see_;
  bool replayable_ = true;
  bool reads_ = false;
  std::uint32_t next_step_ = 0;
  std::shared_ptr<Blas> blas_;
  const package::Segments segments_;
  int segment_count_ = 0;
  LayOut lay_out_;
  std::vector<Place> places_;

  // Of the run in progress.
  cl_command_queue queue_ = nullptr;
  std::vector<std::int64_t>* symbols_ = nullptr;
  std::vector<LaunchRecord>* records_ = nullptr;
  Watch* watch_ = nullptr;
  std::uint32_t launched_ = 0;
  bool builders_done_ = false;
  std::uint64_t host_steps_ = 0;
  const RunLimit& limit_;
  ClEvent mark_;  // behind the launch before, in a run with a time limit
};

}  // namespace oclc::runtime
