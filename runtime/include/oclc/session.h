/* Sessions: inputs, outputs, runs and state of a plan on a context; for oclc.h. */
#ifndef OCLC_SESSION_H
#define OCLC_SESSION_H

#include "oclc/plan.h"
#include "oclc/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Builds the plan's programs for the context's device (or takes them from the cache) and uploads the constants, unless another
 * session of the same plan and context has done so. State starts with the plan's initial values. */
OCLC_API oclc_status oclc_session_create(oclc_plan* plan, oclc_context* context, oclc_session** session, oclc_error* error);
/* Waits for the session's commands. */
OCLC_API void oclc_session_release(oclc_session* session);

/* The last failure of a call on this session; "" if none. Valid until the next call. */
OCLC_API const char* oclc_session_message(const oclc_session* session);
OCLC_API int32_t oclc_session_cl_code(const oclc_session* session);

/* Gives a symbol a value for all entry points; a negative value takes it back. Needed only where no input's shape gives it. */
OCLC_API oclc_status oclc_session_bind_dim(oclc_session* session, const char* symbol, int64_t value);

/* What an input or output is made of. Either `host` or `buffer` is set; both may be NULL where `shape` has no elements.
 *
 * Strings (OCLC_STRING): `host` is an array of `const char*`, one an element, and `bytes` its size; `buffer` is NULL. Of an
 * input the array and its texts are copied when it is set, by oclc_session_set_input. Of an output a run fills the array with
 * pointers to texts of the session, which stay valid until the next run of any entry point of the session, or its release; read
 * them on the thread that uses the session. */
typedef struct oclc_tensor {
  size_t size;
  oclc_dtype dtype;
  uint32_t rank;
  const int64_t* shape;   /* copied; outputs: may be NULL, then only the size is checked */
  void* host;             /* read (inputs) or written (outputs) while a run executes; not copied when set */
  struct _cl_mem* buffer; /* retained; of the session's cl_context */
  uint64_t offset_bytes;  /* into `buffer`, a multiple of the element size; copied each run if not of 16 */
  uint64_t bytes;         /* available at `host`; with `buffer` 0 means up to its end */
} oclc_tensor;

/* Binds an input or output until it is bound again; a NULL tensor unbinds. Element type, rank and size are checked here,
 * dimensions when running. An output may overlap no other input or output, unless both are host memory and one is an input. */
OCLC_API oclc_status oclc_session_set_input(oclc_session* session, uint32_t entry, const char* name, const oclc_tensor* tensor);
OCLC_API oclc_status oclc_session_set_output(oclc_session* session, uint32_t entry, const char* name,
                                             const oclc_tensor* tensor);

/* Shape of an input or output with the present symbols. `shape` receives up to `capacity` dimensions, `rank` their number,
 * `bytes` the size (each may be NULL). Symbols come from bound dims and from the inputs set so far. A dimension that the model
 * computes (how many elements are not zero) is at its largest before a run and as found after it; `bytes` is always the largest
 * size, which the memory of the output must have. Where no largest size is known (oclc_binding_info.open) a dimension is 0
 * before the first run. */
OCLC_API oclc_status oclc_session_get_shape(oclc_session* session, uint32_t entry, oclc_direction direction, const char* name,
                                            int64_t* shape, uint32_t capacity, uint32_t* rank, uint64_t* bytes);

/* Does now what the first run with these shapes would do: checks shapes, allocates, sets kernel arguments. */
OCLC_API oclc_status oclc_session_prepare(oclc_session* session, uint32_t entry);

/* Runs an entry point and waits for it. Outputs that are not bound are computed and kept until the next run. */
OCLC_API oclc_status oclc_session_run(oclc_session* session, uint32_t entry);

/* Values of an input or output in each of many runs: host memory of shape [steps, shape of the input or output]. */
typedef struct oclc_series {
  size_t size;
  oclc_direction direction;
  const char* name;
  oclc_dtype dtype;
  uint32_t rank;        /* of `shape`: one more than the input's or output's */
  const int64_t* shape; /* its first dimension is at least the number of steps; outputs: may be NULL */
  void* host;           /* read (inputs) or written (outputs) */
  uint64_t bytes;       /* available at `host` */
} oclc_series;

/* Runs an entry point `steps` times, one run behind another, and waits for the last. The host neither feeds nor waits between
 * them: state goes from run to run on the device, a series' values lie there for up to 64 MiB of steps at once. Inputs that
 * have no series are as oclc_session_set_input bound them, and are read once; outputs that have none are not read, but those
 * bound by oclc_session_set_output, which get the last run's values. `series` is an array whose first element's `size` is set
 * by the caller. Afterwards everything is bound as before. OCLC_E_UNSUPPORTED for a series of strings, or of an output whose
 * shape each run finds. After a failure the state is that of some step. */
OCLC_API oclc_status oclc_session_run_steps(oclc_session* session, uint32_t entry, uint64_t steps, const oclc_series* series,
                                            uint32_t count);

