// Lists of texts as the structure of a plan is verified: FlatBuffers counts the tables that it visits, but not the texts, and
// many tables may share one long list. The build makes plan_generated.h call this (cmake/count_strings.cmake).
#pragma once
#include <flatbuffers/flatbuffers.h>

namespace oclc::package {

// Each text counts as a table, of which a verification has a limit.
inline bool verify_strings(flatbuffers::Verifier& verifier,
                           const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* list) {
  if (!list) return true;
  if (!verifier.VerifyVector(list)) return false;
  for (flatbuffers::uoffset_t i = 0; i < list->size(); ++i) {
    if (!verifier.VerifyComplexity()) return false;
    verifier.EndTable();
  }
  return verifier.VerifyVectorOfStrings(list);
}

}  // namespace oclc::package
