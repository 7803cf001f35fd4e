// Steps of BK terms.
//@param FLAT 0 {0, 1}  1: taps and k are one axis of TAPS * K elements, for a short K that is a literal
#define DEPTH (FLAT ? TAPS * K : K)
#define STEPS (FLAT ? (TAPS * K + BK - 1) / BK : TAPS * ((K + BK - 1) / BK))
#define RAGGED (DEPTH % BK != 0)
