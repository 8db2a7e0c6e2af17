// SPDX-License-Identifier: Apache-2.0
// unique_rows: equal rows found by sorting; searchsorted: places in sorted rows, by halving.
#include "axis_rows.hpp"
#include "dense_reader.hpp"
#include "order.hpp"

namespace cpu {
namespace {

struct UniqueRows final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_all_dense(call); }
  UniqueRows(const pg::KernelCall& call, pg::Plan&) : consecutive_(call.attr<bool>("consecutive")) {
    const pg_tensor& x = call.in(0);
    rows_ = x.shape[0];
    width_ = x.rank == 2 ? x.shape[1] : 1;
    compute_ = kComputeOf[storage_of(x)];
    reader_ = DenseReader(x, kStorageOf[compute_]);
  }
  void launch(const pg_launch& launch) override {
    switch (compute_) {
      case kF32: return run<float, ShortItem>(launch);
      case kF64: return run<double, LongItem>(launch);
      case kI64: return run<int64_t, LongItem>(launch);
      default: return run<int32_t, ShortItem>(launch);
    }
  }

 private:
  template <class T, class Item>
  void run(const pg_launch& launch) const {
    std::vector<T> buffer(static_cast<size_t>(rows_ * width_));
    const T* x = static_cast<const T*>(reader_.read(pg::input(launch, 0), 0, rows_ * width_, buffer.data()));
    if constexpr (std::is_integral_v<T>)
      if (count(launch, x)) return;
    std::vector<int64_t> order(static_cast<size_t>(rows_));
    if (consecutive_ || width_ == 0) {
      for (int64_t i = 0; i < rows_; i++) order[static_cast<size_t>(i)] = i;
    } else if (width_ == 1 && rows_ <= UINT32_MAX) {
      std::vector<Item> items(order.size()), spare(order.size());
      for (int64_t i = 0; i < rows_; i++) items[static_cast<size_t>(i)] = Item(order_key(x[i]), i);
      sort_items_together(items.data(), spare.data(), rows_);
      for (int64_t i = 0; i < rows_; i++) order[static_cast<size_t>(i)] = items[static_cast<size_t>(i)].at();
    } else {
      for (int64_t i = 0; i < rows_; i++) order[static_cast<size_t>(i)] = i;
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return before(x, a, b); });
    }
    group(launch, x, order.data());
  }

  // Integers from a small range are counted.
  template <class T>
  bool count(const pg_launch& launch, const T* x) const {
    if (consecutive_ || width_ != 1 || rows_ == 0) return false;
    auto [low, high] = std::minmax_element(x, x + rows_);
    uint64_t range = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
    if (range >= static_cast<uint64_t>(std::max<int64_t>(rows_, 1024))) return false;
    auto *first = pg::output<int64_t>(launch, 0), *inverse = pg::output<int64_t>(launch, 1);
    auto* counts = pg::output<int64_t>(launch, 2);
    uint64_t least = static_cast<uint64_t>(*low);
    auto at = [&](int64_t i) { return static_cast<size_t>(static_cast<uint64_t>(x[i]) - least); };
    std::vector<int64_t> number(range + 1, 0), place(range + 1, 0);
    for (int64_t i = rows_; i-- > 0;) number[at(i)]++, place[at(i)] = i;
    int64_t groups = 0;
    for (size_t v = 0; v <= range; v++) {
      if (number[v] == 0) continue;
      first[groups] = place[v];
      counts[groups] = number[v];
      place[v] = groups++;
    }
    for (int64_t i = 0; i < rows_; i++) inverse[i] = place[at(i)];
    launch.extents[0] = launch.extents[2] = groups;
    launch.extents[1] = rows_;
    return true;
  }

  template <class T>
  bool before(const T* x, int64_t a, int64_t b) const {
    for (int64_t j = 0; j < width_; j++) {
      auto p = order_key(x[a * width_ + j]), q = order_key(x[b * width_ + j]);
      if (p != q) return p < q;
    }
    return false;
  }

  template <class T>
  void group(const pg_launch& launch, const T* x, const int64_t* order) const {
    auto *first = pg::output<int64_t>(launch, 0), *inverse = pg::output<int64_t>(launch, 1);
    auto* counts = pg::output<int64_t>(launch, 2);
    int64_t groups = 0;
    for (int64_t i = 0; i < rows_; i++) {
      bool same = i > 0 && std::equal(x + order[i] * width_, x + (order[i] + 1) * width_, x + order[i - 1] * width_);
      if (!same) {
        first[groups] = order[i];
        counts[groups++] = 0;
      }
      counts[groups - 1]++;
      inverse[order[i]] = groups - 1;
    }
    launch.extents[0] = groups;
    launch.extents[1] = rows_;
    launch.extents[2] = groups;
  }

  bool consecutive_;
  int64_t rows_, width_;
  Compute compute_;
  DenseReader reader_;
};
PG_KERNEL("unique_rows", UniqueRows);

