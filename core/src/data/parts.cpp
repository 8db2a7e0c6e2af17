// SPDX-License-Identifier: Apache-2.0
#include "data/parts.hpp"

#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>

#include "data/worker.hpp"

namespace perigee {

namespace {

// The fields that a plugin gives, by name: elements of the same fields have the same layout.
class FieldMaker {
 public:
  FieldMaker(bool may_drop, const Landing* landing) : may_drop_(may_drop), landing_(landing) {}

  void* add(const pg_field& given) {
    if (given.name == nullptr || given.name[0] == '\0') pg::fail_argument("a field has no name");
    Field field;
    void* memory = nullptr;
    switch (given.kind) {
      case PG_FIELD_TENSOR: memory = add_tensor(given, field); break;
      case PG_FIELD_NUMBER: field.kind = 'N', field.leaf.number = given.number; break;
      case PG_FIELD_BOOLEAN: field.kind = 'B', field.leaf.number = given.number != 0; break;
      case PG_FIELD_BYTES: field.kind = 'S'; break;
      default: pg::fail_argument(pg::format("field '%s' is of the unknown kind %u", given.name, given.kind));
    }
    std::optional<Field>& place = fields_[given.name];
    place = std::move(field);
    if (given.kind == PG_FIELD_BYTES) {  // a short text lies in the field itself, which does not move
      place->leaf.text.resize(given.bytes);
      memory = given.bytes != 0 ? place->leaf.text.data() : nullptr;
    }
    return memory;
  }

  void drop(const char* name, const Layout* in) {
    if (!may_drop_) pg::fail_argument("a source has nothing to drop");
    const auto given = fields_.find(name);
    const bool made = given != fields_.end() && given->second.has_value();
    bool was = false;
    for (size_t i = 0; in != nullptr && i < in->entries.size(); i++) was |= in->entries[i].key == key_of(name);
    if (!made && !was) pg::fail(PG_E_NOT_FOUND, pg::format("there is no field '%s' to drop", name));
    fields_[name].reset();
  }

  // These fields, and those of `in` that are not among them.
  Element made(Element in) {
    struct Part {
      std::string layout;
      std::vector<Leaf> leaves;
    };
    std::map<std::string, Part> parts;
    size_t at = 0;
    for (size_t i = 0; in.layout && i < in.layout->entries.size(); i++) {
      const Layout::Entry& entry = in.layout->entries[i];
      Part& part = parts[entry.key];
      part.layout = entry.value->text;
      for (uint32_t k = 0; k < entry.value->leaves; k++) part.leaves.push_back(std::move(in.leaves[at++]));
    }
    for (auto& [name, field] : fields_) {
      if (!field) {
        parts.erase(key_of(name));
        continue;
      }
      Part& part = parts[key_of(name)];
      part.layout = std::string(1, field->kind);
      part.leaves.clear();
      part.leaves.push_back(std::move(field->leaf));
    }
    Element out;
    std::string text = "{";
    for (auto& [key, part] : parts) {
      text += key + part.layout;
      std::move(part.leaves.begin(), part.leaves.end(), std::back_inserter(out.leaves));
    }
    out.layout = parse_layout(text + "}");
    return out;
  }

  static std::string key_of(const std::string& name) { return "s" + std::to_string(name.size()) + ":" + name; }
  bool empty() const { return fields_.empty(); }

  const Layout* in = nullptr;

 private:
  struct Field {
    char kind = 'T';
    Leaf leaf;
  };

  void* add_tensor(const pg_field& given, Field& field) const {
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

  const bool may_drop_;
  const Landing* const landing_;  // where fields are wanted; null: anywhere
  std::map<std::string, std::optional<Field>> fields_;
};

void* add_field(void* context, const pg_field* field, pg_error* error) {
  void* memory = nullptr;
  pg::guard(error, "field", [&] { memory = static_cast<FieldMaker*>(context)->add(*field); });
  return memory;
}
int32_t drop_field(void* context, const char* name, pg_error* error) {
  return pg::guard(error, "drop", [&] {
    auto& maker = *static_cast<FieldMaker*>(context);
    maker.drop(name, maker.in);
  });
}

pg_field_sink sink_of(FieldMaker& maker) { return {PG_SIZE(pg_field_sink, drop), 0, &maker, add_field, drop_field}; }

template <class Call>
void run_part(const std::string& shown, int64_t position, Call&& call) {
  pg_error error = pg::make_error();
  const int32_t code = call(&error);
  if (code == PG_OK) return;
  std::string of = shown;
  if (position >= 0) of += pg::format(", element %lld", static_cast<long long>(position + 1));
  throw pg::Error(code, of + ": " + pg::message_of(code, error), error.native, error.flags);
}

// ---- sources ----

class OpenSource {
 public:
  OpenSource(const pg_source_info& info, const void* options, const std::string& shown) : info(info), shown(shown) {
    run_part(shown, -1, [&](pg_error* error) { return info.open(info.user, options, &self_, &count, error); });
    if (count < 0 || (count == PG_COUNT_UNKNOWN && (info.flags & PG_SOURCE_IN_ORDER) == 0)) {
      info.close(info.user, self_);
      pg::fail(PG_E_INTERNAL, shown + ": it answers a count that there cannot be");
    }
  }
  ~OpenSource() { info.close(info.user, self_); }
  OpenSource(const OpenSource&) = delete;
  OpenSource& operator=(const OpenSource&) = delete;

