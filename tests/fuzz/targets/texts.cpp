// Regular expressions of a plan on texts of its inputs, and texts as numbers and back.
#include <cmath>
#include <cstring>

#include "runtime/package/text/number_text.h"
#include "runtime/package/text/regex.h"
#include "tests/fuzz/targets/input.h"

namespace {

using namespace oclc;

void try_regex(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  try {
    const package::Regex regex(text.substr(0, end));
    regex.matches(text.substr(std::min(end + 1, text.size())));
  } catch (const package::RegexError& error) {
    if (!*error.what()) fuzz::found("no text");
  }
}

void try_number(plan::DType dtype, std::string_view text) {
  std::byte element[8]{}, again[8]{};
  if (!package::parse_number(dtype, text, element)) return;
  const std::string written = package::number_text(dtype, element);
  if (!package::parse_number(dtype, written, again)) fuzz::found("not read again: " + written);
  if (std::memcmp(element, again, sizeof element) != 0 && written.find("nan") == written.npos)
    fuzz::found("another number when read again: " + written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  constexpr plan::DType kTypes[] = {plan::DType::f32, plan::DType::f64, plan::DType::f16, plan::DType::bf16, plan::DType::i8,
                                    plan::DType::u8,  plan::DType::i32, plan::DType::u64, plan::DType::i64};
  if (data[0] % 2 == 0)
    try_regex(text);
  else
    try_number(kTypes[data[0] / 2 % std::size(kTypes)], text);
  return 0;
}
