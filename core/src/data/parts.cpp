// SPDX-License-Identifier: Apache-2.0
#include "data/parts.hpp"

#include <deque>
#include <exception>
#include <mutex>

#include "data/fields.hpp"
#include "data/worker.hpp"

namespace perigee {

namespace {

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
  OpenSource(const pg_source_info& info, OptionsRef options, const std::string& shown)
      : info(info), shown(shown), options(std::move(options)) {
    run_part(shown, -1,
             [&](pg_error* error) { return info.open(info.user, this->options->data(), &self_, &count, error); });
    if (count < 0 || (count == PG_COUNT_UNKNOWN && (info.flags & PG_SOURCE_IN_ORDER) == 0)) {
      info.close(info.user, self_);
      pg::fail(PG_E_INTERNAL, shown + ": it answers a count that there cannot be");
    }
  }
  ~OpenSource() { info.close(info.user, self_); }
  OpenSource(const OpenSource&) = delete;
  OpenSource& operator=(const OpenSource&) = delete;

  // One without a layout: the end. `last`: the layout of the element before, as most are alike.
  Element read(int64_t i, const Landing* landing, LayoutRef& last) {
    FieldMaker maker(false, landing, options.get(), last);
    const pg_field_sink sink = maker.sink();
    uint32_t end = 0;
    run_part(shown, i, [&](pg_error* error) { return info.read(info.user, self_, i, &sink, &end, error); });
    if (end == 0) {
      Element element = maker.made();
      if (element.layout != last) last = element.layout;
      return element;
    }
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

  Element gather(const std::vector<int64_t>& positions, LayoutRef& last) {
    FieldMaker maker(false, nullptr, options.get(), last);
    const pg_field_sink sink = maker.sink();
    run_part(shown, -1, [&](pg_error* error) {
      return info.gather(info.user, self_, positions.size(), positions.data(), &sink, error);
    });
    const std::string wrong = maker.without_axis(static_cast<int64_t>(positions.size()));
    if (!wrong.empty())
      pg::fail(PG_E_INTERNAL, pg::format("%s: it gathers %zu elements into a field '%s' that has another first axis",
                                         shown.c_str(), positions.size(), wrong.c_str()));
    Element element = maker.made();
    if (element.layout != last) last = element.layout;
    return element;
  }

  const pg_source_info& info;
  const std::string shown;
  const OptionsRef options;
  int64_t count = 0;

 private:
  void check_end(int64_t i) const {
    if (count == PG_COUNT_UNKNOWN) return;
    pg::fail(PG_E_DATA_LOSS, pg::format("%s: it ends behind %lld elements of %lld", shown.c_str(),
                                        static_cast<long long>(i), static_cast<long long>(count)));
  }
  void* self_ = nullptr;
};

// The layout of the last element, on any thread.
class LastLayout {
 public:
  LayoutRef get() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  void set(const LayoutRef& layout) {
    const std::lock_guard lock(mutex_);
    last_ = layout;
  }

 private:
  mutable std::mutex mutex_;
  LayoutRef last_;
};

class Indexed : public Stage {
 public:
  explicit Indexed(std::unique_ptr<OpenSource> source) : Stage({source->count}), source_(std::move(source)) {}
  Element get(int64_t i) const override {
    return like_last(layout_, [&](LayoutRef& last) { return source_->read(i, nullptr, last); });
  }
  Element get_into(int64_t i, const Landing& landing) const override {
    return like_last(layout_, [&](LayoutRef& last) { return source_->read(i, &landing, last); });
  }
  void get_each(const int64_t* positions, size_t many, Made* out) const override {
    LayoutRef last = layout_.get();
    for (size_t k = 0; k < many; k++) {
      try {
        check_wanted();
        out[k].element = source_->read(positions[k], nullptr, last);
      } catch (...) {
        out[k].error = std::current_exception();
      }
    }
    layout_.set(last);
  }
  Element gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const override {
    if (source_->info.gather == nullptr) return Stage::gather(positions, number_dtype, first);
    return like_last(batch_layout_, [&](LayoutRef& last) { return source_->gather(positions, last); });
  }

