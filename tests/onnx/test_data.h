// Reads folders in the form of ONNX's operator tests.
#pragma once
#include <fmt/format.h>
#include <oclc_onnx.pb.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "compiler/support/error.h"
#include "frontends/onnx/model/external.h"
#include "frontends/onnx/model/tensors.h"

namespace oclc::test {

inline HostTensor read_tensor(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  oclc_onnx::TensorProto proto;
  if (!proto.ParseFromIstream(&in)) throw CompileError({.wanted = "a tensor in " + file.string()});
  const ImportOptions options;
  onnx::ExternalFiles files(std::nullopt, options);
  onnx::check_tensor(proto, "tensor", options.limits, files);
  return onnx::TensorStore(files).get(proto);
}

// kind_0.pb, kind_1.pb, ... of a data set.
inline std::vector<HostTensor> read_all(const std::filesystem::path& set, const std::string& kind) {
  std::vector<HostTensor> out;
  for (int i = 0; std::filesystem::exists(set / fmt::format("{}_{}.pb", kind, i)); ++i)
    out.push_back(read_tensor(set / fmt::format("{}_{}.pb", kind, i)));
  return out;
}

}  // namespace oclc::test
