/* SPDX-License-Identifier: Apache-2.0
 *
 * perigee/data.h: pg.data/0, what input pipelines are made of: sources, transforms and codecs. A part of the specification
 * that plugin.h is, in a header of its own because a draft that few include may change without all others being built
 * anew. What plugin.h says of sizes, strings, threads and lifetimes holds here; so do its tags.
 *
 * A source has elements, a transform makes one element of another, a codec makes a tensor of bytes and bytes of a tensor.
 * All take options: attributes, as operators have, in a packed struct that the plugin lays out; all of them are given by
 * name. PG_ATTR_TEXT, PG_ATTR_TEXTS, PG_ATTR_TENSOR and PG_ATTR_TENSORS are known here alone.
 *
 * MEMORY. What is made is written where the host says: the maker names dtype and shape, gets an address, and fills it
 * before its next call. So contents are made once, wherever the host wants to have them.
 *
 * ORDER. Elements do not depend on the number of threads, on what was made before, or on when. Random ones are drawn from
 * pg_transform_call.random alone.
 */
#ifndef PERIGEE_DATA_H
#define PERIGEE_DATA_H

#include "perigee/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PG_IFACE_DATA "pg.data/0"

#define PG_ATTR_TEXT 13u /* const char *, UTF-8, never NULL; given text lives until the function returns */
/* Of sources and transforms. A default is NULL, which stands for none; what is given lives until `close`. */
#define PG_ATTR_TEXTS 14u   /* const pg_texts *, never NULL when given: a list of texts */
#define PG_ATTR_TENSOR 15u  /* const pg_field *, NULL where it was not given */
#define PG_ATTR_TENSORS 16u /* const pg_tensors *, never NULL when given: tensors by name */

/* A flag of PG_ATTR_TENSOR and PG_ATTR_TENSORS. Without it contents are dense, row-major and in the processor's memory:
 * what is not is copied once. With it nothing is copied: `data` is NULL where contents lie otherwise, and slices are
 * the sink's to take. */
#define PG_ATTR_AS_IS 16u

/* ---- fields -------------------------------------------------------------------------------------------------------- */

#define PG_FIELD_TENSOR 0u
#define PG_FIELD_NUMBER 1u
#define PG_FIELD_BOOLEAN 2u
#define PG_FIELD_BYTES 3u /* a text, or what a file holds */
#define PG_FIELD_TEXTS 4u /* a list of such */

/* One of a list. */
typedef struct pg_text {
  uint64_t bytes;
  const void *data;
} pg_text;

/* A part of an element, under a name. */
typedef struct pg_field {
  uint32_t size;
  uint32_t kind; /* PG_FIELD_* */
  const char *name;
  uint32_t dtype, rank; /* of a tensor; 0 else */
  const int64_t *shape;
  double number;    /* PG_FIELD_NUMBER; PG_FIELD_BOOLEAN: 0 or 1 */
  uint64_t bytes;   /* of contents: PG_FIELD_BYTES, PG_FIELD_TEXTS; of a tensor in what is given to a plugin, and not read
                       else */
  const void *data; /* contents in what is given to a plugin: dense, row-major; NULL where there are none. Not read else.
                       Of PG_FIELD_TEXTS both ways: pg_text, one behind the other, which are copied */
} pg_field;

typedef struct pg_texts {
  uint32_t size;
  uint32_t count;
  const char *const *list;
} pg_texts;

typedef struct pg_tensors {
  uint32_t size;
  uint32_t count;
  const pg_field *const *list; /* in the order of their names */
} pg_tensors;

struct pg_bytes;
struct pg_coded_info;

/* Encoded bytes, for the host to find a codec of whichever plugin. */
typedef struct pg_coded {
  uint32_t size;
  uint32_t reserved;
  const char *path;             /* of a file that has them; NULL: `bytes` are meant */
  const struct pg_bytes *bytes; /* read where they are wanted */
  const char *codec;            /* its name; NULL: bytes say it by how they begin, a path says it by how it ends */
  const char *options;          /* lines "key=value": max_pixels; scale, top, left, height and width where the codec has
                                   such; what it adds. NULL: none */
} pg_coded;

/* The host's side of an element that is made. `field` adds a field, or puts another in place of one of that name, and
 * returns memory for its contents, aligned like tensors; NULL with error->code (0 before the call) not PG_OK: stop; NULL
 * and PG_OK: there is nothing to fill in (numbers, booleans, what is empty). `drop` takes a field away; PG_E_NOT_FOUND.
 * Both may be called until the function returns that got it, on its thread. */
