// Extents of a product: literals, or names (not one letter) of int variables that the hole SIZES declares.
//@param G 1 {1.., name}  independent products: batch of a matmul, groups of a convolution
//@param M 128 {1.., name} N 768 {1.., name}  rows, columns
//@param K 768 {1.., name} TAPS 1 {1..}  summed elements of a tap, taps
