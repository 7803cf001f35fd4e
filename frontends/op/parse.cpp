#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "frontends/op/formula.h"
#include "frontends/op/tokens.h"

namespace oclc::custom {
namespace {

struct Level {
  std::string_view signs[4];
};
// C's, the weakest first.
constexpr Level kLevels[] = {{{"||"}}, {{"&&"}}, {{"==", "!="}}, {{"<", "<=", ">", ">="}}, {{"+", "-"}}, {{"*", "/", "%"}}};
constexpr std::size_t kLevelCount = std::size(kLevels);

bool at_level(std::size_t level, std::string_view sign) {
  return std::any_of(std::begin(kLevels[level].signs), std::end(kLevels[level].signs),
                     [&](std::string_view s) { return !s.empty() && s == sign; });
}

constexpr std::string_view kReductions[] = {"sum", "max", "min", "mean"};

class Parser {
 public:
  explicit Parser(const Excerpt& source) : file_(source.file), tokens_(tokens_of(source)) {}

  std::vector<Line> lines() {
    std::vector<Line> list;
    while (peek().kind != TokenKind::end) {
      if (peek().kind == TokenKind::line_end) {
        ++at_;
        continue;
      }
      list.push_back(line());
      if (peek().kind != TokenKind::end && peek().kind != TokenKind::line_end) unexpected("the line's end or an operator");
    }
    if (list.empty()) unexpected("a formula");
    return list;
  }

  Formula whole() {
    Formula formula = expression();
    while (peek().kind == TokenKind::line_end) ++at_;
    if (peek().kind != TokenKind::end) unexpected("the end or an operator");
    return formula;
  }

  Operand operand() {
    Operand result;
    result.place = peek().place;
    result.name = name("the operand's name");
    expect(":");
    result.type = name("an element type");
    expect("[");
    if (take("...")) {
      result.leading = true;
      if (!is("]")) expect(",");
    }
    while (!is("]")) {
      if (is("...")) unexpected("\"...\" before all other dimensions, or a dimension");
      result.dims.push_back(expression());
      if (!is("]")) expect(",");
    }
    expect("]");
    if (take("?")) result.optional = true;
    if (take("*")) result.variable = true;
    if (peek().kind != TokenKind::end) unexpected("the end, '?' or '*'");
    return result;
  }

 private:
  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is(std::string_view sign, std::size_t ahead = 0) const {
    return peek(ahead).kind == TokenKind::sign && peek(ahead).text == sign;
  }
  bool take(std::string_view sign) {
    if (!is(sign)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) unexpected(fmt::format("'{}'", sign));
  }
  std::string name(std::string_view what) {
    if (peek().kind != TokenKind::name) unexpected(what);
    return tokens_[at_++].text;
  }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    const Token& token = peek();
    fail_at(file_, token.place, std::string(wanted),
            token.kind == TokenKind::end        ? "the end"
            : token.kind == TokenKind::line_end ? "the line's end"
                                                : fmt::format("'{}'", token.text));
  }

  // Counts how deep a formula is, and how deep the parser is inside of it.
  Formula made(Form form, const Place& place, std::string text, std::vector<Formula> parts) const {
    Formula f;
    f.form = form;
    f.place = place;
    f.name = std::move(text);
    for (const Formula& part : parts) f.depth = std::max(f.depth, part.depth + 1);
    if (f.depth > kDeepestFormula) too_deep(place);
    f.parts = std::move(parts);
    return f;
  }
  [[noreturn]] void too_deep(const Place& place) const {
    fail_at(file_, place, fmt::format("at most {} operators inside one another", kDeepestFormula), "more",
            "give a part of the formula a line of its own");
  }
  struct Inside {
    explicit Inside(const Parser& around) : parser(around) {
      if (++parser.inside_ > kDeepestFormula) parser.too_deep(parser.peek().place);
    }
    ~Inside() { --parser.inside_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    const Parser& parser;
  };

  Line line() {
    Line result;
    if (peek().kind != TokenKind::name) unexpected("the name of an output, or of an intermediate result");
    result.target = primary();
    if (result.target.form != Form::name && result.target.form != Form::element)
      fail_at(file_, result.target.place, "the name of an output, or of an intermediate result, on the left",
              fmt::format("'{}'", text_of(result.target)));
    result.adds = is("+=");
    if (!take("+=")) expect("=");
    result.value = expression();
    return result;
  }

  Formula expression() {
    const Inside inside(*this);
    Formula condition = binary(0);
    if (!is("?")) return condition;
    const Place place = peek().place;
    expect("?");
    Formula yes = expression();
    expect(":");
    Formula no = expression();
    std::vector<Formula> parts;
    parts.push_back(std::move(condition));
    parts.push_back(std::move(yes));
    parts.push_back(std::move(no));
    return made(Form::choice, place, "?", std::move(parts));
  }

  Formula binary(std::size_t level) {
    if (level == kLevelCount) return unary();
    Formula left = binary(level + 1);
    while (peek().kind == TokenKind::sign && at_level(level, peek().text)) {
      const Token sign = tokens_[at_++];
      std::vector<Formula> parts;
      parts.push_back(std::move(left));
      parts.push_back(binary(level + 1));
      left = made(Form::binary, sign.place, sign.text, std::move(parts));
    }
    return left;
  }

