#include "examples/serve/protocol.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace serve {
namespace {

using nlohmann::json;

constexpr struct {
  const char* name;
  oclc_dtype dtype;
} kTypes[] = {{"FP32", OCLC_F32},   {"FP64", OCLC_F64},   {"FP16", OCLC_F16},  {"BF16", OCLC_BF16}, {"INT8", OCLC_I8},
              {"INT16", OCLC_I16},  {"INT32", OCLC_I32},  {"INT64", OCLC_I64}, {"UINT8", OCLC_U8},  {"UINT16", OCLC_U16},
              {"UINT32", OCLC_U32}, {"UINT64", OCLC_U64}, {"BOOL", OCLC_BOOL}};

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr int kMostDimensions = 32;

// Calls `use` with a value of the C++ type of `dtype`; false for those that JSON has no numbers for.
template <class Use>
bool with_type(oclc_dtype dtype, Use use) {
  switch (dtype) {
    case OCLC_F32:
      return use(float{}), true;
    case OCLC_F64:
      return use(double{}), true;
    case OCLC_I8:
      return use(std::int8_t{}), true;
    case OCLC_I16:
      return use(std::int16_t{}), true;
    case OCLC_I32:
      return use(std::int32_t{}), true;
    case OCLC_I64:
      return use(std::int64_t{}), true;
    case OCLC_U8:
    case OCLC_BOOL:
      return use(std::uint8_t{}), true;
    case OCLC_U16:
      return use(std::uint16_t{}), true;
    case OCLC_U32:
      return use(std::uint32_t{}), true;
    case OCLC_U64:
      return use(std::uint64_t{}), true;
    default:
      return false;
  }
}

std::uint64_t bytes_of(const Tensor& tensor) {
  std::uint64_t bytes = oclc_dtype_bytes(tensor.dtype);
  for (const std::int64_t d : tensor.shape) {
    if (d < 0 || (d > 0 && bytes > kMostBytes / static_cast<std::uint64_t>(d)))
      throw Refusal{400, "input '" + tensor.name + "': its shape is out of range"};
    bytes *= static_cast<std::uint64_t>(d);
  }
  return bytes;
}

template <class T>
void append(std::vector<std::byte>& data, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  data.insert(data.end(), bytes, bytes + sizeof value);
}

// Nested lists are read in the order of their elements.
template <class T>
void append_values(const json& values, Tensor& tensor, int depth = 0) {
  if (depth > kMostDimensions) throw Refusal{400, "input '" + tensor.name + "': its lists are nested too deep"};
  for (const json& value : values) {
    if (value.is_array()) {
      append_values<T>(value, tensor, depth + 1);
      continue;
    }
    if (!value.is_number() && !value.is_boolean())
      throw Refusal{400, "input '" + tensor.name + "': wanted numbers, found " + value.type_name()};
    append(tensor.data, value.is_boolean() ? static_cast<T>(value.get<bool>()) : value.get<T>());
  }
}

Tensor read_input(const json& item, std::string_view binary, std::size_t& at) {
  Tensor tensor;
  tensor.name = item.at("name").get<std::string>();
  tensor.dtype = type_of(item.at("datatype").get<std::string>());
  tensor.shape = item.at("shape").get<std::vector<std::int64_t>>();
  const std::uint64_t wanted = bytes_of(tensor);
  const json parameters = item.value("parameters", json::object());
  if (parameters.contains("binary_data_size")) {
    const auto size = parameters["binary_data_size"].get<std::uint64_t>();
    if (size > binary.size() - at) throw Refusal{400, "input '" + tensor.name + "': its binary data end behind the request's"};
    tensor.data.resize(size);
    std::memcpy(tensor.data.data(), binary.data() + at, size);
    at += size;
  } else {
    const json& values = item.at("data");
    if (!values.is_array()) throw Refusal{400, "input '" + tensor.name + "': wanted a list as its data"};
    if (!with_type(tensor.dtype, [&](auto zero) { append_values<decltype(zero)>(values, tensor); }))
      throw Refusal{400, "input '" + tensor.name + "': " + type_name(tensor.dtype) + " goes as binary data alone"};
  }
  if (tensor.data.size() != wanted)
    throw Refusal{400, "input '" + tensor.name + "': its shape takes " + std::to_string(wanted) + " bytes, found " +
                           std::to_string(tensor.data.size())};
  return tensor;
}

}  // namespace

const char* type_name(oclc_dtype dtype) {
  for (const auto& row : kTypes)
    if (row.dtype == dtype) return row.name;
  return "none";
}

oclc_dtype type_of(const std::string& name) {
  for (const auto& row : kTypes)
    if (name == row.name) return row.dtype;
  throw Refusal{400, "wanted a datatype of numbers, found '" + name + "'"};
}

Request read_request(std::string_view body, std::size_t json_bytes) {
  if (json_bytes > body.size()) throw Refusal{400, "the request is shorter than Inference-Header-Content-Length says"};
  const std::string_view binary = body.substr(json_bytes);
  try {
    const json document = json::parse(body.substr(0, json_bytes));
    Request request;
    request.id = document.value("id", "");
    std::size_t at = 0;
    for (const json& item : document.at("inputs")) request.inputs.push_back(read_input(item, binary, at));
    if (at != binary.size()) throw Refusal{400, "the request has " + std::to_string(binary.size() - at) + " bytes too many"};
    const json parameters = document.value("parameters", json::object());
    request.binary = parameters.value("binary_data_output", false);
    request.timeout_us = parameters.value("timeout", std::uint64_t{0});
    for (const json& item : document.value("outputs", json::array())) {
      request.outputs.push_back(item.at("name").get<std::string>());
      request.binary |= item.value("parameters", json::object()).value("binary_data", false);
    }
    return request;
  } catch (const json::exception& error) {
    throw Refusal{400, std::string("the request is not of the inference protocol: ") + error.what()};
  }
}

Answer write_answer(const std::string& model, const Request& request, const std::vector<Tensor>& outputs) {
  json document = {{"model_name", model}, {"model_version", "1"}, {"outputs", json::array()}};
  if (!request.id.empty()) document["id"] = request.id;
  std::string binary;
  for (const Tensor& tensor : outputs) {
    json one = {{"name", tensor.name}, {"datatype", type_name(tensor.dtype)}, {"shape", tensor.shape}};
    json values = json::array();
    const bool as_numbers = !request.binary && with_type(tensor.dtype, [&](auto zero) {
      for (std::size_t i = 0; i < tensor.data.size(); i += sizeof zero) {
        auto value = zero;
        std::memcpy(&value, tensor.data.data() + i, sizeof value);
        values.push_back(value);
      }
    });
    if (as_numbers) {
      one["data"] = std::move(values);
    } else {
      one["parameters"] = {{"binary_data_size", tensor.data.size()}};
      binary.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    }
    document["outputs"].push_back(std::move(one));
  }
  Answer answer;
  answer.body = document.dump(-1, ' ', false, json::error_handler_t::replace);
  if (!binary.empty()) answer.json_bytes = answer.body.size(), answer.body += binary;
  return answer;
}

std::string error_body(const std::string& message) {
  return json{{"error", message}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace serve
