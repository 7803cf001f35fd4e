// Reading plan.bin. A Package is a plan whose every byte and every rule has been checked: code that holds one may follow its
// indices and offsets without looking again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan_generated.h"
#include "runtime/package/error.h"

namespace oclc::package {

enum class Residence {
  mapped,  // constants stay in a private read-only mapping of the file: fast, shared between processes through the page cache.
           // Replacing the file by rename is safe while it is in use; truncating it in place kills the process (SIGBUS)
  copied   // the whole file is copied into memory: nothing done to the file afterwards matters
};

// Who gave bytes to read, and is told when the last reader is gone.
class Lender {
 public:
  Lender(void (*release)(void* user), void* user) : release_(release), user_(user) {}
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;
  ~Lender() {
    if (kept_ && release_) release_(user_);
  }
  // They are kept from now on; before, nobody is told.
  void keep() { kept_ = true; }

 private:
  void (*release_)(void*);
  void* user_;
  bool kept_ = false;
};

class Package {
 public:
  // Opens (O_CLOEXEC), checks the frame, all checksums, the metadata's structure (flatbuffers::Verifier) and meaning
  // (verify.h). Throws Error; the message starts with `path`.
  // `noun`: what messages call the file.
  static std::shared_ptr<const Package> open(const std::string& path, Residence residence = Residence::mapped,
                                             const std::string& noun = "plan");

  // The same for bytes in memory, which are copied. `name` stands for the path in messages.
  static std::shared_ptr<const Package> from_memory(std::span<const std::byte> bytes, const std::string& name = "plan");

  // The same for bytes that stay where they are, from a page boundary on, until `lender` has no owner any more.
  static std::shared_ptr<const Package> borrow(std::span<const std::byte> bytes, std::shared_ptr<Lender> lender,
                                               const std::string& name = "plan");

  Package(const Package&) = delete;
  Package& operator=(const Package&) = delete;
  ~Package();

  const oclc::plan::Plan& plan() const { return *plan_; }
  std::span<const std::byte> constants() const { return constants_; }  // starts on a page boundary
  // Whether they lie in a mapping of the file.
  bool is_mapped() const { return mapped_ && !widened_; }
  // Those from `offset` on, whose pages are given back where they are mapped.
  void copy_constants(std::size_t offset, std::span<std::byte> to) const;
  // What drivers made of the programs before, or null; structure and checksum are checked, what the driver will say to them is
  // not.
  const oclc::plan::Binaries* binaries() const { return binaries_; }
  // Why there are none although the file has some; else empty.
  const std::string& problem_of_binaries() const { return problem_of_binaries_; }
  std::span<const std::byte> metadata() const { return metadata_; }
  // As they lie in the file.
  std::span<const std::byte> stored_metadata() const { return stored_metadata_; }
  std::span<const std::byte> stored_constants() const { return stored_constants_; }
  std::uint32_t format() const { return format_; }  // its number, see container.h
  bool is_quantized() const { return quantized_; }
  const std::string& name() const { return name_; }
  std::uint64_t hash() const { return hash_; }  // of the header, hence of everything

 private:
  Package() = default;
  void check(Residence residence);
  void widen_constants();
  void decompress_metadata();
  void check_binaries(std::span<const std::byte> section);

  std::string name_;
  std::string noun_ = "plan";
  const std::byte* base_ = nullptr;  // of a mapping, or of borrowed bytes
  std::shared_ptr<Lender> lender_;   // of those
  bool mapped_ = false;              // of the file
  std::size_t bytes_ = 0;
  std::byte* widened_ = nullptr;  // mmap: constants that lie quantized in the file
  std::size_t widened_bytes_ = 0;
  std::vector<std::byte> decompressed_;  // metadata that lies compressed in the file
  std::span<const std::byte> metadata_, stored_metadata_, constants_, stored_constants_;
  bool quantized_ = false;
  std::uint32_t format_ = 0;
  const oclc::plan::Binaries* binaries_ = nullptr;
  std::string problem_of_binaries_;
  const oclc::plan::Plan* plan_ = nullptr;
  std::uint64_t hash_ = 0;
};

// The hash of every checksum in oclc's files.
std::uint64_t hash64(std::span<const std::byte> bytes);

}  // namespace oclc::package
