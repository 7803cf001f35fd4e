/* The OpenCL devices of this machine, for oclc.h. */
#ifndef OCLC_DEVICE_H
#define OCLC_DEVICE_H

#include "oclc/types.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OCLC_DEVICE_H */