  // One without a layout: the end.
  Element read(int64_t i, const Landing* landing = nullptr) {
    FieldMaker maker(false, landing);
    const pg_field_sink sink = sink_of(maker);
    uint32_t end = 0;
    run_part(shown, i, [&](pg_error* error) { return info.read(info.user, self_, i, &sink, &end, error); });
    if (end == 0) return maker.made({});
    check_end(i);
    if (!maker.empty()) pg::fail(PG_E_INTERNAL, shown + ": it gives fields behind its end");
    return {};
  }
  bool skip(int64_t i) {
    uint32_t end = 0;
    run_part(shown, i, [&](pg_error* error) { return info.skip(info.user, self_, i, &end, error); });
    if (end != 0) check_end(i);
    return end == 0;
  }

  const pg_source_info& info;
  const std::string shown;
  int64_t count = 0;

 private:
  void check_end(int64_t i) const {
    if (count == PG_COUNT_UNKNOWN) return;
    pg::fail(PG_E_DATA_LOSS, pg::format("%s: it ends behind %lld elements of %lld", shown.c_str(),
                                        static_cast<long long>(i), static_cast<long long>(count)));
  }
  void* self_ = nullptr;
};

class Indexed : public Stage {
 public:
  explicit Indexed(std::unique_ptr<OpenSource> source) : Stage({source->count}), source_(std::move(source)) {}
  Element get(int64_t i) const override { return source_->read(i); }
  Element get_into(int64_t i, const Landing& landing) const override { return source_->read(i, &landing); }

 private:
  const std::unique_ptr<OpenSource> source_;
};

// What comes before an element is read by who asks for it, unless somebody has.
class OneByOne : public Stage {
 public:
  OneByOne(std::unique_ptr<OpenSource> source, std::shared_ptr<const Options> options)
      : Stage({source->count, true}), source_(std::move(source)), options_(std::move(options)) {}

  Element get(int64_t i) const override { return take(i, nullptr); }
  Element get_into(int64_t i, const Landing& landing) const override { return take(i, &landing); }
  bool pass(int64_t i) const override {
    if (source_->info.skip == nullptr) return get(i).layout != nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (i == next() && !ended_) {
        ended_ = true;  // unless it goes well
        if (!source_->skip(i)) return false;
        ended_ = false;
        made_.emplace_back();
        give_up(i);
        return true;
      }
    }
    return get(i).layout != nullptr;
  }

 protected:
  StageRef remade() const override {
    return std::make_shared<OneByOne>(std::make_unique<OpenSource>(source_->info, options_->data(), source_->shown),
                                      options_);
  }

 private:
  struct Made {
    Element element;
    std::exception_ptr error;
    bool given = false;
  };
  int64_t next() const { return first_ + static_cast<int64_t>(made_.size()); }
  // `landing`: where tensors of element i are wanted.
  Element take(int64_t i, const Landing* landing) const {
    const std::lock_guard lock(mutex_);
    while (i >= next() && !ended_) {
      check_wanted();
      read_one(i == next() ? landing : nullptr);
    }
    if (i < first_) pg::fail(PG_E_INTERNAL, "an element that comes in order was asked for again");
    if (i >= next()) return {};
    Made made = std::move(made_[static_cast<size_t>(i - first_)]);
    give_up(i);
    if (made.error) std::rethrow_exception(made.error);
    return std::move(made.element);
  }
  void read_one(const Landing* landing) const {
    Made made;
    try {
      const int64_t i = next();
      if (i < count) made.element = source_->read(i, landing);
      ended_ = !made.element.layout;
    } catch (...) {
      made.error = std::current_exception();
      ended_ = true;
    }
    if (!ended_ || made.error) made_.push_back(std::move(made));
  }
  void give_up(int64_t i) const {
    made_[static_cast<size_t>(i - first_)].given = true;
    while (!made_.empty() && made_.front().given) made_.pop_front(), first_++;
  }

  const std::unique_ptr<OpenSource> source_;
  const std::shared_ptr<const Options> options_;
  mutable std::mutex mutex_;
  mutable std::deque<Made> made_;  // from number first_ on
  mutable int64_t first_ = 0;
  mutable bool ended_ = false;
};

// ---- transforms ----

// The fields of an element as plugins see them. Nested tables are not among them.
class Fields {
 public:
  Fields(Element& in, const std::string& shown) {
    if (in.layout->kind != '{' || !in.layout->named)
      pg::fail_argument(shown + ": a transform takes samples whose fields all have names");
    size_t at = 0;
    fields_.reserve(in.layout->entries.size());
    for (const Layout::Entry& entry : in.layout->entries) {
      const Layout& value = *entry.value;
      if (value.kind != '{') add(entry.key.substr(entry.key.find(':') + 1), value.kind, in.leaves[at], shown);
      at += value.leaves;
    }
    for (const pg_field& field : fields_) pointers_.push_back(&field);
  }
  uint32_t count() const { return static_cast<uint32_t>(pointers_.size()); }
  const pg_field* const* list() const { return pointers_.data(); }

