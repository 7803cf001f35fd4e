// Failures of the runtime, and plans from bytes.
#pragma once
#include <doctest/doctest.h>

#include <functional>
#include <oclc/oclc.hpp>
#include <string>
#include <vector>

namespace oclc::test {

inline rt::Plan load(const std::vector<std::byte>& bytes) { return rt::Plan::load(bytes.data(), bytes.size()); }

// What the action fails with, of the status expected; empty: it does not fail.
inline std::string error_of(const std::function<void()>& action, oclc_status expected = OCLC_E_BINDING) {
  try {
    action();
  } catch (const rt::Error& error) {
    CHECK(std::string(oclc_status_name(error.status())) == oclc_status_name(expected));
    return error.what();
  }
  return "";
}

}  // namespace oclc::test
