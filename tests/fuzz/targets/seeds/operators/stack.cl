/*! oclc-op 1
name = "my.act"
in = ["xs: T[...]*"]
out = ["y: T[...]"]
formula = "y = softplus(fma(sum(n: xs[n]), 2.5, 1)) / len(xs) + f32(1 == 2)"
*/
