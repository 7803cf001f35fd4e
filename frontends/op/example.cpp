#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "frontends/op/custom_op.h"

namespace oclc::custom {
namespace {

// 1, primes, and one more than usual tiles.
constexpr std::int64_t kSizes[] = {1, 2, 3, 5, 7, 13, 17, 33};
constexpr std::int64_t kMembers = 3;  // most operands of variable number
constexpr std::size_t kLeading = 2;   // most dimensions as "..."

Attributes required_attributes(const CustomOp& op) {
  Attributes attributes;
  for (const AttributeRow& row : op.attributes) {
    Attribute value = row.value;
    if (row.required && std::holds_alternative<double>(value)) value = 1.0;
    if (row.required && std::holds_alternative<std::int64_t>(value)) value = std::int64_t{1};
    if (row.required && std::holds_alternative<std::vector<double>>(value)) value = std::vector<double>{1.0};
    if (row.required && std::holds_alternative<Ints>(value)) value = Ints{1};
    attributes.emplace(row.name, std::move(value));
  }
  return attributes;
}

}  // namespace

void add_example(Graph& graph, const CustomOp& op, DType dtype, unsigned seed, const std::string& suffix, std::string& sizes,
                 Build form) {
  std::mt19937 random(seed + 1);
  // Seed 0 has the sizes of 1.
  const auto draw = [&]() -> std::int64_t { return seed == 0 ? 1 : kSizes[random() % std::size(kSizes)]; };
  const Attributes attributes = required_attributes(op);
  Substitution dims;
  for (const Operand& operand : op.in) {
    for (const Formula& dim : operand.dims) {
      if (dim.form == Form::name && !op.attribute(dim.name) && !dims.count(dim.name)) dims.emplace(dim.name, draw());
    }
  }
  Shape leading;
  for (std::size_t rank = random() % (kLeading + 1); leading.size() < rank;) leading.emplace_back(draw());
  Builder builder(graph, op.name + suffix);
  std::vector<Value*> inputs;
  sizes.clear();
  for (const auto& [name, dim] : dims) sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", name, dim.text());
  if (!leading.empty()) sizes += fmt::format("{}... = {}", sizes.empty() ? "" : ", ", oclc::text_of(leading));
  for (const Operand& operand : op.in) {
    if (operand.optional && seed % 2 == 1) {
      inputs.push_back(nullptr);
      continue;
    }
    DType type = dtype_of(operand.type).value_or(dtype);
    if (const auto choice = op.types.find(operand.type); choice != op.types.end()) {
      const std::vector<DType>& legal = choice->second;
      if (std::find(legal.begin(), legal.end(), type) == legal.end()) type = legal.front();
    }
    Shape shape = operand.leading ? leading : Shape();
    for (const Formula& dim : operand.dims) shape.push_back(size_of(op, dim, dims, attributes));
    const std::int64_t count = operand.variable ? 1 + static_cast<std::int64_t>(random() % kMembers) : 1;
    for (std::int64_t i = 0; i < count; ++i)
      inputs.push_back(
          graph.add_input((operand.variable ? fmt::format("{}{}", operand.name, i) : operand.name) + suffix, {type, shape}));
  }
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  const std::vector<Value*> results = build(builder, op, inputs, attributes, form);
  for (std::size_t i = 0; i < results.size(); ++i)
    graph.add_output((i < op.out.size() ? op.out[i].name : std::string(kOutside)) + suffix, results[i]);
  graph.erase_dead();
}

std::unique_ptr<Graph> example(const CustomOp& op, DType dtype, unsigned seed, std::string& sizes, Build form) {
  auto graph = std::make_unique<Graph>();
  add_example(*graph, op, dtype, seed, "", sizes, form);
  return graph;
}

}  // namespace oclc::custom
