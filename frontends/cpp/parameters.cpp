#include "frontends/cpp/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/support/error.h"
#include "compiler/support/fnv1a.h"

namespace oclc::nn {
namespace {

// The finaliser of splitmix64.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

Parameters initial_parameters(std::uint64_t seed) {
  return [seed](const std::string& name, const std::vector<std::int64_t>& shape) {
    HostTensor tensor(DType::f32, shape);
    const std::string_view kind = std::string_view(name).substr(name.rfind('.') + 1);
    if (shape.size() < 2) {
      const double value = kind == "weight" || kind == "running_var" ? 1 : 0;
      for (std::int64_t i = 0; i < tensor.elements(); ++i) tensor.set(i, value);
      return tensor;
    }
    const double fan_in = static_cast<double>(tensor.elements()) / static_cast<double>(std::max<std::int64_t>(shape[0], 1));
    const double limit = std::sqrt(3 / std::max(fan_in, 1.0));
    const std::uint64_t stream = mix(seed ^ fnv1a(name));
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      const std::uint64_t bits = mix(stream + (static_cast<std::uint64_t>(i) + 1) * 0x9E3779B97F4A7C15u);
      tensor.set(i, limit * (static_cast<double>(bits >> 40) * 0x1p-23 - 1));
    }
    return tensor;
  };
}

Parameters state_dictionary(std::map<std::string, HostTensor, std::less<>> tensors) {
  return [tensors = std::move(tensors)](const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto at = tensors.find(name);
    const std::string wanted = fmt::format("a tensor of shape [{}]", fmt::join(shape, ", "));
    if (at == tensors.end() || at->second.shape() != shape) {
      throw CompileError({.stage = "network",
                          .node = name,
                          .op = "parameter",
                          .wanted = wanted,
                          .found = at == tensors.end() ? "none of that name" : at->second.type().text()});
    }
    return at->second;
  };
}

}  // namespace oclc::nn
