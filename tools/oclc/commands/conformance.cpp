// oclc conformance DIR...: ONNX's backend tests through the compiler and the runtime.
#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "compiler/support/error.h"
#include "runtime/package/writer.h"
#include "tools/oclc/commands.h"
#include "tools/oclc/commands/conformance_case.h"
#include "tools/oclc/commands/worker_pool.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/options.h"

namespace oclc::tool {

const std::string_view kConformanceHelp = R"(usage: oclc conformance DIR... [options]
Compiles, runs and compares ONNX's backend test cases: folders with model.onnx and test_data_set_*, at any depth below each DIR.
Prints one line a case, a table of operators, and as last line `<n> passed, <m> failed`. The value of an input that decides a
shape (axes, sizes) is given to the compiler; -v names such inputs. Constants are not folded: the device computes them.

  --filter GLOB            only cases whose name (node/test_abs, or test_abs) matches
  --expect FILE            a list of cases that fail, with reasons: other failures, and listed cases that pass, are the failures
  --jobs N                 processes (default: one a processor)
  --timeout S              seconds for one case (default: 60)
  --op FILE                operators of your own (repeatable)
  --report                 below each case a line a node: the kernel it runs in, or that it is a view of memory
  --json FILE              everything about each case, as JSON
  --target NAME  -d, --device SEL  --disable PASS[,PASS]  --conv STRATEGY  --gemm ENGINE  --precision CONTRACT  --subnormals keep|flush   see oclc --help
  -v  -q  --color auto|always|never  -h, --help
Exit code 7 if a case fails.
)";

namespace {

using nlohmann::json;

struct ConformanceArguments {
  std::vector<std::string> folders, ops;
  std::string filter, expect, json_file;
  int jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  double timeout_s = 60;
  bool report = false;
  OutputOptions shown;
  BuildOptions build;
};

json document_of(const CaseResult& r) {
  return {{"passed", r.passed}, {"message", r.message}, {"ops", r.ops},           {"given", r.given},
          {"report", r.report}, {"kernels", r.kernels}, {"launches", r.launches}, {"seconds", r.seconds}};
}

CaseResult result_of(const std::string& text) {
  const json d = json::parse(text);
  CaseResult r;
  r.passed = d.at("passed");
  r.message = d.at("message");
  r.ops = d.at("ops").get<std::vector<std::string>>();
  r.given = d.at("given").get<std::vector<std::string>>();
  r.report = d.at("report").get<std::vector<std::string>>();
  r.kernels = d.at("kernels");
  r.launches = d.at("launches");
  r.seconds = d.at("seconds");
  return r;
}

bool matches(const std::string& filter, const std::string& name) {
  return filter.empty() || ::fnmatch(filter.c_str(), name.c_str(), 0) == 0 ||
         ::fnmatch(filter.c_str(), name.substr(name.find('/') + 1).c_str(), 0) == 0;
}

// Names of cases with their reasons: a line each, "#" begins a comment.
std::map<std::string, std::string> read_expected(const std::string& file) {
  std::map<std::string, std::string> expected;
  std::ifstream in(file);
  if (!in) io_error(file, "cannot be read", errno);
  for (std::string line; std::getline(in, line);) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos || line[begin] == '#') continue;
    const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    const std::size_t reason = std::min(line.find_first_not_of(" \t", end), line.size());
    expected[line.substr(begin, end - begin)] = line.substr(reason);
  }
  return expected;
}

// What the drivers print is not part of the report.
void silence() {
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0) return;
  ::dup2(null, STDOUT_FILENO);
  if (!console().verbose) ::dup2(null, STDERR_FILENO);
}

void print_operators(const std::vector<CaseResult>& results) {
  std::map<std::string, std::pair<int, int>> by_op;  // passed, all
  for (const CaseResult& r : results) {
    for (const std::string& op : r.ops) {
      by_op[op].first += r.passed;
      ++by_op[op].second;
    }
  }
  print_result(fmt::format("\n{:40} {:>7} {:>7}\n", "operator", "passed", "of"));
  for (const auto& [op, count] : by_op) print_result(fmt::format("{:40} {:>7} {:>7}\n", op, count.first, count.second));
}

void add_options(CLI::App& app, ConformanceArguments& arguments) {
  app.add_option("dirs", arguments.folders);
  app.add_option("--filter", arguments.filter);
  app.add_option("--expect", arguments.expect);
  app.add_option("--jobs", arguments.jobs)->check(command_line::in_range(1, 1024));
  app.add_option("--timeout", arguments.timeout_s)->check(command_line::above_zero());
  app.add_option("--json", arguments.json_file);
  app.add_flag("--report", arguments.report);
  app.add_flag("-v,--verbose", console().verbose);
  app.add_flag("-q,--quiet", console().quiet);
  app.add_option("--color", arguments.shown.color)->check(command_line::one_of({"auto", "always", "never"}));
  app.add_option("--op", arguments.ops)->allow_extra_args(false);
  add_build_options(app, arguments.build);
}

