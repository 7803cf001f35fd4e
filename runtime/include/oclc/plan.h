/* Plans: what is in a plan.bin, asked before anything runs; for oclc.h. */
#ifndef OCLC_PLAN_H
#define OCLC_PLAN_H

#include "oclc/device.h"
#include "oclc/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies the file into memory. Without this flag constants stay in a read-only mapping of the file, unless 4 MiB or more of
 * them are copied for a device: replacing the file by rename (as oclc does) is then safe while it is in use, truncating it in
 * place is not. */
#define OCLC_LOAD_COPY 1u

/* Opens and checks a plan: the frame, all checksums, every index and expression. No OpenCL call is made. */
OCLC_API oclc_status oclc_plan_load(const char* path, uint32_t flags, oclc_plan** plan, oclc_error* error);
/* The same from memory, which is copied. */
OCLC_API oclc_status oclc_plan_load_memory(const void* bytes, size_t size, oclc_plan** plan, oclc_error* error);
/* The same without a copy: `bytes`, whose address is a multiple of 4096 (else OCLC_E_ARGUMENT), stay as they are and readable
 * until `release` (may be NULL) is called with `user`, once, on the thread that releases the last of the plan and its sessions.
 * CPUs use the constants where they lie. After a failure nothing was kept, and `release` is not called. */
OCLC_API oclc_status oclc_plan_borrow_memory(const void* bytes, size_t size, void (*release)(void* user), void* user,
                                             oclc_plan** plan, oclc_error* error);
OCLC_API void oclc_plan_release(oclc_plan* plan);
/* Numbers of the plan format that this library reads: from `oldest` to `newest` (each may be NULL). A plan's own number is
 * oclc_plan_info.format; oclc writes the least that a plan needs. */
OCLC_API void oclc_plan_formats(uint32_t* oldest, uint32_t* newest);

typedef struct oclc_plan_info {
  size_t size;
  const char* model;
  const char* producer;  /* version of the compiler */
  const char* target;    /* row of device facts that it was compiled for */
  const char* precision; /* strict, fp32, fast, ... */
  const char* options;   /* what the user asked the compiler for, separated by spaces */
  uint32_t entry_count;
  uint32_t symbol_count;
  uint32_t variable_count;
  uint32_t program_count;
  uint64_t constant_bytes;
  uint32_t format;                /* see oclc_plan_formats */
  oclc_device_class device_class; /* that the kernels were written for; OCLC_DEVICE_OTHER: the plan does not say */
  uint32_t metadata_count;        /* see oclc_plan_get_metadata */
} oclc_plan_info;
OCLC_API oclc_status oclc_plan_get_info(const oclc_plan* plan, oclc_plan_info* info);

/* What is said of the model, as UTF-8 texts that belong to the plan: a property's name, which no other one has, and its value.
 * They are an ONNX file's metadata_props, its producer, domain, version and doc string as onnx.producer, onnx.domain,
 * onnx.version and onnx.doc, and what oclc --metadata gave. Nothing that runs depends on them. NULL pointers are skipped. */
OCLC_API oclc_status oclc_plan_get_metadata(const oclc_plan* plan, uint32_t index, const char** name, const char** value);

/* A named dimension, or the counter of a loop (then it is not bound by the caller). */
typedef struct oclc_symbol_info {
  size_t size;
  const char* name;
  int64_t lo, hi; /* values that the plan was compiled for */
  uint8_t loop_counter;
} oclc_symbol_info;
OCLC_API oclc_status oclc_plan_get_symbol(const oclc_plan* plan, uint32_t index, oclc_symbol_info* info);

typedef struct oclc_entry_info {
  size_t size;
  const char* name;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t launch_count; /* kernels launched by one run; those inside a loop count once */
} oclc_entry_info;
OCLC_API oclc_status oclc_plan_get_entry(const oclc_plan* plan, uint32_t entry, oclc_entry_info* info);
OCLC_API oclc_status oclc_plan_find_entry(const oclc_plan* plan, const char* name, uint32_t* entry, oclc_error* error);

typedef enum oclc_direction { OCLC_INPUT = 0, OCLC_OUTPUT = 1 } oclc_direction;

/* An input or an output of an entry point, or a variable. */
typedef struct oclc_binding_info {
  size_t size;
  const char* name;
  const char* shape_text; /* "[N, 3, 224, 224]" */
  oclc_dtype dtype;
  uint32_t rank;
  /* Where > 0, values of this integer input lie in [0, limit) or are one of `also`: class numbers, and what a loss ignores. The
   * runtime does not look; a program that feeds data should. */
  int64_t limit;
  const int64_t* also;
  uint32_t also_count;
  /* Of an output: the model computes its shape, and nothing says before a run how large it may be. Leave it unbound, and take
   * it with oclc_session_read_output. */
  uint8_t open;
  /* Of a variable that an output feeds (oclc --carry): the name of that output in the model, else NULL. */
  const char* carried_from;
} oclc_binding_info;
OCLC_API oclc_status oclc_plan_get_binding(const oclc_plan* plan, uint32_t entry, oclc_direction direction, uint32_t index,
                                           oclc_binding_info* info);
/* Text of dimension `dimension`: "N", "2*N + 1", "224". */
OCLC_API const char* oclc_plan_dimension_text(const oclc_plan* plan, uint32_t entry, oclc_direction direction, uint32_t index,
                                              uint32_t dimension);
/* Named state: parameters, optimizer moments, caches. Their number is oclc_plan_info.variable_count. */
OCLC_API oclc_status oclc_plan_get_variable(const oclc_plan* plan, uint32_t index, oclc_binding_info* info);
/* Shape of a variable, which is constant: up to `capacity` dimensions to `shape`, and its size in bytes (each may be NULL). */
OCLC_API oclc_status oclc_plan_get_variable_shape(const oclc_plan* plan, uint32_t index, int64_t* shape, uint32_t capacity,
                                                  uint64_t* bytes);
/* Name and source of a program; `source` is OpenCL C. NULL pointers are skipped. */
OCLC_API oclc_status oclc_plan_get_program(const oclc_plan* plan, uint32_t index, const char** name, const char** source);

/* A value for a symbol. */
typedef struct oclc_dim {
  const char* name;
  int64_t value;
} oclc_dim;

typedef struct oclc_memory_info {
  size_t size;
  uint64_t arena_bytes; /* scratch of the entry point */
  uint64_t live_bytes;  /* largest sum of bytes alive at one launch: no arena can be smaller */
  uint64_t constant_bytes;
  uint64_t state_bytes;
  uint64_t input_bytes;
  uint64_t output_bytes;
} oclc_memory_info;
/* Exact device memory of an entry point, before anything is allocated. Every symbol that matters must be in `dims`. */
OCLC_API oclc_status oclc_plan_memory(const oclc_plan* plan, uint32_t entry, const oclc_dim* dims, uint32_t dim_count,
                                      oclc_memory_info* info, oclc_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OCLC_PLAN_H */
