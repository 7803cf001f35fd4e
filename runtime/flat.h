// Lists of a plan, which may be absent.
#pragma once
#include <cstdint>
#include <string>

#include "plan_generated.h"

namespace oclc::runtime {

template <class T>
std::uint32_t count(const flatbuffers::Vector<T>* list) {
  return list ? list->size() : 0;
}

inline std::uint32_t rank(const oclc::plan::Binding& binding) { return count(binding.shape()); }

inline std::string joined(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* list) {
  std::string text;
  for (std::uint32_t i = 0; i < count(list); ++i) text += (i ? ", " : "") + list->Get(i)->str();
  return text;
}

}  // namespace oclc::runtime
