/* oclc runtime: loads a plan.bin that oclc compiled and executes it on an OpenCL device.
 *
 * Concepts
 *   plan      a checked plan.bin: entry points, inputs and outputs, symbols (named dimensions), kernels, constants.
 *   context   an OpenCL device with a queue: chosen by oclc, or the caller's own cl_context and cl_command_queue.
 *   session   a plan on a context: kernels, scratch memory, state, and what is bound to the inputs and outputs.
 *
 * Typical use
 *   oclc_plan_load, oclc_context_create, oclc_session_create, then per run: oclc_session_set_input for each input,
 *   oclc_session_set_output for each output, oclc_session_run. A dimension such as N takes its value from the shapes of the
 * inputs; kernel arguments and memory are worked out again only when a dimension changes.
 *
 * Errors
 *   Every function that can fail returns an oclc_status. Functions that create or that belong to no session describe the
 * failure in an oclc_error of the caller (may be NULL); functions on a session keep the message there: oclc_session_message. A
 * failed call leaves its out-parameters and its handle as they were unless said otherwise. Nothing is printed, no exception and
 * no call of exit or abort leaves the library.
 *
 * Ownership
 *   Create functions give a handle that its release function takes back; release accepts NULL. Handles may be released in any
 *   order: a session keeps what it needs of its plan and context. Strings returned belong to the handle they were asked from.
 *
 * Threads
 *   Plans and contexts may be used by any number of threads at once. A session is used by one thread at a time; sessions that
 * share a plan or a context are independent. Creating a session uses several threads to build programs; none remains
 *   afterwards. With a driver that compiles one program at a time (PoCL), and programs that it has not compiled before,
 * processes (oclc-builder) compile kernels too; they end with the first run. The environment variable OCLC_BUILDERS says how
 * many there may be, 0: none. After fork() the child must not use handles of the parent; calls that would enqueue return an
 * error there.
 *
 * Plans of others
 *   Loading checks a plan in time and memory in proportion to its file, whatever it says. A run does what the plan's kernels
 * say on the plan's buffers, and what the host does for it stays within those and the memory that the caller gave: what a plan
 * says of sizes, offsets, arguments, loops and memory is checked, and is OCLC_E_PLAN, OCLC_E_BINDING or OCLC_E_MEMORY where it
 * is not so. Kernels are code; drivers for CPUs run them within the process. See SECURITY.md.
 *
 * Structs start with `size`, which the caller sets to sizeof the struct (OCLC_INIT does). Later versions append members.
 * OpenCL objects appear as `struct _cl_mem*` etc., which are cl_mem etc.: this header needs no OpenCL header.
 */
#ifndef OCLC_OCLC_H
#define OCLC_OCLC_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define OCLC_API
#else
#define OCLC_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct _cl_context;
struct _cl_command_queue;
struct _cl_device_id;
struct _cl_mem;
struct _cl_event;

typedef struct oclc_plan oclc_plan;
typedef struct oclc_context oclc_context;
typedef struct oclc_session oclc_session;

/* Zeroes a struct of this header and sets its size:  oclc_tensor t = OCLC_INIT(oclc_tensor); */
#ifdef __cplusplus
#define OCLC_INIT(type) (::oclc::detail::init<type>())
#else
#define OCLC_INIT(type) ((type){.size = sizeof(type)})
#endif

