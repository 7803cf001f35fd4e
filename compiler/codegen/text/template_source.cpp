#include "compiler/codegen/text/template_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::string_view kInclude = "//@include ", kParameter = "//@param ", kHole = "//@hole ", kLines = "//@lines ",
                           kWith = "//@with ", kOnly = "//@only ", kKernel = "//@kernel ", kPieces = "pieces/";

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

template <class F>
void for_each_line(std::string_view text, const F& f) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    f(text.substr(at, end - at));
    at = end + 1;
  }
}

const TemplateText& row_of(std::string_view name, std::string_view asked_by) {
  const auto& rows = template_texts();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const TemplateText& t) { return t.name == name; });
  OCLC_CHECK(row != rows.end(), fmt::format("no template {}{}{}", name, asked_by.empty() ? "" : ", included by ", asked_by));
  return *row;
}

// What stands for $X in a piece, by X.
using Texts = std::map<char, std::string>;

// Of a line //@include: the piece and its texts.
struct Inclusion {
  std::string piece;
  Texts texts;
};

Inclusion inclusion(std::string_view line) {
  std::string_view rest = trimmed(line);
  Inclusion found{std::string(rest.substr(0, rest.find(' '))), {}};
  rest = trimmed(rest.substr(found.piece.size()));
  while (!rest.empty()) {
    const bool quoted = rest.size() > 2 && rest[2] == '"';
    const std::size_t begin = quoted ? 3 : 2, end = rest.find(quoted ? '"' : ' ', begin);
    OCLC_CHECK(rest.size() >= begin && rest[1] == '=' && (!quoted || end != rest.npos),
               fmt::format("wanted X=TEXT or X=\"TEXT\" for each $X of a piece: //@include {}", line));
    found.texts[rest[0]] = rest.substr(begin, end == rest.npos ? end : end - begin);
    rest.remove_prefix(std::min(end, rest.size() - 1) + 1);
    rest = trimmed(rest);
  }
  return found;
}

// The texts that the //@with line of a piece names, or none.
Texts declared_texts(std::string_view piece) {
  Texts found;
  for_each_line(piece, [&](std::string_view line) {
    if (!line.starts_with(kWith)) return;
    // Letters between single spaces, then what they are for.
    for (std::size_t at = kWith.size(); at < line.size() && line[at] != ' '; at += 2) found[line[at]];
  });
  return found;
}

std::string with_texts(std::string_view line, const Texts& texts) {
  std::string out;
  for (std::size_t at = texts.empty() ? line.npos : line.find('$'); at != line.npos; at = line.find('$')) {
    const auto text = texts.find(at + 1 < line.size() ? line[at + 1] : ' ');
    OCLC_CHECK(text != texts.end(), fmt::format("a piece of a template uses a text that it does not declare: {}", line));
    out += std::string(line.substr(0, at)) + text->second;
    line.remove_prefix(at + 2);
  }
  return out + std::string(line);
}

void put_in(const TemplateText& row, const Texts& texts, std::string_view indent, std::vector<std::string_view>& including,
            std::string& out) {
  OCLC_CHECK(std::find(including.begin(), including.end(), row.name) == including.end(),
             fmt::format("template {} includes itself", row.name));
  const Texts declared = declared_texts(row.text);
  OCLC_CHECK(std::equal(texts.begin(), texts.end(), declared.begin(), declared.end(),
                        [](const auto& given, const auto& wanted) { return given.first == wanted.first; }),
             fmt::format("template {} is included with other texts than its line //@with declares", row.name));
  including.push_back(row.name);
  for_each_line(row.text, [&](std::string_view raw) {
    if (raw.starts_with(kWith)) return;
    const std::string line = with_texts(raw, texts);
    const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view rest = std::string_view(line).substr(first);
    if (rest.starts_with(kInclude)) {
      const Inclusion piece = inclusion(rest.substr(kInclude.size()));
      put_in(row_of(std::string(kPieces) + piece.piece, row.name), piece.texts, std::string(indent) + line.substr(0, first),
             including, out);
    } else {
      const bool at_margin = rest.empty() || (rest.starts_with("#") && !rest.starts_with("#pragma"));
      out += (at_margin ? line : std::string(indent) + line) + "\n";
    }
  });
  including.pop_back();
}

