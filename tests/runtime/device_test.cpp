#include <doctest/doctest.h>
#include <cstring>

#include "oclc/oclc.hpp"

using namespace oclc;

TEST_CASE("devices are listed with their facts") {
  const auto devices = rt::devices();
  REQUIRE(!devices.empty());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const oclc_device_info& d = devices[i];
    CHECK(d.index == i);
    CHECK(std::string(d.name) != "");
    CHECK(std::string(d.version).starts_with("OpenCL "));
    CHECK(d.compute_units > 0);
    CHECK(d.max_work_group_size > 0);
    CHECK(d.global_bytes > 0);
    CHECK(d.max_alloc_bytes > 0);
    CHECK(d.alignment_bytes > 0);
    if (d.device_class == OCLC_DEVICE_CPU && d.unified_memory)
      CHECK(std::string(d.cpu_features).find("sse4_2") != std::string::npos);
    std::size_t needed = 0;
    CHECK(oclc_device_extensions(static_cast<std::uint32_t>(i), nullptr, 0, &needed, nullptr) == OCLC_OK);
    std::string text(needed, '\0');
    CHECK(oclc_device_extensions(static_cast<std::uint32_t>(i), text.data(), needed, nullptr, nullptr) == OCLC_OK);
    CHECK((text.find("cl_khr_command_buffer") != std::string::npos) == (d.command_buffer != 0));
    char part[8];
    CHECK(oclc_device_extensions(static_cast<std::uint32_t>(i), part, sizeof part, nullptr, nullptr) == OCLC_OK);
    CHECK(std::string(part) == text.substr(0, 7));
  }
  oclc_error error = OCLC_INIT(oclc_error);
  oclc_device_info info = OCLC_INIT(oclc_device_info);
  CHECK(oclc_device_get(1000, &info, &error) == OCLC_E_ARGUMENT);
  CHECK(std::string(error.message) == "device index 1000 of " + std::to_string(devices.size()) + " devices");
}

TEST_CASE("structs and errors of older headers are filled as far as they reach") {
  oclc_error error = OCLC_INIT(oclc_error);
  error.size = offsetof(oclc_error, message) + 8;
  error.message[8] = 'z';
  CHECK(oclc_plan_load("/nonexistent/plan.bin", 0, nullptr, &error) == OCLC_E_ARGUMENT);
  CHECK(std::string(error.message) == "plan is");
  CHECK(error.message[8] == 'z');
  oclc_device_info info = OCLC_INIT(oclc_device_info);
  info.size = offsetof(oclc_device_info, vendor);
  info.vendor[0] = 'z';
  CHECK(oclc_device_get(0, &info, nullptr) == OCLC_OK);
  CHECK(info.size == offsetof(oclc_device_info, vendor));
  CHECK(info.vendor[0] == 'z');
  oclc_device_info unset{};
  CHECK(oclc_device_get(0, &unset, &error) == OCLC_E_ARGUMENT);
}

// An enumerator that a caller of the C interface makes from any int.
template <class E>
E from_number(int number) {
  E e{};
  static_assert(sizeof e == sizeof number);
  std::memcpy(&e, &number, sizeof e);
  return e;
}

TEST_CASE("names of statuses and element types") {
  CHECK(std::string(oclc_status_name(OCLC_E_BINDING)) == "OCLC_E_BINDING");
  CHECK(std::string(oclc_status_name(from_number<oclc_status>(99))) == "unknown status");
  CHECK(std::string(oclc_dtype_name(OCLC_BF16)) == "bfloat16");
  CHECK(std::string(oclc_dtype_name(from_number<oclc_dtype>(77))) == "unknown");
  CHECK(oclc_dtype_bytes(OCLC_BOOL) == 1);
  CHECK(oclc_dtype_bytes(OCLC_F64) == 8);
  CHECK(oclc_dtype_bytes(from_number<oclc_dtype>(-1)) == 0);
  CHECK(std::string(oclc_version()) == OCLC_VERSION);
}
