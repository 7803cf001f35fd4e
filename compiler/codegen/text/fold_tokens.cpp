#include "compiler/codegen/text/fold_tokens.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace oclc {
namespace {

bool separates(const Token& token) {
  if (token.kind == Token::Kind::word) return token.is("return");
  return token.kind == Token::Kind::mark &&
         is_one_of(token.text, {",", ";", "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="});
}

bool names_type(const Token& token) {
  const std::string_view text = token.text, name = text.substr(0, text.find_last_not_of("0123456789") + 1);
  static constexpr std::string_view kTypes[] = {"bool",  "char",   "uchar", "short", "ushort", "int",  "uint",    "long",
                                                "ulong", "size_t", "half",  "float", "double", "void", "unsigned"};
  return std::find(std::begin(kTypes), std::end(kTypes), name) != std::end(kTypes);
}

// Levels of binary operators, the loosest first.
int level_of(const Token& token) {
  if (token.kind != Token::Kind::mark) return -1;
  static constexpr std::pair<std::string_view, int> kLevels[] = {
      {"||", 0}, {"&&", 1}, {"|", 2},  {"^", 3},  {"&", 4}, {"==", 5}, {"!=", 5}, {"<", 6}, {">", 6},
      {"<=", 6}, {">=", 6}, {"<<", 7}, {">>", 7}, {"+", 8}, {"-", 8},  {"*", 9},  {"/", 9}, {"%", 9}};
  const auto found =
      std::find_if(std::begin(kLevels), std::end(kLevels), [&](const auto& row) { return row.first == token.text; });
  return found == std::end(kLevels) ? -1 : found->second;
}

// An expression: tokens [begin, end), some of them gone.
struct Part {
  std::size_t begin = 0, end = 0;
  std::optional<std::int64_t> value = {};  // of type int
  bool is_truth = false;                   // 0 or 1
  // A sum whose last term is a number: what is before it, and the number.
  std::size_t sum_end = 0;
  std::int64_t added = 0;
};

struct NoExpression {};

class Folder {
 public:
  explicit Folder(Tokens& tokens) : t_(tokens) {}

  // Expressions between separators.
  void fold(std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end;) {
      if (separates(t_[at])) {
        ++at;
        continue;
      }
      std::size_t stop = at;
      for (int depth = 0; stop < end && !(depth == 0 && separates(t_[stop])); ++stop) {
        if (t_[stop].opens()) ++depth;
        if (t_[stop].closes()) --depth;
      }
      one(at, stop);
      at = stop;
    }
  }

  bool changes() const { return changes_; }

 private:
  // Words that stand side by side, as in a declaration, are expressions of their own.
  void one(std::size_t begin, std::size_t end) {
    try {
      for (std::size_t at = begin; at < end;) at = choice(at, end).end;
    } catch (const NoExpression&) {
    }
  }

  bool at_mark(std::size_t at, std::size_t end, std::string_view text) const { return at < end && t_[at].is(text); }

  void drop(std::size_t begin, std::size_t end) {
    changes_ |= begin < end;
    for (std::size_t i = begin; i < end; ++i) t_[i].is_gone = true;
  }

  std::size_t first_of(const Part& part) const {
    std::size_t i = part.begin;
    while (i < part.end && t_[i].is_gone) ++i;
    return i;
  }

  // `part` becomes `kept`, a part of it.
  Part keep(const Part& part, Part kept) {
    const std::string space = t_[first_of(part)].space;
    drop(part.begin, kept.begin);
    drop(kept.end, part.end);
    t_[first_of(kept)].space = space;
    kept.begin = part.begin, kept.end = part.end;
    return kept;
  }

  Part become(Part part, std::int64_t value) {
    const std::size_t first = first_of(part);
    drop(first + 1, part.end);
    std::string text = std::to_string(value);
    changes_ |= t_[first].text != text;
    t_[first].text = std::move(text);
    t_[first].kind = Token::Kind::number;
    part.value = value;
    part.is_truth = value == 0 || value == 1;
    return part;
  }

  Part choice(std::size_t at, std::size_t end) {
    Part condition = binary(at, end, 0);
    if (!at_mark(condition.end, end, "?")) return condition;
    const Part yes = choice(condition.end + 1, end);
    if (!at_mark(yes.end, end, ":")) throw NoExpression();
    const Part no = choice(yes.end + 1, end);
    Part all{at, no.end};
    all.is_truth = yes.is_truth && no.is_truth;
    if (!condition.value) return all;
    return keep(all, *condition.value != 0 ? yes : no);
  }

