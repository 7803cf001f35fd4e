// The memory objects that a ragged group's launch passes: what lies in one object at run time is one argument, from which a
// table counts.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Scratch of an entry point, constants, or a buffer of its own, with elements of one type.
struct RaggedObject {
  BufferKind kind = BufferKind::arena;
  DType dtype = DType::f32;
  int buffer = -1;       // that the launch passes: the first one in the object, one that is written if any is
  bool written = false;  // whether any is
};

class RaggedObjects {
 public:
  explicit RaggedObjects(const Schedule& schedule) : schedule_(&schedule) {}

  void add(const Kernel& kernel);
  // The place in list() of a buffer's object.
  std::size_t of(int buffer) const;
  const std::vector<RaggedObject>& list() const { return list_; }
  // How many there would be with this kernel's.
  std::size_t count_with(const Kernel& kernel) const;

 private:
  std::optional<std::size_t> find(int buffer) const;

  const Schedule* schedule_;
  std::vector<RaggedObject> list_;
};

}  // namespace oclc