typedef struct pg_field_sink {
  uint32_t size;
  uint32_t reserved;
  void *context;
  void *(*field)(void *context, const pg_field *field, pg_error *error);
  int32_t (*drop)(void *context, const char *name, pg_error *error);
  /* What follows an older host does not have: PG_HAS tells.
   * A field that is slice `index` along the first axis of a tensor among the options, which is not copied. */
  int32_t (*slice)(void *context, const char *name, const pg_field *of, int64_t index, pg_error *error);
  /* One that is such slices, one behind the other, along a first axis of `count`. */
  int32_t (*slices)(void *context, const char *name, const pg_field *of, uint64_t count, const int64_t *indices,
                    pg_error *error);
  /* Codecs, whose errors name the file. `probe`: what the header says. `decode`: into a sink of the plugin's, which gets
   * one tensor and notes; its memory may be a field's. */
  int32_t (*probe)(void *context, const pg_coded *what, struct pg_coded_info *out, pg_error *error);
  int32_t (*decode)(void *context, const pg_coded *what, const pg_sink *to, pg_error *error);
} pg_field_sink;

/* ---- sources ------------------------------------------------------------------------------------------------------- */

#define PG_COUNT_UNKNOWN INT64_MAX /* nobody knows before the end */

/* flags */
#define PG_SOURCE_IN_ORDER 1u /* elements are read one after the other, from 0, each once */

/* A source that is not PG_SOURCE_IN_ORDER is asked for any position below its count, by many threads at once, and for
 * the same one as often as the host likes; its count is known. A pass that goes on in the middle begins there.
 *
 * One that is PG_SOURCE_IN_ORDER is used by one thread at a time, and opened anew for each pass. A pass that goes on in
 * the middle skips what came before. */
typedef struct pg_source_info {
  uint32_t size;
  uint32_t flags; /* PG_SOURCE_* */
  uint32_t attr_count, attr_size;
  const char *name, *doc; /* letters, digits and "_", as all names here */
  const pg_attr_info *const *attrs;
  const void *defaults;
  void *user;
  /* Required, as read and close are. Checks the options. `*source` is given to the others; `*count` is that of elements,
   * or PG_COUNT_UNKNOWN. [any] */
  int32_t (*open)(void *user, const void *attrs, void **source, int64_t *count, pg_error *error);
  /* Element `position`. `*end` (0 before the call) becomes 1, and no field is given, where there is none because the
   * count was unknown. Errors about a file name it, with the offset. [any] */
  int32_t (*read)(void *user, void *source, int64_t position, const pg_field_sink *sink, uint32_t *end, pg_error *error);
  /* Optional, of PG_SOURCE_IN_ORDER: goes over element `position` as read would, without making it. [any] */
  int32_t (*skip)(void *user, void *source, int64_t position, uint32_t *end, pg_error *error);
  void (*close)(void *user, void *source); /* nobody reads [any] */
  /* Optional, of those that are not PG_SOURCE_IN_ORDER and whose fields are all tensors, of one dtype and shape each: many
   * elements as one. Each field is what read gives, with an axis of `count` before its own. [any] */
  int32_t (*gather)(void *user, void *source, uint64_t count, const int64_t *positions, const pg_field_sink *sink,
                    pg_error *error);
} pg_source_info;

/* ---- transforms ---------------------------------------------------------------------------------------------------- */

typedef struct pg_transform_call {
  uint32_t size;
  uint32_t count;               /* fields */
  const pg_field *const *fields;
  int64_t sample;  /* position of the element in its pass, from 0 */
  uint64_t seed, epoch;
  uint64_t random; /* 64 bits made of seed, epoch, sample, and which transform of the pipeline it is */
} pg_transform_call;

typedef struct pg_transform_info {
  uint32_t size;
  uint32_t reserved;
  uint32_t attr_count, attr_size;
  const char *name, *doc;
  const pg_attr_info *const *attrs;
  const void *defaults;
  void *user;
  /* Required, as all are. Checks the options. [any] */
  int32_t (*open)(void *user, const void *attrs, void **transform, pg_error *error);
  /* Fields that it neither gives nor drops stay as they are. Many threads at once. [any] */
  int32_t (*apply)(void *user, void *transform, const pg_transform_call *call, const pg_field_sink *sink, pg_error *error);
  void (*close)(void *user, void *transform); /* [any] */
} pg_transform_info;

