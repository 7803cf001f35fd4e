// What the reader of one ONNX operator works with: the node's inputs as values, its attributes with types, and the builder.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ops/builder.h"
#include "frontends/onnx/fail.h"

namespace oclc_onnx {
class AttributeProto;
class NodeProto;
class TensorProto;
}  // namespace oclc_onnx

namespace oclc::onnx {

class OpContext;

// One value per output of the node; trailing ones may be missing, and null stands for an output that is not supported.
using Outputs = std::vector<Value*>;

// How an operator is read from opset `since` on, until a row with a later one.
struct OpRow {
  std::string_view op;
  int since = 1;
  int min_inputs = 1, max_inputs = 1;
  Outputs (*read)(OpContext&) = nullptr;
  std::string_view core = {};  // for readers shared by several operators: the core operator, or a variant
  bool bundles = false;        // inputs may be sequences and optionals
};

inline constexpr int kAnyNumber = INT32_MAX;

// What the importer knows under one name that is no tensor: a sequence, or an optional without content. A Value stands for it
// that is in no graph and has no type. An optional with content is its content.
struct Bundle {
  bool none = false;
  std::vector<Value*> items{};
};

// What a context needs of the importer.
class OpHost {
 public:
  virtual ~OpHost() = default;
  // The attribute after resolving references to the calling function's attributes; null if absent.
  virtual const oclc_onnx::AttributeProto* attribute(const oclc_onnx::NodeProto& node, std::string_view name) = 0;
  virtual const HostTensor& tensor(const oclc_onnx::TensorProto& tensor) = 0;
  // The value if it is known when compiling.
  virtual std::optional<HostTensor> known(const Value* value) = 0;
  virtual void warn(const std::string& text) = 0;
  // The graph will be trained, see ImportOptions.
  virtual bool training() const = 0;
  // Notes that the model may make sense only if `symbol` is at most `bound`; used if it cannot be read otherwise.
  virtual void suggest_bound(const std::string& symbol, std::int64_t bound, const std::string& why) = 0;
  // Nodes that the reading has made beyond those of the file, `more` of them now.
  virtual std::int64_t count_made(std::int64_t more) = 0;
  // Null if the value is a tensor.
  virtual const Bundle* bundle(const Value* value) const = 0;
  virtual Value* make_bundle(Bundle bundle) = 0;
};

class OpContext {
 public:
  OpContext(OpHost& host, Builder& builder, const OpRow& row, const oclc_onnx::NodeProto& node, std::vector<Value*> inputs,
            std::string label, std::int64_t opset)
      : b(builder), host_(host), row_(row), node_(node), inputs_(std::move(inputs)), label_(std::move(label)), opset_(opset) {}

  Builder& b;

  std::string_view core() const { return row_.core; }
  std::int64_t opset() const { return opset_; }
  const std::string& label() const { return label_; }
  int outputs() const;                 // how many the node names
  bool wants_output(int index) const;  // named and not empty

  // Inputs. `input` throws if it is absent; `optional_input` gives null.
  std::size_t inputs() const { return inputs_.size(); }
  Value* input(std::size_t i) const;
  Value* optional_input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  void drop_last_input() { inputs_.pop_back(); }
  // For readers that hand on to that of another operator.
  void set_input(std::size_t i, Value* value) { inputs_.at(i) = value; }
  const Shape& shape(std::size_t i) const { return input(i)->type.shape; }
  std::size_t rank(std::size_t i) const { return input(i)->type.rank(); }

  // Sequences and optionals.
  const std::vector<Value*>& sequence(std::size_t i) const;  // an error if input `i` is none
  bool is_bundle(const Value* value) const { return host_.bundle(value) != nullptr; }
  bool is_none(const Value* value) const { return is_bundle(value) && host_.bundle(value)->none; }
  Value* make_sequence(std::vector<Value*> items) const {
    count_made(static_cast<std::int64_t>(items.size()) / 16);  // lists that grow are copied each time
    return host_.make_bundle({false, std::move(items)});
  }
  Value* make_none() { return host_.make_bundle({true}); }
  // Counts nodes that the model does not have: of bodies, each time they are read, and for elements of sequences. An error if
  // they are too many.
  void count_made(std::int64_t nodes) const;
  // An error if an input is a sequence or an empty optional.
  void require_tensors() const;
  // An error if an input is a tensor of strings.
  void require_numbers() const;

