#include "frontends/onnx/inputs.h"

#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <set>

#include "frontends/onnx/dim_expression.h"
#include "frontends/onnx/fail.h"
#include "frontends/onnx/input_elements.h"
#include "frontends/onnx/model/tensors.h"

namespace oclc::onnx {
namespace {

using oclc_onnx::TensorShapeProto;
using oclc_onnx::ValueInfoProto;

// The model's name of a dimension that has no value: its own, or one made from the input's. Marks such as "?" name nothing: two
// of them are two sizes.
std::string name_of_dim(const std::string& input, std::size_t axis, const TensorShapeProto::Dimension& dim) {
  const std::string& name = dim.dim_param();
  const bool says_something = name != "-1" && name != "None" && std::any_of(name.begin(), name.end(), [](char c) {
                                return c < 0 || std::isalnum(static_cast<unsigned char>(c));
                              });
  return says_something ? name : fmt::format("{}_d{}", identifier(input), axis);
}

// What an open size of a tensor of that rank will often be, by its kind: a side of a picture, a length of a sequence. 0: no
// more is known than of any batch.
std::int64_t usual_size(int rank, int axis, std::string_view name) {
  constexpr std::int64_t kPictureSide = 224, kSequenceLength = 128;
  if (axis == 0 || name.find("batch") != name.npos) return 0;
  if (rank >= 4) return axis >= 2 ? kPictureSide : 0;
  return kSequenceLength;
}

[[noreturn]] void unknown_input(const std::string& name, const std::set<std::string>& names) {
  NearestName nearest(name);
  for (const auto& candidate : names) nearest.offer(candidate);
  fail("an input of the model", fmt::format("'{}'", printable(name)), nearest.hint(), ExitCode::usage);
}

}  // namespace

std::string identifier(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = byte < 0x80 && (std::isalnum(byte) || c == '_');
    if (letter) {
      out += c;
    } else if (out.empty() || out.back() != '_') {
      out += '_';
    }
    if (out.size() == 64) break;
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out.front()))) out.insert(0, "d");
  return out;
}

void Inputs::bind(const std::string& name, std::int64_t value, std::int64_t least, const std::string& why) {
  if (value < least || value > options_.limits.dim) {
    fail(fmt::format("a dimension from {} to {} for {}", least, options_.limits.dim, why), std::to_string(value), {},
         ExitCode::usage);
  }
  const auto [at, fresh] = bound_.emplace(name, value);
  if (!fresh && at->second != value) {
    fail(fmt::format("one value of dimension '{}'", printable(name)), fmt::format("{} and {} ({})", at->second, value, why), {},
         ExitCode::usage);
  }
}

std::map<std::string, std::string> Inputs::names() const {
  std::map<std::string, std::string> out;
  for (const Expr& e : symbols_) out[*e.symbol_name()] = taken_.at(*e.symbol_name());
  return out;
}

std::optional<Expr> Inputs::expression(const std::string& input, std::size_t axis, const std::string& param) {
  const auto spelled = dim_expression(param);
  if (!spelled) return std::nullopt;
  const auto open = std::count_if(spelled->names.begin(), spelled->names.end(),
                                  [&](const std::string& name) { return !plain_.count(name) && !bound_.count(name); });
  // Two sizes cannot be found from their sum.
  if (open > 1) return std::nullopt;
  Substitution known;
  for (const std::string& name : spelled->names) known[name] = named(input, axis, name);
  return parse_expr(spelled->text, known);
}