// The folders of the cases that the filter takes. `file`: what is read, for messages.
std::vector<std::filesystem::path> folders_of(const ConformanceArguments& arguments, std::string& file) {
  std::vector<std::filesystem::path> folders;
  std::size_t all = 0;
  for (const std::string& root : arguments.folders) {
    file = root;
    for (const auto& folder : find_cases(root)) {
      ++all;
      if (matches(arguments.filter, case_name(folder))) folders.push_back(folder);
    }
  }
  file.clear();
  if (all == 0) usage_error("wanted folders that hold a model.onnx, found none");
  if (folders.empty())
    usage_error(fmt::format("wanted --filter that fits a case, found '{}', which fits none of {}", arguments.filter, all));
  return folders;
}

void print_case(const std::string& name, const CaseResult& r, bool surprise, bool lists) {
  std::string line = fmt::format("{} {}", r.passed ? "PASS" : "FAIL", name);
  if (r.passed && console().verbose)
    line += fmt::format(": {} launches, {:.2f} s{}{}", r.launches, r.seconds, r.given.empty() ? "" : ", compiled for ",
                        fmt::join(r.given, ", "));
  if (!r.passed) line += ": " + r.message;
  if (surprise) line += r.passed ? " (listed as a failure)" : " (not listed as a failure)";
  if (!console().quiet || surprise || (!lists && !r.passed)) print_result(line + "\n");
  if (!console().quiet) {
    for (const std::string& row : r.report) print_result("  " + row + "\n");
  }
  flush_results();
}

void write_results(const std::string& file, const std::vector<std::filesystem::path>& folders,
                   const std::vector<CaseResult>& results, int passed) {
  json cases = json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    json one = document_of(results[i]);
    one["name"] = case_name(folders[i]);
    cases.push_back(std::move(one));
  }
  const json document = {{"schema", 1}, {"kind", "conformance"}, {"passed", passed}, {"cases", std::move(cases)}};
  const std::string text = document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  package::write_file(file, std::as_bytes(std::span(text)));
}

}  // namespace

int conformance_command(int argc, char** argv, std::string& file) {
  ConformanceArguments arguments;
  CLI::App app;
  add_options(app, arguments);
  if (parse(app, argc, argv, kConformanceHelp)) return 0;
  if (!arguments.build.target.empty() && !arguments.build.device.empty())
    usage_error("wanted --target or --device, found both");
  if (arguments.folders.empty()) usage_error("wanted a folder of test cases, found none");
  const std::vector<std::filesystem::path> folders = folders_of(arguments, file);
  const bool lists = !arguments.expect.empty();
  const auto expected = lists ? read_expected(arguments.expect) : std::map<std::string, std::string>();

  const std::shared_ptr<const CustomOps> ops = operators(arguments.ops);
  std::vector<CaseResult> results(folders.size());
  const auto start = [&]() -> std::function<std::string(std::size_t)> {
    silence();
    const auto context = std::make_shared<rt::Context>(arguments.build.device);
    Progress progress(ProgressForm::none);
    auto options = std::make_shared<CompileOptions>(compile_options(arguments.build, progress));
    options->progress = nullptr;
    options->report = arguments.report;
    options->disabled.push_back("fold_constants");
    return [&folders, &ops, context, options](std::size_t job) {
      return document_of(run_case(folders[job], *options, *context, ops)).dump(-1, ' ', false, json::error_handler_t::replace);
    };
  };
  int passed = 0, surprises = 0;
  run_jobs(folders.size(), {arguments.jobs, arguments.timeout_s}, start,
           [&](std::size_t job, const std::string& text, const std::string& failure) {
             CaseResult& r = results[job];
             if (failure.empty())
               r = result_of(text);
             else
               r.message = failure;
             passed += r.passed;
             const std::string name = case_name(folders[job]);
             const auto listed = expected.find(name);
             const bool surprise = lists && (listed != expected.end()) == r.passed;
             surprises += surprise;
             print_case(name, r, surprise, lists);
           });
  if (!console().quiet) print_operators(results);
  if (!arguments.json_file.empty()) write_results(arguments.json_file, folders, results, passed);
  if (lists) print_result(fmt::format("{} cases not as listed\n", surprises));
  print_result(fmt::format("{} passed, {} failed\n", passed, static_cast<int>(results.size()) - passed));
  const bool good = lists ? surprises == 0 : passed == static_cast<int>(results.size());
  return static_cast<int>(good ? ExitCode::good : ExitCode::verification);
}

}  // namespace oclc::tool
