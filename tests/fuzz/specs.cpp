#include "tests/fuzz/specs.h"

namespace oclc::fuzz {
namespace {

constexpr Unspecified kUnspecified[] = {
    {"Bernoulli", "random numbers"},
    {"Multinomial", "random numbers"},
    {"RandomNormal", "random numbers"},
    {"RandomNormalLike", "random numbers"},
    {"RandomUniform", "random numbers"},
    {"RandomUniformLike", "random numbers"},
    {"ConcatFromSequence", "a sequence"},
    {"Optional", "an optional"},
    {"OptionalGetElement", "an optional"},
    {"OptionalHasElement", "an optional"},
    {"SequenceAt", "a sequence"},
    {"SequenceConstruct", "a sequence"},
    {"SequenceEmpty", "a sequence"},
    {"SequenceErase", "a sequence"},
    {"SequenceInsert", "a sequence"},
    {"SequenceLength", "a sequence"},
    {"SplitToSequence", "a sequence"},
    {"ai.onnx.preview.training.Adagrad", "another domain"},
    {"ai.onnx.preview.training.Adam", "another domain"},
    {"ai.onnx.preview.training.Momentum", "another domain"},
};

}  // namespace

std::vector<Spec> all_specs() {
  std::vector<Spec> all;
  for (const auto family : {math_specs, activation_specs, movement_specs, reduction_specs, window_specs, other_specs})
    all.insert(all.end(), family().begin(), family().end());
  return all;
}

std::span<const Unspecified> unspecified() { return kUnspecified; }

}  // namespace oclc::fuzz
