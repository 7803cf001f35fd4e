// What matrix units have in common whose operands are 16-bit floats and whose sums are single precision.
//
// launch    none: helper functions
// local     none

//@provides oclc_exchange_floats
// Floats of local memory that so many sub-groups need for products beside their operands: only an emulated unit needs some.
#ifdef OCLC_UNITS_EMULATED
#define oclc_exchange_floats(sub_groups) (256 * (sub_groups))
#else
#define oclc_exchange_floats(sub_groups) 0
#endif
