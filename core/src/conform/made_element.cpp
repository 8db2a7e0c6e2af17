// SPDX-License-Identifier: Apache-2.0
// Elements as parts of pipelines make them, and what is said of the parts.
#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "conform/parts.hpp"
#include "data/codec.hpp"

namespace perigee::conform {
namespace {

bool good_name(const char* name) {
  if (name == nullptr || name[0] == '\0') return false;
  return std::all_of(name, name + std::strlen(name), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// Lengths and contents, one behind the other.
std::string texts_of(const pg_field& field) {
  std::string all;
  const auto* list = static_cast<const pg_text*>(field.data);
  for (uint64_t i = 0; i < field.bytes / sizeof(pg_text); i++) {
    all.append(reinterpret_cast<const char*>(&list[i].bytes), sizeof list[i].bytes);
    if (list[i].bytes != 0) all.append(static_cast<const char*>(list[i].data), list[i].bytes);
  }
  return all;
}

}  // namespace

pg_field_sink MadeElement::sink() {
  return {PG_SIZE(pg_field_sink, decode), 0, this, give, drop, slice, slices, probe, decode};
}

void* MadeElement::give(void* context, const pg_field* field, pg_error* error) {
  auto& made = *static_cast<MadeElement*>(context);
  auto refuse = [&](const std::string& why) -> void* {
    made.problem = why;
    error->code = PG_E_INVALID_ARGUMENT;
    std::snprintf(error->message, sizeof error->message, "%s", why.c_str());
    return nullptr;
  };
  if (!PG_HAS(field, pg_field, data)) return refuse("a field says that it is too small to have all its parts");
  if (!good_name(field->name)) return refuse("a field has no name, or one of other characters");
  Field kept{field->name, field->kind, 0, {}, 0, {}, 0};
  std::string texts;
  switch (field->kind) {
    case PG_FIELD_TENSOR: {
      if (pg::dtype_class(field->dtype) == 0)
        return refuse("field " + kept.name + pg::format(" has an unknown dtype %#x", field->dtype));
      if (field->rank > PG_MAX_RANK) return refuse("field " + kept.name + pg::format(" has %u axes", field->rank));
      kept.dtype = field->dtype;
      uint64_t count = 1;
      for (uint32_t i = 0; i < field->rank; i++) {
        if (field->shape[i] < 0) return refuse("field " + kept.name + " has a negative size");
        kept.shape.push_back(field->shape[i]);
        count *= static_cast<uint64_t>(field->shape[i]);
      }
      kept.bytes = (count * (field->dtype & 0xffff) + 7) / 8;
      break;
    }
    case PG_FIELD_NUMBER: kept.number = field->number; break;
    case PG_FIELD_BOOLEAN:
      if (field->number != 0 && field->number != 1) return refuse("field " + kept.name + " is neither true nor false");
      kept.number = field->number;
      break;
    case PG_FIELD_BYTES: kept.bytes = field->bytes; break;
    case PG_FIELD_TEXTS:
      if (field->bytes % sizeof(pg_text) != 0 || (field->bytes != 0 && field->data == nullptr))
        return refuse("field " + kept.name + " is no list of texts");
      texts = texts_of(*field);
      kept.bytes = texts.size();
      break;
    default: return refuse("field " + kept.name + pg::format(" is of an unknown kind %u", field->kind));
  }
  if (kept.bytes > (uint64_t{1} << 30)) return refuse("field " + kept.name + " has more than a gigabyte");
  auto old = std::find_if(made.fields_.begin(), made.fields_.end(),
                          [&](const Field& other) { return other.name == kept.name; });
  if (old == made.fields_.end()) {
    made.fields_.push_back(std::move(kept));
    old = std::prev(made.fields_.end());
  } else {
    *old = std::move(kept);
  }
  old->words.resize(old->bytes / 8 + 1);
  std::memset(old->words.data(), static_cast<int>(made.poison_), old->words.size() * 8);
  if (field->kind == PG_FIELD_TEXTS) std::memcpy(old->words.data(), texts.data(), texts.size());
  return old->bytes == 0 || field->kind == PG_FIELD_TEXTS ? nullptr : old->words.data();
}

// A slice, or some, as a field of its own.
int32_t MadeElement::take(const char* name, const pg_field* of, pg_error* error,
                          const std::function<TensorRef(const OptionTensor&)>& make) {
  return pg::guard(error, "slice", [&] {
    const OptionTensor* option = options_.tensor_of(of);
    if (option == nullptr || !option->piece) {
      problem = pg::format("field %s is to be a slice of what is no tensor with axes among the options", name);
      pg::fail_argument(problem);
    }
    const TensorRef made = make(*option);
    const Meta& meta = *made->meta;
    pg_field field{};
    field.size = PG_SIZE(pg_field, data);
    field.name = name, field.kind = PG_FIELD_TENSOR;
    field.dtype = meta.dtype, field.rank = meta.rank, field.shape = meta.shape;
    void* memory = give(this, &field, error);
    if (memory != nullptr) to_host(meta.contiguous ? *made : *copy_dense(*made, meta.dtype), memory);
    if (error->code != PG_OK) throw pg::Error(error->code, error->message);
  });
}

int32_t MadeElement::slice(void* context, const char* name, const pg_field* of, int64_t index, pg_error* error) {
  return static_cast<MadeElement*>(context)->take(name, of, error,
                                                  [&](const OptionTensor& option) { return slice_of(option, index); });
}

int32_t MadeElement::slices(void* context, const char* name, const pg_field* of, uint64_t count, const int64_t* indices,
                            pg_error* error) {
  return static_cast<MadeElement*>(context)->take(name, of, error, [&](const OptionTensor& option) {
    return slices_of(option, indices, static_cast<int64_t>(count));
  });
}

int32_t MadeElement::probe(void*, const pg_coded* what, pg_coded_info* out, pg_error* error) {
  return pg::guard(error, "probe", [&] { *out = perigee::probe(*what); });
}

int32_t MadeElement::decode(void*, const pg_coded* what, const pg_sink* to, pg_error* error) {
  return pg::guard(error, "decode", [&] { perigee::decode(*what, *to); });
}

int32_t MadeElement::drop(void* context, const char* name, pg_error* error) {
  auto& made = *static_cast<MadeElement*>(context);
  const size_t before = made.fields_.size();
  std::erase_if(made.fields_, [&](const Field& field) { return field.name == name; });
  if (made.fields_.size() != before) return PG_OK;
  std::snprintf(error->message, sizeof error->message, "there is no field \"%s\"", name);
  return error->code = PG_E_NOT_FOUND;
}

std::string MadeElement::difference(const MadeElement& other) const {
  if (fields_.size() != other.fields_.size())
    return pg::format("it has %zu fields, and %zu another time", fields_.size(), other.fields_.size());
  for (size_t i = 0; i < fields_.size(); i++) {
    const Field &a = fields_[i], &b = other.fields_[i];
    if (a.name != b.name) return "field " + a.name + " is " + b.name + " another time";
    if (a.kind != b.kind || a.dtype != b.dtype || a.shape != b.shape || a.bytes != b.bytes)
      return "field " + a.name + " is of another kind, dtype or size another time";
    // Bits: a NaN is what it was.
    if (std::memcmp(&a.number, &b.number, sizeof a.number) != 0 ||
        std::memcmp(a.words.data(), b.words.data(), a.bytes) != 0) {
      const auto *of_a = reinterpret_cast<const unsigned char*>(a.words.data()),
                 *of_b = reinterpret_cast<const unsigned char*>(b.words.data());
      for (uint64_t k = 0; k < a.bytes; k++) {
        if (of_a[k] == of_b[k]) continue;
        const bool unset = of_a[k] == static_cast<unsigned char>(poison_) &&
                           of_b[k] == static_cast<unsigned char>(other.poison_) && poison_ != other.poison_;
        return "field " + a.name +
               pg::format(unset ? " is not filled at byte %llu" : " differs at byte %llu",
                          static_cast<unsigned long long>(k));
      }
      return "field " + a.name + " is another number another time";
    }
  }
  return "";
}

std::string MadeElement::difference(const std::deque<MadeElement>& elements) const {
  for (const Field& field : fields_) {
    if (field.kind != PG_FIELD_TENSOR) return "field " + field.name + " is no tensor";
    if (field.shape.empty() || field.shape[0] != static_cast<int64_t>(elements.size()))
      return "field " + field.name + pg::format(" has no first axis of %zu", elements.size());
    for (size_t i = 0; i < elements.size(); i++) {
      const auto& others = elements[i].fields_;
      const auto one = std::find_if(others.begin(), others.end(), [&](const Field& o) { return o.name == field.name; });
      if (one == others.end() || others.size() != fields_.size()) return "fields are others than read gives";
      const std::vector<int64_t> shape(field.shape.begin() + 1, field.shape.end());
      if (one->dtype != field.dtype || one->shape != shape)
        return "field " + field.name + " is of another dtype or shape than read gives";
      const auto* whole = reinterpret_cast<const unsigned char*>(field.words.data());
      if (std::memcmp(whole + i * one->bytes, one->words.data(), one->bytes) != 0)
        return "field " + field.name + pg::format(" differs from what read gives at element %zu", i);
    }
  }
  return elements.empty() || fields_.size() == elements[0].fields_.size() ? "" : "fields are missing";
}

bool PartChecks::check(const char* name, const std::function<void()>& body) {
  Finding& finding = found_.emplace_back(Finding{group_, part_ + ": " + name, ""});
  try {
    body();
  } catch (const std::exception& e) {
    finding.problem = e.what()[0] != '\0' ? e.what() : "it fails";
  } catch (...) {
    finding.problem = "an exception leaves a function";
  }
  return finding.problem.empty();
}

void PartChecks::not_asked(const std::string& why) { found_.push_back({group_, part_, why, true}); }

void on_threads(const std::function<void(int)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (...) {
        std::lock_guard guard(mutex);
        if (!first) first = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace perigee::conform
