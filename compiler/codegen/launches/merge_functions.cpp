#include "compiler/codegen/launches/merge_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>

#include "compiler/codegen/text/tokens.h"

namespace oclc {
namespace {

// Functions and words whose arguments may be variables.
bool takes_variables(std::string_view callee) {
  if (callee.starts_with("vload") || callee.starts_with("vstore")) return true;
  return is_one_of(callee, {"for", "if", "while", "min", "max", "fma", "select", "oclc_store", "oclc_stream", "oclc_min",
                            "oclc_max", "oclc_relu", "oclc_prefetch", "oclc_prefetch_l2"});
}

// Type of a literal that a parameter can stand for; empty: none can.
std::string_view type_of(const Token& token) {
  if (token.kind != Token::Kind::number) return "";
  const std::string& text = token.text;
  if (text.find_first_not_of("0123456789") == std::string::npos) {
    std::int64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() && value <= std::numeric_limits<int>::max() ? "int" : "";
  }
  const bool plain = text.find_first_not_of("0123456789.e-+f") == std::string::npos;
  return plain && text.back() == 'f' && text.find_first_of(".e") != std::string::npos ? "float" : "";
}

class Definition {
 public:
  // The definition of `name` as tokens, without comments.
  Definition(const std::string& name, const std::string& text) : name_(name) {
    for (Token& token : tokens_of(text)) {
      if (!token.text.starts_with("//")) tokens_.push_back(std::move(token));
    }
    if (!is_one_definition()) return;
    is_mergeable_ = true;
    walk();
  }

  bool is_mergeable() const { return is_mergeable_; }
  const Tokens& tokens() const { return tokens_; }
  const std::vector<std::size_t>& numbers() const { return numbers_; }

  // The text with types in the place of numbers.
  std::string key() const {
    std::string key;
    auto next = numbers_.begin();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const bool is_number = next != numbers_.end() && *next == i;
      key += is_number ? "\\" + std::string(type_of(tokens_[i])) : tokens_[i].is(name_) ? "\\name" : tokens_[i].text;
      key += ' ';
      if (is_number) ++next;
    }
    return key;
  }

  std::vector<std::string> parameters() const {
    std::vector<std::string> names;
    for (std::size_t i = 3; i <= parameters_end_; ++i) {
      if (tokens_[i].is(",") || i == parameters_end_) names.push_back(tokens_[i - 1].text);
    }
    return names;
  }

  // The text as that of `name`, with `numbers` in the place of the numbers and more parameters.
  std::string renamed(const std::string& name, const std::string& more, const std::vector<std::string>& numbers) const {
    std::string text;
    std::size_t next = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (i == parameters_end_) text += more;
      const bool is_number = next < numbers_.size() && numbers_[next] == i;
      text += tokens_[i].space + (is_number ? numbers[next] : tokens_[i].is(name_) ? name : tokens_[i].text);
      if (is_number) ++next;
    }
    return text + "\n";
  }

 private:
  // void name(..) { .. }, with nothing around it, and nothing in it whose numbers have to be constants.
  bool is_one_definition() {
    if (tokens_.size() < 6 || !tokens_[0].is("void") || !tokens_[1].is(name_) || !tokens_[2].is("(")) return false;
    parameters_end_ = closing(tokens_, 2);
    if (parameters_end_ + 2 >= tokens_.size() || !tokens_[parameters_end_ + 1].is("{") ||
        closing(tokens_, parameters_end_ + 1) + 1 != tokens_.size())
      return false;
    return std::all_of(tokens_.begin(), tokens_.end(), [](const Token& t) {
      if (t.kind == Token::Kind::note) return t.text.starts_with("#pragma unroll");
      if (t.kind != Token::Kind::word) return t.text.front() != '"';
      return !t.text.starts_with("__builtin") &&
             !is_one_of(t.text, {"enum", "case", "asm", "__asm", "__asm__", "__attribute__", "typedef", "struct"});
    });
  }