void Inputs::solve_expressions() {
  for (bool found = true; found;) {
    found = false;
    for (const auto& [param, value] : std::map(bound_)) {
      const auto spelled = dim_expression(param);
      if (!spelled) continue;
      std::vector<std::string> open;
      Substitution known;
      for (const std::string& name : spelled->names) {
        const auto at = bound_.find(name);
        known[name] = at == bound_.end() ? Expr::symbol(name) : Expr(at->second);
        if (at == bound_.end()) open.push_back(name);
      }
      const auto e = parse_expr(spelled->text, known);
      if (!e || open.size() > 1) continue;
      std::optional<std::int64_t> solution;
      if (open.empty()) {
        solution = e->is_constant() && e->value() == value ? std::optional(value) : std::nullopt;
      } else if (const auto factor = e->coefficient(open[0]); factor && factor->is_constant() && factor->value() != 0) {
        const Expr rest = *e - *factor * known.at(open[0]);
        if (rest.is_constant() && (value - rest.value()) % factor->value() == 0)
          solution = (value - rest.value()) / factor->value();
      }
      if (!solution)
        fail(fmt::format("a size that dimension '{}' can have", printable(param)), std::to_string(value), {}, ExitCode::usage);
      if (open.empty()) continue;
      bind(open[0], *solution, 0, fmt::format("'{}' = {}", printable(param), value));
      found = true;
    }
  }
}

Expr Inputs::dimension(const std::string& input, std::size_t axis, const std::string& param) {
  if (const auto at = bound_.find(param); at != bound_.end()) return at->second;
  if (const auto e = expression(input, axis, param)) return *e;
  return named(input, axis, param);
}

Expr Inputs::named(const std::string& input, std::size_t axis, const std::string& param) {
  if (const auto at = bound_.find(param); at != bound_.end()) return at->second;
  if (const auto at = by_name_.find(param); at != by_name_.end()) return at->second;
  std::string symbol = identifier(param);
  for (int i = 2; !taken_.emplace(symbol, param).second; ++i) symbol = fmt::format("{}_{}", identifier(param), i);
  const auto bound = bounds_.find(symbol);
  const auto typical = options_.typical.find(param);
  const auto usual = usual_.find(param);
  const std::int64_t likely = typical != options_.typical.end() ? typical->second : usual != usual_.end() ? usual->second : 0;
  const std::int64_t most = bound == bounds_.end() ? kUnbounded : bound->second;
  const Expr made = Expr::symbol(symbol, empty_.count(symbol) != 0 ? 0 : 1, most, std::min(likely, most));
  if (symbol != param && options_.warn && param.find_first_of(" +-*/()") != std::string::npos) {
    options_.warn(fmt::format("{} axis {}: dimension '{}' is the symbol {}", where_of(input), axis, printable(param), symbol));
  }
  symbols_.push_back(made);
  return by_name_.emplace(param, made).first->second;
}

Inputs::Inputs(const oclc_onnx::GraphProto& graph, const ImportOptions& options, const SymbolBounds& bounds,
               const std::set<std::string>& empty)
    : options_(options), bounds_(bounds), empty_(empty) {
  std::deque<ValueInfoProto> made;
  const std::vector<const ValueInfoProto*> inputs = tensors_of(graph, made);
  const GivenShapes shapes = given_shapes(inputs);
  const auto given = [&](const ValueInfoProto& input) {
    const auto at = shapes.find(input.name());
    return at == shapes.end() ? nullptr : &at->second;
  };
  std::set<std::string> dims;
  for (const ValueInfoProto* input : inputs) {
    if (input->type().tensor_type().has_shape()) read_dims(*input, given(*input), dims);
  }
  bind_dims(dims);
  solve_expressions();
  for (const ValueInfoProto* input : inputs) add(*input, given(*input));
}

