#include "tools/oclc/plan_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/ir/text.h"
#include "compiler/ir/typical.h"
#include "compiler/support/error.h"
#include "runtime/package/error.h"
#include "runtime/package/expr_code.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/plan_lists.h"

namespace oclc::tool {

using nlohmann::json;

PlanView::PlanView(const plan::Plan& plan) : plan_(plan) {
  for (std::uint32_t i = 0; i < size_of(plan.symbols()); ++i) {
    const plan::Symbol& symbol = *plan.symbols()->Get(i);
    symbols_.push_back(Expr::symbol(symbol.name()->str(), symbol.lo(), symbol.hi()));
  }
}

Expr PlanView::expr(const plan::Expr* code) const {
  std::vector<Expr> stack;
  const auto& words = *code->code();
  for (std::uint32_t i = 0; i < words.size(); ++i) {
    const auto op = static_cast<package::ExprOp>(words[i]);
    if (op == package::ExprOp::constant) {
      stack.emplace_back(words[++i]);
      continue;
    }
    if (op == package::ExprOp::symbol) {
      stack.push_back(symbols_.at(static_cast<std::size_t>(words[++i])));
      continue;
    }
    const Expr b = stack.back();
    stack.pop_back();
    Expr& a = stack.back();
    switch (op) {
      case package::ExprOp::add:
        a = a + b;
        break;
      case package::ExprOp::mul:
        a = a * b;
        break;
      case package::ExprOp::floor_div:
        a = floor_div(a, b);
        break;
      case package::ExprOp::mod:
        a = floor_mod(a, b);
        break;
      case package::ExprOp::min:
        a = min(a, b);
        break;
      default:
        a = max(a, b);
    }
  }
  return stack.back();
}

std::int64_t PlanView::value(const plan::Expr* code, const SymbolValues& at) const {
  std::vector<std::int64_t> symbols;
  for (std::uint32_t i = 0; i < size_of(plan_.symbols()); ++i) {
    const auto known = at.find(plan_.symbols()->Get(i)->name()->str());
    symbols.push_back(known == at.end() ? 0 : known->second);
  }
  const auto result = package::evaluate({code->code()->data(), code->code()->size()}, symbols);
  if (!result)
    throw CompileError({.stage = "plan", .wanted = "sizes that fit 64 bits", .found = "larger ones at " + dims_text(at)});
  return *result;
}

std::vector<PlanBinding> PlanView::bindings(const flatbuffers::Vector<flatbuffers::Offset<plan::Binding>>* list) const {
  std::vector<PlanBinding> out;
  for (std::uint32_t i = 0; i < size_of(list); ++i) {
    const plan::Binding& binding = *list->Get(i);
    TensorType type{static_cast<DType>(binding.dtype()), {}};
    for (std::uint32_t d = 0; d < size_of(binding.shape()); ++d) type.shape.push_back(expr(binding.shape()->Get(d)));
    std::string values;
    if (binding.limit() > 0) values = fmt::format(" from 0 to {}", binding.limit() - 1);
    for (std::uint32_t a = 0; a < size_of(binding.also()); ++a) values += fmt::format(" or {}", binding.also()->Get(a));
    out.push_back({binding.name()->str(), type, values});
  }
  return out;
}

std::vector<PlanBinding> PlanView::inputs(std::uint32_t entry) const { return bindings(plan_.entries()->Get(entry)->inputs()); }
std::vector<PlanBinding> PlanView::outputs(std::uint32_t entry) const {
  return bindings(plan_.entries()->Get(entry)->outputs());
}

std::vector<PlanState> PlanView::states(const SymbolValues& at) const {
  std::vector<PlanState> out;
  std::map<std::int32_t, std::size_t> known;  // by buffer
  for (std::uint32_t i = 0; i < size_of(plan_.variables()); ++i) {
    const plan::Variable& variable = *plan_.variables()->Get(i);
    const plan::Buffer& buffer = *plan_.buffers()->Get(static_cast<std::uint32_t>(variable.buffer()));
    const auto [place, is_new] = known.emplace(variable.buffer(), out.size());
    if (is_new) {
      TensorType type{static_cast<DType>(variable.dtype()), {}};
      for (std::uint32_t d = 0; d < size_of(variable.shape()); ++d) type.shape.push_back(expr(variable.shape()->Get(d)));
      out.push_back({text_of(buffer.name()), type.text(), 0, static_cast<std::uint64_t>(value(buffer.bytes(), at)),
                     text_of(variable.carried_from())});
    }
    if (text_of(variable.name()) != text_of(buffer.name())) ++out[place->second].tensors;
  }
  return out;
}

std::uint32_t PlanView::entries() const { return size_of(plan_.entries()); }

std::uint64_t PlanView::constant_bytes() const {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < size_of(plan_.buffers()); ++i) {
    const plan::Buffer& buffer = *plan_.buffers()->Get(i);
    if (buffer.kind() == plan::BufferKind::constant) sum += static_cast<std::uint64_t>(value(buffer.bytes(), {}));
  }
  return sum;
}

