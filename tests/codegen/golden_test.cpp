// Generated kernels as texts: a change that is called a refactoring changes none of golden/*.cl. After a change of the code
// that is meant, read the difference that this leaves in the working tree:
//   OCLC_UPDATE=1 build/release/bin/test_codegen --test-case="golden kernels*"
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "tests/support/run_plan.h"

using namespace oclc;

namespace {

const std::filesystem::path kFolder = OCLC_SOURCE_DIR "/tests/codegen/golden";

struct Golden {
  std::string name;
  std::string graph;
  std::string conv = "auto";
};

std::vector<Golden> goldens() {
  return {
      {"pointwise", R"(
    graph g(%x: f32[N, 100], %bias: f32[100], %gate: f32[N, 1]) {
      %0 = add(%x, %bias)      // bias
      %1 = sigmoid(%0)         // swish.sigmoid
      %2 = mul(%0, %1)         // swish
      %3 = mul(%2, %gate)      // gate
      return y=%3
    })"},
      {"transposed_read", R"(
    graph g(%x: f32[N, 3, 40]) {
      %0 = transpose(%x) {perm=[0, 2, 1]}                                             // swap
      %1 = slice(%0) {starts=(0, 39, 0), sizes=(N, 20, 3), steps=[1, -2, 1]}          // every second, backwards
      %2 = exp(%1)                                                                    // exp
      return y=%2
    })"},
      {"softmax", R"(
    graph g(%x: f32[N, 1000], %mask: f32[1000]) {
      %0 = add(%x, %mask)          // mask
      %1 = softmax(%0) {axis=1}    // softmax
      return y=%1
    })"},
      {"layer_norm", R"(
    graph g(%x: f32[N, 96], %skip: f32[N, 96]) {
      %scale = constant f32[96] random 1
      %bias = constant f32[96] random 2
      %0 = add(%x, %skip)                                              // residual
      %1 = layer_norm(%0, %scale, %bias) {axis=1, epsilon=1e-05}       // norm
      return y=%1
    })"},
      {"gemm", R"(
    graph g(%x: f32[N, 64]) {
      %w = constant f32[64, 40] random 1
      %bias = constant f32[40] random 2
      %0 = matmul(%x, %w) {trans_a=0, trans_b=0}     // fc.product
      %1 = add(%0, %bias)                            // fc.bias
      %2 = relu(%1)                                  // relu
      return y=%2
    })"},
      {"conv_implicit", R"(
    graph g(%x: f32[N, 3, 32, 32], %skip: f32[N, 16, 16, 16]) {
      %w = constant f32[16, 3, 3, 3] random 1
      %bias = constant f32[16] random 2
      %0 = conv(%x, %w, %bias) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[2, 2]}     // stem
      %1 = add(%0, %skip)                                                                         // residual
      %2 = relu(%1)                                                                               // relu
      return y=%2
    })",
       "implicit"},
      {"conv_winograd", R"(
    graph g(%x: f32[1, 8, 14, 14]) {
      %w = constant f32[16, 8, 3, 3] random 1
      %bias = constant f32[16] random 2
      %0 = conv(%x, %w, %bias) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}     // conv
      %1 = relu(%0)                                                                               // relu
      return y=%1
    })",
       "winograd"},
      {"conv_winograd_fused", R"(
    graph g(%x: f32[N, 4, 14, 14]) {
      %v = constant f32[16, 4, 1, 1] random 1
      %w = constant f32[20, 16, 3, 3] random 2
      %0 = conv(%x, %v) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}     // before
      %1 = conv(%0, %w) {dilations=[1, 1], group=1, pads=[1, 1, 1, 1], strides=[1, 1]}     // conv
      %2 = relu(%1)                                                                        // relu
      return y=%2
    })",
       "winograd"},
      {"depthwise", R"(
    graph g(%x: f32[N, 16, 14, 14]) {
      %w = constant f32[16, 1, 3, 3] random 1
      %bias = constant f32[16] random 2
      %six = constant f32[] 6
      %0 = conv(%x, %w, %bias) {dilations=[1, 1], group=16, pads=[1, 1, 1, 1], strides=[1, 1]}    // depthwise
      %1 = relu(%0)                                                                               // relu6.low
      %2 = min(%1, %six)                                                                          // relu6
      return y=%2
    })"},
      {"concat_placed", R"(
    graph g(%a: f32[N, 8, 10], %b: f32[N, 4, 10]) {
      %0 = relu(%a)                        // left
      %1 = tanh(%b)                        // right
      %2 = concat(%0, %1) {axis=1}         // join
      %3 = max_pool(%2) {kernel=[2], strides=[2], dilations=[1], pads=[0, 0], ceil_mode=0}   // pool
      return y=%2, pooled=%3
    })"},
  };
}

std::string generated(const Golden& golden) {
  CompileOptions options;
  options.target = find_target("cpu-256");
  options.conv = golden.conv;
  options.disabled = {"megakernel"};  // a file a kernel
  std::string all;
  for (const GeneratedFile& file : compile(test::module_of(parse_graph(golden.graph, find_op)), options).plan.files) {
    if (!all.empty()) all += "\n";
    all += file.source;
  }
  return all;
}

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// "line 7: 'found' instead of 'wanted'", or an empty string.
std::string first_difference(const std::string& found, const std::string& wanted) {
  std::size_t line = 1, start = 0, at = 0;
  for (; at < found.size() && at < wanted.size() && found[at] == wanted[at]; ++at) {
    if (found[at] == '\n') ++line, start = at + 1;
  }
  if (at == found.size() && at == wanted.size()) return {};
  const auto rest = [&](const std::string& text) {
    return text.substr(start, std::min(text.find('\n', start), text.size()) - start);
  };
  return "line " + std::to_string(line) + ": '" + rest(found) + "' instead of '" + rest(wanted) + "'";
}

}  // namespace

TEST_CASE("golden kernels are what the compiler generates") {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) files.insert(entry.path());
  for (const Golden& golden : goldens()) {
    CAPTURE(golden.name);
    const auto file = kFolder / (golden.name + ".cl");
    const std::string found = generated(golden);
    if (std::getenv("OCLC_UPDATE")) std::ofstream(file, std::ios::binary) << found;
    CHECK(first_difference(found, read(file)) == "");
    files.erase(file);
  }
  std::string without_case;
  for (const auto& file : files) without_case += file.filename().string() + " ";
  CHECK(without_case == "");
}

TEST_CASE("golden kernels are the same in two compilations") {
  for (const Golden& golden : goldens()) {
    CAPTURE(golden.name);
    CHECK(generated(golden) == generated(golden));
  }
}
