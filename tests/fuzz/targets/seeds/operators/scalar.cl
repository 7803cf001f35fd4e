/*! oclc-op 1
name = "my.scalar"
in = ["x: T[...]", "s: T[]"]
out = ["y: T[...]"]
attr = { slope = 0.1, taps = [0.5, 1.5], n = 2 }
scalar = "bent"
reference = "y = x > 0 ? x : slope * x + s"
gradient = { x = "d_y * (x > 0 ? 1 : slope)" }
flops = "3"
*/
// A constant, and two functions.
#define BEND 1.0f
float of(float x) { return x * BEND; }
float bent(float x, float s, float slope) { return x > 0.0f ? of(x) : fma(slope, x, s); }
