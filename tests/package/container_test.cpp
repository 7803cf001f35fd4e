#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "runtime/package/container.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;
using package::Error;
using package::ErrorKind;
using package::Package;

namespace {

std::string error_of(const std::function<void()>& action, ErrorKind* kind = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (kind) *kind = error.kind();
    return error.what();
  }
  return "";
}

std::string load_error(std::vector<std::byte> bytes, ErrorKind* kind = nullptr) {
  return error_of([&] { Package::from_memory(bytes); }, kind);
}

void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// Changes the header and puts its checksum right again.
std::vector<std::byte> with_header(std::vector<std::byte> bytes,
                                   const std::function<void(package::Header&, package::SectionRow*)>& edit) {
  package::Header header;
  package::SectionRow rows[2];
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(rows, bytes.data() + sizeof header, sizeof rows);
  edit(header, rows);
  header.header_hash = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, rows, sizeof rows);
  header.header_hash = package::hash64({bytes.data(), sizeof header + sizeof rows});
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace

TEST_CASE("a plan is read back as it was written") {
  const auto bytes = vector_plan_bytes();
  const auto package = Package::from_memory(bytes);
  CHECK(package->plan().entries()->size() == 1);
  CHECK(package->plan().entries()->Get(0)->steps()->size() == 3);
  REQUIRE(package->constants().size() == 16);
  CHECK(reinterpret_cast<std::uintptr_t>(package->constants().data()) % 4096 == 0);
  float w[4];
  std::memcpy(w, package->constants().data(), 16);
  CHECK(w[3] == 4);
}

TEST_CASE("a plan without constants is read back") {
  fb::PlanT plan = new_plan();
  CHECK(Package::from_memory(finish(plan))->constants().empty());
}

TEST_CASE("constants that are made on the fly equal constants in memory") {
  std::vector<float> big(1'000'003);
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<float>(i);
  const auto data = std::as_bytes(std::span(big));
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(constant("c", package::ConstantSection::kAlignment, static_cast<std::int64_t>(data.size())));
  const float one = 1;
  package::ConstantSection in_memory;
  in_memory.add(std::as_bytes(std::span(&one, 1)));
  CHECK(in_memory.add(data) == package::ConstantSection::kAlignment);
  package::ConstantSection streamed;
  streamed.add(4, [&](std::uint64_t, std::span<std::byte> out) { std::memcpy(out.data(), &one, 4); });
  std::uint64_t expected = 0;
  CHECK(streamed.add(data.size(), [&](std::uint64_t begin, std::span<std::byte> out) {
    CHECK(begin == expected);
    expected = begin + out.size();
    std::memcpy(out.data(), data.data() + begin, out.size());
  }) == package::ConstantSection::kAlignment);
  const auto a = package::package_to_memory(metadata(plan), in_memory);
  CHECK(a == package::package_to_memory(metadata(plan), streamed));
  CHECK(expected == data.size());
}

TEST_CASE("case 60: a plan truncated anywhere, empty or with trailing bytes is refused") {
  const auto bytes = vector_plan_bytes();
  ErrorKind kind{};
  for (std::size_t i = 0; i < 200; ++i) {
    auto cut = bytes;
    cut.resize(i * (bytes.size() - 1) / 199);
    const std::string error = load_error(cut, &kind);
    CAPTURE(cut.size());
    CHECK(!error.empty());
    CHECK(kind == ErrorKind::corrupt);
  }
  CHECK(load_error({}) == "plan: not a plan: it is empty");
  auto longer = bytes;
  longer.push_back(std::byte{0});
  CHECK(load_error(longer) == "plan: damaged plan: the file has " + std::to_string(longer.size()) + " bytes, its header says " +
                                  std::to_string(bytes.size()));
}

TEST_CASE("case 61: every single-bit flip of a plan is detected") {
  auto bytes = vector_plan_bytes();
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= std::byte{1} << bit;
      accepted += load_error(bytes).empty();
      bytes[i] ^= std::byte{1} << bit;
    }
  CHECK(accepted == 0);
  CHECK(load_error(bytes).empty());
}

