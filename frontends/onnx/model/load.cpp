#include "frontends/onnx/model/load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <oclc_onnx.pb.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "frontends/onnx/fail.h"
#include "frontends/onnx/model/file.h"
#include "frontends/onnx/model/prescan.h"

namespace oclc::onnx {
namespace {

struct Signature {
  std::string_view start;
  std::string_view kind;
  std::string_view advice;
};

constexpr Signature kSignatures[] = {
    {"version https://git-lfs", "a Git-LFS pointer", "fetch the real file with `git lfs pull`"},
    {"PK\x03\x04", "a zip archive, perhaps a PyTorch checkpoint", "export the model to ONNX first"},
    {"\x89HDF", "an HDF5 file, perhaps a Keras model", "convert the model to ONNX first"},
    {"\x1f\x8b", "a gzip archive", "unpack it first"},
    {"\x93NUMPY", "a numpy array", "give the model, not its data"},
    {"GGUF", "a GGUF model", "convert the model to ONNX first"},
    {"OCLC\r\n\x1a\n", "a compiled plan", "run it with `oclrun`"},
};

bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](char c) { return (c >= 0x20 && c != 0x7f) || c == '\n' || c == '\r' || c == '\t' || c < 0; });
}

void reject_other_formats(std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Signature& s : kSignatures) {
    if (all.starts_with(s.start)) fail("an ONNX model", std::string(s.kind), std::string(s.advice));
  }
  std::string_view head = all.substr(0, 1024);
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  while (!head.empty() && std::strchr(" \t\r\n", head.front())) head.remove_prefix(1);
  if (head.starts_with("<")) fail("an ONNX model", "an HTML or XML page", "the download may have failed");
  if (head.starts_with("{") && is_text(head)) fail("an ONNX model", "JSON text");
}

}  // namespace

std::vector<std::byte> read_model_file(const std::filesystem::path& file, const ImportLimits& limits) {
  const auto refuse = [&](const std::string& why, std::string advice = {}) {
    fail("a readable model file", why, std::move(advice), ExitCode::io);
  };
  const FileHandle handle(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!handle) refuse(std::strerror(errno));
  struct stat info {};
  if (::fstat(handle.fd(), &info) != 0) refuse(std::strerror(errno));
  if (S_ISDIR(info.st_mode)) refuse("a folder", "name the .onnx file in it");
  if (!S_ISREG(info.st_mode)) refuse("no regular file");
  if (info.st_size > limits.file_bytes) {
    fail(fmt::format("a model file of at most {} bytes", limits.file_bytes), fmt::format("{} bytes", info.st_size),
         "store the weights as external data");
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
  const std::string problem = handle.read(bytes, 0);
  if (!problem.empty()) refuse(problem);
  return bytes;
}

std::unique_ptr<oclc_onnx::ModelProto> parse_model(std::span<const std::byte> bytes, const ImportOptions& options) {
  if (bytes.empty()) fail("an ONNX model with a graph", "an empty file");
  if (bytes.size() > static_cast<std::size_t>(options.limits.file_bytes)) {
    fail(fmt::format("a model of at most {} bytes", options.limits.file_bytes), fmt::format("{} bytes", bytes.size()),
         "store the weights as external data");
  }
  reject_other_formats(bytes);
  try {
    prescan(bytes, options.limits);
  } catch (const CompileError& error) {
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (is_text(all.substr(0, 1024)))
      fail("an ONNX model", fmt::format("text that starts with '{}'", printable(all.substr(0, 30))));
    throw;
  }
  auto model = std::make_unique<oclc_onnx::ModelProto>();
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(200);  // the scan before allows 100
  if (!model->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    fail("an ONNX model", "a message that protobuf cannot read", "the file is damaged or of another kind");
  }
  return model;
}

}  // namespace oclc::onnx
