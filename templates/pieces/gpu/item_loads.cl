// Loads of a step, shared among all work-items of a group.
//@include gpu/group_loads
#define A_COUNT (BM * BK / AV)
#define B_COUNT (BN * BK / BV)
#define A_LOADS ((A_COUNT + ITEMS - 1) / ITEMS)
#define B_LOADS ((B_COUNT + ITEMS - 1) / ITEMS)
