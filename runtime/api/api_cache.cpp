#include <chrono>

#include "runtime/api/api.h"
#include "runtime/program/cache_folder.h"
#include "runtime/program/program_cache.h"

using namespace oclc::runtime;

namespace {

std::string need_folder(const char* folder) {
  const std::string found = cache_folder(folder ? folder : "");
  if (found.empty())
    throw Failure(OCLC_E_IO, "neither OCLC_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder for the program cache");
  return found;
}

}  // namespace

extern "C" {

oclc_status oclc_cache_visit(const char* folder, void (*visit)(void* user, const oclc_cache_entry* entry), void* user,
                             oclc_error* error) {
  return guarded(error, [&] {
    if (!visit) throw Failure(OCLC_E_ARGUMENT, "visit is NULL");
    for (const CacheFile& file : cache_files(need_folder(folder))) {
      const CacheHead head = ProgramCache::head_of(file.path);
      oclc_cache_entry entry = OCLC_INIT(oclc_cache_entry);
      entry.path = file.path.c_str();
      entry.device = head.device.c_str();
      entry.driver = head.driver.c_str();
      entry.producer = head.producer.c_str();
      entry.bytes = file.bytes;
      entry.used_s = file.used / 1000000000;
      entry.binary = head.binary;
      entry.damaged = head.damaged;
      visit(user, &entry);
    }
  });
}

oclc_status oclc_cache_prune(const char* folder, uint64_t max_bytes, int64_t max_age_s, uint32_t* removed,
                             uint64_t* removed_bytes, oclc_error* error) {
  return guarded(error, [&] {
    const std::int64_t now =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    const std::int64_t oldest = max_age_s < 0 || max_age_s > now / 1000000000 ? INT64_MIN : now - max_age_s * 1000000000;
    const Pruned pruned = prune_cache(need_folder(folder), max_bytes, oldest);
    if (removed) *removed = pruned.files;
    if (removed_bytes) *removed_bytes = pruned.bytes;
  });
}

oclc_status oclc_cache_folder(const char* folder, char* text, size_t capacity, size_t* needed, oclc_error* error) {
  return guarded(error, [&] {
    const std::string found = need_folder(folder);
    if (needed) *needed = found.size() + 1;
    if (text && capacity > 0) {
      const std::size_t length = std::min(capacity - 1, found.size());
      std::memcpy(text, found.data(), length);
      text[length] = '\0';
    }
  });
}

}  // extern "C"
