// Allocations that fail, each in turn: the compiler ends with an exception, and leaves nothing.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "compiler/compile.h"
#include "compiler/ir/parse.h"
#include "compiler/ops/op_list.h"
#include "compiler/plan/build_plan.h"
#include "compiler/support/error.h"
#include "oclc/oclc.hpp"
#include "tests/compile/allocations.h"
#include "tests/onnx/onnx_model.h"
#include "tests/runtime/plan_builder.h"

namespace {

// Of this thread alone, and only while a test counts them.
thread_local bool counting = false;
thread_local long allocations = 0, alive = 0, fail_at = 0;

void* allocated(std::size_t bytes) {
  if (counting && ++allocations == fail_at) return nullptr;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (counting && memory) ++alive;
  return memory;
}

void released(void* memory) {
  if (counting && memory) --alive;
  std::free(memory);
}

void* allocated_or_thrown(std::size_t bytes) {
  if (void* memory = allocated(bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocated_or_thrown(bytes); }
void* operator new[](std::size_t bytes) { return allocated_or_thrown(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return allocated(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return allocated(bytes); }
void operator delete(void* memory) noexcept { released(memory); }
void operator delete[](void* memory) noexcept { released(memory); }
void operator delete(void* memory, std::size_t) noexcept { released(memory); }
void operator delete[](void* memory, std::size_t) noexcept { released(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { released(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { released(memory); }

namespace oclc::test {

long allocations_in(const std::function<void()>& work) {
  allocations = alive = fail_at = 0;
  counting = true;
  try {
    work();
  } catch (...) {
    counting = false;
    throw;
  }
  counting = false;
  return allocations;
}

}  // namespace oclc::test

namespace oclc::allocation_test {
namespace {

struct Counted {
  long failed = 0, tried = 0;
};

// Calls `work` with the n-th allocation failing, for each n at first and then for one of each twentieth, until none fails. A
// library may lose `most_left` allocations then.
template <class Work>
Counted fail_each(const Work& work, long most_left = 0) {
  Counted counted;
  work();  // what is made once and kept
  for (long n = 1;; n += 1 + n / 20) {
    ++counted.tried;
    bool ended = false;
    oclc_status status = OCLC_E_MEMORY;
    allocations = alive = 0;
    fail_at = n;
    counting = true;
    try {
      work();
    } catch (const std::bad_alloc&) {
      ended = true;
    } catch (const CompileError&) {
      ended = true;
    } catch (const rt::Error& error) {
      ended = true;
      status = error.status();
    }
    counting = false;
    CHECK(status == OCLC_E_MEMORY);
    const long left = alive, made = allocations;
    counted.failed += made >= n ? 1 : 0;
    CAPTURE(n);
    CHECK(left <= most_left);
    CHECK((ended || made != n));
    if (made < n) return counted;
  }
}

}  // namespace

TEST_CASE("case 104: each allocation fails once while a graph is compiled") {
  const std::string text =
      "graph predict(%x: f32[N, 8, 8, 3]) {\n"
      "  %0 = transpose(%x) {perm=[0, 3, 1, 2]}  // t\n"
      "  %1 = relu(%0)  // r\n"
      "  %2 = reduce_mean(%1) {axes=[2, 3], keepdims=0}  // m\n"
      "  %3 = softmax(%2) {axis=1}  // s\n"
      "  return y=%3\n}\n";
  const Counted counted = fail_each([&] {
    auto module = std::make_shared<Module>();
    module->symbols = {Expr::symbol("N")};
    module->entries.push_back(parse_graph(text, find_op));
    CompileOptions options;
    options.target = find_target("cpu");
    compile(std::move(module), options);
  });
  MESSAGE(counted.failed, " allocations failed");
  CHECK(counted.failed > 50);
}

TEST_CASE("case 104: each allocation fails once while a model is read") {
  test::Writer w;
  w.input("x", {"N", 4}).output("y").floats("w", {4, 4}, std::vector<float>(16, 0.5F));
  w.node("MatMul", {"x", "w"}, {"h"}, "product");
  w.node("Relu", {"h"}, {"y"}, "act");
  const std::string bytes = w.bytes();
  // Protobuf makes a message's element before the list that takes it grows, and loses it.
  const Counted counted = fail_each([&] { test::Writer::import_bytes(bytes); }, 1);
  MESSAGE(counted.failed, " allocations failed");
  CHECK(counted.failed > 20);
}

// On a device that executes nothing, so that no driver's allocations are among them.
TEST_CASE("case 104: each allocation fails once while a plan is loaded and run") {
  ::setenv("OCLC_OPENCL", OCLC_BINARY_DIR "/lib/libfake_opencl.so", 1);
  ::setenv("OCLC_CACHE", "0", 1);
  const std::vector<std::byte> bytes = test::vector_plan_bytes();
  const Counted counted = fail_each([&] {
    const rt::Plan plan = rt::Plan::load(bytes.data(), bytes.size());
    const rt::Context context;
    rt::Session session(plan, context);
    const float a[4] = {1, 2, 3, 4};
    float y[4] = {};
    session.set_input(0, "a", a, {4});
    session.set_input(0, "b", a, {4});
    session.set_output(0, "y", y, {4});
    session.run(0);
  });
  MESSAGE(counted.failed, " allocations failed");
  CHECK(counted.failed > 50);
}

}  // namespace oclc::allocation_test
