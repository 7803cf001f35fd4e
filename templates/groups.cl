// Work-groups of several work-items that run kernels one after another in one launch, and what asks for memory ahead.
//
// launch    none: helper functions
// local     none

//@provides oclc_turn oclc_look OCLC_SEE_ALL OCLC_REST
// Groups of several work-items, of a launch that runs parts one after another. A group claims tiles of a part, and the first tile
// of the next part, while it computes what it has, so that it waits for neither answer; it waits for the part before only when it
// has a tile. No group waits for a tile that no running group holds. Counters are as for oclc_claim.
#if OCLC_NV_SM >= 70
#define OCLC_SEE_ALL() __asm volatile("fence.acq_rel.gpu;" : : : "memory")
int oclc_look(volatile __global int* counter) {
  int value;
  __asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}
#define OCLC_REST() __asm volatile("nanosleep.u32 20;")
#else
#define OCLC_REST()
#define OCLC_SEE_ALL() mem_fence(CLK_GLOBAL_MEM_FENCE)
int oclc_look(volatile __global int* counter) { return *counter; }
#endif
#define oclc_turn(progress, number) atomic_inc((progress) + (number) * 32 + 16)
//@provides oclc_group_begin
// A part before which nothing is left to be claimed: groups that the device starts late begin there. Noted in progress[1] by who
// claims the first tile of the part after the next one.
int oclc_group_begin(volatile __global int* progress, int first) { return max(first, oclc_look(progress + 1) - 1); }
//@provides oclc_group_finish
// Says that a tile's results are in memory: behind a barrier, by one work-item.
void oclc_group_finish(volatile __global int* progress, int part) {
  OCLC_SEE_ALL();
  atomic_inc(progress + part * 32 + 32);
}
//@provides oclc_group_wait
// Returns when all tiles of the part are done: for one work-item, with a barrier behind it for the others.
void oclc_group_wait(volatile __global int* progress, int part, int tiles) {
  while (oclc_look(progress + part * 32 + 32) < tiles) OCLC_REST();
  OCLC_SEE_ALL();
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
    for (int i = get_local_id(0); i < counters; i += get_local_size(0)) progress[i * 16] = progress[i * 16 + 1] = 0;
  }
}
//@provides oclc_ahead
// Asks the device's cache for the sector at p, in global memory.
#if OCLC_NV_SM >= 80
#define oclc_ahead(p) __asm volatile("prefetch.global.L2 [%0];" : : "l"(p))
#else
#define oclc_ahead(p)
#endif
