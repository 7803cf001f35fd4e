// ONNX models of random operators (tests/fuzz), and models that are almost right.
#pragma once
#include <memory>
#include <random>
#include <string>

#include "plan_generated.h"
#include "tests/fuzz/generate.h"

namespace oclc::fuzz {

// One random use of an operator; a graph where `seed` says so.
oclc_onnx::ModelProto small_model(std::uint64_t seed);

// The plan for a CPU of a random graph; null where the compiler refuses the graph.
std::unique_ptr<plan::PlanT> compiled_graph(std::uint64_t seed);

// Changes one to four things of a model, which may be one that no file has.
void mutate_model(oclc_onnx::ModelProto& model, std::mt19937_64& random);

}  // namespace oclc::fuzz
