/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of perigee/data.h on 64-bit hosts, as layout_test.c has it of plugin.h. It is a draft: what changes here,
 * other than by what is added behind the rest, changes the number in PG_IFACE_DATA.
 */
#include "perigee/data.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type)
#define AT(type, field, bytes) _Static_assert(offsetof(type, field) == (bytes), #type "." #field)

SIZE(pg_field, 56);
AT(pg_field, size, 0);
AT(pg_field, kind, 4);
AT(pg_field, name, 8);
AT(pg_field, dtype, 16);
AT(pg_field, rank, 20);
AT(pg_field, shape, 24);
AT(pg_field, number, 32);
AT(pg_field, bytes, 40);
AT(pg_field, data, 48);

SIZE(pg_text, 16);
AT(pg_text, bytes, 0);
AT(pg_text, data, 8);

SIZE(pg_texts, 16);
AT(pg_texts, size, 0);
AT(pg_texts, count, 4);
AT(pg_texts, list, 8);

SIZE(pg_tensors, 16);
AT(pg_tensors, size, 0);
AT(pg_tensors, count, 4);
AT(pg_tensors, list, 8);

SIZE(pg_coded, 40);
AT(pg_coded, size, 0);
AT(pg_coded, reserved, 4);
AT(pg_coded, path, 8);
AT(pg_coded, bytes, 16);
AT(pg_coded, codec, 24);
AT(pg_coded, options, 32);

SIZE(pg_field_sink, 64);
AT(pg_field_sink, size, 0);
AT(pg_field_sink, reserved, 4);
AT(pg_field_sink, context, 8);
AT(pg_field_sink, field, 16);
AT(pg_field_sink, drop, 24);
AT(pg_field_sink, slice, 32);
AT(pg_field_sink, slices, 40);
AT(pg_field_sink, probe, 48);
AT(pg_field_sink, decode, 56);

SIZE(pg_source_info, 96);
AT(pg_source_info, size, 0);
AT(pg_source_info, flags, 4);
AT(pg_source_info, attr_count, 8);
AT(pg_source_info, attr_size, 12);
AT(pg_source_info, name, 16);
AT(pg_source_info, doc, 24);
AT(pg_source_info, attrs, 32);
AT(pg_source_info, defaults, 40);
AT(pg_source_info, user, 48);
AT(pg_source_info, open, 56);
AT(pg_source_info, read, 64);
AT(pg_source_info, skip, 72);
AT(pg_source_info, close, 80);
AT(pg_source_info, gather, 88);

SIZE(pg_transform_call, 48);
AT(pg_transform_call, size, 0);
AT(pg_transform_call, count, 4);
AT(pg_transform_call, fields, 8);
AT(pg_transform_call, sample, 16);
AT(pg_transform_call, seed, 24);
AT(pg_transform_call, epoch, 32);
AT(pg_transform_call, random, 40);

SIZE(pg_transform_info, 80);
AT(pg_transform_info, size, 0);
AT(pg_transform_info, reserved, 4);
AT(pg_transform_info, attr_count, 8);
AT(pg_transform_info, attr_size, 12);
AT(pg_transform_info, name, 16);
AT(pg_transform_info, doc, 24);
AT(pg_transform_info, attrs, 32);
AT(pg_transform_info, defaults, 40);
AT(pg_transform_info, user, 48);
AT(pg_transform_info, open, 56);
AT(pg_transform_info, apply, 64);
AT(pg_transform_info, close, 72);

SIZE(pg_bytes, 40);
AT(pg_bytes, size, 0);
AT(pg_bytes, reserved, 4);
AT(pg_bytes, count, 8);
AT(pg_bytes, data, 16);
AT(pg_bytes, context, 24);
AT(pg_bytes, read, 32);

SIZE(pg_byte_sink, 24);
AT(pg_byte_sink, size, 0);
AT(pg_byte_sink, reserved, 4);
AT(pg_byte_sink, context, 8);
AT(pg_byte_sink, write, 16);

SIZE(pg_coded_info, 88);
AT(pg_coded_info, size, 0);
AT(pg_coded_info, dtype, 4);
AT(pg_coded_info, rank, 8);
AT(pg_coded_info, flags, 12);
AT(pg_coded_info, scales, 16);
AT(pg_coded_info, reserved, 20);
AT(pg_coded_info, shape, 24);

SIZE(pg_decode, 56);
AT(pg_decode, size, 0);
AT(pg_decode, scale, 4);
AT(pg_decode, max_pixels, 8);
AT(pg_decode, begin, 16);
AT(pg_decode, extent, 32);
AT(pg_decode, attrs, 48);

SIZE(pg_codec_info, 120);
AT(pg_codec_info, size, 0);
AT(pg_codec_info, flags, 4);
AT(pg_codec_info, name, 8);
AT(pg_codec_info, doc, 16);
AT(pg_codec_info, extensions, 24);
AT(pg_codec_info, decode_attr_count, 32);
AT(pg_codec_info, decode_attr_size, 36);
AT(pg_codec_info, decode_attrs, 40);
AT(pg_codec_info, decode_defaults, 48);
AT(pg_codec_info, encode_attr_count, 56);
AT(pg_codec_info, encode_attr_size, 60);
AT(pg_codec_info, encode_attrs, 64);
AT(pg_codec_info, encode_defaults, 72);
AT(pg_codec_info, user, 80);
AT(pg_codec_info, matches, 88);
AT(pg_codec_info, probe, 96);
AT(pg_codec_info, decode, 104);
AT(pg_codec_info, encode, 112);

SIZE(pg_data, 40);
AT(pg_data, size, 0);
AT(pg_data, source_count, 4);
AT(pg_data, transform_count, 8);
AT(pg_data, codec_count, 12);
AT(pg_data, sources, 16);
AT(pg_data, transforms, 24);
AT(pg_data, codecs, 32);
