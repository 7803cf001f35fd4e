#include "runtime/device/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "runtime/device/cpu_features.h"

namespace oclc::runtime {
namespace {

// Why the unit is not to be had, or "".
std::string ask() {
  if (!has_amx()) return "the processor has no AMX tiles";
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0) return "";
  return std::string("the operating system refuses AMX tiles: ") + std::strerror(errno);
#else
  return "AMX tiles are used on Linux alone";
#endif
}

}  // namespace

AmxUse amx_use() {
  const char* wish = std::getenv("OCLC_AMX");
  if (wish && std::string_view(wish) == "0") return {"", "OCLC_AMX=0 refuses AMX tiles"};
  if (wish && std::string_view(wish) == "emulate") return {" -DOCLC_AMX_EMULATED", "OCLC_AMX=emulate asks for plain C"};
  static const std::string refusal = ask();
  return {std::string(refusal.empty() ? kAmxOption : ""), refusal};
}

}  // namespace oclc::runtime
