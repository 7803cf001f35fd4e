// A float is the sum of bfloat16 parts, of whose products so many are summed; see tiles_amx.cl.
//@param PRODUCTS 6 {1, 3, 6}
#define PARTS (PRODUCTS == 6 ? 3 : PRODUCTS == 3 ? 2 : 1)
#define STEP (PARTS * 1024)
//@include join
#define SPLIT JOIN(oclc_split_, PRODUCTS)
#define MULTIPLY JOIN(oclc_tiles_multiply_, PRODUCTS)
