// Plans of every kind, whose kernels do nothing: what mutated plans begin as.
#pragma once
#include <string>
#include <vector>

#include "tests/runtime/plans.h"
#include "tests/runtime/string_plan.h"
#include "tests/runtime/train_plan.h"

namespace oclc::test {

inline fb::PlanT unpacked(const std::vector<std::byte>& bytes) {
  fb::PlanT plan;
  package::Package::from_memory(bytes)->plan().UnPackTo(&plan);
  return plan;
}

// Kernels are code, and may do what they like; what is tried here is all the rest: their bodies do nothing.
inline std::string without_bodies(const std::string& source) {
  std::string out;
  int depth = 0;
  for (const char c : source) {
    if (c == '{' && depth++ == 0) out += "{";
    if (c == '}') --depth;
    if (depth == 0) out += c;
  }
  return out;
}

inline void take_bodies(fb::PlanT& plan) {
  for (auto& p : plan.programs) {
    std::string source = without_bodies(p->source);
    // Functions that give a value have one.
    for (std::size_t at = 0; (at = source.find("float at(", at)) != source.npos; ++at)
      source.insert(source.find('{', at) + 1, "return 0;");
    p->source = source;
  }
}

inline std::vector<fb::PlanT> original_plans() {
  std::vector<fb::PlanT> plans;
  plans.push_back(vector_plan());
  plans.push_back(string_plan());
  plans.push_back(train_plan());
  plans.push_back(unpacked(loop_plan_bytes()));
  plans.push_back(unpacked(counter_plan_bytes()));
  plans.push_back(unpacked(two_output_plan_bytes()));
  for (fb::PlanT& plan : plans) take_bodies(plan);
  return plans;
}

}  // namespace oclc::test
