// Layout assignment: which values are stored channels-last.
#pragma once
#include <string_view>

#include "compiler/ir/graph.h"
#include "compiler/targets/target.h"

namespace oclc {

// Convolutions, pooling and what lies between them elementwise get channels-last storage, so that vectors run over channels
// and every load of a filter tap is contiguous; weights of depthwise convolutions likewise. Values that a reshape or the
// outside reads stay row-major. Without it kernels are right but walk memory in strides. True if a layout changed.
bool assign_layouts(Graph& graph);

// What assign_layouts will say of a value of feature maps.
bool becomes_channels_last(const Value* value);

// Where vectors run over channels, an image of many channels that comes row-major, such as a graph's input, is stored
// channels-last once before the convolutions and pools that read it, where these do much with it. To be called before their
// strategies are chosen. True if one was.
bool lay_out_images(Graph& graph, const Target& target);

// Storage order N, H, W, C of a value [N, C, H, W] of any rank from 2 on.
Layout channels_last(std::size_t rank);
// Marks a concatenation that is stored as it is made, in the layout that it has.
inline constexpr std::string_view kMadeInPlace = "made_in_place";
// An attribute of a convolution whose weights are features of another one, and are read as those lie.
inline constexpr std::string_view kCorrelates = "correlates";
// Lanes of OpenCL's widest vector of floats: rows of whole such vectors are whole vectors on every target.
inline constexpr std::int64_t kWidestVector = 16;

}  // namespace oclc
