const int t = first_tile + r;
const INDEX image = t / (TILES_Y * TILES_X);
const int top = t % (TILES_Y * TILES_X) / TILES_X * T;
const int left = t % TILES_X * T;
