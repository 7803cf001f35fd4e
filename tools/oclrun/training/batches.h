// Batches drawn from files of samples.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oclc/oclc.hpp"
#include "tools/io/tensor.h"
#include "tools/oclrun/options.h"

namespace oclc::oclrun {

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011): the first two of the four
// words for counter (low, high of `a`, low, high of `b`) and key (low, high of `key`), the first word lowest.
std::uint64_t philox(std::uint64_t key, std::uint64_t a, std::uint64_t b);

// The order of `count` samples in an epoch: Fisher and Yates, for i = count - 1 down to 1 sample i is exchanged with sample
// floor(philox(seed, i, epoch) * (i + 1) / 2^64).
std::vector<std::uint64_t> shuffled(std::uint64_t count, std::uint64_t seed, std::uint64_t epoch);

// Throws io::FileError naming the file, the element and its value if a value is outside of the input's limit.
void check_limit(const oclc_binding_info& input, const std::string& file, const io::Tensor& t);

// Samples of all inputs, along the first axis. Place p of the endless stream of samples is place p mod count of epoch p /
// count; batch b takes places b * size to (b + 1) * size - 1, so that a batch may reach into the next epoch.
class Batches {
 public:
  struct Source {
    std::string file;
    io::Tensor samples;
    std::vector<std::int64_t> shape;  // of a batch
    oclc_dtype dtype = OCLC_F32;      // of the input: the samples' own, but where they are scaled
    std::optional<Scale> scale;
  };

  Batches(std::uint64_t seed, bool shuffle) : seed_(seed), shuffle_(shuffle) {}

  // Reads a file for an input. Throws io::FileError naming the file: the element type is not the input's, there are no samples,
  // their number is not that of the other files, or a value is outside the input's limit (with its index).
  // With `scale`, values of any number type become those of a float32 input.
  void add(const oclc_binding_info& input, const std::string& file, const std::optional<Scale>& scale = {});
  // Throws io::FileError if there are fewer samples than a batch takes.
  void set_size(std::int64_t size);

  bool empty() const { return sources_.empty(); }
  const std::vector<Source>& sources() const { return sources_; }
  std::uint64_t count() const { return count_; }
  // Source `source` of batch `batch` to `to`.
  void fill(std::size_t source, std::uint64_t batch, std::byte* to);

 private:
  std::uint64_t sample_at(std::uint64_t place);
  std::vector<Source> sources_;
  std::uint64_t count_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t seed_;
  bool shuffle_;
  std::uint64_t epoch_ = UINT64_MAX;
  std::vector<std::uint64_t> order_;  // of that epoch
};

}  // namespace oclc::oclrun
