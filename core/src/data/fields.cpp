// SPDX-License-Identifier: Apache-2.0
#include "data/fields.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>

#include "data/codec.hpp"

namespace perigee {

namespace {

std::string key_of(const char* name) {
  const std::string text = name;
  return "s" + std::to_string(text.size()) + ":" + text;
}

// "x" of "s1:x".
std::string_view name_in(const std::string& key) { return std::string_view(key).substr(key.find(':') + 1); }

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
    TensorRef tensor = slice_of(maker.option(name, of), index);
    maker.place(name, 'T').tensor = std::move(tensor);
  });
}

int32_t FieldMaker::slices(void* context, const char* name, const pg_field* of, uint64_t count, const int64_t* indices,
                           pg_error* error) {
  return as_answer(error, "slices", [&] {
    auto& maker = *static_cast<FieldMaker*>(context);
    check_name(name);
    TensorRef tensor = slices_of(maker.option(name, of), indices, static_cast<int64_t>(count));
    maker.place(name, 'T').tensor = std::move(tensor);
  });
}

int32_t FieldMaker::probe(void*, const pg_coded* what, pg_coded_info* out, pg_error* error) {
  return as_answer(error, "probe", [&] { *out = perigee::probe(*what); });
}

int32_t FieldMaker::decode(void*, const pg_coded* what, const pg_sink* to, pg_error* error) {
  return as_answer(error, "decode", [&] { perigee::decode(*what, *to); });
}

// ---- fields ----

namespace {

constexpr size_t kMostLikely = 64;  // fields that are looked for in a likely layout

// A table of names with one leaf each.
bool is_flat(const Layout& layout) {
  return layout.kind == '{' && layout.named && layout.entries.size() <= kMostLikely &&
         std::all_of(layout.entries.begin(), layout.entries.end(),
                     [](const Layout::Entry& entry) { return entry.value->kind != '{'; });
}

}  // namespace

FieldMaker::FieldMaker(bool may_drop, const Landing* landing, const Options* options, LayoutRef like)
    : may_drop_(may_drop),
      landing_(landing),
      options_(options),
      like_(std::move(like)),
      is_like_(like_ && is_flat(*like_)),
      leaves_(is_like_ ? like_->leaves : 0) {}

Leaf& FieldMaker::place(const char* name, char kind) {
  if (is_like_) {
    for (size_t i = 0; i < like_->entries.size(); i++) {
      const Layout::Entry& entry = like_->entries[i];
      if (entry.value->kind != kind || name_in(entry.key) != name) continue;
      leaves_[i] = {};
      given_ |= uint64_t{1} << i;
      return leaves_[i];
    }
    spread();
  }
  Field& field = place(name);
  field.layout = std::string(1, kind);
  return field.leaf;
}

void FieldMaker::spread() {
  if (!is_like_) return;
  is_like_ = false;
  for (size_t i = 0; i < leaves_.size(); i++) {
    if ((given_ >> i & 1) == 0) continue;
    Field& field = fields_.emplace_back();
    field.key = like_->entries[i].key;
    field.layout = like_->entries[i].value->text;
    field.leaf = std::move(leaves_[i]);
  }
  given_ = 0;
}

// A new one under that name, in place of one that was there.
FieldMaker::Field& FieldMaker::place(const char* name) {
  spread();
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
  switch (given.kind) {
    case PG_FIELD_TENSOR: {
      TensorRef made = new_tensor(given);
      const pg_address a = made->address();
      place(given.name, 'T').tensor = std::move(made);
      return a.buffer != 0 ? reinterpret_cast<void*>(a.buffer + a.offset) : nullptr;
    }
    case PG_FIELD_NUMBER: place(given.name, 'N').number = given.number; return nullptr;
    case PG_FIELD_BOOLEAN: place(given.name, 'B').number = given.number != 0; return nullptr;
    case PG_FIELD_TEXTS: {
      Field made;
      add_texts(given, made);
      Field& field = place(given.name);
      made.key = std::move(field.key);
      field = std::move(made);
      return nullptr;
    }
    case PG_FIELD_BYTES: {
      Leaf& leaf = place(given.name, 'S');
      leaf.text.resize(given.bytes);  // filled before the next call: a short text lies in the leaf itself
      return given.bytes != 0 ? leaf.text.data() : nullptr;
    }
    default: pg::fail_argument(pg::format("field '%s' is of the unknown kind %u", given.name, given.kind));
  }
}

TensorRef FieldMaker::new_tensor(const pg_field& given) const {
  if (given.rank > PG_MAX_RANK || (given.rank != 0 && given.shape == nullptr))
    pg::fail_argument(pg::format("field '%s' has %u dimensions; at most %d", given.name, given.rank, PG_MAX_RANK));
  for (uint32_t i = 0; i < given.rank; i++) {
    if (given.shape[i] < 0)
      pg::fail_argument(
          pg::format("field '%s' has a side of %lld", given.name, static_cast<long long>(given.shape[i])));
  }
  MetaRef meta = intern_meta(given.dtype, given.rank, given.shape);
  TensorRef made = landing_ != nullptr ? landing_->place(key_of(given.name), *meta) : nullptr;
  return made ? made : make_dense(default_device(), std::move(meta));
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

Element FieldMaker::made() {
  if (is_like_ && std::popcount(given_) == static_cast<int>(leaves_.size())) return {like_, std::move(leaves_)};
  spread();
  std::sort(fields_.begin(), fields_.end(), [](const Field& a, const Field& b) { return a.key < b.key; });
  Element out;
  std::string text = "{";
  for (const Field& field : fields_) text += field.key + field.layout;
  text += "}";
  out.layout = like_ && like_->text == text ? like_ : parse_layout(text);
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

std::string FieldMaker::without_axis(int64_t count) {
  spread();
  for (const Field& field : fields_) {
    const std::string name(name_in(field.key));
    if (field.layout != "T") return name;
    const Meta& meta = *field.leaf.tensor->meta;
    if (meta.rank == 0 || meta.shape[0] != count) return name;
  }
  return "";
}

}  // namespace perigee
