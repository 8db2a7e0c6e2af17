// SPDX-License-Identifier: Apache-2.0
// Zip archives, read: APPNOTE.TXT of PKWARE describes the records. An archive says most things twice, and one that
// contradicts itself is damaged.
#pragma once

#include <zlib.h>

#include <memory>
#include <string>
#include <vector>

#include "file.hpp"

namespace formats {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;

struct Member {
  std::string name;
  uint64_t flags, method, crc, packed, size;
  uint64_t offset;  // of its record
  uint64_t data;    // of its contents
};

// All members: stored or deflated, each where the directory says, under the name that it has there, none in another.
std::vector<Member> read_directory(const File& file);

// What a member holds, from first to last byte. What has been read is only true once finish() has returned.
class Contents {
 public:
  Contents(const File& file, const Member& member);
  void read(void* target, uint64_t bytes);
  void finish();

 private:
  void fill();
  void inflate(void* target, uint64_t bytes);
  void measure();

  const File& file_;
  const Member& member_;
  uint64_t in_ = 0, out_ = 0;  // bytes taken, bytes given
  uint64_t crc_;
  std::vector<unsigned char> piece_;
  struct End {
    void operator()(z_stream* stream) const;
  };
  std::unique_ptr<z_stream, End> stream_;
  bool ended_ = false;
};

}  // namespace formats
