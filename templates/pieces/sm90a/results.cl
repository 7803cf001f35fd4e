//@param RESULTS 1 {1..}  what EPILOGUE stores of each vector: v, and RESULTS - 1 vectors others[j] that EPILOGUE_VALUE leaves
//@param AT_ONCE 4 {1, 2, 4}  vectors of the epilogue whose operands are read together
