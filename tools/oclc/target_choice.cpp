// Which target a model is compiled for.
#include <fmt/format.h>

#include "frontends/cpp/typed/device_target.h"
#include "oclc/oclc.hpp"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/options.h"
#include "tools/oclc/tuned.h"

namespace oclc::tool {
namespace {

Target target_of_device(const std::string& selection, TunedDevice* found) {
  const oclc_device_info device = find_device(selection);
  const Target target = target_of(device);
  print_note(fmt::format("target {} for device {}: {}", target.name, device.index, device.name));
  if (found) *found = tuned_device(device, target);
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

Target choose_target(const std::string& target, const std::string& device, TunedDevice* found) {
  if (!target.empty() && !device.empty()) usage_error("wanted --target or --device, found both");
  if (found) *found = {"", target, ""};
  if (!target.empty()) return find_target(target);
  if (!device.empty()) return target_of_device(device, found);
  std::uint32_t count = 0;
  if (oclc_device_count(&count, nullptr) == OCLC_OK && count > 0) return target_of_device("", found);
  print_note("no OpenCL device found; compiling for target cpu");
  return find_target("cpu");
}

}  // namespace oclc::tool
