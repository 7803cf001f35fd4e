/*! oclc-op 1
name = "my.rule"
in = ["w: T[M, N]", "pre: T[N]", "post: T[M]?"]
out = ["delta: T[M, N]"]
types = { T = ["f32", "f16"] }
attr = { alpha = 1e-3, taps = [1, 2], mode = "a", n = 3 }
where = ["M >= 1 && N % 4 != 5"]
formula = "delta[i,j] = alpha * (has(post) ? post[i] : 1) * w[i,j] * pre[j]"
*/
