// Functions of one element as text for elements and vectors of them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "frontends/op/code.h"

namespace oclc::custom {
namespace {

using Words = std::map<std::string, std::string, std::less<>>;
using CodeTokens = std::span<const CodeToken>;
using Kind = CodeToken::Kind;

// Functions of OpenCL C that take numbers beside vectors.
constexpr std::string_view kMixed[] = {"min", "max", "fmin", "fmax", "clamp"};
constexpr std::string_view kTypes[] = {"float", "double", "half", "int",  "uint", "long",
                                       "ulong", "short",  "char", "bool", "void"};
constexpr std::string_view kComparisons[] = {"<", ">", "<=", ">=", "==", "!=", "&&", "||", "!"};
constexpr std::string_view kArithmetic[] = {"+", "-", "*", "/", "%", "&", "|", "^", "~", "<<", ">>"};
constexpr int kWidths[] = {2, 4, 8, 16};

template <class List>
bool is_one_of(std::string_view text, const List& list) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

// Behind the bracket that closes the one at `open`.
std::size_t behind_bracket(CodeTokens tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].text == "(") ++depth;
    if (tokens[i].text == ")" && --depth == 0) return i + 1;
  }
  return tokens.size();
}

bool in_one_bracket(CodeTokens tokens) {
  return tokens.size() > 2 && tokens[0].text == "(" && behind_bracket(tokens, 0) == tokens.size();
}

// Whether an expression means the same for vectors of its `vectors`: names of operands, and of what was computed of them.
class VectorRules {
 public:
  VectorRules(const Code& code, const std::set<std::string, std::less<>>& vectors, bool truth)
      : code_(code), vectors_(vectors), truth_(truth) {}

  bool holds(CodeTokens tokens, const std::set<std::string, std::less<>>& conditions) const {
    CodeTokens inner = tokens;
    while (in_one_bracket(inner)) inner = inner.subspan(1, inner.size() - 2);
    const auto vector = [&](std::size_t i) { return vectors_.count(inner[i].text) != 0; };
    if (inner.size() == 5 && inner[1].text == "?" && inner[3].text == ":")
      return conditions.count(inner[0].text) != 0 && vector(2) && vector(4);
    int comparisons = 0, arithmetic = 0, depth = 0;
    bool inside = false;
    for (std::size_t i = 0; i < inner.size(); ++i) {
      const CodeToken& t = inner[i];
      if (t.text == "(") ++depth;
      if (t.text == ")") --depth;
      if (t.kind == Kind::number && !number_fits(t.text)) return false;
      if (t.kind == Kind::word && !word_fits(inner, i)) return false;
      if (t.kind != Kind::sign) {
        if (t.kind != Kind::number && t.kind != Kind::word) return false;
        continue;
      }
      if (is_one_of(t.text, kComparisons)) {
        ++comparisons;
        inside = inside || depth > 0;
      } else if (is_one_of(t.text, kArithmetic)) {
        ++arithmetic;
      } else if (t.text != "(" && t.text != ")" && t.text != ",") {
        return false;
      }
    }
    if (comparisons > 0 && !truth_) return false;  // lanes of truth are -1, not 1
    return comparisons == 0 || arithmetic == 0 || (comparisons == 1 && !inside);
  }

 private:
  static bool number_fits(std::string_view text) {
    const bool floats = text.find('.') != text.npos || (text.find_first_of("eE") != text.npos && !text.starts_with("0x"));
    return !floats || text.ends_with('f') || text.ends_with('F');
  }

  bool word_fits(CodeTokens tokens, std::size_t i) const {
    const std::string_view word = tokens[i].text;
    if (is_one_of(word, kTypes) || is_one_of(word, code_.declared)) return false;
    if (i + 1 == tokens.size() || tokens[i + 1].text != "(") return true;
    const std::size_t end = behind_bracket(tokens, i + 1);
    if (is_one_of(word, kMixed) || word.starts_with("oclc_")) return true;
    bool has_vector = false;
    int depth = 0;
    for (std::size_t k = i + 1; k < end; ++k) {
      depth += tokens[k].text == "(" ? 1 : tokens[k].text == ")" ? -1 : 0;
      has_vector = has_vector || vectors_.count(tokens[k].text) != 0;
      if ((depth == 1 && tokens[k].text == ",") || k + 1 == end) {
        if (!has_vector) return false;
        has_vector = false;
      }
    }
    return true;
  }

