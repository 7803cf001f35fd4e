// What the sessions of one plan share on a context: programs and constants.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/context.h"
#include "runtime/program/program_builder.h"

namespace oclc::runtime {

// Where a buffer lies: a memory object, the byte offset in it, and how many bytes from there on are the buffer's.
struct Place {
  cl_mem memory = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t generation = 0;  // differs when the memory object is another one, though its handle may be equal
  std::uint64_t bytes = 0;
};

class LoadedPlan {
 public:
  // Checks that the device has what the plan asks for, builds its programs, uploads its constants.
  LoadedPlan(std::shared_ptr<Context> context, std::shared_ptr<const package::Package> package);

  Context& context() const { return *context_; }
  const package::Package& package() const { return *package_; }
  const oclc::plan::Plan& plan() const { return package_->plan(); }

  // What was built of a program of the plan, in the order of its kernel's parts; one piece, unless it was cut.
  const std::vector<Piece>& pieces(int program) const { return programs_.pieces_of[static_cast<std::size_t>(program)]; }
  cl_program unit(std::uint32_t index) const { return programs_.units[index].get(); }
  Builders* builders() const { return programs_.builders.get(); }  // null: every kernel is compiled here
  const std::vector<BuildInfo>& builds() const { return programs_.infos; }
  Place constant(std::uint32_t buffer) const { return places_[buffer]; }

  std::uint32_t programs_built() const { return programs_.built; }
  std::uint32_t programs_cached() const { return programs_.cached; }
  std::uint64_t constant_bytes() const { return constant_bytes_; }
  bool constants_shared() const { return shared_; }
  std::uint64_t build_ns() const { return build_ns_; }
  std::uint64_t upload_ns() const { return upload_ns_; }

 private:
  void check_device() const;
  void upload_constants();
  ClMem upload(std::uint64_t offset, std::uint64_t bytes);

  std::shared_ptr<Context> context_;
  std::shared_ptr<const package::Package> package_;
  BuiltPrograms programs_;
  std::vector<ClMem> memories_;
  std::vector<Place> places_;  // of constant buffers
  std::uint64_t constant_bytes_ = 0;
  bool shared_ = false;
  std::uint64_t build_ns_ = 0;
  std::uint64_t upload_ns_ = 0;
};

}  // namespace oclc::runtime
