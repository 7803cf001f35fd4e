// The walk over a checked model's nodes that builds the graph: lower.cpp has the walk itself, control_flow.cpp the operators
// that hold sub-graphs.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontends/onnx/context.h"
#include "frontends/onnx/fold.h"
#include "frontends/onnx/inputs.h"
#include "frontends/onnx/lower.h"
#include "frontends/onnx/model/model.h"
#include "frontends/onnx/model/tensors.h"

namespace oclc {
class CustomOps;
namespace custom {
struct CustomOp;
}
}  // namespace oclc

namespace oclc::onnx {

// The body of a loop in the making. Values of the graph around it that the body uses become its operands.
struct LoopBody {
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::vector<std::pair<Value*, Value*>> captured;  // outside, inside
};

// Values by the names that nodes use. A sub-graph sees the names around it; a function sees only its own.
struct Scope {
  Scope(Scope* around, Builder& into) : outer(around), builder(&into) {}

  Scope* outer;
  Builder* builder;          // of the graph that the scope's values belong to
  LoopBody* body = nullptr;  // set if that is another graph than the one of `outer`
  std::unordered_map<std::string_view, Value*> values;
  std::unordered_map<std::string_view, oclc_onnx::TensorProto*> constants;  // that became no value yet
};

// A function that is being expanded, a sub-graph, or the main graph.
struct Call {
  const Opsets* opsets = nullptr;
  std::map<std::string, const oclc_onnx::AttributeProto*, std::less<>> attributes;
  std::string prefix;  // of the names of nodes
};

class Lowering : public OpHost {
 public:
  Lowering(const CheckedModel& model, TensorStore& tensors, const ImportOptions& options, std::vector<StateVariable>* states,
           Suggestions& suggested, Assumptions& assumptions);

  std::unique_ptr<Graph> run(oclc_onnx::GraphProto& graph, const Inputs& inputs);

  const oclc_onnx::AttributeProto* attribute(const oclc_onnx::NodeProto& node, std::string_view name) override;
  const HostTensor& tensor(const oclc_onnx::TensorProto& tensor) override;
  std::optional<HostTensor> known(const Value* value) override { return known_.find(value); }
  void warn(const std::string& text) override;
  bool training() const override { return states_ != nullptr; }
  void suggest_bound(const std::string& symbol, std::int64_t bound, const std::string& why) override;
  std::int64_t count_made(std::int64_t more) override { return made_ += more; }
  const Bundle* bundle(const Value* value) const override;
  Value* make_bundle(Bundle bundle) override;

 private:
  struct Repeated;
  class Body;
  struct Branches;

  std::optional<HostTensor> input_value(const Value* value) const;
  const oclc_onnx::AttributeProto* resolve(const oclc_onnx::AttributeProto& attribute) const;
  static void add_constants(oclc_onnx::GraphProto& graph, Scope& scope);
  // Null if the name stands for an optional input that the caller of a function left out.
  Value* lookup(std::string_view name, Scope& scope) { return find(name, scope).second; }
  // False if nothing has that name.
  std::pair<bool, Value*> find(std::string_view name, Scope& scope);
  // The value inside of the loop's body that `scope` belongs to for one of the graph around it.
  Value* capture(Value* outside, Scope& scope);
  void make_states();
  void add_output(const std::string& name, Value* value);
  Value* of_declared_rank(const oclc_onnx::ValueInfoProto& declared, Value* value);

  template <class Nodes>
  void nodes(Nodes& list, const Schedule& schedule, Scope& scope);
  void node(oclc_onnx::NodeProto& node, int index, Scope& scope);
  void call(oclc_onnx::NodeProto& node, const Function& function, const std::vector<Value*>& inputs, const std::string& label,
            Scope& scope);
  void differentiate(oclc_onnx::NodeProto& node, const std::vector<Value*>& inputs, const std::string& label,
                     std::int64_t opset, Scope& scope);
  // custom.cpp
  void custom_op(const custom::CustomOp& op, const oclc_onnx::NodeProto& node, std::vector<Value*> inputs,
                 const std::string& label, std::int64_t opset, Scope& scope);
  static Outputs read(OpContext& context, const OpRow& row);
  static void bind(const oclc_onnx::NodeProto& node, const Outputs& outputs, const OpContext& context, Scope& scope);

