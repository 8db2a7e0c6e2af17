// SPDX-License-Identifier: Apache-2.0
#include "data/batch.hpp"

#include <algorithm>

#include "data/parts.hpp"

namespace perigee {

namespace {

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
  Collator(std::vector<Element>& samples, const Landing* landed, uint32_t dtype, int64_t first)
      : samples_(samples), landed_(landed), dtype_(dtype), first_(first) {}

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
    const TensorRef begun = landed_ != nullptr ? landed_->batch(p.begins[0], count) : nullptr;
    made.tensor = begun ? begun : make_batch(*leaf(p, 0).tensor, count);
    for (size_t i = 0; i < samples_.size(); i++) {
      const TensorRef& piece = leaf(p, i).tensor;
      if (!begun || piece->storage) put_piece(*made.tensor, static_cast<int64_t>(i), *piece);
    }
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
  const Landing* const landed_;
  const uint32_t dtype_;
  const int64_t first_;
  std::string text_;
  std::vector<Leaf> leaves_;
};

// What Landing makes batches of: the leaves that Collator stacks, in the layout's order.
void find_stacked(const Layout& layout, bool root, size_t& at, const std::vector<Leaf>& leaves,
                  std::vector<TensorRef>& found) {
  if (layout.kind == 'T') found[at] = leaves[at].tensor;
  const bool record = layout.kind == '{' && (root || layout.named);
  if (!record) at += layout.leaves;
  for (size_t i = 0; record && i < layout.entries.size(); i++)
    find_stacked(*layout.entries[i].value, false, at, leaves, found);
}

}  // namespace

Element collate(std::vector<Element>& samples, uint32_t number_dtype, int64_t first) {
  return Collator(samples, nullptr, number_dtype, first).all();
}

void Landing::begin(const Element& first) {
  layout_ = first.layout;
  size_t at = 0;
  pieces_.resize(first.leaves.size());
  find_stacked(*layout_, true, at, first.leaves, pieces_);
  int64_t bytes = 0;
  for (const TensorRef& piece : pieces_) bytes += piece ? dense_meta(*piece->meta, piece->meta->dtype)->bytes : 0;
  if (bytes > most_bytes_ / count_) std::fill(pieces_.begin(), pieces_.end(), nullptr);
  for (TensorRef& piece : pieces_) {
    batches_.push_back(piece ? make_batch(*piece, count_) : nullptr);
    if (piece) piece = describe_only(*piece);
  }
}

void Landing::land(Element& sample) {
  if (!layout_) begin(sample);
  if (sample.layout.get() == layout_.get() || sample.layout->text == layout_->text) {
    for (size_t k = 0; k < pieces_.size(); k++) {
      TensorRef& tensor = sample.leaves[k].tensor;
      if (!pieces_[k] || !fits(k, *tensor->meta) || tensor->device != pieces_[k]->device) continue;
      const TensorRef& batch = batches_[k];
      const int64_t offset = batch->offset + next_ * pieces_[k]->meta->bytes;
      if (tensor->storage.get() != batch->storage.get() || tensor->offset != offset) put_piece(*batch, next_, *tensor);
      tensor = pieces_[k];
    }
  }
  next_++;
}

bool Landing::fits(size_t leaf, const Meta& meta) const {
  return meta.dtype == pieces_[leaf]->meta->dtype && same_shape(meta, *pieces_[leaf]->meta);
}

TensorRef Landing::place(const std::string& key, const Meta& meta) const {
  size_t at = 0;
  for (size_t i = 0; layout_ && i < layout_->entries.size(); i++) {
    const Layout::Entry& entry = layout_->entries[i];
    if (entry.key == key) {
      if (entry.value->kind != 'T' || !pieces_[at] || !fits(at, meta) || pieces_[at]->device != &default_device())
        return nullptr;
      return make_tensor(dense_meta(meta, meta.dtype), batches_[at]->storage,
                         batches_[at]->offset + next_ * pieces_[at]->meta->bytes, pieces_[at]->device);
    }
    at += entry.value->leaves;
  }
  return nullptr;
}

TensorRef Landing::batch(size_t leaf, int64_t samples) const {
  const TensorRef& whole = batches_[leaf];
  if (!whole || samples == count_) return whole;
  int64_t shape[PG_MAX_RANK];
  std::copy_n(whole->meta->shape, whole->meta->rank, shape);
  shape[0] = samples;
  const MetaRef meta = intern_meta(whole->meta->dtype, whole->meta->rank, shape);
  // Copied, so that a few samples do not keep the memory of many.
  return copy_dense(*make_tensor(meta, whole->storage, whole->offset, whole->device), whole->meta->dtype);
}

Element Landing::batch(std::vector<Element>& samples, uint32_t number_dtype, int64_t first) const {
  return Collator(samples, this, number_dtype, first).all();
}

}  // namespace perigee
