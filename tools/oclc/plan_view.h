// A plan for people and programs: its text form, and its figures for given sizes.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/ir/tensor.h"
#include "plan_generated.h"
#include "runtime/package/memory.h"

namespace oclc::tool {

struct LaunchFigures {
  std::string name, anchor, nodes;   // nodes: joined by ", "
  std::int64_t calls = 0;            // more than one inside loops
  double flops = 0, bytes = 0;       // of all calls
  std::vector<std::int64_t> global;  // of the first call
  std::vector<std::uint32_t> local;
  std::vector<LaunchFigures> parts;  // what the launch does, if it is several steps
};

struct EntryFigures {
  std::string name;
  std::vector<LaunchFigures> launches;  // in the order of the schedule
  std::int64_t calls = 0;
  double flops = 0, bytes = 0;
  package::EntryMemory memory;
};

struct PlanBinding {
  std::string name;
  TensorType type;
  std::string values;  // " from 0 to 9 or -100" where the plan says which are allowed
};

// What a session keeps between runs, and a checkpoint holds.
struct PlanState {
  std::string name;
  std::string type;         // of a variable
  std::size_t tensors = 0;  // that it joins, each a variable; 0: it is one itself
  std::uint64_t bytes = 0;
  std::string carried_from;  // the output that feeds it, or ""
};

// `plan` is verified and outlives the view.
class PlanView {
 public:
  explicit PlanView(const plan::Plan& plan);

  // Everything but constants' bytes and kernels' sources, symbols as symbols. Deterministic.
  std::string text() const;

  // Values for all symbols: those given, and for the others 1 or what is nearest to it. Usage error for a name that is no
  // symbol and for a value out of its bounds.
  SymbolValues bind(const SymbolValues& given) const;
  // Small sizes that the plan can run with: the first of 1, 2, 4, .. for all dimensions under which every buffer has a size and
  // the dimensions that must be equal are. Nothing if there are none.
  std::optional<SymbolValues> small_sizes() const;
  EntryFigures figures(std::uint32_t entry, const SymbolValues& at) const;
  nlohmann::json json(const SymbolValues& at) const;

  std::vector<PlanBinding> inputs(std::uint32_t entry) const;
  std::vector<PlanBinding> outputs(std::uint32_t entry) const;
  std::vector<PlanState> states(const SymbolValues& at) const;
  std::uint32_t entries() const;
  std::uint64_t constant_bytes() const;
  bool is_symbolic() const;

 private:
  using Steps = flatbuffers::Vector<flatbuffers::Offset<plan::Step>>;
  using Args = flatbuffers::Vector<flatbuffers::Offset<plan::Arg>>;

  Expr expr(const plan::Expr* code) const;
  std::int64_t value(const plan::Expr* code, const SymbolValues& at) const;
  std::string arg_text(const plan::Arg& arg) const;
  std::string args_text(const Args* args) const;
  template <class List>
  std::string list_text(const List* list) const;
  std::string launch_text(const plan::Launch& launch, const std::string& indent) const;
  std::string gemm_text(const plan::BlasGemm& gemm) const;
  std::string constant_text(const plan::Buffer& buffer) const;
  std::string host_text(const plan::Host& host) const;
  void steps_text(const Steps& steps, std::size_t depth, int& number, std::string& out) const;
  void count(const Steps& steps, SymbolValues& at, std::size_t& next, EntryFigures& out) const;
  std::vector<PlanBinding> bindings(const flatbuffers::Vector<flatbuffers::Offset<plan::Binding>>* list) const;

  const plan::Plan& plan_;
  std::vector<Expr> symbols_;
};

// "N=1, T=8"; "" if there is none.
std::string dims_text(const SymbolValues& at);

}  // namespace oclc::tool
