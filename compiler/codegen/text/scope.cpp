#include "compiler/codegen/text/scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "compiler/codegen/text/bits.h"
#include "compiler/codegen/text/half.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

using Kind = ScalarNode::Kind;

// Replaces the operand letters a, b, c, .. of an operator's text.
std::string fill_operands(std::string_view text, const std::vector<std::string>& args) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool alone = (i == 0 || !is_word(text[i - 1])) && (i + 1 == text.size() || !is_word(text[i + 1]));
    const auto letter = static_cast<std::size_t>(text[i] - 'a');
    if (alone && text[i] >= 'a' && letter < args.size())
      out += args[letter];
    else
      out += text[i];
  }
  return out;
}

}  // namespace

bool is_row_load(const Kernel& kernel, const ScalarNode& node, const std::string& axis) {
  return node.kind == Kind::load && !node.guard.empty() && node.index.coefficient(axis) == Expr(1) &&
         kernel.operands[static_cast<std::size_t>(node.operand)].dtype == DType::f32 &&
         std::none_of(node.guard.begin(), node.guard.end(), [&](const Expr& e) { return e.uses(axis); });
}

Emitter::Emitter(const Kernel& kernel, EmitMode mode)
    : kernel_(kernel), mode_(std::move(mode)), dependencies_(find_dependencies(kernel)), uses_(kernel.nodes.size(), 0) {
  const auto use_index = [&](const Expr& e) {
    for (const std::string& s : e.symbols()) {
      if (const auto id = dynamic_index(s)) uses_[static_cast<std::size_t>(*id)] += 2;
    }
  };
  for (const ScalarNode& node : kernel.nodes) {
    for (const NodeId a : node.args) ++uses_[static_cast<std::size_t>(a)];
    use_index(node.index);
    for (const Expr& e : node.guard) use_index(e);
  }
  for (const Stage& stage : kernel.stages) {
    ++uses_[static_cast<std::size_t>(stage.body)];
    if (stage.arg_index >= 0) ++uses_[static_cast<std::size_t>(stage.arg_index)];
  }
  for (const Store& store : kernel.stores) ++uses_[static_cast<std::size_t>(store.value)];
  scopes_.emplace_back();
}

void Emitter::set_vector_axis(std::string axis, int width) {
  mode_.vector_axis = std::move(axis);
  mode_.width = width;
}

void Emitter::line(const std::string& text) { scopes_.back().lines.push_back(text); }

void Emitter::open(const std::string& header, const std::set<std::string>& axes) {
  scopes_.emplace_back();
  scopes_.back().axes = axes;
  scopes_.back().lines.push_back(header.empty() ? "{" : header + " {");
}

void Emitter::close() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  std::erase_if(stages_, [&](const auto& s) { return s.second.second >= scopes_.size(); });
  Scope& outer = scopes_.back();
  std::istringstream header(scope.lines[0]);  // pragmas stand in lines of their own
  for (std::string line; std::getline(header, line);) outer.lines.push_back(line);
  for (std::size_t i = 1; i < scope.lines.size(); ++i) outer.lines.push_back("  " + scope.lines[i]);
  outer.lines.push_back("}");
}

void Emitter::stage_done(int stage, const std::string& name, bool) { stages_[stage] = {name, scopes_.size() - 1}; }

std::size_t Emitter::scope_for(std::set<std::string> missing) const {
  std::size_t depth = 0;
  for (auto it = missing.begin(); it != missing.end();) {
    if (!it->starts_with("stage ")) {
      ++it;
      continue;
    }
    const auto known = stages_.find(std::stoi(it->substr(6)));
    OCLC_CHECK(known != stages_.end(), "stage result used before it is computed");
    depth = std::max(depth, known->second.second);
    it = missing.erase(it);
  }
  for (std::size_t s = 0; s < scopes_.size(); ++s) {
    for (const std::string& axis : scopes_[s].axes) {
      if (missing.erase(axis)) depth = std::max(depth, s);
    }
  }
  OCLC_CHECK(missing.empty(),
             "axis " + (missing.empty() ? std::string() : *missing.begin()) + " is not open in kernel " + kernel_.name);
  return depth;
}

std::string Emitter::vector_type(DType dtype) const { return fmt::format("{}{}", value_type(dtype), mode_.width); }

std::string Emitter::declare(NodeId id, std::size_t scope, const std::string& text) {
  const ScalarNode& node = kernel_.nodes[static_cast<std::size_t>(id)];
  const std::string name = fmt::format("v{}", id);
  const std::string type = is_vector(id) ? vector_type(node.dtype) : std::string(value_type(node.dtype));
  scopes_[scope].lines.push_back(fmt::format("const {} {} = {};", type, name, text));
  scopes_[scope].names[id] = name;
  return name;
}

