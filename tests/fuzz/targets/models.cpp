// An ONNX model, read and compiled for one of the targets: it is refused as the model's fault, or a plan comes of it.
#include <span>

#include "compiler/compile.h"
#include "compiler/support/error.h"
#include "frontends/onnx/import.h"
#include "tests/fuzz/small_models.h"
#include "tests/fuzz/targets/input.h"

using namespace oclc;

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room, unsigned seed) {
  std::mt19937_64 random(seed);
  if (size > 0 && random() % 10 == 0) return LLVMFuzzerMutate(data, size, room);
  oclc_onnx::ModelProto model;
  if (size == 0 || random() % 50 == 0 || !model.ParseFromArray(data, static_cast<int>(size)) || !model.has_graph())
    model = fuzz::small_model(random() % 1'000'000);
  fuzz::mutate_model(model, random);
  return fuzz::put(model.SerializeAsString(), data, size, room);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ImportOptions read;
  read.warn = [](const std::string& text) {
    if (text.empty()) fuzz::found("a warning without a text");
  };
  CompileOptions options;
  options.target = target_rows()[size % target_rows().size()];
  try {
    compile(import_onnx_bytes(std::as_bytes(std::span(data, size)), {}, read), options);
  } catch (const CompileError& error) {
    if (error.parts().exit_code == ExitCode::internal || !*error.what()) fuzz::found(error.what());
  }
  return 0;
}
