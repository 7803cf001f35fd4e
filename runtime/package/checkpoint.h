// A session's state in a file: a package (container.h) without entry points, whose variables' values are the initial values of
// their buffers, so that every check of a plan holds for a checkpoint too. The file is replaced as a whole or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan_generated.h"
#include "runtime/package/package.h"

namespace oclc::package {

// XXH3 of the variables' names, element types and shapes, independent of their order: what a checkpoint must have in common
// with the plan that loads it.
std::uint64_t state_identity(const oclc::plan::Plan& plan);

// "f32[2, 40]" of a variable.
std::string variable_type_text(const oclc::plan::Variable& variable);
std::uint64_t variable_bytes(const oclc::plan::Variable& variable);

// Puts the bytes of variable `index` from `begin` on into `out`.
using ReadVariable = std::function<void(std::uint32_t index, std::uint64_t begin, std::span<std::byte> out)>;

// Writes the values of all variables of `plan` that `read` gives, after `steps` training steps. The old file, or none, is at
// `path` until the new one is complete and on the medium. Throws Error{io}, and what `read` throws.
void write_checkpoint(const std::string& path, const oclc::plan::Plan& plan, std::uint64_t steps, const ReadVariable& read);

class Checkpoint {
 public:
  // Reads the whole file into memory and checks it. Throws Error: io; corrupt for what is no checkpoint or damaged. The message
  // starts with the path.
  static Checkpoint open(const std::string& path);

  const oclc::plan::Plan& plan() const { return package_->plan(); }
  std::uint64_t steps() const { return plan().checkpoint()->steps(); }
  // The bytes of a variable of plan().
  std::span<const std::byte> value(const oclc::plan::Variable& variable) const;

  // Values of the variables of `plan`, in its order. Throws Error{invalid} naming the first difference unless the checkpoint
  // has the same variables.
  std::vector<std::span<const std::byte>> values_for(const oclc::plan::Plan& plan) const;

 private:
  std::shared_ptr<const Package> package_;
};

}  // namespace oclc::package
