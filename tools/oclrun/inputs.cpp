#include "tools/oclrun/inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/package/narrow.h"
#include "tools/fill_weights/uniform.h"
#include "tools/io/npy.h"
#include "tools/io/tensor_proto.h"
#include "tools/oclrun/steps.h"
#include "tools/oclrun/training/batches.h"

namespace oclc::oclrun {
namespace {

namespace fs = std::filesystem;

std::uint16_t narrow_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 6.103515625e-5f)
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 24))));
  const std::uint32_t rounded = (bits & 0x7fffffffu) + 0xfffu + (bits >> 13 & 1u);
  return static_cast<std::uint16_t>(sign | (rounded - (112u << 23)) >> 13);
}

template <class T>
void store(std::vector<std::byte>& data, std::uint64_t index, T value) {
  std::memcpy(data.data() + index * sizeof(T), &value, sizeof(T));
}

void put(io::Tensor& tensor, std::uint64_t i, double value) {
  switch (tensor.dtype) {
    case OCLC_F32:
      return store(tensor.data, i, static_cast<float>(value));
    case OCLC_F64:
      return store(tensor.data, i, value);
    case OCLC_F16:
      return store(tensor.data, i, narrow_half(static_cast<float>(value)));
    case OCLC_BF16: {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      return store(tensor.data, i, static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16));
    }
    case OCLC_I8:
      return store(tensor.data, i, static_cast<std::int8_t>(value));
    case OCLC_I16:
      return store(tensor.data, i, static_cast<std::int16_t>(value));
    case OCLC_I32:
      return store(tensor.data, i, static_cast<std::int32_t>(value));
    case OCLC_I64:
      return store(tensor.data, i, static_cast<std::int64_t>(value));
    case OCLC_U16:
      return store(tensor.data, i, static_cast<std::uint16_t>(value));
    case OCLC_U32:
      return store(tensor.data, i, static_cast<std::uint32_t>(value));
    case OCLC_U64:
      return store(tensor.data, i, static_cast<std::uint64_t>(value));
    case OCLC_BOOL:
      return store(tensor.data, i, static_cast<std::uint8_t>(value != 0));
    case OCLC_F8E4M3FN:
    case OCLC_F8E4M3FNUZ:
    case OCLC_F8E5M2:
    case OCLC_F8E5M2FNUZ:
    case OCLC_F4E2M1:
    case OCLC_I4:
    case OCLC_U4:
    case OCLC_F8E8M0:
    case OCLC_I2:
    case OCLC_U2:
      return store(tensor.data, i, package::narrow_bits(static_cast<plan::DType>(tensor.dtype), static_cast<float>(value)));
    default:
      return store(tensor.data, i, static_cast<std::uint8_t>(value));
  }
}

bool is_float(oclc_dtype dtype) {
  return dtype <= OCLC_BF16 || (dtype >= OCLC_F8E4M3FN && dtype <= OCLC_F4E2M1) || dtype == OCLC_F8E8M0;
}

oclc_dtype dtype_by_name(const std::string& name, const std::string& where) {
  for (int d = OCLC_F32; d <= OCLC_BOOL; ++d)
    if (name == oclc_dtype_name(static_cast<oclc_dtype>(d))) return static_cast<oclc_dtype>(d);
  throw io::FileError(io::FileProblem::contents, where + ": unknown element type '" + name + "'");
}

std::int64_t dim_value(const nlohmann::json& dim, const Dims& dims, const std::string& where) {
  if (dim.is_number_integer()) return dim.get<std::int64_t>();
  if (dim.is_string())
    for (const auto& [name, value] : dims)
      if (name == dim.get<std::string>()) return value;
  throw io::FileError(io::FileProblem::contents, where + ": dimension " + dim.dump() + " has no value in this case");
}

}  // namespace

io::Tensor read_tensor(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".npy") return io::read_npy(path);
  if (extension == ".pb") return io::read_tensor_proto(path);
  throw io::FileError(io::FileProblem::contents, path + ": wanted a file ending in .npy or .pb");
}

std::vector<io::Tensor> read_data_set(const std::string& folder, const std::string& prefix,
                                      const std::vector<oclc_binding_info>& ports) {
  std::vector<io::Tensor> tensors;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string path = folder + "/" + prefix + "_" + std::to_string(i) + ".pb";
    if (!fs::exists(path)) break;
    tensors.push_back(io::read_tensor_proto(path));
  }
  const auto named = [&](const io::Tensor& tensor) {
    return std::any_of(ports.begin(), ports.end(), [&](const oclc_binding_info& port) { return tensor.name == port.name; });
  };
  if (std::all_of(tensors.begin(), tensors.end(), named)) return tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].name = ports[i].name;
  return tensors;
}