bool PlanView::is_symbolic() const {
  for (std::uint32_t i = 0; i < size_of(plan_.symbols()); ++i) {
    if (!plan_.symbols()->Get(i)->loop()) return true;
  }
  return false;
}

SymbolValues PlanView::bind(const SymbolValues& given) const {
  SymbolValues at;
  for (std::uint32_t i = 0; i < size_of(plan_.symbols()); ++i) {
    const plan::Symbol& symbol = *plan_.symbols()->Get(i);
    if (!symbol.loop()) at[symbol.name()->str()] = std::clamp<std::int64_t>(1, symbol.lo(), symbol.hi());
  }
  const std::string known = dims_text(at);
  for (const auto& [name, n] : given) {
    const auto place = at.find(name);
    if (place == at.end())
      usage_error(
          fmt::format("wanted a symbol of the plan in --dim ({}), found '{}'", known.empty() ? "it has none" : known, name));
    place->second = n;
  }
  for (std::uint32_t i = 0; i < size_of(plan_.symbols()); ++i) {
    const plan::Symbol& symbol = *plan_.symbols()->Get(i);
    if (symbol.loop()) continue;
    const std::int64_t n = at[symbol.name()->str()];
    if (n < symbol.lo() || n > symbol.hi())
      usage_error(fmt::format("wanted {} <= {} <= {}, found {}", symbol.lo(), symbol.name()->str(), symbol.hi(), n));
  }
  return at;
}

