#include "frontends/torch_device/csrc/compiled.h"

#include <ATen/Functions.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include <cstdlib>
#include <unordered_map>

#include "frontends/torch_device/csrc/copies.h"
#include "frontends/torch_device/csrc/plan_entry.h"

namespace py = pybind11;

namespace oclc::torch_device {
namespace {

using Stack = torch::jit::Stack;

struct Served {
  std::shared_ptr<PlanEntry> entry;  // null: on the CPU
  std::string reason;                // empty: there is nothing to compute
};

struct Plans {
  std::mutex mutex;
  std::unordered_map<std::string, Served> exact, general;
  std::unordered_map<std::string, int> seen;  // by a general key: calls with different exact keys
  std::map<std::string, Fallback> fallbacks;
  Counters counters;
  PyObject* tracer = nullptr;
};

Plans& plans() {
  static auto* all = new Plans;
  return *all;
}

std::vector<Input> inputs_of(const py::list& rows) {
  std::vector<Input> inputs;
  for (const py::handle row : rows) {
    const auto fields = py::cast<py::dict>(row);
    Input input;
    input.name = py::cast<std::string>(fields["name"]);
    if (fields.contains("constant")) {
      input.kind = Input::Kind::kConstant;
      input.constant = py::cast<at::Tensor>(fields["constant"]);
    } else if (fields.contains("numbers")) {
      input.kind = Input::Kind::kNumbers;
      input.numbers = py::cast<std::vector<std::size_t>>(fields["numbers"]);
      input.dtype = py::cast<bool>(fields["wide"]) ? OCLC_F64 : OCLC_F32;
    } else {
      input.tensor = py::cast<std::size_t>(fields["tensor"]);
      if (!fields["axes"].is_none()) {
        input.permuted = true;
        for (const auto& [axis, expanded] : py::cast<std::vector<std::pair<std::int64_t, bool>>>(fields["axes"]))
          input.axes.push_back({axis, expanded});
      }
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

std::vector<Output> outputs_of(const py::list& rows) {
  std::vector<Output> outputs;
  for (const py::handle row : rows) {
    const auto fields = py::cast<py::dict>(row);
    Output output;
    output.name = py::cast<std::string>(fields["name"]);
    output.dtype = py::cast<at::ScalarType>(fields["dtype"]);
    output.sizes = py::cast<std::vector<std::int64_t>>(fields["sizes"]);
    output.strides = py::cast<std::vector<std::int64_t>>(fields["strides"]);
    output.fixed = py::cast<bool>(fields["fixed"]);
    outputs.push_back(std::move(output));
  }
  return outputs;
}

// Asks the tracer. Its refusal is an entry too.
Served trace(const Call& call, const Stack& stack, Call::Key kind) {
  const py::gil_scoped_acquire gil;
  // Tracing is no part of the program that called: none of its modes, and no autograd.
  c10::impl::PODLocalDispatchKeySet none{};
  none.set_excluded(none.excluded() | c10::autograd_dispatch_keyset);
  const c10::impl::ForceDispatchKeyGuard keys{c10::impl::LocalDispatchKeySet(none)};
  TORCH_CHECK(plans().tracer, "device ocl: the package oclc_torch is not imported");
  py::list arguments;
  const auto& schema = call.op.schema();
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::IValue& value = stack[call.begin + i];
    const bool number =
        value.isTensor() && value.toTensor().defined() && value.toTensor().unsafeGetTensorImpl()->is_wrapped_number();
    arguments.append(torch::jit::toPyObject(number ? c10::IValue(value.toTensor().item()) : value));
  }
  const char* general = kind == Call::Key::kExact ? "" : kind == Call::Key::kNumbers ? "numbers" : "sizes";
  py::object answer;
  try {
    answer = py::reinterpret_borrow<py::object>(plans().tracer)(schema.name(), schema.overload_name(), arguments, general,
                                                                static_cast<int>(call.device));
  } catch (py::error_already_set& error) {
    return {nullptr, error.what()};
  }
  if (py::isinstance<py::str>(answer)) return {nullptr, py::cast<std::string>(answer)};
  const auto fields = py::cast<py::dict>(answer);
  std::vector<Result> results;
  for (const int output : py::cast<std::vector<int>>(fields["results"])) results.push_back({output});
  auto fixed = py::cast<std::vector<std::pair<std::size_t, double>>>(fields["fixed_numbers"]);
  auto inputs = inputs_of(fields["inputs"]);
  auto outputs = outputs_of(fields["outputs"]);
  const auto bytes = py::cast<std::string>(fields["bytes"]);
  const py::gil_scoped_release released;
  try {
    return {std::make_shared<PlanEntry>(device(call.device), bytes, std::move(inputs), std::move(outputs), std::move(results),
                                        std::move(fixed)),
            ""};
  } catch (const c10::Error& error) {
    return {nullptr, error.what_without_backtrace()};
  }
}

Served find(const Call& call, const Stack& stack) {
  Plans& all = plans();
  const std::string exact = call.key(Call::Key::kExact);
  {
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.exact.find(exact); found != all.exact.end()) return found->second;
  }
  // The second call that differs in numbers alone, or in sizes alone, is served by a plan that takes them as they come.
  const std::array<Call::Key, 2> kinds{Call::Key::kNumbers, Call::Key::kSizes};
  for (const Call::Key kind : kinds) {
    if (kind == Call::Key::kNumbers && call.numbers.empty()) continue;
    const std::string key = static_cast<char>(kind) + call.key(kind);
    bool again = false;
    {
      const std::lock_guard lock(all.mutex);
      const auto found = all.general.find(key);
      if (found != all.general.end() && found->second.entry && found->second.entry->serves(call)) return found->second;
      again = found == all.general.end() && all.seen[key]++ > 0;
      all.counters.traced += again;
    }
    if (!again) continue;
    Served served = trace(call, stack, kind);
    const std::lock_guard lock(all.mutex);
    all.general[key] = served;
    if (served.entry && served.entry->serves(call)) return served;
  }
  Served served = trace(call, stack, Call::Key::kExact);
  const std::lock_guard lock(all.mutex);
  ++all.counters.traced;
  all.exact[exact] = served;
  return served;
}

bool strict() {
  const char* value = std::getenv("TORCH_OCL_FALLBACK");
  return value && std::string_view(value) == "error";
}

void run_on_cpu(const c10::OperatorHandle& op, Stack* stack, const std::string& reason, bool counted) {
  const std::string name = c10::toString(op.operator_name());
  TORCH_CHECK_NOT_IMPLEMENTED(!counted || !strict(), "device ocl: ", name,
                              " would run on the CPU, which TORCH_OCL_FALLBACK=error forbids: ", reason);
  bool first = false;
  if (counted) {
    const std::lock_guard lock(plans().mutex);
    Fallback& fallback = plans().fallbacks[name];
    first = fallback.count++ == 0;
    fallback.reason = reason;
  }
  if (first) TORCH_WARN("device ocl: ", name, " runs on the CPU (torch.ocl.fallbacks() counts it): ", reason);
  at::native::cpu_fallback(op, stack);
}

// Whether the storage is this tensor in rows and nothing else, so that new memory may take its place.
bool covers_storage(const at::Tensor& t) {
  return t.storage_offset() == 0 && t.is_contiguous() && t.storage().nbytes() == t.nbytes();
}

bool shares_storage(const Call& call, const at::Tensor& t, std::size_t but) {
  for (std::size_t i = 0; i < call.tensors.size(); ++i)
    if (i != but && call.tensors[i].storage().is_alias_of(t.storage())) return true;
  return false;
}

void count(std::uint64_t Counters::*what) {
  const std::lock_guard lock(plans().mutex);
  ++(plans().counters.*what);
}

void put(const at::Tensor& target, const at::Tensor& result) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), target.scalar_type()), "result type ", result.scalar_type(),
              " can't be cast to the desired output type ", target.scalar_type());
  at::native::resize_output(target, result.sizes());
  if (covers_storage(target) && target.scalar_type() == result.scalar_type() && covers_storage(result)) {
    target.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
        std::move(result.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks()));
    return count(&Counters::in_place);
  }
  count(&Counters::copied);
  if (target.scalar_type() == result.scalar_type())
    copy_layout(target, result);
  else
    target.copy_(result);
}

