#include "compiler/support/error.h"

#include <fmt/format.h>

namespace oclc {
namespace {

std::string sentence(const CompileError::Parts& parts) {
  std::string text;
  if (!parts.node.empty()) text += fmt::format("node '{}' ", parts.node);
  if (!parts.op.empty()) text += fmt::format("({})", parts.op);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (!text.empty()) text += ": ";
  text += parts.found.empty() ? parts.wanted : fmt::format("wanted {}, found {}", parts.wanted, parts.found);
  if (!parts.advice.empty()) text += "; " + parts.advice;
  return text;
}

}  // namespace

CompileError::CompileError(Parts parts) : std::runtime_error(sentence(parts)), parts_(std::move(parts)) {}

void check_failed(const char* condition, const char* file, int line, const std::string& detail) {
  throw InternalError(fmt::format("{}:{}: check '{}' failed: {}", file, line, condition, detail));
}

}  // namespace oclc
