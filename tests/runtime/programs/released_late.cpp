// Runs a plan and releases its handles when the argument says: by destructors of static objects, by atexit, never, or releasing
// nothing twice. Prints the results.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "oclc/oclc.hpp"
#include "tests/runtime/plan_builder.h"

namespace {

using namespace oclc;

struct Handles {
  rt::Plan plan;
  rt::Context context;
  rt::Session session;
};

// Destroyed in this order: before the other's destructor, behind main.
std::unique_ptr<Handles> kept_by_static;
Handles* kept_for_atexit = nullptr;

std::unique_ptr<Handles> made() {
  const auto bytes = test::vector_plan_bytes();
  rt::Plan plan = rt::Plan::load(bytes.data(), bytes.size());
  rt::Context context;
  rt::Session session(plan, context);
  return std::make_unique<Handles>(Handles{std::move(plan), std::move(context), std::move(session)});
}

}  // namespace

int main(int, char** arguments) {
  const std::string when = arguments[1] ? arguments[1] : "";
  std::unique_ptr<Handles> handles = made();
  const float a[] = {1, 2, 3, 4};
  float y[4] = {};
  handles->session.set_input(0, "a", a, {4});
  handles->session.set_input(0, "b", a, {4});
  handles->session.set_output(0, "y", y, {4});
  handles->session.run(0);
  std::printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);
  if (when == "static") {
    kept_by_static = std::move(handles);
  } else if (when == "atexit") {
    kept_for_atexit = handles.release();
    std::atexit([] { delete kept_for_atexit; });
  } else if (when == "never") {
    kept_for_atexit = handles.release();
  } else {
    handles.reset();
    oclc_session_release(nullptr);
    oclc_context_release(nullptr);
    oclc_plan_release(nullptr);
  }
  return 0;
}
