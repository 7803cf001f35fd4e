// How the groups of one work-item of a megakernel share kernels one after another (compiler/codegen/launches/megakernel.h): they claim
// tiles, finish them and wait until all are done. Counters lie in memory that is 0 between launches.

//@provides oclc_claim
// The number of a tile that no other group has claimed; `tiles` or more if there is none left. The first half of the groups claims
// from the front, the others from the back, so that what a core wrote and read in one kernel it mostly meets again in the next. Tiles from
// the front are counted in the lower half of the counter, those from the back in the upper one, if the halves are wide enough. Which half
// the group belongs to is told: PoCL puts what asks for it in place of each call.
int oclc_claim(volatile __global int* claimed, int tiles, int from_back) {
  if (tiles > 16384) return *claimed >= tiles ? tiles : atomic_inc(claimed);
  int before = *claimed;
  if ((before & 65535) + (before >> 16) >= tiles) return tiles;
  before = atomic_add(claimed, from_back ? 65536 : 1);
  const int front = before & 65535, back = before >> 16;
  return front + back >= tiles ? tiles : from_back ? tiles - 1 - back : front;
}
//@provides oclc_take
// The number of one of `places`, all 0 if nobody has them, that is the caller's until oclc_give; -1 if there is none.
int oclc_take(volatile __global int* taken, int places) {
  for (int i = 0; i < places; ++i) {
    if (atomic_cmpxchg(taken + i, 0, 1) == 0) return i;
  }
  return -1;
}
//@provides oclc_give
void oclc_give(volatile __global int* taken) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  atomic_xchg(taken, 0);
}
//@provides oclc_finish
// Says that a claimed tile's results are in memory.
void oclc_finish(volatile __global int* done) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  atomic_inc(done);
}
//@provides oclc_wait
// Returns when all tiles are done; their results are seen from then on.
void oclc_wait(volatile __global int* done, int tiles) {
  while (*done < tiles) {
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("pause");
#endif
  }
  mem_fence(CLK_GLOBAL_MEM_FENCE);
}
//@provides oclc_claim_trip
// As oclc_claim, in trip `trip` of a loop. The counters of tiles from the front and from the back, next to each other, go on from trip
// to trip, modulo 2^32: what is claimed belongs to the trip, whichever groups have come how far.
int oclc_claim_trip(volatile __global int* claimed, long trip, int tiles, int from_back) {
  const int front = (tiles + 1) / 2;
  for (int i = 0; i < 2; ++i) {
    const int back = from_back ^ i;
    const uint many = back ? tiles - front : front, begin = (uint)trip * many;
    for (uint before = claimed[back]; before - begin < many;) {
      const uint seen = atomic_cmpxchg(claimed + back, (int)before, (int)(before + 1));
      if (seen == before) return back ? tiles - 1 - (int)(before - begin) : (int)(before - begin);
      before = seen;
    }
  }
  return tiles;
}
//@provides oclc_done
// Whether `tiles` tiles are done, counted from the first trip of a loop on, modulo 2^32.
int oclc_done(volatile __global int* done, long tiles) { return (int)((uint)*done - (uint)tiles) >= 0; }
//@provides oclc_wait_trip
// Returns when oclc_done() does with 1; the results are seen from then on.
void oclc_wait_trip(volatile __global int* done, long tiles) {
  while (!oclc_done(done, tiles)) {
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("pause");
#endif
  }
  mem_fence(CLK_GLOBAL_MEM_FENCE);
}
//@provides oclc_leave
// Counters are 16 ints apart. The last group to leave, which nobody can wait for any more, makes them zero again.
void oclc_leave(volatile __global int* progress, int counters) {
  if (atomic_inc(progress) != (int)get_num_groups(0) - 1) return;
  for (int i = 0; i < counters; ++i) progress[i * 16] = progress[i * 16 + 1] = 0;
}
