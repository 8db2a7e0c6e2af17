// SPDX-License-Identifier: Apache-2.0
#include "perigee/data.hpp"

#include <cmath>
#include <cstring>

#include "perigee/sdk/declared.hpp"

namespace pg {

// ---- fields ----

void* FieldSink::add(const pg_field& field, bool has_contents) {
  pg_error error = make_error();
  void* memory = raw_->field(raw_->context, &field, &error);
  if (memory == nullptr && (error.code != PG_OK || has_contents))
    throw Error(error.code == PG_OK ? PG_E_INTERNAL : error.code, error.message, error.native);
  return memory;
}

namespace {

pg_field field_of(const char* name, uint32_t kind) {
  pg_field field{};
  field.size = PG_SIZE(pg_field, data);
  field.kind = kind;
  field.name = name;
  return field;
}

const char* kind_name(uint32_t kind) {
  switch (kind) {
    case PG_FIELD_TENSOR: return "a tensor";
    case PG_FIELD_NUMBER: return "a number";
    case PG_FIELD_BOOLEAN: return "a boolean";
    case PG_FIELD_BYTES: return "a string";
    default: return "of an unknown kind";
  }
}

}  // namespace

void* FieldSink::tensor(const char* name, uint32_t dtype, uint32_t rank, const int64_t* shape) {
  pg_field field = field_of(name, PG_FIELD_TENSOR);
  field.dtype = dtype, field.rank = rank, field.shape = shape;
  bool empty = false;
  for (uint32_t i = 0; i < rank; i++) empty |= shape[i] == 0;
  return add(field, !empty);
}

void FieldSink::number(const char* name, double value) {
  pg_field field = field_of(name, PG_FIELD_NUMBER);
  field.number = value;
  add(field, false);
}

void FieldSink::boolean(const char* name, bool value) {
  pg_field field = field_of(name, PG_FIELD_BOOLEAN);
  field.number = value ? 1 : 0;
  add(field, false);
}

void FieldSink::bytes(const char* name, const void* data, uint64_t count) {
  pg_field field = field_of(name, PG_FIELD_BYTES);
  field.bytes = count;
  void* memory = add(field, count != 0);
  if (count != 0) std::memcpy(memory, data, count);
}

void FieldSink::drop(const char* name) {
  pg_error error = make_error();
  check(raw_->drop(raw_->context, name, &error), error);
}

const pg_field* TransformCall::find(const char* name) const {
  for (uint32_t i = 0; i < raw->count; i++)
    if (std::strcmp(raw->fields[i]->name, name) == 0) return raw->fields[i];
  return nullptr;
}

const pg_field& TransformCall::need(const char* name, uint32_t kind) const {
  const pg_field* field = find(name);
  if (field == nullptr) {
    std::string known;
    for (uint32_t i = 0; i < raw->count; i++) known += (i > 0 ? ", " : "") + std::string(raw->fields[i]->name);
    fail_argument(format("there is no field '%s'; the sample has %s", name, known.empty() ? "none" : known.c_str()));
  }
  if (field->kind != kind)
    fail_argument(format("field '%s' must be %s, got %s", name, kind_name(kind), kind_name(field->kind)));
  return *field;
}

const pg_field& TransformCall::tensor(const char* name) const { return need(name, PG_FIELD_TENSOR); }

const pg_field& TransformCall::tensor(const char* name, uint32_t dtype) const {
  const pg_field& field = tensor(name);
  if (field.dtype != dtype)
    fail_argument(format("field '%s' must be %s, got %s", name, dtype_name(dtype), dtype_name(field.dtype)));
  return field;
}

double TransformCall::number(const char* name) const { return need(name, PG_FIELD_NUMBER).number; }

std::string_view TransformCall::bytes(const char* name) const {
  const pg_field& field = need(name, PG_FIELD_BYTES);
  return {static_cast<const char*>(field.data), field.bytes};
}

double TransformCall::uniform(uint64_t i) const {  // splitmix64
  uint64_t x = raw->random + (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return std::ldexp(static_cast<double>((x ^ (x >> 31)) >> 11), -53);
}

// ---- bytes ----

void Bytes::read(uint64_t offset, void* target, uint64_t count) const {
  pg_error error = make_error();
  check(raw_->read(raw_->context, offset, target, count, &error), error);
}

void ByteSink::write(const void* bytes, uint64_t count) {
  pg_error error = make_error();
  check(raw_->write(raw_->context, bytes, count, &error), error);
}

void fail_damaged(const std::string& message) { fail(PG_E_DATA_LOSS, message); }

namespace detail {

void fill_coded(const CodedInfo& from, uint32_t flags, pg_coded_info& out) {
  if (from.shape.size() > PG_MAX_RANK)
    fail_support(format("it has %zu dimensions; at most %d are supported", from.shape.size(), PG_MAX_RANK));
  out.dtype = from.dtype;
  out.rank = static_cast<uint32_t>(from.shape.size());
  out.flags = flags;
  out.scales = from.scales;
  for (size_t i = 0; i < from.shape.size(); i++) out.shape[i] = from.shape[i];
}

Item item_of(const pg_tensor& t) {
  return {"data", dtype_of(t), std::vector<int64_t>(t.shape, t.shape + t.rank),
          reinterpret_cast<const void*>(t.buffer + t.offset),
          static_cast<uint64_t>(element_count(t) * dtype_bytes(dtype_of(t)))};
}

}  // namespace detail

// ---- registration ----

void add_source(const pg_source_info& info) { declared<pg_source_info>().push_back(&info); }
void add_transform(const pg_transform_info& info) { declared<pg_transform_info>().push_back(&info); }
void add_codec(const pg_codec_info& info) { declared<pg_codec_info>().push_back(&info); }

const pg_data* data_table() {
  static pg_data table{};
  auto& sources = declared<pg_source_info>();
  auto& transforms = declared<pg_transform_info>();
  auto& codecs = declared<pg_codec_info>();
  table = {PG_SIZE(pg_data, codecs),
           static_cast<uint32_t>(sources.size()),
           static_cast<uint32_t>(transforms.size()),
           static_cast<uint32_t>(codecs.size()),
           sources.data(),
           transforms.data(),
           codecs.data()};
  return &table;
}

}  // namespace pg
