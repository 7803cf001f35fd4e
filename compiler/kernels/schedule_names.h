// Names of the text form of schedules, written and read.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/kernels/kernel.h"

namespace oclc {

std::string_view name_of(Stage::Combine combine);
std::string_view name_of(BufferKind kind);
std::optional<Anchor> anchor_named(std::string_view name);
std::optional<Stage::Combine> combine_named(std::string_view name);
std::optional<BufferKind> buffer_kind_named(std::string_view name);

}  // namespace oclc
