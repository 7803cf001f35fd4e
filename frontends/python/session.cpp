#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include "frontends/python/handles.h"

namespace oclc::python {
namespace {

namespace nb = nanobind;

void check_count(std::size_t wanted, std::size_t found, const std::string& entry, const char* what) {
  if (wanted != found)
    throw nb::value_error(
        ("entry '" + entry + "': wanted " + std::to_string(wanted) + " " + what + ", found " + std::to_string(found)).c_str());
}

std::uint64_t product(std::uint64_t bytes, const std::vector<std::int64_t>& shape) {
  for (const std::int64_t d : shape) bytes *= static_cast<std::uint64_t>(d);
  return bytes;
}

}  // namespace

Session::Session(std::shared_ptr<Plan> plan, std::shared_ptr<Context> context)
    : plan_(std::move(plan)), context_(std::move(context)), bound_(plan_->entries().size()) {
  context_->check_process();
  const nb::gil_scoped_release released;
  checked([&](oclc_error* error) { return oclc_session_create(plan_->get(), context_->get(), &session_, error); });
}

Session::~Session() {
  try {
    context_->check_process();
  } catch (const Forked&) {
    return;  // a child would wait for what runs in the parent
  }
  oclc_session_release(session_);
}

Session::Use::Use(Session& session) : session_(session) {
  session.context_->check_process();
  if (session.busy_.exchange(true, std::memory_order_acquire))
    throw RuntimeError(OCLC_E_ARGUMENT, 0,
                       "the session is in use on another thread; make a session for each thread (they share plan and context)");
}

void Session::check(oclc_status status) const {
  if (status != OCLC_OK) throw RuntimeError(status, oclc_session_cl_code(session_), oclc_session_message(session_));
}

std::vector<HeldTensor> Session::bind_inputs(std::uint32_t entry, nb::list inputs) {
  const EntryPorts& ports = plan_->entry(entry);
  check_count(ports.inputs.size(), inputs.size(), ports.name, "inputs");
  std::vector<HeldTensor> memory;
  memory.reserve(ports.inputs.size() + ports.outputs.size());
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    memory.push_back(input_tensor(inputs[i], ports.inputs[i]));
    copies_ += memory.back().copied;
    check(oclc_session_set_input(session_, entry, ports.inputs[i].name.c_str(), memory.back().get()));
  }
  return memory;
}

std::vector<std::int64_t> Session::output_shape(std::uint32_t entry, const Port& port, std::uint64_t* bytes) const {
  std::vector<std::int64_t> shape(port.rank);
  check(oclc_session_get_shape(session_, entry, OCLC_OUTPUT, port.name.c_str(), shape.data(), port.rank, nullptr, bytes));
  return shape;
}

void Session::bind_outputs(std::uint32_t entry, nb::list outputs, std::vector<HeldTensor>& memory) {
  const EntryPorts& ports = plan_->entry(entry);
  check_count(ports.outputs.size(), outputs.size(), ports.name, "outputs");
  for (std::size_t i = 0; i < ports.outputs.size(); ++i) {
    const Port& port = ports.outputs[i];
    const nb::handle given = outputs[i];
    if (given.is_none() && port.open) {
      memory.emplace_back();
      check(oclc_session_set_output(session_, entry, port.name.c_str(), nullptr));
      continue;
    }
    if (given.is_none()) {
      std::uint64_t bytes = 0;
      std::vector<std::int64_t> shape = output_shape(entry, port, &bytes);
      memory.push_back(new_output(port, std::move(shape), bytes));
    } else {
      memory.push_back(output_tensor(given, port));
    }
    oclc_tensor tensor = *memory.back().get();
    if (given.is_none()) tensor.shape = nullptr;  // the largest; the run may find less
    check(oclc_session_set_output(session_, entry, port.name.c_str(), &tensor));
  }
}

