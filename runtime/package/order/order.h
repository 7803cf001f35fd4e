// Operators of the host that order, group and choose: rows of host_ops.cpp, which says what each gives.
#pragma once
#include <span>
#include <string>

#include "runtime/package/host_ops.h"

namespace oclc::package {

void top_places(const HostSettings& settings, std::span<const HostValue> inputs, std::span<HostValue> outputs);
void unique_rows(const HostSettings& settings, std::span<const HostValue> inputs, std::span<HostValue> outputs);
void positions(const HostSettings& settings, std::span<const HostValue> inputs, std::span<HostValue> outputs);
void scatter_rows(const HostSettings& settings, std::span<const HostValue> inputs, std::span<HostValue> outputs);
void choose_boxes(const HostSettings& settings, std::span<const HostValue> inputs, std::span<HostValue> outputs);

// What is wrong with a setting that is 0 or 1, or with the reduction of scatter_rows.
std::string flag_problem(const HostSettings& settings);
std::string reduction_problem(const HostSettings& settings);

// HostOpError unless `holds`.
void require(bool holds, const char* wanted);

}  // namespace oclc::package
