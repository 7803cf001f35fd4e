//@with L  of a stage: what it holds has been loaded by L, and has been used
const int item = get_local_id(0);
const uint stages = oclc_shared(space);
// Of each stage: what it holds has been loaded, and has been used.
const uint loaded = stages + (SPACE - STAGES * 4) * 4;
const uint used = loaded + STAGES * 8;
if (item == 0) {
  for (int s = 0; s < STAGES; ++s) {
    oclc_barrier_init(loaded + s * 8, $L);
    oclc_barrier_init(used + s * 8, COMPUTERS / 32);
  }
  oclc_publish();
}
barrier(CLK_LOCAL_MEM_FENCE);
