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
  // The text as tokens, without comments.
  Definition(const std::string& name, const std::string& text) : name_(name) {
    for (Token& token : tokens_of(text)) {
      if (!token.text.starts_with("//")) tokens_.push_back(std::move(token));
    }
    is_mergeable_ = find_definitions();
    for (const Body& body : bodies_) walk(body);
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
    const Body& first = bodies_.front();
    for (std::size_t i = first.name + 2; i <= first.begin; ++i) {
      if (tokens_[i].is(",") || i == first.begin) names.push_back(tokens_[i - 1].text);
    }
    return names;
  }

  // The text as that of `name`, with `numbers` in the place of the numbers and more parameters.
  std::string renamed(const std::string& name, const std::string& more, const std::vector<std::string>& numbers) const {
    std::string text;
    std::size_t next = 0, body = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (body < bodies_.size() && i == bodies_[body].begin) text += more, ++body;
      const bool is_number = next < numbers_.size() && numbers_[next] == i;
      text += tokens_[i].space + (is_number ? numbers[next] : tokens_[i].is(name_) ? name : tokens_[i].text);
      if (is_number) ++next;
    }
    return text + "\n";
  }

 private:
  struct Body {
    std::size_t name = 0, begin = 0, end = 0;  // tokens: the name, the bracket that closes the parameters, the body's last
  };

  // void name(..) { .. }, once or with lines of the preprocessor between, and nothing in it whose numbers have to be constants.
  bool find_definitions() {
    for (std::size_t i = 0; i < tokens_.size();) {
      if (tokens_[i].kind == Token::Kind::note) {
        ++i;
        continue;
      }
      if (i + 5 >= tokens_.size() || !tokens_[i].is("void") || !tokens_[i + 1].is(name_) || !tokens_[i + 2].is("("))
        return false;
      const std::size_t begin = closing(tokens_, i + 2);
      if (begin + 2 >= tokens_.size() || !tokens_[begin + 1].is("{")) return false;
      const std::size_t end = closing(tokens_, begin + 1);
      if (end == tokens_.size()) return false;
      bodies_.push_back({i + 1, begin, end});
      i = end + 1;
    }
    return !bodies_.empty() && std::all_of(tokens_.begin(), tokens_.end(), [](const Token& t) {
      if (t.kind == Token::Kind::note)
        return t.text.starts_with("#pragma unroll") || t.text.starts_with("#if") || is_one_of(t.text, {"#else", "#endif"});
      if (t.kind != Token::Kind::word) return t.text.front() != '"';
      return !t.text.starts_with("__builtin") &&
             !is_one_of(t.text, {"enum", "case", "asm", "__asm", "__asm__", "__attribute__", "typedef", "struct"});
    });
  }

  // Finds the numbers that can be variables.
  void walk(const Body& body) {
    struct Bracket {
      std::size_t at = 0;
      int argument = 0;
    };
    std::vector<Bracket> open = {{0, 0}};
    for (std::size_t i = body.begin + 1; i <= body.end; ++i) {
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
  std::vector<Body> bodies_;
  std::vector<std::size_t> numbers_;
  bool is_mergeable_ = false;
};

// One function for those of one key: numbers that are equal in all stay, those that go together are one constant.
void fill(MergedFunction& merged, const std::vector<std::string>& names, const std::vector<Definition>& definitions) {
  const Definition& first = definitions[merged.members.front()];
  std::map<std::vector<std::string>, std::string> constants;  // by type and the members' numbers
  std::vector<std::string> numbers;
  std::string more;
  for (std::size_t k = 0; k < first.numbers().size(); ++k) {
    const std::string type(type_of(first.tokens()[first.numbers()[k]]));
    std::vector<std::string> values;
    for (const std::size_t member : merged.members)
      values.push_back(definitions[member].tokens()[definitions[member].numbers()[k]].text);
    if (std::equal(values.begin() + 1, values.end(), values.begin())) {
      numbers.push_back(values[0]);
      continue;
    }
    std::vector<std::string> key = values;
    key.push_back(type);
    const auto [at, is_new] = constants.emplace(std::move(key), fmt::format("constant{}", constants.size()));
    numbers.push_back(at->second);
    if (!is_new) continue;
    more += fmt::format(", const {} {}", type, at->second);
    merged.constants.push_back({type, at->second, std::move(values)});
  }
  merged.name = names[merged.members.front()] + "_merged";
  merged.text = first.renamed(merged.name, more, numbers);
  const std::string arguments = fmt::format("{}", fmt::join(first.parameters(), ", "));
  for (std::size_t i = 0; i < merged.members.size(); ++i) {
    merged.macros += fmt::format("#define {0}({1}) {2}({1}", names[merged.members[i]], arguments, merged.name);
    for (const MergedFunction::Constant& constant : merged.constants) merged.macros += ", " + constant.values[i];
    merged.macros += ")\n";
  }
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
  for (auto& [key, members] : alike) {
    if (members.size() < 2) continue;
    merged.emplace_back().members = std::move(members);
    fill(merged.back(), names, definitions);
  }
  std::sort(merged.begin(), merged.end(),
            [](const MergedFunction& a, const MergedFunction& b) { return a.members.front() < b.members.front(); });
  return merged;
}

}  // namespace oclc
