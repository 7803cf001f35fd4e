// The man pages and the scripts for shells that the programs print out of their helps.
#include <algorithm>
#include <set>

#include "tests/cli/cli.h"

namespace manual_test {

using namespace oclc;
using namespace oclc::test;

const std::string kOclrun = OCLC_BINARY_DIR "/bin/oclrun";

// Words that bash offers behind `line`, which ends in the word that is being written.
std::set<std::string> offered(const std::string& program, const std::string& words, int at) {
  const Folder folder;
  REQUIRE(run(std::string(OCLC_BINARY_DIR) + "/bin/" + program + " --completion bash > " + (folder.path / "script").string())
              .status == 0);
  const Outcome o = run("bash -c 'source " + (folder.path / "script").string() + "; COMP_WORDS=(" + words +
                        "); COMP_CWORD=" + std::to_string(at) + "; _" + program + "; printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
  CHECK(o.status == 0);
  std::set<std::string> list;
  for (std::size_t begin = 0; begin < o.text.size();) {
    const std::size_t end = o.text.find('\n', begin);
    list.insert(o.text.substr(begin, end - begin));
    begin = end + 1;
  }
  list.erase("");
  return list;
}

using Words = std::set<std::string>;

TEST_CASE("bash completes options, words behind them, and commands") {
  CHECK(offered("oclc", "oclc --emi", 1) == Words{"--emit-dir"});
  CHECK(offered("oclc", "oclc --color \"\"", 2) == Words{"auto", "always", "never"});
  CHECK(offered("oclc", "oclc ben", 1) == Words{"bench"});
  CHECK(offered("oclc", "oclc conformance --ti", 2) == Words{"--timeout"});
  CHECK(offered("oclc", "oclc --ti", 1) == Words{});
  CHECK(offered("oclrun", "oclrun plan.bin --war", 2) == Words{"--warm", "--warmup"});
  CHECK(offered("oclrun", "oclrun plan.bin --progress j", 3) == Words{"json"});
}

TEST_CASE("every option that a help names is known to its command, and the other way round") {
  const std::regex name("--[a-z][a-z-]+");
  const auto names_in = [&](const std::string& text) {
    Words names;
    for (auto at = std::sregex_iterator(text.begin(), text.end(), name); at != std::sregex_iterator(); ++at)
      names.insert(at->str());
    return names;
  };
  for (const std::string command : {"", "bench", "check-gradients", "conformance", "devices", "export-onnx", "info", "tune"}) {
    CAPTURE(command);
    // An option that is not known is told so; a known one may be told of what it lacks.
    for (const std::string& option : offered("oclc", "oclc " + command + " --", command.empty() ? 1 : 2)) {
      if (option == "--man" || option == "--completion" || option == "--help" || option == "--version") continue;
      CHECK_MESSAGE(!has(run_oclc(command + " " + option).text, "unknown option"), option);
    }
  }
  const Words offers = offered("oclrun", "oclrun p --", 2);
  CHECK(offers.size() > 30);
  for (const std::string& option : names_in(run(kOclrun + " --help").text)) CHECK_MESSAGE(offers.contains(option), option);
  for (const std::string& option : offers) {
    if (option.starts_with("--") && option != "--man" && option != "--help" && option != "--version")
      CHECK_MESSAGE(!has(run(kOclrun + " none.bin " + option).text, "unknown option"), option);
  }
}

TEST_CASE("man pages hold every option and are whole, another shell is refused") {
  for (const std::string program : {"oclc", "oclrun"}) {
    const std::string at = std::string(OCLC_BINARY_DIR) + "/bin/" + program;
    const Outcome page = run(at + " --man");
    CHECK(page.status == 0);
    CHECK(page.text.starts_with(program == "oclc" ? ".TH OCLC 1 \"\" \"oclc " : ".TH OCLRUN 1 \"\" \"oclrun "));
    for (const char* part : {".SH NAME\n", ".SH SYNOPSIS\n", ".SH Messages\n", "\\-\\-color"})
      CHECK_MESSAGE(has(page.text, part), part);
    CHECK(run(at + " --completion tcsh").status == 2);
    CHECK(has(run(at + " --completion fish").text, "complete -c " + program));
    CHECK(run(at + " --completion zsh").text.starts_with("#compdef " + program + "\n"));
  }
  const std::string page = run_oclc("--man").text;
  for (const char* part : {".SH COMMAND bench\n", ".SH COMMAND tune\n", "\\-\\-tolerance", "\\-\\-emit\\-dir"})
    CHECK_MESSAGE(has(page, part), part);
}

TEST_CASE("oclrun's help fits a screen and shows examples, colour and progress are chosen") {
  const Outcome help = run(kOclrun + " --help");
  CHECK(help.status == 0);
  CHECK(std::count(help.text.begin(), help.text.end(), '\n') <= 60);
  CHECK(has(help.text, "oclrun digits.bin --input image=images.npy --print 1"));
  CHECK(run(kOclrun + " none.bin --color always").text.starts_with("oclrun: \033[1;31merror:\033[0m none.bin: "));
  CHECK(run(kOclrun + " none.bin --color never").text.starts_with("oclrun: error: none.bin: "));
  CHECK(run(kOclrun + " none.bin --color sometimes").text ==
        "oclrun: error: --color: wanted auto|always|never, found 'sometimes'; see oclrun --help\n");
  const ModelFolder folder;
  REQUIRE(run_oclc(folder.model() + " --target cpu -q -o " + folder.at("plan.bin")).status == 0);
  const Outcome told = run(kOclrun + " " + folder.at("plan.bin") + " --device cpu --random --dim N=2 --progress json");
  CHECK(told.status == 0);
  CHECK(told.text.starts_with("{\"elapsed_s\":0.0,\"stage\":\"building kernels\"}\n"));
  // What is left is known once a part is done.
  CHECK(has(told.text, "\"left_s\":0.0,\"stage\":\"building kernels\""));
  CHECK(has(told.text, "\"stage\":\"first run (drivers compile on first use)\"}\n"));
}

TEST_CASE("sizes below a MiB are in KiB, below a KiB in bytes") {
  const ModelFolder folder;
  const std::string line = run_oclc(folder.model() + " --target cpu --dim N=64 -o " + folder.at("plan.bin")).text;
  CHECK_MESSAGE(matches(line, ".*: \\d+ kernels, \\d+ launches, arena [0-9.]+ KiB, constants \\d+ B, compiled in [0-9.]+ s\n"),
                line);
}

}  // namespace manual_test