typedef enum oclc_status {
  OCLC_OK = 0,
  OCLC_E_INTERNAL = 1,    /* a bug of oclc */
  OCLC_E_ARGUMENT = 2,    /* a call's argument: null, unknown name, wrong size, handle of another context */
  OCLC_E_PLAN = 3,        /* the plan file is no plan, damaged, of another version, or breaks a rule */
  OCLC_E_UNSUPPORTED = 4, /* the device lacks what the plan needs */
  OCLC_E_DEVICE = 5,      /* no device, or OpenCL reported an error: see cl_code */
  OCLC_E_IO = 6,          /* the operating system refused a file */
  OCLC_E_BINDING = 7,     /* an input or output is missing or does not fit: element type, shape, size, overlap */
  OCLC_E_MEMORY = 8,      /* the plan does not fit the device's or the host's memory */
  OCLC_E_BUILD = 9,       /* a program did not build on this device */
  OCLC_E_NAN = 10,        /* a run made a NaN, see oclc_session_enable_nan_check */
  OCLC_E_CANCELLED = 11,  /* see oclc_session_cancel */
  OCLC_E_DEADLINE = 12    /* see oclc_session_set_time_limit */
} oclc_status;

/* Description of a failure, in memory of the caller. */
typedef struct oclc_error {
  size_t size;
  oclc_status status;
  int32_t cl_code; /* the OpenCL error code, or 0 */
  char message[2048];
} oclc_error;

/* "OCLC_E_PLAN" etc.; static. */
OCLC_API const char* oclc_status_name(oclc_status status);
/* Version of this header, for `#if`: OCLC_VERSION_NUMBER is 10000 times the first, 100 times the second and the third number.
 * The library may be another one: oclc_version. */
#define OCLC_VERSION_MAJOR 0
#define OCLC_VERSION_MINOR 1
#define OCLC_VERSION_PATCH 0
#define OCLC_VERSION_NUMBER (OCLC_VERSION_MAJOR * 10000 + OCLC_VERSION_MINOR * 100 + OCLC_VERSION_PATCH)

/* Version of the library, such as "0.1.0"; static. */
OCLC_API const char* oclc_version(void);

typedef enum oclc_dtype {
  OCLC_F32 = 0,
  OCLC_F64 = 1,
  OCLC_F16 = 2,
  OCLC_BF16 = 3,
  OCLC_I8 = 4,
  OCLC_I16 = 5,
  OCLC_I32 = 6,
  OCLC_I64 = 7,
  OCLC_U8 = 8,
  OCLC_U16 = 9,
  OCLC_U32 = 10,
  OCLC_U64 = 11,
  OCLC_BOOL = 12,   /* one byte, 0 or 1 */
  OCLC_STRING = 13, /* const char*, UTF-8 that ends with a NUL; see oclc_tensor */
  /* One byte an element: the bits of a float of 8 or, in the low half, of 4 bits; the value of an integer of 4 or 2
   * bits. */
  OCLC_F8E4M3FN = 14,
  OCLC_F8E4M3FNUZ = 15,
  OCLC_F8E5M2 = 16,
  OCLC_F8E5M2FNUZ = 17,
  OCLC_F4E2M1 = 18,
  OCLC_I4 = 19,
  OCLC_U4 = 20,
  OCLC_F8E8M0 = 21,
  OCLC_I2 = 22,
  OCLC_U2 = 23
} oclc_dtype;

/* Bytes of one element in host memory; 0 if `dtype` is unknown. */
OCLC_API size_t oclc_dtype_bytes(oclc_dtype dtype);
/* "float32", "int64", ...; "unknown" if it is. Static. */
OCLC_API const char* oclc_dtype_name(oclc_dtype dtype);

/* ---- Devices ------------------------------------------------------------------------------------------------------------- */

typedef enum oclc_device_class { OCLC_DEVICE_CPU = 0, OCLC_DEVICE_GPU = 1, OCLC_DEVICE_OTHER = 2 } oclc_device_class;

