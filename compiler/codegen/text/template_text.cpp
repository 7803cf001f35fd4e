#include "compiler/codegen/text/template_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "compiler/codegen/text/constant_expression.h"
#include "compiler/codegen/text/template_fold.h"
#include "compiler/codegen/text/template_source.h"
#include "compiler/codegen/text/tokens.h"
#include "compiler/support/error.h"

namespace oclc {
namespace {

struct Macro {
  std::vector<std::string> parameters;
  bool is_function = false;
  std::string body;
};

class Expander {
 public:
  Expander(const TemplateSource& source, const TemplateValues& values) : source_(source), values_(values) {
    for (const auto& [name, value] : values.parameters) {
      OCLC_CHECK(source_.parameter(name), fmt::format("template {} has no parameter {}", source_.name, name));
      macros_[name] = {{}, false, value};
    }
    for (const auto& hole : values.holes)
      OCLC_CHECK(source_.holes.count(hole.first), fmt::format("template {} has no hole {}", source_.name, hole.first));
    read(source_.text);
    for (const auto& [name, value] : values.parameters) check(*source_.parameter(name), expand(value));
  }

  std::string expand(const std::string& text, std::set<std::string> hidden = {}) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      if (!is_word_char(text[i])) {
        out += text[i++];
        continue;
      }
      std::size_t end = i;
      while (end < text.size() && is_word_char(text[end])) ++end;
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
        if (const auto number = constant_value(value)) value = std::to_string(*number);
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

  std::string body() { return fold_known(expand(body_)); }

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
      if (!is_word_char(macro.body[i])) {
        text += macro.body[i++];
        continue;
      }
      std::size_t end = i;
      while (end < macro.body.size() && is_word_char(macro.body[end])) ++end;
      const std::string word = macro.body.substr(i, end - i);
      const auto at = std::find(macro.parameters.begin(), macro.parameters.end(), word);
      text += at == macro.parameters.end() ? word : arguments.at(static_cast<std::size_t>(at - macro.parameters.begin()));
      i = end;
    }
    if (pastes) {
      for (std::size_t at = text.find("##"); at != std::string::npos; at = text.find("##")) text.erase(at, 2);
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
      if (trimmed.starts_with("#if ")) {
        const auto value = constant_value(expand(trimmed.substr(4)));
        OCLC_CHECK(value, "condition in a template: " + trimmed);
        active.push_back(active.back() && *value != 0);
      } else if (trimmed.starts_with("#elif") || trimmed.starts_with("#ifdef") || trimmed.starts_with("#ifndef")) {
        OCLC_CHECK(false, fmt::format("template {} has a line that none takes: {}", source_.name, trimmed));
      } else if (trimmed.starts_with("#else")) {
        const bool outer = active[active.size() - 2];
        active.back() = outer && !active.back();
      } else if (trimmed.starts_with("#endif")) {
        active.pop_back();
      } else if (trimmed.starts_with("#define ")) {
        if (active.back()) define(trimmed.substr(8));
      } else if (const auto parameters = declared_parameters(trimmed); !parameters.empty()) {
        for (const TemplateParameter& p : parameters) {
          if (active.back() && !macros_.count(p.name)) define(p.name + p.arguments + " " + p.value);
        }
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
      } else if (trimmed.starts_with("//@lines ")) {
        const auto filled = values_.holes.find(trimmed.substr(9));
        if (filled != values_.holes.end()) append_hole(filled->second, first);
      } else if (trimmed.starts_with("//@end")) {
        in_default = skip_hole = false;
      } else if (!(in_default && skip_hole)) {
        body_ += line + "\n";
      }
    }
    OCLC_CHECK(!body_.empty(), fmt::format("template {} has no tile function", source_.name));
  }

  void check(const TemplateParameter& parameter, const std::string& value) {
    const auto number = constant_value(value);
    const bool legal = std::any_of(parameter.legal.begin(), parameter.legal.end(),
                                   [&](const std::string& alternative) { return allows(alternative, value, number); });
    OCLC_CHECK(legal, fmt::format("template {}: wanted {} in {{{}}}, found {}", source_.name, parameter.name,
                                  fmt::join(parameter.legal, ", "), value));
  }

  bool allows(const std::string& alternative, const std::string& value, std::optional<std::int64_t> number) {
    if (alternative == "expr") return true;
    if (alternative == "name") return !number && std::all_of(value.begin(), value.end(), is_word_char);
    const std::size_t dots = alternative.find("..");
    if (dots == std::string::npos) {
      const auto wanted = constant_value(expand(alternative));
      return wanted ? wanted == number : expand(alternative) == value;
    }
    if (!number) return false;
    const std::size_t step_at = std::min(alternative.find(" step "), alternative.size());
    const auto bound = [&](const std::string& text) { return text.empty() ? std::nullopt : constant_value(expand(text)); };
    const auto least = bound(alternative.substr(0, dots)), most = bound(alternative.substr(dots + 2, step_at - dots - 2)),
               step = step_at < alternative.size() ? bound(alternative.substr(step_at + 6)) : std::nullopt;
    // A bound that is known when the kernel runs is none.
    return !(least && *number < *least) && !(most && *number > *most) && !(step && (*number - least.value_or(0)) % *step != 0);
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
    while (end < text.size() && is_word_char(text[end])) ++end;
    const std::string name = text.substr(0, end);
    OCLC_CHECK(!values_.parameters.count(name), fmt::format("template {} defines its parameter {}", source_.name, name));
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

  const TemplateSource& source_;
  const TemplateValues& values_;
  std::map<std::string, Macro> macros_;
  std::string body_;
  bool in_signature_ = false;
};

}  // namespace

std::string expand_tile_body(std::string_view name, const TemplateValues& values) {
  return Expander(read_template(name), values).body();
}

std::string expand_tile_text(const TemplateText& row, const TemplateValues& values) {
  return Expander(read_template_text(row), values).body();
}

TemplateValues values_of(std::string_view name, const TemplateValues& values, const std::vector<std::string_view>& family) {
  const auto any_has = [&](const auto& has) {
    return std::any_of(family.begin(), family.end(), [&](std::string_view member) { return has(read_template(member)); });
  };
  const TemplateSource& own = read_template(name);
  TemplateValues taken;
  const auto none = [&](const std::string& what) { return fmt::format("none of {} has {}", fmt::join(family, ", "), what); };
  for (const auto& [parameter, value] : values.parameters) {
    OCLC_CHECK(any_has([&wanted = parameter](const TemplateSource& s) { return s.parameter(wanted) != nullptr; }),
               none(fmt::format("a parameter {}", parameter)));
    if (own.parameter(parameter)) taken.parameters[parameter] = value;
  }
  for (const auto& [hole, lines] : values.holes) {
    OCLC_CHECK(any_has([&wanted = hole](const TemplateSource& s) { return s.holes.count(wanted) != 0; }),
               none(fmt::format("a hole {}", hole)));
    if (own.holes.count(hole)) taken.holes[hole] = lines;
  }
  return taken;
}

std::string expand_macro(std::string_view name, std::string_view macro, const TemplateValues& values) {
  return Expander(read_template(name), values).expand(std::string(macro));
}

}  // namespace oclc