io::Tensor random_tensor(oclc_dtype dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  if (dtype == OCLC_STRING)
    throw UsageError{"an input of strings has no random values: give it as a file (.pb) by --input or --inputs"};
  io::Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.data.resize(io::tensor_bytes("a random input", dtype, shape));
  for (std::uint64_t i = 0; i < tensor.elements(); ++i)
    put(tensor, i,
        is_float(dtype)              ? static_cast<double>(fill::uniform(seed, i, -1.0f, 1.0f))
        : fill::unit(seed, i) < 0.5f ? 0
                                     : 1);
  return tensor;
}

io::Tensor case_tensor(const nlohmann::json& spec, const Dims& dims, const std::string& where) {
  io::Tensor tensor;
  tensor.name = spec.at("name").get<std::string>();
  tensor.dtype = dtype_by_name(spec.at("dtype").get<std::string>(), where);
  for (const auto& dim : spec.at("shape"))
    tensor.shape.push_back(dim_value(dim, dims, where + ": input '" + tensor.name + "'"));
  tensor.data.resize(io::tensor_bytes(where + ": input '" + tensor.name + "'", tensor.dtype, tensor.shape));
  const std::uint64_t count = tensor.elements();
  if (spec.contains("const")) {
    for (std::uint64_t i = 0; i < count; ++i) put(tensor, i, spec["const"].get<double>());
  } else if (spec.contains("arange")) {
    const std::int64_t first = dim_value(spec["arange"], dims, where + ": input '" + tensor.name + "'");
    const auto row = static_cast<std::uint64_t>(tensor.shape.empty() ? 1 : tensor.shape.back());
    for (std::uint64_t i = 0; i < count; ++i) put(tensor, i, static_cast<double>(first + static_cast<std::int64_t>(i % row)));
  } else if (spec.contains("limit")) {
    const auto seed = spec.at("seed").get<std::uint64_t>();
    const auto limit = spec["limit"].get<std::int64_t>();
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto value =
          static_cast<std::int64_t>(static_cast<double>(fill::uniform(seed, i, 0, 1)) * static_cast<double>(limit));
      put(tensor, i, static_cast<double>(std::min(value, limit - 1)));
    }
  } else {
    const auto seed = spec.at("seed").get<std::uint64_t>();
    const auto lo = spec.at("lo").get<float>();
    const auto hi = spec.at("hi").get<float>();
    for (std::uint64_t i = 0; i < count; ++i) put(tensor, i, static_cast<double>(fill::uniform(seed, i, lo, hi)));
  }
  return tensor;
}

void bind_from_options(Runner& runner, const Options& options) {
  runner.bind_dims(options.dims);
  std::vector<io::Tensor> set;
  if (!options.inputs_dir.empty()) {
    set = read_data_set(options.inputs_dir, "input", runner.inputs());
    if (set.empty() && !runner.inputs().empty())
      throw io::FileError(io::FileProblem::io, options.inputs_dir + ": wanted input_0.pb in this folder, found none");
  }
  set_first_values(runner, options);

  // Files first: their shapes give the dimensions that random inputs need.
  std::vector<std::uint32_t> open;
  for (std::uint32_t i = 0; i < runner.inputs().size(); ++i) {
    const std::string name = runner.inputs()[i].name;
    const auto file =
        std::find_if(options.inputs.begin(), options.inputs.end(), [&](const auto& item) { return item.first == name; });
    const auto member = std::find_if(set.begin(), set.end(), [&](const auto& tensor) { return tensor.name == name; });
    if (file != options.inputs.end()) {
      const io::Tensor tensor = read_tensor(file->second);
      if (tensor.dtype == runner.inputs()[i].dtype) check_limit(runner.inputs()[i], file->second, tensor);
      runner.bind_input(i, tensor);
    } else if (member != set.end())
      runner.bind_input(i, *member);
    else
      open.push_back(i);
  }
  for (const std::uint32_t i : open) {
    const std::string name = runner.inputs()[i].name;
    if (!options.random)
      throw UsageError{"input '" + name + "' " + runner.inputs()[i].shape_text + " has no value: give --input " + name +
                       "=FILE, --inputs DIR or --random"};
    runner.bind_input(i, random_tensor(runner.inputs()[i].dtype, runner.input_shape(i), *options.random + i));
  }
  runner.bind_outputs();
}

}  // namespace oclc::oclrun
