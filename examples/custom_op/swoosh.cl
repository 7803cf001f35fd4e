/*! oclc-op 1
# An activation of speech recognizers (k2, icefall): near 0 for small x, near x for large ones.
name    = "k2.SwooshL"
in      = ["x: T[...]"]
out     = ["y: T[...]"]
attr    = { offset = 4.0, slope = 0.08, shift = 0.035 }
formula = "y = softplus(x - offset) - slope * x - shift"
*/
