// Where a network's parameters come from: a function of the parameter's full name ("layer1.0.conv1.weight") and its shape.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/tensor.h"

namespace oclc::nn {

using Parameters = std::function<HostTensor(const std::string& name, const std::vector<std::int64_t>& shape)>;

// f32 values for training from scratch, reproducible on every machine: weights uniform in +-sqrt(3 / fan_in) (unit variance of
// the outputs for inputs of unit variance), biases and running means 0, scales (the weights of norms) and running variances 1.
Parameters initial_parameters(std::uint64_t seed = 0);

// The tensors of a state dictionary; CompileError names a parameter that is missing or of another shape.
Parameters state_dictionary(std::map<std::string, HostTensor, std::less<>> tensors);

}  // namespace oclc::nn
