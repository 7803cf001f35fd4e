// The parameters of a model of tests/models.
#pragma once
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "frontends/cpp/parameters.h"

namespace resnet18 {

// Parameters as views of the weight file `file`, float32 at the places that the JSON file `index` gives
// (tests/models/resnet18/weights.json, and what oclc-fill-weights writes from it). Throws std::runtime_error.
inline oclc::nn::Parameters weight_file(const std::string& index, const std::string& file) {
  std::ifstream text(index);
  if (!text) throw std::runtime_error(index + ": cannot be read");
  const nlohmann::json recipe = nlohmann::json::parse(text);
  const auto bytes = std::make_shared<std::vector<char>>(recipe.at("bytes").get<std::size_t>());
  if (!std::ifstream(file, std::ios::binary).read(bytes->data(), static_cast<std::streamsize>(bytes->size()))) {
    throw std::runtime_error(file + ": wanted " + std::to_string(bytes->size()) + " bytes");
  }
  std::map<std::string, std::pair<std::size_t, std::int64_t>> places;
  for (const auto& row : recipe.at("tensors")) places[row.at("name")] = {row.at("offset"), row.at("count")};
  return [=](const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto place = places.find(name);
    if (place == places.end()) throw std::runtime_error(name + ": not in the weight file");
    const auto [offset, count] = place->second;
    oclc::HostTensor tensor(oclc::DType::f32, shape, reinterpret_cast<const std::byte*>(bytes->data()) + offset, bytes);
    if (tensor.elements() != count || offset + tensor.bytes() > bytes->size())
      throw std::runtime_error(name + ": another size than the weight file's");
    return tensor;
  };
}

}  // namespace resnet18
