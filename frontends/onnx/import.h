// Reads ONNX models (opsets 1 to 28) into a Module with the entry "predict". Everything in a model file is checked before it is
// used; whatever is wrong with it is a CompileError of stage "import".
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/graph.h"

namespace oclc {

class CustomOps;

inline constexpr int kOldestOpset = 1;
inline constexpr int kNewestOpset = 28;
inline constexpr int kNewestIrVersion = 14;

// A model over a limit is refused before memory is spent on it.
struct ImportLimits {
  std::int64_t file_bytes = INT32_MAX;  // protobuf's own limit
  std::int64_t nodes = 1'000'000;       // of all graphs and functions, and after functions are expanded
  std::int64_t tensors = 1'000'000;
  std::int64_t attributes_per_node = 10'000;
  std::int64_t name_bytes = 4096;
  std::int64_t properties = 1024;         // of the model's metadata; what is beyond is left out
  std::int64_t property_bytes = 1 << 20;  // of one's value
  std::int64_t rank = 32;
  std::int64_t dim = std::int64_t{1} << 40;
  std::int64_t elements = std::int64_t{1} << 48;
  int subgraph_depth = 32;
  std::int64_t message_bytes = std::int64_t{3} << 29;  // estimated memory of the parsed messages beside the tensors' data
};

struct ImportOptions {
  std::map<std::string, std::int64_t> dims;                 // --dim N=4, by the model's name of the symbol
  std::map<std::string, std::int64_t> typical;              // --typical N=8: what costs are reckoned with while N is open
  std::map<std::string, std::vector<std::int64_t>> shapes;  // --shape x=1x3x224x224
  std::map<std::string, HostTensor> constants;              // inputs that always have this value, and are no inputs then
  std::map<std::string, std::vector<std::string>> values;   // the same, as numbers in text: --value sr=16000
  // Asked for the value of a small input whose value decides a shape, say; the module then holds for this value alone, though
  // the input stays one. Null, or no value: such a model is refused.
  std::function<std::optional<HostTensor>(const std::string& input)> input_value;
  bool ask_for_trips = false;  // `input_value` is also asked for trip counts, which can be read when the plan runs
  std::optional<std::filesystem::path> external_data_dir;  // default: the model's folder
  bool allow_links = false;                                // external data through symbolic links or with several hard links
  // Floating-point initializers of rank 1 and more become state variables with these initial values (inputs of the entry, see
  // Module), and batch normalisation and dropout stay operators: what build_training needs.
  bool training = false;
  bool allow_newer_opset = false;  // read opsets newer than the newest known
  ImportLimits limits;
  std::function<void(const std::string&)> warn;  // may be empty
  // Number of elements of the sequences among the inputs, by name; -1: an optional input is empty (which others are not). The
  // elements are inputs named x.0, x.1, ..; `shapes` may give their shapes.
  std::map<std::string, std::int64_t> lengths;
  // Operators that the user brings, by the domain and name of their nodes; null: none. Functions of the model come before them.
  std::shared_ptr<const CustomOps> ops;
};

std::unique_ptr<Module> import_onnx(const std::filesystem::path& file, const ImportOptions& options = {});
// The same from memory. Without `base_dir` (and without options.external_data_dir) external data is refused.
std::unique_ptr<Module> import_onnx_bytes(std::span<const std::byte> bytes,
                                          const std::optional<std::filesystem::path>& base_dir = {},
                                          const ImportOptions& options = {});

// The names of the operators that are read beside those with sub-graphs, sorted; with the domain if it is not ONNX's own.
std::vector<std::string_view> onnx_operators();

// One operator of a model, for `--list-ops`.
struct OpUse {
  std::string domain;  // empty: ONNX's own
  std::string op;
  std::int64_t opset = 0;
  std::int64_t count = 0;
  bool supported = false;
  std::vector<std::string> first_nodes;  // up to three names
};

// All operators of the model, sorted by domain and name; nodes of sub-graphs and of called functions count too.
std::vector<OpUse> list_ops(const std::filesystem::path& file, const ImportOptions& options = {});
std::vector<OpUse> list_ops_bytes(std::span<const std::byte> bytes, const ImportOptions& options = {});

}  // namespace oclc
