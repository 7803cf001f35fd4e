// Reads the held-out handwritten digits with a plan compiled from model.onnx: a complete program over the runtime's C++ header.
//
//   digits PLAN FOLDER [--device SEL]
//
// FOLDER holds test_images.npy and test_labels.npy. Prints some images with their answers, every mistake, and the accuracy;
// exit status 7 when fewer than 97 % are right.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "examples/digits/npy.h"
#include "examples/digits/waiting.h"
#include "oclc/oclc.hpp"

namespace {

constexpr std::size_t kSide = 8;
constexpr std::size_t kPixels = kSide * kSide;
constexpr std::size_t kClasses = 10;
constexpr std::size_t kPerRow = 5;
constexpr double kWanted = 0.97;

struct Answer {
  std::size_t digit = 0;
  std::size_t truth = 0;
  std::size_t image = 0;
};

// Logits [N,10] of images [N,1,8,8].
std::vector<float> classify(const std::string& plan_file, const std::string& device, const digits::Array<float>& images) {
  const examples::Waiting waiting("compiling kernels, which drivers keep for the next time");
  const oclc::rt::Plan plan = oclc::rt::Plan::load(plan_file);
  const oclc::rt::Context context(device);
  oclc::rt::Session session(plan, context);
  const std::uint32_t entry = plan.entry("predict");
  const std::int64_t count = images.shape.at(0);
  std::vector<float> logits(static_cast<std::size_t>(count) * kClasses);
  session.set_input(entry, "image", images.values.data(), images.shape);
  session.set_output(entry, "logits", logits.data(), {count, static_cast<std::int64_t>(kClasses)});
  session.run(entry);
  std::printf("%lld images read on %s\n\n", static_cast<long long>(count), context.device().name);
  return logits;
}

// Images side by side, two characters a pixel, with what was read beneath.
void draw(const digits::Array<float>& images, const std::vector<Answer>& answers) {
  constexpr std::string_view kInk = " .:-=+*#%@";
  for (std::size_t first = 0; first < answers.size(); first += kPerRow) {
    const std::size_t last = std::min(first + kPerRow, answers.size());
    for (std::size_t y = 0; y < kSide; ++y) {
      for (std::size_t i = first; i < last; ++i) {
        const float* row = &images.values[answers[i].image * kPixels + y * kSide];
        std::fputs("  |", stdout);
        for (std::size_t x = 0; x < kSide; ++x) {
          const float shade = std::clamp(row[x], 0.0f, 1.0f) * static_cast<float>(kInk.size() - 1);
          const char ink = kInk[static_cast<std::size_t>(shade + 0.5f)];
          std::printf("%c%c", ink, ink);
        }
        std::putchar('|');
      }
      std::putchar('\n');
    }
    for (std::size_t i = first; i < last; ++i) {
      const Answer& a = answers[i];
      std::printf("   #%-4zu read %zu %s", a.image, a.digit,
                  a.digit == a.truth ? "       " : ("not " + std::to_string(a.truth) + "  ").c_str());
    }
    std::puts("\n");
  }
}

int run(const std::string& plan_file, const std::string& folder, const std::string& device) {
  const digits::Array<float> images = digits::read_npy<float>(folder + "/test_images.npy", "<f4");
  const digits::Array<std::int64_t> labels = digits::read_npy<std::int64_t>(folder + "/test_labels.npy", "<i8");
  const std::size_t count = labels.values.size();
  if (count == 0 || images.values.size() != count * kPixels)
    throw std::runtime_error(folder + ": wanted a label for each image");
  const std::vector<float> logits = classify(plan_file, device, images);

  std::vector<Answer> shown;
  std::vector<Answer> wrong;
  for (std::size_t i = 0; i < count; ++i) {
    const float* row = &logits[i * kClasses];
    const Answer answer{static_cast<std::size_t>(std::max_element(row, row + kClasses) - row),
                        static_cast<std::size_t>(labels.values[i]), i};
    if (answer.digit != answer.truth) wrong.push_back(answer);
    if (answer.truth == shown.size() && shown.size() < kClasses) shown.push_back(answer);
  }
  std::puts("One image of each class:\n");
  draw(images, shown);
  if (!wrong.empty()) std::printf("The %zu mistakes:\n\n", wrong.size());
  draw(images, wrong);
  const std::size_t right = count - wrong.size();
  const double accuracy = static_cast<double>(right) / static_cast<double>(count);
  std::printf("%zu of %zu digits right (%.1f %%)\n", right, count, 100.0 * accuracy);
  return accuracy >= kWanted ? 0 : 7;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && !(argc == 5 && std::strcmp(argv[3], "--device") == 0)) {
    std::fputs("usage: digits PLAN FOLDER [--device SEL]\n", stderr);
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc == 5 ? argv[4] : "");
  } catch (const oclc::rt::Error& error) {
    std::fprintf(stderr, "digits: error: %s (%s)\n", error.what(), oclc_status_name(error.status()));
    return 5;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: error: %s\n", error.what());
    return 6;
  }
}