std::vector<const ValueInfoProto*> Inputs::tensors_of(const oclc_onnx::GraphProto& graph, std::deque<ValueInfoProto>& made) {
  std::set<std::string_view> constants;
  for (const auto& tensor : graph.initializer()) constants.insert(tensor.name());
  std::vector<const ValueInfoProto*> inputs;
  std::set<std::string> names, sequences;
  const auto add = [&](const ValueInfoProto& input) {
    inputs.push_back(&input);
    if (!names.insert(input.name()).second)
      fail("different names of inputs and of the elements of sequences", fmt::format("'{}' twice", printable(input.name())));
  };
  for (const ValueInfoProto& input : graph.input()) {
    if (constants.count(input.name())) continue;  // an initializer gives its value
    if (input.type().has_tensor_type()) {
      add(input);
      continue;
    }
    sequences.insert(input.name());
    Sequence sequence{input.name(), false, inputs.size(), 0};
    for (ValueInfoProto& element : elements_of(input, options_, sequence)) add(made.emplace_back(std::move(element)));
    if (sequence.none || inputs.size() != sequence.first + 1 || inputs.back()->name() != input.name())
      sequences_.push_back(std::move(sequence));
  }
  for (const auto& [name, length] : options_.lengths) {
    if (sequences.count(name)) continue;
    NearestName nearest(name);
    for (const auto& candidate : sequences) nearest.offer(candidate);
    fail("a sequence or an optional among the model's inputs", fmt::format("'{}'", printable(name)), nearest.hint(),
         ExitCode::usage);
  }
  return inputs;
}

Inputs::GivenShapes Inputs::given_shapes(const std::vector<const ValueInfoProto*>& inputs) {
  std::set<std::string> names;
  for (const ValueInfoProto* input : inputs) names.insert(input->name());
  GivenShapes shapes = options_.shapes;
  constants_ = options_.constants;
  for (const ValueInfoProto* input : inputs) {
    if (const auto given = options_.values.find(input->name()); given != options_.values.end())
      constants_[input->name()] = value_of_text(*input, given->second);
  }
  for (const auto& [name, value] : options_.values) {
    if (!names.count(name)) unknown_input(name, names);
  }
  for (const auto& [name, value] : constants_) shapes[name] = value.shape();
  for (const auto& [name, shape] : shapes) {
    if (!names.count(name)) unknown_input(name, names);
  }
  return shapes;
}

void Inputs::read_dims(const ValueInfoProto& input, const std::vector<std::int64_t>* given, std::set<std::string>& dims) {
  const TensorShapeProto& shape = input.type().tensor_type().shape();
  if (given && static_cast<int>(given->size()) != shape.dim_size()) {
    fail(fmt::format("{} dimensions for {}", shape.dim_size(), where_of(input.name())), std::to_string(given->size()), {},
         ExitCode::usage);
  }
  for (int i = 0; i < shape.dim_size(); ++i) {
    const auto axis = static_cast<std::size_t>(i);
    const auto& dim = shape.dim(i);
    if (!is_open(dim) && (dim.dim_value() < 0 || dim.dim_value() > options_.limits.dim)) {
      fail(fmt::format("{} with dimensions from 0 to {}", where_of(input.name()), options_.limits.dim),
           std::to_string(dim.dim_value()));
    }
    if (is_open(dim)) {
      const std::string name = name_of_dim(input.name(), axis, dim);
      dims.insert(name);
      const auto spelled = dim_expression(name);
      if (spelled) dims.insert(spelled->names.begin(), spelled->names.end());
      if (!spelled) plain_.insert(name);
      usual_.emplace(name, usual_size(shape.dim_size(), i, name));
    }
    if (!given) continue;
    const std::int64_t value = (*given)[axis];
    if (is_open(dim)) {
      bind(name_of_dim(input.name(), axis, dim), value, 0, "--shape of " + where_of(input.name()));
    } else if (dim.dim_value() != value) {
      fail(fmt::format("{} in axis {} of {}", dim.dim_value(), i, where_of(input.name())), std::to_string(value), {},
           ExitCode::usage);
    }
  }
}

