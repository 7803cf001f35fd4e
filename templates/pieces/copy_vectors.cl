// Vectors of PV floats, by which an operand is copied.
//@param PV 1 {1, 4, 8, 16}  1 where neighbours in k are not neighbours in memory; at most K
#if PV == 1
#define PVEC float
#define PLOAD(p) (*(p))
#define PSTORE(v, p) (*(p) = (v))
#else
#define PVEC JOIN(float, PV)
#define PLOAD(p) JOIN(vload, PV)(0, p)
#define PSTORE(v, p) oclc_store(v, p)
#endif