nb::list Session::results(std::uint32_t entry, nb::list outputs, std::vector<HeldTensor>& memory) {
  const EntryPorts& ports = plan_->entry(entry);
  nb::list list;
  for (std::size_t i = 0; i < ports.outputs.size(); ++i) {
    const Port& port = ports.outputs[i];
    if (!outputs[i].is_none()) {
      list.append(outputs[i]);
      continue;
    }
    HeldTensor& held = memory[ports.inputs.size() + i];
    std::uint64_t bytes = 0;
    const std::vector<std::int64_t> shape = output_shape(entry, port, &bytes);
    if (port.open) {
      const std::uint64_t element = port.dtype == OCLC_STRING ? sizeof(const char*) : oclc_dtype_bytes(port.dtype);
      held = new_output(port, shape, product(element, shape));
      check(oclc_session_read_output(session_, entry, port.name.c_str(), held.tensor.host, held.tensor.bytes));
    }
    list.append(as_array(held, shape));
  }
  return list;
}

nb::list Session::run(std::uint32_t entry, nb::list inputs, nb::list outputs) {
  const Use use(*this);
  std::vector<HeldTensor> memory = bind_inputs(entry, inputs);
  bind_outputs(entry, outputs, memory);
  {
    const nb::gil_scoped_release released;
    check(oclc_session_run(session_, entry));
  }
  nb::list list = results(entry, outputs, memory);
  bound_[entry] = std::move(memory);
  return list;
}

nb::list Session::run_steps(std::uint32_t entry, std::uint64_t steps, nb::list inputs, nb::list wanted) {
  const Use use(*this);
  const EntryPorts& ports = plan_->entry(entry);
  check_count(ports.inputs.size(), inputs.size(), ports.name, "inputs");
  check_count(ports.outputs.size(), wanted.size(), ports.name, "outputs");
  std::vector<HeldTensor> memory;
  std::vector<oclc_series> series;
  const auto add = [&](oclc_direction direction, const std::string& name, HeldTensor& held) {
    const oclc_tensor tensor = *held.get();
    oclc_series s = OCLC_INIT(oclc_series);
    s.direction = direction;
    s.name = name.c_str();
    s.dtype = tensor.dtype;
    s.rank = tensor.rank;
    s.shape = tensor.shape;
    s.host = tensor.host;
    s.bytes = tensor.bytes;
    series.push_back(s);
  };
  memory.reserve(ports.inputs.size() + ports.outputs.size());
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    const Port& port = ports.inputs[i];
    memory.push_back(input_tensor(inputs[i], port));
    HeldTensor& held = memory.back();
    copies_ += held.copied;
    if (held.shape.size() != port.rank + 1) {
      check(oclc_session_set_input(session_, entry, port.name.c_str(), held.get()));
      continue;
    }
    if (!held.tensor.host && held.tensor.bytes > 0)
      throw nb::type_error(
          ("'" + port.name + "': a value for each step lies in memory of the CPU, found an array of OpenCL").c_str());
    add(OCLC_INPUT, port.name, held);
    oclc_tensor one = *held.get();  // gives the dimensions
    --one.rank;
    ++one.shape;
    check(oclc_session_set_input(session_, entry, port.name.c_str(), &one));
  }
  nb::list list;
  for (std::size_t i = 0; i < ports.outputs.size(); ++i) {
    const Port& port = ports.outputs[i];
    check(oclc_session_set_output(session_, entry, port.name.c_str(), nullptr));
    if (!nb::cast<bool>(wanted[i])) continue;
    std::uint64_t bytes = 0;
    std::vector<std::int64_t> shape = output_shape(entry, port, &bytes);
    shape.insert(shape.begin(), static_cast<std::int64_t>(steps));
    memory.push_back(new_output(port, shape, bytes * steps));
    add(OCLC_OUTPUT, port.name, memory.back());
    list.append(as_array(memory.back(), shape));
  }
  {
    const nb::gil_scoped_release released;
    check(oclc_session_run_steps(session_, entry, steps, series.data(), static_cast<std::uint32_t>(series.size())));
  }
  bound_[entry] = std::move(memory);
  return list;
}

