// Plans whose kernels have steps that a driver may compile apart, as megakernels have.
#pragma once
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/runtime/plan_builder.h"

namespace oclc::test {

// A name that no program had before, so that the driver has nothing of it on disk.
inline std::string fresh_name() {
  static int number = 0;
  return "steps_" + std::to_string(::getpid()) + "_" +
         std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + "_" + std::to_string(number++);
}

// Enough for the driver's front end to need its time.
constexpr int kManyFunctions = 4000;
inline std::string many_functions(const std::string& name, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string f = name + "_f" + std::to_string(i);
    text += "float " + f + "(float a, float b) { float c = fma(a, b, " + std::to_string(i) +
            ".0f); return c > a ? c * b : sqrt(c + b); }\n";
  }
  return text;
}

// y = (x + 1) * 3 in a kernel of two steps.
inline std::unique_ptr<fb::ProgramT> two_steps(const std::string& name, int functions) {
  const std::string macro = name + "_";
  auto p = program(name, "#ifdef " + macro + "LAST\n#define " + macro + "HAS(part) (" + macro + "FIRST <= part && part < " +
                             macro + "LAST)\n#else\n#define " + macro + "HAS(part) 1\n#endif\n#if " + macro + "HAS(0)\n" +
                             many_functions(name, functions) + "#endif\n" +
                             "__attribute__((reqd_work_group_size(1, 1, 1)))\n"
                             "kernel void " +
                             name +
                             "(global const float* x, long x0, global float* y, long y0, int first, int last) {\n"
                             "  size_t i = get_global_id(0);\n"
                             "#if " +
                             macro +
                             "HAS(0)\n"
                             "  if (first <= 0 && 0 < last) y[y0 + i] = x[x0 + i] + 1;\n"
                             "#endif\n"
                             "#if " +
                             macro +
                             "HAS(1)\n"
                             "  if (first <= 1 && 1 < last) y[y0 + i] *= 3;\n"
                             "#endif\n}\n");
  p->mergeable = true;
  p->part_bytes = {30000, 30000};
  return p;
}

// The same with a kernel for each step. The one of both waits for nobody, and is there as a whole alone: in pieces it does
// something else.
inline std::unique_ptr<fb::ProgramT> two_kernels(const std::string& name, int functions) {
  const std::string parameters =
                        "(global const float* x, long x0, global float* y, long y0, int first, int last) {\n"
                        "  size_t i = get_global_id(0);\n",
                    head = "__attribute__((reqd_work_group_size(1, 1, 1)))\nkernel void " + name;
  std::string text = "#ifdef " + name + "_LAST\n" + head + parameters + "  y[y0 + i] = -1;\n}\n";
  for (int step = 0; step < 2; ++step)
    text += "#if " + name + "_FIRST <= " + std::to_string(step) + " && " + std::to_string(step) + " < " + name + "_LAST\n" +
            head + "_k" + std::to_string(step) + parameters +
            (step == 0 ? "  y[y0 + i] = x[x0 + i] + 1;\n" : "  y[y0 + i] *= 3;\n") + "}\n#endif\n";
  text +=
      "#else\n" + many_functions(name, functions) + head + parameters +
      "  if (first <= 0 && 0 < last) y[y0 + i] = x[x0 + i] + 1;\n  if (first <= 1 && 1 < last) y[y0 + i] *= 3;\n}\n#endif\n";
  auto p = program(name, text);
  p->mergeable = true;
  p->part_bytes = {30000, 30000};
  p->own_kernels = true;
  return p;
}

inline void add_entry(fb::PlanT& plan, const std::string& entry_name, const std::string& kernel, int functions) {
  auto e = entry(entry_name);
  e->inputs.push_back(binding("x", 0, {4}));
  e->outputs.push_back(binding("y", 1, {4}));
  e->steps.push_back(launch(kernel, static_cast<int>(plan.programs.size()), {4}, {1}, reads(0), writes(1)));
  for (const char* name : {"first", "second"}) {
    auto part = std::make_unique<fb::PartT>();
    part->name = name;
    e->steps[0]->body.AsLaunch()->parts.push_back(std::move(part));
  }
  plan.entries.push_back(std::move(e));
  plan.programs.push_back(two_steps(kernel, functions));
}

inline fb::PlanT plan_of(const std::vector<std::string>& kernels, int functions = kManyFunctions) {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("x", fb::BufferKind::input, 16));
  plan.buffers.push_back(buffer("y", fb::BufferKind::output, 16));
  for (std::size_t i = 0; i < kernels.size(); ++i) add_entry(plan, "entry" + std::to_string(i), kernels[i], functions);
  return plan;
}

inline fb::PlanT plan_of_kernels(const std::string& name, int functions = kManyFunctions) {
  fb::PlanT plan = plan_of({name}, functions);
  plan.programs[0] = two_kernels(name, functions);
  auto& parts = plan.entries[0]->steps[0]->body.AsLaunch()->parts;
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i]->kernel = name + "_k" + std::to_string(i);
  return plan;
}

}  // namespace oclc::test
