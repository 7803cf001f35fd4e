// oclc cache: what the program cache holds, and less of it.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/Formatter.hpp>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "oclc/oclc.hpp"
#include "tools/oclc/commands.h"
#include "tools/oclc/console.h"
#include "tools/oclc/failure.h"
#include "tools/oclc/options.h"

namespace oclc::tool {
const std::string_view kCacheHelp = R"(usage: oclc cache list [--json]
       oclc cache prune [--max-mb N] [--older-than DAYS]
       oclc cache clear
Lists the binaries of programs that oclc keeps so that they are compiled once, removes those used longest ago, or all of them. Nothing is
lost: what is missing is compiled again. Drivers that keep binaries themselves (PoCL, in POCL_CACHE_DIR or ~/.cache/pocl) do so beside it.

  --folder DIR         the cache (default: OCLC_CACHE_DIR, else $XDG_CACHE_HOME/oclc, else ~/.cache/oclc)
  --max-mb N           keep at most N MiB (default: OCLC_CACHE_MAX_MB, else 512)
  --older-than DAYS    remove what was not used for so many days
  --json               as JSON
  --color auto|always|never   -v   -q, --quiet   -h, --help
)";

namespace {

using nlohmann::json;

struct Found {
  std::string path, device, driver, producer;
  std::uint64_t bytes = 0;
  std::int64_t used_s = 0;
  bool binary = false, damaged = false;
};

void check(oclc_status status, const oclc_error& error) {
  if (status != OCLC_OK) throw rt::Error(error.status, error.cl_code, error.message);
}

void add(void* list, const oclc_cache_entry* e) {
  static_cast<std::vector<Found>*>(list)->push_back(
      {e->path, e->device, e->driver, e->producer, e->bytes, e->used_s, e->binary != 0, e->damaged != 0});
}

std::string folder_of(const char* wanted) {
  oclc_error error = OCLC_INIT(oclc_error);
  std::size_t bytes = 0;
  check(oclc_cache_folder(wanted, nullptr, 0, &bytes, &error), error);
  std::string text(bytes, '\0');
  check(oclc_cache_folder(wanted, text.data(), text.size(), nullptr, &error), error);
  text.pop_back();
  return text;
}

int list_cache(const char* wanted, bool as_json) {
  std::vector<Found> all;
  oclc_error error = OCLC_INIT(oclc_error);
  check(oclc_cache_visit(wanted, add, &all, &error), error);
  std::uint64_t total = 0;
  json entries = json::array();
  for (const Found& f : all) {
    total += f.bytes;
    const std::string what = !f.binary ? "of a build that failed" : f.damaged ? "damaged" : f.device + ", driver " + f.driver;
    if (as_json)
      entries.push_back({{"path", f.path},
                         {"bytes", f.bytes},
                         {"used", f.used_s},
                         {"device", f.device},
                         {"driver", f.driver},
                         {"producer", f.producer},
                         {"binary", f.binary},
                         {"damaged", f.damaged}});
    else
      print_result(fmt::format("{:9.1f} KB  {:%Y-%m-%d %H:%M}  {}  {}\n", static_cast<double>(f.bytes) * 1e-3,
                               fmt::localtime(static_cast<std::time_t>(f.used_s)), f.path.substr(f.path.rfind('/') + 1), what));
  }
  const std::string folder = folder_of(wanted);
  if (as_json)
    print_result(json{{"folder", folder}, {"bytes", total}, {"entries", entries}}.dump(2) + "\n");
  else
    print_result(fmt::format("{} files, {:.1f} MB in {}\n", all.size(), static_cast<double>(total) * 1e-6, folder));
  return 0;
}

int prune(const char* wanted, std::uint64_t max_bytes, std::int64_t max_age_s) {
  oclc_error error = OCLC_INIT(oclc_error);
  std::uint32_t files = 0;
  std::uint64_t bytes = 0;
  check(oclc_cache_prune(wanted, max_bytes, max_age_s, &files, &bytes, &error), error);
  print_result(
      fmt::format("removed {} files, {:.1f} MB, from {}\n", files, static_cast<double>(bytes) * 1e-6, folder_of(wanted)));
  return 0;
}

}  // namespace

int cache_command(int argc, char** argv, std::string&) {
  std::string what, folder;
  std::uint64_t max_mb = 512;
  std::int64_t days = -1;
  if (const char* limit = std::getenv("OCLC_CACHE_MAX_MB"); limit && *limit) max_mb = std::strtoull(limit, nullptr, 10);
  OutputOptions shown;
  CLI::App app;
  app.add_option("what", what);
  app.add_option("--folder", folder);
  app.add_option("--max-mb", max_mb);
  app.add_option("--older-than", days)->check(CLI::NonNegativeNumber);
  add_output_options(app, shown);
  if (parse(app, argc, argv, kCacheHelp)) return 0;
  const char* wanted = folder.empty() ? nullptr : folder.c_str();
  if (what == "list") return list_cache(wanted, shown.json);
  if (what == "prune") return prune(wanted, max_mb << 20, days < 0 ? -1 : days * 86400);
  if (what == "clear") return prune(wanted, 0, -1);
  usage_error(fmt::format("wanted oclc cache list, prune or clear, found '{}'", what));
}

}  // namespace oclc::tool
