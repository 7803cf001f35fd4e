// The extension module oclc_torch._C.
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/extension.h>

#include "frontends/torch_device/csrc/compiled.h"
#include "frontends/torch_device/csrc/generator.h"
#include "frontends/torch_device/csrc/graph_plan.h"
#include "frontends/torch_device/csrc/operators.h"
#include "frontends/torch_device/csrc/plan_entry.h"

namespace py = pybind11;

namespace oclc::torch_device {
namespace {

py::dict memory_facts(c10::DeviceIndex index) {
  const MemoryStats s = memory_stats(index);
  py::dict d;
  d["allocated_bytes.all.current"] = s.allocated;
  d["allocated_bytes.all.peak"] = s.peak_allocated;
  d["reserved_bytes.all.current"] = s.reserved;
  d["reserved_bytes.all.peak"] = s.peak_reserved;
  d["allocation.all.current"] = s.blocks;
  d["allocation.all.allocated"] = s.allocations;
  d["inactive_blocks"] = s.cached_blocks;
  d["inactive_bytes"] = s.reserved - s.allocated;
  d["fragmentation"] = s.reserved ? static_cast<double>(s.reserved - s.allocated) / static_cast<double>(s.reserved) : 0.0;
  d["buffers_created"] = s.created;
  d["buffers_released"] = s.released;
  d["num_ooms"] = s.out_of_memory;
  d["limit_bytes"] = s.limit;
  return d;
}

py::dict device_facts(c10::DeviceIndex index) {
  const Device& d = device(index);
  py::dict facts;
  facts["name"] = d.info.name;
  facts["vendor"] = d.info.vendor;
  facts["driver"] = d.info.driver;
  facts["total_memory"] = d.info.global_bytes;
  facts["max_alloc_bytes"] = d.info.max_alloc_bytes;
  facts["compute_units"] = d.info.compute_units;
  facts["fp16"] = d.info.fp16 != 0;
  facts["fp64"] = d.info.fp64 != 0;
  facts["host_memory"] = d.host_memory;
  facts["profiling"] = d.profiling;
  return facts;
}

py::dict counter_facts() {
  const Counters c = counters();
  py::dict d;
  d["calls"] = c.calls;
  d["traced"] = c.traced;
  d["in_place"] = c.in_place;
  d["copied"] = c.copied;
  d["launches"] = launches();
  return d;
}

py::dict fallback_facts() {
  py::dict d;
  for (const auto& [name, fallback] : fallbacks()) d[name.c_str()] = py::make_tuple(fallback.count, fallback.reason);
  return d;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  using released = py::call_guard<py::gil_scoped_release>;
  register_hooks();
  m.def("serve", &serve);
  m.def("set_tracer", &set_tracer);
  m.def("device_count", &device_count);
  m.def("current_device", &current_device);
  m.def("set_device", &set_current_device);
  m.def("exchange_device", [](c10::DeviceIndex index) {
    const c10::DeviceIndex old = current_device();
    set_current_device(index);
    return old;
  });
  m.def("is_open", &is_open);
  m.def(
      "open", [](c10::DeviceIndex index) { device(index); }, released());
  m.def(
      "synchronize", [](c10::DeviceIndex index) { synchronize(device(index)); }, released());
  m.def("device_facts", &device_facts);
  m.def("memory_stats", &memory_facts);
  m.def("reset_peak", &reset_peak);
  m.def("empty_cache", &empty_cache, released());
  m.def("set_memory_limit", &set_memory_limit);
  m.def("counters", &counter_facts);
  m.def("fallbacks", &fallback_facts);
  py::class_<GraphPlan>(m, "GraphPlan")
      .def(py::init<c10::DeviceIndex, const std::string&, std::vector<std::string>, std::vector<std::string>>(), released())
      .def("run", &GraphPlan::run, released());
  m.def("default_generator", [](c10::DeviceIndex index) { return default_generator(index); });
}

}  // namespace oclc::torch_device
