#include <oclc/compiler.h>

int main(void) { return oclc_compile_file("none.onnx", 0, 0, 0) == OCLC_E_ARGUMENT ? 0 : 1; }
