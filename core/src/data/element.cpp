// SPDX-License-Identifier: Apache-2.0
#include "data/element.hpp"

#include <atomic>
#include <cstring>

namespace perigee {

namespace {

constexpr int kDeepest = 100;  // tables in tables

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  LayoutRef whole() {
    LayoutRef layout = value(0);
    if (at_ != text_.size()) damaged();
    return layout;
  }

 private:
  [[noreturn]] void damaged() const { pg::fail_argument(pg::format("the layout is damaged at byte %zu", at_)); }
  char next() {
    if (at_ >= text_.size()) damaged();
    return text_[at_++];
  }

  std::string key() {
    const size_t begin = at_;
    if (next() == 'i') {
      while (next() != ';') {
      }
    } else {
      size_t length = 0;
      for (char c = next(); c != ':'; c = next()) {
        if (c < '0' || c > '9' || length > text_.size()) damaged();
        length = length * 10 + static_cast<size_t>(c - '0');
      }
      if (length > text_.size() - at_) damaged();
      at_ += length;
    }
    return text_.substr(begin, at_ - begin);
  }

  LayoutRef value(int depth) {
    static std::atomic<uint64_t> last{0};
    const size_t begin = at_;
    auto made = std::make_shared<Layout>();
    made->id = ++last;
    made->kind = next();
    made->leaves = 1;
    if (made->kind == '{') {
      if (depth == kDeepest) pg::fail_argument("tables are nested too deep");
      made->leaves = 0;
      made->named = true;
      while (at_ < text_.size() && text_[at_] != '}') {
        std::string name = key();
        LayoutRef inner = value(depth + 1);
        made->leaves += inner->leaves;
        made->named = made->named && name[0] == 's';
        made->entries.push_back({std::move(name), std::move(inner)});
      }
      next();
      made->named = made->named && !made->entries.empty();
    } else if (std::strchr("TNBS", made->kind) == nullptr) {
      damaged();
    }
    made->text = text_.substr(begin, at_ - begin);
    return made;
  }

  const std::string& text_;
  size_t at_ = 0;
};

// "x" of "s1:x", "3" of "i3;".
std::string key_name(const std::string& key) {
  return key[0] == 'i' ? key.substr(1, key.size() - 2) : key.substr(key.find(':') + 1);
}

std::string describe(const Layout& layout, const Leaf* leaf, bool root) {
  switch (layout.kind) {
    case 'T': {
      std::string shape = shape_text(*leaf->tensor->meta);
      shape.front() = '{', shape.back() = '}';
      return "tensor " + dtype_text(leaf->tensor->meta->dtype) + " " + shape;
    }
    case 'N': return pg::format("number %.14g", leaf->number);
    case 'B': return leaf->number != 0 ? "boolean true" : "boolean false";
    case 'S': return "string \"" + leaf->text + "\"";
    default: return root || layout.named ? "a table with names" : "a table";
  }
}

// The samples' values at one place: layout by sample, and where its leaves begin.
struct Place {
  std::vector<const Layout*> layouts;
  std::vector<size_t> begins;
  std::string path;
  bool root;
};

class Collator {
 public:
  Collator(std::vector<Element>& samples, uint32_t dtype, int64_t first)
      : samples_(samples), dtype_(dtype), first_(first) {}

  Element all() {
    Place place{{}, std::vector<size_t>(samples_.size(), 0), "", true};
    for (const Element& sample : samples_) place.layouts.push_back(sample.layout.get());
    value(place);
    Element made;
    made.layout = parse_layout(text_);
    made.leaves = std::move(leaves_);
    return made;
  }

 private:
  Leaf& leaf(const Place& p, size_t i) { return samples_[i].leaves[p.begins[i]]; }
  const Leaf* some_leaf(const Place& p, size_t i) {
    return p.layouts[i]->leaves > 0 ? &samples_[i].leaves[p.begins[i]] : nullptr;
  }
  static bool is_record(const Place& p, size_t i) {
    return p.layouts[i]->kind == '{' && (p.root || p.layouts[i]->named);
  }

  void check(const Place& p) {
    for (size_t i = 0; i < samples_.size(); i++) {
      bool same = p.layouts[i]->kind == p.layouts[0]->kind && is_record(p, i) == is_record(p, 0);
      if (same && p.layouts[0]->kind == 'T') same = same_shape(*leaf(p, i).tensor->meta, *leaf(p, 0).tensor->meta);
      if (same) continue;
      const long long number = first_ + static_cast<int64_t>(i);
      const std::string of = p.path.empty() ? "sample" : p.path + " of sample";
      const bool tensors = p.layouts[0]->kind == 'T' && p.layouts[i]->kind == 'T';
      pg::fail_argument(pg::format("%s %lld is %s, but of sample %lld it is %s%s", of.c_str(), number,
                                   describe(*p.layouts[i], some_leaf(p, i), p.root).c_str(),
                                   static_cast<long long>(first_),
                                   describe(*p.layouts[0], some_leaf(p, 0), p.root).c_str(),
                                   tensors ? " (make them of one shape with ds:map)" : ""));
    }
  }

