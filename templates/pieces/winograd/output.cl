//@with X Y J  the T results YJ, Y[0] to Y[T - 1] followed by J, of the WIN points X
#if WIN == 4
$Y[0]$J = $X[0] + ($X[1] + $X[2]);
$Y[1]$J = ($X[1] - $X[2]) + $X[3];
#else
const VEC e = $X[1] + $X[2], o = $X[1] - $X[2], f = $X[3] + $X[4], h = $X[3] - $X[4];
$Y[0]$J = $X[0] + e + f;
#if T == 2
$Y[1]$J = fma(h, 1.5f, fma(o, 0.75f, $X[5]));
#else
$Y[1]$J = fma(h, 1.5f, 0.75f * o);
$Y[2]$J = fma(f, 2.25f, 0.5625f * e);
$Y[3]$J = fma(h, 3.375f, fma(o, 0.421875f, $X[5]));
#endif
#endif
