// Where input values come from: files, an ONNX test_data_set, the generator of cases.json, random numbers.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/oclrun/options.h"
#include "tools/oclrun/runner.h"

namespace oclc::oclrun {

// A .npy or .pb file by its extension.
io::Tensor read_tensor(const std::string& path);

// input_0.pb, input_1.pb, ... (or output_*) of a folder, in the order of `ports` unless each file names its tensor.
std::vector<io::Tensor> read_data_set(const std::string& folder, const std::string& prefix,
                                      const std::vector<oclc_binding_info>& ports);

// Uniform in [-1, 1) for floats, 0 or 1 for integers.
io::Tensor random_tensor(oclc_dtype dtype, const std::vector<std::int64_t>& shape, std::uint64_t seed);

// An entry of `inputs` in cases.json for given dims: seed with lo and hi or limit, const, arange. Throws io::FileError naming
// `where`.
io::Tensor case_tensor(const nlohmann::json& spec, const Dims& dims, const std::string& where);

// Binds dims, then every input from --input, --inputs or --random, then outputs. Throws UsageError for an input without a
// value.
void bind_from_options(Runner& runner, const Options& options);

}  // namespace oclc::oclrun
