// Random numbers of the device: Philox 4x32-10 with a seed and a count of the numbers drawn.
#pragma once
#include <ATen/core/Generator.h>

#include <cstdint>

#include "frontends/torch_device/csrc/device.h"

namespace oclc::torch_device {

// Of a device, seeded by torch.manual_seed().
const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator new_generator(c10::DeviceIndex index);

// Where a draw of numbers begins.
struct Draw {
  std::uint64_t seed = 0, offset = 0;
};
// Takes `count` groups of four numbers of the generator, or of the device's own.
Draw draw(const std::optional<at::Generator>& generator, c10::DeviceIndex index, std::uint64_t count);

}  // namespace oclc::torch_device
