/* What a session took: memory, builds of programs, launches; for oclc.h. */
#ifndef OCLC_PROFILE_H
#define OCLC_PROFILE_H

#include "oclc/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oclc_stats {
  size_t size;
  uint64_t arena_bytes; /* allocated */
  uint64_t live_bytes;  /* of the entry point prepared last */
  uint64_t constant_bytes;
  uint64_t state_bytes;
  uint64_t staging_bytes;   /* device copies of inputs and outputs that were given as host memory */
  uint64_t build_ns;        /* programs: building or loading from the cache */
  uint64_t upload_ns;       /* constants */
  uint64_t prepare_ns;      /* of the last preparation */
  uint32_t programs_built;  /* by the compiler of the driver */
  uint32_t programs_cached; /* taken from oclc's cache, or from the plan's own binaries */
  uint32_t launches;        /* enqueued by the last run */
  uint32_t preparations;    /* so far */
  uint8_t constants_shared; /* device reads the plan's mapping, no copy */
  uint8_t command_buffer;   /* last run was a command-buffer replay */
  uint64_t train_steps;  /* state-changing steps of trainers (train.h) that led to the state, those before a loaded checkpoint
                            included */
  uint8_t unoptimized;   /* the last run's kernels were compiled without optimization, or were those of a launch's parts, see
                            wait_for_optimized */
  uint64_t optimized_ns; /* from the session's creation until it took the optimized kernels; 0: it has not, or began so */
} oclc_stats;
OCLC_API oclc_status oclc_session_get_stats(const oclc_session* session, oclc_stats* stats);

/* A program that was built for a session's plan: one of the plan's, several as one, or some steps of one. */
typedef struct oclc_build_info {
  size_t size;
  const char* name;    /* of the (first) program, and its steps if they are not all */
  uint64_t text_bytes; /* of OpenCL C */
  uint32_t kernels;
  uint64_t build_ns;  /* in clBuildProgram and what is around it. Drivers such as PoCL compile a kernel when it first runs. */
  uint8_t cached;     /* taken from oclc's cache */
  uint8_t by_builder; /* built, and its kernels compiled, by a process beside this one */
  uint8_t from_plan;  /* made of a binary that the plan holds, see oclc_context_options.use_binaries */
} oclc_build_info;
/* `count` receives the number of them, `builds` up to `capacity` (the first element's `size` set by the caller). */
OCLC_API oclc_status oclc_session_get_builds(oclc_session* session, oclc_build_info* builds, uint32_t capacity,
                                             uint32_t* count);

/* One executed launch of the last run. */
typedef struct oclc_launch_info {
  size_t size;
  const char* name;   /* kernel */
  const char* anchor; /* pointwise, row, gemm, ... */
  const char* nodes;  /* source nodes, separated by commas */
  uint32_t step;      /* in the entry's schedule; launches of a loop repeat it */
  uint64_t start_ns;  /* by the device's clock; 0 if the queue does not profile */
  uint64_t end_ns;
  double flops;
  double bytes;
  const char* title;  /* what to call it: "nef.Voltage x 3" of kernels of one text that are one launch, else `name` */
  uint32_t instances; /* of one text that it does together, told apart in `nodes`; 0: it is none of them */
} oclc_launch_info;

/* Keeps an event per launch from the next run on (needs a queue with profiling; otherwise times are 0). */
OCLC_API oclc_status oclc_session_enable_profile(oclc_session* session, int enabled);
/* Launches of the last run of a session with profile: `count` receives their number, `launches` up to `capacity` of them (the
 * first element's `size` set by the caller). Waits for the run. */
OCLC_API oclc_status oclc_session_get_launches(oclc_session* session, oclc_launch_info* launches, uint32_t capacity,
                                               uint32_t* count);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OCLC_PROFILE_H */
