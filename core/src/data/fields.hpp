// SPDX-License-Identifier: Apache-2.0
// The host's side of elements that plugins make (pg_field_sink): fields by name, their memory, slices of tensors among
// the options, and what codecs of other plugins make of bytes.
#pragma once

#include <string>
#include <vector>

#include "data/batch.hpp"
#include "data/options.hpp"

namespace perigee {

// One element. One thread at a time.
class FieldMaker {
 public:
  // `landing`: where tensors are wanted; null: anywhere. `options`: whose slices may be asked for; null: nobody's.
  // `like`: a layout that it is likely to have, or null.
  FieldMaker(bool may_drop, const Landing* landing, const Options* options, LayoutRef like = nullptr);
  FieldMaker(const FieldMaker&) = delete;
  FieldMaker& operator=(const FieldMaker&) = delete;

  pg_field_sink sink();
  // What was given.
  Element made();
  // The same, and the fields of `in` that are not among them.
  Element made_of(Element in);
  bool empty() const { return fields_.empty() && given_ == 0; }
  // Fields whose tensors do not have `count` slices; empty: there is none.
  std::string without_axis(int64_t count);

  const Layout* in = nullptr;  // of what fields may be dropped

 private:
  struct Field {
    std::string key;  // as in layouts
    std::string layout;
    std::vector<Leaf> more;  // behind the first, of a list
    Leaf leaf;
    bool dropped = false;
  };
  static void* add(void* context, const pg_field* field, pg_error* error);
  static int32_t drop(void* context, const char* name, pg_error* error);
  static int32_t slice(void* context, const char* name, const pg_field* of, int64_t index, pg_error* error);
  static int32_t slices(void* context, const char* name, const pg_field* of, uint64_t count, const int64_t* indices,
                        pg_error* error);
  static int32_t probe(void* context, const pg_coded* what, pg_coded_info* out, pg_error* error);
  static int32_t decode(void* context, const pg_coded* what, const pg_sink* to, pg_error* error);

  // Where one of that kind goes: a leaf of `like`, or else a field.
  Leaf& place(const char* name, char kind);
  Field& place(const char* name);
  void spread();  // from now on there are fields alone
  void* add_field(const pg_field& given);
  TensorRef new_tensor(const pg_field& given) const;
  static void add_texts(const pg_field& given, Field& field);
  void drop_field(const char* name);
  const OptionTensor& option(const char* name, const pg_field* of) const;

  const bool may_drop_;
  const Landing* const landing_;
  const Options* const options_;
  const LayoutRef like_;
  bool is_like_ = false;      // so far, and each of its names has one leaf
  std::vector<Leaf> leaves_;  // of it, then; those of the bits in `given_` are there
  uint64_t given_ = 0;
  std::vector<Field> fields_;  // otherwise, in the order in which they came
};

}  // namespace perigee
