// The C functions of oclc/compiler.h over compile.h. Exceptions end here.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/support/error.h"
#include "compiler/training/training.h"
#include "frontends/cpp/typed/device_target.h"
#include "frontends/onnx/import.h"
#include "oclc/compiler.h"
#include "oclc/oclc.hpp"
#include "runtime/package/error.h"
#include "runtime/package/writer.h"

namespace oclc {
namespace {

std::string text_or(const char* text, const char* otherwise) { return text ? text : otherwise; }

oclc_status status_of(ExitCode code) {
  switch (code) {
    case ExitCode::usage:
      return OCLC_E_ARGUMENT;
    case ExitCode::bad_model:
      return OCLC_E_PLAN;
    case ExitCode::unsupported:
      return OCLC_E_UNSUPPORTED;
    case ExitCode::device:
      return OCLC_E_DEVICE;
    case ExitCode::io:
      return OCLC_E_IO;
    default:
      return OCLC_E_INTERNAL;
  }
}

oclc_status failed(oclc_error* error, oclc_status status, const std::string& message) {
  if (!error || error->size < offsetof(oclc_error, message) + 1) return status;
  error->status = status;
  error->cl_code = 0;
  const std::size_t room = std::min(error->size, sizeof *error) - offsetof(oclc_error, message) - 1;
  const std::size_t bytes = std::min(room, message.size());
  std::memcpy(error->message, message.data(), bytes);
  error->message[bytes] = 0;
  return status;
}

// What is given of the caller's struct, which may be of an older version of the header.
oclc_compile_options taken_options(const oclc_compile_options* options) {
  oclc_compile_options o = OCLC_INIT(oclc_compile_options);
  if (!options) return o;
  if (options->size < sizeof options->size)
    throw CompileError({.stage = "usage",
                        .wanted = "oclc_compile_options with its size set, as OCLC_INIT does",
                        .found = std::to_string(options->size),
                        .exit_code = ExitCode::usage});
  std::memcpy(&o, options, std::min(options->size, sizeof o));
  return o;
}

Target target_for(const oclc_compile_options& o) {
  if (o.target && o.device)
    throw CompileError({.stage = "usage", .wanted = "a target or a device", .found = "both", .exit_code = ExitCode::usage});
  if (o.target) return find_target(o.target);
  std::uint32_t count = 0;
  if (!o.device && (oclc_device_count(&count, nullptr) != OCLC_OK || count == 0)) return find_target("cpu");
  std::uint32_t index = 0;
  rt::detail::checked([&](oclc_error* error) { return oclc_device_select(text_or(o.device, "").c_str(), &index, error); });
  oclc_device_info info = OCLC_INIT(oclc_device_info);
  rt::detail::checked([&](oclc_error* error) { return oclc_device_get(index, &info, error); });
  return target_of(info);
}

std::vector<std::string> list_of(const std::string& text) {
  std::vector<std::string> list;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    list.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

oclc_plan* compiled(const oclc_compile_options& o, const std::function<std::shared_ptr<Module>(const ImportOptions&)>& read) {
  CompileOptions options;
  options.target = target_for(o);
  options.precision = text_or(o.precision, "fp32");
  options.disabled = list_of(text_or(o.disable, ""));
  if (o.progress) options.progress = [&o](std::string_view stage) { o.progress(o.user, std::string(stage).c_str()); };
  ImportOptions reading;
  for (std::uint32_t i = 0; i < o.dim_count; ++i) reading.dims[text_or(o.dims[i].name, "")] = o.dims[i].value;
  if (o.external_data_dir) reading.external_data_dir = o.external_data_dir;
  if (o.warning) reading.warn = [&o](const std::string& text) { o.warning(o.user, text.c_str()); };
  reading.training = o.loss != nullptr;
  if (options.progress) options.progress("graph");
  const std::shared_ptr<Module> module = read(reading);
  if (o.loss) {
    TrainingOptions training;
    training.loss = parse_loss(o.loss);
    training.optimizer = parse_optimizer(text_or(o.optimizer, "sgd"));
    training.prediction = text_or(o.prediction, "");
    options.limits = build_training(*module, training);
  }
  const Compiled result = compile(module, options);
  const auto metadata = std::as_bytes(std::span(result.plan.metadata));
  if (o.output) package::write_package(o.output, metadata, result.plan.constants, package::MetadataAs::shorter);
  const std::vector<std::byte> package = package::package_to_memory(metadata, result.plan.constants);
  oclc_plan* plan = nullptr;
  rt::detail::checked([&](oclc_error* error) { return oclc_plan_load_memory(package.data(), package.size(), &plan, error); });
  return plan;
}

oclc_status guarded(oclc_plan** plan, oclc_error* error, const std::function<oclc_plan*()>& action) noexcept {
  if (!plan) return failed(error, OCLC_E_ARGUMENT, "plan: wanted a pointer, found NULL");
  try {
    *plan = action();
    return OCLC_OK;
  } catch (const CompileError& e) {
    return failed(error, status_of(e.parts().exit_code), e.what());
  } catch (const package::Error& e) {
    return failed(error, e.kind() == package::ErrorKind::io ? OCLC_E_IO : OCLC_E_PLAN, e.what());
  } catch (const rt::Error& e) {
    return failed(error, e.status(), e.what());
  } catch (const std::bad_alloc&) {
    return failed(error, OCLC_E_MEMORY, "the host is out of memory");
  } catch (const std::exception& e) {
    return failed(error, OCLC_E_INTERNAL, e.what());
  }
}

}  // namespace
}  // namespace oclc

extern "C" oclc_status oclc_compile(const void* bytes, std::size_t byte_count, const oclc_compile_options* options,
                                    oclc_plan** plan, oclc_error* error) {
  if (!bytes) return oclc::failed(error, OCLC_E_ARGUMENT, "bytes: wanted a pointer, found NULL");
  return oclc::guarded(plan, error, [&] {
    return oclc::compiled(oclc::taken_options(options), [&](const oclc::ImportOptions& reading) {
      return std::shared_ptr<oclc::Module>(
          oclc::import_onnx_bytes({static_cast<const std::byte*>(bytes), byte_count}, {}, reading));
    });
  });
}

extern "C" oclc_status oclc_compile_file(const char* path, const oclc_compile_options* options, oclc_plan** plan,
                                         oclc_error* error) {
  if (!path) return oclc::failed(error, OCLC_E_ARGUMENT, "path: wanted a pointer, found NULL");
  return oclc::guarded(plan, error, [&] {
    return oclc::compiled(oclc::taken_options(options), [&](const oclc::ImportOptions& reading) {
      return std::shared_ptr<oclc::Module>(oclc::import_onnx(path, reading));
    });
  });
}
