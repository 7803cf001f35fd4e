#include "runtime/api/api.h"

using namespace oclc::runtime;

extern "C" {

oclc_status oclc_context_create(const oclc_context_options* options, oclc_context** context, oclc_error* error) {
  return guarded(error, [&] {
    need(context, "context");
    const oclc_context_options given = options ? take(options, "options") : OCLC_INIT(oclc_context_options);
    *context = new oclc_context{std::make_shared<Context>(given, given.beside ? given.beside->context.get() : nullptr)};
  });
}

void oclc_context_release(oclc_context* context) { delete context; }

struct _cl_context* oclc_context_cl_context(const oclc_context* context) {
  return context ? context->context->cl() : nullptr;
}

struct _cl_command_queue* oclc_context_cl_queue(const oclc_context* context) {
  return context ? context->context->lent_queue() : nullptr;
}

oclc_status oclc_context_get_device(const oclc_context* context, oclc_device_info* info) {
  if (!context) return OCLC_E_ARGUMENT;
  return give(info, context->context->facts());
}

oclc_status oclc_session_create(oclc_plan* plan, oclc_context* context, oclc_session** session, oclc_error* error) {
  return guarded(error, [&] {
    need(plan, "plan");
    need(context, "context");
    need(session, "session");
    *session = new oclc_session{std::make_shared<Session>(context->context, plan->package)};
  });
}

void oclc_session_release(oclc_session* session) { delete session; }

const char* oclc_session_message(const oclc_session* session) {
  return session ? session->session->message().c_str() : "the session is NULL";
}

int32_t oclc_session_cl_code(const oclc_session* session) { return session ? session->session->cl_code() : 0; }

oclc_status oclc_session_bind_dim(oclc_session* session, const char* symbol, int64_t value) {
  return guarded(session, [&](Session& s) {
    need(symbol, "the name of the dimension");
    s.bind_dim(symbol, value);
  });
}

oclc_status oclc_session_set_input(oclc_session* session, uint32_t entry, const char* name, const oclc_tensor* tensor) {
  return guarded(session, [&](Session& s) {
    const oclc_tensor given = tensor ? take(tensor, "tensor") : oclc_tensor{};
    s.set_tensor(entry, OCLC_INPUT, name, tensor ? &given : nullptr);
  });
}

oclc_status oclc_session_set_output(oclc_session* session, uint32_t entry, const char* name, const oclc_tensor* tensor) {
  return guarded(session, [&](Session& s) {
    const oclc_tensor given = tensor ? take(tensor, "tensor") : oclc_tensor{};
    s.set_tensor(entry, OCLC_OUTPUT, name, tensor ? &given : nullptr);
  });
}

oclc_status oclc_session_get_shape(oclc_session* session, uint32_t entry, oclc_direction direction, const char* name,
                                   int64_t* shape, uint32_t capacity, uint32_t* rank, uint64_t* bytes) {
  return guarded(session, [&](Session& s) {
    std::uint64_t size = 0;
    const auto result = s.shape(entry, direction, name, &size);
    if (shape) std::copy_n(result.begin(), std::min<std::size_t>(result.size(), capacity), shape);
    if (rank) *rank = static_cast<std::uint32_t>(result.size());
    if (bytes) *bytes = size;
  });
}

oclc_status oclc_session_prepare(oclc_session* session, uint32_t entry) {
  return guarded(session, [&](Session& s) { s.prepare(entry); });
}

oclc_status oclc_session_run(oclc_session* session, uint32_t entry) {
  return guarded(session, [&](Session& s) { s.run(entry); });
}

oclc_status oclc_session_run_steps(oclc_session* session, uint32_t entry, uint64_t steps, const oclc_series* series,
                                   uint32_t count) {
  return guarded(session, [&](Session& s) {
    if (count > 0) need(series, "series");
    std::vector<oclc_series> given;
    for (std::uint32_t i = 0; i < count; ++i) {
      const char* at = reinterpret_cast<const char*>(series) + i * series->size;
      given.push_back(take(reinterpret_cast<const oclc_series*>(at), "series"));
    }
    s.run_steps(entry, steps, given);
  });
}

oclc_status oclc_session_read_output(oclc_session* session, uint32_t entry, const char* name, void* host, uint64_t bytes) {
  return guarded(session, [&](Session& s) { s.read_output(entry, name, host, bytes); });
}

oclc_status oclc_session_map_output(oclc_session* session, uint32_t entry, const char* name, const void** host,
                                    uint64_t* bytes) {
  return guarded(session, [&](Session& s) {
    need(host, "host");
    const auto mapped = s.map_output(entry, name);
    *host = mapped.data();
    if (bytes) *bytes = mapped.size();
  });
}

oclc_status oclc_session_unmap_output(oclc_session* session, uint32_t entry, const char* name) {
  return guarded(session, [&](Session& s) { s.unmap_output(entry, name); });
}

oclc_status oclc_session_enqueue(oclc_session* session, uint32_t entry, uint32_t wait_count, struct _cl_event* const* wait,
                                 struct _cl_event** event) {
  return guarded(session, [&](Session& s) { s.enqueue(entry, wait_count, wait, event); });
}

oclc_status oclc_session_enqueue_unflushed(oclc_session* session, uint32_t entry) {
  return guarded(session, [&](Session& s) { s.enqueue(entry, 0, nullptr, nullptr, false); });
}

oclc_status oclc_event_wait(struct _cl_event* event, oclc_error* error) {
  return guarded(error, [&] {
    need(event, "event");
    check_cl(oclc::runtime::clWaitForEvents(1, &event), "waiting for a run");
  });
}

void oclc_event_release(struct _cl_event* event) {
  if (event) oclc::runtime::clReleaseEvent(event);
}

void oclc_session_cancel(oclc_session* session) {
  if (session) session->session->cancel();
}

oclc_status oclc_session_set_time_limit(oclc_session* session, uint64_t limit_ns) {
  return guarded(session, [&](Session& s) { s.set_time_limit(limit_ns); });
}

oclc_status oclc_session_enable_nan_check(oclc_session* session, int enabled) {
  return guarded(session, [&](Session& s) { s.enable_nan_check(enabled != 0); });
}

oclc_status oclc_session_read_variable(oclc_session* session, const char* name, void* host, uint64_t bytes) {
  return guarded(session, [&](Session& s) { s.read_variable(name, host, bytes); });
}

oclc_status oclc_session_write_variable(oclc_session* session, const char* name, const void* host, uint64_t bytes) {
  return guarded(session, [&](Session& s) { s.write_variable(name, host, bytes); });
}

oclc_status oclc_session_reset_state(oclc_session* session) {
  return guarded(session, [&](Session& s) { s.reset_state(); });
}

oclc_status oclc_session_save_state(oclc_session* session, const char* path) {
  return guarded(session, [&](Session& s) {
    need(path, "path");
    s.save_state(path);
  });
}

oclc_status oclc_session_load_state(oclc_session* session, const char* path) {
  return guarded(session, [&](Session& s) {
    need(path, "path");
    s.load_state(path);
  });
}

oclc_status oclc_session_get_stats(const oclc_session* session, oclc_stats* stats) {
  if (!session) return OCLC_E_ARGUMENT;
  return give(stats, session->session->stats());
}

oclc_status oclc_session_enable_profile(oclc_session* session, int enabled) {
  return guarded(session, [&](Session& s) { s.enable_profile(enabled != 0); });
}

oclc_status oclc_session_get_launches(oclc_session* session, oclc_launch_info* launches, uint32_t capacity, uint32_t* count) {
  return guarded(session, [&](Session& s) {
    if (launches && capacity > 0 && launches->size < sizeof launches->size)
      throw Failure(OCLC_E_ARGUMENT, "launches: the first size is not set");
    const std::uint32_t total = s.launches(launches, capacity);
    if (count) *count = total;
  });
}

oclc_status oclc_session_get_builds(oclc_session* session, oclc_build_info* builds, uint32_t capacity, uint32_t* count) {
  return guarded(session, [&](Session& s) {
    if (builds && capacity > 0 && builds->size < sizeof builds->size)
      throw Failure(OCLC_E_ARGUMENT, "builds: the first size is not set");
    const std::uint32_t total = s.builds(builds, capacity);
    if (count) *count = total;
  });
}

}  // extern "C"
