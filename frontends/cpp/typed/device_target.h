// The compiler's target for a device of the runtime.
#pragma once
#include <string_view>

#include "compiler/targets/target.h"
#include "oclc/oclc.h"

namespace oclc {

// Target row for a device of the runtime's list.
inline Target target_of(const oclc_device_info& device) {
  DeviceFacts facts;
  facts.is_cpu = device.device_class == OCLC_DEVICE_CPU;
  facts.vector_width = static_cast<int>(device.vector_width_float);
  facts.compute_units = static_cast<int>(device.compute_units);
  facts.local_bytes = static_cast<std::int64_t>(device.local_bytes);
  facts.max_work_group = static_cast<int>(device.max_work_group_size);
  facts.fp64 = device.fp64 != 0;
  const std::string_view features = device.cpu_features, quirks = device.quirks;
  facts.amx = features.find("amx_bf16") != features.npos && features.find("amx_tile") != features.npos &&
              quirks.find("no_tile_assembly") == quirks.npos;
  facts.loop_limit = quirks.find("loop_limit") != quirks.npos;
  facts.name = device.name;
  facts.vendor = device.vendor;
  return target_for(facts);
}

}  // namespace oclc
