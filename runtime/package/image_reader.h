/* Interface of the component liboclc_images.so, loaded by the runtime for plans that read image files. */
#ifndef OCLC_IMAGE_READER_H
#define OCLC_IMAGE_READER_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads an image file of `bytes` bytes: its size, and, unless `rgb` is null, its pixels as red, green and blue of 8 bits, rows
 * from the top. `rgb` has room for the size that an earlier call gave, which `height` and `width` hold then. Returns 0; else
 * `message`, of `message_bytes`, says what was wanted and found. */
typedef int (*oclc_image_read_function)(const unsigned char* file, size_t bytes, int64_t* height, int64_t* width,
                                        unsigned char* rgb, char* message, size_t message_bytes);
#define OCLC_IMAGE_READ_SYMBOL "oclc_image_read_v1"

#ifdef __cplusplus
}
#endif
#endif
