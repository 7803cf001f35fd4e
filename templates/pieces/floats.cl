//@include join
#define FLOATS_1 float
#define FLOATS_4 float4
#define FLOATS(n) JOIN(FLOATS_, n)
