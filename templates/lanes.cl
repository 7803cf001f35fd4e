// Combinations over the lanes of a vector, as a balanced tree.

//@provides oclc_lanes_sum
float __attribute__((overloadable)) oclc_lanes_sum(float4 v) { return (v.x + v.y) + (v.z + v.w); }
float __attribute__((overloadable)) oclc_lanes_sum(float8 v) { return oclc_lanes_sum(v.lo + v.hi); }
float __attribute__((overloadable)) oclc_lanes_sum(float16 v) { return oclc_lanes_sum(v.lo + v.hi); }
int __attribute__((overloadable)) oclc_lanes_sum(int4 v) { return (v.x + v.y) + (v.z + v.w); }
int __attribute__((overloadable)) oclc_lanes_sum(int8 v) { return oclc_lanes_sum(v.lo + v.hi); }
int __attribute__((overloadable)) oclc_lanes_sum(int16 v) { return oclc_lanes_sum(v.lo + v.hi); }

//@provides oclc_lanes_product
float __attribute__((overloadable)) oclc_lanes_product(float4 v) { return (v.x * v.y) * (v.z * v.w); }
float __attribute__((overloadable)) oclc_lanes_product(float8 v) { return oclc_lanes_product(v.lo * v.hi); }
float __attribute__((overloadable)) oclc_lanes_product(float16 v) { return oclc_lanes_product(v.lo * v.hi); }
int __attribute__((overloadable)) oclc_lanes_product(int4 v) { return (v.x * v.y) * (v.z * v.w); }
int __attribute__((overloadable)) oclc_lanes_product(int8 v) { return oclc_lanes_product(v.lo * v.hi); }
int __attribute__((overloadable)) oclc_lanes_product(int16 v) { return oclc_lanes_product(v.lo * v.hi); }

//@provides oclc_lanes_max
float __attribute__((overloadable)) oclc_lanes_max(float4 v) { return oclc_max(oclc_max(v.x, v.y), oclc_max(v.z, v.w)); }
float __attribute__((overloadable)) oclc_lanes_max(float8 v) { return oclc_lanes_max(oclc_max(v.lo, v.hi)); }
float __attribute__((overloadable)) oclc_lanes_max(float16 v) { return oclc_lanes_max(oclc_max(v.lo, v.hi)); }
int __attribute__((overloadable)) oclc_lanes_max(int4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }
int __attribute__((overloadable)) oclc_lanes_max(int8 v) { return oclc_lanes_max(max(v.lo, v.hi)); }
int __attribute__((overloadable)) oclc_lanes_max(int16 v) { return oclc_lanes_max(max(v.lo, v.hi)); }

//@provides oclc_lanes_min
float __attribute__((overloadable)) oclc_lanes_min(float4 v) { return oclc_min(oclc_min(v.x, v.y), oclc_min(v.z, v.w)); }
float __attribute__((overloadable)) oclc_lanes_min(float8 v) { return oclc_lanes_min(oclc_min(v.lo, v.hi)); }
float __attribute__((overloadable)) oclc_lanes_min(float16 v) { return oclc_lanes_min(oclc_min(v.lo, v.hi)); }
int __attribute__((overloadable)) oclc_lanes_min(int4 v) { return min(min(v.x, v.y), min(v.z, v.w)); }
int __attribute__((overloadable)) oclc_lanes_min(int8 v) { return oclc_lanes_min(min(v.lo, v.hi)); }
int __attribute__((overloadable)) oclc_lanes_min(int16 v) { return oclc_lanes_min(min(v.lo, v.hi)); }
