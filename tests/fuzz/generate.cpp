#include "tests/fuzz/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/support/error.h"

namespace oclc::fuzz {
namespace {

using oclc_onnx::ModelProto;

ModelProto empty_model(std::int64_t opset) {
  ModelProto model;
  model.set_ir_version(opset >= 21 ? 10 : 8);
  model.add_opset_import()->set_version(opset);
  model.mutable_graph()->set_name("fuzz");
  return model;
}

// Dimensions of at least 2 become symbols, equal ones the same; if `only` is given, those of that size.
void add_input(ModelProto& model, const std::string& name, const HostTensor& value, const std::string& symbols,
               std::int64_t only = 0) {
  auto& input = *model.mutable_graph()->add_input();
  input.set_name(name);
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_type(value.dtype()));
  type.mutable_shape();
  for (const std::int64_t dim : value.shape()) {
    auto& d = *type.mutable_shape()->add_dim();
    if (!symbols.empty() && dim > 1 && (only == 0 || dim == only))
      d.set_dim_param(fmt::format("{}{}", symbols, dim));
    else
      d.set_dim_value(dim);
  }
}

Case case_of(const Draft& d, const std::string& symbols) {
  Case c;
  c.model = empty_model(d.opset);
  *c.model.mutable_graph()->add_node() = d.node;
  std::set<std::string> seen;
  for (const Operand& operand : d.operands) {
    if (operand.name.empty() || !seen.insert(operand.name).second) continue;
    if (operand.known) {
      *c.model.mutable_graph()->add_initializer() = tensor_proto(operand.value, operand.name);
    } else {
      add_input(c.model, operand.name, operand.value, symbols);
      c.inputs.emplace_back(operand.name, operand.value);
    }
  }
  for (const std::string& name : d.node.output()) c.model.mutable_graph()->add_output()->set_name(name);
  return c;
}

bool small_integers(const HostTensor& t) {
  if (!is_float(t.dtype())) return true;
  const double most = t.dtype() == DType::bf16 ? 128 : t.dtype() == DType::f16 ? 1024 : 1 << 20;
  for (std::int64_t i = 0; i < t.elements(); ++i) {
    if (!(std::fabs(t.at(i)) <= most) || t.at(i) != std::floor(t.at(i))) return false;
  }
  return true;
}

// Are results exact that have this value?
bool exact(const Draft& d, const HostTensor& result) {
  if (!is_float(result.dtype()) || d.effect == Effect::decides) return true;
  const bool operands = std::all_of(d.operands.begin(), d.operands.end(), [](const Operand& o) { return o.exact; });
  if (d.effect == Effect::moves) return operands;
  return d.effect == Effect::ring && operands && small_integers(result) &&
         std::all_of(d.operands.begin(), d.operands.end(),
                     [](const Operand& o) { return o.name.empty() || small_integers(o.value); });
}

// Reads and evaluates the draft's node alone.
Single evaluated(const Draft& d, const std::string& symbols) {
  Single s;
  s.op = d.node.op_type();
  s.model = case_of(d, symbols);
  try {
    std::unique_ptr<Module> module;
    try {
      module = import_case(s.model);
    } catch (const CompileError&) {
      if (symbols.empty()) throw;
      s.fixed = true;
      s.model = case_of(d, {});
      module = import_case(s.model);
    }
    const std::vector<HostTensor> values = reference(*module, s.model);
    for (std::size_t i = 0; i < values.size(); ++i)
      s.model.results.push_back({d.output_name(static_cast<int>(i)), exact(d, values[i]), d.tolerance, d.scale, values[i]});
  } catch (const CompileError& error) {
    (error.parts().exit_code == ExitCode::unsupported ? s.refusal : s.failure) = error.what();
  } catch (const std::exception& error) {
    s.failure = error.what();
  }
  return s;
}

// The values of a graph in the making.
class Values : public Pool {
 public:
  explicit Values(Random& random) : r_(random) {}

  void add(Operand value) { values_.push_back(std::move(value)); }
  const std::vector<Operand>& all() const { return values_; }

  std::optional<Operand> take(DType dtype, const Dims& shape, const Range& range, bool exact) override {
    std::vector<const Operand*> fitting;
    for (const Operand& v : values_) {
      if (v.value.dtype() == dtype && v.value.shape() == shape && (v.exact || !exact) && within(v.value, range))
        fitting.push_back(&v);
    }
    if (fitting.empty()) return std::nullopt;
    return *fitting[static_cast<std::size_t>(r_.integer(0, static_cast<std::int64_t>(fitting.size()) - 1))];
  }
  std::optional<DType> type(const std::vector<DType>& among) override {
    std::vector<DType> found;
    for (const Operand& v : values_) {
      if (std::count(among.begin(), among.end(), v.value.dtype())) found.push_back(v.value.dtype());
    }
    if (found.empty()) return std::nullopt;
    return r_.pick(found);
  }
  std::optional<Dims> shape(std::size_t least_rank, std::size_t most_rank) override {
    std::vector<Dims> found;
    for (const Operand& v : values_) {
      const std::size_t rank = v.value.shape().size();
      if (rank >= least_rank && rank <= most_rank) found.push_back(v.value.shape());
    }
    if (found.empty()) return std::nullopt;
    return r_.pick(found);
  }

