#include "compiler/codegen/attention/attention_parts.h"

#include <fmt/format.h>

namespace oclc {

AttentionParts::AttentionParts(const std::string& name, const Step& step, const Schedule& schedule, const Target& target)
    : name_(name), schedule_(schedule), target_(target), scores_(kernel(step.body()[0])), product_(kernel(step.body()[2])) {
  for (const Step& part : step.body()) take(kernel(part));
  name_operands(scores_, scores_.stores[0].operand);
  name_operands(product_, product_.nodes[static_cast<std::size_t>(product_.contraction->a)].operand);
  for (const SeveralKernels::Argument& b : out_.buffers) {
    const Buffer& buffer = schedule_.buffers[static_cast<std::size_t>(b.buffer)];
    out_.bytes += buffer.elements * Expr(static_cast<std::int64_t>(size_bytes(buffer.dtype)));
  }
}

void AttentionParts::take(const Kernel& kernel) {
  add_sources(out_.sources, kernel.sources);
  out_.flops += kernel.flops;
  for (const std::string& s : kernel.model_symbols()) symbols_.insert(s);
}

void AttentionParts::name_operands(Kernel& kernel, int left_out) {
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    if (static_cast<int>(i) != left_out) kernel.operands[i].name = fmt::format("b{}", out_.argument(kernel.operands[i]));
  }
}

void AttentionParts::fill_sizes(const ContractionView& scores, const ContractionView& product) {
  TemplateValues sizes;
  scores.fill_sizes(sizes);
  values_.holes["SIZES"] = sizes.holes["SIZES"];
  auto& p = values_.parameters;
  p["G"] = sizes.parameters["G"];
  p["ROWS"] = sizes.parameters["M"];
  p["KEYS"] = sizes.parameters["N"];
  p["DEPTH"] = sizes.parameters["K"];
  p["COLUMNS"] = std::to_string(product.columns().value());
}

std::string AttentionParts::within(const ContractionView& view, const std::string& lines) {
  TemplateValues sizes;
  view.fill_sizes(sizes);
  std::string out = "{\n" + sizes.holes["SIZES"];
  for (const char* size : {"M", "N", "K"}) out += fmt::format("const int {} = {};\n", size, sizes.parameters[size]);
  out += "const int tap = 0;\n";
  for (const std::string& line : view.group_coordinates()) out += line + "\n";
  return out + lines + "}\n";
}

void AttentionParts::describe(const Expr& groups, int items, const std::string& schedule) {
  GeneratedKernel& g = out_.kernel;
  g.name = name_;
  g.groups = {groups};
  g.local = {static_cast<std::uint32_t>(items)};
  g.schedule = schedule;
  g.head = fmt::format("// {}: {}, softmax, {}\n// launch    {} groups of {}; {}\n", name_, scores_.formula, product_.formula,
                       groups.text(), items, schedule);
  out_.add_arguments(symbols_);
}

std::string AttentionParts::tile_text(std::string_view name) const {
  std::string parameters;
  for (std::size_t i = 0; i < out_.buffers.size(); ++i) parameters += out_.pointer(i, schedule_) + ", ";
  for (const std::string& s : symbols_) parameters += fmt::format("const long dim_{}, ", s);
  return fmt::format("void {}_tile({}const int tile, __local float* restrict space) {{\n{}}}\n\n", name_, parameters,
                     expand_tile_body(name, values_));
}

std::string AttentionParts::kernel_text(std::string_view name) const {
  std::vector<std::string> parameters, arguments;
  for (std::size_t i = 0; i < out_.buffers.size(); ++i) {
    parameters.push_back(fmt::format("{}, const long b{}_at", out_.pointer(i, schedule_), i));
    arguments.push_back(fmt::format("b{0} + b{0}_at", i));
  }
  for (const std::string& s : symbols_) {
    parameters.push_back(fmt::format("const long dim_{}", s));
    arguments.push_back(fmt::format("dim_{}", s));
  }
  return fmt::format(
      "__attribute__((reqd_work_group_size({1}, 1, 1)))\n__kernel void {0}({2}) {{\n"
      "  __local float space[{3}] __attribute__((aligned(16)));\n  {0}_tile({4}, (int)get_group_id(0), space);\n}}\n",
      name_, out_.kernel.local[0], fmt::join(parameters, ", "), expand_macro(name, "SPACE", values_),
      fmt::join(arguments, ", "));
}

}  // namespace oclc
