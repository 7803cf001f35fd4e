// weights.json: which tensors a weight file holds, and the stream each is filled from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace oclc::fill {

struct Tensor {
  std::string name;
  std::uint64_t offset_bytes = 0;
  std::uint64_t count_elems = 0;
  std::uint64_t seed = 0;
  float lo = 0.0f;
  float hi = 0.0f;
};

struct Recipe {
  std::string weights;  // name of the file to write, without a folder
  std::uint64_t size_bytes = 0;
  std::vector<Tensor> tensors;
};

// Throws std::filesystem::filesystem_error when the file cannot be opened, and std::runtime_error, naming the file and the
// tensor, when its text is no recipe or a tensor leaves the weight file.
Recipe read_recipe(const std::filesystem::path& file);

// Writes `target` (float32 little endian, zero between tensors) with `workers` threads, atomically: a reader sees the old file
// or the complete new one. Throws std::filesystem::filesystem_error; nothing is left behind then.
void write_weights(const Recipe& recipe, const std::filesystem::path& target, unsigned workers);

}  // namespace oclc::fill
