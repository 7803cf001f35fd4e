// Tensor data in files beside the model. The only place that opens a file whose name a model gives.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontends/onnx/model/file.h"

namespace oclc_onnx {
class TensorProto;
}

namespace oclc {
struct ImportOptions;
}

namespace oclc::onnx {

enum class OpenWith { best, openat2, walk };  // `walk` is what kernels without openat2 get

struct OpenedFile {
  FileHandle handle;
  std::int64_t size = 0;
  std::int64_t changed_ns = 0;  // time of the last change
  bool missing = false;         // there is no such file; the caller lists them all
};

// Opens `location`, a path relative to `folder` that must stay below it: no "..", no absolute path, no symbolic link on the
// way, a regular file with one hard link. `allow_links` lifts the rules about links. CompileError naming `where` if it is
// refused.
OpenedFile open_external(const std::filesystem::path& folder, const std::string& location, bool allow_links,
                         const std::string& where, OpenWith with = OpenWith::best);

// All external data of a model. First every tensor is declared, then the files are opened and sizes compared, then tensors are
// read.
class ExternalFiles {
 public:
  // `folder`: where locations are relative to; none: the model has no place on disk, and external data is refused.
  ExternalFiles(std::optional<std::filesystem::path> folder, const ImportOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  // Checks what the tensor says about its file. With `bytes`, the tensor's size, it is remembered for open_all().
  void declare(const oclc_onnx::TensorProto& tensor, const std::string& where, std::optional<std::int64_t> bytes);
  // Opens all files; CompileError listing every missing one, or naming the tensor that lies outside its file.
  void open_all();

  struct Block {
    const std::byte* data = nullptr;
    std::shared_ptr<const void> owner;
  };
  // The data, read into memory that tensors sharing bytes of the file share as well. (Not mapped: a mapped file that another
  // program truncates would kill the process.) CompileError if the file changed meanwhile.
  Block read(const oclc_onnx::TensorProto& tensor);

 private:
  struct Reference {
    std::string location, where;
    std::int64_t offset = 0, bytes = 0;
    std::size_t region = 0;
  };
  struct Region {  // a stretch of a file that is read at once; regions of a file do not overlap
    std::string location;
    std::int64_t begin = 0, end = 0;
    std::weak_ptr<const void> bytes;
  };
  std::optional<std::filesystem::path> folder_;
  const ImportOptions& options_;
  std::unordered_map<const oclc_onnx::TensorProto*, Reference> references_;
  std::vector<const oclc_onnx::TensorProto*> order_;  // of declaration
  std::vector<Region> regions_;
  std::map<std::string, OpenedFile> files_;
};

}  // namespace oclc::onnx
