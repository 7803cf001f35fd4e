// Child processes that work through a list of jobs, so that a crash costs one job.
#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace oclc::tool {

struct PoolOptions {
  int workers = 2;
  double timeout_s = 60;      // of one job; the worker is killed then
  std::size_t most_jobs = 0;  // of one worker, then another takes its place; 0: any number
};

// Runs jobs 0 to count - 1. `start` is called once in each child and gives what does a job and returns its result as text;
// `done` is called here for each job, in the order in which they finish, with that text or, if the child died, with `failure`
// saying how. The calling process must have no threads. Throws a package::Error if processes can not be made.
void run_jobs(std::size_t count, const PoolOptions& options,
              const std::function<std::function<std::string(std::size_t)>()>& start,
              const std::function<void(std::size_t job, const std::string& text, const std::string& failure)>& done);

}  // namespace oclc::tool