std::string Emitter::value(NodeId id) {
  const ScalarNode& node = kernel_.nodes[static_cast<std::size_t>(id)];
  if (node.kind == Kind::constant)
    return node.argument < 0 ? c_number(node.number, node.dtype) : kernel_.numbers[static_cast<std::size_t>(node.argument)];
  if (node.kind == Kind::reduced) return stages_.at(node.stage).first;
  for (const Scope& scope : scopes_) {
    const auto known = scope.names.find(id);
    if (known != scope.names.end()) return known->second;
  }
  return compute(id, scope_for(id));
}

std::string Emitter::vector_value(NodeId id) { return argument(id, mode_.width > 1); }

std::string Emitter::argument(NodeId id, bool vector) {
  const std::string text = value(id);
  if (!vector || is_vector(id)) return text;
  const DType dtype = kernel_.nodes[static_cast<std::size_t>(id)].dtype;
  return dtype == DType::boolean ? fmt::format("({})(-({}))", vector_type(dtype), text)
                                 : fmt::format("({})({})", vector_type(dtype), text);
}

std::string Emitter::index(const Expr& e) {
  for (const std::string& s : e.symbols()) {
    if (const auto id = dynamic_index(s)) value(*id);
  }
  return e.c_text([&](std::string_view s) -> std::string {
    if (const auto id = dynamic_index(s)) return mode_.wide_index ? value(*id) : fmt::format("(int){}", value(*id));
    for (const auto* list : {&kernel_.axes, &kernel_.reduction}) {
      for (const Axis& axis : *list) {
        if (axis.name == s) return axis.name;
      }
    }
    return fmt::format("{}dim_{}", mode_.wide_index ? "" : "(int)", s);
  });
}

std::string Emitter::condition(const std::vector<Expr>& guard) {
  std::vector<std::string> parts;
  for (const Expr& e : guard) {
    // -x + c >= 0 reads better as x <= c.
    const auto symbols = e.symbols();
    const auto c = symbols.empty() ? std::nullopt : e.coefficient(symbols[0]);
    if (c && c->constant() && c->value() < 0) {
      const SymbolValues none;
      Substitution zeros;
      for (const std::string& s : symbols) zeros.emplace(s, Expr(0));
      const Expr constant = [&] {
        bool divides = false;
        for (const std::string& s : symbols) divides = divides || !e.coefficient(s);
        return divides ? Expr(0) : e.substitute(zeros);
      }();
      parts.push_back(fmt::format("{} <= {}", index(constant - e), index(constant)));
    } else {
      parts.push_back(fmt::format("{} >= 0", index(e)));
    }
  }
  return fmt::format("{}", fmt::join(parts, " && "));
}

bool Emitter::is_aligned(const Expr& index) const {
  if (!mode_.aligned || !mode_.lanes_left.empty()) return false;
  const Expr width(mode_.width), first = index.substitute({{mode_.vector_axis, width * Expr::symbol("vector", 0)}});
  return floor_mod(first, width) == Expr(0);
}

// Where a guarded load of neighbours along the vector axis starts, or a row of what stands for them outside the guard.
std::string Emitter::row_of(NodeId id) {
  const ScalarNode& node = kernel_.nodes[static_cast<std::size_t>(id)];
  const Operand& operand = kernel_.operands[static_cast<std::size_t>(node.operand)];
  const auto fill = mode_.outside.find(node.number);
  if (fill == mode_.outside.end() || !is_row_load(kernel_, node, mode_.vector_axis)) return {};
  for (const Scope& scope : scopes_) {
    const auto known = scope.rows.find(id);
    if (known != scope.rows.end()) return known->second;
  }
  std::set<std::string> needed = dependencies_[static_cast<std::size_t>(id)];
  needed.erase(mode_.vector_axis);
  const std::size_t scope = scope_for(std::move(needed));
  const std::string name = fmt::format("p{}", id), start = index(node.index.substitute({{mode_.vector_axis, Expr(0)}}));
  scopes_[scope].lines.push_back(fmt::format("const __global float* {} = ({}) ? {} + {} : {};", name, condition(node.guard),
                                             operand.name, start, fill->second));
  return scopes_[scope].rows[id] = name;
}

