// oclc devices: the OpenCL devices of this machine, and the targets that the compiler knows.
#include <fmt/format.h>

#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include "compiler/support/error.h"
#include "compiler/targets/costs.h"
#include "frontends/cpp/typed/device_target.h"
#include "oclc/oclc.hpp"
#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/options.h"

namespace oclc::tool {

const std::string_view kDevicesHelp = R"(usage: oclc devices [--targets | --costs] [--json]
Lists the OpenCL devices. The index, P:D, or a part of the name selects one wherever --device is an option.

  --targets    list the names for --target instead
  --costs      list what the compiler's estimates take things to cost, where and by which command it was measured
  --json       as JSON
  -v           more about each device
  --color auto|always|never   -q, --quiet   -h, --help
)";

namespace {

using nlohmann::json;

std::string_view name_of(oclc_device_class device_class) {
  return device_class == OCLC_DEVICE_CPU ? "cpu" : device_class == OCLC_DEVICE_GPU ? "gpu" : "other";
}

json device_json(const oclc_device_info& d) {
  return {{"index", d.index},
          {"platform", d.platform},
          {"device", d.device},
          {"class", name_of(d.device_class)},
          {"name", d.name},
          {"vendor", d.vendor},
          {"driver", d.driver},
          {"version", d.version},
          {"opencl_c", d.opencl_c},
          {"platform_name", d.platform_name},
          {"platform_version", d.platform_version},
          {"cpu_features", d.cpu_features},
          {"quirks", d.quirks},
          {"target", target_of(d).name},
          {"compute_units", d.compute_units},
          {"clock_mhz", d.clock_mhz},
          {"max_work_group_size", d.max_work_group_size},
          {"vector_width_float", d.vector_width_float},
          {"sub_group_size", d.sub_group_size},
          {"global_bytes", d.global_bytes},
          {"max_alloc_bytes", d.max_alloc_bytes},
          {"local_bytes", d.local_bytes},
          {"cache_bytes", d.cache_bytes},
          {"available", d.available != 0},
          {"fp16", d.fp16 != 0},
          {"fp64", d.fp64 != 0},
          {"unified_memory", d.unified_memory != 0},
          {"command_buffer", d.command_buffer != 0},
          {"sub_groups", d.sub_groups != 0}};
}

int list_targets(bool as_json) {
  json list = json::array();
  for (const Target& t : target_rows()) {
    const std::string_view device_class = t.device_class == DeviceClass::cpu ? "cpu" : "gpu";
    list.push_back({{"name", t.name},
                    {"class", device_class},
                    {"vector_width", t.vector_width},
                    {"compute_units", t.compute_units},
                    {"local_bytes", t.local_bytes},
                    {"flops", t.flops},
                    {"bytes_per_second", t.bytes_per_second},
                    {"launch_seconds", t.launch_seconds},
                    {"matrix_unit", t.matrix_unit ? t.matrix_unit->name : ""},
                    {"about", t.about}});
    if (!as_json) print_result(fmt::format("{:10} {}  {}\n", t.name, device_class, t.about));
  }
  if (as_json) print_result(json{{"schema", 1}, {"kind", "targets"}, {"targets", list}}.dump(2) + "\n");
  return 0;
}

int list_costs(bool as_json) {
  json list = json::array();
  for (const CostRow& c : cost_rows()) {
    list.push_back({{"name", c.name},
                    {"family", c.family},
                    {"value", c.value},
                    {"unit", c.unit},
                    {"machine", c.machine},
                    {"date", c.date},
                    {"command", c.command}});
    if (!as_json)
      print_result(fmt::format("{:24} {:4} {:>10.4g} {:6}  {:13} {}  {}\n", c.name.substr(1), c.family, c.value, c.unit,
                               c.machine, c.date, c.command));
  }
  if (as_json) print_result(json{{"schema", 1}, {"kind", "costs"}, {"costs", list}}.dump(2) + "\n");
  return 0;
}

void print_device(const oclc_device_info& d) {
  print_result(fmt::format("{:>2}  {}:{}  {:5}  {}\n", d.index, d.platform, d.device, name_of(d.device_class), d.name));
  print_result(fmt::format("              {}, driver {}, {} units, {:.1f} GiB, {} KiB local, target {}{}\n", d.version,
                           d.driver, d.compute_units, static_cast<double>(d.global_bytes) / (1 << 30), d.local_bytes >> 10,
                           target_of(d).name, d.available ? "" : ", NOT AVAILABLE"));
  if (!console().verbose) return;
  print_result(fmt::format("              platform {} ({}), {}, float width {}, sub-group {}, work-group {}{}{}{}{}\n",
                           d.platform_name, d.platform_version, d.opencl_c, d.vector_width_float, d.sub_group_size,
                           d.max_work_group_size, d.fp16 ? ", fp16" : "", d.fp64 ? ", fp64" : "",
                           d.unified_memory ? ", unified memory" : "", d.command_buffer ? ", command buffers" : ""));
  if (d.cpu_features[0]) print_result(fmt::format("              {}\n", d.cpu_features));
  if (d.quirks[0]) print_result(fmt::format("              quirks: {}\n", d.quirks));
}

}  // namespace

int devices_command(int argc, char** argv, std::string&) {
  bool targets = false, costs = false;
  OutputOptions shown;
  CLI::App app;
  app.add_flag("--targets", targets);
  app.add_flag("--costs", costs);
  add_output_options(app, shown);
  if (parse(app, argc, argv, kDevicesHelp)) return 0;
  if (targets) return list_targets(shown.json);
  if (costs) return list_costs(shown.json);
  const std::vector<oclc_device_info> devices = rt::devices();
  if (shown.json) {
    json list = json::array();
    for (const oclc_device_info& d : devices) list.push_back(device_json(d));
    print_result(
        json{{"schema", 1}, {"kind", "devices"}, {"devices", list}}.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  } else {
    for (const oclc_device_info& d : devices) print_device(d);
  }
  if (!devices.empty()) return 0;
  print_error("no OpenCL device found; install a driver (on Debian: pocl-opencl-icd runs on the processor) and see clinfo -l");
  return static_cast<int>(ExitCode::device);
}

}  // namespace oclc::tool
