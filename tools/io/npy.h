// NumPy's .npy format, versions 1 to 3: a strict reader and a writer.
#pragma once
#include <string>

#include "tools/io/tensor.h"

namespace oclc::io {

// Reads a .npy file. Fortran order and big endian are converted. Pickled objects, structured types, headers above 64 KiB and
// anything but a literal dictionary with the keys descr, fortran_order and shape are refused. Throws FileError.
Tensor read_npy(const std::string& path);
// The same from bytes; `where` stands for the path in messages.
Tensor parse_npy(const std::string& bytes, const std::string& where);

// Writes atomically (a temporary file, then rename). bfloat16 is written as float32. Throws FileError.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace oclc::io
