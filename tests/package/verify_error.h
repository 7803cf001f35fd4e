// What a plan's verifier says.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "runtime/package/verify/verify.h"
#include "tests/runtime/plan_builder.h"

namespace oclc::test {

// Of a plan with so many bytes of constants; empty: it is legal.
inline std::string verify_error(const fb::PlanT& plan, std::uint64_t constant_bytes = 16) {
  const auto bytes = metadata(plan);
  try {
    package::verify_metadata(bytes, constant_bytes);
  } catch (const package::Error& error) {
    CHECK(error.kind() == package::ErrorKind::invalid);
    return error.what();
  }
  return "";
}

}  // namespace oclc::test
