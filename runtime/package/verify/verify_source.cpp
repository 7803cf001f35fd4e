#include "runtime/package/verify/verify_source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

namespace oclc::package {
namespace {

constexpr std::array<std::string_view, 5> kReadingDirectives = {"include", "include_next", "import", "embed",
                                                                "__include_macros"};
constexpr std::array<std::string_view, 4> kPragmas = {"OPENCL", "unroll", "nounroll", "STDC"};
constexpr std::array<std::string_view, 2> kAssemblerFiles = {".include", ".incbin"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

// The characters of a text as a preprocessor sees them: lines that end with a backslash are joined.
class Joined {
 public:
  Joined(std::string_view text, std::size_t at) : text_(text), at_(at) { skip_joints(); }
  bool done() const { return at_ >= text_.size(); }
  char now() const { return done() ? '\n' : text_[at_]; }
  void next() {
    ++at_;
    skip_joints();
  }

 private:
  void skip_joints() {
    for (;;) {
      const bool trigraph = text_.substr(std::min(at_, text_.size())).starts_with("?\?/");
      if (done() || (text_[at_] != '\\' && !trigraph)) return;
      std::size_t end = at_ + (trigraph ? 3 : 1);
      while (end < text_.size() && text_[end] != '\n' && text_[end] != '\r' &&
             std::isspace(static_cast<unsigned char>(text_[end])))
        ++end;
      if (end == text_.size() || (text_[end] != '\n' && text_[end] != '\r')) return;
      at_ = end + (text_.substr(end).starts_with("\r\n") ? 2 : 1);
    }
  }

  std::string_view text_;
  std::size_t at_;
};

// Moves past blanks and comments of the line.
void skip_blanks(Joined& at) {
  while (!at.done()) {
    if (at.now() == '/') {
      Joined ahead = at;
      ahead.next();
      if (ahead.now() != '*') return;
      ahead.next();
      for (char before = ' '; !ahead.done() && !(before == '*' && ahead.now() == '/'); ahead.next()) before = ahead.now();
      ahead.next();
      at = ahead;
      continue;
    }
    if (at.now() == '\n' || !std::isspace(static_cast<unsigned char>(at.now()))) return;
    at.next();
  }
}

std::string take_word(Joined& at) {
  constexpr std::size_t kLongest = 64;
  std::string word;
  for (; !at.done() && is_word(at.now()) && word.size() < kLongest; at.next()) word += at.now();
  return word;
}

// Of what stands behind a number sign: a directive, or an operator of a macro, which the words below are none of.
std::string problem_of_directive(std::string_view source, std::size_t begin) {
  Joined at(source, begin);
  skip_blanks(at);
  const std::string word = take_word(at);
  if (is_one_of(word, kReadingDirectives)) return "its source reads a file: #" + word;
  if (word != "pragma") return {};
  skip_blanks(at);
  std::string pragma = take_word(at);
  if (pragma == "clang") {
    skip_blanks(at);
    const std::string of_clang = take_word(at);
    if (of_clang == "loop" || of_clang == "fp") return {};
    pragma += " " + of_clang;
  }
  return is_one_of(pragma, kPragmas) ? std::string() : "its source has the unknown pragma '" + pragma + "'";
}

}  // namespace

std::string problem_of_source(std::string_view source) {
  if (source.empty()) return "has no source";
  if (source.find('\0') != source.npos) return "its source contains a NUL";
  // The number sign and its other spellings.
  for (const std::string_view sign : {std::string_view("#"), std::string_view("%:"), std::string_view("?\?=")})
    for (std::size_t at = 0; (at = source.find(sign, at)) != source.npos; at += sign.size())
      if (std::string problem = problem_of_directive(source, at + sign.size()); !problem.empty()) return problem;
  const auto holds = [&](std::string_view word) { return ::memmem(source.data(), source.size(), word.data(), word.size()); };
  if (holds("_Pragma")) return "its source has the operator _Pragma";
  for (const std::string_view word : kAssemblerFiles)
    if (holds(word)) return "its source reads a file: " + std::string(word);
  return {};
}

std::string problem_of_options(std::string_view options) {
  for (const char c : options)
    if (c < ' ' || c > '~') return "its build options contain a control character";
  while (!options.empty()) {
    const std::size_t begin = options.find_first_not_of(' ');
    if (begin == options.npos) return {};
    options.remove_prefix(begin);
    const std::string_view option = options.substr(0, options.find(' '));
    options.remove_prefix(option.size());
    if (option.starts_with("-cl-")) continue;
    if (!option.starts_with("-D") || option.size() == 2 || option.find_first_of("\"'\\`") != option.npos)
      return "its build options contain '" + std::string(option.substr(0, 80)) + "', allowed are -D and -cl-";
  }
  return {};
}

}  // namespace oclc::package
