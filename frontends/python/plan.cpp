#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fstream>

#include "frontends/python/handles.h"
#include "runtime/package/writer.h"

namespace oclc::python {
namespace {

namespace nb = nanobind;

// For queries that fail on an index alone.
void checked_query(oclc_status status) {
  if (status != OCLC_OK) throw RuntimeError(status, 0, "index out of range");
}

Port port_of(const oclc_binding_info& info) { return {info.name, info.shape_text, info.dtype, info.rank, info.open != 0}; }

// A dimension: an int, or the text of an expression.
nb::object dimension(const char* text) {
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  return *end == '\0' ? nb::object(nb::int_(value)) : nb::object(nb::str(text));
}

nb::list bindings(const Plan& plan, std::uint32_t entry, oclc_direction direction, std::uint32_t count) {
  nb::list list;
  for (std::uint32_t i = 0; i < count; ++i) {
    oclc_binding_info info = OCLC_INIT(oclc_binding_info);
    checked_query(oclc_plan_get_binding(plan.get(), entry, direction, i, &info));
    nb::list shape;
    for (std::uint32_t d = 0; d < info.rank; ++d)
      shape.append(dimension(oclc_plan_dimension_text(plan.get(), entry, direction, i, d)));
    nb::list also;
    for (std::uint32_t k = 0; k < info.also_count; ++k) also.append(info.also[k]);
    list.append(nb::make_tuple(info.name, oclc_dtype_name(info.dtype), nb::tuple(shape), info.open != 0, info.limit, also));
  }
  return list;
}

// [(name, inputs, outputs, launches)]
nb::list entries(const Plan& plan) {
  nb::list list;
  for (std::uint32_t e = 0; e < plan.entries().size(); ++e) {
    oclc_entry_info info = OCLC_INIT(oclc_entry_info);
    checked_query(oclc_plan_get_entry(plan.get(), e, &info));
    list.append(nb::make_tuple(info.name, bindings(plan, e, OCLC_INPUT, info.input_count),
                               bindings(plan, e, OCLC_OUTPUT, info.output_count), info.launch_count));
  }
  return list;
}

nb::dict plan_info(const Plan& plan) {
  oclc_plan_info info = OCLC_INIT(oclc_plan_info);
  checked_query(oclc_plan_get_info(plan.get(), &info));
  nb::dict d;
  d["model"] = info.model;
  d["producer"] = info.producer;
  d["target"] = info.target;
  d["precision"] = info.precision;
  d["options"] = info.options;
  d["constant_bytes"] = info.constant_bytes;
  return d;
}

// [(name, low, high)]
nb::list symbols(const Plan& plan) {
  oclc_plan_info info = OCLC_INIT(oclc_plan_info);
  checked_query(oclc_plan_get_info(plan.get(), &info));
  nb::list list;
  for (std::uint32_t i = 0; i < info.symbol_count; ++i) {
    oclc_symbol_info symbol = OCLC_INIT(oclc_symbol_info);
    checked_query(oclc_plan_get_symbol(plan.get(), i, &symbol));
    if (!symbol.loop_counter) list.append(nb::make_tuple(symbol.name, symbol.lo, symbol.hi));
  }
  return list;
}

// [(name, dtype, shape)]
nb::list variables(const Plan& plan) {
  oclc_plan_info info = OCLC_INIT(oclc_plan_info);
  checked_query(oclc_plan_get_info(plan.get(), &info));
  nb::list list;
  for (std::uint32_t i = 0; i < info.variable_count; ++i) {
    oclc_binding_info variable = OCLC_INIT(oclc_binding_info);
    checked_query(oclc_plan_get_variable(plan.get(), i, &variable));
    std::vector<std::int64_t> shape(variable.rank);
    checked_query(oclc_plan_get_variable_shape(plan.get(), i, shape.data(), variable.rank, nullptr));
    nb::list dims;
    for (const std::int64_t d : shape) dims.append(d);
    list.append(nb::make_tuple(variable.name, oclc_dtype_name(variable.dtype), nb::tuple(dims)));
  }
  return list;
}

nb::dict sources(const Plan& plan) {
  oclc_plan_info info = OCLC_INIT(oclc_plan_info);
  checked_query(oclc_plan_get_info(plan.get(), &info));
  nb::dict d;
  for (std::uint32_t i = 0; i < info.program_count; ++i) {
    const char *name = nullptr, *source = nullptr;
    checked_query(oclc_plan_get_program(plan.get(), i, &name, &source));
    d[name] = source;
  }
  return d;
}

nb::dict memory(const Plan& plan, std::uint32_t entry, const nb::dict& sizes) {
  std::vector<std::string> names;
  std::vector<oclc_dim> dims;
  for (const auto& [name, value] : sizes) {
    names.push_back(nb::cast<std::string>(name));
    dims.push_back({nullptr, nb::cast<std::int64_t>(value)});
  }
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i].name = names[i].c_str();
  oclc_memory_info info = OCLC_INIT(oclc_memory_info);
  checked([&](oclc_error* error) {
    return oclc_plan_memory(plan.get(), entry, dims.data(), static_cast<std::uint32_t>(dims.size()), &info, error);
  });
  nb::dict d;
  d["arena_bytes"] = info.arena_bytes;
  d["live_bytes"] = info.live_bytes;
  d["constant_bytes"] = info.constant_bytes;
  d["state_bytes"] = info.state_bytes;
  d["input_bytes"] = info.input_bytes;
  d["output_bytes"] = info.output_bytes;
  return d;
}

}  // namespace

