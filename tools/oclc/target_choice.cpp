// Which target a model is compiled for.
#include <fmt/format.h>

#include "oclc/oclc.hpp"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/options.h"

namespace oclc::tool {
namespace {

Target target_of(const oclc_device_info& device) {
  DeviceFacts facts;
  facts.is_cpu = device.device_class == OCLC_DEVICE_CPU;
  facts.vector_width = static_cast<int>(device.vector_width_float);
  facts.compute_units = static_cast<int>(device.compute_units);
  facts.local_bytes = static_cast<std::int64_t>(device.local_bytes);
  facts.cache_bytes = static_cast<std::int64_t>(device.cache_bytes);
  facts.max_work_group = static_cast<int>(device.max_work_group_size);
  facts.fp64 = device.fp64 != 0;
  facts.loop_limit = std::string_view(device.quirks).find("loop_limit") != std::string_view::npos;
  const Target target = target_for(facts);
  print_note(fmt::format("target {} for device {}: {}", target.name, device.index, device.name));
  return target;
}

}  // namespace

oclc_device_info find_device(const std::string& selection) {
  std::uint32_t index = 0;
  rt::detail::checked([&](oclc_error* error) { return oclc_device_select(selection.c_str(), &index, error); });
  oclc_device_info info = OCLC_INIT(oclc_device_info);
  rt::detail::checked([&](oclc_error* error) { return oclc_device_get(index, &info, error); });
  return info;
}

Target choose_target(const std::string& target, const std::string& device) {
  if (!target.empty() && !device.empty()) usage_error("wanted --target or --device, found both");
  if (!target.empty()) return find_target(target);
  if (!device.empty()) return target_of(find_device(device));
  std::uint32_t count = 0;
  if (oclc_device_count(&count, nullptr) == OCLC_OK && count > 0) return target_of(find_device(""));
  print_note("no OpenCL device found; compiling for target cpu");
  return find_target("cpu");
}

}  // namespace oclc::tool