void Inputs::bind_dims(const std::set<std::string>& dims) {
  const auto check_dim = [&](const std::string& option, const std::string& name) {
    if (!dims.count(name)) {
      fail("a symbolic dimension of the model in " + option, fmt::format("'{}'", printable(name)),
           dims.empty() ? "the model has none" : fmt::format("it has {}", printable(fmt::format("{}", fmt::join(dims, ", ")))),
           ExitCode::usage);
    }
  };
  for (const auto& [name, value] : options_.dims) {
    check_dim("--dim", name);
    bind(name, value, 0, "--dim");
  }
  for (const auto& [name, value] : options_.typical) check_dim("--typical", name);
}

Shape Inputs::shape_of(const ValueInfoProto& input, const std::vector<std::int64_t>* given) {
  const auto& type = input.type().tensor_type();
  Shape shape;
  if (type.has_shape()) {
    if (type.shape().dim_size() > options_.limits.rank) {
      fail(fmt::format("{} of rank at most {}", where_of(input.name()), options_.limits.rank),
           fmt::format("rank {}", type.shape().dim_size()));
    }
    for (int i = 0; i < type.shape().dim_size(); ++i) {
      const auto& dim = type.shape().dim(i);
      const auto axis = static_cast<std::size_t>(i);
      shape.push_back(is_open(dim) ? dimension(input.name(), axis, name_of_dim(input.name(), axis, dim))
                                   : Expr(dim.dim_value()));
    }
  } else if (given) {
    for (const std::int64_t d : *given) {
      if (d < 0 || d > options_.limits.dim)
        fail(fmt::format("dimensions from 0 to {} in --shape", options_.limits.dim), std::to_string(d), {}, ExitCode::usage);
      shape.emplace_back(d);
    }
  } else {
    fail(fmt::format("{} with a shape", where_of(input.name())), "none",
         fmt::format("give it with --shape {}=...", printable(input.name())));
  }
  return shape;
}

void Inputs::add(const ValueInfoProto& input, const std::vector<std::int64_t>* given) {
  const DType dtype = element_type(input.type().tensor_type().elem_type(), where_of(input.name()));
  Shape shape = shape_of(input, given);
  std::int64_t known = 1;
  for (const Expr& d : shape) {
    if (!d.is_constant() || d.value() == 0) continue;
    if (known > options_.limits.elements / d.value()) {
      fail(fmt::format("{} of at most {} elements", where_of(input.name()), options_.limits.elements), text_of(shape));
    }
    known *= d.value();
  }
  const auto value = constants_.find(input.name());
  Input made{input.name(), {dtype, std::move(shape)}, value == constants_.end() ? nullptr : &value->second};
  if (made.value && !(made.value->type() == made.type)) {
    fail(fmt::format("a value of type {} for {}", made.type.text(), where_of(made.name)), made.value->type().text(), {},
         ExitCode::usage);
  }
  inputs_.push_back(std::move(made));
}

std::vector<std::string> contradictions(const ValueInfoProto& declared, const TensorType& found) {
  std::vector<std::string> out;
  const std::string where = fmt::format("output '{}'", printable(declared.name()));
  if (declared.type().value_case() != oclc_onnx::TypeProto::kTensorType) return out;
  const auto& type = declared.type().tensor_type();
  if (type.elem_type() != 0 && element_type(type.elem_type(), where) != found.dtype) {
    out.push_back(fmt::format("{} is declared as {}, but is {}", where, element_type_name(type.elem_type()), found.text()));
  }
  if (!type.has_shape()) return out;
  if (static_cast<std::size_t>(type.shape().dim_size()) != found.rank()) {
    out.push_back(fmt::format("{} is declared with {} dimensions, but is {}", where, type.shape().dim_size(), found.text()));
    return out;
  }
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    const Expr& size = found.shape[static_cast<std::size_t>(i)];
    if (dim.has_dim_value() && size.is_constant() && size.value() != dim.dim_value()) {
      out.push_back(fmt::format("{} is declared with {} in axis {}, but is {}", where, dim.dim_value(), i, found.text()));
    }
  }
  return out;
}

}  // namespace oclc::onnx
