// What a step of 1 ms does to spiking neurons and to the weights between them.

/*! oclc-op 1
# Leaky integrate-and-fire neurons: currents j, voltages v, refractory times r. A neuron whose voltage passes 1 spikes, within the
# step at the time that its current says, and rests for tau_ref. s is 1 / dt where it spiked.
name    = "spiking.LIF"
in      = ["j: T[E, N]", "v: T[E, N]", "r: T[E, N]"]
out     = ["s: T[E, N]", "v2: T[E, N]", "r2: T[E, N]"]
types   = { T = ["f32"] }
attr    = { dt = 1e-3, tau_rc = 20e-3, tau_ref = 2e-3 }
formula = """
t[e, n] = min(max(dt - r[e, n], 0), dt)
u[e, n] = j[e, n] - (j[e, n] - v[e, n]) * exp(-t[e, n] / tau_rc)
late[e, n] = -tau_rc * log(max(1 - (u[e, n] - 1) / max(j[e, n] - 1, 1e-9), 1e-9))
s[e, n] = u[e, n] > 1 ? 1 / dt : 0
v2[e, n] = u[e, n] > 1 ? 0 : max(u[e, n], 0)
r2[e, n] = u[e, n] > 1 ? tau_ref + dt - late[e, n] : r[e, n] - dt
"""
*/

/*! oclc-op 1
# Prescribed error sensitivity: what a step adds to decoders of N cells, which follow an error of D numbers.
name    = "spiking.PES"
in      = ["error: T[D, 1]", "rates: T[1, N]"]
out     = ["delta: T[D, N]"]
types   = { T = ["f32"] }
attr    = { rate = 1e-4, dt = 1e-3 }
formula = "delta[i, k] = -rate * dt / N * error[i, 0] * rates[0, k]"
*/

/*! oclc-op 1
# A voltage-dependent rule after Clopath, Buesing, Vasilaki and Gerstner 2010: a weight grows with its input's trace where voltage v
# and its low-passed value are high, and falls with its input's rate where the low-passed voltage is high; it stays in [0, most].
name      = "spiking.Voltage"
in        = ["w: T[M, N]", "rates: T[1, N]", "trace: T[1, N]", "v: T[1, M]", "low: T[1, M]"]
out       = ["w2: T[M, N]"]
types     = { T = ["f32"] }
attr      = { up = 4e-4, down = 2e-5, theta = 0.6, theta_low = 0.3, most = 1.0 }
kernel    = "voltage"
each      = ["M", "N"]
flops     = "10*M*N"
inplace   = { w2 = "w" }
reference = "w2[i, k] = min(max(w[i, k] + up * trace[0, k] * max(v[0, i] - theta, 0) * max(low[0, i] - theta_low, 0) - down * rates[0, k] * max(low[0, i] - theta_low, 0), 0), most)"
*/
OP(voltage) {
  const int i = ID(0), k = ID(1);
  const float open = fmax(LOAD(low, 0, i) - theta_low, 0.0f);
  const float grown = up * LOAD(trace, 0, k) * fmax(LOAD(v, 0, i) - theta, 0.0f) * open;
  const float fallen = down * LOAD(rates, 0, k) * open;
  STORE(w2, i, k, fmin(fmax(LOAD(w, i, k) + grown - fallen, 0.0f), most));
}
