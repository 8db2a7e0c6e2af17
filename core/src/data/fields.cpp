// SPDX-License-Identifier: Apache-2.0
#include "data/fields.hpp"

#include <algorithm>
#include <map>

#include "data/codec.hpp"

namespace perigee {

namespace {

std::string key_of(const char* name) {
  const std::string text = name;
  return "s" + std::to_string(text.size()) + ":" + text;
}

void check_name(const char* name) {
  if (name == nullptr || name[0] == '\0') pg::fail_argument("a field has no name");
}

template <class Call>
int32_t as_answer(pg_error* error, const char* where, Call&& call) {
  return pg::guard(error, where, std::forward<Call>(call));
}

}  // namespace

pg_field_sink FieldMaker::sink() {
  return {PG_SIZE(pg_field_sink, decode), 0, this, add, drop, slice, slices, probe, decode};
}

// ---- what plugins call ----

void* FieldMaker::add(void* context, const pg_field* field, pg_error* error) {
  void* memory = nullptr;
  as_answer(error, "field", [&] { memory = static_cast<FieldMaker*>(context)->add_field(*field); });
  return memory;
}

int32_t FieldMaker::drop(void* context, const char* name, pg_error* error) {
  return as_answer(error, "drop", [&] { static_cast<FieldMaker*>(context)->drop_field(name); });
}

int32_t FieldMaker::slice(void* context, const char* name, const pg_field* of, int64_t index, pg_error* error) {
  return as_answer(error, "slice", [&] {
    auto& maker = *static_cast<FieldMaker*>(context);
    check_name(name);
    const OptionTensor& option = maker.option(name, of);
    Field& field = maker.place(name);
    field.layout = "T";
    field.leaf.tensor = slice_of(option, index);
  });
}

int32_t FieldMaker::slices(void* context, const char* name, const pg_field* of, uint64_t count, const int64_t* indices,
                           pg_error* error) {
  return as_answer(error, "slices", [&] {
    auto& maker = *static_cast<FieldMaker*>(context);
    check_name(name);
    const OptionTensor& option = maker.option(name, of);
    Field& field = maker.place(name);
    field.layout = "T";
    field.leaf.tensor = slices_of(option, indices, static_cast<int64_t>(count));
  });
}

int32_t FieldMaker::probe(void*, const pg_coded* what, pg_coded_info* out, pg_error* error) {
  return as_answer(error, "probe", [&] { *out = perigee::probe(*what); });
}

int32_t FieldMaker::decode(void*, const pg_coded* what, const pg_sink* to, pg_error* error) {
  return as_answer(error, "decode", [&] { perigee::decode(*what, *to); });
}

// ---- fields ----

// A new one under that name, in place of one that was there.
FieldMaker::Field& FieldMaker::place(const char* name) {
  std::string key = key_of(name);
  for (Field& field : fields_) {
    if (field.key != key) continue;
    field = Field{};
    field.key = std::move(key);
    return field;
  }
  if (fields_.empty()) fields_.reserve(4);
  Field& field = fields_.emplace_back();
  field.key = std::move(key);
  return field;
}

void* FieldMaker::add_field(const pg_field& given) {
  check_name(given.name);
  if (given.kind > PG_FIELD_TEXTS)
    pg::fail_argument(pg::format("field '%s' is of the unknown kind %u", given.name, given.kind));
  Field made;
  void* memory = nullptr;
  switch (given.kind) {
    case PG_FIELD_TENSOR:
      made.layout = "T";
      memory = add_tensor(given, made);
      break;
    case PG_FIELD_NUMBER: made.layout = "N", made.leaf.number = given.number; break;
    case PG_FIELD_BOOLEAN: made.layout = "B", made.leaf.number = given.number != 0; break;
    case PG_FIELD_TEXTS: add_texts(given, made); break;
    default: made.layout = "S";
  }
  Field& field = place(given.name);
  made.key = std::move(field.key);
  field = std::move(made);
  if (given.kind == PG_FIELD_BYTES) {  // filled before the next call: a short text lies in the field itself
    field.leaf.text.resize(given.bytes);
    memory = given.bytes != 0 ? field.leaf.text.data() : nullptr;
  }
  return memory;
}

void* FieldMaker::add_tensor(const pg_field& given, Field& field) const {
  if (given.rank > PG_MAX_RANK || (given.rank != 0 && given.shape == nullptr))
    pg::fail_argument(pg::format("field '%s' has %u dimensions; at most %d", given.name, given.rank, PG_MAX_RANK));
  for (uint32_t i = 0; i < given.rank; i++) {
    if (given.shape[i] < 0)
      pg::fail_argument(
          pg::format("field '%s' has a side of %lld", given.name, static_cast<long long>(given.shape[i])));
  }
  MetaRef meta = intern_meta(given.dtype, given.rank, given.shape);
  if (landing_ != nullptr) field.leaf.tensor = landing_->place(key_of(given.name), *meta);
  if (!field.leaf.tensor) field.leaf.tensor = make_dense(default_device(), std::move(meta));
  const pg_address a = field.leaf.tensor->address();
  return a.buffer != 0 ? reinterpret_cast<void*>(a.buffer + a.offset) : nullptr;
}

void FieldMaker::add_texts(const pg_field& given, Field& field) {
  const uint64_t count = given.bytes / sizeof(pg_text);
  if (given.bytes % sizeof(pg_text) != 0 || (count != 0 && given.data == nullptr))
    pg::fail_argument(pg::format("field '%s' is no list of texts", given.name));
  const auto* texts = static_cast<const pg_text*>(given.data);
  field.layout = "{";
  for (uint64_t i = 0; i < count; i++) {
    field.layout += "i" + std::to_string(i + 1) + ";S";
    Leaf leaf;
    if (texts[i].bytes != 0) leaf.text.assign(static_cast<const char*>(texts[i].data), texts[i].bytes);
    if (i == 0)
      field.leaf = std::move(leaf);
    else
      field.more.push_back(std::move(leaf));
  }
  field.layout += "}";
}

void FieldMaker::drop_field(const char* name) {
  if (!may_drop_) pg::fail_argument("a source has nothing to drop");
  check_name(name);
  const std::string key = key_of(name);
  bool there = std::any_of(fields_.begin(), fields_.end(), [&](const Field& f) { return f.key == key && !f.dropped; });
  for (size_t i = 0; in != nullptr && i < in->entries.size(); i++) there |= in->entries[i].key == key;
  if (!there) pg::fail(PG_E_NOT_FOUND, pg::format("there is no field '%s' to drop", name));
  place(name).dropped = true;
}

const OptionTensor& FieldMaker::option(const char* name, const pg_field* of) const {
  const OptionTensor* found = options_ != nullptr ? options_->tensor_of(of) : nullptr;
  if (found == nullptr) pg::fail_argument(pg::format("field '%s' is to be of no tensor among the options", name));
  if (!found->piece) pg::fail_argument(pg::format("'%s' has no axes to slice", found->name.c_str()));
  return *found;
}

// ---- elements ----

bool FieldMaker::has_layout(const Layout& layout) const {
  if (layout.kind != '{' || layout.entries.size() != fields_.size()) return false;
  for (size_t i = 0; i < fields_.size(); i++) {
    const Layout::Entry& entry = layout.entries[i];
    if (fields_[i].dropped || fields_[i].key != entry.key || fields_[i].layout != entry.value->text) return false;
  }
  return true;
}

Element FieldMaker::made(const LayoutRef& like) {
  std::sort(fields_.begin(), fields_.end(), [](const Field& a, const Field& b) { return a.key < b.key; });
  Element out;
  if (like && has_layout(*like)) {
    out.layout = like;
  } else {
    std::string text = "{";
    for (const Field& field : fields_) text += field.key + field.layout;
    out.layout = parse_layout(text + "}");
  }
  out.leaves.reserve(out.layout->leaves);
  for (Field& field : fields_) {
    if (field.layout != "{}") out.leaves.push_back(std::move(field.leaf));
    std::move(field.more.begin(), field.more.end(), std::back_inserter(out.leaves));
  }
  return out;
}

Element FieldMaker::made_of(Element given) {
  struct Part {
    std::string layout;
    std::vector<Leaf> leaves;
  };
  std::map<std::string, Part> parts;
  size_t at = 0;
  for (const Layout::Entry& entry : given.layout->entries) {
    Part& part = parts[entry.key];
    part.layout = entry.value->text;
    for (uint32_t k = 0; k < entry.value->leaves; k++) part.leaves.push_back(std::move(given.leaves[at++]));
  }
  for (Field& field : fields_) {
    if (field.dropped) {
      parts.erase(field.key);
      continue;
    }
    Part& part = parts[field.key];
    part.layout = std::move(field.layout);
    part.leaves.clear();
    if (part.layout != "{}") part.leaves.push_back(std::move(field.leaf));
    std::move(field.more.begin(), field.more.end(), std::back_inserter(part.leaves));
  }
  Element out;
  std::string text = "{";
  for (auto& [key, part] : parts) {
    text += key + part.layout;
    std::move(part.leaves.begin(), part.leaves.end(), std::back_inserter(out.leaves));
  }
  text += "}";
  out.layout = text == given.layout->text ? given.layout : parse_layout(text);
  return out;
}

std::string FieldMaker::without_axis(int64_t count) const {
  for (const Field& field : fields_) {
    const std::string name = field.key.substr(field.key.find(':') + 1);
    if (field.layout != "T") return name;
    const Meta& meta = *field.leaf.tensor->meta;
    if (meta.rank == 0 || meta.shape[0] != count) return name;
  }
  return "";
}

}  // namespace perigee
