// fuzz_<target> SECONDS FOLDER: the target on each file of the folder, and then, for so long, on files of it that are changed
// at random, always in the same way. What libFuzzer does with less sight, for builds without clang. The input that ends the
// process is in fuzz_<target>.failed.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room,
                                                                     unsigned seed);

namespace {

constexpr std::size_t kRoom = 1 << 16;
std::mt19937_64 random_numbers;  // NOLINT: a generator with its usual seed
std::vector<std::uint8_t> input;
std::string failed;

void keep_input(int signal) {
  const int file = ::open(failed.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file >= 0 && ::write(file, input.data(), input.size()) >= 0) ::close(file);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t room) {
  const std::size_t at = size == 0 ? 0 : random_numbers() % size;
  switch (random_numbers() % 4) {
    case 0:
      if (size == room) return size;
      std::copy_backward(data + at, data + size, data + size + 1);
      data[at] = static_cast<std::uint8_t>(random_numbers());
      return size + 1;
    case 1:
      if (size < 2) return size;
      std::copy(data + at + 1, data + size, data + at);
      return size - 1;
    default:
      if (size > 0)
        data[at] =
            static_cast<std::uint8_t>(random_numbers() % 2 == 0 ? random_numbers() : data[at] ^ (1U << random_numbers() % 8));
      return size;
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  failed = std::filesystem::path(argv[0]).filename().string() + ".failed";
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS}) std::signal(signal, keep_input);
  if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
  std::vector<std::vector<std::uint8_t>> seeds;
  if (std::filesystem::exists(argv[2]))
    for (const auto& entry : std::filesystem::directory_iterator(argv[2])) {
      std::ifstream in(entry.path(), std::ios::binary);
      seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  std::size_t runs = 0;
  for (const auto& seed : seeds) {
    input = seed;
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++runs;
  }
  if (seeds.empty()) seeds.emplace_back();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  while (std::chrono::steady_clock::now() < end) {
    std::vector<std::uint8_t> next(kRoom);
    const auto& from = runs % 4 == 0 || input.size() > kRoom ? seeds[random_numbers() % seeds.size()] : input;
    std::copy(from.begin(), from.end(), next.begin());
    const auto seed = static_cast<unsigned>(random_numbers());
    next.resize(LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(next.data(), from.size(), kRoom, seed)
                                        : LLVMFuzzerMutate(next.data(), from.size(), kRoom));
    input = std::move(next);
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++runs;
  }
  std::fprintf(stderr, "%zu inputs, %zu of them files: nothing found\n", runs, std::min(runs, seeds.size()));
}
