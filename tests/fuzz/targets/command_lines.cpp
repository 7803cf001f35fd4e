// Words of oclrun's command line, one a line of the input; rules of hyper-parameters; losses and optimizers of oclc's.
#include <cstdio>
#include <vector>

#include "compiler/support/error.h"
#include "compiler/training/training.h"
#include "compiler/tuning/database.h"
#include "tests/fuzz/targets/input.h"
#include "tools/oclrun/options.h"
#include "tools/oclrun/training/rule.h"

namespace {

using namespace oclc;

void try_line(std::string text) {
  std::vector<char*> words = {const_cast<char*>("oclrun")};
  text.push_back('\0');
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    text[end] = '\0';
    words.push_back(text.data() + at);
    at = end + 1;
  }
  words.push_back(nullptr);
  oclrun::parse_options(static_cast<int>(words.size()) - 1, words.data());
}

void try_words(char kind, const std::string& text) {
  switch (kind) {
    case 'r': {
      const oclrun::Rule rule("lr", text);
      for (const std::uint64_t step : {std::uint64_t{0}, std::uint64_t{7}, UINT64_MAX}) rule.at(step);
      return;
    }
    case 'l':
      parse_loss(text);
      return;
    case 'o':
      parse_optimizer(text);
      return;
    case 'm':
      parse_mixed(text);
      return;
    case 't':
      parse_choice(text);
      return;
    default:
      try_line(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (!std::freopen("/dev/null", "w", stdout)) std::exit(2);  // --help prints
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(fuzz::text_of(data + 1, size - 1));
  if (text.find('\0') != text.npos) return 0;  // no word has one
  try {
    try_words(static_cast<char>(data[0]), text);
  } catch (const oclrun::UsageError& error) {
    if (error.message.empty()) fuzz::found("no text");
  } catch (const CompileError& error) {
    if (error.parts().exit_code == ExitCode::internal || !*error.what()) fuzz::found(error.what());
  }
  return 0;
}
