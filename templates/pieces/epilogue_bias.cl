//@hole EPILOGUE
v += LOAD(bias + n);
//@end
//@hole STORE
store_columns(v, c + (size_t)m * N, n);
//@end
