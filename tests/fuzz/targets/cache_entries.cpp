// An entry of the cache of programs, as it lies there, or with a right head and checksum.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "runtime/package/package.h"
#include "runtime/program/program_cache.h"
#include "tests/fuzz/targets/input.h"

namespace {

using namespace oclc;

std::string entry(const std::uint8_t* data, std::size_t size) {
  const std::string rest(fuzz::text_of(data + 1, size - 1));
  if (data[0] % 4 == 0) return rest;
  runtime::CacheEntry head;
  head.key_bytes = data[0] % 4 == 1 ? 3 : std::min<std::uint64_t>(rest.size(), data[0]);
  head.binary_bytes = data[0] % 4 == 3 ? data[0] : rest.size() - head.key_bytes;
  std::string text(sizeof head, '\0');
  std::memcpy(text.data(), &head, sizeof head);
  text += rest;
  head.hash = package::hash64(std::as_bytes(std::span(text).subspan(offsetof(runtime::CacheEntry, key_bytes))));
  std::memcpy(text.data(), &head, sizeof head);
  return text;
}

const std::string& folder() {
  static const std::string path =
      (std::filesystem::exists("/dev/shm") ? "/dev/shm/fuzz-cache-" : "/tmp/fuzz-cache-") + std::to_string(::getpid());
  return path;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  std::filesystem::create_directories(folder());
  std::atexit([] { std::filesystem::remove_all(folder()); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  runtime::ProgramCache cache(folder(), {});
  const std::string key = "key", path = cache.path_of(key);
  {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    const std::string bytes = entry(data, size);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  const auto binary = cache.load(key);
  const runtime::CacheHead head = runtime::ProgramCache::head_of(path);
  if (binary && head.damaged) fuzz::found("a binary of an entry that is damaged");
  return 0;
}
