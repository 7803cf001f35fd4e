// The symbols of a plan, and expressions of them as the runtime evaluates them.
#pragma once
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/kernels/kernel.h"
#include "plan_generated.h"

namespace oclc {

// Dimensions that a session binds, counters of loops, and dimensions that are read when the plan runs.
class PlanSymbols {
 public:
  PlanSymbols(const Schedule& schedule, flatbuffers::FlatBufferBuilder& builder);

  flatbuffers::Offset<plan::Expr> expr(const Expr& e);
  std::vector<flatbuffers::Offset<plan::Expr>> exprs(const std::vector<Expr>& list);
  // Its place in tables(); an error of ours if there is none.
  std::int64_t index(std::string_view name) const;
  // Whether it is known only when the plan has run so far.
  bool is_open(const Expr& e) const;
  std::vector<flatbuffers::Offset<plan::Symbol>> tables() const { return rows_; }

 private:
  void add(const std::string& name, flatbuffers::Offset<plan::Symbol> row);

  flatbuffers::FlatBufferBuilder& builder_;
  std::unordered_map<std::string, std::int64_t> index_;
  std::set<std::string> open_;
  std::vector<flatbuffers::Offset<plan::Symbol>> rows_;
};

}  // namespace oclc
