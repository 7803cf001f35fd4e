#include "examples/serve/model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace serve {
namespace {

using nlohmann::json;

oclc::rt::Context context_on(const std::string& device) {
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.device = device.c_str();
  options.wait_for_optimized = 1;  // the first answers shall take no longer than the others
  return oclc::rt::Context(options);
}

std::string dim_text(const Model& model, oclc_direction direction, std::uint32_t index, std::uint32_t dim) {
  const char* text = oclc_plan_dimension_text(model.plan.get(), model.entry, direction, index, dim);
  return text ? text : "";
}

// Where it is the first dimension of each input and output, and no other dimension has it.
std::string find_batch_dim(const Model& model) {
  for (const oclc_symbol_info& symbol : model.plan.symbols()) {
    const std::string name = symbol.name;
    const auto leads = [&](oclc_direction direction, const std::vector<oclc_binding_info>& list) {
      for (std::uint32_t i = 0; i < list.size(); ++i) {
        if (list[i].rank == 0 || dim_text(model, direction, i, 0) != name) return false;
        for (std::uint32_t d = 1; d < list[i].rank; ++d)
          if (dim_text(model, direction, i, d).find(name) != std::string::npos) return false;
      }
      return true;
    };
    if (!symbol.loop_counter && leads(OCLC_INPUT, model.inputs) && leads(OCLC_OUTPUT, model.outputs)) return name;
  }
  return "";
}

bool is_number(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos; }

json ports(const Model& model, oclc_direction direction, const std::vector<oclc_binding_info>& list) {
  json result = json::array();
  for (std::uint32_t i = 0; i < list.size(); ++i) {
    json shape = json::array();
    for (std::uint32_t d = 0; d < list[i].rank; ++d) {
      const std::string text = dim_text(model, direction, i, d);
      shape.push_back(is_number(text) ? std::stoll(text) : -1);
    }
    result.push_back({{"name", list[i].name}, {"datatype", type_name(list[i].dtype)}, {"shape", shape}});
  }
  return result;
}

}  // namespace

Model::Model(std::string model_name, const std::string& path, const std::string& device)
    : name(std::move(model_name)),
      plan(oclc::rt::Plan::load(path)),
      context(context_on(device)),
      entry(plan.entry("predict")),
      inputs(plan.inputs(entry)),
      outputs(plan.outputs(entry)) {
  for (const auto& list : {inputs, outputs})
    for (const oclc_binding_info& port : list) {
      if (port.open)
        throw Refusal{501, std::string("output '") + port.name + "' has a shape that each run finds: it is not served"};
      if (type_name(port.dtype) == std::string("none"))
        throw Refusal{501, std::string("'") + port.name + "' is of " + oclc_dtype_name(port.dtype) + ", which is not served"};
    }
  batch_dim_ = find_batch_dim(*this);
}

std::int64_t Model::rows(const Request& request) const {
  if (request.inputs.size() != inputs.size())
    throw Refusal{400,
                  "the model has " + std::to_string(inputs.size()) + " inputs, found " + std::to_string(request.inputs.size())};
  std::int64_t rows = batch_dim_.empty() ? 1 : -1;
  for (const oclc_binding_info& input : inputs) {
    const auto at =
        std::find_if(request.inputs.begin(), request.inputs.end(), [&](const Tensor& t) { return t.name == input.name; });
    if (at == request.inputs.end()) throw Refusal{400, std::string("input '") + input.name + "' is missing"};
    if (at->dtype != input.dtype)
      throw Refusal{
          400, std::string("input '") + input.name + "': wanted " + type_name(input.dtype) + ", found " + type_name(at->dtype)};
    if (at->shape.size() != input.rank)
      throw Refusal{400, std::string("input '") + input.name + "': wanted shape " + input.shape_text + ", found one of " +
                             std::to_string(at->shape.size()) + " dimensions"};
    if (batch_dim_.empty()) continue;
    if (rows >= 0 && at->shape[0] != rows)
      throw Refusal{400, std::string("input '") + input.name + "': its rows are not those of the first"};
    rows = at->shape[0];
  }
  if (rows < 1) throw Refusal{400, "the request has no rows"};
  for (const std::string& wanted : request.outputs)
    if (std::none_of(outputs.begin(), outputs.end(), [&](const oclc_binding_info& o) { return wanted == o.name; }))
      throw Refusal{400, "the model has no output '" + wanted + "'"};
  return rows;
}

std::vector<std::int64_t> Model::shapes(const Request& request) const {
  std::vector<std::int64_t> shapes;
  for (const oclc_binding_info& input : inputs)
    for (const Tensor& tensor : request.inputs)
      if (tensor.name == input.name)
        shapes.insert(shapes.end(), tensor.shape.begin() + (batch_dim_.empty() ? 0 : 1), tensor.shape.end());
  return shapes;
}

std::optional<Request> Model::zeros(std::int64_t rows) const {
  Request request;
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    Tensor tensor{inputs[i].name, inputs[i].dtype, {}, {}};
    std::size_t bytes = oclc_dtype_bytes(tensor.dtype);
    for (std::uint32_t d = 0; d < inputs[i].rank; ++d) {
      const std::string text = dim_text(*this, OCLC_INPUT, i, d);
      if (!is_number(text) && text != batch_dim_) return std::nullopt;
      tensor.shape.push_back(is_number(text) ? std::stoll(text) : rows);
      bytes *= static_cast<std::size_t>(tensor.shape.back());
    }
    tensor.data.resize(bytes);
    request.inputs.push_back(std::move(tensor));
  }
  return request;
}

std::string Model::description() const {
  return json{{"name", name},
              {"versions", {"1"}},
              {"platform", "oclc"},
              {"inputs", ports(*this, OCLC_INPUT, inputs)},
              {"outputs", ports(*this, OCLC_OUTPUT, outputs)}}
      .dump();
}

}  // namespace serve