 private:
  void add(std::string name, char kind, Leaf& leaf, const std::string& shown) {
    pg_field field{};
    field.size = PG_SIZE(pg_field, data);
    field.name = names_.emplace_back(std::move(name)).c_str();
    field.number = leaf.number;
    switch (kind) {
      case 'N': field.kind = PG_FIELD_NUMBER; break;
      case 'B': field.kind = PG_FIELD_BOOLEAN; break;
      case 'S':
        field.kind = PG_FIELD_BYTES;
        field.bytes = leaf.text.size();
        field.data = leaf.text.empty() ? nullptr : leaf.text.data();
        break;
      default: add_tensor(field, leaf, shown);
    }
    fields_.push_back(field);
  }
  static void add_tensor(pg_field& field, Leaf& leaf, const std::string& shown) {
    Device& device = *leaf.tensor->device;
    if (leaf.tensor->is_graph() || !device.host_visible || !device.synchronous)
      pg::fail(PG_E_NOT_SUPPORTED, pg::format("%s: field '%s' is on %s; it must be in the processor's memory",
                                              shown.c_str(), field.name, device.name.c_str()));
    if (!leaf.tensor->meta->contiguous) leaf.tensor = copy_dense(*leaf.tensor, leaf.tensor->meta->dtype);
    const Meta& meta = *leaf.tensor->meta;
    const pg_address a = leaf.tensor->address();
    field.kind = PG_FIELD_TENSOR;
    field.dtype = meta.dtype, field.rank = meta.rank, field.shape = meta.shape;
    field.bytes = static_cast<uint64_t>(meta.bytes);
    field.data = a.buffer != 0 && meta.bytes != 0 ? reinterpret_cast<const void*>(a.buffer + a.offset) : nullptr;
  }
  std::deque<std::string> names_;
  std::vector<pg_field> fields_;
  std::vector<const pg_field*> pointers_;
};

class Transformed : public Stage {
 public:
  Transformed(StageRef parent, std::shared_ptr<const OpenTransform> transform, uint64_t seed, uint64_t epoch)
      : Stage(parent->traits()),
        parent_(std::move(parent)),
        transform_(std::move(transform)),
        seed_(seed),
        epoch_(epoch) {}
  Element get(int64_t i) const override {
    Element in = parent_->get(i);
    return in.layout ? transform_->apply(std::move(in), seed_, epoch_, i) : Element{};
  }
  Element get_into(int64_t i, const Landing& landing) const override {
    Element in = parent_->get(i);
    return in.layout ? transform_->apply(std::move(in), seed_, epoch_, i, &landing) : Element{};
  }
  bool pass(int64_t i) const override { return parent_->pass(i); }
  void want(int64_t i) const override { parent_->want(i); }

 protected:
  StageRef remade() const override {
    return std::make_shared<Transformed>(parent_->again(), transform_, seed_, epoch_);
  }

 private:
  const StageRef parent_;
  const std::shared_ptr<const OpenTransform> transform_;
  const uint64_t seed_, epoch_;
};

}  // namespace

OpenTransform::OpenTransform(const pg_transform_info& info, const void* options, std::string shown, uint64_t number)
    : info_(info), shown_(std::move(shown)), number_(number) {
  run_part(shown_, -1, [&](pg_error* error) { return info_.open(info_.user, options, &self_, error); });
}
OpenTransform::~OpenTransform() { info_.close(info_.user, self_); }

Element OpenTransform::apply(Element in, uint64_t seed, uint64_t epoch, int64_t position,
                             const Landing* landing) const {
  const Fields fields(in, shown_);
  FieldMaker maker(true, landing);
  maker.in = in.layout.get();
  const pg_field_sink sink = sink_of(maker);
  const uint64_t random = worker_seed(worker_key(worker_key(seed, epoch), number_), position);
  const pg_transform_call call{
      PG_SIZE(pg_transform_call, random), fields.count(), fields.list(), position, seed, epoch, random};
  run_part(shown_, position, [&](pg_error* error) { return info_.apply(info_.user, self_, &call, &sink, error); });
  return maker.made(std::move(in));
}

StageRef source_stage(const pg_source_info& info, const void* options, std::string shown) {
  auto kept = std::make_shared<const Options>(info.attrs, info.attr_count, info.attr_size, options);
  auto source = std::make_unique<OpenSource>(info, kept->data(), shown);
  if ((info.flags & PG_SOURCE_IN_ORDER) == 0) return std::make_shared<Indexed>(std::move(source));
  return std::make_shared<OneByOne>(std::move(source), std::move(kept));
}

StageRef transform_stage(StageRef parent, std::shared_ptr<const OpenTransform> transform, uint64_t seed,
                         uint64_t epoch) {
  return std::make_shared<Transformed>(std::move(parent), std::move(transform), seed, epoch);
}

}  // namespace perigee