at::Tensor as_torch_expects(const at::Tensor& result, const Output& output) {
  if (output.strides.empty()) return result;
  at::Tensor strided = at::empty_strided(output.sizes, output.strides, result.options());
  copy_layout(strided, result);
  return strided;
}

// Takes the arguments off the stack and puts what the schema returns there: written arguments themselves, and results.
void push_returns(const Call& call, Stack* stack, const std::vector<at::Tensor>& results) {
  const auto& schema = call.op.schema();
  std::vector<c10::IValue> returns;
  std::size_t next = 0;
  for (const auto& r : schema.returns()) {
    if (const c10::AliasInfo* alias = r.alias_info()) {
      for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
        const c10::AliasInfo* of = schema.arguments()[i].alias_info();
        if (of && of->isWrite() && of->beforeSets() == alias->beforeSets()) returns.push_back((*stack)[call.begin + i]);
      }
    } else if (r.type()->kind() == c10::TypeKind::ListType) {
      returns.emplace_back(std::vector<at::Tensor>(results.begin() + static_cast<std::ptrdiff_t>(next), results.end()));
      next = results.size();
    } else {
      returns.emplace_back(results.at(next++));
    }
  }
  torch::jit::drop(*stack, schema.arguments().size());
  for (c10::IValue& value : returns) stack->push_back(std::move(value));
}

