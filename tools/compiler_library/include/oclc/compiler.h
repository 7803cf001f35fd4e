/* oclc's compiler in the caller's process: an ONNX model in memory or in a file becomes a plan, which the runtime (oclc.h)
 * executes. Library liboclc_compiler; errors, ownership and structs are as oclc.h says. Several threads may compile at once.
 * The library holds no state and writes nothing, but for `output`.
 */
#ifndef OCLC_COMPILER_H
#define OCLC_COMPILER_H

#include "oclc/oclc.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oclc_compile_options {
  size_t size;
  const char* target;    /* `oclc devices --targets` lists them; NULL: that of `device` */
  const char* device;    /* as oclc_device_select takes it; with both NULL: that of the device found, else "cpu" */
  const char* precision; /* strict, fp32, fast, tf32, bf16; NULL: fp32 */
  const char* disable;   /* passes separated by commas; NULL: none */
  /* Values of symbolic dimensions; others stay symbolic. */
  const oclc_dim* dims;
  uint32_t dim_count;
  /* Folder of external data; NULL: a model in memory has none, that of a file has it in its folder. */
  const char* external_data_dir;
  /* Training entries, as `oclc --train` and `--optimizer` take them ("cross_entropy", "sgd,lr=0.1"); loss NULL: none. */
  const char* loss;
  const char* optimizer;  /* NULL: sgd,lr=0.01 */
  const char* prediction; /* the output that the loss reads; NULL: the first */
  const char* output;     /* the plan is written to this file as well; NULL: it is not */
  /* Told of each stage before it begins ("graph", "passes", ...) and of warnings; may be NULL. */
  void (*progress)(void* user, const char* stage);
  void (*warning)(void* user, const char* text);
  void* user;
} oclc_compile_options;

/* Compiles the ONNX model of these bytes, which need not live longer than the call. `options` may be NULL. On success `*plan`
 * is the caller's, to be released by oclc_plan_release. Status: OCLC_E_PLAN a bad model (the message names the node, what was
 * wanted and what was found), OCLC_E_UNSUPPORTED what is not supported, OCLC_E_ARGUMENT a wrong option, OCLC_E_IO a file. */
OCLC_API oclc_status oclc_compile(const void* bytes, size_t byte_count, const oclc_compile_options* options, oclc_plan** plan,
                                  oclc_error* error);
/* The same of a file. */
OCLC_API oclc_status oclc_compile_file(const char* path, const oclc_compile_options* options, oclc_plan** plan,
                                       oclc_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
