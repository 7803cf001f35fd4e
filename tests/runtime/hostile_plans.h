// What a run of a plan on texts fails with.
#pragma once
#include <string>
#include <vector>

#include "oclc/oclc.hpp"
#include "tests/runtime/error_of.h"

namespace oclc::test {

// Runs `session` on the texts x; its results are in y. The error, which has to be of `status`; empty without one.
inline std::string text_run_error(rt::Session& session, std::vector<const char*>& y, const std::vector<std::string>& x,
                                  oclc_status status) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<const char*> texts;
  for (const std::string& text : x) texts.push_back(text.c_str());
  oclc_session_set_output(session.get(), 0, "y", nullptr);
  session.set_strings(0, "x", texts, {n});
  y.assign(x.size(), nullptr);
  session.set_output(0, "y", y.data(), {n});
  return error_of([&] { session.run(0); }, status);
}

}  // namespace oclc::test
