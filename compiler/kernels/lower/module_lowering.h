// The work of lower(): the values of a module in buffers, its entries' groups, loops and host calls as steps.
#pragma once
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/kernels/lower/lower.h"
#include "compiler/kernels/lower/lower_kernel.h"

namespace oclc {

std::vector<Expr> strides_of(const Shape& shape, const Layout& layout);
// What reports and plans call the value.
std::string label_of(const Value& value);

class ModuleLowering {
 public:
  ModuleLowering(const Module& module, const LowerOptions& options, std::vector<NodeFate>* report)
      : module_(module), options_(options), report_(report) {}

  Schedule run();

 private:
  // Entries and their state: lower.cpp.

  // State is updated in place where no kernel reads the old value later. Which updates that excludes is known only of the
  // finished steps, so the entry is lowered again with copies for those.
  void lower_entry(const Graph& graph);
  EntrySchedule try_entry(const Graph& graph, const std::set<int>& copied);
  // New values take the place of the old ones.
  void unite_state();

  // Values in buffers, groups as kernels: lower_graph.cpp.
  int add_buffer(std::string name, BufferKind kind, DType dtype, Expr elements);
  Storage fresh(const Value& value, BufferKind kind, const std::string& name, const Layout& layout);
  const Storage* find(const Value* value);
  LoweringInputs lowering_inputs();
  // Kernels without elements have nothing to do.
  void emit(Kernel kernel, std::vector<Step>& steps);
  // The kernel's product by a library and its epilogue as a kernel, if asked for and possible.
  bool emit_blas(const Kernel& kernel, std::vector<Step>& steps);
  // The group as a kernel; what would make it too large becomes kernels of its own before it.
  Kernel lower_fitting(const Group& group, std::vector<Step>& steps);
  // A group of its own for a value that another would compute, with storage.
  Group stored_apart(const Value* value);
  void copy_to(const Value* value, const Storage& target, std::vector<Step>& steps);
  // Writes the operands of placed concatenations that no kernel stores in place, before the first reader.
  void complete_concats(std::vector<Step>& steps);
  void complete_concat(const Value* value, std::vector<Step>& steps);
  void assign_storage(const Value* value);
  // Outputs of a user's body that may lie where an input does, which nothing else reads.
  void share_storage(const Group& group);
  // Stores each target's value where the caller wants it: in place if a kernel of this graph computes it, else by a copy.
  void lower_graph(const Graph& graph, const std::vector<Storage>& targets, std::vector<Step>& steps);
  // State that the entry leaves as it is.
  bool is_in_place(const Value* value, const Storage& target) const;
  void report(const Group& group, const Kernel& kernel);

  // What the host does between launches: lower_control.cpp.

  // Where a value lies that the body of a control operator reads.
  Storage captured(const Value* value);
  // The steps of the body follow the reading.
  void lower_bind_dims(const Node& node, std::vector<Step>& steps);
  void lower_host(const Node& node, std::vector<Step>& steps);
  // Carried values live in two slots, read from slot counter % 2 and written to the other, so that no trip copies. Where a
  // condition ends the loop the number of trips is not known: each is read from the first slot, and copied there.
  void lower_loop(const Node& node, std::vector<Step>& steps);

  const Module& module_;
  const LowerOptions options_;
  std::vector<NodeFate>* report_;
  Schedule schedule_;
  const Grouping* grouping_ = nullptr;
  std::unordered_map<const Value*, Storage> storage_;
  std::map<std::pair<const std::byte*, std::vector<int>>, int> constants_;
  std::map<std::string, int> state_buffers_;
  std::multimap<const Value*, Storage> also_;
  std::vector<const Value*> touched_;
  std::unordered_set<const Node*> completed_;
};

}  // namespace oclc
