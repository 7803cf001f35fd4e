// Names of the text form of schedules, written and read.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernels/kernel.h"

namespace oclc {

std::string_view name_of(Stage::Combine combine);
std::string_view name_of(BufferKind kind);
std::optional<Anchor> anchor_named(std::string_view name);
std::optional<Stage::Combine> combine_named(std::string_view name);
std::optional<BufferKind> buffer_kind_named(std::string_view name);
// " of "conv1", "relu1"": the nodes of the model; nothing where there are none.
std::string sources_text(const std::vector<std::string>& sources);

}  // namespace oclc
