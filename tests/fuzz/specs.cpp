#include "tests/fuzz/specs.h"

namespace oclc::fuzz {
namespace {

constexpr Unspecified kUnspecified[] = {
    {"Bernoulli", "kernels, of random numbers"},
    {"Multinomial", "kernels, of random numbers"},
    {"RandomNormal", "kernels, of random numbers"},
    {"RandomNormalLike", "kernels, of random numbers"},
    {"RandomUniform", "kernels, of random numbers"},
    {"RandomUniformLike", "kernels, of random numbers"},
    {"ConcatFromSequence", "a sequence: known when compiling"},
    {"Optional", "an optional: known when compiling"},
    {"OptionalGetElement", "an optional: known when compiling"},
    {"OptionalHasElement", "an optional: known when compiling"},
    {"SequenceAt", "a sequence: known when compiling"},
    {"SequenceConstruct", "a sequence: known when compiling"},
    {"SequenceEmpty", "a sequence: known when compiling"},
    {"SequenceErase", "a sequence: known when compiling"},
    {"SequenceInsert", "a sequence: known when compiling"},
    {"SequenceLength", "a sequence: known when compiling"},
    {"SplitToSequence", "a sequence: known when compiling"},
    {"RegexFullMatch", "host, on strings"},
    {"StringConcat", "host, on strings"},
    {"StringNormalizer", "host, on strings"},
    {"StringSplit", "host, on strings"},
    {"ai.onnx.preview.training.Adagrad", "kernels, of a domain of its own"},
    {"ai.onnx.preview.training.Adam", "kernels, of a domain of its own"},
    {"ai.onnx.preview.training.Momentum", "kernels, of a domain of its own"},
    {"CausalConvWithState", "kernels, of opsets that the drafts do not reach"},
    {"CumProd", "kernels, of opsets that the drafts do not reach"},
    {"LinearAttention", "kernels, of opsets that the drafts do not reach"},
    {"SwiGLU", "kernels, of opsets that the drafts do not reach"},
    {"Swish", "kernels, of opsets that the drafts do not reach"},
    {"TensorScatter", "kernels, of opsets that the drafts do not reach"},
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