  // Finds the numbers that can be variables.
  void walk() {
    struct Bracket {
      std::size_t at = 0;
      int argument = 0;
    };
    std::vector<Bracket> open = {{0, 0}};
    for (std::size_t i = parameters_end_ + 1; i < tokens_.size(); ++i) {
      const Token& t = tokens_[i];
      if (t.kind == Token::Kind::word) {
        if (declares_array(open.back().at)) is_mergeable_ = false;  // its size is a constant that has a name
      } else if (t.kind == Token::Kind::number) {
        if (type_of(t) != "" && can_be_variable(i, open.back().at, open.back().argument)) numbers_.push_back(i);
      } else if (t.is("(") || t.is("[") || t.is("{")) {
        open.push_back({i, 0});
      } else if (t.is(")") || t.is("]") || t.is("}")) {
        open.pop_back();
      } else if (t.is(",")) {
        ++open.back().argument;
      }
    }
  }

  // Whether the bracket at `open` holds the size of an array that is declared: float8 acc[..].
  bool declares_array(std::size_t open) const {
    return tokens_[open].is("[") && open >= 2 && tokens_[open - 1].kind == Token::Kind::word &&
           tokens_[open - 2].kind == Token::Kind::word && !tokens_[open - 2].is("return");
  }

  bool can_be_variable(std::size_t at, std::size_t open, int argument) const {
    const Token &before = tokens_[at - 1], &after = tokens_[at + 1];
    if (declares_array(open) || (before.is("[") && after.is("]"))) return false;
    if (is_one_of(before.text,
                  {"+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "=", "+=", "-=", "?", ":", "&&", "||"}))
      return true;
    if (!before.is("(") && !before.is(",")) return false;
    if (!tokens_[open].is("(")) return false;
    const Token& callee = tokens_[open - 1];
    if (callee.kind == Token::Kind::mark) return before.is("(");  // a cast, or brackets
    if (callee.is("oclc_terms")) return argument >= 3;            // before them sizes of its arrays
    return takes_variables(callee.text);
  }

  std::string name_;
  Tokens tokens_;
  std::size_t parameters_end_ = 0;
  std::vector<std::size_t> numbers_;
  bool is_mergeable_ = false;
};

// One text for functions of one key: numbers that are equal in all stay, those that go together are one parameter.
std::string text_of(const std::vector<std::string>& names, const std::vector<const Definition*>& definitions) {
  const Definition& first = *definitions.front();
  std::map<std::vector<std::string>, std::string> parameters;  // by type and the members' numbers
  std::vector<std::string> numbers;
  std::vector<std::vector<std::string>> values(definitions.size());
  std::string more;
  for (std::size_t k = 0; k < first.numbers().size(); ++k) {
    std::vector<std::string> all = {std::string(type_of(first.tokens()[first.numbers()[k]]))};
    for (const Definition* d : definitions) all.push_back(d->tokens()[d->numbers()[k]].text);
    if (std::equal(all.begin() + 2, all.end(), all.begin() + 1)) {
      numbers.push_back(all[1]);
      continue;
    }
    const auto [at, is_new] = parameters.emplace(all, fmt::format("constant{}", parameters.size()));
    numbers.push_back(at->second);
    if (!is_new) continue;
    more += fmt::format(", const {} {}", all[0], at->second);
    for (std::size_t i = 0; i < definitions.size(); ++i) values[i].push_back(all[i + 1]);
  }
  const std::string merged_name = names.front() + "_merged";
  std::string text = first.renamed(merged_name, more, numbers);
  const std::string arguments = fmt::format("{}", fmt::join(first.parameters(), ", "));
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("#define {0}({1}) {2}({1}{3}{4})\n", names[i], arguments, merged_name, values[i].empty() ? "" : ", ",
                        fmt::join(values[i], ", "));
  return text;
}

}  // namespace

std::vector<MergedFunction> merge_functions(const std::vector<std::string>& names, const std::vector<std::string>& texts) {
  std::vector<Definition> definitions;
  std::map<std::string, std::vector<std::size_t>> alike;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    definitions.emplace_back(names[i], texts[i]);
    if (definitions.back().is_mergeable()) alike[definitions.back().key()].push_back(i);
  }
  std::vector<MergedFunction> merged;
  for (const auto& [key, members] : alike) {
    if (members.size() < 2) continue;
    std::vector<std::string> of_members;
    std::vector<const Definition*> of_definitions;
    for (const std::size_t i : members) {
      of_members.push_back(names[i]);
      of_definitions.push_back(&definitions[i]);
    }
    merged.push_back({members, text_of(of_members, of_definitions)});
  }
  std::sort(merged.begin(), merged.end(),
            [](const MergedFunction& a, const MergedFunction& b) { return a.members.front() < b.members.front(); });
  return merged;
}

}  // namespace oclc