struct SearchSorted final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(0)) != storage_of(call.in(1)) || storage_of(call.out(0)) != sI64) refuse(call);
  }
  SearchSorted(const pg::KernelCall& call, pg::Plan&) : right_(call.attr<bool>("right")) {
    const pg_tensor &sorted = call.in(0), &values = call.in(1);
    compute_ = kComputeOf[storage_of(sorted)];
    sorted_ = DenseReader(sorted, kStorageOf[compute_]);
    values_ = DenseReader(values, kStorageOf[compute_]);
    length_ = sorted.shape[sorted.rank - 1];
    count_ = pg::element_count(values);
    row_ = sorted.rank == 1 ? std::max<int64_t>(count_, 1) : values.shape[values.rank - 1];
  }
  void launch(const pg_launch& launch) override {
    if (count_ == 0) return;
    visit(kStorageOf[compute_], [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int64_t> ||
                    std::is_same_v<T, int32_t>)
        run<T>(launch);
    });
  }

 private:
  template <class T>
  void run(const pg_launch& launch) const {
    int64_t rows = count_ / row_;
    std::vector<T> buffer(static_cast<size_t>(rows * length_));
    const T* sorted = static_cast<const T*>(sorted_.read(pg::input(launch, 0), 0, rows * length_, buffer.data()));
    auto* out = pg::output<int64_t>(launch, 0);
    auto piece = [&](int64_t begin, int64_t end) {
      alignas(64) char block[kBlock * 8];
      for (int64_t p = begin; p < end; p += kBlock) {
        int64_t n = std::min(kBlock, end - p);
        const T* values = static_cast<const T*>(values_.read(pg::input(launch, 1), p, n, block));
        for (int64_t i = 0; i < n;) {  // of one row
          int64_t row = (p + i) / row_, m = std::min(n - i, (row + 1) * row_ - p - i);
          places(sorted + row * length_, values + i, out + p + i, m);
          i += m;
        }
      }
    };
    if (count_ <= kGrain / 16) return piece(0, count_);
    pg::parallel_for(count_, kGrain / 16, piece);
  }

  // How many elements come before each value: those below it, or (`right`) not above it. Several are sought in step, so
  // that the memory is asked for many elements at a time.
  template <class T>
  void places(const T* row, const T* values, int64_t* out, int64_t m) const {
    constexpr int64_t kTogether = 8;
    for (; m >= kTogether; m -= kTogether, values += kTogether, out += kTogether)
      right_ ? count_before<kTogether, true>(row, values, out) : count_before<kTogether, false>(row, values, out);
    for (; m > 0; m--, values++, out++)
      right_ ? count_before<1, true>(row, values, out) : count_before<1, false>(row, values, out);
  }
  template <int64_t lanes, bool right, class T>
  void count_before(const T* row, const T* values, int64_t* out) const {
    const T* low[lanes];
    for (int64_t i = 0; i < lanes; i++) low[i] = row;
    int64_t n = length_;
    for (; n > 1; n -= n / 2) {
      int64_t half = n / 2;
      for (int64_t i = 0; i < lanes; i++)  // without a branch that could be guessed wrong
        low[i] += half & -static_cast<int64_t>(comes_before<right>(low[i][half - 1], values[i]));
    }
    for (int64_t i = 0; i < lanes; i++)
      out[i] = low[i] - row + (n == 1 && comes_before<right>(*low[i], values[i]) ? 1 : 0);
  }
  template <bool right, class T>
  static bool comes_before(T x, T value) {
    bool nan = value != value;
    return right ? static_cast<bool>((x <= value) | nan) : static_cast<bool>((x < value) | (nan & (x == x)));
  }

  bool right_;
  Compute compute_;
  DenseReader sorted_, values_;
  int64_t length_, count_, row_;
};
PG_KERNEL("searchsorted", SearchSorted);

}  // namespace
}  // namespace cpu