typedef struct oclc_device_info {
  size_t size;
  uint32_t index;    /* in oclc's list: platforms in the loader's order, devices in the platform's order */
  uint32_t platform; /* P and D of "P:D", as clinfo -l numbers them */
  uint32_t device;
  oclc_device_class device_class;
  struct _cl_device_id* id;
  char name[256];
  char vendor[256];
  char driver[128];
  char version[128]; /* "OpenCL 3.0 ..." */
  char opencl_c[128];
  char platform_name[128];
  char platform_version[256];
  char cpu_features[256]; /* of a CPU device of this machine: "avx2 fma avx512f amx_bf16 ..."; else "" */
  char quirks[256];       /* what the runtime does differently for this driver, names separated by spaces */
  uint32_t compute_units;
  uint32_t clock_mhz;
  uint32_t max_work_group_size;
  uint32_t max_work_item_sizes[3];
  uint32_t vector_width_float; /* native */
  uint32_t sub_group_size;     /* 0 if the device does not say */
  uint32_t max_parameter_bytes;
  uint32_t alignment_bytes; /* of buffers */
  uint64_t global_bytes;
  uint64_t max_alloc_bytes;
  uint64_t local_bytes;
  uint64_t cache_bytes;
  uint8_t available; /* and has a compiler */
  uint8_t fp16;
  uint8_t fp64;
  uint8_t unified_memory;
  uint8_t command_buffer; /* cl_khr_command_buffer */
  uint8_t sub_groups;     /* cl_khr_subgroups or cl_intel_subgroups */
  uint8_t little_endian;
  uint8_t address_bits;
} oclc_device_info;

/* Number of devices of all platforms; 0 with OCLC_OK when the loader finds none. */
OCLC_API oclc_status oclc_device_count(uint32_t* count, oclc_error* error);
OCLC_API oclc_status oclc_device_get(uint32_t index, oclc_device_info* info, oclc_error* error);

/* Finds a device by `selection`:  "2" index | "1:0" platform:device | "cpu" | "gpu" | a part of its name, upper or lower case,
 * a trailing ~ is ignored ("H200~"). NULL or "" means the environment variable OCLC_DEVICE, else the first GPU, else the first
 * device. A name that fits several devices is an error that lists them; so is one that fits none. */
OCLC_API oclc_status oclc_device_select(const char* selection, uint32_t* index, oclc_error* error);

/* Extensions of a device separated by spaces, copied to `text` (at most `capacity` bytes with the final NUL); `needed` receives
 * the bytes a complete copy takes. */
OCLC_API oclc_status oclc_device_extensions(uint32_t index, char* text, size_t capacity, size_t* needed, oclc_error* error);

/* ---- Plans --------------------------------------------------------------------------------------------------------------- */

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

/* ---- Contexts ------------------------------------------------------------------------------------------------------------ */

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
   * a session takes those between two of its runs. Both give results within the plan's contract of precision. 1: sessions
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

/* ---- The program cache --------------------------------------------------------------------------------------------------- */

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

/* ---- Sessions ------------------------------------------------------------------------------------------------------------ */

/* Builds the plan's programs for the context's device (or takes them from the cache) and uploads the constants, unless another
 * session of the same plan and context has done so. State starts with the plan's initial values. */
OCLC_API oclc_status oclc_session_create(oclc_plan* plan, oclc_context* context, oclc_session** session, oclc_error* error);
/* Waits for the session's commands. */
OCLC_API void oclc_session_release(oclc_session* session);

/* Writes the plan to `path` (its own file too) with what the driver of the context's device made of its programs, beside what
 * it holds for other devices. The context was made with `for_binaries`. Drivers such as PoCL compile a kernel when it first
 * runs: keep a session of the plan on the context that has run every entry point, with sizes as they will be.
 * OCLC_E_UNSUPPORTED if the driver gives no binaries, OCLC_E_IO if the file cannot be written: then an old file is as it was.
 */
OCLC_API oclc_status oclc_plan_write_binaries(oclc_plan* plan, oclc_context* context, const char* path, oclc_error* error);

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
  uint8_t unoptimized;   /* the last run's kernels were compiled without optimization, see wait_for_optimized */
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

namespace oclc {
namespace detail {
template <class T>
inline T init() {
  T value = T();
  value.size = sizeof(T);
  return value;
}
}  // namespace detail
}  // namespace oclc
#endif

#endif /* OCLC_OCLC_H */
