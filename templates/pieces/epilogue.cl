//@lines EPILOGUE
//@hole STORE
store_columns(v, c_row, n);
//@end
