#include "frontends/onnx/dim_expression.h"

#include <algorithm>
#include <cctype>

#include "compiler/ir/expr.h"

namespace oclc::onnx {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Python's names of functions as those of expressions; empty: rounding down, which divisions do.
std::optional<std::string> function_of(std::string_view word) {
  if (word == "max" || word == "Max") return "max";
  if (word == "min" || word == "Min") return "min";
  if (word == "floor") return "";
  return std::nullopt;
}

}  // namespace

std::optional<DimExpression> dim_expression(std::string_view name) {
  DimExpression out;
  bool operates = false;
  const auto next = [&](std::size_t at) {
    while (at < name.size() && name[at] == ' ') ++at;
    return at < name.size() ? name[at] : '\0';
  };
  for (std::size_t i = 0; i < name.size();) {
    const char c = name[i];
    std::size_t end = i + 1;
    if (is_letter(c)) {
      while (end < name.size() && (is_letter(name[end]) || is_digit(name[end]))) ++end;
      const std::string word(name.substr(i, end - i));
      const auto function = next(end) == '(' ? function_of(word) : std::nullopt;
      if (!function) out.names.insert(word);
      out.text += function ? *function : word;
    } else if (is_digit(c)) {
      while (end < name.size() && is_digit(name[end])) ++end;
      if (end < name.size() && is_letter(name[end])) return std::nullopt;
      out.text += name.substr(i, end - i);
    } else if (c == '/') {
      if (end < name.size() && name[end] == '/') ++end;
      if (!is_digit(next(end))) return std::nullopt;
      out.text += " / ";
      operates = true;
    } else if (c == '-') {
      if (i == 0 || name[i - 1] != ' ' || end == name.size() || name[end] != ' ') return std::nullopt;
      out.text += '-';
      operates = true;
    } else if (c == '+' || c == '*') {
      out.text += c;
      operates = true;
    } else if (c == ' ' || c == '(' || c == ')' || c == ',') {
      out.text += c;
    } else {
      return std::nullopt;
    }
    i = end;
  }
  if (!operates || out.names.empty() || !parse_expr(out.text)) return std::nullopt;
  return out;
}

}  // namespace oclc::onnx