std::vector<std::string> alternatives(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    list.emplace_back(trimmed(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

// "const __global float* restrict a" is named a.
std::string_view name_of_declaration(std::string_view declaration) {
  return declaration.substr(declaration.find_last_of(" *") + 1);
}

// A kernel of one tile a group: the parameters of the tile function up to the tile's number. `facts`: what //@kernel says.
std::string kernel_of_tile(std::string_view text, const std::vector<std::string>& facts) {
  constexpr std::string_view kVoid = "\nvoid ", kTile = "_tile";
  std::string_view name;
  std::size_t open = 0;
  for (std::size_t at = text.find(kVoid); at != text.npos && !name.ends_with(kTile); at = text.find(kVoid, at + 1)) {
    open = text.find('(', at);
    name = text.substr(at + kVoid.size(), open - at - kVoid.size());
  }
  const std::size_t end = text.find(") {", open);
  OCLC_CHECK(name.ends_with(kTile) && end != text.npos, "a kernel of a template without a tile function");
  name.remove_suffix(kTile.size());
  std::string list(text.substr(open + 1, end - open - 1)), parameters, arguments;
  std::replace(list.begin(), list.end(), '\n', ' ');
  for (const std::string& declaration : alternatives(list)) {
    if (name_of_declaration(declaration).ends_with("tile")) break;
    parameters += (parameters.empty() ? "" : ", ") + declaration;
    arguments += fmt::format("{}, ", name_of_declaration(declaration));
  }
  std::string space, passed;
  if (facts.size() > 1) {
    const std::string aligned = facts.size() > 2 ? fmt::format(" __attribute__((aligned({})))", facts[2]) : "";
    space = fmt::format("  __local float space[{}]{};\n", facts[1], aligned);
    passed = ", space";
  }
  return fmt::format(
      "\n__attribute__((reqd_work_group_size({}, 1, 1)))\n__kernel void {}({}) {{\n{}  "
      "{}_tile({}(int)get_group_id(0){});\n}}\n",
      facts.at(0), name, parameters, space, name, arguments, passed);
}

}  // namespace

const TemplateParameter* TemplateSource::parameter(std::string_view wanted) const {
  const auto found =
      std::find_if(parameters.begin(), parameters.end(), [&](const TemplateParameter& p) { return p.name == wanted; });
  return found == parameters.end() ? nullptr : &*found;
}

std::vector<TemplateParameter> declared_parameters(std::string_view line) {
  std::vector<TemplateParameter> list;
  std::string_view rest = trimmed(line);
  if (!rest.starts_with(kParameter)) return list;
  rest.remove_prefix(kParameter.size());
  // One space and another parameter, or two and what they are for.
  while (!rest.empty() && rest.front() != ' ') {
    const std::size_t open = rest.find(" {"), close = rest.find('}');
    OCLC_CHECK(open != std::string_view::npos && close != std::string_view::npos && open < close,
               fmt::format("a parameter of a template without legal values: {}", line));
    const std::string_view head = rest.substr(0, open);
    const std::size_t name_end = std::min(head.find_first_of(" ("), head.size());
    const std::size_t value_at = name_end < head.size() && head[name_end] == '(' ? head.find(')') + 1 : name_end;
    TemplateParameter p;
    p.name = head.substr(0, name_end);
    p.arguments = head.substr(name_end, value_at - name_end);
    p.value = trimmed(head.substr(value_at));
    p.legal = alternatives(rest.substr(open + 2, close - open - 2));
    OCLC_CHECK(!p.name.empty() && !p.value.empty() && !p.legal.empty(),
               fmt::format("a parameter of a template without name, default or legal values: {}", line));
    list.push_back(std::move(p));
    rest.remove_prefix(std::min(close + 2, rest.size()));
  }
  return list;
}

TemplateSource read_template_text(const TemplateText& row) {
  TemplateSource source;
  source.name = row.name;
  std::vector<std::string_view> including;
  put_in(row, {}, "", including, source.text);
  for_each_line(source.text, [&](std::string_view line) {
    for (TemplateParameter& p : declared_parameters(line)) {
      if (!source.parameter(p.name)) source.parameters.push_back(std::move(p));
    }
    for (const std::string_view mark : {kHole, kLines})
      if (trimmed(line).starts_with(mark)) source.holes.emplace(trimmed(line).substr(mark.size()));
  });
  return source;
}

const TemplateSource& read_template(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, TemplateSource, std::less<>> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(name);
  return found != known.end() ? found->second : known.emplace(name, read_template_text(row_of(name, ""))).first->second;
}

std::string standalone_template(std::string_view name) {
  std::string out, only;
  std::vector<std::string> kernel;
  for_each_line(read_template(name).text, [&](std::string_view line) {
    if (line.starts_with(kOnly)) only = line.substr(kOnly.size());
    if (line.starts_with(kKernel)) kernel = alternatives(line.substr(kKernel.size()));
    for (const TemplateParameter& p : declared_parameters(line))
      out += fmt::format("#ifndef {0}\n#define {0}{1} {2}\n#endif\n", p.name, p.arguments, p.value);
    out += std::string(line) + "\n";
  });
  if (!kernel.empty()) out += kernel_of_tile(out, kernel);
  return only.empty() ? out : fmt::format("#ifdef {}\n{}#endif\n", only, out);
}

}  // namespace oclc
