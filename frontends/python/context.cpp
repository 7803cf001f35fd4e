// Devices, and contexts on them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "frontends/python/handles.h"

namespace oclc::python {
namespace {

namespace nb = nanobind;

nb::dict device_facts(const oclc_device_info& d) {
  nb::dict facts;
  facts["index"] = d.index;
  facts["platform"] = d.platform;
  facts["device"] = d.device;
  facts["kind"] = d.device_class == OCLC_DEVICE_CPU ? "cpu" : d.device_class == OCLC_DEVICE_GPU ? "gpu" : "other";
  facts["name"] = d.name;
  facts["vendor"] = d.vendor;
  facts["driver"] = d.driver;
  facts["version"] = d.version;
  facts["platform_name"] = d.platform_name;
  facts["cpu_features"] = d.cpu_features;
  facts["quirks"] = d.quirks;
  facts["compute_units"] = d.compute_units;
  facts["clock_mhz"] = d.clock_mhz;
  facts["global_bytes"] = d.global_bytes;
  facts["local_bytes"] = d.local_bytes;
  facts["max_alloc_bytes"] = d.max_alloc_bytes;
  facts["fp16"] = d.fp16 != 0;
  facts["fp64"] = d.fp64 != 0;
  facts["unified_memory"] = d.unified_memory != 0;
  facts["available"] = d.available != 0;
  facts["device_id"] = reinterpret_cast<std::uintptr_t>(d.id);
  return facts;
}

nb::list devices() {
  std::uint32_t count = 0;
  checked([&](oclc_error* error) { return oclc_device_count(&count, error); });
  nb::list list;
  for (std::uint32_t i = 0; i < count; ++i) {
    oclc_device_info info = OCLC_INIT(oclc_device_info);
    checked([&](oclc_error* error) { return oclc_device_get(i, &info, error); });
    list.append(device_facts(info));
  }
  return list;
}

}  // namespace

Context::Context(const std::string& device, std::uintptr_t cl_context, std::uintptr_t cl_queue, bool profiling,
                 const std::optional<std::string>& cache_dir) {
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.device = device.c_str();
  options.cl_context = reinterpret_cast<_cl_context*>(cl_context);
  options.cl_queue = reinterpret_cast<_cl_command_queue*>(cl_queue);
  options.profiling = profiling;
  options.cache_dir = cache_dir ? cache_dir->c_str() : nullptr;
  const nb::gil_scoped_release released;
  checked([&](oclc_error* error) { return oclc_context_create(&options, &context_, error); });
}

// A child has none of the driver's threads: what it would wait for never comes.
Context::~Context() {
  if (process_ == ::getpid()) oclc_context_release(context_);
}

void Context::check_process() const {
  if (process_ != ::getpid())
    throw Forked(
        "the process forked after the session was made: its device belongs to the parent; make the session in the child, or "
        "start workers with multiprocessing's method 'spawn' (torch's DataLoader: multiprocessing_context='spawn')");
}

void bind_context(nb::module_& module) {
  module.def("devices", devices);
  module.def("version", [] { return oclc_version(); });
  nb::class_<Context>(module, "Context")
      .def(nb::init<const std::string&, std::uintptr_t, std::uintptr_t, bool, const std::optional<std::string>&>())
      .def_prop_ro("cl_context",
                   [](const Context& c) { return reinterpret_cast<std::uintptr_t>(oclc_context_cl_context(c.get())); })
      .def_prop_ro("cl_queue",
                   [](const Context& c) { return reinterpret_cast<std::uintptr_t>(oclc_context_cl_queue(c.get())); })
      .def("device", [](const Context& c) {
        oclc_device_info info = OCLC_INIT(oclc_device_info);
        if (const oclc_status status = oclc_context_get_device(c.get(), &info); status != OCLC_OK)
          throw RuntimeError(status, 0, "the context has no device");
        return device_facts(info);
      });
}

}  // namespace oclc::python
