#include "tools/command_line/manual.h"

#include <algorithm>

namespace oclc::command_line {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// What two blanks or more separate.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (std::size_t at = line.find_first_not_of(' '); at != line.npos;) {
    const std::size_t end = std::min(line.find("  ", at), line.size());
    cells.emplace_back(line.substr(at, end - at));
    at = line.find_first_not_of(' ', end);
  }
  return cells;
}

// "-o, --output FILE" and "--conv STRATEGY, --gemm ENGINE".
void add_names(std::vector<HelpOption>& options, const std::string& cell) {
  bool same = false;  // a short name stands before its long one
  for (std::size_t at = 0; at < cell.size();) {
    const std::size_t end = std::min(cell.find(' ', at), cell.size());
    std::string word = cell.substr(at, end - at);
    at = end + 1;
    const bool stops = word.back() == ',' || word.back() == ';';
    if (stops) word.pop_back();
    if (word.front() != '-') {
      if (!options.empty() && options.back().value.empty()) options.back().value = word;
      same = false;
      continue;
    }
    std::string value;
    if (const std::size_t equals = word.find_first_of("=["); equals != word.npos) {
      value = word.substr(equals);
      word.resize(equals);
    }
    const bool is_long = word.starts_with("--");
    if (same && is_long)
      options.back().names.push_back(word);
    else
      options.push_back({{word}, {}, {}});
    if (!value.empty()) options.back().value = value;
    same = !is_long && stops;
  }
}

bool is_row(const std::string& line) { return line.starts_with("  -"); }

// A page's text: backslashes and leading points mean something to roff, and a minus is no hyphen.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && out.empty())
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string without_usage(const std::string& line) { return line.substr(7); }  // as long as "usage: "

// One help text as sections of a page.
std::string body(std::string_view help, const char* heading) {
  std::string out;
  bool usage = false, rows = false;
  for (const std::string& line : lines_of(help)) {
    if (line.starts_with("usage: ") || (usage && line.starts_with("       "))) {
      out += (usage ? std::string(".br\n") : "") + roff(without_usage(line)) + "\n";
      usage = true;
      continue;
    }
    usage = false;
    if (line.empty()) {
      out += ".PP\n";
    } else if (is_row(line)) {
      const std::vector<std::string> cells = cells_of(line);
      std::string names, text;
      for (const std::string& cell : cells) {
        std::string& to = cell.front() == '-' && text.empty() ? names : text;
        to += (to.empty() ? "" : "  ") + cell;
      }
      out += ".TP\n\\fB" + roff(names) + "\\fR\n" + roff(text) + "\n";
      rows = true;
    } else if (line.starts_with("  ")) {
      out += rows ? roff(cells_of(line).empty() ? "" : line.substr(line.find_first_not_of(' '))) + "\n"
                  : ".br\n" + roff(line) + "\n";
    } else if (line.size() < 40 && line.find_first_of(".:;") == line.npos) {
      out += std::string(heading) + " " + roff(line) + "\n";
      rows = false;
    } else {
      out += (rows ? ".PP\n" : "") + roff(line) + "\n";
      rows = false;
    }
  }
  return out;
}

std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// What may stand behind an option: words, files, folders, or anything.
enum class ValueKind { words, file, folder, other };

ValueKind kind_of(const std::string& given) {
  const std::string value = given.starts_with("[=") ? given.substr(2) : given;
  if (value.find('|') != value.npos && value.find('=') == value.npos) return ValueKind::words;
  if (value.find("FILE") != value.npos || value.ends_with(".bin")) return ValueKind::file;
  return value.find("DIR") != value.npos ? ValueKind::folder : ValueKind::other;
}

std::string words_of(std::string value) {
  std::replace(value.begin(), value.end(), '|', ' ');
  std::erase_if(value, [](char c) { return c == '[' || c == ']' || c == '='; });
  return value;
}

std::string joined_names(const std::vector<HelpOption>& options) {
  std::string out;
  for (const HelpOption& o : options)
    for (const std::string& name : o.names) out += (out.empty() ? "" : " ") + name;
  return out;
}

std::string commands_of(std::span<const Manual> manuals) {
  std::string out;
  for (const Manual& m : manuals)
    if (!m.command.empty()) out += (out.empty() ? "" : " ") + std::string(m.command);
  return out;
}

