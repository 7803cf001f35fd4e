// The zip that torch.export.save writes: members as they are, without compression.
#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace oclc::pt2 {

// Maps the file. CompileError (import) if it is no such zip, compressed, or reaches outside of itself.
class Archive {
 public:
  explicit Archive(const std::filesystem::path& file);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // A member by its path below the archive's top folder. CompileError if there is none.
  std::span<const std::byte> bytes(std::string_view member) const;
  std::string_view text(std::string_view member) const;

 private:
  void read_directory();
  void add_member(std::size_t header, std::string name, std::uint64_t size, bool stored);

  std::span<const std::byte> file_;
  std::map<std::string, std::span<const std::byte>, std::less<>> members_;
};

}  // namespace oclc::pt2
