// parses_back OCLC MODEL TARGET..: what OCLC prints of MODEL behind the stages kernels and schedule is a text that
// parse_schedule() reads back to the same text. Ends with 1 at the first line that differs.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "compiler/kernels/parse_schedule.h"
#include "compiler/ops/op_list.h"
#include "compiler/schedule/verify_schedule.h"

namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char block[65536];
  for (std::size_t n = 0; pipe && (n = fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, n);
  if (!pipe || pclose(pipe) != 0 || text.empty()) {
    std::cerr << "failed: " << command << "\n";
    std::exit(2);
  }
  return text;
}

// The first line of `a` that is another one in `b`.
std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  std::string one, other;
  while (std::getline(left, one)) {
    if (!std::getline(right, other) || one != other) return one + "\n" + other;
  }
  return "";
}

// Without what the text has for readers alone.
std::string without_choices(const std::string& text) {
  std::istringstream lines(text);
  std::string line, out;
  while (std::getline(lines, line)) {
    if (!line.starts_with("  // by ")) out += line + "\n";
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  for (int i = 3; i < argc; ++i) {
    for (const char* stage : {"kernels", "schedule"}) {
      const std::string printed = without_choices(
          output_of(std::string(argv[1]) + " -q --target " + argv[i] + " --stop-after=" + stage + " " + argv[2]));
      const oclc::Schedule parsed = oclc::parse_schedule(printed, oclc::find_op);
      const std::string again = parsed.text(), problem = oclc::verify(parsed);
      if (again == printed && problem.empty()) {
        std::cout << argv[2] << " " << argv[i] << " " << stage << ": " << parsed.kernels.size() << " kernels, "
                  << printed.size() << " bytes\n";
        continue;
      }
      std::cout << argv[2] << " " << argv[i] << " " << stage << " differs:\n"
                << first_difference(printed, again) << problem << "\n";
      return 1;
    }
  }
}