TEST_CASE("case 62: wild section tables with right checksums are refused") {
  const auto bytes = vector_plan_bytes();
  const auto error = [&](auto edit) { return load_error(with_header(bytes, edit)); };
  using H = package::Header&;
  using R = package::SectionRow*;
  CHECK(load_error(with_header(bytes, [](H, R) {})).empty());
  CHECK(error([](H, R r) { r[1].offset = 0; }) ==
        "plan: damaged plan: the constants section is not where the one before it ends");
  CHECK(error([](H, R r) { r[0].offset += 64; }) ==
        "plan: damaged plan: the metadata section is not where the one before it ends");
  CHECK(error([](H, R r) { r[1].bytes = UINT64_MAX - 8; }) ==
        "plan: damaged plan: the constants section reaches past the end of the file");
  CHECK(error([](H, R r) { r[0].bytes = UINT64_MAX / 2; }) ==
        "plan: damaged plan: the metadata section reaches past the end of the file");
  CHECK(error([](H, R r) { r[1].bytes -= 1; }) == "plan: damaged plan: the checksum of the constants section differs");
  CHECK(error([](H, R r) { std::swap(r[0], r[1]); }) == "plan: damaged plan: the table's row of the metadata section is wrong");
  CHECK(error([](H, R r) { r[1].kind = 77; }) == "plan: damaged plan: the table's row of the constants section is wrong");
  CHECK(error([](H, R r) { r[1].alignment = 1; }) == "plan: damaged plan: the table's row of the constants section is wrong");
  CHECK(error([](H h, R) { h.section_count = 1u << 31; }) == "plan: damaged plan: wanted 2 or 3 sections, found 2147483648");
  CHECK(error([](H h, R) { h.file_bytes = 0; }) ==
        "plan: damaged plan: the file has " + std::to_string(bytes.size()) + " bytes, its header says 0");
  CHECK(error([](H h, R) { h.header_bytes = 0; }) == "plan: damaged plan: header size out of range");
  CHECK(error([](H h, R) { h.header_bytes = UINT32_MAX; }) == "plan: damaged plan: header size out of range");
}

TEST_CASE("case 63: foreign magic, versions and byte orders are named") {
  const auto bytes = vector_plan_bytes();
  ErrorKind kind{};
  CHECK(load_error(with_header(bytes, [](auto& h, auto*) { h.version = 8; }), &kind) ==
        "plan: plan format 8, this runtime reads 1 to 7; compile the model again with the oclc of this runtime");
  CHECK(kind == ErrorKind::version);
  CHECK(load_error(with_header(bytes, [](auto& h, auto*) {
          h.version = 0;
        })).find("plan format 0, this runtime reads 1 to 7") != std::string::npos);
  CHECK(load_error(with_header(bytes, [](auto& h, auto*) { h.byte_order = 0x04030201; }), &kind) ==
        "plan: the plan was written on a machine of the other byte order; compile it again for this one");
  CHECK(kind == ErrorKind::version);
  const auto text = [](const std::string& s) {
    const auto* b = reinterpret_cast<const std::byte*>(s.data());
    return std::vector<std::byte>(b, b + s.size());
  };
  CHECK(load_error(text("version https://git-lfs.github.com/spec/v1\noid sha256:0"), &kind) ==
        "plan: not a plan (wrong magic number); it looks like a Git-LFS pointer; fetch the file itself");
  CHECK(kind == ErrorKind::corrupt);
  CHECK(load_error(text("\x08\x08\x12\x07pytorch")) ==
        "plan: not a plan (wrong magic number); it looks like an ONNX model; compile it first: oclc MODEL.onnx -o plan.bin");
  CHECK(load_error(text("OCLC\n\x1a\n")) ==
        "plan: not a plan (wrong magic number); it looks like a plan damaged by a text-mode transfer");
  CHECK(load_error(text("x")) == "plan: not a plan (wrong magic number); write one with: oclc MODEL.onnx -o plan.bin");
}

