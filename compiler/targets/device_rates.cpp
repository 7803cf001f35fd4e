#include "compiler/targets/device_rates.h"

namespace oclc {
namespace {

constexpr int kPlausible = 100;

bool take(double& fact, double measured) {
  if (measured == 0) return true;
  if (!(measured > fact / kPlausible && measured < fact * kPlausible)) return false;
  fact = measured;
  return true;
}

}  // namespace

bool set_rates(Target& target, const DeviceRates& rates) {
  const double row_flops = target.flops;
  const bool flops = take(target.flops, rates.flops), bytes = take(target.bytes_per_second, rates.bytes_per_second),
             launch = take(target.launch_seconds, rates.launch_seconds);
  target.pace *= target.flops / row_flops;
  return flops && bytes && launch;
}

}  // namespace oclc
