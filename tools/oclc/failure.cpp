#include "tools/oclc/failure.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <new>

#include "oclc/oclc.hpp"
#include "runtime/package/error.h"
#include "tools/oclc/console.h"

namespace oclc::tool {
namespace {

ExitCode code_of(oclc_status status) {
  switch (status) {
    case OCLC_E_INTERNAL:
      return ExitCode::internal;
    case OCLC_E_ARGUMENT:
      return ExitCode::usage;
    case OCLC_E_PLAN:
    case OCLC_E_BINDING:
      return ExitCode::bad_model;
    case OCLC_E_UNSUPPORTED:
      return ExitCode::unsupported;
    case OCLC_E_IO:
      return ExitCode::io;
    default:
      return ExitCode::device;
  }
}

ExitCode code_of(package::ErrorKind kind) { return kind == package::ErrorKind::io ? ExitCode::io : ExitCode::bad_model; }

int fail(ExitCode code, const std::string& message) {
  print_error(message);
  return static_cast<int>(code);
}

int internal(const std::string& message) {
  return fail(ExitCode::internal,
              message + "\noclc: this is a bug of oclc; please report it with this text, the model and the command line");
}

}  // namespace

void usage_error(const std::string& message) {
  throw CompileError({.stage = "usage", .wanted = message + "; see oclc --help", .exit_code = ExitCode::usage});
}

void io_error(const std::string& path, const std::string& what, int error_number) {
  throw package::Error(package::ErrorKind::io, fmt::format("{}: {}: {}", path, what, std::strerror(error_number)));
}

int guarded(const std::string& file, const std::function<int()>& command) {
  try {
    return command();
  } catch (const CompileError& error) {
    const ExitCode code = error.parts().exit_code;
    return fail(
        code, (code == ExitCode::usage || file.empty() || error.parts().stage == "operator" ? "" : file + ": ") + error.what());
  } catch (const package::Error& error) {
    return fail(code_of(error.kind()), error.what());
  } catch (const rt::Error& error) {
    const ExitCode code = code_of(error.status());
    return code == ExitCode::internal ? internal(error.what()) : fail(code, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(ExitCode::io, fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::device, (file.empty() ? "" : file + ": ") + "out of memory");
  } catch (const std::exception& error) {
    return internal(error.what());
  }
}

}  // namespace oclc::tool
