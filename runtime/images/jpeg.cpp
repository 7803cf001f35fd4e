#ifdef OCLC_HAS_JPEG
// jpeglib.h wants these before it.
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include "runtime/images/formats.h"

namespace oclc::images {
namespace {

struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void leave_jpeg(j_common_ptr common) {
  auto* errors = reinterpret_cast<JpegErrors*>(common->err);
  errors->base.format_message(common, errors->message);
  std::longjmp(errors->back, 1);
}

void be_silent(j_common_ptr, int) {}

// The steps between which setjmp() may come back hold nothing that would have to be destroyed.
bool read_head(jpeg_decompress_struct& jpeg, JpegErrors& errors, File file) {
  if (setjmp(errors.back)) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file.data(), file.size());
  jpeg_read_header(&jpeg, TRUE);
  return true;
}

bool read_rows(jpeg_decompress_struct& jpeg, JpegErrors& errors, unsigned char* to) {
  if (setjmp(errors.back)) return false;
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = to + std::size_t{jpeg.output_scanline} * jpeg.output_width * 3;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

struct JpegDecoder {
  jpeg_decompress_struct jpeg{};
  JpegErrors errors{};
  JpegDecoder() {
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = leave_jpeg;
    errors.base.emit_message = be_silent;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&jpeg); }
  void check(bool done) const {
    if (!done) throw std::runtime_error(std::string("libjpeg: ") + errors.message);
  }
};

}  // namespace

void read_jpeg(File file, const Room& room) {
  JpegDecoder d;
  d.check(read_head(d.jpeg, d.errors, file));
  if (d.jpeg.num_components != 1 && d.jpeg.num_components != 3)
    throw std::runtime_error("wanted grey or three colours, found " + std::to_string(d.jpeg.num_components) + " components");
  if (unsigned char* to = room(d.jpeg.image_height, d.jpeg.image_width)) d.check(read_rows(d.jpeg, d.errors, to));
}

}  // namespace oclc::images
#else
#include "runtime/images/formats.h"

void oclc::images::read_jpeg(File, const Room&) { refuse_format(); }
#endif
