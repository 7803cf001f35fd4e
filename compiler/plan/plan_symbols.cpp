#include "compiler/plan/plan_symbols.h"

#include <algorithm>
#include <functional>

#include "compiler/ops/builder.h"
#include "compiler/support/error.h"

namespace oclc {

namespace fb = flatbuffers;

PlanSymbols::PlanSymbols(const Schedule& schedule, fb::FlatBufferBuilder& builder) : builder_(builder) {
  std::set<std::string> counters;
  std::vector<const Reading*> readings;
  const std::function<void(std::span<const Step>)> visit = [&](std::span<const Step> steps) {
    for (const Step& step : steps) {
      if (const auto* sizes = step.as<ReadingStep>())
        readings.push_back(&schedule.readings[static_cast<std::size_t>(sizes->reading)]);
      if (const auto* loop = step.as<LoopStep>()) counters.insert(loop->counter);
      if (step.is_loop() || step.is<MegakernelStep>()) visit(step.body());
    }
  };
  for (const EntrySchedule& e : schedule.entries) visit(e.steps);
  std::set<std::string> read;
  for (const Reading* reading : readings) {
    for (const Expr& dim : reading->dims) read.insert(*dim.symbol_name());
  }
  for (const Expr& e : schedule.symbols) {
    const std::string name = *e.symbol_name();
    if (!read.count(name)) add(name, plan::CreateSymbolDirect(builder_, name.c_str(), e.lower(), e.upper(), false));
  }
  for (const std::string& name : counters) add(name, plan::CreateSymbolDirect(builder_, name.c_str(), 0, INT64_MAX, true));
  for (const Reading* reading : readings) {
    for (std::size_t i = 0; i < reading->dims.size(); ++i) {
      const std::string name = *reading->dims[i].symbol_name();
      if (index_.count(name)) continue;  // entry points of one graph share their names
      const auto upper = expr(reading->upper[i]);
      const bool open = reading->upper[i] == Expr(kOpenDim);
      if (open || is_open(reading->upper[i])) open_.insert(name);
      add(name, plan::CreateSymbolDirect(builder_, name.c_str(), 0, INT64_MAX, true, upper, open));
    }
  }
}

void PlanSymbols::add(const std::string& name, fb::Offset<plan::Symbol> row) {
  index_[name] = static_cast<std::int64_t>(rows_.size());
  rows_.push_back(row);
}

std::int64_t PlanSymbols::index(std::string_view name) const {
  const auto at = index_.find(std::string(name));
  OCLC_CHECK(at != index_.end(), "symbol " + std::string(name) + " is not one of the module's");
  return at->second;
}

bool PlanSymbols::is_open(const Expr& e) const {
  const std::vector<std::string> used = e.symbols();
  return std::any_of(used.begin(), used.end(), [&](const std::string& name) { return open_.count(name) > 0; });
}

fb::Offset<plan::Expr> PlanSymbols::expr(const Expr& e) {
  const auto code = e.code([&](std::string_view name) { return index(name); });
  return plan::CreateExprDirect(builder_, &code);
}

std::vector<fb::Offset<plan::Expr>> PlanSymbols::exprs(const std::vector<Expr>& list) {
  std::vector<fb::Offset<plan::Expr>> out;
  for (const Expr& e : list) out.push_back(expr(e));
  return out;
}

}  // namespace oclc
