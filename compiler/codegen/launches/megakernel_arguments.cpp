#include "compiler/codegen/launches/megakernel_arguments.h"

#include <fmt/format.h>

#include "compiler/codegen/text/scope.h"
#include "compiler/schedule/megakernel.h"

namespace oclc {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

const std::string& MegakernelArguments::pointer_name(int buffer, bool written) {
  Pointer& p = pointers_[buffer];
  const auto own = static_cast<int>(schedule_.buffers.size());
  if (p.name.empty()) {
    p.name = fmt::format("b{}", pointers_.size() - 1);
    order_.push_back(buffer);
    p.dtype = buffer == kProgress ? DType::i32
              : buffer == kJoined ? DType::u8
              : buffer < own      ? schedule_.buffers[static_cast<std::size_t>(buffer)].dtype
                                  : out_.kernel.packed[static_cast<std::size_t>(buffer - own)].dtype;
  }
  p.written = p.written || written;
  return p.name;
}

std::string MegakernelArguments::joined_at(int buffer) {
  const auto own = static_cast<int>(schedule_.buffers.size());
  const Buffer& b = buffer < own ? schedule_.buffers[static_cast<std::size_t>(buffer)]
                                 : out_.kernel.packed[static_cast<std::size_t>(buffer - own)];
  const auto bytes = static_cast<std::int64_t>(b.constant.bytes());
  if (buffer < own ? !joins_constants(schedule_, buffer) : bytes == 0 || bytes > kMostJoinedBytes) return {};
  constexpr std::int64_t kStep = MegakernelCode::kJoinedAlignment;
  const auto [known, is_new] = joined_.emplace(buffer, (out_.joined_bytes + kStep - 1) / kStep * kStep);
  if (is_new) {
    out_.joined.push_back(buffer);
    out_.joined_bytes = known->second + bytes;
  }
  return fmt::format("(const __global {}*)({} + {})", c_type(b.dtype), pointer_name(kJoined, false), known->second);
}

std::vector<int> MegakernelArguments::take_packed(std::vector<Buffer>& packed) {
  const auto own = static_cast<int>(schedule_.buffers.size());
  std::vector<int> numbers;
  for (Buffer& buffer : packed) {
    const int next = own + static_cast<int>(out_.kernel.packed.size());
    numbers.push_back(constants_.number_of(
        buffer, next, [&](int number) -> const Buffer& { return out_.kernel.packed[static_cast<std::size_t>(number - own)]; }));
    if (numbers.back() == next) out_.kernel.packed.push_back(std::move(buffer));
  }
  return numbers;
}

std::string MegakernelArguments::add_table(MemberTable table) {
  out_.kernel.tables.push_back(std::move(table));
  return fmt::format("members{}", out_.kernel.tables.size() - 1);
}

std::string MegakernelArguments::signature() {
  std::vector<std::string> parameters;
  for (const int buffer : order_) {
    const Pointer& p = pointers_.at(buffer);
    const bool progress = buffer == kProgress;
    parameters.push_back(fmt::format("__global {}{}* {}, const long {}_at",
                                     progress    ? "volatile "
                                     : p.written ? ""
                                                 : "const ",
                                     c_type(p.dtype), p.name, p.name));
    moves_ += fmt::format("  {0} += {0}_at;\n", p.name);
    out_.kernel.arguments.push_back({.operand = static_cast<int>(out_.buffers.size())});
    // Its counters are zeros again when the launch ends.
    out_.buffers.push_back({buffer, p.written && !progress});
  }
  for (const std::string& s : symbols_) {
    parameters.push_back(fmt::format("const long dim_{}", s));
    out_.kernel.arguments.push_back({.kind = KernelArgument::Kind::dimension, .symbol = s});
  }
  for (std::size_t i = 0; i < out_.kernel.tables.size(); ++i) {
    parameters.push_back(fmt::format("__global const long* members{}", i));
    out_.kernel.arguments.push_back({.kind = KernelArgument::Kind::table, .operand = static_cast<int>(i)});
  }
  return fmt::format("{}, const int first, const int last", fmt::join(parameters, ", "));
}

std::string MegakernelArguments::where_wanted(const std::set<std::size_t>& parts, const std::string& text) const {
  std::vector<std::string> wanted;
  for (const std::size_t part : parts) wanted.push_back(fmt::format("{}_HAS({})", name_, part));
  return fmt::format("#if {}\n{}#endif\n", fmt::join(wanted, " || "), text);
}

std::string MegakernelArguments::macros_of_parts() const {
  return fmt::format(
      "#ifdef {0}_LAST\n#define {0}_HAS(part) ({0}_FIRST <= part && part < {0}_LAST)\n"
      "#else\n#define {0}_HAS(part) 1\n#endif\n",
      name_);
}

}  // namespace oclc
