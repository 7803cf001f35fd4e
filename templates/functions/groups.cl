// Work-groups of several work-items that run kernels one after another in one launch, and what asks for memory ahead.
//
// launch    none: helper functions
// local     none

//@provides oclc_turn oclc_look
// Groups of several work-items, of a launch that runs parts one after another. A group that has a tile of a part claims the first
// of the next part, then waits for the part before, and claims a second tile only behind that: sooner it would take those of groups
// that are still busy. No group waits for a tile that no running group holds: all wait for the part before their first tile's.
// Counters are as for oclc_claim.
#if OCLC_NV_SM >= 70
int oclc_look(volatile __global int* counter) {
  int value;
  __asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}
#else
int oclc_look(volatile __global int* counter) { return *counter; }
#endif
#define oclc_turn(progress, number) atomic_inc((progress) + (number) * 32 + 16)
//@provides OCLC_SEE_ALL
#if OCLC_NV_SM >= 70
#define OCLC_SEE_ALL() __asm volatile("fence.acq_rel.gpu;" : : : "memory")
#else
#define OCLC_SEE_ALL() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
//@provides oclc_group_begin
// A part before which nothing is left to be claimed: groups that the device starts late begin there. Noted in progress[1] by a group
// of rank 0 that claims the first tile of the part after the next one: others may have left out a part.
int oclc_group_begin(volatile __global int* progress, int first) { return max(first, oclc_look(progress + 1) - 1); }
//@provides oclc_group_rank
// 0 for the group that begins first on its compute unit, whichever that is; for others `units` and how many such began before.
// Groups claim tiles of parts that have more than their rank: those of few tiles are not shared unevenly by the units, and
// fewer groups wait for them. The first group of all has rank 0: every tile is claimed by some group that runs.
// Counters: what is left of the lines behind the first, and progress[2].
#if OCLC_NV_SM >= 70
int oclc_group_rank(volatile __global int* progress, int counters, int units) {
  uint unit;
  __asm volatile("mov.u32 %0, %%smid;" : "=r"(unit));
  const int place = (int)(unit % (uint)((counters - 1) * 14));
  return atomic_inc(progress + (1 + place / 14) * 16 + 2 + place % 14) == 0 ? 0 : units + atomic_inc(progress + 2);
}
#else
#define oclc_group_rank(progress, counters, units) 0
#endif
//@provides oclc_group_finish
// Says that a tile's results are in memory: behind a barrier, by one work-item.
void oclc_group_finish(volatile __global int* progress, int part) {
  OCLC_SEE_ALL();
  atomic_inc(progress + part * 32 + 32);
}
//@provides oclc_group_wait
// Returns when all tiles of the part are done: for one work-item, with a barrier behind it for the others.
void oclc_group_wait(volatile __global int* progress, int part, int tiles) {
  volatile __global int* done = progress + part * 32 + 32;
  while (oclc_look(done) < tiles) {
  }
#if OCLC_NV_SM >= 70
  // Sees what came before the counts that it reads: less than a fence, which waits for this work-item's own stores too.
  int value;
  __asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(done) : "memory");
#else
  OCLC_SEE_ALL();
#endif
}
//@provides oclc_group_leave
// The last group to leave makes all counters zero again: called by all work-items. `last` is local memory.
void oclc_group_leave(volatile __global int* progress, int counters, __local int* last) {
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (get_local_id(0) == 0) {
    OCLC_SEE_ALL();
    *last = atomic_inc(progress) == (int)get_num_groups(0) - 1;
    OCLC_SEE_ALL();
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  if (*last) {
    for (int i = get_local_id(0); i < counters * 16; i += get_local_size(0)) progress[i] = 0;
  }
}
//@provides oclc_fetch
// Asks for this group's share of memory that all groups read soon, so that it lies in the device's cache then: called by all
// work-items.
#if OCLC_NV_SM >= 80
void oclc_fetch(__global const char* from, int bytes) {
  const int share = (bytes / (int)get_num_groups(0) + 128) / 128 * 128, begin = (int)get_group_id(0) * share;
  for (int at = begin + (int)get_local_id(0) * 32; at < min(begin + share, bytes); at += (int)get_local_size(0) * 32)
    __asm volatile("prefetch.global.L2 [%0];" : : "l"(from + at));
}
#else
#define oclc_fetch(from, bytes)
#endif
//@provides oclc_fetch_small
// As oclc_fetch, called by one work-item of each group.
#if OCLC_NV_SM >= 80
void oclc_fetch_small(__global const char* from, int bytes) {
  for (int at = (int)get_group_id(0) * 32; at < bytes; at += (int)get_num_groups(0) * 32)
    __asm volatile("prefetch.global.L2 [%0];" : : "l"(from + at));
}
#else
#define oclc_fetch_small(from, bytes)
#endif
//@provides oclc_sharers_sums
// sums[r] becomes the sum of what the sharers of a result have in parts[r * items + item], `items` in a group: in halves down to
// eight numbers, and those one after another. Called by all work-items, behind a barrier; parts stay in use up to the next one.
#if OCLC_NV_SM >= 70
float oclc_shift(float a, int by) {
  float b;
  __asm volatile("shfl.sync.down.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(b) : "f"(a), "r"(by));
  return b;
}
float oclc_item(float a, int item) {
  float b;
  __asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(b) : "f"(a), "r"(item));
  return b;
}
#endif
__attribute__((always_inline)) void oclc_sharers_sums(__local float* parts, const int items, const int sharers, const int n,
                                                      float* sums) {
  const int item = get_local_id(0), sharer = item % sharers, first = item - sharer;
#if OCLC_NV_SM >= 70
  // Items of 32 are in step: each such group adds up all parts by itself.
  if (sharers >= 64 && sharers <= 256) {
    for (int r = 0; r < n; ++r) {
      __local const float* p = parts + r * items + first + item % 32;
      float a[8];
      for (int i = 0; i < sharers / 32; ++i) a[i] = p[i * 32];
      for (int step = sharers / 64; step > 0; step /= 2) {
        for (int i = 0; i < step; ++i) a[i] += a[i + step];
      }
      sums[r] = a[0];
    }
    for (int r = 0; r < n; ++r) sums[r] += oclc_shift(sums[r], 16);
    for (int r = 0; r < n; ++r) sums[r] += oclc_shift(sums[r], 8);
    float of_item[4];
    for (int r = 0; r < n; ++r) of_item[r] = sums[r];
    for (int r = 0; r < n; ++r) sums[r] = oclc_item(of_item[r], 0);
    for (int i = 1; i < 8; ++i) {
      for (int r = 0; r < n; ++r) sums[r] += oclc_item(of_item[r], i);
    }
    return;
  }
#endif
  for (int step = sharers / 2; step >= 8; step /= 2) {
    if (sharer < step) {
      for (int r = 0; r < n; ++r) parts[r * items + item] = parts[r * items + item] + parts[r * items + item + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int r = 0; r < n; ++r) {
    sums[r] = parts[r * items + first];
    for (int part = 1; part < min(sharers, 8); ++part) sums[r] = sums[r] + parts[r * items + first + part];
  }
}
