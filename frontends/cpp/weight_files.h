// Files of named tensors, for state_dictionary() of parameters.h. The tensors view the mapped file, which stays open with them.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "compiler/ir/tensor.h"

namespace oclc::nn {

using NamedTensors = std::map<std::string, HostTensor, std::less<>>;

// Hugging Face's safetensors: a JSON header with dtype, shape and place of each tensor, then their bytes.
NamedTensors read_safetensors(const std::filesystem::path& file);
// NumPy's .npz as np.savez writes it: a ZIP archive of .npy files that are stored. Compressed members, Fortran order and big
// endian are refused.
NamedTensors read_npz(const std::filesystem::path& file);

// Both throw CompileError, which names the file, and the tensor where one is at fault.

}  // namespace oclc::nn