  const Code& code_;
  const std::set<std::string, std::less<>>& vectors_;
  const bool truth_;
};

// A sign before an operand's letter stands apart: a negative number may take its place.
std::string with_signs_apart(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool letter =
        i > 0 && std::islower(static_cast<unsigned char>(text[i])) &&
        (i + 1 == text.size() || !(std::isalnum(static_cast<unsigned char>(text[i + 1])) || text[i + 1] == '_'));
    if (letter && (text[i - 1] == '-' || text[i - 1] == '+')) out += ' ';
    out += text[i];
  }
  return out;
}

class ScalarWriter {
 public:
  ScalarWriter(const CustomOp& op, const Function& f, const Words& attributes)
      : op_(op), code_(*op.code), f_(f), attributes_(attributes), tokens_(code_tokens(code_.source, f.begin, f.end)) {
    check_parameters();
  }

  ScalarText run() const {
    if (const auto text = expression()) return {*text, {}};
    std::string call = fmt::format("{}{}_each(", code_.prefix, f_.name);
    for (std::size_t i = 0; i < f_.parameters.size(); ++i) {
      const std::string& name = f_.parameters[i].name;
      const auto letter = letters_.find(name);
      call += (i ? ", " : "") + (letter == letters_.end() ? attributes_.find(name)->second : letter->second);
    }
    return {call + ")", overloads()};
  }

 private:
  [[noreturn]] void fail(std::string wanted, std::string found) const {
    fail_at(op_.file, code_.place(f_.place), std::move(wanted), std::move(found));
  }

  static std::string_view c_type_of(DType dtype) {
    switch (dtype) {
      case DType::f16:
      case DType::bf16:
      case DType::f32:
        return "float";
      case DType::f64:
        return "double";
      case DType::boolean:
        return "bool";
      case DType::i8:
        return "char";
      case DType::u8:
        return "uchar";
      case DType::i16:
        return "short";
      case DType::u16:
        return "ushort";
      case DType::i32:
        return "int";
      case DType::u32:
        return "uint";
      case DType::i64:
        return "long";
      case DType::u64:
        return "ulong";
      default:
        return "";
    }
  }

  // The type in OpenCL C that stands for all element types of the operand.
  std::string type_of(const Operand& operand) const {
    std::vector<DType> types;
    if (const auto fixed = dtype_of(operand.type))
      types = {*fixed};
    else
      types = op_.types.find(operand.type)->second;
    const std::string_view first = c_type_of(types[0]);
    for (const DType dtype : types) {
      if (c_type_of(dtype) != first)
        fail_at(op_.file, operand.place,
                fmt::format("types of '{}' that are one type in OpenCL C (f32, f16 and bf16 are float)", operand.name),
                fmt::format("{} and {}", name_of(types[0]), name_of(dtype)));
    }
    return std::string(first);
  }

  void check_parameters() {
    std::set<std::string> seen;
    for (const Parameter& p : f_.parameters) {
      const Operand* operand = op_.operand(p.name);
      const std::string wanted = operand ? type_of(*operand) : attributes_.count(p.name) != 0 ? "float" : "";
      if (wanted.empty())
        fail("parameters that are called like operands or attributes of " + op_.name, fmt::format("'{}'", p.name));
      if (operand ? p.type != wanted : p.type != "float" && p.type != "int")
        fail(fmt::format("'{} {}'", wanted, p.name), fmt::format("'{} {}'", p.type, p.name));
      seen.insert(p.name);
    }
    for (std::size_t i = 0; i < op_.in.size(); ++i) {
      const std::string& name = op_.in[i].name;
      if (seen.count(name) == 0)
        fail(fmt::format("a parameter for each operand of {}", op_.name), fmt::format("none for '{}'", name));
      letters_[name] = std::string(1, static_cast<char>('a' + i));
    }
    if (f_.result != type_of(op_.out[0]))
      fail(fmt::format("'{} {}(..)'", type_of(op_.out[0]), f_.name), fmt::format("'{}'", f_.result));
  }

