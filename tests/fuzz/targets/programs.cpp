// A program of torch.export: its graph in JSON, or the whole file, where the input begins as one.
#include <nlohmann/json.hpp>
#include <random>

#include "compiler/compile.h"
#include "compiler/support/error.h"
#include "frontends/pt2/import.h"
#include "tests/fuzz/targets/input.h"
#include "tests/support/edge_numbers.h"

namespace {

using namespace oclc;
using nlohmann::json;

// All values in it, at any depth.
void collect(json& value, std::vector<json*>& all) {
  all.push_back(&value);
  if (value.is_structured())
    for (json& inner : value) collect(inner, all);
}

void change(json& program, std::mt19937_64& random) {
  std::vector<json*> all;
  collect(program, all);
  json& value = *all[random() % all.size()];
  const json& other = *all[random() % all.size()];
  switch (random() % 8) {
    case 0:
      value = json(other);
      return;
    case 1:
      if (value.is_array() && !value.empty()) value.erase(random() % value.size());
      return;
    case 2:
      if (value.is_array() && !value.empty()) value.push_back(json(value[random() % value.size()]));
      return;
    case 3:
      if (value.is_object() && !value.empty())
        value.erase(std::next(value.begin(), static_cast<long>(random() % value.size())));
      return;
    case 4:
      value = nullptr;
      return;
    case 5:
      if (value.is_string()) {
        const auto names = pt2_operators();
        value = std::string(names[random() % names.size()]);
      }
      return;
    default:
      if (value.is_number()) value = test::edge_number([&](std::uint64_t n) { return random() % n; });
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t room, unsigned seed) {
  std::mt19937_64 random(seed);
  json program = json::parse(fuzz::text_of(data, size), nullptr, false);
  if (program.is_discarded() || random() % 10 == 0) return LLVMFuzzerMutate(data, size, room);
  for (std::uint64_t left = random() % 4 + 1; left > 0; --left) change(program, random);
  return fuzz::put(program.dump(-1, ' ', false, json::error_handler_t::replace), data, size, room);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  CompileOptions options;
  options.target = find_target("cpu");
  try {
    if (text.starts_with("PK")) {
      const fuzz::MemoryFile file(text);
      compile(import_pt2(file.path()), options);
    } else {
      compile(import_pt2_graph(text), options);
    }
  } catch (const CompileError& error) {
    if (error.parts().exit_code == ExitCode::internal || !*error.what()) fuzz::found(error.what());
  }
  return 0;
}