  void stack(const Place& p) {
    const int64_t count = static_cast<int64_t>(samples_.size());
    Leaf made;
    made.tensor = make_batch(*leaf(p, 0).tensor, count);
    for (size_t i = 0; i < samples_.size(); i++) put_piece(*made.tensor, static_cast<int64_t>(i), *leaf(p, i).tensor);
    text_ += 'T';
    leaves_.push_back(std::move(made));
  }

  void numbers(const Place& p, uint32_t dtype) {
    const int64_t count = static_cast<int64_t>(samples_.size());
    std::vector<double> values;
    for (size_t i = 0; i < samples_.size(); i++) values.push_back(leaf(p, i).number);
    Device& cpu = default_device();
    TensorRef wide = from_host(PG_F64, 1, &count, values.data(), cpu);
    Leaf made;
    made.tensor = dtype == PG_F64 ? wide : copy_dense(*wide, dtype);
    text_ += 'T';
    leaves_.push_back(std::move(made));
  }

  void record(const Place& p) {
    text_ += '{';
    size_t begin = 0;
    for (const Layout::Entry& entry : p.layouts[0]->entries) {
      Place inner{{}, {}, p.path.empty() ? key_name(entry.key) : p.path + "." + key_name(entry.key), false};
      for (size_t i = 0; i < samples_.size(); i++) {
        size_t at = p.begins[i];
        const Layout* found = nullptr;
        if (p.layouts[i] == p.layouts[0]) {
          at += begin, found = entry.value.get();
        } else {
          for (const Layout::Entry& other : p.layouts[i]->entries) {
            if (other.key == entry.key) {
              found = other.value.get();
              break;
            }
            at += other.value->leaves;
          }
        }
        if (found == nullptr)
          pg::fail_argument(pg::format("sample %lld has no \"%s\", unlike sample %lld",
                                       static_cast<long long>(first_ + static_cast<int64_t>(i)), inner.path.c_str(),
                                       static_cast<long long>(first_)));
        inner.layouts.push_back(found);
        inner.begins.push_back(at);
      }
      text_ += entry.key;
      value(inner);
      begin += entry.value->leaves;
    }
    text_ += '}';
  }

  void list(const Place& p) {
    text_ += '{';
    for (size_t i = 0; i < samples_.size(); i++) {
      text_ += "i" + std::to_string(i + 1) + ";" + p.layouts[i]->text;
      for (size_t k = 0; k < p.layouts[i]->leaves; k++)
        leaves_.push_back(std::move(samples_[i].leaves[p.begins[i] + k]));
    }
    text_ += '}';
  }

  void value(const Place& p) {
    check(p);
    switch (p.layouts[0]->kind) {
      case 'T': return stack(p);
      case 'N': return numbers(p, dtype_);
      case 'B': return numbers(p, PG_B8);
      case 'S': return list(p);
      default: return is_record(p, 0) ? record(p) : list(p);
    }
  }

  std::vector<Element>& samples_;
  const uint32_t dtype_;
  const int64_t first_;
  std::string text_;
  std::vector<Leaf> leaves_;
};

}  // namespace

LayoutRef parse_layout(const std::string& text) { return Parser(text).whole(); }

Element collate(std::vector<Element>& samples, uint32_t number_dtype, int64_t first) {
  return Collator(samples, number_dtype, first).all();
}

TensorRef make_batch(const Tensor& like, int64_t count) {
  int64_t shape[PG_MAX_RANK + 1];
  shape[0] = count;
  for (uint32_t i = 0; i < like.meta->rank; i++) shape[i + 1] = like.meta->shape[i];
  return make_dense(*like.device, intern_meta(like.meta->dtype, like.meta->rank + 1, shape), "batch");
}

void put_piece(Tensor& batch, int64_t index, Tensor& piece) {
  const int64_t bytes = piece.meta->bytes;
  if (bytes == 0) return;
  if (piece.meta->contiguous && piece.device->host_visible && piece.device->synchronous) {
    const pg_address from = piece.address(), to = batch.address();
    std::memcpy(reinterpret_cast<char*>(to.buffer + to.offset) + index * bytes,
                reinterpret_cast<const char*>(from.buffer + from.offset), static_cast<size_t>(bytes));
    return;
  }
  TensorRef target = make_tensor(dense_meta(*piece.meta, piece.meta->dtype), batch.storage,
                                 batch.offset + index * bytes, batch.device);
  copy_into(*target, piece, "batch");
}

}  // namespace perigee