  // Attributes. An attribute of another type than asked for is an error; so is a missing one without a default.
  bool has(std::string_view name);
  std::int64_t integer(std::string_view name, std::optional<std::int64_t> otherwise = std::nullopt);
  bool flag(std::string_view name, bool otherwise = false) { return integer(name, otherwise ? 1 : 0) != 0; }
  double real(std::string_view name, std::optional<double> otherwise = std::nullopt);
  std::string text(std::string_view name, std::optional<std::string> otherwise = std::nullopt);
  Ints integers(std::string_view name, std::optional<Ints> otherwise = std::nullopt);
  std::vector<double> reals(std::string_view name, std::optional<std::vector<double>> otherwise = std::nullopt);
  std::vector<std::string> texts(std::string_view name, std::optional<std::vector<std::string>> otherwise = std::nullopt);
  const HostTensor& tensor(std::string_view name);
  DType dtype(std::string_view name, std::optional<DType> otherwise = std::nullopt);
  // Attributes that mean nothing here.
  void ignore(std::initializer_list<std::string_view> names) { known_.insert(names.begin(), names.end()); }
  // An error if an attribute of the node was neither read nor ignored and holds more than a zero or an empty list: what it
  // asks for would not be done.
  void refuse_unread() const;

  // Elements of an integer input as expressions of the symbols; an error if they depend on the model's data.
  std::vector<Expr> content(std::size_t i, std::string_view what) const;
  // The same, of each element by itself: none where it depends on the model's data.
  std::vector<std::optional<Expr>> parts(std::size_t i, std::string_view what) const;
  // Elements of an integer input as sizes: those that depend on the model's data are read when the plan runs.
  std::vector<Expr> sizes(std::size_t i, std::string_view what);
  // `values`, a small integer vector, as sizes that are read when the plan runs, but where an element is `known`. The plan
  // refuses to run on where one of those read is negative.
  std::vector<Expr> read_sizes(Value* values, const std::vector<std::optional<Expr>>& known);
  // The same where they must be numbers.
  Ints numbers(std::size_t i, std::string_view what) const;
  // The elements of a floating-point or integer input known when compiling.
  std::vector<double> reals_of(std::size_t i, std::string_view what) const;
  // Input `i` if it is known when compiling.
  std::optional<HostTensor> known(std::size_t i) const { return host_.known(input(i)); }
  // The value, if it is.
  std::optional<HostTensor> known_value(const Value* value) const { return host_.known(value); }
  // A one-element floating-point or integer input known when compiling.
  double number(std::size_t i, std::string_view what) const;

  // Axis `axis` of a tensor with `rank` axes, negative ones counted from the end.
  std::size_t axis(std::int64_t axis, std::size_t rank) const;
  // The attribute `axis` for input 0.
  std::size_t axis_attribute(std::optional<std::int64_t> otherwise = std::nullopt) {
    return axis(integer("axis", otherwise), rank(0));
  }
  std::vector<std::int64_t> axes(const Ints& axes, std::size_t rank) const;  // sorted, each once

  [[noreturn]] void fail(std::string wanted, std::string found, std::string advice = {},
                         ExitCode code = ExitCode::bad_model) const;
  [[noreturn]] void unsupported(std::string wanted, std::string found, std::string advice = {}) const {
    fail(std::move(wanted), std::move(found), std::move(advice), ExitCode::unsupported);
  }
  void warn(const std::string& text) const;
  bool training() const { return host_.training(); }
  void suggest_bound(const std::string& symbol, std::int64_t bound, const std::string& why) {
    host_.suggest_bound(symbol, bound, why);
  }

 private:
  const oclc_onnx::AttributeProto* find(std::string_view name, int type);
  [[noreturn]] void missing(std::string_view name) const;
  [[noreturn]] void not_known(std::size_t i, std::string_view what) const;

  OpHost& host_;
  const OpRow& row_;
  const oclc_onnx::NodeProto& node_;
  std::vector<Value*> inputs_;
  std::string label_;
  std::int64_t opset_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace oclc::onnx
