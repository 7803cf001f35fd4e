// What oclrun tells on standard error while it works: errors, warnings and notes, coloured on a terminal, and how far it is.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace oclc::oclrun {

// --color and --progress, the same as oclc's.
enum class Color { automatic, always, never };
enum class ProgressForm { automatic, none, json };  // automatic: a line if standard error is a terminal

struct Console {
  Color color = Color::automatic;
  ProgressForm progress = ProgressForm::automatic;
};
Console& console();

// "oclrun: <kind>: <text>" with the kind (error, warning, note) in its colour.
void tell(const char* kind, const std::string& text);

// A line while something takes longer than a second, removed afterwards; or a JSON object a line for programs, at the beginning
// and whenever a part is done: {"stage": ..., "done": ..., "total": ..., "elapsed_s": ..., "left_s": ...}. What is left is
// reckoned as if all parts took as long as those done.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void told(std::uint32_t done, std::uint32_t total);

 private:
  double seconds() const;
  void show();
  double seconds_left() const;  // below 0: not known
  void json() const;

  std::string what_;
  std::uint32_t parts_done_ = 0, parts_ = 0;  // what was told last, and when
  double told_at_ = 0;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  bool done_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace oclc::oclrun
