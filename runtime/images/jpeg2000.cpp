#ifdef OCLC_HAS_JPEG2000
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "runtime/images/formats.h"

namespace oclc::images {
namespace {

struct Jpeg2000Bytes {
  File file;
  std::size_t at = 0;
};

OPJ_SIZE_T read_jpeg2000_bytes(void* to, OPJ_SIZE_T bytes, void* data) {
  auto& source = *static_cast<Jpeg2000Bytes*>(data);
  const std::size_t count = std::min(bytes, source.file.size() - source.at);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);  // the end
  std::memcpy(to, source.file.data() + source.at, count);
  source.at += count;
  return count;
}

OPJ_BOOL seek_jpeg2000(OPJ_OFF_T offset, void* data) {
  auto& source = *static_cast<Jpeg2000Bytes*>(data);
  if (offset < 0 || static_cast<std::size_t>(offset) > source.file.size()) return OPJ_FALSE;
  source.at = static_cast<std::size_t>(offset);
  return OPJ_TRUE;
}

OPJ_OFF_T skip_jpeg2000(OPJ_OFF_T bytes, void* data) {
  return seek_jpeg2000(static_cast<OPJ_OFF_T>(static_cast<Jpeg2000Bytes*>(data)->at) + bytes, data) == OPJ_TRUE ? bytes : -1;
}

void check_jpeg2000(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("OpenJPEG: ") + what);
}

}  // namespace

void read_jpeg2000(File file, const Room& room) {
  Jpeg2000Bytes source{file};
  const std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> stream(opj_stream_default_create(OPJ_TRUE), opj_stream_destroy);
  const std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)> codec(
      opj_create_decompress(file[0] == 0 ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), opj_destroy_codec);
  check_jpeg2000(stream && codec, "out of memory");
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.size());
  opj_stream_set_read_function(stream.get(), read_jpeg2000_bytes);
  opj_stream_set_seek_function(stream.get(), seek_jpeg2000);
  opj_stream_set_skip_function(stream.get(), skip_jpeg2000);
  opj_dparameters_t parameters{};
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* raw = nullptr;
  const bool head =
      opj_setup_decoder(codec.get(), &parameters) == OPJ_TRUE && opj_read_header(stream.get(), codec.get(), &raw) == OPJ_TRUE;
  const std::unique_ptr<opj_image_t, void (*)(opj_image_t*)> image(raw, opj_image_destroy);
  check_jpeg2000(head && image, "the head is damaged");
  unsigned char* to = room(std::int64_t{image->y1} - image->y0, std::int64_t{image->x1} - image->x0);
  if (!to) return;
  check_jpeg2000(opj_decode(codec.get(), stream.get(), image.get()) == OPJ_TRUE, "the pixels are damaged");
  const std::size_t count = std::size_t{image->y1 - image->y0} * (image->x1 - image->x0);
  const OPJ_UINT32 colours = image->numcomps >= 3 ? 3 : 1;
  if (image->numcomps < 1 || image->color_space == OPJ_CLRSPC_SYCC || image->color_space == OPJ_CLRSPC_CMYK)
    throw std::runtime_error("wanted grey, or red, green and blue, found another space of colours");
  for (OPJ_UINT32 c = 0; c < colours; ++c) {
    const opj_image_comp_t& plane = image->comps[c];
    if (plane.prec != 8 || plane.sgnd != 0 || !plane.data || std::size_t{plane.w} * plane.h != count)
      throw std::runtime_error("wanted planes of 8 bits a pixel, all of the image's size");
  }
  for (std::size_t i = 0; i < count; ++i)
    for (OPJ_UINT32 c = 0; c < 3; ++c)
      *to++ = static_cast<unsigned char>(std::clamp(image->comps[colours == 3 ? c : 0].data[i], 0, 255));
}

}  // namespace oclc::images
#else
#include "runtime/images/formats.h"

void oclc::images::read_jpeg2000(File, const Room&) { refuse_format(); }
#endif