void PlanView::count(const Steps& steps, SymbolValues& at, std::size_t& next, EntryFigures& out) const {
  const auto note = [&](const flatbuffers::String* name, std::string anchor, const Names* nodes, const plan::Expr* flops,
                        const plan::Expr* bytes) -> LaunchFigures& {
    if (next == out.launches.size())
      out.launches.push_back({text_of(name), std::move(anchor), joined(nodes), 0, 0, 0, {}, {}, {}});
    LaunchFigures& launch = out.launches[next++];
    ++launch.calls;
    launch.flops += flops ? static_cast<double>(value(flops, at)) : 0;
    launch.bytes += bytes ? static_cast<double>(value(bytes, at)) : 0;
    return launch;
  };
  for (const plan::Step* step : steps) {
    if (const plan::Launch* launch = step->body_as_Launch()) {
      LaunchFigures& row = note(launch->name(), text_of(launch->anchor()), launch->nodes(), launch->flops(), launch->bytes());
      for (std::uint32_t i = 0; i < size_of(launch->parts()); ++i) {
        const plan::Part& part = *launch->parts()->Get(i);
        if (i == row.parts.size())
          row.parts.push_back({text_of(part.name()), text_of(part.anchor()), joined(part.nodes()), 0, 0, 0, {}, {}, {}});
        ++row.parts[i].calls;
        row.parts[i].flops += part.flops() ? static_cast<double>(value(part.flops(), at)) : 0;
        row.parts[i].bytes += part.bytes() ? static_cast<double>(value(part.bytes(), at)) : 0;
      }
      if (row.calls > 1) continue;
      for (const plan::Expr* extent : *launch->global()) row.global.push_back(value(extent, at));
      row.local.assign(launch->local()->begin(), launch->local()->end());
    } else if (const plan::BlasGemm* gemm = step->body_as_BlasGemm()) {
      note(gemm->name(), "clblast", gemm->nodes(), gemm->flops(), gemm->bytes());
    } else if (const plan::Read* read = step->body_as_Read()) {
      for (const int dim : *read->dims()) {
        const plan::Symbol& symbol = *plan_.symbols()->Get(static_cast<std::uint32_t>(dim));
        at[symbol.name()->str()] = symbol.open() ? kTypicalDim : value(symbol.upper(), at);
      }
    } else if (const plan::Loop* loop = step->body_as_Loop()) {
      const std::string counter = plan_.symbols()->Get(static_cast<std::uint32_t>(loop->counter()))->name()->str();
      // How often a condition lets a loop go round is not known; its cost is that of one trip.
      const std::int64_t most = value(loop->trip(), at), trips = loop->condition() < 0 ? most : std::min<std::int64_t>(most, 1);
      const std::size_t first = next;
      for (std::int64_t trip = 0; trip < trips; ++trip) {
        at[counter] = trip;
        next = first;
        count(*loop->body(), at, next, out);
      }
      at.erase(counter);
    }
  }
}

std::optional<SymbolValues> PlanView::small_sizes() const {
  constexpr std::int64_t kLargest = 1 << 14;
  for (std::int64_t size = 1; size <= kLargest; size *= 2) {
    SymbolValues at = bind({});
    for (std::uint32_t i = 0; i < size_of(plan_.symbols()); ++i) {
      const plan::Symbol& symbol = *plan_.symbols()->Get(i);
      if (!symbol.loop()) at[symbol.name()->str()] = std::clamp(size, symbol.lo(), symbol.hi());
    }
    bool fits = true;
    try {
      for (std::uint32_t i = 0; i < size_of(plan_.assumptions()); ++i) {
        const plan::Assumption& a = *plan_.assumptions()->Get(i);
        fits = fits && value(a.left(), at) == value(a.right(), at);
      }
      for (std::uint32_t i = 0; fits && i < entries(); ++i) figures(i, at);
    } catch (const package::Error&) {
      fits = false;
    } catch (const CompileError&) {
      fits = false;
    }
    if (fits) return at;
  }
  return std::nullopt;
}

EntryFigures PlanView::figures(std::uint32_t entry, const SymbolValues& at) const {
  EntryFigures out;
  const plan::Entry& e = *plan_.entries()->Get(entry);
  out.name = e.name()->str();
  SymbolValues running = at;
  std::size_t next = 0;
  if (e.steps()) count(*e.steps(), running, next, out);
  for (const LaunchFigures& launch : out.launches) {
    out.calls += launch.calls;
    out.flops += launch.flops;
    out.bytes += launch.bytes;
  }
  std::vector<std::int64_t> symbols;
  for (std::uint32_t i = 0; i < size_of(plan_.symbols()); ++i) {
    const auto known = at.find(plan_.symbols()->Get(i)->name()->str());
    symbols.push_back(known == at.end() ? 0 : known->second);
  }
  out.memory = package::plan_memory(plan_, entry, symbols);
  return out;
}

