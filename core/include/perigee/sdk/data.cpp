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
    case PG_FIELD_TEXTS: return "a list of strings";
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

void FieldSink::texts(const char* name, const std::vector<std::string>& values) {
  std::vector<pg_text> list;
  list.reserve(values.size());
  for (const std::string& value : values) list.push_back({value.size(), value.data()});
  pg_field field = field_of(name, PG_FIELD_TEXTS);
  field.bytes = list.size() * sizeof(pg_text);
  field.data = list.data();
  add(field, false);
}

// An entry of the sink, which an older host does not have.
template <class Entry>
const Entry& FieldSink::need(const Entry& entry, uint32_t end) const {
  if (raw_->size < end || entry == nullptr)
    fail(PG_E_NOT_SUPPORTED, "this Perigee is too old: it gives elements no slices and no codecs");
  return entry;
}

void FieldSink::slice(const char* name, const pg_field& of, int64_t index) {
  pg_error error = make_error();
  check(need(raw_->slice, PG_SIZE(pg_field_sink, slice))(raw_->context, name, &of, index, &error), error);
}

void FieldSink::slices(const char* name, const pg_field& of, const int64_t* indices, uint64_t count) {
  pg_error error = make_error();
  check(need(raw_->slices, PG_SIZE(pg_field_sink, slices))(raw_->context, name, &of, count, indices, &error), error);
}

namespace {

// What a plugin gives to be decoded, as the host takes it.
class RawCoded {
 public:
  explicit RawCoded(const Coded& what) : coded_(what) {
    bytes_.size = PG_SIZE(pg_bytes, read);
    bytes_.count = what.count;
    bytes_.data = what.count == 0 ? "" : what.data;
    bytes_.context = this;
    bytes_.read = read;
    raw.size = PG_SIZE(pg_coded, options);
    raw.path = what.path.empty() ? nullptr : what.path.c_str();
    raw.bytes = what.path.empty() ? &bytes_ : nullptr;
    raw.codec = what.codec.empty() ? nullptr : what.codec.c_str();
    raw.options = what.options.empty() ? nullptr : what.options.c_str();
  }
  RawCoded(const RawCoded&) = delete;
  pg_coded raw{};

 private:
  static int32_t read(void* context, uint64_t offset, void* target, uint64_t count, pg_error* error) {
    return guard(error, "read", [&] {
      const Coded& coded = static_cast<RawCoded*>(context)->coded_;
      if (offset > coded.count || count > coded.count - offset)
        fail(PG_E_DATA_LOSS,
             format("they end at byte %llu, inside their data", static_cast<unsigned long long>(coded.count)));
      if (count != 0) std::memcpy(target, static_cast<const char*>(coded.data) + offset, count);
    });
  }
  const Coded& coded_;
  pg_bytes bytes_{};
};

// Where the host's codecs write: a field.
struct Target {
  FieldSink& sink;
  const char* name;
  Decoded decoded;

  static void* give(void* context, const char*, uint32_t dtype, uint32_t rank, const int64_t* shape, pg_error* error) {
    auto& to = *static_cast<Target*>(context);
    guard(error, "decode", [&] {
      to.decoded = {dtype, std::vector<int64_t>(shape, shape + rank), to.sink.tensor(to.name, dtype, rank, shape)};
    });
    return to.decoded.data;
  }
  static int32_t note(void*, const char*, const char*, pg_error*) { return PG_OK; }
};

}  // namespace

CodedInfo FieldSink::probe(const Coded& what) const {
  const RawCoded coded(what);
  pg_coded_info info{};
  info.size = PG_SIZE(pg_coded_info, shape);
  pg_error error = make_error();
  check(need(raw_->probe, PG_SIZE(pg_field_sink, probe))(raw_->context, &coded.raw, &info, &error), error);
  return {info.dtype, std::vector<int64_t>(info.shape, info.shape + info.rank), info.scales};
}

Decoded FieldSink::decode(const char* name, const Coded& what) {
  const RawCoded coded(what);
  Target to{*this, name, {}};
  const pg_sink sink{PG_SIZE(pg_sink, note), 0, &to, Target::give, Target::note};
  pg_error error = make_error();
  check(need(raw_->decode, PG_SIZE(pg_field_sink, decode))(raw_->context, &coded.raw, &sink, &error), error);
  return to.decoded;
}

std::vector<std::string> texts_of(const pg_texts* texts) {
  if (texts == nullptr) return {};
  return {texts->list, texts->list + texts->count};
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

std::vector<std::string_view> TransformCall::texts(const char* name) const {
  const pg_field& field = need(name, PG_FIELD_TEXTS);
  const auto* list = static_cast<const pg_text*>(field.data);
  std::vector<std::string_view> texts;
  for (uint64_t i = 0; i < field.bytes / sizeof(pg_text); i++)
    texts.emplace_back(static_cast<const char*>(list[i].data), list[i].bytes);
  return texts;
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
