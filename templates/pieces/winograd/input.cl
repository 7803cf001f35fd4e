//@with X Y J  points YJ, Y[0] to Y[WIN - 1] followed by J, of the WIN elements X
#if WIN == 4
$Y[0]$J = $X[0] - $X[2];
$Y[1]$J = $X[1] + $X[2];
$Y[2]$J = $X[1] - $X[2];
$Y[3]$J = $X[3] - $X[1];
#else
const VEC e = fma($X[2], 2.25f, -$X[4]), o = 0.75f * fma($X[1], 2.25f, -$X[3]);
const VEC f = fma($X[2], 0.5625f, -$X[4]), h = 1.5f * fma($X[1], 0.5625f, -$X[3]);
$Y[0]$J = fma($X[0], 1.265625f, fma($X[2], -2.8125f, $X[4]));
$Y[1]$J = o + e;
$Y[2]$J = o - e;
$Y[3]$J = h + f;
$Y[4]$J = h - f;
$Y[5]$J = fma($X[1], 1.265625f, fma($X[3], -2.8125f, $X[5]));
#endif
