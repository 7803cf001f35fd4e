// The memory objects that a ragged group's launch passes: what lies in one object at run time is one argument, from which a
// table counts.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

// Memory objects of a launch, as many as every device takes.
inline constexpr std::size_t kMostRaggedObjects = 40;

// What the elements of one type lie in: scratch of an entry point, constants, the pool of states or of inputs and outputs, or
// an object of a buffer's own.
struct RaggedObject {
  enum class Kind { arena, constants, states, ports, own };
  Kind kind = Kind::arena;
  DType dtype = DType::f32;
  int buffer = -1;       // that the launch passes: the first one in the object, one that is written if any is
  bool written = false;  // whether any is
};

class RaggedObjects {
 public:
  // `pools_ports`: small inputs and outputs lie in one object, into which what callers give as memory objects is copied.
  RaggedObjects(const Schedule& schedule, bool pools_ports) : schedule_(&schedule), pools_ports_(pools_ports) {}
  // Of all members. Ports are pooled where there were too many objects otherwise.
  static RaggedObjects of_group(const Schedule& schedule, std::span<const Kernel* const> members);

  void add(const Kernel& kernel);
  // The place in list() of a buffer's object.
  std::size_t of(int buffer) const;
  const std::vector<RaggedObject>& list() const { return list_; }
  // How many there would be with this kernel's.
  std::size_t count_with(const Kernel& kernel) const;
  // Whether the buffer's storage has to be a part of a pool.
  bool is_pooled(int buffer) const;

 private:
  RaggedObject::Kind kind_of(int buffer) const;
  std::optional<std::size_t> find(int buffer) const;

  const Schedule* schedule_;
  bool pools_ports_;
  std::vector<RaggedObject> list_;
};

}  // namespace oclc