TEST_CASE("case 67: sizes beyond the address space are refused by arithmetic, not by allocation") {
  const auto bytes = vector_plan_bytes();
  fb::PlanT plan = vector_plan();
  plan.buffers[2]->constant_offset = UINT64_MAX - 63;
  CHECK(error_of([&] {
          finish(plan, {1, 2, 3, 4});
        }) == "buffer 2 'w': its slice [18446744073709551552, +16) lies outside the constant section of 16 bytes");
  plan.buffers[2]->constant_offset = 0;
  plan.buffers[2]->bytes = (E(INT64_MAX) * 2).ptr();
  CHECK(error_of([&] { finish(plan, {1, 2, 3, 4}); }) == "buffer 2 'w' size: its expression overflows or divides by zero");
  package::ConstantSection huge;
  huge.add(std::uint64_t{1} << 61, nullptr);
  CHECK(error_of([&] { huge.add(UINT64_MAX - 100, nullptr); }) == "the constants of a plan exceed 4 EiB");
}

TEST_CASE("case 67: a sparse plan file of 6 GiB is mapped, checked and refused for its contents") {
  TempDir dir;
  const std::string path = dir / "big.bin";
  auto bytes = with_header(vector_plan_bytes(), [](auto& h, auto* r) {
    h.file_bytes = std::uint64_t{6} << 30;
    r[1].bytes = h.file_bytes - r[1].offset;
  });
  write_bytes(path, bytes);
  std::filesystem::resize_file(path, (std::uint64_t{6} << 30) - 1);
  CHECK(error_of([&] { Package::open(path); }) ==
        path + ": damaged plan: the file has 6442450943 bytes, its header says 6442450944");
}

TEST_CASE("case 68: replacing the file leaves a loaded plan as it was") {
  TempDir dir;
  const std::string path = dir / "plan.bin";
  package::ConstantSection constants;
  const std::vector<float> w = {1, 2, 3, 4};
  constants.add(std::as_bytes(std::span(w)));
  package::write_package(path, metadata(vector_plan()), constants);
  const auto mapped = Package::open(path);
  const auto copied = Package::open(path, package::Residence::copied);
  const std::vector<float> other = {9, 9, 9, 9};
  package::ConstantSection replacement;
  replacement.add(std::as_bytes(std::span(other)));
  package::write_package(path, metadata(vector_plan()), replacement);
  float seen[4];
  std::memcpy(seen, mapped->constants().data(), 16);
  CHECK(seen[3] == 4);
  CHECK(mapped->plan().buffers()->size() == 6);
  std::memcpy(seen, Package::open(path)->constants().data(), 16);
  CHECK(seen[3] == 9);
  std::filesystem::resize_file(path, 10);
  std::memcpy(seen, copied->constants().data(), 16);
  CHECK(seen[3] == 4);
  CHECK(error_of([&] { Package::open(path); }) == path + ": damaged plan: truncated within the header");
}

TEST_CASE("case 69: a writer killed at any moment leaves the old plan or the new one") {
  TempDir dir;
  const std::string path = dir / "plan.bin";
  const auto old_bytes = vector_plan_bytes();
  write_bytes(path, old_bytes);
  fb::PlanT plan = vector_plan();
  plan.model = "new";
  const auto meta = metadata(plan);
  const std::vector<float> w = {1, 2, 3, 4};
  for (int i = 0; i < 40; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) {
        package::ConstantSection constants;
        constants.add(std::as_bytes(std::span(w)));
        package::write_package(path, meta, constants);
      }
    }
    ::usleep(static_cast<useconds_t>(500 + 137 * i));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto package = Package::open(path);
    const std::string model = package->plan().model()->str();
    CHECK((model == "new" || model == "test"));
  }
}

