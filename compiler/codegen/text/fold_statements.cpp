#include "compiler/codegen/text/fold_statements.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace oclc {
namespace {

struct Unreadable {};

class Reader {
 public:
  explicit Reader(Tokens tokens) : t_(std::move(tokens)) {}

  Statements all() {
    Statements list;
    while (at_ < t_.size()) list.push_back(next());
    return list;
  }

 private:
  const Token& here() const {
    if (at_ >= t_.size()) throw Unreadable();
    return t_[at_];
  }

  Tokens take(std::size_t end) {
    if (end > t_.size()) throw Unreadable();
    Tokens taken(std::make_move_iterator(t_.begin() + static_cast<std::ptrdiff_t>(at_)),
                 std::make_move_iterator(t_.begin() + static_cast<std::ptrdiff_t>(end)));
    at_ = end;
    return taken;
  }

  Statement next() {
    Statement s;
    if (here().kind == Token::Kind::note) {
      if (here().text[0] == '#' && !here().text.starts_with("#pragma")) throw Unreadable();
      s.kind = Statement::Kind::note;
      s.head = take(at_ + 1);
    } else if (here().is("{")) {
      s.kind = Statement::Kind::block;
      s.head = take(at_ + 1);
      while (!here().is("}")) s.body.push_back(next());
      s.tail = take(at_ + 1);
    } else if (here().is("if") || here().is("for") || here().is("while") || here().is("switch")) {
      s.kind = here().is("if") ? Statement::Kind::branch : here().is("for") ? Statement::Kind::loop : Statement::Kind::other;
      if (at_ + 1 >= t_.size() || !t_[at_ + 1].is("(")) throw Unreadable();
      s.head = take(closing(t_, at_ + 1) + 1);
      s.body = ruled();
      if (s.kind == Statement::Kind::branch && at_ < t_.size() && here().is("else")) {
        s.tail = take(at_ + 1);
        s.otherwise = ruled();
      }
    } else {
      if (here().is("do") || here().is("}") || here().is(")")) throw Unreadable();
      std::size_t end = at_;
      while (end < t_.size() && !t_[end].is(";")) {
        if (t_[end].is("}")) throw Unreadable();
        end = t_[end].opens() ? closing(t_, end) + 1 : end + 1;
      }
      s.head = take(end + 1);
    }
    return s;
  }

  // A statement with the notes before it.
  Statements ruled() {
    Statements list;
    do list.push_back(next());
    while (list.back().kind == Statement::Kind::note);
    return list;
  }

  Tokens t_;
  std::size_t at_ = 0;
};

class Printer {
 public:
  std::string run(const Statements& list) {
    for (const Statement& s : list) print(s, 1);
    if (!out_.empty() && out_.front() == '\n') out_.erase(0, 1);
    return out_ + "\n";
  }

 private:
  void print(const Statement& s, int depth) {
    // Lines of a statement behind its first are moved as far as that.
    if (s.head.front().begins_line() || out_.empty()) {
      const std::string& space = s.head.front().space;
      shift_ = depth * 2 - static_cast<int>(space.size() - space.find_last_of('\n') - 1);
      out_ += new_line(depth);
    } else {
      out_ += s.head.front().space;
    }
    out_ += s.head.front().text;
    for (std::size_t i = 1; i < s.head.size(); ++i) put(s.head[i]);
    const bool is_block = s.kind == Statement::Kind::block;
    for (const Statement& inner : s.body) print(inner, !is_block && inner.kind == Statement::Kind::block ? depth : depth + 1);
    if (s.tail.empty()) return;
    out_ += s.tail.front().begins_line() ? new_line(depth) : s.tail.front().space;
    out_ += s.tail.front().text;
    for (const Statement& inner : s.otherwise)
      print(inner, inner.kind == Statement::Kind::block || inner.kind == Statement::Kind::branch ? depth : depth + 1);
  }

  static std::string new_line(int depth) { return "\n" + std::string(static_cast<std::size_t>(depth) * 2, ' '); }

  void put(const Token& token) {
    if (!token.begins_line()) {
      out_ += token.space + token.text;
      return;
    }
    const auto column = static_cast<int>(token.space.size() - token.space.find_last_of('\n') - 1);
    out_ += "\n" + std::string(static_cast<std::size_t>(std::max(column + shift_, 0)), ' ') + token.text;
  }

  std::string out_;
  int shift_ = 0;
};

}  // namespace

std::optional<Statements> statements_of(const std::string& text) {
  try {
    return Reader(tokens_of("\n" + text)).all();
  } catch (const Unreadable&) {
    return std::nullopt;
  }
}

std::string text_of(const Statements& statements) { return Printer().run(statements); }

}  // namespace oclc
