// One session of a small plan with a program cache, and what the cache did.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "oclc/oclc.hpp"
#include "tests/runtime/plans.h"

namespace oclc::test {

// Sets or removes an environment variable for a scope.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    had_ = old != nullptr;
    if (had_) old_ = old;
    set(value);
  }
  ~Setting() { set(had_ ? old_.c_str() : nullptr); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  void set(const char* value) { value ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* name_;
  std::string old_;
  bool had_ = false;
};

struct Made {
  oclc_stats stats{};
  std::vector<float> result;
  std::vector<std::string> messages;
  int from_plan = 0, from_cache = 0;  // programs, by where their binaries were taken from
};

inline void add_message(void* list, oclc_severity, const char* text) {
  static_cast<std::vector<std::string>*>(list)->emplace_back(text);
}

// One run of the vector plan on four numbers.
inline std::vector<float> run_vector(rt::Session& session) {
  const std::vector<float> a = {1, 2, 3, 4};
  std::vector<float> y(4);
  session.set_input(0, "a", a.data(), {4});
  session.set_input(0, "b", a.data(), {4});
  session.set_output(0, "y", y.data(), {4});
  session.run(0);
  return y;
}

// Makes a session with the cache in `folder` (null: as the environment says) and runs it.
inline Made make(const char* folder) {
  Made made;
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.cache_dir = folder;
  options.message = add_message;
  options.user = &made.messages;
  const rt::Context context(options);
  const auto bytes = vector_plan_bytes();
  rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), context);
  made.result = run_vector(session);
  made.stats = session.stats();
  return made;
}

inline const std::vector<float> kExpected = {3, 9, 19, 33};

inline std::vector<std::filesystem::path> entries(const std::string& folder) {
  std::vector<std::filesystem::path> list;
  for (const auto& item : std::filesystem::directory_iterator(folder)) list.push_back(item.path());
  return list;
}

}  // namespace oclc::test
