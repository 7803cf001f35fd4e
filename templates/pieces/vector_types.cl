// Vectors of VW floats, the target's width.
//@param VW 16 {4, 8, 16}
//@include join
#define VEC JOIN(float, VW)
#define LOAD(p) JOIN(vload, VW)(0, p)
#define STORE(v, p) oclc_store(v, p)
