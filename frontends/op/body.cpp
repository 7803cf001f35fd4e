// Bodies OP(name) as the text that code generation puts calls into.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/ops/user_op.h"
#include "compiler/support/nearest.h"
#include "frontends/op/code.h"

namespace oclc::custom {
namespace {

using Kind = CodeToken::Kind;

class BodyWriter {
 public:
  BodyWriter(const CustomOp& op, UserBody& body, std::vector<Call>& calls)
      : op_(op), code_(*op.code), body_(body), calls_(calls), tokens_(code_tokens(code_.source, 0, code_.source.size())) {
    const Body& range = code_.bodies.find(op.kernel)->second;
    std::erase_if(tokens_, [&](const CodeToken& t) { return t.at < range.begin || t.at >= range.end; });
    done_ = range.begin;
    end_ = range.end;
  }

  std::string run() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      const CodeToken& t = tokens_[at_];
      if (t.kind == Kind::directive) fail(t, "directives outside of OP(..)", fmt::format("'{}'", t.text.substr(0, 40)));
      if (t.kind != Kind::word) continue;
      const bool member = at_ > 0 && (tokens_[at_ - 1].text == "." || tokens_[at_ - 1].text == "->");
      if (!member) word(t);
    }
    return out_ + code_.source.substr(done_, end_ - done_);
  }

 private:
  [[noreturn]] void fail(const CodeToken& at, std::string wanted, std::string found, std::string advice = {}) const {
    fail_at(op_.file, code_.place(at.at), std::move(wanted), std::move(found), std::move(advice));
  }

  // Writes `text` in place of the tokens up to the one at `last`.
  void replace(const CodeToken& first, std::size_t last, const std::string& text) {
    out_ += code_.source.substr(done_, first.at - done_);
    out_ += text;
    done_ = tokens_[last].at + tokens_[last].text.size();
    at_ = last;
  }

  void word(const CodeToken& t) {
    if (t.text == "LOAD" || t.text == "STORE") return access(t, t.text == "STORE");
    if (t.text == "POINTER" || t.text == "HAS" || t.text == "COUNT") return of_operand(t);
    if (t.text == "ID" || t.text == "LID") return coordinate(t);
    if (t.text == "SIZE" || t.text == "LOCAL") {
      const CodeToken& name = argument(1);
      expect(at_ + 3, ")");
      return replace(t, at_ + 3, std::string(name.text));
    }
    if (t.text == "BARRIER" || t.text == "barrier") {
      if (op_.group.empty()) fail(t, "a key 'group' in the head: how many work-items a barrier joins", "none");
      if (t.text == "barrier") return;
      expect(at_ + 1, "(");
      expect(at_ + 2, ")");
      return replace(t, at_ + 2, "barrier(CLK_LOCAL_MEM_FENCE)");
    }
    if (std::find(code_.declared.begin(), code_.declared.end(), t.text) != code_.declared.end())
      replace(t, at_, code_.prefix + std::string(t.text));
  }

  void expect(std::size_t at, std::string_view sign) const {
    const CodeToken& found = token(at);
    if (found.text != sign) fail(found, fmt::format("'{}'", sign), fmt::format("'{}'", found.text));
  }

  const CodeToken& token(std::size_t at) const {
    if (at >= tokens_.size()) fail(tokens_.back(), "the rest of a call", "the end of the body");
    return tokens_[at];
  }

  // The first argument of the call at `at_`, a name.
  const CodeToken& argument(std::size_t) const {
    expect(at_ + 1, "(");
    return token(at_ + 2);
  }

