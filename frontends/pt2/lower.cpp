#include "frontends/pt2/lower.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "compiler/ops/read_dims.h"
#include "compiler/support/error.h"
#include "frontends/pt2/complex.h"
#include "frontends/pt2/table.h"
#include "frontends/pt2/views.h"

namespace oclc::pt2 {
namespace {

constexpr std::size_t kModulesListed = 3;

// Nodes that compute sizes, which the program gives as expressions, and that state what is known.
bool is_about_sizes(const ProgramNode& node) {
  const std::string& t = node.target;
  if (t.starts_with("_operator.") || t.starts_with("math.") || t.find("sym_") != t.npos) return true;
  return t.starts_with("aten._assert") || t == "aten.sym_constrain_range_for_size.default";
}

bool gives_a_tensor(const ProgramNode& node) {
  for (const Arg& result : node.results)
    if (result.is(Arg::Kind::tensor) || result.is(Arg::Kind::list)) return true;
  return false;
}

void require_supported(const Program& program) {
  std::map<std::string, std::pair<std::size_t, std::set<std::string>>> missing;
  for (const ProgramNode& node : program.nodes) {
    const bool complex = is_of_complex(node, program);
    if (complex ? find_complex_row(node.target) != nullptr : find_row(node.target) || find_row_in_place(node.target)) continue;
    if (is_about_sizes(node) && !gives_a_tensor(node)) continue;
    const bool real = complex && (find_row(node.target) || find_row_in_place(node.target));
    auto& [count, modules] = missing[node.target + (real ? " of complex numbers" : "")];
    ++count;
    modules.insert(node.module.empty() ? node.name : node.module);
  }
  if (missing.empty()) return;
  std::string found;
  for (const auto& [target, uses] : missing) {
    std::string modules;
    std::size_t listed = 0;
    for (const std::string& module : uses.second) {
      if (++listed > kModulesListed) break;
      modules += (modules.empty() ? "" : ", ") + module;
    }
    if (uses.second.size() > kModulesListed) modules += ", ..";
    found += fmt::format("\n  {} ({} node{}: {})", target, uses.first, uses.first == 1 ? "" : "s", modules);
  }
  throw CompileError({.stage = "import",
                      .wanted = "operators of ATen that are read",
                      .found = fmt::format("{} that {} not:{}", missing.size(), missing.size() == 1 ? "is" : "are", found),
                      .advice = "exported.run_decompositions() before saving makes core operators of composite ones",
                      .exit_code = ExitCode::unsupported});
}

class Lowering {
 public:
  Lowering(const Program& program, const FindWeight& weight, const Pt2Options& options)
      : program_(program), weight_(weight), options_(options) {}

  std::unique_ptr<Module> run() {
    require_supported(program_);
    module_->name = "program";
    for (const Expr& symbol : program_.symbols) module_->symbols.push_back(symbol);
    for (const ProgramInput& input : program_.inputs) add_input(input);
    for (const ProgramNode& node : program_.nodes) read(node);
    add_outputs();
    nest_read_dims(*graph_);
    graph_->erase_dead();
    if (graph_->outputs().empty()) fail("a program that gives tensors", "none");
    module_->entries.push_back(std::move(graph_));
    return std::move(module_);
  }

 private:
  void add_input(const ProgramInput& input) {
    if (!input.tensor) return;
    const auto type = program_.tensors.find(input.name);
    if (type == program_.tensors.end()) {
      const auto odd = program_.odd_tensors.find(input.name);
      fail(fmt::format("input '{}' of an element type that the compiler has", input.of_model),
           odd == program_.odd_tensors.end() ? "no type" : odd->second);
    }
    const std::optional<HostTensor> value = weight_ ? weight_(input) : std::nullopt;
    if (program_.complex.find(input.name) != program_.complex.end()) {
      if (value && options_.training)
        fail("real parameters and buffers", fmt::format("'{}', which is complex", input.of_model));
      TensorType pairs = type->second;
      pairs.shape.emplace_back(2);
      complex_[input.name] =
          parts_of(builder_, value ? builder_.constant(*value, input.of_model) : graph_->add_input(input.of_model, pairs));
      return;
    }
    if (!value) {
      values_[input.name] = graph_->add_input(input.of_model, type->second);
      return;
    }
    const bool changes = input.kind == ProgramInput::Kind::parameter || input.kind == ProgramInput::Kind::buffer;
    if (options_.training && changes && is_float(value->dtype()) && !value->shape().empty()) {
      values_[input.name] = graph_->add_input(input.of_model, type->second);
      module_->states.push_back({input.of_model, value->type(), *value, {}});
      return;
    }
    values_[input.name] = builder_.constant(*value, input.of_model);
  }

