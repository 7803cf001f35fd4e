#include "frontends/op/code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "compiler/ops/user_op.h"
#include "compiler/support/fnv1a.h"

namespace oclc::custom {
namespace {

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

constexpr std::string_view kCodeSigns[] = {"<<=", ">>=", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "->",
                                           "++",  "--",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##"};

class CodeReader {
 public:
  explicit CodeReader(Code& code) : code_(code), tokens_(code_tokens(code.source, 0, code.source.size())) {}

  void run() {
    std::vector<std::pair<std::size_t, std::size_t>> kept;
    while (next_ < tokens_.size()) {
      const CodeToken& first = tokens_[next_];
      if (first.kind == CodeToken::Kind::directive) {
        directive(first);
        kept.emplace_back(first.at, first.at + first.text.size());
        ++next_;
      } else if (first.text == "OP") {
        body();
      } else {
        kept.push_back(declaration());
      }
    }
    refuse_words();
    if (kept.empty()) return;
    code_.prefix = fmt::format("{}{:08x}_", kUserPrefix, fnv1a(code_.source) & 0xffffffffu);
    for (const auto& [begin, end] : kept) code_.text += code_.renamed(begin, end) + "\n";
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string wanted, std::string found, std::string advice = {}) const {
    fail_at(code_.file, code_.place(at), std::move(wanted), std::move(found), std::move(advice));
  }

  const CodeToken& token(std::size_t i, std::string_view wanted) const {
    if (i >= tokens_.size()) fail(code_.source.size(), std::string(wanted), "the end of the file");
    return tokens_[i];
  }

  void expect(std::string_view sign) {
    const CodeToken& found = token(next_, fmt::format("'{}'", sign));
    if (found.text != sign) fail(found.at, fmt::format("'{}'", sign), fmt::format("'{}'", found.text));
    ++next_;
  }

  void directive(const CodeToken& line) {
    const std::vector<CodeToken> words = code_tokens(line.text, 1, line.text.size());
    if (words.size() < 2 || words[0].text != "define" || words[1].kind != CodeToken::Kind::word)
      fail(line.at, "no other directive than #define NAME", fmt::format("'{}'", line.text.substr(0, 40)));
    code_.declared.emplace_back(words[1].text);
  }

  // Behind the bracket that closes the one at `next_`.
  void skip_brackets() {
    const std::size_t open = next_;
    int depth = 0;
    for (; next_ < tokens_.size(); ++next_) {
      const std::string_view sign = tokens_[next_].text;
      if (sign == "(" || sign == "[" || sign == "{") ++depth;
      if (sign == ")" || sign == "]" || sign == "}") --depth;
      if (depth == 0) {
        ++next_;
        return;
      }
    }
    fail(tokens_[open].at, fmt::format("what closes '{}'", tokens_[open].text), "the end of the file");
  }

  void body() {
    const std::size_t place = tokens_[next_].at;
    ++next_;
    expect("(");
    const CodeToken& name = token(next_, "the body's name");
    if (name.kind != CodeToken::Kind::word)
      fail(name.at, "OP(name), as the head's 'kernel' has it", fmt::format("'{}'", name.text));
    ++next_;
    expect(")");
    const CodeToken& open = token(next_, "'{'");
    if (open.text != "{") fail(open.at, "'{'", fmt::format("'{}'", open.text));
    const std::size_t begin = open.at + 1;
    skip_brackets();
    const std::size_t end = tokens_[next_ - 1].at;
    if (!code_.bodies.emplace(std::string(name.text), Body{place, begin, end}).second)
      fail(name.at, "one body of a name", fmt::format("OP({}) twice", name.text));
  }

  // A function, a constant or a type: from `next_` to its end.
  std::pair<std::size_t, std::size_t> declaration() {
    const std::size_t first = next_;
    std::size_t parameters = 0;
    bool constant = false, assigned = false;
    while (true) {
      const CodeToken& t = token(next_, "';' or '{'");
      constant = constant || t.text == "constant" || t.text == "__constant" || t.text == "typedef";
      if (t.text == "kernel" || t.text == "__kernel")
        fail(t.at, "functions and OP(name), whose kernels are made by the compiler", fmt::format("'{}'", t.text));
      if (t.text == "=" || t.text == "[") {
        if (!assigned && next_ > first) code_.declared.emplace_back(tokens_[next_ - 1].text);
        assigned = true;
      }
      if (t.text == "(" && parameters == 0 && !assigned) parameters = next_;
      if (t.text == ";") {
        ++next_;
        if (!constant && parameters == 0)
          fail(tokens_[first].at, "functions, constants (__constant) and OP(name)", "a variable");
        if (parameters > 0 && !assigned) fail(tokens_[first].at, "a function with its body", "a declaration alone");
        return {tokens_[first].at, t.at + 1};
      }
      if (t.text == "{" && parameters > first && !assigned) return function(first, parameters);
      if (t.text == "(" || t.text == "{" || t.text == "[")
        skip_brackets();
      else
        ++next_;
    }
  }

  std::pair<std::size_t, std::size_t> function(std::size_t first, std::size_t parameters) {
    Function f;
    const CodeToken& name = tokens_[parameters - 1];
    if (parameters < first + 2 || name.kind != CodeToken::Kind::word)
      fail(tokens_[first].at, "a function with a result type and a name", fmt::format("'{}'", tokens_[first].text));
    f.name = name.text;
    f.place = name.at;
    f.result = code_.source.substr(tokens_[first].at, name.at - tokens_[first].at);
    f.result.erase(f.result.find_last_not_of(" \t\r\n") + 1);
    for (std::size_t i = parameters + 1, begin = i; i < next_; ++i) {
      const bool closes = i + 1 == next_;
      if (!closes && tokens_[i].text != ",") continue;
      if (i > begin) {
        const CodeToken& last = tokens_[i - 1];
        std::string type = code_.source.substr(tokens_[begin].at, last.at - tokens_[begin].at);
        type.erase(type.find_last_not_of(" \t\r\n") + 1);
        f.parameters.push_back({type, std::string(last.text)});
      }
      begin = i + 1;
    }
    f.begin = tokens_[next_].at + 1;
    skip_brackets();
    f.end = tokens_[next_ - 1].at;
    code_.declared.push_back(f.name);
    if (code_.function(f.name)) fail(f.place, "one function of a name", fmt::format("'{}' twice", f.name));
    code_.functions.push_back(f);
    return {tokens_[first].at, f.end + 1};
  }

  void refuse_words() const {
    for (const CodeToken& t : tokens_) {
      for (const std::string_view word : {"get_global_id", "get_group_id", "get_global_size", "get_num_groups"}) {
        if (t.text == word)
          fail(t.at, "ID(k), the point of the index space", fmt::format("'{}'", word),
               "points are spread over work-items by the compiler");
      }
      if (t.text == "get_local_id" || t.text == "get_local_size")
        fail(t.at, "LID(k) and the sizes of 'group'", fmt::format("'{}'", t.text));
      if (t.kind == CodeToken::Kind::word && (t.text.starts_with("OCLC_") || t.text.starts_with("oclc_id_")))
        fail(t.at, "names that do not begin with OCLC_ or oclc_id_", fmt::format("'{}'", t.text));
    }
  }

  Code& code_;
  std::vector<CodeToken> tokens_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<CodeToken> code_tokens(std::string_view text, std::size_t begin, std::size_t end) {
  using Kind = CodeToken::Kind;
  std::vector<CodeToken> tokens;
  bool line_begins = true;
  for (std::size_t i = begin; i < end;) {
    const char c = text[i];
    if (std::isspace(static_cast<unsigned char>(c))) {
      line_begins = line_begins || c == '\n';
      ++i;
      continue;
    }
    std::size_t stop = i + 1;
    Kind kind = Kind::sign;
    if (c == '#' && line_begins) {
      kind = Kind::directive;
      while (stop < end && !(text[stop] == '\n' && text[stop - 1] != '\\')) ++stop;
    } else if (std::isdigit(static_cast<unsigned char>(c)) ||
               (c == '.' && i + 1 < end && std::isdigit(static_cast<unsigned char>(text[i + 1])))) {
      kind = Kind::number;
      while (stop < end && (is_word_character(text[stop]) || text[stop] == '.' ||
                            ((text[stop] == '+' || text[stop] == '-') && (text[stop - 1] == 'e' || text[stop - 1] == 'E' ||
                                                                          text[stop - 1] == 'p' || text[stop - 1] == 'P'))))
        ++stop;
    } else if (is_word_character(c)) {
      kind = Kind::word;
      while (stop < end && is_word_character(text[stop])) ++stop;
    } else if (c == '"' || c == '\'') {
      kind = Kind::text;
      while (stop < end && text[stop] != c && text[stop] != '\n') stop += text[stop] == '\\' ? 2 : 1;
      stop = std::min(stop + 1, end);
    } else {
      for (const std::string_view sign : kCodeSigns) {
        if (!text.substr(i, end - i).starts_with(sign)) continue;
        stop = i + sign.size();
        break;
      }
    }
    tokens.push_back({kind, text.substr(i, stop - i), i});
    line_begins = false;
    i = stop;
  }
  return tokens;
}

const Function* Code::function(std::string_view name) const {
  const auto at = std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
  return at == functions.end() ? nullptr : &*at;
}

Place Code::place(std::size_t at) const {
  Place place;
  for (std::size_t i = 0; i < at && i < source.size(); ++i) {
    place.column = source[i] == '\n' ? 1 : place.column + 1;
    place.line += source[i] == '\n' ? 1 : 0;
  }
  return place;
}

std::string Code::renamed(std::size_t begin, std::size_t end,
                          const std::map<std::string, std::string, std::less<>>& words) const {
  std::string out;
  std::size_t done = begin;
  const std::string_view all = source;
  std::string_view before;
  const auto word = [&](const CodeToken& t) {
    const auto given = words.find(t.text);
    const bool member = before == "." || before == "->";
    const bool declares = std::find(declared.begin(), declared.end(), t.text) != declared.end();
    if (member || (given == words.end() && !declares)) return;
    out += all.substr(done, t.at - done);
    out += given != words.end() ? given->second : prefix + std::string(t.text);
    done = t.at + t.text.size();
  };
  for (const CodeToken& t : code_tokens(all, begin, end)) {
    if (t.kind == CodeToken::Kind::word) word(t);
    if (t.kind == CodeToken::Kind::directive) {
      for (const CodeToken& inner : code_tokens(all, t.at + 1, t.at + t.text.size())) {
        if (inner.kind == CodeToken::Kind::word) word(inner);
        before = inner.text;
      }
    }
    before = t.text;
  }
  return out + std::string(all.substr(done, end - done));
}

Code read_code(std::string source, const std::string& file) {
  Code code;
  code.file = file;
  code.source = std::move(source);
  CodeReader(code).run();
  return code;
}

}  // namespace oclc::custom
