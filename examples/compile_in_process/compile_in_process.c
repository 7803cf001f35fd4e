/* Compiles an ONNX model in this process and runs it, in C.
 *
 *   compile_in_process MODEL.onnx [--device SEL]
 *
 * Inputs are zeros, symbolic dimensions are 1. Prints for each output its shape and its largest element. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oclc/compiler.h"

enum { kMaxRank = 32, kMaxOutputs = 64, kMaxKept = 256 };

/* Memory of inputs and outputs, which the session uses until it is released. */
static void* kept[kMaxKept];
static size_t kept_count;

static int failed(const oclc_error* error) {
  fprintf(stderr, "compile_in_process: error: %s (%s)\n", error->message, oclc_status_name(error->status));
  return 1;
}

static int failed_session(const oclc_session* session) {
  fprintf(stderr, "compile_in_process: error: %s\n", oclc_session_message(session));
  return 1;
}

static void told(void* user, const char* stage) {
  (void)user;
  fprintf(stderr, "compile_in_process: %s\n", stage);
}

/* The bytes of a file; NULL if it cannot be read. */
static void* file_bytes(const char* path, size_t* count) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  char* bytes = NULL;
  size_t room = 0;
  *count = 0;
  for (size_t got = 1; got > 0; *count += got) {
    if (*count == room) {
      char* larger = realloc(bytes, room = room * 2 + 65536);
      if (!larger) break;
      bytes = larger;
    }
    got = fread(bytes + *count, 1, room - *count, file);
  }
  fclose(file);
  return bytes;
}

/* Binds memory of the right size, which is kept, to an input (zeros) or an output. NULL if that failed. */
static void* bind(oclc_session* session, const oclc_plan* plan, oclc_direction direction, uint32_t index, oclc_tensor* tensor,
                  int64_t* shape) {
  oclc_binding_info info = OCLC_INIT(oclc_binding_info);
  oclc_plan_get_binding(plan, 0, direction, index, &info);
  uint64_t bytes = 0;
  uint32_t rank = info.rank;
  if (rank > kMaxRank) return NULL;
  if (oclc_session_get_shape(session, 0, direction, info.name, shape, kMaxRank, &rank, &bytes) != OCLC_OK) return NULL;
  tensor->dtype = info.dtype;
  tensor->rank = rank;
  tensor->shape = shape;
  tensor->bytes = (size_t)bytes;
  if (kept_count == kMaxKept) return NULL;
  tensor->host = kept[kept_count++] = calloc(bytes ? (size_t)bytes : 1, 1);
  const oclc_status status = direction == OCLC_INPUT ? oclc_session_set_input(session, 0, info.name, tensor)
                                                     : oclc_session_set_output(session, 0, info.name, tensor);
  return status == OCLC_OK ? tensor->host : NULL;
}

static void print_largest(const char* name, const oclc_tensor* tensor, const int64_t* shape) {
  printf("%s [", name);
  uint64_t count = 1;
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    printf("%s%lld", d ? ", " : "", (long long)shape[d]);
    count *= (uint64_t)shape[d];
  }
  printf("]");
  const float* values = tensor->host;
  uint64_t best = 0;
  for (uint64_t i = 1; i < count; ++i)
    if (values[i] > values[best]) best = i;
  if (tensor->dtype == OCLC_F32 && count > 0)
    printf(": element %llu is largest, %g", (unsigned long long)best, (double)values[best]);
  printf("\n");
}

/* Runs the plan's first entry point on zeros. */
static int run(oclc_session* session, const oclc_plan* plan) {
  oclc_plan_info plan_info = OCLC_INIT(oclc_plan_info);
  oclc_plan_get_info(plan, &plan_info);
  for (uint32_t i = 0; i < plan_info.symbol_count; ++i) {
    oclc_symbol_info symbol = OCLC_INIT(oclc_symbol_info);
    oclc_plan_get_symbol(plan, i, &symbol);
    if (!symbol.loop_counter && oclc_session_bind_dim(session, symbol.name, 1) != OCLC_OK) return failed_session(session);
  }
  oclc_entry_info entry = OCLC_INIT(oclc_entry_info);
  oclc_plan_get_entry(plan, 0, &entry);
  int64_t shape[kMaxRank], shapes[kMaxOutputs][kMaxRank];
  oclc_tensor outputs[kMaxOutputs];
  const uint32_t count = entry.output_count < kMaxOutputs ? entry.output_count : kMaxOutputs;
  for (uint32_t i = 0; i < entry.input_count; ++i) {
    oclc_tensor input = OCLC_INIT(oclc_tensor);
    if (!bind(session, plan, OCLC_INPUT, i, &input, shape)) return failed_session(session);
  }
  for (uint32_t i = 0; i < count; ++i) {
    outputs[i] = OCLC_INIT(oclc_tensor);
    if (!bind(session, plan, OCLC_OUTPUT, i, &outputs[i], shapes[i])) return failed_session(session);
  }
  if (oclc_session_run(session, 0) != OCLC_OK) return failed_session(session);
  for (uint32_t i = 0; i < count; ++i) {
    oclc_binding_info info = OCLC_INIT(oclc_binding_info);
    oclc_plan_get_binding(plan, 0, OCLC_OUTPUT, i, &info);
    print_largest(info.name, &outputs[i], shapes[i]);
  }
  return 0;
}

int main(int argc, char** argv) {
  const int has_device = argc == 4 && strcmp(argv[2], "--device") == 0;
  if (argc != 2 && !has_device) {
    fprintf(stderr, "usage: compile_in_process MODEL.onnx [--device SEL]\n");
    return 2;
  }
  size_t count = 0;
  void* bytes = file_bytes(argv[1], &count);
  if (!bytes) {
    fprintf(stderr, "compile_in_process: error: %s: cannot be read\n", argv[1]);
    return 6;
  }
  oclc_error error = OCLC_INIT(oclc_error);
  oclc_compile_options options = OCLC_INIT(oclc_compile_options);
  options.device = has_device ? argv[3] : NULL;
  options.progress = told;
  oclc_plan* plan = NULL;
  if (oclc_compile(bytes, count, &options, &plan, &error) != OCLC_OK) return failed(&error);
  free(bytes);
  oclc_context_options where = OCLC_INIT(oclc_context_options);
  where.device = options.device;
  oclc_context* context = NULL;
  oclc_session* session = NULL;
  if (oclc_context_create(&where, &context, &error) != OCLC_OK) return failed(&error);
  if (oclc_session_create(plan, context, &session, &error) != OCLC_OK) return failed(&error);
  const int status = run(session, plan);
  oclc_session_release(session);
  while (kept_count > 0) free(kept[--kept_count]);
  oclc_context_release(context);
  oclc_plan_release(plan);
  return status;
}
