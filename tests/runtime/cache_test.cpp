#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "oclc/oclc.hpp"
#include "tests/runtime/cached_run.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;
namespace fs = std::filesystem;

TEST_CASE("programs come from the cache the second time") {
  TempDir dir;
  const Made first = make(dir.path().c_str());
  CHECK(first.stats.programs_built == 1);
  CHECK(first.stats.programs_cached == 0);
  CHECK(first.messages.empty());
  REQUIRE(entries(dir.path()).size() == 1);
  const Made second = make(dir.path().c_str());
  CHECK(second.stats.programs_built == 0);
  CHECK(second.stats.programs_cached == 1);
  CHECK(second.result == kExpected);
}

TEST_CASE("case 72: damaged cache entries never reach the driver and are made anew") {
  TempDir dir;
  make(dir.path().c_str());
  const fs::path entry = entries(dir.path()).at(0);
  std::string good;
  {
    std::ifstream in(entry, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::vector<std::string> damaged = {"", good.substr(0, 10), good.substr(0, good.size() / 2), good.substr(0, good.size() - 1),
                                      good + "x"};
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{9}, std::size_t{17}, std::size_t{25}, std::size_t{40}, good.size() / 2, good.size() - 1}) {
    damaged.push_back(good);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 4);
  }
  for (const std::string& bytes : damaged) {
    std::ofstream(entry, std::ios::binary | std::ios::trunc) << bytes;
    const Made made = make(dir.path().c_str());
    CHECK(made.stats.programs_built == 1);
    CHECK(made.stats.programs_cached == 0);
    CHECK(made.result == kExpected);
    REQUIRE(made.messages.size() == 1);
    CHECK(made.messages[0] == "the program cache entry '" + entry.string() + "' is damaged; it is made anew");
    CHECK(make(dir.path().c_str()).stats.programs_cached == 1);
  }
}

