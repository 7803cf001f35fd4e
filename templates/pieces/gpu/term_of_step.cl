#if FLAT
const int tap = (at_k + in_k) / K;
const int k = (at_k + in_k) % K;
#else
const int tap = at_tap;
const int k = at_k + in_k;
#endif
