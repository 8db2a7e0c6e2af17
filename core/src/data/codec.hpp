// SPDX-License-Identifier: Apache-2.0
// What codecs of plugins decode and encode, with options and notes as texts.
#pragma once

#include <string>

#include "perigee/data.h"

namespace perigee {

// Bytes that lie in memory.
pg_bytes bytes_in_memory(const void* data, uint64_t count);

// Bytes of a regular file, read where they are wanted.
class FileBytes {
 public:
  explicit FileBytes(const std::string& path);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  const pg_bytes& raw() const { return raw_; }

 private:
  static int32_t read(void* context, uint64_t offset, void* target, uint64_t count, pg_error* error);
  int descriptor_;
  pg_bytes raw_{};
};

// Each throws what the codec says, `shown` before it: how users know the bytes. Options: "key=value" lines; those of
// all codecs (max_pixels, and scale, top, left, height, width where the codec takes them) beside its own.
void decode(const pg_codec_info& codec, const pg_bytes& from, const std::string& shown, const char* options,
            const pg_sink& sink);
pg_coded_info probe(const pg_codec_info& codec, const pg_bytes& from, const std::string& shown);
// Of the codec that `what` names, or that its bytes or its path say (pg_coded).
void decode(const pg_coded& what, const pg_sink& sink);
pg_coded_info probe(const pg_coded& what);
// Notes that are named like options are these.
void encode(const pg_codec_info& codec, const pg_tensor& what, const std::string& shown, uint32_t note_count,
            const char* const* notes, const pg_byte_sink& to);

}  // namespace perigee