/* Copies an output of the last run of the entry point to `host`, which has room for `bytes`: at least what
 * oclc_session_get_shape then says. Waits for the run. Of strings: see oclc_tensor. An error once inputs, outputs or dims were
 * bound anew. */
OCLC_API oclc_status oclc_session_read_output(oclc_session* session, uint32_t entry, const char* name, void* host,
                                              uint64_t bytes);

/* Gives an output of the last run of the entry point, which is not bound, for reading where it lies: without a copy on devices
 * that use the host's memory (CPUs), by a transfer on others. `host` receives its beginning (NULL if it has no elements),
 * `bytes` (may be NULL) its size; its shape is what oclc_session_get_shape then says. Waits for the run. The memory may be
 * read, by any thread, until oclc_session_unmap_output or the session's release; until then the entry point is not prepared or
 * run (OCLC_E_ARGUMENT), others are. OCLC_E_UNSUPPORTED for strings; OCLC_E_ARGUMENT for an output that is bound, is mapped
 * already, or was not computed with what is bound now. */
OCLC_API oclc_status oclc_session_map_output(oclc_session* session, uint32_t entry, const char* name, const void** host,
                                             uint64_t* bytes);
/* OCLC_E_ARGUMENT for an output that is not mapped. */
OCLC_API oclc_status oclc_session_unmap_output(oclc_session* session, uint32_t entry, const char* name);

/* Enqueues an entry point and returns. Its commands start after the `wait_count` events of `wait`; `event` (may be NULL)
 * receives an event of the caller (to be released) that completes after them. Host memory of inputs and outputs stays in use
 * until then. The call itself waits for the device where the plan's host computes between launches: for dimensions that the
 * model computes, for operators on strings, and for outputs of strings, which are complete when it returns. */
OCLC_API oclc_status oclc_session_enqueue(oclc_session* session, uint32_t entry, uint32_t wait_count,
                                          struct _cl_event* const* wait, struct _cl_event** event);
/* The same without events, and without a clFlush: the driver may hold the commands back until the caller flushes the queue or
 * waits for what it does. For those who enqueue many small plans one after another. */
OCLC_API oclc_status oclc_session_enqueue_unflushed(oclc_session* session, uint32_t entry);
/* Waits for an event of oclc_session_enqueue, for programs without libOpenCL's own functions. OCLC_E_DEVICE if what led to it
 * failed. */
OCLC_API oclc_status oclc_event_wait(struct _cl_event* event, oclc_error* error);
/* Gives it back; NULL is accepted. */
OCLC_API void oclc_event_release(struct _cl_event* event);

/* From any thread, while the session lives: the run that is being enqueued on another one fails with OCLC_E_CANCELLED before
 * its next launch or trip of a loop. Launches that are enqueued are waited for. Without such a run nothing happens. */
OCLC_API void oclc_session_cancel(oclc_session* session);

/* How long a later run may take, in nanoseconds from the call that runs it (oclc_session_run, oclc_session_run_steps: all steps
 * together, oclc_session_enqueue: what it waits for counts); 0, as at first: as long as it likes. A run that takes longer is
 * OCLC_E_DEADLINE: it is stopped before its next launch, trip of a loop or step, or found late when its last launch has ended.
 * OpenCL ends no launch that has begun, and no compilation by a driver: the error comes when that one is done, and nothing of
 * the run is under way then. Outputs and state are what the launches so far left; reset or load the state. With a limit the
 * host keeps at most two launches in the queue, which costs microseconds a launch, and so oclc_session_cancel finds every run
 * before its last launches; recorded runs (command buffers) are not used. oclc_session_enqueue returns when the last launches
 * are in the queue and looks no more. Trainers' steps have no limit. */
OCLC_API oclc_status oclc_session_set_time_limit(oclc_session* session, uint64_t limit_ns);

/* Runs then go launch by launch: before each run its inputs and the state, after each launch what it wrote is read back. The
 * first NaN fails the run with OCLC_E_NAN; the message names the nodes whose kernel made it. Far slower than a plain run; the
 * state may be partly updated when one fails. */
OCLC_API oclc_status oclc_session_enable_nan_check(oclc_session* session, int enabled);

/* Reads or writes a variable's bytes (all of them) and waits. */
OCLC_API oclc_status oclc_session_read_variable(oclc_session* session, const char* name, void* host, uint64_t bytes);
OCLC_API oclc_status oclc_session_write_variable(oclc_session* session, const char* name, const void* host, uint64_t bytes);
/* Gives all state its initial value again. */
OCLC_API oclc_status oclc_session_reset_state(oclc_session* session);
/* Writes all variables to a checkpoint file. At every moment, also when the process is killed, `path` is the old file or the
 * whole new one. */
OCLC_API oclc_status oclc_session_save_state(oclc_session* session, const char* path);
/* Reads them back: OCLC_E_PLAN if the file is no checkpoint, damaged, or its variables are not those of the session's plan (the
 * message names the first difference); OCLC_E_IO if it cannot be read. The state is then unchanged: the whole file is checked
 * before the first byte goes to the device. */
OCLC_API oclc_status oclc_session_load_state(oclc_session* session, const char* path);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OCLC_SESSION_H */
