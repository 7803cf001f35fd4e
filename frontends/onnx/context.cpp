#include "frontends/onnx/context.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <algorithm>
#include <functional>

#include "compiler/ops/shape_rules.h"
#include "frontends/onnx/attributes.h"
#include "frontends/onnx/model/model.h"
#include "frontends/onnx/model/tensors.h"

namespace oclc::onnx {

namespace {

constexpr int kDeepest = 100;  // nodes one above the other
// What bodies become that are read for each trip, and elements of sequences: 2 kB each. A hundred times what networks have
// whose loops are unrolled.
constexpr std::int64_t kMostMade = 100'000;
constexpr std::int64_t kMostNumbers = 1 << 16;  // of an operand that says sizes, positions or axes

}  // namespace

using oclc_onnx::AttributeProto;

int OpContext::outputs() const { return node_.output_size(); }

bool OpContext::wants_output(int index) const { return index < node_.output_size() && !node_.output(index).empty(); }

void OpContext::fail(std::string wanted, std::string found, std::string advice, ExitCode code) const {
  throw CompileError({.stage = "import",
                      .node = printable(label_),
                      .op = printable(op_label(node_)),
                      .wanted = std::move(wanted),
                      .found = std::move(found),
                      .advice = std::move(advice),
                      .exit_code = code});
}

void OpContext::warn(const std::string& text) const {
  host_.warn(fmt::format("node '{}' ({}): {}", printable(label_), printable(op_label(node_)), text));
}

Value* OpContext::input(std::size_t i) const {
  Value* value = optional_input(i);
  if (!value) fail(fmt::format("input {}", i), "none");
  return value;
}

const std::vector<Value*>& OpContext::sequence(std::size_t i) const {
  const Bundle* bundle = host_.bundle(input(i));
  if (!bundle || bundle->none)
    fail(fmt::format("a sequence as input {}", i), bundle ? "an empty optional" : input(i)->type.text());
  return bundle->items;
}

void OpContext::count_made(std::int64_t nodes) const {
  const std::int64_t made = host_.count_made(std::min(nodes, kMostMade + 1));
  if (made > kMostMade)
    unsupported(fmt::format("at most {} nodes from sequences and from loops that are unrolled", kMostMade), "more",
                "the model needs shorter sequences or fewer trips");
}

void OpContext::require_numbers() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Value* value = inputs_[i];
    if (value && !host_.bundle(value) && value->type.dtype == DType::string)
      unsupported(fmt::format("numbers as input {}", i), value->type.text(),
                  "strings may be moved, compared, split, joined, matched and cast");
  }
}

void OpContext::require_tensors() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Bundle* bundle = inputs_[i] ? host_.bundle(inputs_[i]) : nullptr;
    if (bundle) fail(fmt::format("a tensor as input {}", i), bundle->none ? "an empty optional" : "a sequence");
  }
}

const AttributeProto* OpContext::find(std::string_view name, int type) {
  known_.emplace(name);
  const AttributeProto* attribute = host_.attribute(node_, name);
  if (attribute && type != AttributeProto::UNDEFINED && attribute_type(*attribute) != type) {
    fail(fmt::format("attribute '{}' as {}", name, attribute_type_name(type)),
         std::string(attribute_type_name(attribute_type(*attribute))));
  }
  return attribute;
}

void OpContext::missing(std::string_view name) const { fail(fmt::format("attribute '{}'", name), "none"); }

bool OpContext::has(std::string_view name) { return find(name, AttributeProto::UNDEFINED) != nullptr; }

std::int64_t OpContext::integer(std::string_view name, std::optional<std::int64_t> otherwise) {
  if (const auto* a = find(name, AttributeProto::INT)) return a->i();
  if (!otherwise) missing(name);
  return *otherwise;
}

double OpContext::real(std::string_view name, std::optional<double> otherwise) {
  if (const auto* a = find(name, AttributeProto::FLOAT)) return static_cast<double>(a->f());
  if (!otherwise) missing(name);
  return *otherwise;
}

std::string OpContext::text(std::string_view name, std::optional<std::string> otherwise) {
  if (const auto* a = find(name, AttributeProto::STRING)) return a->s();
  if (!otherwise) missing(name);
  return *otherwise;
}

Ints OpContext::integers(std::string_view name, std::optional<Ints> otherwise) {
  if (const auto* a = find(name, AttributeProto::INTS)) return Ints(a->ints().begin(), a->ints().end());
  if (!otherwise) missing(name);
  return *otherwise;
}

std::vector<double> OpContext::reals(std::string_view name, std::optional<std::vector<double>> otherwise) {
  if (const auto* a = find(name, AttributeProto::FLOATS)) return std::vector<double>(a->floats().begin(), a->floats().end());
  if (!otherwise) missing(name);
  return *otherwise;
}

std::vector<std::string> OpContext::texts(std::string_view name, std::optional<std::vector<std::string>> otherwise) {
  if (const auto* a = find(name, AttributeProto::STRINGS))
    return std::vector<std::string>(a->strings().begin(), a->strings().end());
  if (!otherwise) missing(name);
  return *otherwise;
}

const HostTensor& OpContext::tensor(std::string_view name) {
  const auto* a = find(name, AttributeProto::TENSOR);
  if (!a) missing(name);
  return host_.tensor(a->t());
}

DType OpContext::dtype(std::string_view name, std::optional<DType> otherwise) {
  const auto* a = find(name, AttributeProto::INT);
  if (!a && otherwise) return *otherwise;
  if (!a) missing(name);
  if (a->i() < 0 || a->i() > INT32_MAX) fail(fmt::format("attribute '{}' as an element type", name), std::to_string(a->i()));
  try {
    return element_type(static_cast<std::int32_t>(a->i()), fmt::format("attribute '{}'", name));
  } catch (const CompileError& error) {
    fail(error.parts().wanted, error.parts().found, error.parts().advice, error.parts().exit_code);
  }
}

