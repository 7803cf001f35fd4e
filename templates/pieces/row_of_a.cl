int row_at = 0;
int4 row_edges = 0;
//@hole A_ROW
row_at = (g * M + m) * K;
//@end
