#include "tests/fake_opencl/objects.h"

#include <algorithm>
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_set>

namespace oclc::fake {

std::recursive_mutex mutex;

namespace {

constexpr unsigned char kCanary = 0xc5;

std::unordered_set<void*>& registry() {
  static std::unordered_set<void*>& objects = *new std::unordered_set<void*>;
  return objects;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string without_comments(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.compare(i, 2, "/*") == 0) {
      i = std::min(text.find("*/", i + 2), text.size());
      i = std::min(i + 2, text.size());
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < text.size();) {
    if (is_word(text[i])) {
      std::size_t end = i;
      while (end < text.size() && is_word(text[end])) ++end;
      words.emplace_back(text.substr(i, end - i));
      i = end;
    } else {
      if (text[i] == '*') words.emplace_back("*");
      ++i;
    }
  }
  return words;
}

bool parse_argument(std::string_view text, Argument& argument) {
  std::vector<std::string> words = words_of(text);
  if (words.empty()) return false;
  argument.name = words.back();
  words.pop_back();
  for (std::string word : words) {
    if (word.starts_with("__")) word.erase(0, 2);
    if (word == "global")
      argument.space = CL_KERNEL_ARG_ADDRESS_GLOBAL;
    else if (word == "constant")
      argument.space = CL_KERNEL_ARG_ADDRESS_CONSTANT;
    else if (word == "local")
      argument.space = CL_KERNEL_ARG_ADDRESS_LOCAL;
    else if (word == "const")
      argument.is_const = true;
    else if (word != "restrict" && word != "volatile")
      argument.type += word;
  }
  return !argument.type.empty();
}

// The place behind the parenthesis that closes the one at `open`.
std::size_t close_of(const std::string& text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return text.npos;
}

}  // namespace

void fault(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::fputs("fake_opencl: ", stderr);
  std::vfprintf(stderr, format, arguments);
  std::fputs("\n", stderr);
  va_end(arguments);
  std::abort();
}

Object::Object(const char* object_kind) : kind(object_kind) { registry().insert(this); }
Object::~Object() { registry().erase(this); }

Object* checked(void* object, const char* kind, const char* call) {
  if (registry().count(object) == 0) fault("%s: %p is no live object, wanted a %s", call, object, kind);
  auto* found = static_cast<Object*>(object);
  if (std::strcmp(found->kind, kind) != 0) fault("%s: wanted a %s, found a %s", call, kind, found->kind);
  return found;
}

long alive() { return static_cast<long>(registry().size()); }

bool parse_kernels(const std::string& source, std::vector<Function>& kernels) {
  const std::string text = without_comments(source);
  for (std::size_t at = 0; (at = text.find("kernel", at)) != text.npos;) {
    const bool begins = at == 0 || !is_word(text[at - 1]) || (at >= 2 && text.compare(at - 2, 2, "__") == 0);
    const bool whole = begins && at + 6 < text.size() && !is_word(text[at + 6]);
    at += 6;
    if (!whole) continue;
    const std::size_t result = text.find("void", at);
    const std::size_t open = result == text.npos ? text.npos : text.find('(', result);
    const std::size_t end = open == text.npos ? text.npos : close_of(text, open);
    if (end == text.npos) return false;
    Function function;
    const std::vector<std::string> name = words_of(std::string_view(text).substr(result + 4, open - result - 4));
    if (name.size() != 1) return false;
    function.name = name[0];
    for (std::size_t begin = open + 1; begin < end - 1;) {
      const std::size_t comma = std::min(text.find(',', begin), end - 1);
      Argument argument;
      if (!parse_argument(std::string_view(text).substr(begin, comma - begin), argument)) return false;
      function.arguments.push_back(argument);
      begin = comma + 1;
    }
    kernels.push_back(std::move(function));
    at = end;
  }
  return std::count(text.begin(), text.end(), '{') == std::count(text.begin(), text.end(), '}');
}

}  // namespace oclc::fake

_cl_mem::_cl_mem(cl_context of, cl_mem_flags with, std::size_t size, void* pointer)
    : Object("memory object"), context(of), flags(with), bytes(size), host(pointer) {
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) {
    data = static_cast<unsigned char*>(host);
    return;
  }
  block = static_cast<unsigned char*>(std::aligned_alloc(kGuard, (bytes + 3 * kGuard - 1) / kGuard * kGuard));
  if (!block) return;
  data = block + kGuard;
  std::memset(block, oclc::fake::kCanary, kGuard);
  std::memset(data + bytes, oclc::fake::kCanary, kGuard);
  if ((flags & CL_MEM_COPY_HOST_PTR) != 0) std::memcpy(data, host, bytes);
}

void _cl_mem::check() const {
  if (!block) return;
  for (std::size_t i = 0; i < kGuard; ++i) {
    if (block[i] != oclc::fake::kCanary) oclc::fake::fault("byte %zu before a buffer of %zu was written", kGuard - i, bytes);
    if (data[bytes + i] != oclc::fake::kCanary) oclc::fake::fault("byte %zu behind a buffer of %zu was written", i, bytes);
  }
}

_cl_mem::~_cl_mem() {
  check();
  std::free(block);
}
