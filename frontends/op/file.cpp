// The file around heads: its code, its operators by name.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "frontends/op/code.h"
#include "frontends/op/head.h"

namespace oclc::custom {
namespace {

constexpr std::string_view kBegin = "/*! oclc-op ";
constexpr std::size_t kMostBytes = 1 << 20;

Place place_in(std::string_view text, std::size_t at) {
  Place place;
  for (std::size_t i = 0; i < at; ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
  }
  return place;
}

// The text with spaces in place of comments, heads among them: all that is left is code.
std::string without_comments(std::string_view text, const std::string& file) {
  std::string code(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    std::size_t end = i;
    if (rest.starts_with("//")) {
      end = std::min(text.find('\n', i), text.size());
    } else if (rest.starts_with("/*")) {
      const std::size_t close = text.find("*/", i + 2);
      if (close == text.npos) fail_at(file, place_in(text, i), "'*/' that ends the comment", "none");
      end = close + 2;
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i) i += text[i] == '\\' ? 1 : 0;
      continue;
    }
    if (end == i) continue;
    for (std::size_t k = i; k < end; ++k) code[k] = text[k] == '\n' ? '\n' : ' ';
    i = end - 1;
  }
  return code;
}

}  // namespace

std::vector<CustomOp> read_heads(std::string_view text, const std::string& file) {
  if (text.size() > kMostBytes) fail_at(file, {}, fmt::format("a file of at most {} bytes", kMostBytes), "more");
  std::vector<CustomOp> ops;
  std::size_t behind = 0;
  for (std::size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, behind)) {
    const std::size_t version = at + kBegin.size();
    const std::size_t begin = std::min(text.find_first_of(" \t\r\n*", version), text.size());
    if (text.substr(version, begin - version) != "1")
      fail_at(file, place_in(text, version), "version 1 of the format",
              fmt::format("'{}'", text.substr(version, std::min<std::size_t>(begin - version, 20))));
    const std::size_t end = text.find("*/", begin);
    if (end == text.npos) fail_at(file, place_in(text, at), "'*/' that ends the head", "none");
    ops.push_back(read_head(file, text.substr(begin, end - begin), place_in(text, begin)));
    behind = end + 2;
  }
  if (ops.empty()) fail_at(file, {}, fmt::format("a comment that begins '{}1'", kBegin), "none");
  std::string code = without_comments(text, file);
  const bool any = std::any_of(ops.begin(), ops.end(), [](const CustomOp& op) { return op.in_code(); });
  if (const std::size_t at = code.find_first_not_of(" \t\r\n"); at != code.npos && !any)
    fail_at(file, place_in(text, at), "comments alone outside of heads: a formula needs no OpenCL C", "code");
  const auto shared = any ? std::make_shared<const Code>(read_code(std::move(code), file)) : nullptr;
  for (CustomOp& op : ops) {
    if (!op.in_code()) continue;
    check_op(op);
    op.code = shared;
    op.for_host = true;
    op.identity = text;
    check_code(op);
  }
  return ops;
}

const Operand* CustomOp::operand(std::string_view wanted) const {
  const auto at = std::find_if(in.begin(), in.end(), [&](const Operand& o) { return o.name == wanted; });
  return at == in.end() ? nullptr : &*at;
}

const Operand* CustomOp::output(std::string_view wanted) const {
  const auto at = std::find_if(out.begin(), out.end(), [&](const Operand& o) { return o.name == wanted; });
  return at == out.end() ? nullptr : &*at;
}

const AttributeRow* CustomOp::attribute(std::string_view wanted) const {
  const auto at = std::find_if(attributes.begin(), attributes.end(), [&](const AttributeRow& a) { return a.name == wanted; });
  return at == attributes.end() ? nullptr : &*at;
}

}  // namespace oclc::custom

namespace oclc {

void CustomOps::add(CustomOps more) {
  for (auto& [name, op] : more.ops_) {
    const auto [at, fresh] = ops_.emplace(name, op);
    if (!fresh)
      custom::fail_at(op->file, op->place, "one operator of a name",
                      fmt::format("'{}' in {}:{} as well", name, at->second->file, at->second->place.line));
  }
}

const custom::CustomOp* CustomOps::find(std::string_view name) const {
  const auto at = ops_.find(name);
  return at == ops_.end() ? nullptr : at->second.get();
}

std::vector<std::string> CustomOps::names() const {
  std::vector<std::string> list;
  for (const auto& [name, op] : ops_) list.push_back(name);
  return list;
}

CustomOps parse_ops(std::string_view text, const std::string& file) {
  std::vector<std::shared_ptr<custom::CustomOp>> all;
  for (custom::CustomOp& read : custom::read_heads(text, file)) {
    if (!read.in_code()) custom::check_op(read);
    all.push_back(std::make_shared<custom::CustomOp>(std::move(read)));
  }
  for (const auto& op : all) {
    if (op->gradient_op.empty()) continue;
    const auto other = std::find_if(all.begin(), all.end(), [&](const auto& o) { return o->name == op->gradient_op; });
    if (other == all.end() || *other == op || !(*other)->gradient_op.empty())
      custom::fail_at(op->file, op->gradient_place, "another operator of this file, without a gradient_op of its own",
                      fmt::format("'{}'", op->gradient_op));
    op->gradient_of = *other;
  }
  CustomOps ops;
  for (const auto& op : all) {
    CustomOps one;
    one.ops_.emplace(op->name, op);
    ops.add(std::move(one));
  }
  return ops;
}

CustomOps load_ops(const std::filesystem::path& file) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(file, error);
  std::ifstream in(file, std::ios::binary);
  if (folder || !in)
    throw CompileError({.stage = "operator",
                        .wanted = fmt::format("a file of operators that can be read as '{}'", file.string()),
                        .found = folder ? "a folder" : "none",
                        .exit_code = ExitCode::io});
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  return parse_ops(text, file.filename().string());
}

}  // namespace oclc
