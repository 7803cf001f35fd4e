// A checkpoint, read, and compared with the plan that it was written for.
#include "runtime/package/checkpoint.h"

#include "tests/fuzz/targets/input.h"
#include "tests/fuzz/targets/plan_file.h"

namespace {

using namespace oclc;

constexpr float kLearningRate = 0.1F;

const std::vector<std::byte>& trained() {
  static const std::vector<std::byte> bytes = test::finish(test::train_plan(), {kLearningRate});
  return bytes;
}

// What a session of that plan writes after 12 steps.
const std::vector<plan::PlanT>& originals() {
  static const std::vector<plan::PlanT> plans = [] {
    const auto package = package::Package::from_memory(trained());
    const std::string path = "/tmp/checkpoint-" + std::to_string(::getpid());
    package::write_checkpoint(path, package->plan(), 12, [](std::uint32_t, std::uint64_t, std::span<std::byte> out) {
      std::fill(out.begin(), out.end(), std::byte{1});
    });
    std::vector<plan::PlanT> made(1);
    package::Checkpoint::open(path).plan().UnPackTo(&made[0]);
    ::unlink(path.c_str());
    return made;
  }();
  return plans;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room, unsigned seed) {
  return fuzz::mutate_plan_file(data, size, room, seed, originals());
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto plan = package::Package::from_memory(trained());
  const fuzz::MemoryFile file(fuzz::text_of(data, size));
  try {
    const package::Checkpoint checkpoint = package::Checkpoint::open(file.path());
    for (const auto& values : checkpoint.values_for(plan->plan())) fuzz::touch(values.data(), values.size());
  } catch (const package::Error& error) {
    if (!*error.what()) fuzz::found("no text");
  }
  return 0;
}
