// SPDX-License-Identifier: Apache-2.0
#include "data/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "data/element.hpp"
#include "perigee/plugin.hpp"

namespace perigee {

namespace {

template <class Number>
Number number_of(const std::string& name, const std::string& value, const char* what) {
  Number number{};
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc() || end != value.data() + value.size())
    pg::fail_argument(pg::format("option %s: expected %s, got \"%s\"", name.c_str(), what, value.c_str()));
  return number;
}

int32_t choice_of(const pg_attr_info& attr, const std::string& value) {
  std::string known;
  for (uint32_t i = 0; i < attr.choice_count; i++) {
    if (value == attr.choices[i]) return static_cast<int32_t>(i);
    known += (i == 0 ? "\"" : i + 1 == attr.choice_count ? " or \"" : ", \"") + std::string(attr.choices[i]) + "\"";
  }
  pg::fail_argument(pg::format("option %s: expected %s, got \"%s\"", attr.name, known.c_str(), value.c_str()));
}

}  // namespace

int64_t whole_number(const std::string& name, const std::string& value) {
  return number_of<int64_t>(name, value, "a whole number");
}

Options::Options(const pg_attr_info* const* attrs, uint32_t count, uint32_t size, const void* given)
    : attrs_(attrs), count_(count), words_((size + 7) / 8 + 1) {
  if (size != 0) std::memcpy(words_.data(), given, size);
  for (uint32_t i = 0; i < count; i++) {
    const void* pointer = nullptr;
    if (attrs[i]->kind >= PG_ATTR_TEXT)
      std::memcpy(&pointer, static_cast<const char*>(given) + attrs[i]->offset, sizeof pointer);
    switch (attrs[i]->kind) {
      case PG_ATTR_TEXT: put_text(attrs[i]->offset, static_cast<const char*>(pointer)); break;
      case PG_ATTR_TEXTS: put_texts(attrs[i]->offset, static_cast<const pg_texts*>(pointer)); break;
      case PG_ATTR_TENSOR: {
        const pg_field* none = nullptr;
        put(attrs[i]->offset, &none, sizeof none);
        break;
      }
      case PG_ATTR_TENSORS: {
        Tensors& table = tables_.emplace_back();
        table.offset = attrs[i]->offset;
        table.raw.size = PG_SIZE(pg_tensors, list);
        const pg_tensors* raw = &table.raw;
        put(attrs[i]->offset, &raw, sizeof raw);
        break;
      }
      default: break;
    }
  }
}

void Options::put(uint32_t offset, const void* value, size_t bytes) {
  std::memcpy(reinterpret_cast<char*>(words_.data()) + offset, value, bytes);
}

void Options::put_text(uint32_t offset, std::string value) {
  const char* text = texts_.emplace_back(std::move(value)).c_str();
  put(offset, &text, sizeof text);
}

void Options::put_texts(uint32_t offset, const pg_texts* given) {
  Texts& texts = lists_.emplace_back();
  texts.offset = offset;
  texts.raw.size = PG_SIZE(pg_texts, list);
  for (uint32_t i = 0; given != nullptr && i < given->count; i++) add_text(texts, given->list[i]);
  const pg_texts* raw = &texts.raw;
  put(offset, &raw, sizeof raw);
}

void Options::add_text(Texts& texts, std::string text) {
  texts.list.push_back(texts.kept.emplace_back(std::move(text)).c_str());
  texts.raw.count = static_cast<uint32_t>(texts.list.size());
  texts.raw.list = texts.list.data();
}

const pg_attr_info* Options::find(const std::string& name) const {
  for (uint32_t i = 0; i < count_; i++)
    if (name == attrs_[i]->name && (attrs_[i]->flags & PG_ATTR_INTERNAL) == 0) return attrs_[i];
  return nullptr;
}

void Options::set_tensor(const std::string& name, const std::string& key, const Tensor& given) {
  const pg_attr_info* attr = find(name);
  if (attr == nullptr || (attr->kind != PG_ATTR_TENSOR && attr->kind != PG_ATTR_TENSORS))
    pg::fail_argument(pg::format("there is no option %s that takes tensors", name.c_str()));
  if (given.is_graph())
    pg::fail(PG_E_NOT_SUPPORTED, pg::format("option %s: '%s' is a tensor of a graph", name.c_str(), key.c_str()));
  OptionTensor& kept = tensors_.emplace_back();
  kept.name = key;
  kept.tensor = alias(given);
  const auto here = [&] { return kept.tensor->device->host_visible && kept.tensor->device->synchronous; };
  if ((attr->flags & PG_ATTR_AS_IS) == 0) {
    if (!here()) kept.tensor = move_to(*kept.tensor, default_device());
    if (!kept.tensor->meta->contiguous) kept.tensor = copy_dense(*kept.tensor, kept.tensor->meta->dtype);
  }
  const Meta& meta = *kept.tensor->meta;
  if (meta.rank > 0) kept.piece = intern_meta(meta.dtype, meta.rank - 1, meta.shape + 1, meta.stride + 1);
  pg_field& field = kept.field;
  field = {};
  field.size = PG_SIZE(pg_field, data);
  field.kind = PG_FIELD_TENSOR;
  field.name = kept.name.c_str();
  field.dtype = meta.dtype, field.rank = meta.rank, field.shape = meta.shape;
  field.bytes = static_cast<uint64_t>(meta.bytes);
  const pg_address a = kept.tensor->address();
  if (meta.contiguous && here() && meta.bytes != 0 && a.buffer != 0)
    field.data = reinterpret_cast<const void*>(a.buffer + a.offset);
  if (attr->kind == PG_ATTR_TENSOR) {
    const pg_field* shown = &field;
    return put(attr->offset, &shown, sizeof shown);
  }
  const auto table =
      std::find_if(tables_.begin(), tables_.end(), [&](const Tensors& t) { return t.offset == attr->offset; });
  table->list.push_back(&field);
  table->raw.count = static_cast<uint32_t>(table->list.size());
  table->raw.list = table->list.data();
}