  Part binary(std::size_t at, std::size_t end, int level) {
    Part left = unary(at, end);
    for (;;) {
      if (left.end >= end) return left;
      const int found = level_of(t_[left.end]);
      if (found < level) return left;
      const std::size_t mark = left.end;
      const Part right = binary(mark + 1, end, found + 1);
      left = combine(left, mark, right);
    }
  }

  Part combine(const Part& left, std::size_t mark, const Part& right) {
    const std::string op = t_[mark].text;
    Part all{left.begin, right.end};
    all.is_truth = is_one_of(t_[mark].text, {"==", "!=", "<", ">", "<=", ">=", "&&", "||"});
    if (left.value && right.value) {
      const auto value = computed(*left.value, op, *right.value);
      return value ? become(all, *value) : all;
    }
    if (op == "+" || op == "-") return sum(all, left, mark, right);
    if (op == "*") {
      if (right.value == 1) return keep(all, left);
      if (left.value == 1) return keep(all, right);
      if ((right.value == 0 || left.value == 0) && is_pure(all)) return become(all, 0);
    }
    if (op == "/" && right.value == 1) return keep(all, left);
    if ((op == "/" || op == "%") && left.value == 0 && is_pure(all)) return become(all, 0);
    if (op == "%" && right.value == 1 && is_pure(all)) return become(all, 0);
    if (op == "&&" || op == "||") return both(all, left, op == "&&", right);
    return all;
  }

  Part sum(Part all, const Part& left, std::size_t mark, const Part& right) {
    const bool plus = t_[mark].is("+");
    if (right.value == 0) return keep(all, left);
    if (left.value == 0 && plus) return keep(all, right);
    if (!right.value) return all;
    const std::int64_t number = plus ? *right.value : -*right.value;
    all.sum_end = left.end, all.added = number;
    if (left.sum_end == 0) return all;
    // x + 32 - 1: one number behind x.
    const auto added = computed(left.added, "+", number);
    if (!added) return all;
    Part base = left;
    base.end = left.sum_end, base.sum_end = 0;
    if (*added == 0) return keep(all, base);
    all.sum_end = left.sum_end, all.added = *added;
    drop(left.end, right.end);
    t_[left.sum_end].text = *added < 0 ? "-" : "+";
    t_[left.sum_end + 1].text = std::to_string(*added < 0 ? -*added : *added);
    return all;
  }

  Part both(Part all, const Part& left, bool is_and, const Part& right) {
    const auto is = [](const Part& part, bool truth) { return part.value && (*part.value != 0) == truth; };
    if (is(left, is_and) && right.is_truth) return keep(all, right);
    if (is(right, is_and) && left.is_truth) return keep(all, left);
    if (is(left, !is_and) || (is(right, !is_and) && is_pure(left))) return become(all, is_and ? 0 : 1);
    return all;
  }

  static std::optional<std::int64_t> computed(std::int64_t a, std::string_view op, std::int64_t b) {
    std::optional<std::int64_t> v;
    if (op == "+") v = a + b;
    if (op == "-") v = a - b;
    if (op == "*") v = a * b;
    if ((op == "/" || op == "%") && b != 0) v = op == "/" ? a / b : a % b;
    if (op == "==") v = a == b;
    if (op == "!=") v = a != b;
    if (op == "<") v = a < b;
    if (op == ">") v = a > b;
    if (op == "<=") v = a <= b;
    if (op == ">=") v = a >= b;
    if (op == "&&") v = a != 0 && b != 0;
    if (op == "||") v = a != 0 || b != 0;
    const bool fits = v && *v >= -std::numeric_limits<int>::max() && *v <= std::numeric_limits<int>::max();
    return fits ? v : std::nullopt;
  }

  // (TYPE) before an operand.
  bool is_cast(std::size_t open, std::size_t close, std::size_t end) const {
    if (close == open + 1 || close + 1 >= end) return false;
    bool names = false;
    for (std::size_t i = open + 1; i < close; ++i) {
      names |= t_[i].is("*") || names_type(t_[i]);
      if (t_[i].kind != Token::Kind::word && !t_[i].is("*")) return false;
    }
    const Token& next = t_[close + 1];
    return names && (next.kind == Token::Kind::word || next.kind == Token::Kind::number ||
                     is_one_of(next.text, {"(", "!", "~", "-", "+", "*", "&"}));
  }

