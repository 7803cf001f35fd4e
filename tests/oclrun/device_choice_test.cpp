// The device that oclrun takes when none is named.
#include "tools/oclrun/device_choice.h"

#include <doctest/doctest.h>

namespace oclrun_test {

namespace {

oclc_device_info device(oclc_device_class device_class) {
  oclc_device_info info = OCLC_INIT(oclc_device_info);
  info.device_class = device_class;
  return info;
}

}  // namespace

TEST_CASE("a plan for processors runs on one although there is a GPU") {
  const std::vector both = {device(OCLC_DEVICE_GPU), device(OCLC_DEVICE_CPU)};
  for (const char* target : {"cpu", "cpu-amx", "cpu-256"}) CHECK(oclc::oclrun::device_for(target, both) == "cpu");
  for (const char* target : {"gpu", "h200", "llvmpipe", "cpus"}) CHECK(oclc::oclrun::device_for(target, both) == "");
}

TEST_CASE("without a processor among the devices the runtime chooses") {
  CHECK(oclc::oclrun::device_for("cpu", {device(OCLC_DEVICE_GPU)}) == "");
  CHECK(oclc::oclrun::device_for("cpu", {}) == "");
}

}  // namespace oclrun_test