const OptionTensor* Options::tensor_of(const pg_field* field) const {
  for (const OptionTensor& option : tensors_)
    if (&option.field == field) return &option;
  return nullptr;
}

namespace {

void check_inside(const OptionTensor& option, int64_t index) {
  const int64_t count = option.tensor->meta->shape[0];
  if (index < 0 || index >= count)
    pg::fail_argument(pg::format("'%s' has %lld slices; there is none at %lld", option.name.c_str(),
                                 static_cast<long long>(count), static_cast<long long>(index)));
}

int64_t bytes_between(const OptionTensor& option) {
  const Meta& meta = *option.tensor->meta;
  return meta.stride[0] * static_cast<int64_t>(meta.view.dtype_bits / 8);
}

// Rows of `bytes` each, one behind the other. Small ones are asked for ahead, and copied without a call.
void copy_rows(char* target, const char* source, int64_t step, const int64_t* indices, int64_t count, size_t bytes) {
  constexpr size_t kWord = 16, kSmall = 256;
  constexpr int64_t kAhead = 16;
  if (bytes < kWord || bytes > kSmall) {
    for (int64_t i = 0; i < count; i++, target += bytes) std::memcpy(target, source + indices[i] * step, bytes);
    return;
  }
  for (int64_t i = 0; i < count; i++, target += bytes) {
    if (i + kAhead < count) {
      const char* next = source + indices[i + kAhead] * step;
      __builtin_prefetch(next);
      __builtin_prefetch(next + bytes - 1);
    }
    const char* row = source + indices[i] * step;
    for (size_t at = 0; at + kWord < bytes; at += kWord) std::memcpy(target + at, row + at, kWord);
    std::memcpy(target + bytes - kWord, row + bytes - kWord, kWord);
  }
}

}  // namespace

TensorRef slice_of(const OptionTensor& option, int64_t index) {
  check_inside(option, index);
  const Tensor& t = *option.tensor;
  return make_tensor(option.piece, t.storage, t.offset + index * bytes_between(option), t.device);
}

TensorRef slices_of(const OptionTensor& option, const int64_t* indices, int64_t count) {
  const Tensor& t = *option.tensor;
  const TensorRef like = make_tensor(option.piece, nullptr, 0, t.device);
  TensorRef made = make_batch(*like, count);
  for (int64_t i = 0; i < count; i++) check_inside(option, indices[i]);
  const int64_t bytes = option.piece->bytes, step = bytes_between(option);
  if (bytes == 0) return made;
  if (!option.piece->contiguous || !t.device->host_visible || !t.device->synchronous) {
    for (int64_t i = 0; i < count; i++) put_piece(*made, i, *slice_of(option, indices[i]));
    return made;
  }
  const pg_address from = t.address(), to = made->address();
  copy_rows(reinterpret_cast<char*>(to.buffer + to.offset), reinterpret_cast<const char*>(from.buffer + from.offset),
            step, indices, count, static_cast<size_t>(bytes));
  return made;
}

bool Options::set(const std::string& name, const std::string& value) {
  for (uint32_t i = 0; i < count_; i++) {
    const pg_attr_info& attr = *attrs_[i];
    if (name != attr.name || (attr.flags & PG_ATTR_INTERNAL) != 0) continue;
    switch (attr.kind) {
      case PG_ATTR_TEXT: put_text(attr.offset, value); break;
      case PG_ATTR_TEXTS:
        for (Texts& texts : lists_)
          if (texts.offset == attr.offset) add_text(texts, value);
        break;
      case PG_ATTR_INT: {
        const int64_t number = whole_number(name, value);
        put(attr.offset, &number, sizeof number);
        break;
      }
      case PG_ATTR_FLOAT: {
        const auto number = number_of<double>(name, value, "a number");
        put(attr.offset, &number, sizeof number);
        break;
      }
      case PG_ATTR_BOOL: {
        if (value != "true" && value != "false")
          pg::fail_argument(pg::format("option %s: expected true or false, got \"%s\"", name.c_str(), value.c_str()));
        const int32_t on = value == "true";
        put(attr.offset, &on, sizeof on);
        break;
      }
      case PG_ATTR_CHOICE: {
        const int32_t index = choice_of(attr, value);
        put(attr.offset, &index, sizeof index);
        break;
      }
      default: pg::fail_support(pg::format("option %s: it is of a kind that cannot be given as text", name.c_str()));
    }
    return true;
  }
  return false;
}

}  // namespace perigee