/* ---- codecs -------------------------------------------------------------------------------------------------------- */

/* What is decoded: bytes in memory, or of a file, which are read where they are wanted. [call] */
typedef struct pg_bytes {
  uint32_t size;
  uint32_t reserved;
  uint64_t count;
  const void *data; /* all of them; NULL: not in memory, so that read is to be called */
  void *context;
  /* Bytes from `offset` on. Works in either case. Beyond the end: PG_E_DATA_LOSS that says where it ends. */
  int32_t (*read)(void *context, uint64_t offset, void *target, uint64_t count, pg_error *error);
} pg_bytes;

/* Where encoded bytes go, one after the other. [call] */
typedef struct pg_byte_sink {
  uint32_t size;
  uint32_t reserved;
  void *context;
  int32_t (*write)(void *context, const void *bytes, uint64_t count, pg_error *error);
} pg_byte_sink;

#define PG_DECODE_PART 1u  /* begin and extent are obeyed; else the host cuts the part out */
#define PG_DECODE_SCALE 2u /* there are scales beside 1 */

/* What a header says of the tensor that decode makes of the whole at scale 1. */
typedef struct pg_coded_info {
  uint32_t size;
  uint32_t dtype, rank;
  uint32_t flags;  /* PG_DECODE_* */
  uint32_t scales; /* bit k: decode can make it 2^k times smaller; bit 0 is set */
  uint32_t reserved;
  int64_t shape[PG_MAX_RANK]; /* of a picture: rows, columns, channels */
} pg_coded_info;

typedef struct pg_decode {
  uint32_t size;
  uint32_t scale;     /* 1 without PG_DECODE_SCALE. A side of n, of the first two axes, becomes (n + scale - 1) / scale. What is not offered is
                         PG_E_INVALID_ARGUMENT that names the option "scale" */
  int64_t max_pixels; /* a header that claims more rows x columns, or elements of what is no picture, is PG_E_DATA_LOSS
                         before there is memory for them */
  /* The part of the first two axes, after `scale`, that is wanted; an extent of 0: all from `begin` on. One that is not
   * inside is PG_E_INVALID_ARGUMENT. All are 0 where the codec has not said PG_DECODE_PART. */
  int64_t begin[2], extent[2];
  const void *attrs;
} pg_decode;

/* Bytes are not trusted: every length, offset and shape is checked before it is used, and what is damaged is
 * PG_E_DATA_LOSS. The host puts the file's name before what is said. */
typedef struct pg_codec_info {
  uint32_t size;
  uint32_t flags; /* PG_DECODE_* of any of its kind */
  const char *name, *doc;
  const char *extensions; /* ".jpg .jpeg". Names and extensions are one plugin's each, those of formats among them */
  uint32_t decode_attr_count, decode_attr_size;
  const pg_attr_info *const *decode_attrs;
  const void *decode_defaults;
  uint32_t encode_attr_count, encode_attr_size;
  const pg_attr_info *const *encode_attrs;
  const void *encode_defaults;
  void *user;
  /* Required, as probe and decode are. Whether bytes that begin so (at most 64, fewer where there are no more) are of its
   * kind: 1 or 0. [any] */
  int32_t (*matches)(void *user, const void *head, uint64_t count);
  int32_t (*probe)(void *user, const pg_bytes *from, pg_coded_info *out, pg_error *error); /* [any] */
  /* Gives the sink one tensor, named "data", and notes. [any] */
  int32_t (*decode)(void *user, const pg_bytes *from, const pg_decode *how, const pg_sink *sink, pg_error *error);
  /* NULL: it only decodes. `what` is dense, row-major, in host memory (buffer is its address). notes: key, value, key,
   * value, ...; one that the kind cannot keep is PG_E_INVALID_ARGUMENT. [any] */
  int32_t (*encode)(void *user, const pg_tensor *what, const void *attrs, uint32_t note_count, const char *const *notes,
                    const pg_byte_sink *to, pg_error *error);
} pg_codec_info;

typedef struct pg_data {
  uint32_t size;
  uint32_t source_count, transform_count, codec_count;
  const pg_source_info *const *sources;
  const pg_transform_info *const *transforms;
  const pg_codec_info *const *codecs;
} pg_data;

#ifdef __cplusplus
}
#endif

#endif
