#include "tools/oclc/commands/worker_pool.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <set>
#include <string>

namespace oclc::tool {
namespace {

// The processes that did seven jobs.
std::set<std::string> processes_of(std::size_t most_jobs) {
  std::set<std::string> processes, jobs;
  run_jobs(
      7, {1, 60, most_jobs},
      [] { return [](std::size_t job) { return std::to_string(job) + " " + std::to_string(::getpid()); }; },
      [&](std::size_t job, const std::string& text, const std::string& failure) {
        CHECK(failure == "");
        CHECK(text.starts_with(std::to_string(job) + " "));
        jobs.insert(text.substr(0, 1));
        processes.insert(text.substr(2));
      });
  CHECK(jobs.size() == 7);
  return processes;
}

TEST_CASE("a worker is replaced when it has done its jobs") {
  CHECK(processes_of(0).size() == 1);
  CHECK(processes_of(2).size() == 4);
  CHECK(processes_of(7).size() == 1);
}

TEST_CASE("a job that ends its worker costs that job alone") {
  std::size_t good = 0;
  std::string told;
  run_jobs(
      4, {1, 60, 2},
      [] {
        return [](std::size_t job) {
          if (job == 1) ::_exit(3);
          return std::string("done");
        };
      },
      [&](std::size_t job, const std::string& text, const std::string& failure) {
        good += text == "done";
        if (!failure.empty()) told += std::to_string(job) + ": " + failure;
      });
  CHECK(good == 3);
  CHECK(told == "1: the process ended with code 3");
}

}  // namespace
}  // namespace oclc::tool