  std::set<std::string, std::less<>> of_type(bool truth) const {
    std::set<std::string, std::less<>> names;
    for (const Parameter& p : f_.parameters) {
      if (letters_.count(p.name) != 0 && (!truth || p.type == "bool")) names.insert(p.name);
    }
    return names;
  }

  // All that the function does is to return an expression that is valid for vectors.
  std::optional<std::string> expression() const {
    if (tokens_.size() < 3 || tokens_[0].text != "return" || tokens_.back().text != ";") return std::nullopt;
    const CodeTokens tokens = CodeTokens(tokens_).subspan(1, tokens_.size() - 2);
    if (std::any_of(tokens.begin(), tokens.end(), [](const CodeToken& t) { return t.text == ";"; })) return std::nullopt;
    const std::set<std::string, std::less<>> vectors = of_type(false);
    if (!VectorRules(code_, vectors, f_.result == "bool").holds(tokens, of_type(true))) return std::nullopt;
    Words words = attributes_;
    for (const auto& [name, letter] : letters_) words[name] = letter;
    const CodeToken& last = tokens.back();
    const std::string text = with_signs_apart(code_.renamed(tokens[0].at, last.at + last.text.size(), words));
    const bool call = tokens.size() > 2 && tokens[0].kind == Kind::word && tokens[1].text == "(" &&
                      behind_bracket(tokens, 1) == tokens.size();
    return tokens.size() == 1 || call || in_one_bracket(tokens) ? text : "(" + text + ")";
  }

  // The function for one element and for vectors, whose lanes are computed one by one.
  std::string overloads() const {
    std::string text;
    const std::string name = code_.prefix + f_.name;
    const bool truth = f_.result == "bool";
    const auto add = [&](int width) {
      std::string parameters, body;
      for (const Parameter& p : f_.parameters) {
        const bool vector = width > 1 && letters_.count(p.name) != 0;
        parameters += fmt::format("{}{}{} {}", parameters.empty() ? "" : ", ", p.type == "bool" ? "int" : p.type,
                                  vector ? std::to_string(width) : "", p.name);
      }
      const std::string result = (truth ? "int" : f_.result) + (width > 1 ? std::to_string(width) : "");
      for (int lane = 0; lane < width; ++lane) {
        std::string arguments;
        for (const Parameter& p : f_.parameters) {
          const bool vector = width > 1 && letters_.count(p.name) != 0;
          arguments += fmt::format("{}{}{}{}", arguments.empty() ? "" : ", ", p.name, vector ? fmt::format(".s{:x}", lane) : "",
                                   p.type == "bool" ? " != 0" : "");
        }
        body += fmt::format("{}{}{}({})", lane ? ", " : "", truth && width > 1 ? "-(int)" : "", name, arguments);
      }
      if (width > 1) body = fmt::format("({})({})", result, body);
      text += fmt::format("{} __attribute__((overloadable)) {}_each({}) {{ return {}; }}\n", result, name, parameters, body);
    };
    add(1);
    const bool lanes = std::all_of(f_.parameters.begin(), f_.parameters.end(), [](const Parameter& p) {
      return p.type == "float" || p.type == "int" || p.type == "uint" || p.type == "bool";
    });
    for (const int width : kWidths) {
      if (lanes) add(width);
    }
    return text;
  }

  const CustomOp& op_;
  const Code& code_;
  const Function& f_;
  const Words& attributes_;
  const std::vector<CodeToken> tokens_;
  Words letters_;  // of operands
};

}  // namespace

ScalarText scalar_text(const CustomOp& op, const Function& function, const Words& attributes) {
  return ScalarWriter(op, function, attributes).run();
}

}  // namespace oclc::custom
