// SPDX-License-Identifier: Apache-2.0
// The header of a .safetensors file, read piece by piece: what it takes does not grow with what a stranger put into it.
#pragma once

#include <string>
#include <vector>

#include "file.hpp"

namespace formats {

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
// Ours: they hold the memory that a header takes to less than 64 MiB beside what it is read into.
constexpr size_t kMaxTensors = 1 << 17, kMaxNotes = 1 << 16;
constexpr size_t kMaxNames = 16 << 20;  // bytes of all names together
constexpr size_t kMaxText = 8 << 20;    // bytes of one text as JSON writes it
constexpr const char* kMetadata = "__metadata__";

struct DtypeName {
  const char* name;
  uint32_t dtype;  // 0: a dtype of the format that Perigee has not
};
constexpr DtypeName kDtypes[] = {
    {"F64", PG_F64},
    {"F32", PG_F32},
    {"F16", PG_F16},
    {"BF16", PG_BF16},
    {"I64", PG_I64},
    {"I32", PG_I32},
    {"I16", PG_I16},
    {"I8", PG_I8},
    {"U8", PG_U8},
    {"BOOL", PG_B8},
    {"C64", PG_C64},
    {"U16", 0},
    {"U32", 0},
    {"U64", 0},
    {"F8_E4M3", PG_DTYPE(PG_FLOAT8_E4M3FN, 8)},
    {"F8_E5M2", PG_DTYPE(PG_FLOAT8_E5M2, 8)},
    {"F8_E8M0", 0},
    {"F6_E2M3", 0},
    {"F6_E3M2", 0},
    {"F4", 0},
};

struct Entry {
  std::string name;
  uint32_t dtype = 0;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

// The entries of the `length` bytes from byte 8 on, checked each for itself. Notes go to the sink at once.
std::vector<Entry> read_header(const File& file, uint64_t length, pg::Sink& sink);

}  // namespace formats
