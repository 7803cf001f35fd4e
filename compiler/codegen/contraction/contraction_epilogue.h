// What happens to a finished tile of sums: the text of the hole EPILOGUE of the templates contraction_*.cl.
#pragma once
#include <string>

#include "compiler/codegen/contraction/contraction_view.h"

namespace oclc {

// Few enough operations to be written out for every row of a tile.
bool has_cheap_epilogue(const ContractionView& view);

// Lines that compute and store the results of the vector `v`, of `width` sums, at row m and columns n ... of group g. With
// `aligned`, n is a multiple of the width and memory is addressed as vectors are.
std::string contraction_epilogue(const ContractionView& view, int width, bool aligned);

// Lines that ask for the cache lines which the former will read and write at row m and columns n ...; empty where nothing is
// read row by row, where that takes coordinates of rows, or where no vectors are stored.
std::string epilogue_ahead(const ContractionView& view, int width);

// Lines that make of `v` what the only result of such a vector is.
std::string epilogue_value(const ContractionView& view, int width, bool aligned);

// The same in two: lines that make of `v` what is stored, which may read memory, and lines that store it. Several of the first
// kind may come before those of the second kind, so that what they read is under way together: of vector j they leave the
// first result in `v` and the others in `others[j]`. The first are empty where truth values are stored, or no vectors.
struct EpiloguePhases {
  std::string value, store;
  int results = 1;
};
// Of windows (Contraction::windows) the second are for a window's first row.
EpiloguePhases contraction_epilogue_phases(const ContractionView& view, int width, bool aligned);

}  // namespace oclc
