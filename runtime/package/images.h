// Operators of the host on image files, by the component liboclc_images.so: rows of host_ops.cpp.
#pragma once
#include <span>
#include <string>

#include "runtime/package/host_ops.h"

namespace oclc::package {

void image_size(const HostSettings& settings, std::span<const HostValue> inputs, std::span<HostValue> outputs);
void decode_image(const HostSettings& settings, std::span<const HostValue> inputs, std::span<HostValue> outputs);

// What is wrong with the order of colours of decode_image.
std::string colours_problem(const HostSettings& settings);

}  // namespace oclc::package