  // control_flow.cpp
  using Control = Outputs (Lowering::*)(OpContext&, const oclc_onnx::NodeProto&, Scope&);
  static Control control_of(const oclc_onnx::NodeProto& node);
  void control(Control read, oclc_onnx::NodeProto& node, std::vector<Value*> inputs, const std::string& label,
               std::int64_t opset, Scope& scope);
  Outputs branch(OpContext& c, const oclc_onnx::NodeProto& node, Scope& scope);
  // branches.cpp
  void read_branches(OpContext& c, Branches& branches, Scope& scope);
  Outputs either_branch(OpContext& c, const Value* condition, Branches& branches, Scope& scope);
  static Value* after_check(OpContext& c, Value* flag, Value* is_taken, const Branches& branches, bool which);
  Outputs loop(OpContext& c, const oclc_onnx::NodeProto& node, Scope& scope);
  Outputs scan(OpContext& c, const oclc_onnx::NodeProto& node, Scope& scope);
  Outputs scan_batches(OpContext& c, const oclc_onnx::NodeProto& node, Scope& scope);
  Outputs sequence_map(OpContext& c, const oclc_onnx::NodeProto& node, Scope& scope);
  Outputs flex_attention(OpContext& c, const oclc_onnx::NodeProto& node, Scope& scope);
  // The graph of that attribute, with so many inputs and outputs.
  oclc_onnx::GraphProto& body_of(OpContext& c, const oclc_onnx::NodeProto& node, std::string_view name, int inputs,
                                 int outputs);
  // Reads the body's nodes where its inputs stand for `inputs`; gives its outputs.
  std::vector<Value*> expand(OpContext& c, oclc_onnx::GraphProto& body, const std::vector<Value*>& inputs, Scope& inner,
                             const std::string& prefix);
  std::vector<Value*> body_inputs(const Repeated& r, const Expr& at, const std::vector<Value*>& carried, Scope& inner);
  Outputs repeat(OpContext& c, const Repeated& r, Scope& scope);
  Outputs rolled(OpContext& c, const Repeated& r, Scope& scope);
  Outputs conditional(OpContext& c, const Repeated& r, Scope& scope, bool counts_only = false);
  Outputs unrolled(OpContext& c, const Repeated& r, std::int64_t trips, KnownValues& known, Scope& scope);
  Outputs never_run(OpContext& c, const Repeated& r, Scope& scope);

  const CheckedModel& model_;
  TensorStore& tensors_;
  const std::function<void(const std::string&)>& warn_;
  const std::function<std::optional<HostTensor>(const std::string&)>& input_value_;
  bool ask_for_trips_;
  bool has_open_sizes_ = false;
  std::shared_ptr<const CustomOps> ops_;
  std::vector<StateVariable>* states_;
  Suggestions& suggested_;
  std::unique_ptr<Graph> out_;
  Builder main_builder_;
  Builder* builder_ = &main_builder_;  // of the graph that is being read into
  const Call* call_ = nullptr;
  std::int64_t made_ = 0;                          // nodes beyond those of the file
  int loops_ = 0;                                  // so far; makes the names of their counters
  int depth_ = 0;                                  // of bodies of loops that are being read
  std::unordered_set<const Value*> initializers_;  // of the main graph, as far as they were looked up
  std::vector<std::unique_ptr<Value>> handles_;    // stand for what is no tensor; in no graph
  std::unordered_map<const Value*, Bundle> bundles_;
  // Bodies that led nowhere: what is known of their values is kept by address.
  std::vector<std::unique_ptr<Graph>> discarded_;
  KnownValues known_{[this](const Value* input) { return input_value(input); }};
  KnownValues constants_{[](const Value*) { return std::nullopt; }};  // without asking for inputs
};

}  // namespace oclc::onnx
