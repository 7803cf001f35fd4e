// A schedule or a graph in text, read; what is read and well-formed prints as a text that reads back to the same.
#include "compiler/ir/parse.h"
#include "compiler/kernels/parse_schedule.h"
#include "compiler/ops/op_list.h"
#include "compiler/schedule/verify_schedule.h"
#include "compiler/support/error.h"
#include "tests/fuzz/targets/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace oclc;
  const std::string_view text = fuzz::text_of(data, size);
  try {
    if (text.starts_with("G")) {
      parse_module(text.substr(1), find_op);
      return 0;
    }
    const Schedule schedule = parse_schedule(text, find_op);
    if (!verify(schedule).empty()) return 0;
    const std::string once = schedule.text(), twice = parse_schedule(once, find_op).text();
    if (once != twice) fuzz::found("another text when read again");
  } catch (const CompileError& error) {
    if (error.parts().exit_code == ExitCode::internal || !*error.what()) fuzz::found(error.what());
  }
  return 0;
}