  Formula unary() {
    if (!is("-") && !is("!")) return primary();
    const Inside inside(*this);
    const Token sign = tokens_[at_++];
    std::vector<Formula> parts;
    parts.push_back(unary());
    return made(Form::unary, sign.place, sign.text, std::move(parts));
  }

  std::vector<Formula> list(std::string_view close) {
    std::vector<Formula> parts;
    while (!is(close)) {
      parts.push_back(expression());
      if (!is(close)) expect(",");
    }
    expect(close);
    return parts;
  }

  // sum(i, j: ..), when its name and the parenthesis have been read; none if it is a call: max(a, b).
  bool is_reduction(std::string_view function) const {
    if (std::find(std::begin(kReductions), std::end(kReductions), function) == std::end(kReductions)) return false;
    for (std::size_t ahead = 0;; ahead += 2) {
      if (peek(ahead).kind != TokenKind::name) return false;
      if (is(":", ahead + 1)) return true;
      if (!is(",", ahead + 1)) return false;
    }
  }

  Formula reduction(const Token& function) {
    std::vector<std::string> indices;
    do {
      indices.push_back(name("an index"));
    } while (take(","));
    expect(":");
    std::vector<Formula> parts;
    parts.push_back(expression());
    expect(")");
    Formula f = made(Form::reduce, function.place, function.text, std::move(parts));
    f.indices = std::move(indices);
    return f;
  }

  Formula padded(const Token& function) {
    std::vector<Formula> parts;
    const std::string operand = name("the name of an operand");
    expect(",");
    parts.push_back(expression());
    expect(")");
    if (!is("[")) unexpected("'[' with the positions");
    expect("[");
    for (Formula& position : list("]")) parts.push_back(std::move(position));
    return made(Form::padded, function.place, operand, std::move(parts));
  }

  Formula primary() {
    const Inside inside(*this);
    const Token token = peek();
    if (take("(")) {
      Formula f = expression();
      expect(")");
      return f;
    }
    if (token.kind == TokenKind::number || token.kind == TokenKind::text) {
      ++at_;
      Formula f = made(token.kind == TokenKind::number ? Form::number : Form::text, token.place, token.text, {});
      f.number = token.number;
      f.whole = token.whole;
      return f;
    }
    if (token.kind != TokenKind::name) unexpected("a number, a name or '('");
    ++at_;
    if (take("[")) return made(Form::element, token.place, token.text, list("]"));
    if (!take("(")) return made(Form::name, token.place, token.text, {});
    if (is_reduction(token.text)) return reduction(token);
    if (token.text == "pad") return padded(token);
    return made(Form::call, token.place, token.text, list(")"));
  }

  std::string file_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  mutable int inside_ = 0;
};

std::string joined(std::span<const Formula> parts) {
  std::string text;
  for (const Formula& part : parts) text += (text.empty() ? "" : ", ") + text_of(part);
  return text;
}

std::string in_parentheses(const Formula& f) {
  const bool simple = f.form != Form::binary && f.form != Form::choice && f.form != Form::unary;
  return simple ? text_of(f) : "(" + text_of(f) + ")";
}

}  // namespace

void fail_at(const std::string& file, const Place& place, std::string wanted, std::string found, std::string advice,
             ExitCode code) {
  const std::string where = fmt::format("{}:{}:{}: ", file, place.line, place.column);
  throw CompileError({.stage = "operator",
                      .wanted = where + (found.empty() ? wanted : "wanted " + wanted + ", found " + found),
                      .advice = std::move(advice),
                      .exit_code = code});
}

std::vector<Line> parse_lines(const Excerpt& text) { return Parser(text).lines(); }
Formula parse_condition(const Excerpt& text) { return Parser(text).whole(); }
Operand parse_operand(const Excerpt& text) { return Parser(text).operand(); }

std::string text_of(const Formula& f) {
  const std::span<const Formula> parts(f.parts);
  switch (f.form) {
    case Form::number:
    case Form::name:
      return f.name;
    case Form::text:
      return "\"" + f.name + "\"";
    case Form::element:
      return fmt::format("{}[{}]", f.name, joined(parts));
    case Form::padded:
      return fmt::format("pad({}, {})[{}]", f.name, text_of(parts[0]), joined(parts.subspan(1)));
    case Form::call:
      return fmt::format("{}({})", f.name, joined(parts));
    case Form::reduce:
      return fmt::format("{}({}: {})", f.name, fmt::join(f.indices, ", "), text_of(parts[0]));
    case Form::unary:
      return f.name + in_parentheses(parts[0]);
    case Form::binary:
      return fmt::format("{} {} {}", in_parentheses(parts[0]), f.name, in_parentheses(parts[1]));
    case Form::choice:
      return fmt::format("{} ? {} : {}", in_parentheses(parts[0]), in_parentheses(parts[1]), in_parentheses(parts[2]));
  }
  return {};
}

}  // namespace oclc::custom
