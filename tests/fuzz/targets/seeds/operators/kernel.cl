/*! oclc-op 1
name = "my.kernel"
in = ["w: T[M, N]", "pre: T[N]", "post: T[M]?"]
out = ["delta: T[M, N]"]
types = { T = ["f32", "f64"] }
attr = { alpha = 1e-6 }
kernel = "rule"
each = ["M", "N + 0"]
group = [1, 64]
local = { t = "float[64]" }
flops = "3 * M * N"
bytes = "default"
inplace = { delta = "w" }
ragged = true
reference = "delta[i, j] = alpha * w[i, j] * pre[j]"
*/
OP(rule) {
  const int i = ID(0), j = ID(1);
  LOCAL(t)[get_local_id(0)] = LOAD(pre, j);
  BARRIER();
  if (i < SIZE(M)) STORE(delta, i, j, alpha * LOAD(w, i, j) * LOCAL(t)[get_local_id(0)]);  /* not "*/" */
}