void run_plan(const Call& call, Stack* stack, PlanEntry& entry) {
  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < call.tensors.size(); ++i)
    if (call.written[i]) written.push_back(i);
  std::vector<at::Tensor> targets(entry.outputs().size());
  // Where the operator does not read what it writes the plan writes it itself.
  for (std::size_t k = 0; call.out && k < written.size(); ++k) {
    const at::Tensor& t = call.tensors[written[k]];
    const int at = entry.results()[k].output;
    if (at < 0) continue;
    const Output& o = entry.outputs()[static_cast<std::size_t>(at)];
    if (o.fixed && t.dim() > 0 && t.sizes() == at::IntArrayRef(o.sizes) && t.is_contiguous() && t.scalar_type() == o.dtype &&
        !shares_storage(call, t, written[k]) && !targets[static_cast<std::size_t>(at)].defined()) {
      targets[static_cast<std::size_t>(at)] = t;
      count(&Counters::in_place);
    }
  }
  const std::vector<at::Tensor> direct = targets;
  const std::vector<at::Tensor> outputs = entry.run(call, std::move(targets));
  std::vector<at::Tensor> results;
  for (std::size_t k = 0; k < entry.results().size(); ++k) {
    const int at = entry.results()[k].output;
    if (at < 0) {
      if (k >= written.size()) results.emplace_back();
      continue;
    }
    const at::Tensor& found = outputs[static_cast<std::size_t>(at)];
    if (k >= written.size()) {
      results.push_back(as_torch_expects(found, entry.outputs()[static_cast<std::size_t>(at)]));
    } else if (!direct[static_cast<std::size_t>(at)].is_same(call.tensors[written[k]])) {
      put(call.tensors[written[k]], found);
    }
  }
  push_returns(call, stack, results);
}

}  // namespace

void run_operator(const c10::OperatorHandle& op, Stack* stack) {
  Call call(op, *stack);
  if (call.device < 0) call.device = current_device();
  if (call.mixed && call.on_device) {
    for (const at::Tensor& t : call.tensors)
      TORCH_CHECK(
          !t.is_cpu() || t.dim() == 0 || op.schema().name() == "aten::index" || op.schema().name() == "aten::index_put_",
          "Expected all tensors to be on the same device, but found at least two devices, ocl:", static_cast<int>(call.device),
          " and cpu! (", c10::toString(op.operator_name()), ")");
  }
  if (call.empty) return run_on_cpu(op, stack, "", false);  // there is nothing to compute
  if (!call.plain) return run_on_cpu(op, stack, "an argument is of a type that plans have not, or on another device", true);
  Served served = find(call, *stack);
  if (!served.entry) return run_on_cpu(op, stack, served.reason, !served.reason.empty());
  count(&Counters::calls);
  run_plan(call, stack, *served.entry);
}

at::Tensor convert(const at::Tensor& tensor, at::ScalarType dtype) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_to_copy", "");
  const at::Tensor rows = in_rows(tensor);
  Stack stack;
  torch::jit::push(stack, rows, dtype, c10::IValue(), c10::IValue(), c10::IValue(), false, c10::IValue());
  run_operator(op, &stack);
  return stack.back().toTensor();
}

void set_tracer(py::object tracer) { plans().tracer = tracer.release().ptr(); }

Counters counters() {
  const std::lock_guard lock(plans().mutex);
  return plans().counters;
}

std::map<std::string, Fallback> fallbacks() {
  const std::lock_guard lock(plans().mutex);
  return plans().fallbacks;
}

}  // namespace oclc::torch_device
