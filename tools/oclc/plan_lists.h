// Lists and texts of a plan, which may be absent.
#pragma once
#include <cstdint>
#include <string>

#include "plan_generated.h"

namespace oclc::tool {

template <class Vector>
std::uint32_t size_of(const Vector* list) {
  return list ? list->size() : 0;
}

inline std::string text_of(const flatbuffers::String* text) { return text ? text->str() : std::string(); }

using Names = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

inline std::string joined(const Names* names) {
  std::string out;
  for (std::uint32_t i = 0; i < size_of(names); ++i) out += (i ? ", " : "") + names->Get(i)->str();
  return out;
}

}  // namespace oclc::tool
