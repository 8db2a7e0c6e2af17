// SPDX-License-Identifier: Apache-2.0
// sort, argsort, topk, kthvalue, median, nanmedian and mode: each line along an axis put in order, wholly or in part.
// Always stable; NaN counts as larger than all numbers.
#include "axis_rows.hpp"
#include "order.hpp"

namespace cpu {
namespace {

enum class What { sort, topk, kth, median, nanmedian, mode };

struct Sort final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    uint32_t last = call.output_count() - 1;
    if (storage_of(call.out(last)) != sI64) refuse(call);
    if (last == 1 && storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }

  Sort(const pg::KernelCall& call, pg::Plan&) : values_(call.output_count() == 2) {
    const pg_tensor& x = call.in(0);
    int64_t axis = call.axis("axis", x.rank);
    const pg_tensor* values = values_ ? &call.out(0) : nullptr;
    rows_ = AxisRows<3>({&x, &call.out(values_ ? 1 : 0), values}, axis);
    compute_ = kComputeOf[rows_.storage(0)];
    length_ = rows_.length();
    take_ = length_;
    if (call.is("sort") || call.is("argsort")) {
      reverse_ = call.attr<bool>("descending");
    } else if (call.is("topk")) {
      what_ = What::topk;
      reverse_ = call.attr<bool>("largest");
      take_ = call.attr<int64_t>("k");
    } else {
      what_ = call.is("kthvalue") ? What::kth : call.is("median") ? What::median : What::nanmedian;
      if (call.is("mode")) what_ = What::mode;
      if (what_ == What::kth) place_ = call.attr<int64_t>("k") - 1;
      take_ = 1;
    }
  }

  void launch(const pg_launch& launch) override {
    if (take_ == 0 || rows_.count() == 0) return;
    const void* x = pg::input(launch, 0);
    void* indices = pg::output(launch, values_ ? 1 : 0);
    void* values = values_ ? pg::output(launch, 0) : nullptr;
    bool fits = length_ <= UINT32_MAX;
    switch (compute_) {
      case kF32: return fits ? run<float, ShortItem>(x, values, indices) : run<float, LongItem>(x, values, indices);
      case kF64: return run<double, LongItem>(x, values, indices);
      case kI64: return run<int64_t, LongItem>(x, values, indices);
      default: return fits ? run<int32_t, ShortItem>(x, values, indices) : run<int32_t, LongItem>(x, values, indices);
    }
  }

 private:
  template <class T, class Item>
  void run(const void* x, void* values, void* indices) const {
    bool together = rows_.count() < pg::thread_count() && what_ == What::sort && length_ >= 2 * kGrain;
    auto piece = [&](int64_t begin, int64_t end) {
      Storage type = kStorageOf[compute_];
      std::vector<T> line(rows_.direct(0, type) ? 0 : static_cast<size_t>(length_));
      bool few = what_ == What::topk && take_ <= length_ / 4;
      std::vector<Item> items(static_cast<size_t>(few ? spread(take_) : length_)), spare(spare_for<Item>(few));
      for (int64_t i = begin; i < end; i++) {
        const void* from = rows_.line(0, x, i);
        const auto* elements = static_cast<const T*>(rows_.load(0, from, type, line.data()));
        order(elements, items.data(), spare.data(), few, together);
        auto* to = static_cast<int64_t*>(rows_.line(1, indices, i));
        auto give = [&](int64_t first, int64_t last) {
          for (int64_t j = first; j < last; j++) to[j * rows_.step(1)] = items[static_cast<size_t>(j)].at();
          if (values != nullptr) copy_values(from, items.data(), rows_.line(2, values, i), first, last);
        };
        together ? pg::parallel_for(take_, kGrain, give) : give(0, take_);
      }
    };
    if (together) return piece(0, rows_.count());
    rows_.each(piece);
  }

  template <class Item>
  size_t spare_for(bool few) const {
    bool sorts = what_ == What::sort || what_ == What::mode;
    return sorts && !few && length_ >= kRadixFrom<Item> ? static_cast<size_t>(length_) : 0;
  }

  // What is wanted, in front of the items.
  template <class T, class Item>
  void order(const T* line, Item* items, Item* spare, bool few, bool together) const {
    using Key = decltype(Item().key());
    Key flip = reverse_ ? static_cast<Key>(~Key{0}) : Key{0};
    auto key = [line, flip](int64_t i) { return static_cast<Key>(static_cast<Key>(order_key(line[i])) ^ flip); };
    if (few) return select_first(items, take_, length_, key);
    for (int64_t i = 0; i < length_; i++) items[i] = Item(key(i), i);
    switch (what_) {
      case What::sort: return together ? sort_items_together(items, spare, length_) : sort_items(items, spare, length_);
      case What::topk:
        std::nth_element(items, items + take_ - 1, items + length_);
        return std::sort(items, items + take_);
      case What::mode: return most_frequent(items, spare);
      default: return pick(line, items);
    }
  }

  template <class T, class Item>
  void pick(const T* line, Item* items) const {
    int64_t place = place_;
    if (what_ != What::kth) {
      int64_t numbers = 0, nan = -1;
      for (int64_t i = length_; i-- > 0;) {
        if (line[i] != line[i])
          nan = i;
        else
          numbers++;
      }
      bool none = what_ == What::median ? nan >= 0 : numbers == 0;
      if (none) {
        items[0] = Item(0, nan);
        return;
      }
      place = (numbers - 1) / 2;
    }
    std::nth_element(items, items + place, items + length_);
    items[0] = items[place];
  }

  // The smallest of the values that occur most often; of its places the last.
  template <class Item>
  void most_frequent(Item* items, Item* spare) const {
    sort_items(items, spare, length_);
    int64_t best = 0, most = 0;
    for (int64_t i = 0, first = 0; i < length_; i++) {
      if (items[i].key() != items[first].key()) first = i;
      if (i - first + 1 > most) most = i - first + 1, best = i;
    }
    items[0] = items[best];
  }

  template <class Item>
  void copy_values(const void* line, const Item* items, void* target, int64_t first, int64_t last) const {
    visit_bytes(kStorageBytes[rows_.storage(0)], [&](auto zero) {
      using E = decltype(zero);
      const E* from = static_cast<const E*>(line);
      E* to = static_cast<E*>(target);
      for (int64_t j = first; j < last; j++) to[j * rows_.step(2)] = from[items[j].at() * rows_.step(0)];
    });
  }

  What what_ = What::sort;
  bool values_, reverse_ = false;
  Compute compute_;
  int64_t length_, take_, place_ = 0;
  AxisRows<3> rows_;  // x, indices, values
};
PG_KERNEL("sort", Sort);
PG_KERNEL("argsort", Sort);
PG_KERNEL("topk", Sort);
PG_KERNEL("kthvalue", Sort);
PG_KERNEL("median", Sort);
PG_KERNEL("nanmedian", Sort);
PG_KERNEL("mode", Sort);

}  // namespace
}  // namespace cpu
