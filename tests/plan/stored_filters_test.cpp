// Filters that Winograd's convolution reads transformed, as plans store them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/targets/target.h"
#include "runtime/package/container.h"
#include "runtime/package/package.h"
#include "runtime/package/writer.h"
#include "tests/runtime/temp_dir.h"
#include "tests/support/run_plan.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// A convolution of `taps` x `taps` from 32 channels to `features`; `beside`: rows of another weight, of 1024 columns.
Compiled convolution(const std::string& conv, int taps, int features, int beside = 0, bool megakernel = true) {
  const std::string n = std::to_string(taps), pad = std::to_string(taps / 2);
  std::string text =
      "graph g(%x: f32[1, 32, 16, 16], %z: f32[64, 1024]) {\n  %v = constant f32[32, 32, 1, 1] random 1\n"
      "  %w = constant f32[" +
      std::to_string(features) + ", 32, " + n + ", " + n +
      "] random 2\n"
      "  %0 = conv(%x, %v) {dilations=[1, 1], group=1, pads=[0, 0, 0, 0], strides=[1, 1]}\n"
      "  %1 = conv(%0, %w) {dilations=[1, 1], group=1, pads=[" +
      pad + ", " + pad + ", " + pad + ", " + pad + "], strides=[1, 1]}\n";
  if (beside > 0)
    text += "  %u = constant f32[1024, " + std::to_string(beside) +
            "] random 3\n"
            "  %2 = matmul(%z, %u) {trans_a=0, trans_b=0}\n";
  CompileOptions options;
  options.target = find_target("cpu-256");
  options.conv = conv;
  options.precision = "fast";
  if (!megakernel) options.disabled = {"megakernel"};
  return compile(module_of(parse_graph(text + "  return y=%1" + (beside > 0 ? ", u=%2" : "") + "\n}\n", find_op)), options);
}

std::vector<std::byte> file_of(const Compiled& c) {
  return package::package_to_memory(std::as_bytes(std::span(c.plan.metadata)), c.plan.constants);
}

std::uint32_t version_of(const std::vector<std::byte>& file) {
  package::Header header{};
  std::memcpy(&header, file.data(), sizeof header);
  return header.version;
}

// The bytes of a plan's constant whose name ends with `ending`.
std::vector<std::byte> constant(const package::Package& plan, const std::string& ending) {
  for (const plan::Buffer* b : *plan.plan().buffers()) {
    if (b->kind() != plan::BufferKind::constant || !b->name() || !b->name()->str().ends_with(ending)) continue;
    const auto all = plan.constants().subspan(b->constant_offset());
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(b->bytes()->code()->Get(b->bytes()->code()->size() - 1))};
  }
  return {};
}

}  // namespace

TEST_CASE("filters lie in a plan as they are where transformed ones would make it much larger") {
  for (const int taps : {3, 5}) {
    for (const int features : {32, 23}) {
      for (const bool megakernel : {true, false}) {
        CAPTURE(taps);
        CAPTURE(features);
        CAPTURE(megakernel);
        const Compiled c = convolution("winograd", taps, features, 0, megakernel);
        const std::vector<std::byte> file = file_of(c);
        CHECK(version_of(file) == package::kFiltersVersion);
        const auto plan = package::Package::from_memory(file);
        REQUIRE(plan->is_quantized());
        CHECK(plan->constants().size() == c.plan.constants.bytes());
        // The weights of both convolutions, and what else there is: a vector of zeros, padding, the matrices.
        const int weights = 4 * (32 * 32 + taps * taps * 32 * features);
        CHECK(plan->stored_constants().size() < static_cast<std::size_t>(weights + 4096));
        CHECK(plan->constants().size() > static_cast<std::size_t>(weights) * 13 / 10);
      }
    }
  }
}

TEST_CASE("few filters beside other weights lie in a plan transformed") {
  const auto plan = package::Package::from_memory(file_of(convolution("winograd", 3, 32, 1024)));
  CHECK_FALSE(plan->is_quantized());
  CHECK(plan->constants().size() == plan->stored_constants().size());
}

TEST_CASE("a plan without transformed filters keeps its version") {
  CHECK(version_of(file_of(convolution("implicit", 3, 32))) == package::kOldestVersion);
}

TEST_CASE("filters are the same to the last bit, however they were stored") {
  const auto stored = package::Package::from_memory(file_of(convolution("winograd", 3, 23, 0, false))),
             transformed = package::Package::from_memory(file_of(convolution("winograd", 3, 23, 1024, false)));
  const std::vector<std::byte> a = constant(*stored, ".winograd"), b = constant(*transformed, ".winograd");
  CHECK(stored->is_quantized());
  CHECK_FALSE(transformed->is_quantized());
  CHECK(a.size() > 9 * 32 * 23 * 4);
  CHECK(a == b);
}

TEST_CASE("a plan of filters that is written again with binaries keeps its version") {
  const auto plan = package::Package::from_memory(file_of(convolution("winograd", 3, 32)));
  flatbuffers::FlatBufferBuilder binaries;
  binaries.Finish(plan::CreateBinaries(binaries));
  const TempDir folder;
  const std::string path = folder / "plan.bin";
  package::write_with_binaries(path, *plan, std::as_bytes(std::span(binaries.GetBufferPointer(), binaries.GetSize())));
  const auto again = package::Package::open(path);
  CHECK(again->binaries());
  CHECK(again->is_quantized());
  CHECK(std::equal(plan->constants().begin(), plan->constants().end(), again->constants().begin(), again->constants().end()));
  std::ifstream in(path, std::ios::binary);
  std::vector<char> head(sizeof(package::Header));
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  const auto bytes = std::as_bytes(std::span(head));
  CHECK(version_of({bytes.begin(), bytes.end()}) == package::kFiltersVersion);
}
