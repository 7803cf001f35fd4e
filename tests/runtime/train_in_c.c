/* A training loop in C: y = 2 u - v + 1 is learnt from batches of four samples. */
#include "tests/runtime/train_in_c.h"

#include <string.h>

#include "oclc/train.h"

static int failed_line = 0;

static int good(oclc_status status, int line) {
  if (status != OCLC_OK && !failed_line) failed_line = line;
  return status == OCLC_OK;
}
#define GOOD(call) good(call, __LINE__)

/* Sample i of a step: the four corners of the unit square in turn. */
static void make_sample(int number, float* x, int32_t* label) {
  x[0] = (float)(number % 2);
  x[1] = (float)(number / 2 % 2);
  *label = (int32_t)(2 * x[0] - x[1] + 1);
}

static void note(struct trained* out, const oclc_step_result* results, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (results[i].step != out->steps + 1 && !failed_line) failed_line = __LINE__;
    out->steps = results[i].step;
    out->loss = results[i].loss;
  }
}

static void loop(oclc_trainer* trainer, struct trained* out) {
  static const int64_t shape[] = {4, 2};
  oclc_step_result results[8];
  memset(results, 0, sizeof results);
  results[0].size = sizeof results[0];
  uint32_t count = 0;
  for (int step = 0; step < 300; ++step) {
    float x[4][2];
    void* labels = NULL;
    if (!GOOD(oclc_trainer_memory(trainer, "labels", OCLC_I32, shape, 1, &labels, NULL))) return;
    for (int i = 0; i < 4; ++i) make_sample(i + step, x[i], (int32_t*)labels + i);
    oclc_tensor batch = OCLC_INIT(oclc_tensor);
    batch.dtype = OCLC_F32;
    batch.rank = 2;
    batch.shape = shape;
    batch.host = x;
    batch.bytes = sizeof x;
    if (!GOOD(oclc_trainer_feed(trainer, "x", &batch))) return;
    if (!GOOD(oclc_trainer_step(trainer))) return;
    if (!GOOD(oclc_trainer_results(trainer, 0, results, 8, &count))) return;
    note(out, results, count);
  }
  do {
    if (!GOOD(oclc_trainer_results(trainer, 1, results, 8, &count))) return;
    note(out, results, count);
  } while (count > 0);
}

int train_in_c(const void* plan_bytes, size_t plan_size, struct trained* out) {
  oclc_plan* plan = NULL;
  oclc_context* context = NULL;
  oclc_session* session = NULL;
  oclc_trainer* trainer = NULL;
  uint32_t entry = 0;
  if (GOOD(oclc_plan_load_memory(plan_bytes, plan_size, &plan, NULL)) && GOOD(oclc_context_create(NULL, &context, NULL)) &&
      GOOD(oclc_session_create(plan, context, &session, NULL)) &&
      GOOD(oclc_plan_find_entry(plan, "train_step", &entry, NULL)) && GOOD(oclc_trainer_create(session, entry, &trainer)) &&
      GOOD(oclc_trainer_set(trainer, "lr", 0.2))) {
    loop(trainer, out);
    GOOD(oclc_session_read_variable(session, "w", out->w, sizeof out->w));
    GOOD(oclc_session_read_variable(session, "b", &out->b, sizeof out->b));
  }
  oclc_session_release(session); /* in any order */
  oclc_trainer_release(trainer);
  oclc_context_release(context);
  oclc_plan_release(plan);
  return failed_line;
}
