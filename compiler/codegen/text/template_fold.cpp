#include "compiler/codegen/text/template_fold.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/codegen/text/fold_statements.h"
#include "compiler/codegen/text/fold_tokens.h"

namespace oclc {
namespace {

bool is_keyword(const Token& token) {
  static constexpr std::string_view kWords[] = {"return", "break", "continue", "goto", "do", "else", "case", "default"};
  return std::find(std::begin(kWords), std::end(kWords), token.text) != std::end(kWords);
}

template <class F>
void for_each_token(const Statements& list, const F& f) {
  for (const Statement& s : list) {
    for (const Tokens* tokens : {&s.head, &s.tail}) {
      for (const Token& t : *tokens) f(t);
    }
    for_each_token(s.body, f);
    for_each_token(s.otherwise, f);
  }
}

// The names that statements declare in their own scope.
std::vector<std::string> declared(const Statements& list) {
  std::vector<std::string> names;
  for (const Statement& s : list) {
    const Tokens& t = s.head;
    if (s.kind != Statement::Kind::plain || t.size() < 3 || t[0].kind != Token::Kind::word || is_keyword(t[0])) continue;
    bool initial = false;  // behind a name's `=`
    for (std::size_t i = 1; i + 1 < t.size(); ++i) {
      if (t[i].opens()) i = closing(t, i);
      const Token &before = t[i - 1], &next = t[std::min(i + 1, t.size() - 1)];
      const bool follows = before.kind == Token::Kind::word || before.is("*") || before.is(",");
      if (!initial && t[i].kind == Token::Kind::word && follows &&
          (next.is("=") || next.is(",") || next.is(";") || next.is("[")))
        names.push_back(t[i].text);
      if (t[i].is("=")) initial = true;
      if (t[i].is(",")) initial = false;
    }
  }
  return names;
}

// A loop whose counter has but one value, or none.
struct Trips {
  std::string counter;
  std::int64_t value = 0;
  bool any = true;
};

std::optional<Trips> trips_of(const Tokens& head) {
  // for ( int i = A ; i < B ; ++ i ), or i += C
  std::vector<Tokens> parts(1);
  for (std::size_t i = 2; i + 1 < head.size(); ++i) {
    if (head[i].is(";"))
      parts.emplace_back();
    else
      parts.back().push_back(head[i]);
  }
  if (parts.size() != 3 || parts[0].size() < 4 || !parts[0][0].is("int") || !parts[0][2].is("=")) return std::nullopt;
  const auto rest = [](const Tokens& t, std::size_t from) {
    return from < t.size() ? number_of(Tokens(t.begin() + static_cast<std::ptrdiff_t>(from), t.end())) : std::nullopt;
  };
  Trips trips;
  trips.counter = parts[0][1].text;
  const auto begin = rest(parts[0], 3), end = rest(parts[1], 2);
  if (!begin || !end || !parts[1][0].is(trips.counter) || !(parts[1][1].is("<") || parts[1][1].is("<="))) return std::nullopt;
  std::optional<std::int64_t> step;
  if (parts[2].size() == 2 && parts[2][0].is("++") && parts[2][1].is(trips.counter)) step = 1;
  if (parts[2].size() > 2 && parts[2][0].is(trips.counter) && parts[2][1].is("+=")) step = rest(parts[2], 2);
  if (!step || *step <= 0) return std::nullopt;
  const std::int64_t last = parts[1][1].is("<=") ? *end : *end - 1;
  trips.value = *begin;
  trips.any = *begin <= last;
  return !trips.any || *begin + *step > last ? std::optional(trips) : std::nullopt;
}

// Whether a statement leaves the loop around these, or goes on with its next trip.
bool leaves_loop(const Statements& list) {
  return std::any_of(list.begin(), list.end(), [](const Statement& s) {
    if (s.kind == Statement::Kind::loop) return false;
    if (s.kind == Statement::Kind::other) return true;
    return s.first().is("break") || s.first().is("continue") || leaves_loop(s.body) || leaves_loop(s.otherwise);
  });
}

void put_number(Tokens& tokens, const std::string& name, std::int64_t value) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is(name) || (i > 0 && (tokens[i - 1].is(".") || tokens[i - 1].is("->")))) continue;
    tokens[i].text = std::to_string(value);
    tokens[i].kind = Token::Kind::number;
  }
}

void put_number(Statements& list, const std::string& name, std::int64_t value) {
  for (Statement& s : list) {
    if (s.kind != Statement::Kind::note) put_number(s.head, name, value);
    put_number(s.body, name, value);
    put_number(s.otherwise, name, value);
  }
}

// Whether something assigns to the word, takes its address or declares it anew.
bool is_changed(const Statements& list, const std::string& name) {
  bool changed = false;
  const Token* before = nullptr;
  const Token* word = nullptr;
  for_each_token(list, [&](const Token& t) {
    static constexpr std::string_view kAssign[] = {"=", "+=", "-=", "*=", "/=", "%=", "++", "--"};
    const auto assigns = [](const Token& mark) {
      return std::find(std::begin(kAssign), std::end(kAssign), mark.text) != std::end(kAssign);
    };
    if (word) changed |= assigns(t);
    const bool member = before && (before->is(".") || before->is("->"));
    word = t.is(name) && !member ? &t : nullptr;
    if (word && before) changed |= before->is("++") || before->is("--") || before->is("&") || before->kind == Token::Kind::word;
    before = &t;
  });
  return changed;
}

class Folding {
 public:
  explicit Folding(Statements list) : all_(std::move(list)) {}

  Statements run() {
    for_each_token(all_, [&](const Token& t) { ++count_[t.text]; });
    fold(all_, false);
    return std::move(all_);
  }

