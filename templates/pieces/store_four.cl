//@hole EPILOGUE
vstore4(v, 0, c + (size_t)(g * M + m) * N + n);
//@end
