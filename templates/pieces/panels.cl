// MR rows and a panel of NV vectors of columns are a register tile.
//@param MR 12 {1..16} NV 2 {1..8}  MR * NV + NV + 1 <= vector registers: 12x2, 10x2, 7x2, 8x3, 6x4, 4x4 of 32; 6x2, 4x3 of 16
//@param EPILOGUE_UNROLL MR {1, MR}  MR: no copy through memory, for a cheap epilogue; 1: small code, for an expensive one
#define PW (NV * VW)
#define PANELS ((N + PW - 1) / PW)