 private:
  // `is_ruled`: the list is one statement that a head rules, with the notes before it.
  void fold(Statements& list, bool is_ruled) {
    Statements folded;
    for (Statement& s : list) fold_one(s, folded, is_ruled);
    list = std::move(folded);
  }

  void fold_one(Statement& s, Statements& to, bool is_ruled) {
    switch (s.kind) {
      case Statement::Kind::note:
        break;
      case Statement::Kind::plain:
        fold_head(s.head);
        break;
      case Statement::Kind::block:
        fold(s.body, false);
        break;
      case Statement::Kind::other:
        fold_head(s.head);
        fold(s.body, true);
        if (s.body.empty()) s.body.push_back(nothing());
        break;
      case Statement::Kind::branch:
        return branch(s, to, is_ruled);
      case Statement::Kind::loop:
        return loop(s, to, is_ruled);
    }
    to.push_back(std::move(s));
  }

  void fold_head(Tokens& head) {
    // Without a literal or a parenthesis there is nothing to fold.
    if (std::none_of(head.begin(), head.end(), [](const Token& t) { return t.kind == Token::Kind::number || t.is("("); }))
      return;
    Tokens folded = head;
    if (!fold_expressions(folded)) return;
    for (const Token& t : head) --count_[t.text];
    head = std::move(folded);
    for (const Token& t : head) ++count_[t.text];
  }

  void branch(Statement& s, Statements& to, bool is_ruled) {
    fold_head(s.head);
    const auto condition = number_of(Tokens(s.head.begin() + 2, s.head.end() - 1));
    if (condition) {
      Statements& taken = *condition != 0 ? s.body : s.otherwise;
      forget(*condition != 0 ? s.otherwise : s.body);
      fold(taken, true);
      return put(taken, s.first().space, to, is_ruled);
    }
    fold(s.body, true);
    fold(s.otherwise, true);
    if (s.otherwise.empty()) s.tail.clear();
    if (s.body.empty() && s.otherwise.empty() && !acts(s.head)) return drop_notes(to);
    if (s.body.empty()) s.body.push_back(nothing());
    to.push_back(std::move(s));
  }

  void loop(Statement& s, Statements& to, bool is_ruled) {
    fold_head(s.head);
    const auto trips = trips_of(s.head);
    if (trips && !trips->any) {
      forget(s.body);
      return drop_notes(to);
    }
    if (trips && !is_changed(s.body, trips->counter)) {
      Statements once = s.body;
      put_number(once, trips->counter, trips->value);
      const auto counts = count_;
      fold(once, true);
      if (!leaves_loop(once)) {
        if (!to.empty() && to.back().kind == Statement::Kind::note && to.back().first().text.starts_with("#pragma unroll"))
          to.pop_back();
        return put(once, s.first().space, to, is_ruled);
      }
      count_ = counts;
    }
    fold(s.body, true);
    if (s.body.empty() && s.head[2].is("int")) return drop_notes(to);
    if (s.body.empty()) s.body.push_back(nothing());
    to.push_back(std::move(s));
  }

  // A ruled statement in the place of what ruled it: without braces where nothing that it declares has its name elsewhere.
  void put(Statements& ruled, const std::string& space, Statements& to, bool is_ruled) {
    if (ruled.empty()) return drop_notes(to);
    Statement& last = ruled.back();
    if (last.kind == Statement::Kind::block && last.body.empty()) return drop_notes(to);
    const bool is_alone = ruled.size() == 1;
    const bool follows_head = is_alone && is_ruled && to.empty() && last.kind == Statement::Kind::block;
    ruled.front().first().space = follows_head ? " " : space;
    for (std::size_t i = 0; i + 1 < ruled.size(); ++i) to.push_back(std::move(ruled[i]));
    if (!is_alone) last.first().space = own_line(last.first().space);
    if (last.kind != Statement::Kind::block || is_ruled || !can_open(last.body)) {
      to.push_back(std::move(last));
      return;
    }
    for (Statement& s : last.body) {
      if (s.kind != Statement::Kind::note || s.first().begins_line()) s.first().space = own_line(s.first().space);
      to.push_back(std::move(s));
    }
  }

  static std::string own_line(const std::string& space) { return space.find('\n') == std::string::npos ? "\n" : space; }

  bool can_open(const Statements& body) const {
    std::unordered_map<std::string, int> inside;
    for_each_token(body, [&](const Token& t) { ++inside[t.text]; });
    const auto names = declared(body);
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return count_.at(name) == inside[name]; });
  }

  // What is not there any more counts no words.
  void forget(const Statements& list) {
    for_each_token(list, [&](const Token& t) { --count_[t.text]; });
  }

  // Notes that were before what is gone.
  static void drop_notes(Statements& to) {
    while (!to.empty() && to.back().kind == Statement::Kind::note && to.back().first().begins_line()) to.pop_back();
  }

  // Whether a condition does more than ask.
  static bool acts(const Tokens& head) {
    for (std::size_t i = 2; i < head.size(); ++i) {
      const bool calls = head[i].is("(") && head[i - 1].kind == Token::Kind::word;
      if (calls || head[i].is("=") || head[i].is("++") || head[i].is("--")) return true;
    }
    return false;
  }

  static Statement nothing() {
    Statement s;
    s.head = {Token{" ", ";", Token::Kind::mark, false}};
    return s;
  }

  Statements all_;
  std::unordered_map<std::string, int> count_;  // of words in the body
};

}  // namespace

std::string fold_known(const std::string& body) {
  auto statements = statements_of(body);
  return statements ? text_of(Folding(std::move(*statements)).run()) : body;
}

}  // namespace oclc
