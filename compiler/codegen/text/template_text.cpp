#include "compiler/codegen/text/template_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <vector>

#include "compiler/codegen/text/template_table.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Integer constant expressions of the preprocessor: ?: | || && == != < > <= >= + - * / % ( ) and (size_t) casts.
class Evaluator {
 public:
  explicit Evaluator(std::string_view text) : text_(text) {}
  std::optional<std::int64_t> whole() {
    const auto v = choice();
    space();
    return ok_ && at_ == text_.size() ? std::optional(v) : std::nullopt;
  }

 private:
  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    space();
    if (text_.substr(at_, token.size()) != token) return false;
    if (token.size() == 1 && at_ + 1 < text_.size() && (token == "<" || token == ">" || token == "|") &&
        (text_[at_ + 1] == '=' || text_[at_ + 1] == token[0]))
      return false;
    at_ += token.size();
    return true;
  }
  std::int64_t choice() {
    const std::int64_t c = either();
    if (!take("?")) return c;
    const std::int64_t a = choice();
    if (!take(":")) ok_ = false;
    const std::int64_t b = choice();
    return c ? a : b;
  }
  std::int64_t either() {
    std::int64_t v = both();
    for (;;) {
      if (take("||") || take("|")) {
        const std::int64_t r = both();
        v = (v != 0) || (r != 0);
      } else {
        return v;
      }
    }
  }
  std::int64_t both() {
    std::int64_t v = compare();
    while (take("&&")) {
      const std::int64_t r = compare();
      v = (v != 0) && (r != 0);
    }
    return v;
  }
  std::int64_t compare() {
    const std::int64_t v = sum();
    if (take("==")) return v == sum();
    if (take("!=")) return v != sum();
    if (take("<=")) return v <= sum();
    if (take(">=")) return v >= sum();
    if (take("<")) return v < sum();
    if (take(">")) return v > sum();
    return v;
  }
  std::int64_t sum() {
    std::int64_t v = term();
    for (;;) {
      if (take("+"))
        v += term();
      else if (take("-"))
        v -= term();
      else
        return v;
    }
  }
  std::int64_t term() {
    std::int64_t v = primary();
    for (;;) {
      const bool times = take("*"), over = !times && take("/");
      if (!times && !over && !take("%")) return v;
      const std::int64_t r = primary();
      if (!times && r == 0) {
        ok_ = false;
        return 0;
      }
      v = times ? v * r : over ? v / r : v % r;
    }
  }
  std::int64_t primary() {
    if (take("(size_t)")) return primary();
    if (take("(")) {
      const std::int64_t v = choice();
      if (!take(")")) ok_ = false;
      return v;
    }
    space();
    std::int64_t v = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (error != std::errc()) {
      ok_ = false;
      at_ = text_.size();
      return 0;
    }
    at_ = static_cast<std::size_t>(end - text_.data());
    return v;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

struct Macro {
  std::vector<std::string> parameters;
  bool is_function = false;
  std::string body;
};

class Expander {
 public:
  Expander(std::string_view name, const TemplateValues& values) : values_(values) {
    const auto& rows = template_texts();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const TemplateText& t) { return t.name == name; });
    OCLC_CHECK(row != rows.end(), fmt::format("no template {}", name));
    for (const auto& [key, value] : values.parameters) macros_[key] = {{}, false, value};
    read(row->text);
  }

  std::string expand(const std::string& text, std::set<std::string> hidden = {}) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      if (!word_char(text[i])) {
        out += text[i++];
        continue;
      }
      std::size_t end = i;
      while (end < text.size() && word_char(text[end])) ++end;
      const std::string word = text.substr(i, end - i);
      const auto macro = std::isdigit(static_cast<unsigned char>(word[0])) ? macros_.end() : macros_.find(word);
      if (macro == macros_.end() || hidden.count(word)) {
        out += word;
        i = end;
        continue;
      }
      auto inside = hidden;
      inside.insert(word);
      if (!macro->second.is_function) {
        std::string value = expand(macro->second.body, inside);
        if (const auto number = Evaluator(value).whole()) value = std::to_string(*number);
        out += value;
        i = end;
        continue;
      }
      if (end >= text.size() || text[end] != '(') {
        out += word;
        i = end;
        continue;
      }
      const auto [arguments, after] = split_arguments(text, end);
      out += call(macro->second, arguments, hidden);
      i = after;
    }
    return out;
  }

  std::string body() { return expand(body_); }

 private:
  static std::pair<std::vector<std::string>, std::size_t> split_arguments(const std::string& text, std::size_t open) {
    std::vector<std::string> arguments(1);
    int depth = 0;
    for (std::size_t i = open; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '(' && depth++ == 0) continue;
      if (c == ')' && --depth == 0) return {arguments, i + 1};
      if (c == ',' && depth == 1) {
        arguments.emplace_back();
        while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
      } else {
        arguments.back() += c;
      }
    }
    check_failed("template", "template_text.cpp", 0, "unbalanced call in a template");
  }

  // Operands of ## are pasted as they stand, others are expanded first.
  std::string call(const Macro& macro, std::vector<std::string> arguments, const std::set<std::string>& hidden) {
    const bool pastes = macro.body.find("##") != std::string::npos;
    for (std::string& argument : arguments) {
      if (!pastes) argument = expand(argument, hidden);
    }
    std::string text;
    for (std::size_t i = 0; i < macro.body.size();) {
      if (!word_char(macro.body[i])) {
        text += macro.body[i++];
        continue;
      }
      std::size_t end = i;
      while (end < macro.body.size() && word_char(macro.body[end])) ++end;
      const std::string word = macro.body.substr(i, end - i);
      const auto at = std::find(macro.parameters.begin(), macro.parameters.end(), word);
      text += at == macro.parameters.end() ? word : arguments.at(static_cast<std::size_t>(at - macro.parameters.begin()));
      i = end;
    }
    if (pastes) {
      for (std::size_t at = text.find("##"); at != std::string::npos; at = text.find("##")) text.erase(at, 2);
      return text;
    }
    return expand(text, hidden);
  }

  void read(std::string_view text) {
    std::vector<bool> active{true};
    bool in_tile = false, in_default = false, skip_hole = false;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string line(text.substr(at, end - at));
      at = end + 1;
      const std::size_t first = line.find_first_not_of(' ');
      const std::string trimmed = first == std::string::npos ? "" : line.substr(first);
      if (trimmed.starts_with("#ifndef ")) {
        active.push_back(active.back() && !macros_.count(trimmed.substr(8)));
      } else if (trimmed.starts_with("#ifdef ")) {
        active.push_back(active.back() && macros_.count(trimmed.substr(7)));
      } else if (trimmed.starts_with("#if ")) {
        const auto value = Evaluator(expand(trimmed.substr(4))).whole();
        OCLC_CHECK(value, "condition in a template: " + trimmed);
        active.push_back(active.back() && *value != 0);
      } else if (trimmed.starts_with("#elif")) {
        OCLC_CHECK(false, "a template takes no #elif: " + trimmed);
      } else if (trimmed.starts_with("#else")) {
        const bool outer = active[active.size() - 2];
        active.back() = outer && !active.back();
      } else if (trimmed.starts_with("#endif")) {
        active.pop_back();
      } else if (trimmed.starts_with("#define ")) {
        if (active.back()) define(trimmed.substr(8));
      } else if (!active.back()) {
        continue;
      } else if (!in_tile) {
        if (trimmed.starts_with("void ") && trimmed.find("_tile(") != std::string::npos) in_tile = true, in_signature_ = true;
        if (in_signature_ && trimmed.ends_with("{")) in_signature_ = false;
      } else if (in_signature_) {
        if (trimmed.ends_with("{")) in_signature_ = false;
      } else if (line == "}") {
        return;
      } else if (trimmed.starts_with("//@hole ")) {
        const std::string hole = trimmed.substr(8);
        const auto filled = values_.holes.find(hole);
        in_default = true;
        skip_hole = filled != values_.holes.end();
        if (skip_hole) append_hole(filled->second, first);
      } else if (trimmed.starts_with("//@end")) {
        in_default = skip_hole = false;
      } else if (!(in_default && skip_hole)) {
        body_ += line + "\n";
      }
    }
    OCLC_CHECK(!body_.empty(), "a template without a tile function");
  }

  void append_hole(const std::string& lines, std::size_t indent) {
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', at), lines.size());
      if (end > at) body_ += std::string(indent, ' ') + lines.substr(at, end - at) + "\n";
      at = end + 1;
    }
  }

  void define(const std::string& text) {
    std::size_t end = 0;
    while (end < text.size() && word_char(text[end])) ++end;
    const std::string name = text.substr(0, end);
    if (values_.parameters.count(name)) return;
    Macro macro;
    if (end < text.size() && text[end] == '(') {
      macro.is_function = true;
      const auto [parameters, after] = split_arguments(text, end);
      macro.parameters = parameters;
      end = after;
    }
    macro.body = end < text.size() ? text.substr(end + 1) : "";
    macros_[name] = std::move(macro);
  }

  const TemplateValues& values_;
  std::map<std::string, Macro> macros_;
  std::string body_;
  bool in_signature_ = false;
};

}  // namespace

std::string expand_tile_body(std::string_view name, const TemplateValues& values) { return Expander(name, values).body(); }

std::string expand_macro(std::string_view name, std::string_view macro, const TemplateValues& values) {
  return Expander(name, values).expand(std::string(macro));
}

}  // namespace oclc
