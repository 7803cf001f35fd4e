/* What all headers of oclc.h share: handles, statuses and errors, versions, types of elements. */
#ifndef OCLC_TYPES_H
#define OCLC_TYPES_H

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

/* Zeroes a struct of these headers and sets its size:  oclc_tensor t = OCLC_INIT(oclc_tensor); */
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
/* Version of these headers, for `#if`: OCLC_VERSION_NUMBER is 10000 times the first, 100 times the second and the third number.
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

#endif /* OCLC_TYPES_H */