TEST_CASE("case 75: without a usable folder everything works, with one warning") {
  TempDir dir;
  std::ofstream(dir / "file") << "x";
  Made made = make((dir / "file").c_str());
  CHECK(made.result == kExpected);
  REQUIRE(made.messages.size() == 1);
  CHECK(made.messages[0] == "the program cache is off: cannot use folder '" + (dir / "file") + "': it is not a folder");

  made = make((dir / "file/below").c_str());
  CHECK(made.result == kExpected);
  CHECK(made.messages == std::vector<std::string>{"the program cache is off: cannot use folder '" + (dir / "file/below") +
                                                  "': Not a directory"});

  made = make("/proc/oclc");
  CHECK(made.result == kExpected);
  CHECK(made.messages ==
        std::vector<std::string>{"the program cache is off: cannot use folder '/proc/oclc': No such file or directory"});

  made = make("/sys");  // exists, cannot be written
  CHECK(made.result == kExpected);
  REQUIRE(made.messages.size() == 1);
  CHECK(made.messages[0].starts_with("the program cache is not written: /sys/"));

  const Setting on("OCLC_CACHE", "1");
  const Setting no_own("OCLC_CACHE_DIR", nullptr);
  const Setting no_xdg("XDG_CACHE_HOME", nullptr);
  {
    const Setting no_home("HOME", nullptr);
    made = make(nullptr);
    CHECK(made.result == kExpected);
    CHECK(made.messages ==
          std::vector<std::string>{"the program cache is off: neither OCLC_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder"});
  }
  const Setting home("HOME", dir.path().c_str());
  CHECK(make(nullptr).messages.empty());
  CHECK(entries(dir / ".cache/oclc").size() == 1);
  const Setting xdg("XDG_CACHE_HOME", (dir / "xdg").c_str());
  make(nullptr);
  CHECK(entries(dir / "xdg/oclc").size() == 1);
  const Setting own("OCLC_CACHE_DIR", (dir / "own").c_str());
  make(nullptr);
  CHECK(entries(dir / "own").size() == 1);
  struct stat status {};
  ::stat((dir / "own").c_str(), &status);
  CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE("case 75: a folder of somebody else that everybody may write is refused") {
  if (::getuid() != 0) return;  // only root can give a folder away
  TempDir dir;
  ::chmod(dir.path().c_str(), 0777);
  CHECK(::chown(dir.path().c_str(), 12345, 12345) == 0);
  const Made made = make(dir.path().c_str());
  CHECK(made.result == kExpected);
  CHECK(made.messages == std::vector<std::string>{"the program cache is off: cannot use folder '" + dir.path() +
                                                  "': it is writable by everyone and not ours"});
}

TEST_CASE("case 76: the cache is bounded, what was used longest ago goes first") {
  TempDir dir;
  const Setting limit("OCLC_CACHE_MAX_MB", "1");
  const auto entry = [&](int i) { return dir / ("00112233445566" + std::to_string(70 + i) + ".bin"); };
  for (int i = 0; i < 4; ++i) {
    std::ofstream(entry(i)) << std::string(400'000, 'x');
    const timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
    ::utimensat(AT_FDCWD, entry(i).c_str(), times, 0);
  }
  std::ofstream(dir / "foreign.txt") << std::string(400'000, 'x');
  make(dir.path().c_str());
  CHECK(!fs::exists(entry(0)));
  CHECK(!fs::exists(entry(1)));
  CHECK(fs::exists(entry(3)));
  CHECK(fs::exists(dir / "foreign.txt"));
  CHECK(make(dir.path().c_str()).stats.programs_cached == 1);
}

TEST_CASE("OCLC_CACHE=0 switches the cache off") {
  TempDir dir;
  const Setting off("OCLC_CACHE", "0");
  CHECK(make(dir.path().c_str()).stats.programs_built == 1);
  CHECK(entries(dir.path()).empty());
}

TEST_CASE("case 86: a program that does not build is reported with its log") {
  TempDir dir;
  fb::PlanT plan = vector_plan();
  plan.programs[0]->source += "\nkernel void broken(global float* x) { x[0] = undeclared_name; }\n";
  const auto bytes = finish(plan, {1, 2, 3, 4});
  oclc_context_options options = OCLC_INIT(oclc_context_options);
  options.cache_dir = dir.path().c_str();
  const rt::Context context(options);
  std::string message;
  try {
    rt::Session(rt::Plan::load(bytes.data(), bytes.size()), context);
  } catch (const rt::Error& error) {
    CHECK(error.status() == OCLC_E_BUILD);
    CHECK(error.cl_code() == -11);
    message = error.what();
  }
  CHECK(message.starts_with("program 'vector' does not build on device '" + std::string(context.device().name) +
                            "': CL_BUILD_PROGRAM_FAILURE (-11)\n"));
  CHECK(message.find("undeclared_name") != std::string::npos);
  CHECK(message.find("\nthe whole log is in " + dir.path()) != std::string::npos);
  CHECK(entries(dir.path()).size() == 2);
}

TEST_CASE("mergeable programs are built as one, and alone when one of them is at fault") {
  fb::PlanT plan = vector_plan();
  plan.programs[0]->mergeable = true;
  plan.programs.push_back(program("other", "kernel void other(global float* x, long x0) { x[x0] = 1; }"));
  plan.programs[1]->mergeable = true;
  auto bytes = finish(plan, {1, 2, 3, 4});
  const Setting off("OCLC_CACHE", "0");
  const rt::Context context;
  const bool serial = std::string(context.device().quirks).find("serial_compiler") != std::string::npos;
  CHECK(rt::Session(rt::Plan::load(bytes.data(), bytes.size()), context).stats().programs_built == (serial ? 1 : 2));

  plan.programs[1]->options = "-DX=1";  // other options: another build
  bytes = finish(plan, {1, 2, 3, 4});
  CHECK(rt::Session(rt::Plan::load(bytes.data(), bytes.size()), context).stats().programs_built == 2);

  plan.programs[1]->options = "";
  plan.programs[1]->source = "int broken = ;";
  bytes = finish(plan, {1, 2, 3, 4});
  CHECK_THROWS_WITH(rt::Session(rt::Plan::load(bytes.data(), bytes.size()), context),
                    doctest::Contains("program 'other' does not build"));
}

TEST_CASE("case 64: a device without what the plan needs is refused by name") {
  const rt::Context context;
  const std::string device = context.device().name;
  const auto error = [&](const fb::PlanT& plan) -> std::string {
    const auto bytes = finish(plan, {1, 2, 3, 4});
    try {
      rt::Session(rt::Plan::load(bytes.data(), bytes.size()), context);
    } catch (const rt::Error& e) {
      return std::string(oclc_status_name(e.status())) + ": " + e.what();
    }
    return "";
  };
  fb::PlanT plan = vector_plan();
  plan.extensions.push_back("cl_imaginary_extension");
  CHECK(
      error(plan) ==
      "OCLC_E_UNSUPPORTED: plan: the plan, compiled for target 'cpu', needs the OpenCL extension cl_imaginary_extension, which "
      "device '" +
          device + "' (driver " + context.device().driver + ") lacks; compile the model for it: oclc --device");
  plan = vector_plan();
  plan.entries[0]->steps[0]->body.AsLaunch()->local[0] = 65536;
  CHECK(error(plan) == "OCLC_E_UNSUPPORTED: kernel 'add' (nodes add_node) wants work-groups of size 65536, device '" + device +
                           "' allows " + std::to_string(context.device().max_work_group_size) +
                           "; the plan was compiled for target 'cpu', compile it for this device: oclc --device");
  plan = vector_plan();
  plan.entries[0]->steps[0]->body.AsLaunch()->name = "absent";
  CHECK(error(plan) == "OCLC_E_PLAN: plan: invalid plan: program 'vector' has no kernel 'absent'");
  plan = vector_plan();
  plan.entries[0]->steps[0]->body.AsLaunch()->args.pop_back();
  CHECK(error(plan) == "OCLC_E_PLAN: plan: invalid plan: kernel 'add' (nodes add_node) has 6 arguments, the plan gives 4");
}

TEST_CASE("case 47: a plan for any size refuses buffers whose places its kernels cannot count") {
  fb::PlanT plan = vector_plan();
  plan.symbols[0]->hi = INT64_MAX;
  const auto bytes = finish(plan, {1, 2, 3, 4});
  const rt::Context context;
  rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), context);
  const std::int64_t n = (std::int64_t{1} << 30) + 1;
  float never_read = 0;
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  tensor.rank = 1;
  tensor.shape = &n;
  tensor.host = &never_read;
  tensor.bytes = static_cast<std::uint64_t>(n) * 4;
  std::string message;
  try {
    session.set_input(0, "a", tensor);
    session.set_input(0, "b", tensor);
    session.run(0);
  } catch (const rt::Error& error) {
    CHECK(error.status() == OCLC_E_BINDING);
    message = error.what();
  }
  CHECK(message ==
        "buffer 'a' of entry point 'predict' has 1073741825 elements with these dimensions; a plan for any size has at most "
        "1073741824 in one: compile the model for this size with --dim");
}

TEST_CASE("case 89, fact 5: a plan that does not fit the device is refused before anything is allocated") {
  fb::PlanT plan = vector_plan();
  plan.symbols[0]->hi = std::int64_t{1} << 40;
  const auto bytes = finish(plan, {1, 2, 3, 4});
  const rt::Context context;
  rt::Session session(rt::Plan::load(bytes.data(), bytes.size()), context);
  const std::int64_t n = std::int64_t{1} << 38;
  session.bind_dim("N", n);
  std::string message;
  try {
    oclc_tensor tensor = OCLC_INIT(oclc_tensor);
    float never_read = 0;
    tensor.rank = 1;
    tensor.shape = &n;
    tensor.host = &never_read;
    tensor.bytes = static_cast<std::uint64_t>(n) * 4;
    session.set_input(0, "a", tensor);
    session.set_input(0, "b", tensor);
    session.run(0);
  } catch (const rt::Error& error) {
    CHECK(error.status() == OCLC_E_MEMORY);
    message = error.what();
  }
  CHECK(message ==
        "entry point 'predict' takes 4398046511120 bytes with these dimensions (arena 1099511627776, inputs and outputs "
        "3298534883328, "
        "state 0, constants 16), device '" +
            std::string(context.device().name) + "' has " + std::to_string(context.device().global_bytes) +
            "; use a smaller batch");
}

TEST_CASE("the cache's files are listed by use and removed by age and size") {
  TempDir dir;
  make(dir.path().c_str());
  const std::string entry = entries(dir.path()).at(0);
  for (const auto& [name, age] : {std::pair("00112233445566aa.bin", 86400 * 3), std::pair("00112233445566bb.log", 86400 * 5)}) {
    std::ofstream(dir / name) << "x";
    fs::last_write_time(dir / name, fs::file_time_type::clock::now() - std::chrono::seconds(age));
  }
  for (const char* name : {"other.txt", "plan.bin", "00112233445566aa7.bin"}) std::ofstream(dir / name) << "not the cache's";
  struct Seen {
    std::string path, device, producer;
    bool binary, damaged;
  };
  std::vector<Seen> seen;
  const auto visit = [](void* user, const oclc_cache_entry* e) {
    static_cast<std::vector<Seen>*>(user)->push_back({e->path, e->device, e->producer, e->binary != 0, e->damaged != 0});
  };
  CHECK(oclc_cache_visit(dir.path().c_str(), visit, &seen, nullptr) == OCLC_OK);
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].path == entry);
  CHECK(seen[0].device == std::string(rt::Context().device().name));
  CHECK(seen[0].producer == std::string("oclc ") + oclc_version());
  CHECK(!seen[0].damaged);
  CHECK(seen[1].path == dir / "00112233445566aa.bin");
  CHECK(seen[1].damaged);
  CHECK(!seen[2].binary);
  std::uint32_t removed = 0;
  std::uint64_t bytes = 0;
  CHECK(oclc_cache_prune(dir.path().c_str(), UINT64_MAX, 86400 * 4, &removed, &bytes, nullptr) == OCLC_OK);
  CHECK(removed == 1);
  CHECK(bytes == 1);
  CHECK(!fs::exists(dir / "00112233445566bb.log"));
  CHECK(oclc_cache_prune(dir.path().c_str(), fs::file_size(entry), -1, &removed, &bytes, nullptr) == OCLC_OK);
  CHECK(removed == 1);
  CHECK(!fs::exists(dir / "00112233445566aa.bin"));
  CHECK(make(dir.path().c_str()).stats.programs_cached == 1);
  CHECK(oclc_cache_prune(dir.path().c_str(), 0, -1, &removed, &bytes, nullptr) == OCLC_OK);
  CHECK(removed == 1);
  CHECK(make(dir.path().c_str()).stats.programs_built == 1);
  for (const char* name : {"other.txt", "plan.bin", "00112233445566aa7.bin"}) CHECK(fs::exists(dir / name));
  CHECK(oclc_cache_prune((dir / "absent").c_str(), 0, -1, &removed, &bytes, nullptr) == OCLC_OK);
  CHECK(removed == 0);
}

TEST_CASE("after a driver's update programs are compiled anew, and what the old one compiled stays until there is no room") {
  TempDir dir;
  make(dir.path().c_str());
  const fs::path entry = entries(dir.path()).at(0);
  // The entry of another driver: its key, and so its place, differ. Under this driver's place it is taken for none of ours.
  std::string text;
  {
    std::ifstream in(entry, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  CHECK(text.find(std::string("\n") + rt::Context().device().driver + "\n") != std::string::npos);
  fs::rename(entry, dir / "0123456789abcdef.bin");
  const Made made = make(dir.path().c_str());
  CHECK(made.stats.programs_built == 1);
  CHECK(made.result == kExpected);
  CHECK(made.messages.empty());
  CHECK(entries(dir.path()).size() == 2);
}