  void coordinate(const CodeToken& t) {
    const CodeToken& number = argument(1);
    expect(at_ + 3, ")");
    const bool digits = number.kind == Kind::number && number.text.size() == 1;
    const auto k = digits ? static_cast<std::size_t>(number.text[0] - '0') : op_.each.size();
    if (k >= op_.each.size())
      fail(number, fmt::format("{}(k) with k below {}, the dimensions of 'each'", t.text, op_.each.size()),
           fmt::format("'{}'", number.text));
    const std::string id = fmt::format("oclc_id_{}", k);
    if (t.text == "ID") return replace(t, at_ + 3, id);
    if (op_.group.empty()) fail(t, "a key 'group' in the head before LID(k)", "none");
    const std::size_t without = op_.each.size() - op_.group.size();
    replace(t, at_ + 3, k < without ? "0" : fmt::format("({} % {})", id, op_.group[k - without]));
  }

  UserOperand& operand(const CodeToken& name, bool written) const {
    auto& list = written ? body_.outputs : body_.inputs;
    const auto known = std::find_if(list.begin(), list.end(), [&](const UserOperand& o) { return o.name == name.text; });
    if (known != list.end()) return *known;
    std::vector<std::string> names;
    for (const UserOperand& o : list) names.push_back(o.name);
    fail(name, written ? "an output" : "an input", fmt::format("'{}'", name.text), did_you_mean(name.text, names));
  }

  void of_operand(const CodeToken& t) {
    const CodeToken& name = argument(1);
    expect(at_ + 3, ")");
    const bool output = t.text == "POINTER" && op_.output(name.text);
    UserOperand& found = operand(name, output);
    if (t.text == "POINTER") {
      if (found.variable) fail(name, "LOAD of operands of variable number", "POINTER");
      found.pointer = true;
      note(t, fmt::format("POINTER({})", name.text));
    } else if ((t.text == "COUNT") != found.variable) {
      fail(name, t.text == "COUNT" ? "an operand of variable number" : "an operand that is no list",
           fmt::format("'{}'", name.text));
    }
    replace(t, at_ + 3, fmt::format("OCLC_{}_{}", t.text, name.text));
  }

  int note(const CodeToken& t, std::string text) {
    calls_.push_back({code_.place(t.at), std::move(text)});
    return static_cast<int>(calls_.size());
  }

  // Arguments behind the operand's name.
  std::size_t arguments_behind(std::size_t name) const {
    std::size_t count = 0;
    int depth = 1;
    for (std::size_t i = name + 1;; ++i) {
      const CodeToken& t = token(i);
      if (t.text == "(" || t.text == "[" || t.text == "{") ++depth;
      if (t.text == ")" || t.text == "]" || t.text == "}") --depth;
      if (depth == 0) return count;
      if (depth == 1 && t.text == ",") ++count;
    }
  }

  void access(const CodeToken& t, bool store) {
    const CodeToken& name = argument(1);
    UserOperand& found = operand(name, store);
    found.element = true;
    const std::size_t wanted = found.rank + (store || found.variable ? 1 : 0), count = arguments_behind(at_ + 2);
    if (count != wanted)
      fail(t,
           fmt::format("{}({}{}{}{})", t.text, name.text, found.variable ? ", which" : "",
                       found.rank == 0 ? "" : fmt::format(", {} position{}", found.rank, found.rank == 1 ? "" : "s"),
                       store ? ", value" : ""),
           fmt::format("{} behind the name", count));
    const int call = note(t, fmt::format("{}({}, ..)", t.text, name.text));
    const bool more = token(at_ + 3).text == ",";
    replace(t, at_ + (more ? 3 : 2), fmt::format("OCLC_{}_{}({}{}", t.text, name.text, call, more ? "," : ""));
  }

  const CustomOp& op_;
  const Code& code_;
  UserBody& body_;
  std::vector<Call>& calls_;
  std::vector<CodeToken> tokens_;
  std::size_t at_ = 0, done_ = 0, end_ = 0;
  std::string out_;
};

}  // namespace

std::string body_text(const CustomOp& op, UserBody& body, std::vector<Call>& calls) {
  return BodyWriter(op, body, calls).run();
}

}  // namespace oclc::custom
