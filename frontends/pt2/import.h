// Reads exported programs of PyTorch into a Module with the entry "predict". Everything in a file is checked before it is used;
// whatever is wrong with it is a CompileError of stage "import".
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

struct Pt2Options {
  // Floating-point parameters become state variables with these initial values (inputs of the entry, see Module), as do running
  // statistics, and batch normalisation and dropout stay operators: what build_training needs.
  bool training = false;
  std::map<std::string, std::int64_t> dims;  // values of symbols by name
};

// Whether the file begins as `.pt2` files do and not as ONNX models.
bool is_pt2(const std::filesystem::path& file);

// A file of torch.export.save. Weights stay in a mapping of the file, which the module keeps.
std::unique_ptr<Module> import_pt2(const std::filesystem::path& file, const Pt2Options& options = {});

// A graph in the JSON of such files. Placeholders are inputs, but those of which `constant` gives the value.
using FindConstant = std::function<std::optional<HostTensor>(std::string_view placeholder)>;
std::unique_ptr<Module> import_pt2_graph(std::string_view json, const FindConstant& constant = {},
                                         const Pt2Options& options = {});

// torch's number of an element type; nothing for types that the compiler lacks.
std::optional<DType> dtype_of_torch(std::int64_t number);

// The names of the operators that are read, sorted: "aten.add.Tensor".
std::vector<std::string_view> pt2_operators();

}  // namespace oclc