  // What `read` gives; its errors name the node.
  template <class Read>
  auto named(const ProgramNode& node, Read&& read) {
    try {
      return read();
    } catch (const CompileError& error) {
      CompileError::Parts parts = error.parts();
      parts.stage = "import";
      parts.node = builder_.source();
      parts.op = node.target;
      throw CompileError(std::move(parts));
    }
  }

  void read(const ProgramNode& node) {
    if (is_of_complex(node, program_)) {
      read_complex(node);
      return;
    }
    const OpRow* row = find_row(node.target);
    const OpRow* in_place = row ? nullptr : find_row_in_place(node.target);
    if (in_place) row = in_place;
    if (!row) return;  // about sizes alone
    builder_.set_source(node.module.empty() ? node.name : node.module + "." + node.name);
    refresh_operands(node);
    AtenContext context(builder_, *row, node, {program_, values_, views_.roots(), options_.training});
    const Outputs outputs = read_bound(*row, node, context);
    if (in_place)
      write(node, outputs.at(0), context);
    else
      views_.note(node);
  }

  Outputs read_bound(const OpRow& row, const ProgramNode& node, AtenContext& context) {
    Outputs outputs = named(node, [&] { return row.read(context); });
    std::size_t next = 0;
    for_each_result(node, [&](const std::string& name) { bind(name, outputs, next++, context); });
    return outputs;
  }

  void read_complex(const ProgramNode& node) {
    const ComplexRow* row = find_complex_row(node.target);
    if (!row) return;  // about sizes alone
    builder_.set_source(node.module.empty() ? node.name : node.module + "." + node.name);
    refresh_operands(node);
    const OpRow* real = find_row(node.target);
    ComplexContext context(builder_, *row, real, node, {program_, values_, views_.roots(), options_.training}, complex_);
    const ComplexOutputs outputs = named(node, [&] { return row->read(context); });
    std::size_t next = 0;
    for_each_result(node, [&](const std::string& name) {
      const std::size_t i = next++;
      if (name.empty() || i >= outputs.size() || !outputs[i].re) return;
      if (outputs[i].im)
        complex_[name] = outputs[i];
      else
        values_[name] = outputs[i].re;
    });
  }

  template <class Visit>
  static void for_each_result(const ProgramNode& node, Visit&& visit) {
    for (const Arg& result : node.results) {
      if (!result.is(Arg::Kind::list)) visit(result.name);
      for (const Arg& item : result.items) visit(item.name);
    }
  }

  // Of a view whose memory was written since it was read.
  void refresh(const std::string& name) {
    if (stale_.erase(name) == 0) return;
    const Views::View& view = *views_.find(name);
    refresh(view.of);
    if (!view.node) {
      values_[name] = values_.at(view.of);
      return;
    }
    const OpRow& row = *find_row(view.node->target);
    AtenContext context(builder_, row, *view.node, {program_, values_, views_.roots(), options_.training});
    read_bound(row, *view.node, context);
    for_each_result(*view.node, [&](const std::string& result) { stale_.erase(result); });
  }

  void refresh_operands(const ProgramNode& node) {
    if (stale_.empty()) return;
    for (const auto& [name, arg] : node.arguments) for_each_tensor(arg, [&](const std::string& tensor) { refresh(tensor); });
  }

  // From here on the operand's name means what was written into it, and so for all that it shares memory with.
  void write(const ProgramNode& node, Value* value, AtenContext& context) {
    const Arg* self = context.find("self");
    if (!self || !self->is(Arg::Kind::tensor)) context.refuse("writes into tensors", node.target);
    const std::string root = views_.root(self->name);
    const std::set<std::string> group = views_.group(self->name);
    for (const ProgramInput& input : program_.inputs)
      if (input.name == root || (input.kind != ProgramInput::Kind::user && group.count(input.name)))
        refuse_write(input, context);
    const TensorType type = values_.at(self->name)->type;
    value = builder_.expand(builder_.cast(value, type.dtype), type.shape);
    for_each_result(node, [&](const std::string& result) { views_.note_same(result, self->name); });
    if (views_.uncertain(self->name)) {
      refuse_later_uses(node, self->name, context);
      values_[self->name] = value;
      return;
    }
    std::string name = self->name;
    while (const Views::View* view = views_.find(name)) {
      refresh(view->of);
      if (view->node) value = written_into(context, name, *view->node, value, values_);
      name = view->of;
    }
    values_[root] = value;
    std::set<std::string> views = views_.group(root);
    views.erase(root);
    stale_.merge(views);
  }