 private:
  template <class Make>
  static Element like_last(LastLayout& kept, Make&& make) {
    LayoutRef last = kept.get();
    const Layout* before = last.get();
    Element made = make(last);
    if (last.get() != before) kept.set(last);
    return made;
  }
  const std::unique_ptr<OpenSource> source_;
  mutable LastLayout layout_, batch_layout_;
};

// What comes before an element is read by who asks for it, unless somebody has.
class OneByOne : public Stage {
 public:
  explicit OneByOne(std::unique_ptr<OpenSource> source) : Stage({source->count, true}), source_(std::move(source)) {}

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
    return std::make_shared<OneByOne>(std::make_unique<OpenSource>(source_->info, source_->options, source_->shown));
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
      if (i < count) made.element = source_->read(i, landing, layout_);
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
  mutable std::mutex mutex_;
  mutable std::deque<Made> made_;  // from number first_ on
  mutable int64_t first_ = 0;
  mutable bool ended_ = false;
  mutable LayoutRef layout_;
};

// ---- transforms ----

// The fields of an element as plugins see them. Of tables only lists of texts are among them.
class Fields {
 public:
  Fields(Element& in, const std::string& shown) {
    if (in.layout->kind != '{' || !in.layout->named)
      pg::fail_argument(shown + ": a transform takes samples whose fields all have names");
    size_t at = 0;
    fields_.reserve(in.layout->entries.size());
    for (const Layout::Entry& entry : in.layout->entries) {
      const Layout& value = *entry.value;
      std::string name = entry.key.substr(entry.key.find(':') + 1);
      if (value.kind != '{')
        add(std::move(name), value.kind, in.leaves[at], shown);
      else
        add_texts(std::move(name), value, in.leaves.data() + at);
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
  // A table that is a list of texts.
  void add_texts(std::string name, const Layout& value, const Leaf* leaves) {
    for (size_t i = 0; i < value.entries.size(); i++)
      if (value.entries[i].value->kind != 'S' || value.entries[i].key != "i" + std::to_string(i + 1) + ";") return;
    std::vector<pg_text>& texts = texts_.emplace_back();
    for (size_t i = 0; i < value.entries.size(); i++) texts.push_back({leaves[i].text.size(), leaves[i].text.data()});
    pg_field field{};
    field.size = PG_SIZE(pg_field, data);
    field.kind = PG_FIELD_TEXTS;
    field.name = names_.emplace_back(std::move(name)).c_str();
    field.bytes = texts.size() * sizeof(pg_text);
    field.data = texts.empty() ? nullptr : texts.data();
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
  std::deque<std::vector<pg_text>> texts_;
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
  void get_each(const int64_t* positions, size_t many, Made* out) const override {
    parent_->get_each(positions, many, out);
    for (size_t k = 0; k < many; k++) {
      if (!out[k].element.layout) continue;
      try {
        check_wanted();
        out[k].element = transform_->apply(std::move(out[k].element), seed_, epoch_, positions[k]);
      } catch (...) {
        out[k] = {{}, std::current_exception()};
      }
    }
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

OpenTransform::OpenTransform(const pg_transform_info& info, OptionsRef options, std::string shown, uint64_t number)
    : info_(info), options_(std::move(options)), shown_(std::move(shown)), number_(number) {
  run_part(shown_, -1, [&](pg_error* error) { return info_.open(info_.user, options_->data(), &self_, error); });
}
OpenTransform::~OpenTransform() { info_.close(info_.user, self_); }

Element OpenTransform::apply(Element in, uint64_t seed, uint64_t epoch, int64_t position,
                             const Landing* landing) const {
  const Fields fields(in, shown_);
  FieldMaker maker(true, landing, options_.get());
  maker.in = in.layout.get();
  const pg_field_sink sink = maker.sink();
  const uint64_t random = worker_seed(worker_key(worker_key(seed, epoch), number_), position);
  const pg_transform_call call{
      PG_SIZE(pg_transform_call, random), fields.count(), fields.list(), position, seed, epoch, random};
  run_part(shown_, position, [&](pg_error* error) { return info_.apply(info_.user, self_, &call, &sink, error); });
  return maker.made_of(std::move(in));
}

StageRef source_stage(const pg_source_info& info, OptionsRef options, std::string shown) {
  auto source = std::make_unique<OpenSource>(info, std::move(options), shown);
  if ((info.flags & PG_SOURCE_IN_ORDER) == 0) return std::make_shared<Indexed>(std::move(source));
  return std::make_shared<OneByOne>(std::move(source));
}

StageRef transform_stage(StageRef parent, std::shared_ptr<const OpenTransform> transform, uint64_t seed,
                         uint64_t epoch) {
  return std::make_shared<Transformed>(std::move(parent), std::move(transform), seed, epoch);
}

}  // namespace perigee
