#include "frontends/pt2/onnx_call.h"

#include <oclc_onnx.pb.h>

#include <map>
#include <memory>

#include "frontends/onnx/fold.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/table.h"

namespace oclc::pt2 {
namespace {

// What a reader of ONNX asks its importer, answered for one node.
class OneNode : public onnx::OpHost {
 public:
  explicit OneNode(const AtenContext& c) : c_(c) {}

  const oclc_onnx::AttributeProto* attribute(const oclc_onnx::NodeProto& node, std::string_view name) override {
    for (const auto& attribute : node.attribute())
      if (attribute.name() == name) return &attribute;
    return nullptr;
  }
  const HostTensor& tensor(const oclc_onnx::TensorProto&) override { c_.refuse("no tensor as attribute"); }
  std::optional<HostTensor> known(const Value* value) override { return known_.find(value); }
  void warn(const std::string&) override {}
  bool training() const override { return false; }
  void suggest_bound(const std::string&, std::int64_t, const std::string&) override {}
  const onnx::Bundle* bundle(const Value* value) const override {
    const auto found = bundles_.find(value);
    return found == bundles_.end() ? nullptr : found->second.get();
  }
  Value* make_bundle(onnx::Bundle) override { c_.refuse("tensors alone", "a sequence"); }
  std::int64_t count_made(std::int64_t more) override { return made_ += more; }

 private:
  const AtenContext& c_;
  std::int64_t made_ = 0;  // nodes that this one has become
  onnx::KnownValues known_{[](const Value*) { return std::nullopt; }};
  std::map<const Value*, std::unique_ptr<onnx::Bundle>> bundles_;
};

void add_attribute(oclc_onnx::NodeProto& node, const OnnxAttribute& given) {
  auto& attribute = *node.add_attribute();
  attribute.set_name(given.name);
  using Proto = oclc_onnx::AttributeProto;
  if (const auto* number = std::get_if<std::int64_t>(&given.value)) {
    attribute.set_type(Proto::INT);
    attribute.set_i(*number);
  } else if (const auto* real = std::get_if<double>(&given.value)) {
    attribute.set_type(Proto::FLOAT);
    attribute.set_f(static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&given.value)) {
    attribute.set_type(Proto::STRING);
    attribute.set_s(*text);
  } else if (const auto* list = std::get_if<Ints>(&given.value)) {
    attribute.set_type(Proto::INTS);
    for (const std::int64_t v : *list) attribute.add_ints(v);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&given.value)) {
    attribute.set_type(Proto::STRINGS);
    for (const std::string& v : *texts) attribute.add_strings(v);
  } else {
    attribute.set_type(Proto::FLOATS);
    for (const double v : std::get<std::vector<double>>(given.value)) attribute.add_floats(static_cast<float>(v));
  }
}

}  // namespace

Outputs onnx_call(AtenContext& c, std::string_view op, std::vector<Value*> inputs, std::vector<OnnxAttribute> attributes,
                  int outputs) {
  const onnx::OpRow* row = onnx::find_row(op, kNewestOpset);
  if (!row) c.refuse("an operator that ONNX's front end reads", std::string(op));
  oclc_onnx::NodeProto node;
  node.set_op_type(std::string(op));
  node.set_name(c.b.source());
  for (std::size_t i = 0; i < inputs.size(); ++i) node.add_input(inputs[i] ? "x" + std::to_string(i) : "");
  for (int i = 0; i < outputs; ++i) node.add_output("y" + std::to_string(i));
  for (const OnnxAttribute& attribute : attributes) add_attribute(node, attribute);
  OneNode host(c);
  onnx::OpContext context(host, c.b, *row, node, std::move(inputs), c.b.source(), kNewestOpset);
  return row->read(context);
}

}  // namespace oclc::pt2