Plan::Plan(std::string path) : path_(std::move(path)) {
  const nb::gil_scoped_release released;
  checked([&](oclc_error* error) { return oclc_plan_load(path_.c_str(), 0, &plan_, error); });
  read_entries();
}

Plan::Plan(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {
  const nb::gil_scoped_release released;
  checked([&](oclc_error* error) { return oclc_plan_load_memory(bytes_.data(), bytes_.size(), &plan_, error); });
  read_entries();
}

Plan::~Plan() { oclc_plan_release(plan_); }

void Plan::read_entries() {
  oclc_plan_info info = OCLC_INIT(oclc_plan_info);
  checked_query(oclc_plan_get_info(plan_, &info));
  for (std::uint32_t e = 0; e < info.entry_count; ++e) {
    oclc_entry_info entry = OCLC_INIT(oclc_entry_info);
    checked_query(oclc_plan_get_entry(plan_, e, &entry));
    EntryPorts ports{entry.name, {}, {}};
    const auto read = [&](oclc_direction direction, std::uint32_t count, std::vector<Port>& list) {
      for (std::uint32_t i = 0; i < count; ++i) {
        oclc_binding_info binding = OCLC_INIT(oclc_binding_info);
        checked_query(oclc_plan_get_binding(plan_, e, direction, i, &binding));
        list.push_back(port_of(binding));
      }
    };
    read(OCLC_INPUT, entry.input_count, ports.inputs);
    read(OCLC_OUTPUT, entry.output_count, ports.outputs);
    entries_.push_back(std::move(ports));
  }
}

const EntryPorts& Plan::entry(std::uint32_t index) const {
  if (index >= entries_.size()) throw nb::index_error("the plan has no such entry");
  return entries_[index];
}

std::vector<std::byte> Plan::file_bytes() const {
  std::ifstream file(path_, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(file ? static_cast<std::size_t>(file.tellg()) : 0);
  file.seekg(0);
  if (!file || !file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
    throw RuntimeError(OCLC_E_IO, 0, path_ + ": the plan's file cannot be read again");
  return bytes;
}

nb::bytes Plan::bytes() const {
  if (path_.empty()) return nb::bytes(bytes_.data(), bytes_.size());
  const std::vector<std::byte> file = file_bytes();
  return nb::bytes(file.data(), file.size());
}

void Plan::save(const std::string& path) const {
  const nb::gil_scoped_release released;
  package::write_file(path, path_.empty() ? bytes_ : file_bytes());
}

void bind_plan(nb::module_& module) {
  nb::class_<Plan>(module, "Plan")
      .def_static("of_file", [](const std::string& path) { return std::make_shared<Plan>(path); })
      .def_static("of_bytes",
                  [](nb::bytes bytes) {
                    const auto* data = static_cast<const std::byte*>(bytes.data());
                    return std::make_shared<Plan>(std::vector<std::byte>(data, data + bytes.size()));
                  })
      .def("entries", entries)
      .def("info", plan_info)
      .def("symbols", symbols)
      .def("variables", variables)
      .def("sources", sources)
      .def("memory", memory)
      .def("bytes", &Plan::bytes)
      .def("save", &Plan::save);
}

}  // namespace oclc::python
