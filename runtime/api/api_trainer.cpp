#include "runtime/api/api.h"
#include "runtime/session/trainer.h"

using namespace oclc::runtime;

struct oclc_trainer {
  std::unique_ptr<Trainer> trainer;
};

namespace {

template <class Action>
oclc_status guarded(oclc_trainer* trainer, Action action) noexcept {
  if (!trainer) return OCLC_E_ARGUMENT;
  return catching([&] { action(*trainer->trainer); }, [&](const Description& d) { trainer->trainer->message() = d.message; });
}

}  // namespace

extern "C" {

oclc_status oclc_trainer_create(oclc_session* session, uint32_t entry, oclc_trainer** trainer) {
  return oclc::runtime::guarded(session, [&](Session&) {
    need(trainer, "trainer");
    *trainer = new oclc_trainer{std::make_unique<Trainer>(session->session, entry)};
  });
}

void oclc_trainer_release(oclc_trainer* trainer) { delete trainer; }

const char* oclc_trainer_message(const oclc_trainer* trainer) {
  return trainer ? trainer->trainer->message().c_str() : "the trainer is NULL";
}

oclc_status oclc_trainer_feed(oclc_trainer* trainer, const char* input, const oclc_tensor* batch) {
  return guarded(trainer, [&](Trainer& t) {
    need(batch, "batch");
    t.feed(input, take(batch, "batch"));
  });
}

oclc_status oclc_trainer_memory(oclc_trainer* trainer, const char* input, oclc_dtype dtype, const int64_t* shape, uint32_t rank,
                                void** memory, uint64_t* bytes) {
  return guarded(trainer, [&](Trainer& t) {
    need(memory, "memory");
    if (rank > 0) need(shape, "shape");
    std::uint64_t size = 0;
    *memory = t.memory(input, dtype, {shape, rank}, &size);
    if (bytes) *bytes = size;
  });
}

oclc_status oclc_trainer_set(oclc_trainer* trainer, const char* name, double value) {
  return guarded(trainer, [&](Trainer& t) { t.set(name, value); });
}

oclc_status oclc_trainer_step(oclc_trainer* trainer) {
  return guarded(trainer, [&](Trainer& t) { t.step(); });
}

oclc_status oclc_trainer_results(oclc_trainer* trainer, int wait, oclc_step_result* results, uint32_t capacity,
                                 uint32_t* count) {
  return guarded(trainer, [&](Trainer& t) {
    if (results && capacity > 0 && results->size < sizeof results->size)
      throw Failure(OCLC_E_ARGUMENT, "results: the first size is not set");
    const std::uint32_t given = t.results(wait != 0, results, capacity);
    if (count) *count = given;
  });
}

uint64_t oclc_trainer_next_step(const oclc_trainer* trainer) { return trainer ? trainer->trainer->next() : 0; }

const char* oclc_trainer_value_name(const oclc_trainer* trainer, uint32_t index) {
  return trainer ? trainer->trainer->value_name(index) : nullptr;
}

}  // extern "C"
