#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
