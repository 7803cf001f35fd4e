// Lists of a plan, which may be absent.
#pragma once
#include <cstdint>

#include "plan_generated.h"

namespace oclc::runtime {

template <class T>
std::uint32_t count(const flatbuffers::Vector<T>* list) {
  return list ? list->size() : 0;
}

inline std::uint32_t rank(const oclc::plan::Binding& binding) { return count(binding.shape()); }

}  // namespace oclc::runtime
