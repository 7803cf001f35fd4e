/* Training loops: a trainer runs an entry point of a session over and over, on batches that the caller feeds.
 *
 *   oclc_trainer_create(session, entry, &trainer);
 *   for each step:
 *     oclc_trainer_feed(trainer, "x", &x);              the batch is copied; or oclc_trainer_memory, to fill it in place
 *     oclc_trainer_feed(trainer, "labels", &labels);
 *     oclc_trainer_set(trainer, "lr", 0.01);            when it changes
 *     oclc_trainer_step(trainer);                       enqueues and returns
 *     oclc_trainer_results(trainer, 0, ...);            losses of the steps that have finished meanwhile
 *   oclc_trainer_results(trainer, 1, ...);              waits for the rest
 *
 * Batches are double buffered: while a step runs, the next batch is filled and, on a device with its own memory, transferred
 * from pinned memory on a queue of its own. No call waits for the step it belongs to; a call waits for an older step when the
 * trainer is two steps ahead (up to sixteen when steps take less than milliseconds). Results come back by transfers in the
 * queue, not by a round trip per step.
 *
 * A trainer keeps its session; release it before using the entry point otherwise, since it binds the entry point's inputs and
 * outputs. State may be read, saved and loaded between steps through the session: those calls come after the steps enqueued.
 * Functions return an oclc_status; oclc_trainer_message describes the last failure. Threads: as for the session.
 */
#ifndef OCLC_TRAIN_H
#define OCLC_TRAIN_H

#include "oclc/oclc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oclc_trainer oclc_trainer;

/* A failure is described by the session. */
OCLC_API oclc_status oclc_trainer_create(oclc_session* session, uint32_t entry, oclc_trainer** trainer);
/* Waits for its steps. Accepts NULL. */
OCLC_API void oclc_trainer_release(oclc_trainer* trainer);
OCLC_API const char* oclc_trainer_message(const oclc_trainer* trainer);

/* The batch of `input` for the next step and those after it until it is fed again. `batch` is host memory with shape and
 * element type (OCLC_E_BINDING if they do not fit) and is copied. A batch of another size is accepted where the plan's
 * dimensions are symbolic; all inputs that share the dimension must then follow before the next step. */
OCLC_API oclc_status oclc_trainer_feed(oclc_trainer* trainer, const char* input, const oclc_tensor* batch);

/* The same without a copy: `memory` receives `bytes` of host memory for a batch of this shape, to be filled before the next
 * step and not touched after it. */
OCLC_API oclc_status oclc_trainer_memory(oclc_trainer* trainer, const char* input, oclc_dtype dtype, const int64_t* shape,
                                         uint32_t rank, void** memory, uint64_t* bytes);

/* A hyper-parameter from the next step on: a scalar input of the entry point or a scalar variable of the plan ("lr"). */
OCLC_API oclc_status oclc_trainer_set(oclc_trainer* trainer, const char* name, double value);

/* Enqueues a step. OCLC_E_BINDING naming every input that has no value yet. */
OCLC_API oclc_status oclc_trainer_step(oclc_trainer* trainer);

/* Number that the next step will have, see oclc_step_result. */
OCLC_API uint64_t oclc_trainer_next_step(const oclc_trainer* trainer);

#define OCLC_STEP_VALUES 8

/* What a step gave: the scalar outputs of the entry point in their order, at most OCLC_STEP_VALUES of them. */
typedef struct oclc_step_result {
  size_t size;
  /* 1 for the first since the state's initial values; goes on after a checkpoint was loaded. Entry points that leave the state
   * as it is (evaluation) have a number of their own, from 1 on for each trainer. */
  uint64_t step;
  double loss; /* the output "loss", else the first scalar output; NaN if there is none */
  double values[OCLC_STEP_VALUES];
  uint32_t value_count;
} oclc_step_result;

/* Results not fetched so far, oldest first: up to `capacity` to `results` (the first element's `size` set by the caller), their
 * number to `count`. With `wait` all enqueued steps are finished first. At most 65536 are kept, the latest. */
OCLC_API oclc_status oclc_trainer_results(oclc_trainer* trainer, int wait, oclc_step_result* results, uint32_t capacity,
                                          uint32_t* count);

/* Name of scalar output `index` of the results' values; NULL from their number on. */
OCLC_API const char* oclc_trainer_value_name(const oclc_trainer* trainer, uint32_t index);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OCLC_TRAIN_H */