json PlanView::json(const SymbolValues& at) const {
  nlohmann::json symbols = nlohmann::json::array(), entries_json = nlohmann::json::array();
  nlohmann::json options = nlohmann::json::array(), metadata = nlohmann::json::object();
  for (std::uint32_t i = 0; i < size_of(plan_.options()); ++i) options.push_back(plan_.options()->Get(i)->str());
  for (std::uint32_t i = 0; i < size_of(plan_.metadata()); ++i)
    metadata[plan_.metadata()->Get(i)->name()->str()] = text_of(plan_.metadata()->Get(i)->value());
  for (std::uint32_t i = 0; i < size_of(plan_.symbols()); ++i) {
    const plan::Symbol& s = *plan_.symbols()->Get(i);
    if (!s.loop())
      symbols.push_back({{"name", s.name()->str()}, {"lo", s.lo()}, {"hi", s.hi()}, {"value", at.at(s.name()->str())}});
  }
  const auto ports = [](const std::vector<PlanBinding>& list) {
    nlohmann::json out = nlohmann::json::array();
    for (const PlanBinding& b : list) {
      nlohmann::json shape = nlohmann::json::array();
      for (const Expr& d : b.type.shape) shape.push_back(d.text());
      out.push_back({{"name", b.name}, {"dtype", oclc::name_of(b.type.dtype)}, {"shape", shape}});
    }
    return out;
  };
  for (std::uint32_t i = 0; i < entries(); ++i) {
    const EntryFigures f = figures(i, at);
    nlohmann::json launches = nlohmann::json::array();
    for (const LaunchFigures& l : f.launches)
      launches.push_back({{"kernel", l.name},
                          {"anchor", l.anchor},
                          {"nodes", l.nodes},
                          {"calls", l.calls},
                          {"flops", l.flops},
                          {"bytes", l.bytes},
                          {"global", l.global},
                          {"local", l.local}});
    nlohmann::json arena = nlohmann::json::array();
    for (std::uint32_t b = 0; b < size_of(plan_.buffers()); ++b) {
      const plan::Buffer& buffer = *plan_.buffers()->Get(b);
      if (buffer.kind() != plan::BufferKind::arena || buffer.entry() != static_cast<int>(i)) continue;
      nlohmann::json pieces = nlohmann::json::array();
      for (std::uint32_t p = 0; p < size_of(buffer.pieces()); ++p)
        pieces.push_back({{"offset", buffer.pieces()->Get(p)->offset()}, {"first", buffer.pieces()->Get(p)->first()}});
      arena.push_back({{"buffer", b},
                       {"pieces", pieces},
                       {"name", text_of(buffer.name())},
                       {"offset", f.memory.offsets[b]},
                       {"bytes", f.memory.sizes[b]},
                       {"first", buffer.first()},
                       {"last", buffer.last()}});
    }
    entries_json.push_back({{"name", f.name},
                            {"inputs", ports(inputs(i))},
                            {"outputs", ports(outputs(i))},
                            {"launches", launches},
                            {"launch_count", f.launches.size()},
                            {"calls", f.calls},
                            {"flops", f.flops},
                            {"bytes", f.bytes},
                            {"arena_bytes", f.memory.arena_bytes},
                            {"live_bytes", f.memory.live_bytes},
                            {"arena", arena}});
  }
  nlohmann::json states_json = nlohmann::json::array();
  for (const PlanState& s : states(at)) {
    states_json.push_back({{"name", s.name}, {"tensors", s.tensors}, {"bytes", s.bytes}});
    if (!s.carried_from.empty()) states_json.back()["carried_from"] = s.carried_from;
  }
  return {{"schema", 1},
          {"kind", "plan"},
          {"model", text_of(plan_.model())},
          {"producer", text_of(plan_.producer())},
          {"target", text_of(plan_.target())},
          {"precision", text_of(plan_.precision())},
          {"options", options},
          {"metadata", metadata},
          {"symbols", symbols},
          {"states", states_json},
          {"programs", size_of(plan_.programs())},
          {"constant_bytes", constant_bytes()},
          {"entries", entries_json}};
}

std::string dims_text(const SymbolValues& at) {
  std::string out;
  for (const auto& [name, n] : at) out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name, n);
  return out;
}

}  // namespace oclc::tool
