// Pictures of a run as SVG.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spiking {

// Spikes as points: `spikes` [steps, neurons], not 0 where one is. One picture of the named file.
void draw_spikes(const std::string& file, const std::string& title, const std::vector<float>& spikes, std::int64_t neurons);

// Curves over one axis, by name; all have as many values.
void draw_curves(const std::string& file, const std::string& title,
                 const std::vector<std::pair<std::string, std::vector<float>>>& curves);

}  // namespace spiking
