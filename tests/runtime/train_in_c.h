#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct trained {
  uint64_t steps;
  double loss;
  float w[2];
  float b;
};

/* Trains the plan of train_plan.h for 300 steps; the line of the first call that failed, or 0. */
int train_in_c(const void* plan_bytes, size_t plan_size, struct trained* out);

#ifdef __cplusplus
}
#endif
