#include "compiler/codegen/text/kernel_text.h"

#include <fmt/format.h>

#include "compiler/codegen/text/scope.h"

namespace oclc {
namespace {

std::string flat_axes(const std::vector<Axis>& axes) {
  std::vector<std::string> parts;
  for (const Axis& a : axes) parts.push_back(fmt::format("{}<{}", a.name, a.extent.text()));
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace

// Names of the model's nodes may hold anything; in a comment they must not end it.
std::string comment_safe(std::string_view name) {
  std::string safe;
  for (const char c : name.substr(0, 80)) safe += (c < ' ' || c > '~' || c == '\\') ? '?' : c;
  return safe;
}

std::string kernel_head(const Kernel& kernel, const GeneratedKernel& generated) {
  std::string sources;
  for (std::size_t i = 0; i < kernel.sources.size() && i < 6; ++i) sources += (i ? ", " : "") + comment_safe(kernel.sources[i]);
  if (kernel.sources.size() > 6) sources += fmt::format(" and {} more", kernel.sources.size() - 6);
  std::string head = fmt::format("// {}: {}\n// nodes     {}\n", kernel.name, kernel.formula, sources);
  for (const Operand& o : kernel.operands) head += fmt::format("// {:10}{}\n", o.name, comment_safe(o.value));
  head += fmt::format("// axes      {}", flat_axes(kernel.axes));
  if (!kernel.reduction.empty()) head += fmt::format("; sums over {}", flat_axes(kernel.reduction));
  head += fmt::format("\n// cost      {} flops, {} bytes\n", kernel.flops.text(), kernel.bytes.text());
  head += fmt::format("// launch    {} groups of {}; {}\n", generated.groups.empty() ? "?" : product(generated.groups).text(),
                      generated.local.empty() ? 0u : generated.local[0], generated.schedule);
  return head;
}

std::string parameter_list(const Kernel& kernel, bool with_offsets) {
  std::vector<std::string> parts;
  for (const Operand& o : kernel.operands) {
    if (o.replaced) continue;
    parts.push_back(fmt::format("__global {}{}* {}", o.written ? "" : "const ", c_type(o.dtype), o.name));
    if (with_offsets) parts.push_back(fmt::format("const long {}_at", o.name));
  }
  for (const std::string& s : kernel.model_symbols()) parts.push_back(fmt::format("const long dim_{}", s));
  for (const std::string& number : kernel.numbers) parts.push_back("const float " + number);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string argument_list(const Kernel& kernel) {
  std::vector<std::string> parts;
  for (const Operand& o : kernel.operands) {
    if (!o.replaced) parts.push_back(fmt::format("{0} + {0}_at", o.name));
  }
  for (const std::string& s : kernel.model_symbols()) parts.push_back(fmt::format("dim_{}", s));
  parts.insert(parts.end(), kernel.numbers.begin(), kernel.numbers.end());
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string with_name(std::string text, std::string_view placeholder, std::string_view name) {
  for (std::size_t at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder, at + name.size()))
    text.replace(at, placeholder.size(), name);
  return text;
}

std::vector<KernelArgument> arguments_of(const Kernel& kernel) {
  std::vector<KernelArgument> list;
  for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
    if (kernel.operands[i].replaced) continue;
    list.push_back({.operand = static_cast<int>(i)});
  }
  for (const std::string& s : kernel.model_symbols()) {
    list.push_back({.kind = KernelArgument::Kind::dimension, .symbol = s});
  }
  return list;
}

}  // namespace oclc