  // What may share memory with a tensor that is written, or may not, is used no more.
  void refuse_later_uses(const ProgramNode& node, const std::string& written, const AtenContext& context) {
    if (last_uses_.empty()) note_last_uses();
    std::set<std::string> others = views_.group(written);
    for_each_result(node, [&](const std::string& result) { others.erase(result); });
    others.erase(written);
    for (const std::string& other : others) {
      const auto last = last_uses_.find(other);
      if (last != last_uses_.end() && last->second > static_cast<std::size_t>(&node - program_.nodes.data()))
        context.refuse("writes into tensors that share memory as their program says, whatever their strides are",
                       fmt::format("a write into '{}' and a use of '{}'", written, other),
                       "exported.run_decompositions() before saving writes into none");
    }
  }

  void note_last_uses() {
    for (std::size_t i = 0; i < program_.nodes.size(); ++i)
      for (const auto& [name, arg] : program_.nodes[i].arguments)
        for_each_tensor(arg, [&](const std::string& tensor) { last_uses_[tensor] = i; });
    for (const ProgramOutput& output : program_.outputs) last_uses_[output.value.name] = program_.nodes.size();
  }

  // Counters may be written.
  void refuse_write(const ProgramInput& input, const AtenContext& context) const {
    const std::string found = fmt::format("a write into '{}'", input.of_model);
    if (input.kind == ProgramInput::Kind::user)
      context.refuse("a program that leaves its inputs as they are", found, "return the new value instead");
    const auto type = program_.tensors.find(input.name);
    if (type != program_.tensors.end() && is_float(type->second.dtype))
      context.refuse("a program that leaves its buffers as they are", found,
                     "give the buffer as an input and return its new value; --carry keeps it on the device between runs");
  }

  void bind(const std::string& name, const Outputs& outputs, std::size_t i, const AtenContext& context) {
    if (name.empty() || i >= outputs.size() || !outputs[i]) return;
    const auto type = program_.tensors.find(name);
    if (type != program_.tensors.end() && !(outputs[i]->type == type->second)) {
      const TensorType& found = outputs[i]->type;
      // Sizes that are equal for another reason than their text are torch's word.
      if (found.dtype != type->second.dtype || found.rank() != type->second.rank())
        context.refuse(fmt::format("a result {}", type->second.text()), found.text(),
                       "this is a bug of oclc; please report it");
    }
    values_[name] = outputs[i];
  }

  void add_outputs() {
    std::size_t number = 0;
    std::set<std::string> used;
    for (const ProgramOutput& output : program_.outputs) {
      if (!output.value.is(Arg::Kind::tensor)) continue;
      if (!output.mutated.empty()) {
        refuse_mutation(output);
        continue;
      }
      refresh(output.value.name);
      const auto complex = complex_.find(output.value.name);
      if (complex != complex_.end()) values_[output.value.name] = pairs_of(builder_, complex->second);
      const auto value = values_.find(output.value.name);
      if (value == values_.end())
        fail("results that operators of the program give", fmt::format("'{}'", output.value.name),
             "a result that the operator does not compute here is asked for");
      std::string name = output.value.name;
      if (!used.insert(name).second) name += fmt::format("_{}", number);
      graph_->add_output(name, own(value->second));
      ++number;
    }
  }

  // Counters may stay as they are; what a later run would read may not.
  void refuse_mutation(const ProgramOutput& output) const {
    const auto type = program_.tensors.find(output.value.name);
    if (type != program_.tensors.end() && !is_float(type->second.dtype)) return;
    fail("a program that leaves its buffers as they are", fmt::format("a new value of '{}'", output.mutated),
         options_.training ? "save the program without run_decompositions(): batch normalisation then trains as one operator"
                           : "export the model after model.eval(), or compile it for training");
  }

  // An output that is an input or a constant, or an output already, as a value of its own.
  Value* own(Value* value) {
    if (value->producer && !constant_of(value) && !graph_->is_output(value)) return value;
    return builder_.reshape(value, value->type.shape);
  }

  const Program& program_;
  const FindWeight& weight_;
  const Pt2Options& options_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  Builder builder_{*graph_};
  Values values_;
  Complexes complex_;
  Views views_;
  std::set<std::string> stale_;                                // views whose memory was written since
  std::map<std::string, std::size_t, std::less<>> last_uses_;  // places of nodes; their number: an output
};

}  // namespace

std::unique_ptr<Module> lower_program(const Program& program, const FindWeight& weight, const Pt2Options& options) {
  return Lowering(program, weight, options).run();
}

}  // namespace oclc::pt2
