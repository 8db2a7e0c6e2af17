// SPDX-License-Identifier: Apache-2.0
// Kinds of files of records: where their records are, and what is in one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../contents.hpp"
#include "perigee/data.hpp"

namespace formats {

// The bytes of a file that are a record.
struct Place {
  uint64_t begin, end;
};

struct RecordIndex {
  std::vector<Place> places;
  std::string damage;  // what ends it early: where, and how; empty: nothing does
};

// What a spec says of one field.
struct RecordField {
  std::string name, type, shape, from;
  std::string options;                    // of a picture, as lines
  bool optional = false;                  // it may be missing: somebody else gives it then
  const pg_field* preset = nullptr;       // what stands for a missing one
  const pg_field* preset_ends = nullptr;  // where each of its texts ends
};

class RecordKind {
 public:
  virtual ~RecordKind() = default;
  virtual bool is_packed(const File& file) const = 0;
  virtual RecordIndex index(const FileContents& file) const = 0;
  // How messages call a record, and its fields. What is wrong with it throws PG_E_DATA_LOSS without saying where.
  virtual std::string describe(std::string_view bytes, Place place, int64_t number) const = 0;
  virtual void give(std::string_view bytes, Place place, pg::FieldSink& out) const = 0;
};

std::unique_ptr<RecordKind> framed_records(std::vector<RecordField> fields, bool raw);
std::unique_ptr<RecordKind> sharded_records(std::vector<RecordField> fields, bool raw);

[[noreturn]] inline void fail_record(const std::string& message) { throw pg::Error(PG_E_DATA_LOSS, message); }

}  // namespace formats
