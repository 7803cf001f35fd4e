// The rules of the metadata that a FlatBuffer's structure does not express.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "plan_generated.h"
#include "runtime/package/error.h"
#include "runtime/package/limits.h"

namespace oclc::package {

// Checks the structure of `metadata` (flatbuffers::Verifier), then its meaning: every index in range, every enum known, every
// expression well formed and free of loop counters where none runs, constants inside a constant section of `constant_bytes`,
// lives inside their entry's schedule and covering every use, alias chains acyclic and within one entry, launch geometry sane,
// nothing written that is read-only, names unique, nothing above limits.h. Takes time in proportion to `metadata`. Throws
// Error{invalid} naming the object; the plan points into `metadata`.
const oclc::plan::Plan& verify_metadata(std::span<const std::byte> metadata, std::uint64_t constant_bytes);

// Bytes of one element.
std::uint64_t dtype_bytes(oclc::plan::DType dtype);

}  // namespace oclc::package