TEST_CASE("case 70: output errors carry the system's text and leave no partial file") {
  TempDir dir;
  package::ConstantSection constants;
  const std::vector<float> w = {1, 2, 3, 4};
  constants.add(std::as_bytes(std::span(w)));
  const auto meta = metadata(vector_plan());
  ErrorKind kind{};
  const auto error = [&](const std::string& path) {
    return error_of([&] { package::write_package(path, meta, constants); }, &kind);
  };

  CHECK(error(dir.path()) == dir.path() + ": cannot write: Is a directory");
  CHECK(kind == ErrorKind::io);
  CHECK(error(dir / "none/plan.bin").find(": No such file or directory") != std::string::npos);
  CHECK(error("/dev/full") == "/dev/full: cannot write: No space left on device");
  CHECK(error("/dev/null").empty());
  CHECK(error("/proc/plan.bin").find("/proc/plan.bin: cannot create /proc/plan.bin.tmp-") == 0);

  // The existing file survives a failed write: the file size limit makes each write fail.
  const std::string path = dir / "plan.bin";
  CHECK(error(path).empty());
  const auto before = read_bytes(path);
  std::vector<float> many(1 << 20);
  package::ConstantSection large;
  large.add(std::as_bytes(std::span(w)));
  large.add(std::as_bytes(std::span(many)));
  rlimit old_limit{};
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit limit = {100'000, old_limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = error_of([&] { package::write_package(path, meta, large); });
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  CHECK(message == path + ": cannot write: File too large");
  CHECK(read_bytes(path) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);

  // A callback that throws leaves nothing either.
  package::ConstantSection failing;
  failing.add(std::as_bytes(std::span(w)));
  failing.add(100, [](std::uint64_t, std::span<std::byte>) { throw Error(ErrorKind::io, "weights are gone"); });
  CHECK(error_of([&] { package::write_package(path, meta, failing); }) == "weights are gone");
  CHECK(read_bytes(path) == before);
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("case 70: a link is followed, permissions are kept, standard output is written") {
  TempDir dir;
  package::ConstantSection constants;
  const std::vector<float> w = {1, 2, 3, 4};
  constants.add(std::as_bytes(std::span(w)));
  const auto meta = metadata(vector_plan());
  package::write_package(dir / "plan.bin", meta, constants);
  ::chmod((dir / "plan.bin").c_str(), 0640);
  std::filesystem::create_symlink("plan.bin", dir / "link.bin");
  package::write_package(dir / "link.bin", meta, constants);
  CHECK(std::filesystem::is_symlink(dir / "link.bin"));
  struct stat status {};
  ::stat((dir / "plan.bin").c_str(), &status);
  CHECK((status.st_mode & 07777) == 0640);

  const int saved = ::dup(STDOUT_FILENO);
  std::fflush(stdout);
  const int out = ::open((dir / "stdout.bin").c_str(), O_WRONLY | O_CREAT, 0600);
  ::dup2(out, STDOUT_FILENO);
  package::write_package("-", meta, constants);
  ::dup2(saved, STDOUT_FILENO);
  ::close(saved);
  ::close(out);
  CHECK(read_bytes(dir / "stdout.bin") == read_bytes(dir / "plan.bin"));
}

TEST_CASE("case 71: equal contents give equal bytes") { CHECK(vector_plan_bytes() == vector_plan_bytes()); }

TEST_CASE("paths that hold no plan are refused with the system's text") {
  TempDir dir;
  ErrorKind kind{};
  const auto error = [&](const std::string& path) { return error_of([&] { Package::open(path); }, &kind); };
  CHECK(error(dir / "none.bin") == (dir / "none.bin") + ": cannot open: No such file or directory");
  CHECK(kind == ErrorKind::io);
  CHECK(error(dir.path()) == dir.path() + ": cannot read: Is a directory");
  CHECK(error("/dev/zero") == "/dev/zero: wanted a regular file, found a device, pipe or socket");
  ::mkfifo((dir / "fifo").c_str(), 0600);
  CHECK(error(dir / "fifo") == (dir / "fifo") + ": wanted a regular file, found a device, pipe or socket");
  std::ofstream(dir / "empty.bin");
  CHECK(error(dir / "empty.bin") == (dir / "empty.bin") + ": not a plan: the file is empty");
}
