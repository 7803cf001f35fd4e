#include "runtime/package/checkpoint.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "runtime/package/writer.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/temp_dir.h"

using namespace oclc;
using namespace oclc::test;

namespace {

// Variables "w" [rows, 3] and "b" [4] in one buffer, "steps" i64 [] in another.
fb::PlanT state_plan(std::int64_t rows = 2) {
  fb::PlanT plan = new_plan();
  plan.buffers.push_back(buffer("parameters", fb::BufferKind::state, 4 * (3 * rows + 4)));
  plan.buffers.push_back(buffer("steps", fb::BufferKind::state, 8, fb::DType::i64));
  const auto add = [&](const std::string& name, int in, std::int64_t offset, std::vector<std::int64_t> shape) {
    auto v = std::make_unique<fb::VariableT>();
    v->name = name;
    v->buffer = in;
    v->dtype = plan.buffers[static_cast<std::size_t>(in)]->dtype;
    v->offset = offset;
    for (const std::int64_t d : shape) v->shape.push_back(E(d).ptr());
    plan.variables.push_back(std::move(v));
  };
  add("w", 0, 4, {rows, 3});
  add("b", 0, 0, {4});
  add("steps", 1, 0, {});
  plan.entries.push_back(entry("train_step"));
  return plan;
}

std::shared_ptr<const package::Package> opened(const fb::PlanT& plan) { return package::Package::from_memory(finish(plan)); }

// Every byte of variable i is `value` + i.
package::ReadVariable filled(unsigned value) {
  return [value](std::uint32_t index, std::uint64_t, std::span<std::byte> out) {
    std::memset(out.data(), static_cast<int>((value + index) & 255), out.size());
  };
}

std::string refusal(const std::function<void()>& action, package::ErrorKind kind) {
  try {
    action();
  } catch (const package::Error& error) {
    CHECK(static_cast<int>(error.kind()) == static_cast<int>(kind));
    return error.what();
  }
  return "";
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a checkpoint gives back what was saved, whatever the order of the variables") {
  const TempDir folder;
  const auto plan = opened(state_plan());
  package::write_checkpoint(folder / "c", plan->plan(), 17, filled(5));
  const auto checkpoint = package::Checkpoint::open(folder / "c");
  CHECK(checkpoint.steps() == 17);
  fb::PlanT other = state_plan();
  std::swap(other.variables[0], other.variables[2]);
  const auto reordered = opened(other);
  CHECK(package::state_identity(plan->plan()) == package::state_identity(reordered->plan()));
  const auto values = checkpoint.values_for(reordered->plan());
  REQUIRE(values.size() == 3);
  CHECK(values[0].size() == 8);
  CHECK(values[0][7] == std::byte{7});
  CHECK(values[1].size() == 16);
  CHECK(values[1][15] == std::byte{6});
  CHECK(values[2].size() == 24);
  CHECK(values[2][23] == std::byte{5});
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator(folder.path())) ++files;
  CHECK(files == 1);
}

TEST_CASE("case 111: a checkpoint of another model is refused with the first difference") {
  const TempDir folder;
  const std::string path = folder / "c";
  package::write_checkpoint(path, opened(state_plan())->plan(), 0, filled(0));
  const auto refused = [&](const std::function<void(fb::PlanT&)>& change, std::int64_t rows = 2) {
    fb::PlanT plan = state_plan(rows);
    change(plan);
    const auto other = opened(plan);
    CHECK(package::state_identity(other->plan()) != package::Checkpoint::open(path).plan().checkpoint()->identity());
    return refusal([&] { package::Checkpoint::open(path).values_for(other->plan()); }, package::ErrorKind::invalid);
  };
  const std::string head = path + ": a checkpoint of another model: ";
  CHECK(refused([](fb::PlanT&) {}, 3) == head + "variable 'w' is f32[2, 3], wanted f32[3, 3]");
  CHECK(refused([](fb::PlanT& p) { p.variables[1]->name = "bias"; }) == head + "it has no variable 'bias'");
  CHECK(refused([](fb::PlanT& p) { p.variables.pop_back(); }) == head + "it has variable 'steps', which the plan lacks");
  CHECK(refused([](fb::PlanT& p) { p.buffers[1]->dtype = p.variables[2]->dtype = fb::DType::u64; }) ==
        head + "variable 'steps' is i64[], wanted u64[]");
}

TEST_CASE("case 111: damaged checkpoints are refused at every byte") {
  const TempDir folder;
  const std::string path = folder / "c";
  package::write_checkpoint(path, opened(state_plan())->plan(), 3, filled(9));
  const std::string good = contents(path);
  const auto open = [&] { package::Checkpoint::open(path); };
  const auto write = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  for (std::size_t size = 0; size < good.size(); size += 1 + size / 16) {
    write(good.substr(0, size));
    CAPTURE(size);
    CHECK(refusal(open, package::ErrorKind::corrupt) != "");
  }
  for (std::size_t at = 0; at < good.size(); at += at < 1200 || at > 4090 ? 1 : 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    write(bad);
    CAPTURE(at);
    CHECK(refusal(open, package::ErrorKind::corrupt) != "");
  }
  write(good + "x");
  CHECK(refusal(open, package::ErrorKind::corrupt) != "");
  const auto plan = finish(state_plan());
  write(std::string(reinterpret_cast<const char*>(plan.data()), plan.size()));
  CHECK(refusal(open, package::ErrorKind::corrupt) == path + ": not a checkpoint: it is a plan");
  std::filesystem::remove(path);
  CHECK(refusal(open, package::ErrorKind::io) == path + ": cannot open: No such file or directory");
  CHECK(refusal([&] { package::write_checkpoint(folder / "none/c", opened(state_plan())->plan(), 0, filled(0)); },
                package::ErrorKind::io)
            .starts_with(folder / "none/c: cannot create "));
}

TEST_CASE("a failure while saving leaves the old checkpoint and nothing else") {
  const TempDir folder;
  const auto plan = opened(state_plan());
  package::write_checkpoint(folder / "c", plan->plan(), 1, filled(1));
  const std::string before = contents(folder / "c");
  CHECK_THROWS_AS(package::write_checkpoint(folder / "c", plan->plan(), 2,
                                            [](std::uint32_t, std::uint64_t, std::span<std::byte>) { throw 7; }),
                  int);
  CHECK(contents(folder / "c") == before);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("case 69: killed 200 times while saving, the old or the new state always loads") {
  const TempDir folder;
  const std::string path = folder / "c";
  const auto plan = opened(state_plan(40000));  // 480 kB
  std::uint64_t last = 0;
  package::write_checkpoint(path, plan->plan(), last, filled(0));
  std::mt19937 random(1);
  unsigned advanced = 0;
  for (int round = 0; round < 200; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (std::uint64_t steps = last + 1;; ++steps)
        package::write_checkpoint(path, plan->plan(), steps, filled(static_cast<unsigned>(steps & 255)));
    }
    ::usleep(static_cast<useconds_t>(random() % 8000));
    ::kill(child, SIGKILL);
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    const auto checkpoint = package::Checkpoint::open(path);
    const auto values = checkpoint.values_for(plan->plan());
    REQUIRE(checkpoint.steps() >= last);
    advanced += checkpoint.steps() > last;
    last = checkpoint.steps();
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const std::byte b : values[i]) REQUIRE(b == static_cast<std::byte>(last + i));
  }
  MESSAGE(last << " checkpoints written, " << advanced << " of 200 rounds ended with a new one");
  CHECK(advanced > 0);
  // A name is given for an instant alone, between two system calls.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) <= 20);
}
