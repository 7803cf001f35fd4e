// The library beside another copy of itself, loaded and unloaded, and handles that outlive main.
#include <dirent.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "oclc/oclc.h"
#include "tests/process.h"
#include "tests/runtime/cached_run.h"
#include "tests/runtime/plans.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;

namespace two_libraries_test {
namespace {

const std::string kLibrary = std::string(OCLC_BINARY_DIR) + "/lib/liboclc_runtime.so";

// A library opened by its path, whose functions are found by name.
class Library {
 public:
  explicit Library(const std::string& path) : handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE_MESSAGE(handle_ != nullptr, ::dlerror());
  }
  ~Library() { ::dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class F>
  F* function(const char* name) const {
    void* address = ::dlsym(handle_, name);
    REQUIRE(address != nullptr);
    return reinterpret_cast<F*>(address);
  }

 private:
  void* handle_;
};

#define OF(library, name) (library).function<decltype(name)>(#name)

oclc_tensor tensor_of(std::vector<float>& values, const std::int64_t* shape) {
  oclc_tensor tensor = OCLC_INIT(oclc_tensor);
  tensor.dtype = OCLC_F32;
  tensor.rank = 1;
  tensor.shape = shape;
  tensor.host = values.data();
  tensor.bytes = values.size() * sizeof(float);
  return tensor;
}

// One run of the vector plan by the functions of that library.
std::vector<float> run_by(const Library& library) {
  const std::vector<std::byte> bytes = vector_plan_bytes();
  const std::int64_t shape[] = {4};
  std::vector<float> a = {1, 2, 3, 4}, y(4);
  oclc_plan* plan = nullptr;
  oclc_context* context = nullptr;
  oclc_session* session = nullptr;
  REQUIRE(OF(library, oclc_plan_load_memory)(bytes.data(), bytes.size(), &plan, nullptr) == OCLC_OK);
  REQUIRE(OF(library, oclc_context_create)(nullptr, &context, nullptr) == OCLC_OK);
  REQUIRE(OF(library, oclc_session_create)(plan, context, &session, nullptr) == OCLC_OK);
  const oclc_tensor in = tensor_of(a, shape), out = tensor_of(y, shape);
  REQUIRE(OF(library, oclc_session_set_input)(session, 0, "a", &in) == OCLC_OK);
  REQUIRE(OF(library, oclc_session_set_input)(session, 0, "b", &in) == OCLC_OK);
  REQUIRE(OF(library, oclc_session_set_output)(session, 0, "y", &out) == OCLC_OK);
  REQUIRE(OF(library, oclc_session_run)(session, 0) == OCLC_OK);
  OF(library, oclc_session_release)(session);
  OF(library, oclc_context_release)(context);
  OF(library, oclc_plan_release)(plan);
  return y;
}

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

std::size_t maps_of(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find(path) != line.npos ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("case 110: two copies of the library in one process keep apart") {
  const TempDir dir;
  const std::string copy = dir / "libanother.so";
  std::filesystem::copy_file(kLibrary, copy);
  const Library other(copy);
  CHECK((OF(other, oclc_version) != &oclc_version));
  CHECK(std::string(OF(other, oclc_version)()) == oclc_version());
  for (int round = 0; round < 3; ++round) {
    CHECK(run_by(other) == kExpected);
    CHECK(make(nullptr).result == kExpected);
  }
  // A handle of the one is none of the other's, but errors are told by either.
  CHECK(std::string(OF(other, oclc_status_name)(OCLC_E_MEMORY)) == "OCLC_E_MEMORY");
}

TEST_CASE("case 103: the library is loaded, used and unloaded again and again") {
  const TempDir dir;
  const std::string copy = dir / "libanother.so";
  std::filesystem::copy_file(kLibrary, copy);
  make(nullptr);  // what drivers open once
  {
    const Library library(copy);
    CHECK(run_by(library) == kExpected);
  }
  const std::size_t files = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
  const std::vector<std::byte> bytes = vector_plan_bytes();
  for (int i = 0; i < 1000; ++i) {
    const Library library(copy);
    oclc_plan* plan = nullptr;
    REQUIRE(OF(library, oclc_plan_load_memory)(bytes.data(), bytes.size(), &plan, nullptr) == OCLC_OK);
    OF(library, oclc_plan_release)(plan);
    if (i % 100 == 0) CHECK(run_by(library) == kExpected);
  }
  CHECK(entries_of("/proc/self/fd") == files);
  CHECK(entries_of("/proc/self/task") == threads);
  CHECK(maps_of(copy) == 0);
}

TEST_CASE("case 103: handles that are released behind main, or never, end the process as usual") {
  for (const char* when : {"static", "atexit", "never", "twice"}) {
    const Outcome outcome = run(std::string(OCLC_BINARY_DIR) + "/bin/released_late " + when);
    CAPTURE(when);
    CHECK(outcome.status == 0);
    CHECK(outcome.text == "3 9 19 33\n");
  }
}

}  // namespace two_libraries_test
