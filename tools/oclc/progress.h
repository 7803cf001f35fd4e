// Shows what a long command is doing: a line on a terminal once it has taken a second, or JSON lines for programs.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace oclc::tool {

enum class ProgressForm { automatic, none, json };  // automatic: a line if standard error is a terminal

class Progress {
 public:
  explicit Progress(ProgressForm form);
  ~Progress();  // wipes the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What is being done now: "graph", "passes", ...
  void stage(std::string_view name);

 private:
  void show();
  double seconds() const;

  const bool json_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::string stage_;
  bool done_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace oclc::tool