std::string Emitter::load_text(NodeId id, bool vector) {
  const ScalarNode& node = kernel_.nodes[static_cast<std::size_t>(id)];
  if (vector) {
    const std::string row = row_of(id);
    if (!row.empty()) return fmt::format("vload{}(0, {} + {})", mode_.width, row, mode_.vector_axis);
  }
  const Operand& operand = kernel_.operands[static_cast<std::size_t>(node.operand)];
  const std::string at = index(node.index);
  const std::string place = operand.name + (at == "0" ? "" : " + " + at);
  // Only its guard may vary along the vector.
  const bool lanes = vector && node.index.coefficient(mode_.vector_axis) != Expr(0);
  std::string text;
  if (is_half(operand.dtype)) {
    text = half_load(operand.dtype, operand.name, at, lanes ? mode_ : EmitMode());
  } else if (lanes) {
    if (is_aligned(node.index))
      text = fmt::format("*(const __global {}{}*)({})", c_type(operand.dtype), mode_.width, place);
    else if (mode_.lanes_left.empty())
      text = fmt::format("vload{}(0, {})", mode_.width, place);
    else
      text = fmt::format("oclc_load_lanes{}({}, {})", mode_.width, place, mode_.lanes_left);
    if (operand.dtype == DType::boolean) text = fmt::format("(convert_int{}({}) != 0)", mode_.width, text);
  } else {
    text = fmt::format("{}[{}]", operand.name, at);
    if (operand.dtype == DType::boolean) text = fmt::format("({} != 0)", text);
  }
  if (vector && !lanes)
    text = fmt::format("({})({}{})", vector_type(node.dtype), node.dtype == DType::boolean ? "-" : "", text);
  if (node.guard.empty()) return text;
  std::string fill = c_number(node.number, node.dtype);
  if (vector)
    fill = fmt::format("({})({})", vector_type(node.dtype), node.dtype == DType::boolean && node.number != 0 ? "-1" : fill);
  return fmt::format("({}) ? {} : {}", condition(node.guard), text, fill);
}

// The factor of a product of floats that is multiplied with its own sigmoid, which nothing else reads: one function computes
// both, since a division takes the place of the product.
std::optional<NodeId> Emitter::multiplied_with_its_sigmoid(const ScalarNode& node) const {
  if (node.op_name != "mul" || node.dtype != DType::f32) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto gate = static_cast<std::size_t>(node.args[i]);
    const ScalarNode& g = kernel_.nodes[gate];
    if (g.kind == Kind::apply && g.op_name == "sigmoid" && g.args[0] == node.args[1 - i] && uses_[gate] == 1) return g.args[0];
  }
  return std::nullopt;
}

std::string Emitter::apply_text(NodeId id, bool vector) {
  const ScalarNode& node = kernel_.nodes[static_cast<std::size_t>(id)];
  if (const auto gated = multiplied_with_its_sigmoid(node)) return fmt::format("oclc_silu({})", argument(*gated, vector));
  std::vector<std::string> args;
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    const bool uniform_condition = i == 0 && node.op_name == "where" && !is_vector(node.args[0]);
    args.push_back(argument(node.args[i], vector && !uniform_condition));
  }
  const DType operand = kernel_.nodes[static_cast<std::size_t>(node.args.back())].dtype;
  const std::string_view text = is_float(operand) ? node.op->float_text : node.op->integer_text;
  OCLC_CHECK(!text.empty(), fmt::format("operator {} has no text for {}", node.op_name, name_of(operand)));
  const std::string filled = fill_operands(text, args);
  // C computes with ints: integers of fewer bits wrap at every step.
  const bool promoted = is_integer(node.dtype) && size_bytes(node.dtype) < 4;
  return promoted ? fmt::format("({}){}", c_type(node.dtype), filled) : filled;
}

std::string Emitter::compute(NodeId id, std::size_t scope) {
  const ScalarNode& node = kernel_.nodes[static_cast<std::size_t>(id)];
  const bool vector = is_vector(id);
  switch (node.kind) {
    case Kind::index: {
      if (!vector)
        return declare(id, scope, node.dtype == DType::f32 ? fmt::format("(float)({})", index(node.index)) : index(node.index));
      const Expr step = *node.index.coefficient(mode_.vector_axis);
      std::vector<std::string> lanes;
      for (int i = 0; i < mode_.width; ++i) lanes.push_back(std::to_string(i));
      return declare(id, scope,
                     fmt::format("({0})({1}) + ({0})({2}) * ({3})", vector_type(node.dtype), index(node.index),
                                 fmt::join(lanes, ", "), index(step)));
    }
    case Kind::load:
      return declare(id, scope, load_text(id, vector));
    case Kind::apply: {
      const std::string text = apply_text(id, vector);
      const std::size_t i = static_cast<std::size_t>(id);
      if (uses_[i] <= 1 && text.size() < 60) return text;
      return declare(id, scope, text);
    }
    case Kind::cast: {
      const ScalarNode& from = kernel_.nodes[static_cast<std::size_t>(node.args[0])];
      std::string x = value(node.args[0]);
      if (is_half(from.dtype)) return x;  // was rounded there
      if (is_narrow_float(from.dtype)) x = fmt::format("oclc_from_{}({})", name_of(from.dtype), x);
      if (is_narrow(node.dtype))
        return declare(
            id, scope,
            fmt::format("oclc_to_{}(({})({}))", name_of(node.dtype), is_narrow_float(node.dtype) ? "float" : "int", x));
      if (is_half(node.dtype)) return declare(id, scope, half_round(node.dtype, x));
      if (vector) {
        if (node.dtype == DType::boolean && from.dtype == DType::i64)
          return declare(id, scope, fmt::format("convert_{}({} != 0)", vector_type(DType::boolean), x));
        if (node.dtype == DType::boolean) return declare(id, scope, fmt::format("({} != 0)", x));
        const std::string number = from.dtype == DType::boolean ? fmt::format("(-{})", x) : x;
        return declare(id, scope, fmt::format("convert_{}({})", vector_type(node.dtype), number));
      }
      if (node.dtype == DType::boolean) return declare(id, scope, fmt::format("({} != 0)", x));
      return declare(id, scope, fmt::format("({})({})", c_type(node.dtype), x));
    }
    case Kind::bits:
      return declare(id, scope, bits_text(node.bits_from, node.bits_to, value(node.args[0])));
    case Kind::select:
      return declare(id, scope,
                     fmt::format("({}) ? {} : {}", condition(node.guard), argument(node.args[0], vector),
                                 vector ? fmt::format("({})({})", vector_type(node.dtype), c_number(node.number, node.dtype))
                                        : c_number(node.number, node.dtype)));
    case Kind::choose:
      return declare(
          id, scope,
          fmt::format("({}) ? {} : {}", condition(node.guard), argument(node.args[0], vector), argument(node.args[1], vector)));
    default:
      break;
  }
  check_failed("kind", "scope.cpp", 0, "node kind");
}

