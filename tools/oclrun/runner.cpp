#include "tools/oclrun/runner.h"

#include <algorithm>

#include "tools/oclrun/options.h"

namespace oclc::oclrun {
namespace {

oclc_tensor host_view(io::Tensor& tensor) {
  oclc_tensor view = OCLC_INIT(oclc_tensor);
  static constexpr std::int64_t kScalar = 0;
  view.dtype = tensor.dtype;
  view.rank = static_cast<std::uint32_t>(tensor.shape.size());
  view.shape = tensor.shape.empty() ? &kScalar : tensor.shape.data();
  view.host = tensor.data.empty() ? nullptr : tensor.data.data();
  view.bytes = tensor.data.size();
  return view;
}

}  // namespace

std::uint32_t choose_entry(const rt::Plan& plan, const std::string& name) {
  if (!name.empty()) return plan.entry(name);
  if (plan.info().entry_count == 1) return 0;
  return plan.entry("predict");
}

std::string dims_text(const Dims& dims) {
  std::string text;
  for (const auto& [name, value] : dims) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

Runner::Runner(const rt::Plan& plan, const rt::Context& context, const std::string& entry)
    : plan_(plan),
      entry_(choose_entry(plan, entry)),
      entry_name_(plan.entry_info(entry_).name),
      inputs_(plan.inputs(entry_)),
      outputs_(plan.outputs(entry_)),
      session_(plan, context),
      bound_(inputs_.size()),
      results_(outputs_.size()),
      rooms_(outputs_.size()) {}

void Runner::bind_dims(const Dims& dims) {
  for (const oclc_symbol_info& symbol : plan_.symbols())
    if (!symbol.loop_counter) session_.bind_dim(symbol.name, -1);
  for (const auto& [name, value] : dims) session_.bind_dim(name, value);
  dims_ = dims;
}

void Runner::explain(const rt::Error& error) const {
  const std::string text = error.what();
  for (const oclc_symbol_info& symbol : plan_.symbols()) {
    const std::string name = symbol.name;
    const bool given = std::any_of(dims_.begin(), dims_.end(), [&](const auto& dim) { return dim.first == name; });
    if (given || error.status() != OCLC_E_BINDING || text.find("dimension '" + name + "' has no value") == text.npos) continue;
    throw UsageError{"dimension '" + name + "' has no value: give --dim " + name + "=SIZE, or a file for an input that has it"};
  }
  throw error;
}

void Runner::bind_input(std::uint32_t index, io::Tensor tensor) {
  const std::string name = inputs_[index].name;
  session_.set_input(entry_, name, host_view(tensor));
  bound_[index] = std::move(tensor);  // its bytes stay where they are
}

std::vector<std::int64_t> Runner::input_shape(std::uint32_t index) {
  try {
    return session_.shape(entry_, OCLC_INPUT, inputs_[index].name);
  } catch (const rt::Error& error) {
    explain(error);
  }
}

void Runner::bind_outputs() {
  for (std::uint32_t i = 0; i < outputs_.size(); ++i) {
    io::Tensor& result = results_[i];
    result.name = outputs_[i].name;
    result.dtype = outputs_[i].dtype;
    if (outputs_[i].open) {
      oclc_session_set_output(session_.get(), entry_, outputs_[i].name, nullptr);
      continue;
    }
    try {
      result.shape = session_.shape(entry_, OCLC_OUTPUT, result.name);
    } catch (const rt::Error& error) {
      explain(error);
    }
    rooms_[i] = session_.bytes(entry_, OCLC_OUTPUT, result.name);
    result.data.resize(rooms_[i]);
    oclc_tensor view = host_view(result);
    if (rooms_[i] > 0) view.shape = nullptr;
    session_.set_output(entry_, result.name, view);
  }
}

void Runner::run() {
  for (std::size_t i = 0; i < results_.size(); ++i) results_[i].data.resize(rooms_[i]);
  try {
    session_.run(entry_);
  } catch (const rt::Error& error) {
    explain(error);
  }
  for (std::size_t i = 0; i < results_.size(); ++i) {
    io::Tensor& result = results_[i];
    result.shape = session_.shape(entry_, OCLC_OUTPUT, result.name);
    result.data.resize(io::tensor_bytes("output '" + result.name + "'", result.dtype, result.shape));
    if (outputs_[i].open) session_.read_output(entry_, result.name, result.data.data(), result.data.size());
  }
}

void Runner::forget_inputs() {
  for (const oclc_binding_info& input : inputs_) oclc_session_set_input(session_.get(), entry_, input.name, nullptr);
}

void Runner::bind(const Dims& dims, std::vector<io::Tensor> inputs) {
  forget_inputs();
  bind_dims(dims);
  for (std::uint32_t i = 0; i < inputs.size(); ++i) bind_input(i, std::move(inputs[i]));
  bind_outputs();
}

}  // namespace oclc::oclrun
