// From exceptions to status codes.
#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "oclc/oclc.h"
#include "runtime/device/context.h"
#include "runtime/failure.h"
#include "runtime/package/error.h"
#include "runtime/package/text/unicode.h"
#include "runtime/session/session.h"

struct oclc_plan {
  std::shared_ptr<const oclc::package::Package> package;
  std::string options;
  std::vector<bool> open_symbols;
  // Of all bindings, made when they are asked for: whole shape, then each dimension.
  mutable std::mutex mutex;
  mutable std::vector<std::vector<std::string>> texts;
  std::vector<std::uint32_t> first_text;  // of each entry: its inputs, then its outputs; last: the variables
};
struct oclc_context {
  std::shared_ptr<oclc::runtime::Context> context;
};
struct oclc_session {
  std::shared_ptr<oclc::runtime::Session> session;  // trainers keep it too
};

namespace oclc::runtime {

struct Description {
  oclc_status status;
  cl_int cl_code;
  std::string message;
};

inline Description describe(const package::Error& error) {
  return {error.kind() == package::ErrorKind::io ? OCLC_E_IO : OCLC_E_PLAN, 0, error.what()};
}

// Runs `action`; on failure calls `failed(Description)` and returns the status.
template <class Action, class Failed>
oclc_status catching(Action action, Failed failed) noexcept {
  Description d{};
  try {
    try {
      action();
      return OCLC_OK;
    } catch (const Failure& error) {
      d = {error.status(), error.cl_code(), error.what()};
    } catch (const package::Error& error) {
      d = describe(error);
    } catch (const std::bad_alloc&) {
      d = {OCLC_E_MEMORY, 0, "the host is out of memory"};
    } catch (const std::length_error& error) {
      d = {OCLC_E_MEMORY, 0, error.what()};
    } catch (const std::exception& error) {
      d = {OCLC_E_INTERNAL, 0, std::string("internal error: ") + error.what()};
    }
    d.message = package::shown(d.message, true);  // it quotes names
    failed(d);
    return d.status;
  } catch (...) {
    return OCLC_E_MEMORY;  // describing the failure failed
  }
}

inline void fill(oclc_error* error, const Description& d) {
  if (!error) return;
  oclc_error text{};
  text.size = error->size;
  text.status = d.status;
  text.cl_code = d.cl_code;
  std::strncpy(text.message, d.message.c_str(), sizeof text.message - 1);
  // The struct of an older header has a shorter message.
  const std::size_t size = std::min(error->size, sizeof text);
  std::memcpy(error, &text, size);
  if (size > offsetof(oclc_error, message)) reinterpret_cast<char*>(error)[size - 1] = '\0';
}

template <class Action>
oclc_status guarded(oclc_error* error, Action action) noexcept {
  return catching(action, [&](const Description& d) { fill(error, d); });
}

template <class Action>
oclc_status guarded(oclc_session* session, Action action) noexcept {
  if (!session) return OCLC_E_ARGUMENT;
  return catching([&] { action(*session->session); },
                  [&](const Description& d) {
                    session->session->cl_code() = d.cl_code;
                    session->session->message() = d.message;
                  });
}

// Copies `value` to `to`, as much as the caller's struct holds.
template <class T>
oclc_status give(T* to, T value) {
  if (!to || to->size < sizeof to->size) return OCLC_E_ARGUMENT;
  value.size = to->size;
  std::memcpy(static_cast<void*>(to), &value, std::min(to->size, sizeof value));
  return OCLC_OK;
}

// The caller's struct with members that it does not know zeroed.
template <class T>
T take(const T* from, const char* what) {
  T value = OCLC_INIT(T);
  if (from->size < sizeof from->size) throw Failure(OCLC_E_ARGUMENT, std::string(what) + ": its size is not set");
  std::memcpy(static_cast<void*>(&value), from, std::min(from->size, sizeof value));
  value.size = sizeof value;
  return value;
}

inline void need(const void* pointer, const char* what) {
  if (!pointer) throw Failure(OCLC_E_ARGUMENT, std::string(what) + " is NULL");
}

}  // namespace oclc::runtime