// What is rounded for this store alone, before it is: the store rounds.
NodeId Emitter::unrounded(NodeId id, DType dtype) const {
  const ScalarNode& node = kernel_.nodes[static_cast<std::size_t>(id)];
  if (!is_half(dtype) || node.kind != Kind::cast) return id;
  const NodeId from = node.args[0];
  const ScalarNode& rounded = kernel_.nodes[static_cast<std::size_t>(from)];
  return rounded.kind == Kind::cast && rounded.dtype == dtype ? rounded.args[0] : id;
}

std::string Emitter::stored_value(const Store& store) {
  return vector_value(unrounded(store.value, kernel_.operands[static_cast<std::size_t>(store.operand)].dtype));
}

void Emitter::store(const Store& store) {
  const Operand& operand = kernel_.operands[static_cast<std::size_t>(store.operand)];
  const std::string at = index(store.index);
  std::string v = stored_value(store);
  // Lanes of truth values are 0 or -1, in memory they are bytes of 0 or 1.
  if (mode_.width > 1 && operand.dtype == DType::boolean) v = fmt::format("convert_uchar{}(-({}))", mode_.width, v);
  const std::string place = operand.name + (at == "0" ? "" : " + " + at),
                    guard = store.guard.empty() ? "" : fmt::format("if ({}) ", condition(store.guard));
  const auto step = mode_.width > 1 ? store.index.coefficient(mode_.vector_axis) : std::nullopt;
  if (step && *step != Expr(1)) {
    const std::string lanes = fmt::format("lanes{}", lane_arrays_++);
    const bool half = is_half(operand.dtype);
    const std::string_view type = half ? "float" : c_type(operand.dtype);
    line(fmt::format("{} {}[{}];", type, lanes, mode_.width));
    line(fmt::format("oclc_store({}, {});", v, lanes));
    const std::string each = fmt::format("{} + l * ({})", at, index(*step)), lane = lanes + "[l]";
    const std::string loop = fmt::format("{}for (int l = 0; l < {}; ++l) ", guard, mode_.width);
    line(half ? loop + half_store(operand.dtype, lane, operand.name, each, {})
              : fmt::format("{}{}[{}] = {};", loop, operand.name, each, lane));
  } else if (is_half(operand.dtype)) {
    line(guard + half_store(operand.dtype, v, operand.name, at, mode_));
  } else if (mode_.width > 1 && !mode_.lanes_left.empty())
    line(fmt::format("{}oclc_store_lanes{}({}, {}, {});", guard, mode_.width, v, place, mode_.lanes_left));
  else if (mode_.width > 1 && is_aligned(store.index))
    line(fmt::format("{}*(__global {}{}*)({}) = {};", guard, c_type(operand.dtype), mode_.width, place, v));
  else if (mode_.width > 1 && mode_.streams && operand.dtype == DType::f32)
    line(fmt::format("{}oclc_stream({}, {});", guard, v, place));
  else if (mode_.width > 1)
    line(fmt::format("{}oclc_store({}, {});", guard, v, place));
  else
    line(fmt::format("{}{}[{}] = {};", guard, operand.name, at, v));
}

std::string Emitter::text() const {
  std::string out;
  for (const std::string& line : scopes_.front().lines) out += "  " + line + "\n";
  return out;
}

}  // namespace oclc
