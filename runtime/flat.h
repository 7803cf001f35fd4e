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

// Calls `use` for each buffer that a launch uses by this argument, with whether it writes it.
template <class Use>
void each_buffer(const oclc::plan::Arg& arg, Use use) {
  if (arg.kind() == oclc::plan::ArgKind::buffer) use(static_cast<std::uint32_t>(arg.buffer()), arg.writes());
  for (std::uint32_t i = 0; i < count(arg.cells()); ++i) {
    const oclc::plan::Cell& cell = *arg.cells()->Get(i);
    if (cell.buffer() >= 0) use(static_cast<std::uint32_t>(cell.buffer()), cell.writes());
  }
}

inline std::uint32_t rank(const oclc::plan::Binding& binding) { return count(binding.shape()); }

inline std::string joined(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* list) {
  std::string text;
  for (std::uint32_t i = 0; i < count(list); ++i) text += (i ? ", " : "") + list->Get(i)->str();
  return text;
}

}  // namespace oclc::runtime
