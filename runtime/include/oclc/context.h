/* Contexts, the cache of programs that they share, and a plan's binaries for a device; for oclc.h. */
#ifndef OCLC_CONTEXT_H
#define OCLC_CONTEXT_H

#include "oclc/device.h"
#include "oclc/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum oclc_severity { OCLC_NOTE = 0, OCLC_WARNING = 1 } oclc_severity;

typedef struct oclc_context_options {
  size_t size;
  const char* device; /* see oclc_device_select */
  /* The caller's own objects instead of `device`: both or none. They are retained. The queue must be in-order and of that
   * context. */
  struct _cl_context* cl_context;
  struct _cl_command_queue* cl_queue;
  uint8_t profiling; /* create the queue with profiling, see oclc_session_get_launches */
  /* Folder of the program cache. NULL: OCLC_CACHE_DIR, else $XDG_CACHE_HOME/oclc, else ~/.cache/oclc. The environment variable
   * OCLC_CACHE=0 switches the cache off, OCLC_CACHE=1 on for drivers whose own cache oclc relies on. */
  const char* cache_dir;
  /* Called with notes and warnings, on the thread that called oclc; may be NULL. */
  void (*message)(void* user, oclc_severity severity, const char* text);
  /* Called while programs are built, and in the first run of an entry point while processes beside this one compile kernels for
   * it, on the thread that called oclc; may be NULL. */
  void (*progress)(void* user, uint32_t done, uint32_t total);
  void* user;
  /* Most memory that an entry point of a session may take on the device: scratch, inputs and outputs, state and constants
   * together. 0: what the device has. More is OCLC_E_MEMORY, with the numbers, before anything is allocated. */
  uint64_t memory_limit;
  /* Most steps that the host may take for a run: launches, trips of loops, values read back, operators on strings. 0: 2^24. */
  uint64_t max_host_steps;
  /* 0: with a driver that compiles for seconds (PoCL), and a large plan whose kernels it has not compiled before, sessions
   * start with kernels compiled without optimization, which run many times slower, while processes compile the optimized ones;
   * a session takes those between two of its runs. With NVIDIA's driver sessions of plans whose one long launch it would
   * compile for seconds start with the kernels of that launch's parts, compiled by several processes, and take the launch when
   * another process has compiled it. Both give results within the plan's contract of precision. 1: sessions
   * wait for the optimized kernels, as they do with OCLC_WAIT_FOR_OPTIMIZED=1 in the environment. */
  uint8_t wait_for_optimized;
  /* 1: of plans that hold binaries of this device's driver (oclc_plan_write_binaries) these are taken, so that nothing is
   * compiled; they are compared with device, driver, instruction sets, sources and options first, and what does not fit, or
   * what the driver refuses, is compiled as if it were not there, with one note. A binary is machine code, which no check can
   * bound as plans' sources are bounded: ask for it only with plans of your own. OCLC_USE_BINARIES=1 in the environment does
   * the same. */
  uint8_t use_binaries;
  /* 1: programs are built whole, in this process and optimized, as oclc_plan_write_binaries wants them. */
  uint8_t for_binaries;
  /* 0: a plan whose kernels were written for CPUs is OCLC_E_UNSUPPORTED on a GPU, whose compiler may take hours for them. 1: it
   * is tried, as it is with OCLC_ANY_DEVICE=1 in the environment. Plans for GPUs run on CPUs, slowly, without being asked for.
   */
  uint8_t any_device;
  /* Not NULL: the context gets a queue of its own on that one's device and cl_context, and sessions of a plan on both share its
   * programs and one copy of its constants, which the first of them made by its context's options. `device` is NULL then, and
   * cl_context NULL or that one's with the caller's cl_queue; use_binaries and for_binaries are as that one's. It need not
   * outlive this one. Runs on the two queues may overlap. Contexts made apart have a copy of the constants each, but CPUs read
   * those of a plan loaded with OCLC_LOAD_COPY, or from memory, where the plan has them. */
  struct oclc_context* beside;
} oclc_context_options;

/* `options` may be NULL. */
OCLC_API oclc_status oclc_context_create(const oclc_context_options* options, oclc_context** context, oclc_error* error);
OCLC_API void oclc_context_release(oclc_context* context);
/* The OpenCL objects in use; they live as long as the context. */
OCLC_API struct _cl_context* oclc_context_cl_context(const oclc_context* context);
OCLC_API struct _cl_command_queue* oclc_context_cl_queue(const oclc_context* context);
OCLC_API oclc_status oclc_context_get_device(const oclc_context* context, oclc_device_info* info);

/* Writes the plan to `path` (its own file too) with what the driver of the context's device made of its programs, beside what
 * it holds for other devices. The context was made with `for_binaries`. Drivers such as PoCL compile a kernel when it first
 * runs: keep a session of the plan on the context that has run every entry point, with sizes as they will be.
 * OCLC_E_UNSUPPORTED if the driver gives no binaries, OCLC_E_IO if the file cannot be written: then an old file is as it was.
 */
OCLC_API oclc_status oclc_plan_write_binaries(oclc_plan* plan, oclc_context* context, const char* path, oclc_error* error);

/* Where the cache is: `folder`, or with NULL the folder that a context takes without `cache_dir`. Copied to `text` (at most
 * `capacity` bytes with the final NUL); `needed` receives the bytes a complete copy takes. The folder need not exist. */
OCLC_API oclc_status oclc_cache_folder(const char* folder, char* text, size_t capacity, size_t* needed, oclc_error* error);

/* A file of the cache. Strings live until `visit` returns. */
typedef struct oclc_cache_entry {
  size_t size;
  const char* path;
  const char* device; /* it was compiled for; "" unless it is an undamaged binary, as the two that follow */
  const char* driver;
  const char* producer; /* "oclc 0.1.0" */
  uint64_t bytes;
  int64_t used_s; /* seconds since 1970: last written, or read by a session */
  uint8_t binary; /* else log or source of a build that failed */
  uint8_t damaged;
} oclc_cache_entry;
/* Calls `visit` for every file, that used last first. None is no error. */
OCLC_API oclc_status oclc_cache_visit(const char* folder, void (*visit)(void* user, const oclc_cache_entry* entry), void* user,
                                      oclc_error* error);
/* Removes files not used for more than `max_age_s` seconds (negative: of no age), then those used longest ago until the rest
 * takes at most `max_bytes`; 0 clears the cache. `removed` and `removed_bytes` (may be NULL) receive how many. Sessions lose
 * nothing by it. */
OCLC_API oclc_status oclc_cache_prune(const char* folder, uint64_t max_bytes, int64_t max_age_s, uint32_t* removed,
                                      uint64_t* removed_bytes, oclc_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OCLC_CONTEXT_H */