nb::tuple Session::enqueue(std::uint32_t entry, nb::list inputs, nb::list outputs) {
  const Use use(*this);
  for (const Port& port : plan_->entry(entry).outputs)
    if (port.open)
      throw RuntimeError(OCLC_E_UNSUPPORTED, 0,
                         "output '" + port.name + "' has a size that the run finds; call run() instead of enqueue()");
  std::vector<HeldTensor> memory = bind_inputs(entry, inputs);
  bind_outputs(entry, outputs, memory);
  _cl_event* event = nullptr;
  {
    const nb::gil_scoped_release released;
    check(oclc_session_enqueue(session_, entry, 0, nullptr, &event));
  }
  nb::list list = results(entry, outputs, memory);
  return nb::make_tuple(std::make_shared<Running>(shared_from_this(), event, std::move(memory)), list);
}

void Session::run_addresses(std::uint32_t entry, nb::list shapes, nb::list inputs, nb::list outputs) {
  const Use use(*this);
  const EntryPorts& ports = plan_->entry(entry);
  check_count(ports.inputs.size(), inputs.size(), ports.name, "inputs");
  check_count(ports.inputs.size(), shapes.size(), ports.name, "shapes");
  check_count(ports.outputs.size(), outputs.size(), ports.name, "outputs");
  static constexpr std::int64_t kScalar = 0;
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    const Port& port = ports.inputs[i];
    shape.clear();
    for (const nb::handle d : nb::borrow<nb::tuple>(shapes[i])) shape.push_back(nb::cast<std::int64_t>(d));
    oclc_tensor tensor = OCLC_INIT(oclc_tensor);
    tensor.dtype = port.dtype;
    tensor.rank = static_cast<std::uint32_t>(shape.size());
    tensor.shape = shape.empty() ? &kScalar : shape.data();
    tensor.host = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(inputs[i]));
    tensor.bytes = product(oclc_dtype_bytes(port.dtype), shape);
    check(oclc_session_set_input(session_, entry, port.name.c_str(), &tensor));
  }
  for (std::size_t i = 0; i < ports.outputs.size(); ++i) {
    const Port& port = ports.outputs[i];
    oclc_tensor tensor = OCLC_INIT(oclc_tensor);
    tensor.dtype = port.dtype;
    tensor.rank = port.rank;
    tensor.host = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(outputs[i]));
    check(oclc_session_get_shape(session_, entry, OCLC_OUTPUT, port.name.c_str(), nullptr, 0, nullptr, &tensor.bytes));
    check(oclc_session_set_output(
        session_, entry, port.name.c_str(), tensor.rank > 0 ? &tensor : [&] {
          tensor.shape = &kScalar;
          return &tensor;
        }()));
  }
  const nb::gil_scoped_release released;
  check(oclc_session_run(session_, entry));
}

std::uint32_t Session::variable_index(const std::string& name) const {
  oclc_plan_info info = OCLC_INIT(oclc_plan_info);
  oclc_plan_get_info(plan_->get(), &info);
  for (std::uint32_t i = 0; i < info.variable_count; ++i) {
    oclc_binding_info variable = OCLC_INIT(oclc_binding_info);
    if (oclc_plan_get_variable(plan_->get(), i, &variable) == OCLC_OK && name == variable.name) return i;
  }
  throw nb::key_error(name.c_str());
}

nb::object Session::read_variable(const std::string& name) {
  const Use use(*this);
  const std::uint32_t index = variable_index(name);
  oclc_binding_info variable = OCLC_INIT(oclc_binding_info);
  oclc_plan_get_variable(plan_->get(), index, &variable);
  std::vector<std::int64_t> shape(variable.rank);
  std::uint64_t bytes = 0;
  oclc_plan_get_variable_shape(plan_->get(), index, shape.data(), variable.rank, &bytes);
  const Port port{name, variable.shape_text, variable.dtype, variable.rank, false};
  const HeldTensor memory = new_output(port, shape, bytes);
  check(oclc_session_read_variable(session_, name.c_str(), memory.tensor.host, bytes));
  return as_array(memory, shape);
}

