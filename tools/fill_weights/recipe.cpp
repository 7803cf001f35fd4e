#include "tools/fill_weights/recipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "tools/fill_weights/uniform.h"

static_assert(std::endian::native == std::endian::little, "weight files are little endian");

namespace oclc::fill {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kChunkElems = 1u << 20;

[[noreturn]] void fail_io(const char* what, const fs::path& path) {
  throw fs::filesystem_error(what, path, std::error_code(errno, std::generic_category()));
}

// A file that takes its final name only when it is complete.
class NewFile {
 public:
  explicit NewFile(const fs::path& target) : target_(target), name_(target.string() + ".XXXXXX") {
    descriptor_ = ::mkostemp(name_.data(), O_CLOEXEC);
    if (descriptor_ < 0) fail_io("cannot create a temporary file beside", target_);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!committed_) ::unlink(name_.c_str());
  }

  void resize(std::uint64_t size_bytes) const {
    if (::ftruncate(descriptor_, static_cast<off_t>(size_bytes)) != 0) fail_io("cannot resize", target_);
  }

  void write_at(std::uint64_t offset_bytes, const void* data, std::size_t size_bytes) const {
    const char* at = static_cast<const char*>(data);
    while (size_bytes > 0) {
      const ssize_t written = ::pwrite(descriptor_, at, size_bytes, static_cast<off_t>(offset_bytes));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail_io("cannot write", target_);
      at += written;
      offset_bytes += static_cast<std::uint64_t>(written);
      size_bytes -= static_cast<std::size_t>(written);
    }
  }

  void commit() {
    if (::fchmod(descriptor_, 0644) != 0) fail_io("cannot set the mode of", target_);
    if (::fsync(descriptor_) != 0) fail_io("cannot write", target_);
    if (::rename(name_.c_str(), target_.c_str()) != 0) fail_io("cannot rename to", target_);
    committed_ = true;
  }

 private:
  fs::path target_;
  std::string name_;
  int descriptor_ = -1;
  bool committed_ = false;
};

struct Chunk {
  const Tensor* tensor;
  std::uint64_t first_elem;
  std::uint64_t count_elems;
};

}  // namespace

Recipe read_recipe(const fs::path& file) {
  std::ifstream in(file);
  if (!in) fail_io("cannot open", file);
  try {
    const nlohmann::json json = nlohmann::json::parse(in);
    if (json.at("generator") != "splitmix64") throw std::runtime_error("wanted generator splitmix64");
    Recipe recipe;
    recipe.weights = json.at("weights").get<std::string>();
    if (recipe.weights.empty() || recipe.weights.front() == '.' || recipe.weights.find('/') != std::string::npos)
      throw std::runtime_error("'weights' wants a plain file name, found '" + recipe.weights + "'");
    recipe.size_bytes = json.at("bytes").get<std::uint64_t>();
    for (const auto& row : json.at("tensors")) {
      Tensor t{row.at("name").get<std::string>(),
               row.at("offset").get<std::uint64_t>(),
               row.at("count").get<std::uint64_t>(),
               row.at("seed").get<std::uint64_t>(),
               row.at("lo").get<float>(),
               row.at("hi").get<float>()};
      if (t.offset_bytes > recipe.size_bytes || t.count_elems > (recipe.size_bytes - t.offset_bytes) / sizeof(float))
        throw std::runtime_error("tensor '" + t.name + "' leaves the file of " + std::to_string(recipe.size_bytes) + " bytes");
      recipe.tensors.push_back(std::move(t));
    }
    return recipe;
  } catch (const std::exception& error) {
    throw std::runtime_error(file.string() + ": " + error.what());
  }
}

void write_weights(const Recipe& recipe, const fs::path& target, unsigned workers) {
  std::vector<Chunk> chunks;
  for (const Tensor& t : recipe.tensors)
    for (std::uint64_t first = 0; first < t.count_elems; first += kChunkElems)
      chunks.push_back({&t, first, std::min(kChunkElems, t.count_elems - first)});

  NewFile file(target);
  file.resize(recipe.size_bytes);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      std::vector<float> values;
      for (std::size_t i = next++; i < chunks.size(); i = next++) {
        const Chunk& c = chunks[i];
        const Tensor& t = *c.tensor;
        values.resize(c.count_elems);
        for (std::uint64_t e = 0; e < c.count_elems; ++e) values[e] = uniform(t.seed, c.first_elem + e, t.lo, t.hi);
        file.write_at(t.offset_bytes + c.first_elem * sizeof(float), values.data(), values.size() * sizeof(float));
      }
    } catch (...) {
      next = chunks.size();
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> pool;
    for (unsigned w = 1; w < workers; ++w) pool.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
  file.commit();
}

}  // namespace oclc::fill
