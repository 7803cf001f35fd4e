// The text form of graphs: deterministic, one node a line, read back by parse.h.
//
//   symbol N
//   graph predict(%x: f32[N, 3, 32, 32]) {
//     %w = constant f32[8, 3, 3, 3] xxh3:90f1d2a4c5b60718
//     %1 = conv(%x, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]} : f32[N, 8, 32, 32]  // conv1
//     return y=%1
//   }
//
// Values are numbered in order of appearance; graph inputs and constants keep the model's name. The comment is the source node.
// Attributes: 1 (integer), 1.0 (real), "a" (text), f32 (element type), [1, 2] (integers), [1.0] (reals), ["a"] (texts), (N, 3)
// (expressions), `f32[2] [1, 2]` (tensor). A physical order other than row-major follows the type: `f32[N, 8, 4, 4] @[0, 2, 3,
// 1]`. Tensors: `[values]` up to 16 elements, `splat value`, else the XXH3 of the bytes; parse.h also reads `random seed`.
#pragma once
#include <string>

#include "compiler/ir/graph.h"

namespace oclc {

struct TextOptions {
  std::int64_t max_elements = 16;  // tensors with more elements print as `splat` or as a hash, which cannot be parsed back
};

std::string print_graph(const Graph& graph, const TextOptions& options = {});
std::string print_module(const Module& module, const TextOptions& options = {});
std::string print_tensor(const HostTensor& tensor, const TextOptions& options = {});
std::string print_attribute(const Attribute& attribute, const TextOptions& options = {});

// The name as it is where it can stand so after '%' and as a graph's, else quoted.
std::string name_text(std::string_view name);

// What a symbol's line says of its bounds: " in [2, 8]", " >= 0", or nothing where they are the usual ones.
std::string bounds_text(std::int64_t lo, std::int64_t hi);

// Text in double quotes with \" \\ \n \xHH escapes.
std::string quoted(std::string_view text);

}  // namespace oclc