void Session::write_variable(const std::string& name, nb::handle value) {
  const Use use(*this);
  const std::uint32_t index = variable_index(name);
  oclc_binding_info variable = OCLC_INIT(oclc_binding_info);
  oclc_plan_get_variable(plan_->get(), index, &variable);
  std::vector<std::int64_t> shape(variable.rank);
  oclc_plan_get_variable_shape(plan_->get(), index, shape.data(), variable.rank, nullptr);
  const Port port{name, variable.shape_text, variable.dtype, variable.rank, false};
  const HeldTensor memory = input_tensor(value, port);
  if (memory.tensor.dtype != variable.dtype || memory.shape != shape)
    throw RuntimeError(OCLC_E_BINDING, 0,
                       "state '" + name + "': wanted " + oclc_dtype_name(variable.dtype) + variable.shape_text +
                           ", found an array of another type or shape");
  check(oclc_session_write_variable(session_, name.c_str(), memory.tensor.host, memory.tensor.bytes));
}

void Session::reset_state() {
  const Use use(*this);
  check(oclc_session_reset_state(session_));
}

void Session::save_state(const std::string& path) {
  const Use use(*this);
  const nb::gil_scoped_release released;
  check(oclc_session_save_state(session_, path.c_str()));
}

void Session::load_state(const std::string& path) {
  const Use use(*this);
  const nb::gil_scoped_release released;
  check(oclc_session_load_state(session_, path.c_str()));
}

void Session::bind_dim(const std::string& symbol, std::int64_t value) {
  const Use use(*this);
  check(oclc_session_bind_dim(session_, symbol.c_str(), value));
}

void Session::enable_profile(bool enabled) {
  const Use use(*this);
  check(oclc_session_enable_profile(session_, enabled));
}

void Session::enable_nan_check(bool enabled) {
  const Use use(*this);
  check(oclc_session_enable_nan_check(session_, enabled));
}

nb::list Session::launches() {
  const Use use(*this);
  std::uint32_t count = 0;
  check(oclc_session_get_launches(session_, nullptr, 0, &count));
  std::vector<oclc_launch_info> infos(count, OCLC_INIT(oclc_launch_info));
  if (count > 0) check(oclc_session_get_launches(session_, infos.data(), count, &count));
  nb::list list;
  for (const oclc_launch_info& launch : infos)
    list.append(nb::make_tuple(launch.name, launch.anchor, launch.nodes, launch.step, launch.start_ns, launch.end_ns,
                               launch.flops, launch.bytes));
  return list;
}

nb::dict Session::stats() {
  oclc_stats stats = OCLC_INIT(oclc_stats);
  check(oclc_session_get_stats(session_, &stats));
  nb::dict d;
  d["arena_bytes"] = stats.arena_bytes;
  d["constant_bytes"] = stats.constant_bytes;
  d["state_bytes"] = stats.state_bytes;
  d["staging_bytes"] = stats.staging_bytes;
  d["build_ns"] = stats.build_ns;
  d["programs_built"] = stats.programs_built;
  d["programs_cached"] = stats.programs_cached;
  d["launches"] = stats.launches;
  d["preparations"] = stats.preparations;
  d["train_steps"] = stats.train_steps;
  d["copies"] = copies_;
  return d;
}

void bind_session(nb::module_& module) {
  nb::class_<Running>(module, "Running").def("wait", &Running::wait).def("done", &Running::done);
  nb::class_<Session>(module, "Session")
      .def("__init__", [](nb::handle_t<Session>, nb::args) { throw nb::type_error("make sessions with Plan.session()"); })
      .def_static("make",
                  [](std::shared_ptr<Plan> plan, std::shared_ptr<Context> context) {
                    return std::make_shared<Session>(std::move(plan), std::move(context));
                  })
      .def("run", &Session::run)
      .def("enqueue", &Session::enqueue)
      .def("run_steps", &Session::run_steps)
      .def("run_addresses", &Session::run_addresses)
      .def("read_variable", &Session::read_variable)
      .def("write_variable", &Session::write_variable)
      .def("reset_state", &Session::reset_state)
      .def("save_state", &Session::save_state)
      .def("load_state", &Session::load_state)
      .def("bind_dim", &Session::bind_dim)
      .def("enable_profile", &Session::enable_profile)
      .def("enable_nan_check", &Session::enable_nan_check)
      .def("launches", &Session::launches)
      .def("stats", &Session::stats)
      .def("cancel", &Session::cancel);
}

}  // namespace oclc::python