void OpContext::refuse_unread() const {
  for (const AttributeProto& attribute : node_.attribute()) {
    if (known_.count(attribute.name())) continue;
    const AttributeProto* given = host_.attribute(node_, attribute.name());
    if (!given || is_zero(*given)) continue;
    unsupported(fmt::format("attributes that opset {} of the operator has", opset_),
                fmt::format("'{}'", printable(attribute.name())), "the model needs a newer operator, or the attribute removed");
  }
}

void OpContext::not_known(std::size_t i, std::string_view what) const {
  const Value* value = input(i);
  unsupported(fmt::format("{} known when compiling", what),
              fmt::format("values computed from the model's data ('{}', {})", printable(value->name), value->type.text()),
              "run the model through a constant-folding simplifier, or give the sizes with --shape or --dim");
}

std::vector<Expr> OpContext::content(std::size_t i, std::string_view what) const {
  const Value* value = input(i);
  if (is_float(value->type.dtype) || value->type.dtype == DType::string)
    fail(fmt::format("integers as {}", what), value->type.text());
  if (value->content) return *value->content;
  const auto tensor = host_.known(value);
  if (!tensor) not_known(i, what);
  std::vector<Expr> values;
  for (std::int64_t k = 0; k < tensor->elements(); ++k) values.emplace_back(tensor->int_at(k));
  return values;
}

std::vector<std::optional<Expr>> OpContext::parts(std::size_t i, std::string_view what) const {
  const Value* value = input(i);
  if (is_float(value->type.dtype) || value->type.dtype == DType::string)
    fail(fmt::format("integers as {}", what), value->type.text());
  if (!value->type.is_static() || value->type.rank() > 1) not_known(i, what);
  if (value->type.elements().value() > kMostNumbers)
    unsupported(fmt::format("at most {} numbers as {}", kMostNumbers, what), value->type.text());
  const std::function<std::vector<std::optional<Expr>>(const Value*, int)> look = [&](const Value* v, int depth) {
    std::vector<std::optional<Expr>> list;
    if (v->content) {
      list.assign(v->content->begin(), v->content->end());
    } else if (const auto tensor = host_.known(v)) {
      for (std::int64_t k = 0; k < tensor->elements(); ++k) list.emplace_back(tensor->int_at(k));
    } else if (v->producer && v->producer->op->name == "concat" && depth < kDeepest) {
      for (const Value* part : v->producer->inputs) {
        const auto own = look(part, depth + 1);
        list.insert(list.end(), own.begin(), own.end());
      }
    } else if (v->producer && (v->producer->op->name == "reshape" || v->producer->op->name == "cast") && depth < kDeepest) {
      list = look(v->producer->inputs[0], depth + 1);
    } else {
      list.resize(static_cast<std::size_t>(v->type.elements().value()));
    }
    return list;
  };
  return look(value, 0);
}

std::vector<Expr> OpContext::sizes(std::size_t i, std::string_view what) {
  const auto known = parts(i, what);
  return read_sizes(input(i), known);
}

std::vector<Expr> OpContext::read_sizes(Value* values, const std::vector<std::optional<Expr>>& known) {
  std::vector<Expr> all;
  if (std::all_of(known.begin(), known.end(), [](const auto& e) { return e.has_value(); })) {
    for (const auto& e : known) all.push_back(*e);
    return all;
  }
  const auto count = static_cast<std::int64_t>(known.size());
  Value* vector = b.reshape(b.cast(values, DType::i64), {Expr(count)});
  // What is known may mean something else than a size: -1, for one.
  std::vector<Value*> wanted;
  for (std::size_t k = 0; k < known.size(); ++k)
    if (!known[k]) wanted.push_back(b.slice_axis(vector, 0, Expr(static_cast<std::int64_t>(k)), Expr(1)));
  const auto read = b.read_dims(wanted.size() == known.size() ? vector
                                : wanted.size() == 1          ? wanted[0]
                                                              : b.concat(wanted, 0),
                                "size", std::vector<Expr>(wanted.size(), Expr(kOpenDim)));
  std::size_t next = 0;
  for (const auto& e : known) all.push_back(e ? *e : read[next++]);
  return all;
}

Ints OpContext::numbers(std::size_t i, std::string_view what) const {
  Ints values;
  for (const Expr& e : content(i, what)) {
    if (!e.is_constant()) unsupported(fmt::format("{} as numbers", what), e.text(), "give the sizes with --dim");
    values.push_back(e.value());
  }
  return values;
}

std::vector<double> OpContext::reals_of(std::size_t i, std::string_view what) const {
  const auto tensor = host_.known(input(i));
  if (!tensor) not_known(i, what);
  std::vector<double> values;
  for (std::int64_t k = 0; k < tensor->elements(); ++k) values.push_back(tensor->at(k));
  return values;
}

double OpContext::number(std::size_t i, std::string_view what) const {
  const auto tensor = host_.known(input(i));
  if (!tensor) not_known(i, what);
  if (tensor->elements() != 1) fail(fmt::format("one number as {}", what), tensor->type().text());
  return tensor->at(0);
}

std::size_t OpContext::axis(std::int64_t axis, std::size_t rank) const {
  try {
    return static_cast<std::size_t>(normalise_axis(axis, rank));
  } catch (const CompileError& error) {
    fail(error.parts().wanted, error.parts().found);
  }
}

std::vector<std::int64_t> OpContext::axes(const Ints& axes, std::size_t rank) const {
  try {
    return normalise_axes(axes, rank);
  } catch (const CompileError& error) {
    fail(error.parts().wanted, error.parts().found);
  }
}

}  // namespace oclc::onnx
