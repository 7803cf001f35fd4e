// Tensors in files: .npy, ONNX's .pb, safetensors, .npz, and an ONNX model whose weights are replaced. The first letter says
// which.
#include "compiler/support/error.h"
#include "frontends/cpp/weight_files.h"
#include "tests/fuzz/targets/input.h"
#include "tools/io/npy.h"
#include "tools/io/onnx_weights.h"
#include "tools/io/tensor_proto.h"

namespace {

using namespace oclc;

void look_at(const io::Tensor& tensor) {
  if (tensor.dtype == OCLC_STRING) return;
  if (tensor.data.size() != io::tensor_bytes("tensor", tensor.dtype, tensor.shape)) fuzz::found("a tensor of another size");
}

void read(char kind, std::string_view bytes) {
  switch (kind) {
    case 'n':
      return look_at(io::parse_npy(std::string(bytes), "x.npy"));
    case 'p':
      return look_at(io::parse_tensor_proto(std::string(bytes), "x.pb"));
    case 's':
    case 'z': {
      const fuzz::MemoryFile file(bytes);
      for (const auto& [name, tensor] : kind == 's' ? nn::read_safetensors(file.path()) : nn::read_npz(file.path()))
        fuzz::touch(tensor.data(), tensor.bytes());
      return;
    }
    case 'w': {
      const fuzz::MemoryFile file(bytes);
      io::replace_onnx_weights(file.path(), "/dev/null", [](const std::string& name) -> std::optional<io::Tensor> {
        if (name.size() % 2 == 0) return std::nullopt;
        io::Tensor tensor;
        tensor.shape = {2};
        tensor.data.resize(8);
        return tensor;
      });
      return;
    }
    default:
      return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    read(static_cast<char>(data[0]), fuzz::text_of(data + 1, size - 1));
  } catch (const io::FileError& error) {
    if (!*error.what()) fuzz::found("no text");
  } catch (const CompileError& error) {
    if (error.parts().exit_code == ExitCode::internal || !*error.what()) fuzz::found(error.what());
  }
  return 0;
}
