// Learning rules of spiking networks: what a step adds to weights w[M, N] from N cells that fire at rates `pre` to M cells.

/*! oclc-op 1
# Voltage-dependent: by both cells' activities and the weight itself.
name    = "nef.Voltage"
in      = ["w: T[M, N]", "pre: T[N]", "post: T[M]"]
out     = ["delta: T[M, N]"]
attr    = { alpha = 1e-6 }
formula = "delta[i, j] = alpha * post[i] * w[i, j] * pre[j]"
*/

/*! oclc-op 1
# Bienenstock, Cooper and Munro 1982: theta is the low-passed activity of each cell.
name    = "nef.BCM"
in      = ["pre: T[N]", "post: T[M]", "theta: T[M]"]
out     = ["delta: T[M, N]"]
attr    = { alpha = 1e-9 }
formula = "delta[i, j] = alpha * post[i] * (post[i] - theta[i]) * pre[j]"
*/

/*! oclc-op 1
# Oja 1982: Hebb's rule with forgetting by beta.
name    = "nef.Oja"
in      = ["w: T[M, N]", "pre: T[N]", "post: T[M]"]
out     = ["delta: T[M, N]"]
attr    = { alpha = 1e-6, beta = 1.0 }
formula = "delta[i, j] = alpha * (post[i] * pre[j] - beta * post[i] * post[i] * w[i, j])"
*/

/*! oclc-op 1
# Prescribed error sensitivity: decoders w[D, N] follow an error of D numbers.
name    = "nef.PES"
in      = ["error: T[D]", "pre: T[N]"]
out     = ["delta: T[D, N]"]
attr    = { alpha = 1e-4 }
formula = "delta[d, j] = -alpha * error[d] * pre[j] / N"
*/

/*! oclc-op 1
# Voja: encoders e[M, D] of cells that fire turn to the input x, scaled as they are by s.
name    = "nef.Voja"
in      = ["e: T[M, D]", "x: T[D]", "post: T[M]", "s: T[M]"]
out     = ["delta: T[M, D]"]
attr    = { alpha = 1e-3 }
formula = "delta[i, d] = alpha * post[i] * (s[i] * x[d] - e[i, d])"
*/
