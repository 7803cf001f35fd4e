// Operators that the host computes between launches: types here, the functions in runtime/package/host_ops.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/ops/host_op.h"
#include "compiler/ops/op_list.h"
#include "compiler/ops/reference/evaluate.h"
#include "compiler/ops/shape_rules.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

package::HostValue host_value(DType dtype, std::vector<std::int64_t> shape) {
  package::HostValue value;
  value.dtype = static_cast<plan::DType>(dtype);
  value.shape = std::move(shape);
  if (dtype == DType::string)
    value.texts.resize(value.elements());
  else
    value.data.resize(value.elements() * size_bytes(dtype));
  return value;
}

package::HostValue to_host(const HostTensor& tensor) {
  package::HostValue value = host_value(tensor.dtype(), tensor.shape());
  for (std::size_t i = 0; i < value.texts.size(); ++i) value.texts[i] = tensor.text_at(static_cast<std::int64_t>(i));
  if (!value.data.empty()) std::memcpy(value.data.data(), tensor.data(), value.data.size());
  return value;
}

HostTensor from_host(const package::HostValue& value) {
  HostTensor tensor(static_cast<DType>(value.dtype), value.shape);
  for (std::size_t i = 0; i < value.texts.size(); ++i) tensor.set_text(static_cast<std::int64_t>(i), value.texts[i]);
  if (!value.data.empty()) std::memcpy(tensor.mutable_data(), value.data.data(), value.data.size());
  return tensor;
}

void check(const Node& node) {
  const package::HostOp& op = host_op_of(node);
  if (const std::string problem = package::problem_of(op, host_settings_of(node)); !problem.empty())
    reject("settings that the operator knows", problem);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const TensorType& type = type_of_input(node, i);
    if (!package::accepts(op.inputs[i], static_cast<plan::DType>(type.dtype)))
      reject(op.inputs[i] == 's' ? "strings" : "numbers", type.text());
  }
}

std::vector<TensorType> infer_number_to_string(const Node& node) {
  check(node);
  return {{DType::string, type_of_input(node, 0).shape}};
}

std::vector<TensorType> infer_string_to_number(const Node& node) {
  check(node);
  const DType dtype = node.get<DType>("dtype");
  if (dtype == DType::string) reject("a type of numbers", "string");
  return {{dtype, type_of_input(node, 0).shape}};
}

// One empty text stands for none.
std::vector<TensorType> infer_string_normalize(const Node& node) {
  check(node);
  return {{DType::string, {max(type_of_input(node, 0).elements(), Expr(1))}}, {DType::i64, {Expr(1)}}};
}

std::vector<TensorType> infer_string_concat(const Node& node) {
  check(node);
  return {{DType::string, broadcast(type_of_input(node, 0).shape, type_of_input(node, 1).shape)}};
}

std::vector<TensorType> infer_string_split(const Node& node) {
  check(node);
  const std::int64_t parts = node.get<std::int64_t>("parts");
  if (parts < 1) reject("room for 1 part or more", std::to_string(parts));
  const Shape& shape = type_of_input(node, 0).shape;
  Shape cut = shape;
  cut.emplace_back(parts);
  return {{DType::string, std::move(cut)}, {DType::i64, shape}, {DType::i64, {Expr(1)}}};
}

std::vector<TensorType> infer_regex_full_match(const Node& node) {
  check(node);
  return {{DType::boolean, type_of_input(node, 0).shape}};
}

void check_rank(const TensorType& type, std::size_t rank) {
  if (type.rank() != rank) reject(fmt::format("an operand of rank {}", rank), type.text());
}

std::vector<TensorType> infer_top_places(const Node& node) {
  check(node);
  Shape shape = type_of_input(node, 0).shape;
  const auto& k = node.get<std::vector<Expr>>("k");
  if (shape.empty() || k.size() != 1) reject("rows, and one number of places", type_of_input(node, 0).text());
  shape.back() = k[0];
  return {{DType::i64, std::move(shape)}};
}

std::vector<TensorType> infer_unique_rows(const Node& node) {
  check(node);
  check_rank(type_of_input(node, 0), 2);
  const TensorType each{DType::i64, {type_of_input(node, 0).shape[0]}};
  return {each, each, each, {DType::i64, {Expr(1)}}};
}

std::vector<TensorType> infer_positions(const Node& node) {
  check(node);
  return {{DType::i64, {type_of_input(node, 0).elements()}}, {DType::i64, {Expr(1)}}};
}

