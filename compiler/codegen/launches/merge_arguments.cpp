#include "compiler/codegen/launches/merge_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/support/error.h"

namespace oclc {
namespace {

constexpr std::string_view kKernel = "__kernel void ", kSeparator = ", ", kGlobal = "__global ";

std::vector<std::string> parameters_in(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(kSeparator), list.size());
    out.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + kSeparator.size(), list.size()));
  }
  return out;
}

}  // namespace

std::vector<bool> share_memory(GeneratedKernel& g, const std::vector<MemoryObject>& objects) {
  OCLC_CHECK(objects.size() == g.arguments.size(), "each argument has its memory");
  const auto is_operand = [&](std::size_t i) { return g.arguments[i].kind == KernelArgument::Kind::operand; };
  const auto name_of = [](MemoryObject object) { return object == MemoryObject::arena ? "arena" : "constants"; };
  std::array<int, 3> uses{};
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (is_operand(i)) ++uses.at(static_cast<std::size_t>(objects[i]));
  }
  std::vector<bool> shared(objects.size(), false);
  // A source may hold the kernel once for each of its branches.
  for (std::size_t at = g.source.find(kKernel); at != std::string::npos; at = g.source.find(kKernel, at)) {
    const std::size_t begin = g.source.find('(', at) + 1, end = g.source.find(") {\n", begin);
    OCLC_CHECK(end != std::string::npos, "a kernel has parameters and a body");
    const std::vector<std::string> old = parameters_in(std::string_view(g.source).substr(begin, end - begin));
    std::vector<std::string> parameters;
    std::string pointers;
    std::array<bool, 3> passed{};
    std::size_t next = 0;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      OCLC_CHECK(next < old.size(), "the kernel has its arguments");
      const std::string& pointer = old[next++];
      const auto object = static_cast<std::size_t>(objects[i]);
      if (!is_operand(i) || objects[i] == MemoryObject::own || uses.at(object) < 2) {
        parameters.push_back(pointer);
      } else {
        const std::size_t star = pointer.find("* ");
        OCLC_CHECK(pointer.starts_with(kGlobal) && star != std::string::npos, "an operand is a pointer");
        pointers += fmt::format("  {} = ({}){};\n", pointer, pointer.substr(0, star + 1), name_of(objects[i]));
        shared[i] = passed.at(object);
        if (!shared[i])
          parameters.push_back(fmt::format("{}{}uchar* {}", kGlobal, objects[i] == MemoryObject::constants ? "const " : "",
                                           name_of(objects[i])));
        passed.at(object) = true;
      }
      if (is_operand(i)) parameters.push_back(old.at(next++));
    }
    parameters.insert(parameters.end(), old.begin() + static_cast<std::ptrdiff_t>(next), old.end());
    const std::string list = fmt::format("{}", fmt::join(parameters, kSeparator));
    g.source.replace(begin, end - begin, list);
    at = begin + list.size();
    g.source.insert(at + 4, pointers);
  }
  return shared;
}

}  // namespace oclc
