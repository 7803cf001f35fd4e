// consumer_cpp PLAN: the same through the C++ header.
#include <cstdio>
#include <oclc/oclc.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  try {
    const oclc::rt::Plan plan = oclc::rt::Plan::load(argv[1]);
    oclc::rt::Session session(plan, oclc::rt::Context());
    const float x[4] = {1, 2, 3, 4};
    float y[4] = {};
    const std::string output = plan.outputs(0).at(0).name;
    session.set_input(0, "x", x, {4});
    session.set_output(0, output, y, {4});
    session.run(0);
    std::printf("%s = %g %g %g %g\n", output.c_str(), y[0], y[1], y[2], y[3]);
  } catch (const oclc::rt::Error& error) {
    std::fprintf(stderr, "%s: %s\n", oclc_status_name(error.status()), error.what());
    return 1;
  }
}
