// oclc-fill-weights: write the weight file that a folder's weights.json describes.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tools/fill_weights/recipe.h"

namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2;
constexpr int kBadInput = 3;
constexpr int kIo = 6;
constexpr unsigned kWorkers = 2;

constexpr const char* kHelp =
    "usage: oclc-fill-weights DIR [--out DIR] [--check]\n"
    "Write the weight file described by DIR/weights.json and print its path.\n"
    "  --out DIR  write there (created when missing), with a copy of DIR/model.onnx beside it\n"
    "  --check    leave a weight file alone that already has the right size\n"
    "  --help     this text\n";

struct Options {
  fs::path folder;
  fs::path out;
  bool check = false;
  bool help = false;
};

// False: wrong usage.
bool parse(const std::vector<std::string_view>& args, Options& options) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--help" || args[i] == "-h") {
      options.help = true;
      return true;
    }
    if (args[i] == "--check") {
      options.check = true;
    } else if (args[i] == "--out" && i + 1 < args.size()) {
      options.out = args[++i];
    } else if (!args[i].empty() && args[i].front() != '-' && options.folder.empty()) {
      options.folder = args[i];
    } else {
      std::fprintf(stderr, "oclc-fill-weights: error: unexpected argument '%.*s'\n", static_cast<int>(args[i].size()),
                   args[i].data());
      return false;
    }
  }
  if (options.folder.empty()) std::fputs("oclc-fill-weights: error: wanted a folder with weights.json\n", stderr);
  return !options.folder.empty();
}

// A copy that replaces atomically: several processes may prepare one folder at a time.
void copy_model(const fs::path& from, const fs::path& to) {
  if (!fs::exists(from) || (fs::exists(to) && fs::equivalent(from, to))) return;
  std::string name = to.string() + ".XXXXXX";
  const int descriptor = ::mkstemp(name.data());
  if (descriptor < 0) throw fs::filesystem_error("cannot create", to, std::error_code(errno, std::generic_category()));
  ::fchmod(descriptor, 0644);
  ::close(descriptor);
  fs::copy_file(from, name, fs::copy_options::overwrite_existing);
  fs::rename(name, to);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse({argv + 1, argv + argc}, options)) {
    std::fputs(kHelp, stderr);
    return kUsage;
  }
  if (options.help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  try {
    const oclc::fill::Recipe recipe = oclc::fill::read_recipe(options.folder / "weights.json");
    const fs::path out = options.out.empty() ? options.folder : options.out;
    fs::create_directories(out);
    copy_model(options.folder / "model.onnx", out / "model.onnx");
    const fs::path target = out / recipe.weights;
    std::error_code missing;
    if (!options.check || fs::file_size(target, missing) != recipe.size_bytes || missing)
      oclc::fill::write_weights(recipe, target, kWorkers);
    std::printf("%s\n", target.c_str());
    return 0;
  } catch (const fs::filesystem_error& error) {
    std::fprintf(stderr, "oclc-fill-weights: error: %s\n", error.what());
    return kIo;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oclc-fill-weights: error: %s\n", error.what());
    return kBadInput;
  }
}
