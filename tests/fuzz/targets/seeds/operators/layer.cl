/*! oclc-op 1
name = "my.layer"
in = ["x: T[..., K]", "w: T[N, K]", "at: i64[N]"]
out = ["y: T[..., N]", "s: T[2 * K + 1]"]
formula = '''
h[n] = sum(k: x[k] * w[n, k]) - max(k, n2: w[n2, k])
y[n] = h[n] > 0 ? -h[n] : w[at[n], 0] # a comment
s[at[n]] += pad(w, 0)[n + 1, n] + mean(k: w[n, k])
'''
*/