 private:
  static bool within(const HostTensor& value, const Range& range) {
    constexpr double kLargest = 64;
    for (std::int64_t i = 0; i < value.elements(); ++i) {
      const double x = value.at(i);
      if (!(std::fabs(x) <= kLargest) || (range.strict && !(x >= range.low && x <= range.high))) return false;
    }
    return true;
  }

  Random& r_;
  std::vector<Operand> values_;
};

}  // namespace

Single random_single(std::uint64_t seed, std::int64_t opset, const Spec& spec, const std::string& prefix, int in_turn) {
  Random r(seed);
  Draft d(r, opset, spec.op, {}, prefix, nullptr);
  d.in_turn = in_turn;
  spec.draft(d);
  d.finish();
  return evaluated(d, d.symbolic && in_turn < 0 && r.chance(0.3) ? prefix + "d" : "");
}

Case joined(const std::vector<const Case*>& cases) {
  Case all;
  all.model = empty_model(cases.at(0)->model.opset_import(0).version());
  auto& graph = *all.model.mutable_graph();
  for (const Case* c : cases) {
    graph.mutable_node()->MergeFrom(c->model.graph().node());
    graph.mutable_initializer()->MergeFrom(c->model.graph().initializer());
    graph.mutable_input()->MergeFrom(c->model.graph().input());
    graph.mutable_output()->MergeFrom(c->model.graph().output());
    all.inputs.insert(all.inputs.end(), c->inputs.begin(), c->inputs.end());
    all.results.insert(all.results.end(), c->results.begin(), c->results.end());
  }
  return all;
}

RandomGraph random_graph_model(std::uint64_t seed, const std::vector<Spec>& specs) {
  Random r(seed);
  const std::int64_t opset = r.chance(0.2) ? r.integer(13, 16) : r.integer(17, 23);
  RandomGraph out;
  out.model.model = empty_model(opset);
  auto& graph = *out.model.model.mutable_graph();
  Values values(r);
  const std::int64_t symbolic = r.chance(0.4) ? r.integer(2, 7) : 0;
  const std::int64_t wanted = r.integer(5, 30);
  std::map<std::string, Result> results;
  std::map<std::string, double> precision;  // of what a value is computed from, at its worst
  std::set<std::string> used, declared;
  std::vector<Spec> fitting;
  for (const Spec& spec : specs) {
    if (spec.in_graphs && spec.since <= opset && opset <= spec.until) fitting.push_back(spec);
  }
  for (std::int64_t i = 0; i < wanted; ++i) {
    const Spec& spec = fitting[static_cast<std::size_t>(r.integer(0, static_cast<std::int64_t>(fitting.size()) - 1))];
    Draft d(r, opset, spec.op, {}, fmt::format("n{}_", i), &values);
    spec.draft(d);
    d.finish();
    Single single = evaluated(d, {});
    if (!single.failure.empty() || !single.refusal.empty()) {
      out.broken.push_back(std::move(single));
      continue;
    }
    out.ops.push_back(single.op);
    *graph.add_node() = d.node;
    double worst = 0;
    for (const Operand& operand : d.operands) {
      if (operand.name.empty()) continue;
      const double own = is_float(operand.value.dtype()) ? precision_of(operand.value.dtype()) : 0;
      worst = std::max(worst, precision.emplace(operand.name, own).first->second);
      used.insert(operand.name);
      if (results.count(operand.name) || !declared.insert(operand.name).second) continue;
      if (operand.known) {
        *graph.add_initializer() = tensor_proto(operand.value, operand.name);
      } else {
        add_input(out.model.model, operand.name, operand.value, symbolic > 0 ? "d" : "", symbolic);
        out.model.inputs.emplace_back(operand.name, operand.value);
      }
      values.add(operand);
    }
    for (const Result& result : single.model.results) {
      const DType dtype = result.wanted.dtype();
      precision[result.name] = std::max(worst, is_float(dtype) ? precision_of(dtype) : 0);
      results.emplace(result.name, result).first->second.precision = precision[result.name];
      values.add({result.name, result.wanted, false, result.exact});
    }
  }
  for (const auto& [name, result] : results) {
    if (used.count(name) && !r.chance(0.1)) continue;
    graph.add_output()->set_name(name);
    Result wanted_result = result;
    constexpr double kChain = 256;  // of what earlier operators may do to a number
    wanted_result.tolerance = kChain;
    out.model.results.push_back(std::move(wanted_result));
  }
  try {
    if (symbolic > 0) import_case(out.model);
    out.symbolic = symbolic > 0;
  } catch (const CompileError&) {  // numbers must be numbers
    for (auto& input : *graph.mutable_input()) {
      for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
        if (dim.has_dim_param()) dim.set_dim_value(symbolic);
      }
    }
  }
  return out;
}

}  // namespace oclc::fuzz
