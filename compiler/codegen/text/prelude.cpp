// Helper functions of generated code: templates whose text is cut by lines "//@provides NAME..." into pieces that are put
// before a kernel when it uses one of the names. A line "//@only MACRO" before them: compilers that do not have the macro skip
// them.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "compiler/codegen/codegen.h"
#include "compiler/codegen/text/template_table.h"
#include "compiler/codegen/text/tokens.h"
#include "compiler/ops/user_op.h"

namespace oclc {
namespace {

constexpr std::string_view kMarker = "//@provides ", kOnlyLine = "\n//@only ";
constexpr std::string_view kFiles[] = {"prelude", "megakernel", "memory",       "lanes",      "half",
                                       "narrow",  "matrix_nv",  "matrix_units", "matrix_xmx", "matrix_wmma",
                                       "groups",  "sm90a",      "tiles_amx",    "digits_amx", "terms"};

using Words = std::unordered_set<std::string_view>;  // of a text that lives as long

struct Piece {
  std::vector<std::string> names;
  std::string text;
  Words words;
};

Words words_of(std::string_view text) {
  Words words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word_char(text[end])) ++end;
    if (end > i) words.emplace(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return words;
}

std::vector<Piece> cut(std::string_view text) {
  std::vector<Piece> pieces;
  const std::size_t only = text.find(kOnlyLine);
  const std::string_view macro =
      only == std::string_view::npos
          ? ""
          : text.substr(only + kOnlyLine.size(), text.find('\n', only + 1) - only - kOnlyLine.size());
  for (std::size_t at = text.find(kMarker); at != std::string_view::npos;) {
    const std::size_t line_end = text.find('\n', at), next = text.find(kMarker, line_end);
    Piece piece;
    for (const std::string_view name : words_of(text.substr(at + kMarker.size(), line_end - at - kMarker.size())))
      piece.names.emplace_back(name);
    std::sort(piece.names.begin(), piece.names.end());
    const std::string_view body = text.substr(line_end + 1, next == std::string_view::npos ? next : next - line_end - 1);
    piece.text = body;
    piece.words = words_of(body);
    if (!macro.empty()) piece.text = fmt::format("#ifdef {}\n{}#endif\n", macro, piece.text);
    pieces.push_back(std::move(piece));
    at = next;
  }
  return pieces;
}

const std::vector<Piece>& pieces() {
  static const std::vector<Piece> all = [] {
    std::vector<Piece> list;
    for (const std::string_view file : kFiles) {
      for (const TemplateText& row : template_texts()) {
        if (row.name != file) continue;
        for (Piece& piece : cut(row.text)) list.push_back(std::move(piece));
      }
    }
    return list;
  }();
  return all;
}

}  // namespace

std::string prelude_for(const std::string& source) {
  const std::string user_code = user_code_for(source);
  Words words = words_of(source);
  words.merge(words_of(user_code));
  std::vector<bool> taken(pieces().size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < pieces().size(); ++i) {
      const Piece& piece = pieces()[i];
      if (taken[i] ||
          std::none_of(piece.names.begin(), piece.names.end(), [&](const std::string& n) { return words.count(n) != 0; }))
        continue;
      taken[i] = changed = true;
      words.insert(piece.words.begin(), piece.words.end());
    }
  }
  std::string text;
  for (std::size_t i = 0; i < pieces().size(); ++i) {
    if (!taken[i]) continue;
    // Guarded, so that the runtime can build the programs of a plan as one.
    const std::string guard = "OCLC_HAVE_" + pieces()[i].names.front();
    text += "#ifndef " + guard + "\n#define " + guard + "\n" + pieces()[i].text + "#endif\n";
  }
  return text + user_code;
}

}  // namespace oclc