std::vector<TensorType> infer_scatter_rows(const Node& node) {
  check(node);
  const TensorType &data = type_of_input(node, 0), &rows = type_of_input(node, 1), &updates = type_of_input(node, 2);
  check_rank(data, 2);
  check_rank(updates, 2);
  if (data.dtype != updates.dtype || !(data.shape[1] == updates.shape[1]) || !(rows.elements() == updates.shape[0]))
    reject("updates of the type and size of rows, and a row for each",
           fmt::format("{}, {} and {}", data.text(), rows.text(), updates.text()));
  return {data};
}

std::vector<TensorType> infer_choose_boxes(const Node& node) {
  check(node);
  const auto& room = node.get<std::vector<Expr>>("room");
  if (room.size() != 1) reject("room for a number of boxes", fmt::format("{} numbers", room.size()));
  return {{DType::i64, {room[0], Expr(3)}}, {DType::i64, {Expr(1)}}};
}

void check_file(const TensorType& type) {
  if (type.dtype != DType::u8 || type.rank() != 1) reject("the bytes of a file as u8[n]", type.text());
}

std::vector<TensorType> infer_image_size(const Node& node) {
  check(node);
  check_file(type_of_input(node, 0));
  return {{DType::i64, {Expr(2)}}};
}

std::vector<TensorType> infer_decode_image(const Node& node) {
  check(node);
  check_file(type_of_input(node, 0));
  const auto& size = node.get<std::vector<Expr>>("size");
  if (size.size() != 2) reject("height and width", fmt::format("{} numbers", size.size()));
  return {{DType::u8, {size[0], size[1], Expr(node.get<std::int64_t>("pixel_format") == 2 ? 1 : 3)}}};
}

std::vector<HostTensor> eval_host(const Node& node, std::span<const HostTensor> inputs, const SymbolValues& symbols) {
  std::vector<package::HostValue> operands, results;
  for (const HostTensor& input : inputs) operands.push_back(to_host(input));
  for (const auto& output : node.outputs)
    results.push_back(host_value(output->type.dtype, bind_shape(output->type.shape, symbols)));
  try {
    host_op_of(node).run(host_settings_of(node), operands, results);
  } catch (const package::HostOpError& error) {
    throw CompileError({.wanted = error.what()});
  }
  std::vector<HostTensor> out;
  for (const package::HostValue& result : results) out.push_back(from_host(result));
  return out;
}

struct HostRow {
  std::string_view name;
  std::vector<TensorType> (*infer)(const Node& node);
};

constexpr HostRow kHostRows[] = {
    {"choose_boxes", infer_choose_boxes},
    {"decode_image", infer_decode_image},
    {"image_size", infer_image_size},
    {"number_to_string", infer_number_to_string},
    {"positions", infer_positions},
    {"regex_full_match", infer_regex_full_match},
    {"scatter_rows", infer_scatter_rows},
    {"string_concat", infer_string_concat},
    {"string_normalize", infer_string_normalize},
    {"string_split", infer_string_split},
    {"string_to_number", infer_string_to_number},
    {"top_places", infer_top_places},
    {"unique_rows", infer_unique_rows},
};

std::vector<OpDef> make_ops() {
  std::vector<OpDef> ops;
  for (const HostRow& row : kHostRows) {
    const package::HostOp* host = package::find_host_op(row.name);
    OCLC_CHECK(host, "operator of the host " + std::string(row.name));
    OpDef& def = ops.emplace_back();
    def.name = row.name;
    def.kind = OpKind::host;
    def.formula = host->formula;
    def.min_inputs = def.max_inputs = static_cast<int>(host->inputs.size());
    def.infer = row.infer;
    def.eval = eval_host;
    def.cost = no_cost;
  }
  OCLC_CHECK(ops.size() == package::host_ops().size(), "every operator of the host has a rule for its types");
  return ops;
}

}  // namespace

const package::HostOp& host_op_of(const Node& node) { return *package::find_host_op(node.op->name); }

package::HostSettings host_settings_of(const Node& node) {
  const package::HostOp& op = host_op_of(node);
  package::HostSettings settings;
  for (std::string_view names = op.integers; !names.empty();) {
    const std::size_t end = std::min(names.find(' '), names.size());
    settings.integers.push_back(node.get<std::int64_t>(names.substr(0, end)));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  if (!op.texts.empty()) settings.texts = node.get<std::vector<std::string>>(op.texts);
  return settings;
}

std::span<const OpDef> host_ops() {
  static const std::vector<OpDef> ops = make_ops();
  return ops;
}

}  // namespace oclc
