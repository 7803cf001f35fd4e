// Paths of any bytes, and what a process gets from where it is started: masks, zones, locales.
#include <sys/stat.h>

#include "tests/cli/cli.h"

namespace places_test {
namespace {

using namespace oclc::test;
namespace fs = std::filesystem;

const std::string kOclrun = OCLC_BINARY_DIR "/bin/oclrun";

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// What compiling and running the small model in that folder ends with.
void check_works(const fs::path& folder) {
  fs::create_directories(folder);
  const std::string model = folder / "the model.onnx", plan = folder / "plan\xff.bin", out = folder / "y \xe4.npy";
  std::ofstream(model, std::ios::binary) << small_model().bytes();
  const Outcome compiled =
      run_oclc(quoted(model) + " --target cpu -o " + quoted(plan) + " --emit-dir " + quoted(folder / "emitted"));
  CHECK_MESSAGE(compiled.status == 0, compiled.text);
  const Outcome ran = run(kOclrun + " " + quoted(plan) + " --random --dim N=2 --output y=" + quoted(out));
  CHECK_MESSAGE(ran.status == 0, ran.text);
  CHECK(fs::file_size(out) > 0);
  CHECK(fs::exists(folder / "emitted" / "plan.txt"));
}

}  // namespace

TEST_CASE("case 108: paths are bytes: blanks, quotes, line breaks, no UTF-8, and as long as the system takes them") {
  const Folder folder;
  for (const std::string& name :
       {std::string("with blanks  and 'quotes' \"and\" $HOME `id`"), std::string("line\nbreak\ttab"),
        std::string("not utf-8 \xff\xfe\x80"), std::string("-o"), std::string("\xc3\xa4\xe2\x82\xac")})
    check_works(folder.path / name);
  fs::path deep = folder.path;
  for (int i = 0; i < 15; ++i) deep /= std::string(200, static_cast<char>('a' + i));
  check_works(deep);
  const Outcome beyond = run_oclc(quoted(folder.path / std::string(300, 'n')) + " --target cpu -o x");
  CHECK(beyond.status == 6);
  CHECK(has(beyond.text, "File name too long"));
}

TEST_CASE("case 108: a relative path is one from where the program was started, and a mask of 077 is kept") {
  const ModelFolder folder;
  const Outcome compiled =
      run("cd " + folder.path.string() + " && umask 077 && " + kOclc + " model.onnx --target cpu -o ./made.bin && cd / && " +
          kOclrun + " " + folder.at("made.bin") + " --random --dim N=1 --output y=" + folder.at("y.npy"));
  CHECK_MESSAGE(compiled.status == 0, compiled.text);
  struct stat status {};
  REQUIRE(::stat(folder.at("made.bin").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("case 108: zones, languages and temporary folders change no byte of a plan") {
  const ModelFolder folder;
  const std::string compile = kOclc + " " + folder.model() + " --target cpu -o ";
  REQUIRE(run(compile + folder.at("plain.bin")).status == 0);
  const std::string plain = read_bytes(folder.at("plain.bin"));
  for (const char* environment :
       {"TZ=Pacific/Kiritimati", "TZ=:nonsense", "LC_ALL=de_DE.UTF-8", "LC_NUMERIC=fr_FR.UTF-8 LANG=xx", "TMPDIR=/nonexistent",
        "TMPDIR='/tmp/with blank'", "HOME= XDG_CACHE_HOME=relative"}) {
    const Outcome outcome = run(std::string("env ") + environment + " " + compile + folder.at("other.bin"));
    CAPTURE(environment);
    CHECK_MESSAGE(outcome.status == 0, outcome.text);
    CHECK(read_bytes(folder.at("other.bin")) == plain);
  }
}

}  // namespace places_test
