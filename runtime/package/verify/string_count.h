// Lists of texts as the structure of a plan is verified: FlatBuffers counts the tables that it visits, but not the texts, and
// many tables may share one long list. The build makes plan_generated.h call this (cmake/count_strings.cmake).
#pragma once
#include <flatbuffers/flatbuffers.h>

#include <cstdint>

namespace oclc::package {

// Texts that this thread's verification may visit still.
inline thread_local std::uint64_t strings_left = UINT64_MAX;

inline bool verify_strings(flatbuffers::Verifier& verifier,
                           const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* list) {
  if (!list) return true;
  if (!verifier.VerifyVector(list) || list->size() > strings_left) return false;
  strings_left -= list->size();
  return verifier.VerifyVectorOfStrings(list);
}

}  // namespace oclc::package
