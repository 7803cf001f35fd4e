#include "runtime/session/loaded_plan.h"

#include <algorithm>
#include <chrono>

#include "runtime/device/huge_pages.h"
#include "runtime/device/quirks.h"
#include "runtime/failure.h"
#include "runtime/package/container.h"
#include "runtime/session/expressions.h"

namespace oclc::runtime {
namespace {

namespace fb = oclc::plan;
using Clock = std::chrono::steady_clock;

// GPUs whose work-groups are smaller get kernels of single work-items, as CPUs do; see compiler/targets/target.cpp.
constexpr std::uint32_t kLeastGroup = 64;

std::uint64_t since(Clock::time_point begin) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
}

std::uint64_t constant_size(const fb::Buffer& buffer) {
  return static_cast<std::uint64_t>(evaluate(buffer.bytes(), {}, "constant"));
}

}  // namespace

LoadedPlan::LoadedPlan(std::shared_ptr<Context> context, std::shared_ptr<const package::Package> package)
    : context_(std::move(context)), package_(std::move(package)) {
  check_device();
  auto begin = Clock::now();
  programs_ = build_programs(*context_, *package_, !context_->waits_for_optimized());
  build_ns_ = since(begin);
  begin = Clock::now();
  upload_constants();
  upload_ns_ = since(begin);
}

const BuiltPrograms& LoadedPlan::optimized() const {
  const std::lock_guard lock(mutex_);
  if (!optimized_) {
    optimized_ = std::make_unique<const BuiltPrograms>(build_programs(*context_, *package_, false));
    current_ = optimized_.get();
  }
  return *optimized_;
}

void LoadedPlan::check_device() const {
  const oclc_device_info& facts = context_->facts();
  for (std::uint32_t i = 0; plan().extensions() && i < plan().extensions()->size(); ++i) {
    const std::string name = plan().extensions()->Get(i)->str();
    if (!has_extension(context_->device(), name))
      throw Failure(OCLC_E_UNSUPPORTED, package_->name() + ": the plan, compiled for target '" +
                                            (plan().target() ? plan().target()->str() : "") + "', needs the OpenCL extension " +
                                            name + ", which device '" + facts.name + "' (driver " + facts.driver +
                                            ") lacks; compile the model for it: oclc --device");
  }
  const std::string target = plan().target() ? plan().target()->str() : "";
  if (has(context_->quirks(), Quirk::loop_limit) && target != "llvmpipe")
    throw Failure(OCLC_E_UNSUPPORTED, package_->name() + ": the plan was compiled for target '" + target +
                                          "', and its work-items may make more loop iterations than device '" + facts.name +
                                          "' makes before it leaves them; compile the model for it: oclc --target llvmpipe");
  if (plan().device_class() == fb::DeviceClass::cpu && facts.device_class == OCLC_DEVICE_GPU &&
      facts.max_work_group_size >= kLeastGroup && !context_->takes_any_plan())
    throw Failure(
        OCLC_E_UNSUPPORTED,
        package_->name() + ": the plan was compiled for CPUs (target '" + target + "'), found the GPU '" + facts.name +
            "', whose compiler may take hours for such kernels; compile the model for it (oclc --device gpu), choose " +
            "a CPU, or ask for this (OCLC_ANY_DEVICE=1)");
}

// Constants of a plan lie in one memory object where the device allows its size, else each in its own.
void LoadedPlan::upload_constants() {
  const std::uint32_t count = plan().buffers() ? plan().buffers()->size() : 0;
  places_.resize(count);
  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const fb::Buffer& buffer = *plan().buffers()->Get(i);
    if (buffer.kind() != fb::BufferKind::constant || constant_size(buffer) == 0) continue;
    begin = std::min(begin, buffer.constant_offset());
    end = std::max(end, buffer.constant_offset() + constant_size(buffer));
  }
  if (begin >= end) return;
  const oclc_device_info& facts = context_->facts();
  if (end - begin > context_->memory_bytes())
    throw Failure(OCLC_E_MEMORY, package_->name() + ": the plan's constants take " + std::to_string(end - begin) + " bytes, " +
                                     context_->memory_text());
  // Many constants of a mapped file are copied into huge pages: files have small ones, and kernels that read weights from
  // memory wait for addresses as well.
  shared_ = facts.device_class == OCLC_DEVICE_CPU && facts.unified_memory &&
            !(package_->is_mapped() && end - begin >= kLeastHuge && grants_huge_pages() && context_->queue());
  begin = begin / package::kConstantsAlignment * package::kConstantsAlignment;
  const bool one = end - begin <= facts.max_alloc_bytes;
  if (one) memories_.push_back(upload(begin, end - begin));
  for (std::uint32_t i = 0; i < count; ++i) {
    const fb::Buffer& buffer = *plan().buffers()->Get(i);
    if (buffer.kind() != fb::BufferKind::constant) continue;
    const std::uint64_t bytes = constant_size(buffer);
    if (one) {
      // An empty one too: kernels may take it by the argument that all share.
      places_[i] = {memories_[0].get(), bytes == 0 ? 0 : buffer.constant_offset() - begin, 0, bytes};
      continue;
    }
    if (bytes == 0) continue;
    if (bytes > facts.max_alloc_bytes)
      throw Failure(OCLC_E_MEMORY, "constant '" + (buffer.name() ? buffer.name()->str() : "") + "' takes " +
                                       std::to_string(bytes) + " bytes, device '" + facts.name + "' allows at most " +
                                       std::to_string(facts.max_alloc_bytes) + " in one piece");
    memories_.push_back(upload(buffer.constant_offset(), bytes));
    places_[i] = {memories_.back().get(), 0, 0, bytes};
  }
  if (!shared_) check_cl(clFinish(context_->queue()), "uploading constants");
}

ClMem LoadedPlan::upload(std::uint64_t offset, std::uint64_t bytes) {
  // The mapping is read-only and so is the memory object; CL_MEM_USE_HOST_PTR wants a pointer to non-const all the same.
  void* data = const_cast<std::byte*>(package_->constants().data() + offset);
  constant_bytes_ += bytes;
  if (shared_) {
    cl_int code = CL_SUCCESS;
    ClMem memory(clCreateBuffer(context_->cl(), CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, bytes, data, &code));
    check_cl(code, "sharing " + std::to_string(bytes) + " bytes of constants");
    return memory;
  }
  ClMem memory = context_->allocate(bytes, "the plan's constants", CL_MEM_READ_ONLY);
  if (context_->facts().device_class == OCLC_DEVICE_CPU) {
    use_huge_pages(context_->queue(), memory.get(), bytes, [&](std::byte* to) {
      package_->copy_constants(offset, {to, static_cast<std::size_t>(bytes)});
    });
    return memory;
  }
  check_cl(clEnqueueWriteBuffer(context_->queue(), memory.get(), CL_FALSE, 0, bytes, data, 0, nullptr, nullptr),
           "uploading constants");
  return memory;
}

}  // namespace oclc::runtime