std::string bash(const std::string& program, std::span<const Manual> manuals) {
  std::string out = "_" + program +
                    "() {\n  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=\n" +
                    "  case ${COMP_WORDS[1]} in\n";
  const std::string commands = commands_of(manuals);
  if (!commands.empty()) {
    std::string patterns = commands;
    std::replace(patterns.begin(), patterns.end(), ' ', '|');
    out += "    " + patterns + ") command=${COMP_WORDS[1]} ;;\n";
  }
  out += "  esac\n  case $command:$before in\n";
  for (const Manual& m : manuals) {
    for (const HelpOption& o : options_of(m.help)) {
      const ValueKind kind = kind_of(o.value);
      if (o.value.empty() || kind == ValueKind::other) continue;
      for (const std::string& name : o.names) {
        out += "    " + std::string(m.command) + ":" + name + ") COMPREPLY=($(compgen ";
        out += kind == ValueKind::words ? "-W " + shell_word(words_of(o.value)) : kind == ValueKind::file ? "-f" : "-d";
        out += " -- \"$word\")); return ;;\n";
      }
    }
  }
  out += "  esac\n  if [[ $word == -* ]]; then\n    case $command in\n";
  for (const Manual& m : manuals)
    out += "      " + shell_word(m.command) + ") COMPREPLY=($(compgen -W " + shell_word(joined_names(options_of(m.help))) +
           " -- \"$word\")) ;;\n";
  out += "    esac\n    return\n  fi\n  COMPREPLY=($(compgen -f -- \"$word\"))\n";
  if (!commands.empty())
    out += "  [ \"$COMP_CWORD\" != 1 ] || COMPREPLY+=($(compgen -W " + shell_word(commands) + " -- \"$word\"))\n";
  return out + "}\ncomplete -o filenames -F _" + program + " " + program + "\n";
}

std::string zsh(const std::string& program, std::span<const Manual> manuals) {
  // zsh runs bash's script; descriptions are fish's alone.
  return "#compdef " + program + "\nautoload -U +X bashcompinit && bashcompinit\n" + bash(program, manuals);
}

std::string fish(const std::string& program, std::span<const Manual> manuals) {
  std::string out;
  const std::string commands = commands_of(manuals);
  for (const Manual& m : manuals) {
    const std::string when = m.command.empty()
                                 ? commands.empty() ? "" : " -n " + shell_word("not __fish_seen_subcommand_from " + commands)
                                 : " -n " + shell_word("__fish_seen_subcommand_from " + std::string(m.command));
    if (!m.command.empty()) out += "complete -c " + program + " -n __fish_use_subcommand -a " + std::string(m.command) + "\n";
    for (const HelpOption& o : options_of(m.help)) {
      out += "complete -c " + program + when;
      for (const std::string& name : o.names) out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const ValueKind kind = kind_of(o.value);
      if (!o.value.empty())
        out += kind == ValueKind::words ? " -x -a " + shell_word(words_of(o.value)) : kind == ValueKind::other ? " -x" : " -r";
      if (!o.text.empty()) out += " -d " + shell_word(o.text);
      out += "\n";
    }
  }
  return out;
}

}  // namespace

std::vector<HelpOption> options_of(std::string_view help) {
  std::vector<HelpOption> options;
  std::size_t first = 0;  // of the last row
  bool in_row = false;
  for (const std::string& line : lines_of(help)) {
    std::string text;
    if (is_row(line)) {
      first = options.size();
      in_row = true;
      for (const std::string& cell : cells_of(line)) {
        if (cell.front() == '-' && text.empty())
          add_names(options, cell);
        else
          text += (text.empty() ? "" : " ") + cell;
      }
    } else if (in_row && line.starts_with("   ")) {
      text = " " + line.substr(line.find_first_not_of(' '));
    } else {
      in_row = false;
    }
    for (std::size_t i = first; in_row && i < options.size(); ++i) options[i].text += text;
  }
  return options;
}

std::string man_page(std::string_view program, std::string_view version, std::string_view what,
                     std::span<const Manual> manuals) {
  std::string upper(program);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  std::string out = ".TH " + upper + " 1 \"\" \"" + std::string(program) + " " + std::string(version) + "\"\n.SH NAME\n" +
                    std::string(program) + " \\- " + roff(what) + "\n";
  for (const Manual& m : manuals)
    out += m.command.empty() ? ".SH SYNOPSIS\n" + body(m.help, ".SH")
                             : ".SH COMMAND " + roff(m.command) + "\n" + body(m.help, ".SS");
  return out;
}

std::string completion(std::string_view shell, std::string_view program, std::span<const Manual> manuals) {
  const std::string name(program);
  if (shell == "bash") return bash(name, manuals);
  if (shell == "zsh") return zsh(name, manuals);
  if (shell == "fish") return fish(name, manuals);
  return {};
}

}  // namespace oclc::command_line
