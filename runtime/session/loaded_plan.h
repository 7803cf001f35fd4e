// What the sessions of one plan share on a context: programs and constants.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
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

  // The programs to make kernels of: the optimized ones, once somebody has asked for them.
  const BuiltPrograms& programs() const { return *current_.load(); }
  // The optimized ones, where the first ones were built without optimization; the driver has them on disk when `behind` of
  // those is done. Thread-safe.
  const BuiltPrograms& optimized() const;
  Place constant(std::uint32_t buffer) const { return places_[buffer]; }

  const BuiltPrograms& first_programs() const { return programs_; }
  std::uint32_t programs_built() const { return programs_.built; }
  std::uint32_t programs_cached() const { return programs_.cached; }
  const std::vector<BuildInfo>& builds() const { return programs_.infos; }
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
  mutable std::mutex mutex_;  // of `optimized_`
  mutable std::unique_ptr<const BuiltPrograms> optimized_;
  mutable std::atomic<const BuiltPrograms*> current_ = &programs_;
  std::vector<ClMem> memories_;
  std::vector<Place> places_;  // of constant buffers
  std::uint64_t constant_bytes_ = 0;
  bool shared_ = false;
  std::uint64_t build_ns_ = 0;
  std::uint64_t upload_ns_ = 0;
};

}  // namespace oclc::runtime