  Part unary(std::size_t at, std::size_t end) {
    if (at >= end) throw NoExpression();
    if (t_[at].kind == Token::Kind::mark && is_one_of(t_[at].text, {"!", "~", "-", "+", "*", "&", "++", "--"})) {
      const Part operand = unary(at + 1, end);
      Part all{at, operand.end};
      all.is_truth = t_[at].is("!");
      if (t_[at].is("!") && operand.value) return become(all, *operand.value == 0 ? 1 : 0);
      return all;
    }
    if (t_[at].is("(")) {
      const std::size_t close = closing(t_, at);
      if (close >= end) throw NoExpression();
      if (is_cast(at, close, end)) {
        return {at, unary(close + 1, end).end};
      }
    }
    return postfix(at, end);
  }

  Part postfix(std::size_t at, std::size_t end) {
    Part part = primary(at, end);
    while (part.end < end) {
      const Token& next = t_[part.end];
      if (next.kind != Token::Kind::mark) return part;
      if (next.is("(") || next.is("[")) {
        const std::size_t close = closing(t_, part.end);
        if (close >= end) throw NoExpression();
        fold(part.end + 1, close);
        const bool is_call = next.is("("), is_bound = is_call && is_one_of(t_[at].text, {"min", "max"});
        const Part arguments{part.end + 1, close};
        part.end = close + 1;
        part.value.reset();
        if (is_bound) part = bound(part, t_[at].is("min"), arguments);
      } else if (is_one_of(next.text, {".", "->"}) && part.end + 1 < end) {
        part.end += 2;
        part.value.reset();
      } else if (is_one_of(next.text, {"++", "--"})) {
        part.end += 1;
        part.value.reset();
      } else {
        return part;
      }
      part.is_truth = part.value && (*part.value == 0 || *part.value == 1);
    }
    return part;
  }

  // min and max of two numbers.
  Part bound(const Part& call, bool is_min, const Part& arguments) {
    Tokens left, right;
    bool behind = false;
    for (std::size_t i = arguments.begin; i < arguments.end; ++i) {
      if (t_[i].is_gone) continue;
      if (t_[i].is(",") && behind) return call;
      if (t_[i].is(","))
        behind = true;
      else
        (behind ? right : left).push_back(t_[i]);
    }
    const auto a = number_of(left), b = number_of(right);
    return a && b ? become(call, is_min ? std::min(*a, *b) : std::max(*a, *b)) : call;
  }

  Part primary(std::size_t at, std::size_t end) {
    Part part{at, at + 1};
    if (t_[at].is("(")) {
      const std::size_t close = closing(t_, at);
      if (close >= end) throw NoExpression();
      part.end = close + 1;
      if (close == at + 1) return part;
      const Part inner = choice(at + 1, close);
      if (inner.end < close) {
        fold(inner.end, close);
        return part;
      }
      part.value = inner.value, part.is_truth = inner.is_truth;
      if (part.value && *part.value >= 0) return become(part, *part.value);
      const std::size_t first = first_of(inner);
      const bool is_word =
          t_[first].kind == Token::Kind::word &&
          std::all_of(t_.begin() + offset(first + 1), t_.begin() + offset(close), [](const Token& t) { return t.is_gone; });
      return is_word ? keep(part, inner) : part;
    }
    if (t_[at].kind != Token::Kind::word && t_[at].kind != Token::Kind::number) throw NoExpression();
    if (t_[at].kind == Token::Kind::number) part.value = number_of({t_[at]});
    part.is_truth = part.value && (*part.value == 0 || *part.value == 1);
    return part;
  }

  static std::ptrdiff_t offset(std::size_t i) { return static_cast<std::ptrdiff_t>(i); }

  bool is_pure(const Part& part) const {
    for (std::size_t i = part.begin; i < part.end; ++i) {
      const bool calls =
          t_[i].kind == Token::Kind::word && i + 1 < t_.size() && t_[i + 1].is("(") && !is_one_of(t_[i].text, {"min", "max"});
      if (!t_[i].is_gone && (calls || is_one_of(t_[i].text, {"++", "--", "=", "+=", "-=", "*=", "/="}))) return false;
    }
    return true;
  }

  Tokens& t_;
  bool changes_ = false;
};

}  // namespace

bool fold_expressions(Tokens& tokens) {
  // A comment may stand in the middle of an expression.
  if (std::any_of(tokens.begin(), tokens.end(), [](const Token& t) { return t.kind == Token::Kind::note; })) return false;
  Folder folder(tokens);
  folder.fold(0, tokens.size());
  if (!folder.changes()) return false;
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(), [](const Token& t) { return t.is_gone; }), tokens.end());
  return true;
}

}  // namespace oclc
