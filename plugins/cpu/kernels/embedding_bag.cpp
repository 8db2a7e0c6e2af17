// SPDX-License-Identifier: Apache-2.0
// embedding_bag, embedding_bag_max and their gradients. Rows of a bag, and what flows into a row of the table, are
// added up by one thread, in the order of the index.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "kernels/bags.hpp"

namespace cpu::embedding_bag {
namespace {

// sum += by * row, in float or double.
void add_row(Compute compute, char* sum, const char* row, double by, int64_t n) {
  const void* rows[2] = {sum, row};
  if (compute == kF64) {
    const double weight[2] = {1, by};
    simd->combine_rows[1](rows, weight, 2, sum, n);
  } else {
    const float weight[2] = {1, static_cast<float>(by)};
    simd->combine_rows[0](rows, weight, 2, sum, n);
  }
}

struct EmbeddingBag final : pg::Kernel {
  static constexpr Places kAt{0, 1, 2, 3};
  static void supports(const pg::KernelCall& call) { check_call(call, kAt); }
  EmbeddingBag(const pg::KernelCall& call, pg::Plan& plan)
      : index_(call, kAt, call.in(0).shape[0]),
        storage_(storage_of(call.in(0))),
        weighed_(call.has(3)),
        mean_(call.attr<int32_t>("mode") == 1),
        rows_(call.in(0).shape[0]),
        width_(call.in(0).shape[1]) {
    plan.workspace = index_.workspace();
  }
  void launch(const pg_launch& launch) override {
    const BagIndex::Read r = index_.read(launch, pg::host_pointer<char>(launch.workspace));
    const void* weight = weighed_ ? pg::input(launch, 3) : nullptr;
    if (storage_ == sF32) return run_floats(launch, r, static_cast<const float*>(weight));
    index_.check(r.index);
    if (width_ == 0) return;
    const Rows table(pg::input(launch, 0), storage_, width_);
    char* out = pg::output<char>(launch, 0);
    const Compute compute = kComputeOf[storage_];
    const Storage type = kStorageOf[compute];
    pg::parallel_for(index_.bags(), index_.grain(width_), [&](int64_t first, int64_t last) {
      std::vector<char> buffer(static_cast<size_t>(width_) * 8), sum(buffer.size());
      for (int64_t bag = first; bag < last; bag++) {
        std::fill(sum.begin(), sum.end(), 0);
        for (int64_t k = r.begin[bag]; k < r.begin[bag + 1]; k++) {
          if (r.index[k] == index_.skip()) continue;
          const double by = weight != nullptr ? number_at(weight, storage_, k) : 1.0;
          add_row(compute, sum.data(), table.get(r.index[k], buffer.data()), by, width_);
        }
        if (mean_) divide(type, sum.data(), static_cast<double>(std::max<int64_t>(1, index_.counted(r, bag))));
        convert(type, storage_, sum.data(), out + bag * width_ * kStorageBytes[storage_], width_);
      }
    });
  }

 private:
  void run_floats(const pg_launch& launch, const BagIndex::Read& r, const float* weight) const {
    const BagSums sums{pg::input<const float>(launch, 0),
                       rows_,
                       width_,
                       r.index,
                       r.begin,
                       index_.count(),
                       index_.skip(),
                       weight,
                       mean_,
                       pg::output<float>(launch, 0)};
    if (width_ == 0) return index_.check(r.index);
    std::atomic<bool> fits = true;
    auto piece = [&](int64_t first, int64_t last) {
      if (!simd->bag_sums(sums, first, last)) fits.store(false, std::memory_order_relaxed);
    };
    if (index_.count() * width_ <= kGrain)
      piece(0, index_.bags());
    else
      pg::parallel_for(index_.bags(), index_.grain(width_), piece);
    // Indices in front of the first bag and behind the last there are none, so this finds what did not fit.
    if (!fits || index_.bags() == 0) index_.check(r.index);
  }
  void divide(Storage type, char* sum, double by) const {
    if (type == sF64) {
      for (int64_t i = 0; i < width_; i++) reinterpret_cast<double*>(sum)[i] /= by;
    } else {
      for (int64_t i = 0; i < width_; i++) reinterpret_cast<float*>(sum)[i] /= static_cast<float>(by);
    }
  }

  BagIndex index_;
  Storage storage_;
  bool weighed_, mean_;
  int64_t rows_, width_;
};
PG_KERNEL("embedding_bag", EmbeddingBag);

// Rows of the table are dealt out to the threads, each of which looks for its own in the index.
template <class Piece>
void deal_rows(int64_t rows, int64_t work, const Piece& piece) {
  if (work <= kGrain) return piece(0, rows);
  pg::parallel_for(rows, (rows + pg::thread_count() - 1) / pg::thread_count(), piece);
}

// What sums of the table's rows are kept in: the result, or, of 16-bit floats, memory of their own.
class TableSums {
 public:
  TableSums(const pg_tensor& table)
      : storage_(storage_of(table)), rows_(table.shape[0]), width_(table.shape[1]), wide_(storage_ != type()) {}
  Storage type() const { return kStorageOf[compute()]; }
  Compute compute() const { return kComputeOf[storage_]; }
  uint64_t workspace() const { return wide_ ? static_cast<uint64_t>(rows_ * width_) * 4 : 0; }
  char* begin(char* result, char* scratch) const { return wide_ ? scratch : result; }
  // Bytes of a row of them.
  int64_t row_bytes() const { return width_ * kStorageBytes[type()]; }
  void finish(const char* sums, char* result, int64_t first, int64_t last) const {
    if (!wide_) return;
    convert(type(), storage_, sums + first * row_bytes(), result + first * width_ * kStorageBytes[storage_],
            (last - first) * width_);
  }
  Storage storage() const { return storage_; }
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }

 private:
  Storage storage_;
  int64_t rows_, width_;
  bool wide_;
};

struct EmbeddingBagGrad final : pg::Kernel {
  static constexpr Places kAt{4, 1, 2, 3};
  static void supports(const pg::KernelCall& call) { check_call(call, kAt, 4); }
  EmbeddingBagGrad(const pg::KernelCall& call, pg::Plan& plan)
      : index_(call, kAt, call.out(0).shape[0]),
        sums_(call.out(0)),
        weighed_(call.has(3)),
        mean_(call.attr<int32_t>("mode") == 1) {
    plan.workspace = index_.workspace() + sums_.workspace();
  }
  void launch(const pg_launch& launch) override {
    char* scratch = pg::host_pointer<char>(launch.workspace);
    const BagIndex::Read r = index_.read(launch, scratch);
    index_.check(r.index);
    const int64_t width = sums_.width();
    if (sums_.rows() * width == 0) return;
    const void* weight = weighed_ ? pg::input(launch, 3) : nullptr;
    const Rows dy(pg::input(launch, 0), sums_.storage(), width);
    char *result = pg::output<char>(launch, 0), *sums = sums_.begin(result, scratch + index_.workspace());
    deal_rows(sums_.rows(), index_.count() * width, [&](int64_t first, int64_t last) {
      const int64_t bytes = sums_.row_bytes();
      std::memset(sums + first * bytes, 0, static_cast<size_t>((last - first) * bytes));
      std::vector<char> buffer(static_cast<size_t>(bytes));
      for (int64_t bag = 0; bag < index_.bags(); bag++) {
        if (r.begin[bag] == r.begin[bag + 1]) continue;
        const char* flow = dy.get(bag, buffer.data());
        const double share = mean_ ? 1.0 / static_cast<double>(std::max<int64_t>(1, index_.counted(r, bag))) : 1.0;
        for (int64_t k = r.begin[bag]; k < r.begin[bag + 1]; k++) {
          const int64_t row = r.index[k];
          if (row < first || row >= last || row == index_.skip()) continue;
          const double by = weight != nullptr ? number_at(weight, sums_.storage(), k) : share;
          add_row(sums_.compute(), sums + row * bytes, flow, by, width);
        }
      }
      sums_.finish(sums, result, first, last);
    });
  }

 private:
  BagIndex index_;
  TableSums sums_;
  bool weighed_, mean_;
};
PG_KERNEL("embedding_bag_grad", EmbeddingBagGrad);

struct EmbeddingBagGradWeights final : pg::Kernel {
  static constexpr Places kAt{1, 2, 3, kNone};
  static void supports(const pg::KernelCall& call) { check_call(call, kAt); }
  EmbeddingBagGradWeights(const pg::KernelCall& call, pg::Plan& plan)
      : index_(call, kAt, call.in(1).shape[0]), storage_(storage_of(call.in(1))), width_(call.in(1).shape[1]) {
    plan.workspace = index_.workspace();
  }
  void launch(const pg_launch& launch) override {
    const BagIndex::Read r = index_.read(launch, pg::host_pointer<char>(launch.workspace));
    index_.check(r.index);
    const Rows dy(pg::input(launch, 0), storage_, width_), table(pg::input(launch, 1), storage_, width_);
    char* out = pg::output<char>(launch, 0);
    const Compute compute = kComputeOf[storage_];
    pg::parallel_for(index_.bags(), index_.grain(width_), [&](int64_t first, int64_t last) {
      std::vector<char> flow_buffer(static_cast<size_t>(width_) * 8), buffer(flow_buffer.size());
      for (int64_t bag = first; bag < last; bag++) {
        if (r.begin[bag] == r.begin[bag + 1]) continue;
        const char* flow = dy.get(bag, flow_buffer.data());
        for (int64_t k = r.begin[bag]; k < r.begin[bag + 1]; k++) {
          Acc sum;
          if (r.index[k] != index_.skip() && width_ > 0) {
            simd->binary[pMul][compute](flow, table.get(r.index[k], buffer.data()), buffer.data(), width_);
            simd->reduce[rSum][compute](buffer.data(), width_, 0, &sum);
          }
          put_number(storage_, sum.f, out + k * kStorageBytes[storage_]);
        }
      }
    });
  }

 private:
  BagIndex index_;
  Storage storage_;
  int64_t width_;
};
PG_KERNEL("embedding_bag_grad_weights", EmbeddingBagGradWeights);

struct EmbeddingBagMax final : pg::Kernel {
  static constexpr Places kAt{0, 1, 2, kNone};
  static void supports(const pg::KernelCall& call) {
    check_call(call, kAt);
    if (pg::element_count(call.in(kAt.index)) > INT32_MAX) refuse(call);  // places of a bag are int32
  }
  EmbeddingBagMax(const pg::KernelCall& call, pg::Plan& plan)
      : index_(call, kAt, call.in(0).shape[0]), storage_(storage_of(call.in(0))), width_(call.in(0).shape[1]) {
    plan.workspace = index_.workspace();
  }
  void launch(const pg_launch& launch) override {
    const BagIndex::Read r = index_.read(launch, pg::host_pointer<char>(launch.workspace));
    index_.check(r.index);
    if (width_ == 0) return;
    const Rows table(pg::input(launch, 0), storage_, width_);
    char* out = pg::output<char>(launch, 0);
    auto* rows = pg::output<int64_t>(launch, 1);  // NULL where no gradient is asked for
    const Compute compute = kComputeOf[storage_];
    const Storage type = kStorageOf[compute];
    const LargerRowFn larger = simd->larger_row[compute == kF64 ? 1 : 0];
    pg::parallel_for(index_.bags(), index_.grain(width_), [&](int64_t first, int64_t last) {
      std::vector<char> buffer(static_cast<size_t>(width_) * 8), top(buffer.size());
      std::vector<int32_t> at(static_cast<size_t>(width_));
      const auto bytes = static_cast<size_t>(width_ * kStorageBytes[type]);
      for (int64_t bag = first; bag < last; bag++) {
        const auto begin = static_cast<int32_t>(r.begin[bag]), end = static_cast<int32_t>(r.begin[bag + 1]);
        bool any = false;
        for (int32_t k = begin; k < end; k++) {
          if (r.index[k] == index_.skip()) continue;
          const char* row = table.get(r.index[k], buffer.data());
          if (any) {
            larger(row, width_, k, top.data(), at.data());
          } else {
            std::memcpy(top.data(), row, bytes);
            std::fill(at.begin(), at.end(), k);
          }
          any = true;
        }
        if (!any) std::memset(top.data(), 0, bytes);
        convert(type, storage_, top.data(), out + bag * width_ * kStorageBytes[storage_], width_);
        if (rows == nullptr) continue;
        for (int64_t i = 0; i < width_; i++) rows[bag * width_ + i] = any ? r.index[at[static_cast<size_t>(i)]] : -1;
      }
    });
  }

 private:
  BagIndex index_;
  Storage storage_;
  int64_t width_;
};
PG_KERNEL("embedding_bag_max", EmbeddingBagMax, 0, 0, 1u << 1);

struct EmbeddingBagMaxGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { check_call(call, {2, 1, kNone, kNone}, 2); }
  EmbeddingBagMaxGrad(const pg::KernelCall& call, pg::Plan& plan) : rows_(call.in(1)), sums_(call.out(0)) {
    index_bytes_ = (rows_.workspace() + 63) / 64 * 64;
    plan.workspace = index_bytes_ + sums_.workspace();
  }
  void launch(const pg_launch& launch) override {
    char* scratch = pg::host_pointer<char>(launch.workspace);
    const int64_t* rows = rows_.read(pg::input(launch, 1), scratch);
    rows_.check(rows, sums_.rows(), "embedding_bag_max_grad", {"row", 0}, -1);
    const int64_t width = sums_.width();
    if (sums_.rows() * width == 0) return;
    const Rows dy(pg::input(launch, 0), sums_.storage(), width);
    char *result = pg::output<char>(launch, 0), *sums = sums_.begin(result, scratch + index_bytes_);
    deal_rows(sums_.rows(), rows_.count(), [&](int64_t first, int64_t last) {
      const int64_t bytes = sums_.row_bytes();
      std::memset(sums + first * bytes, 0, static_cast<size_t>((last - first) * bytes));
      std::vector<char> buffer(static_cast<size_t>(bytes));
      for (int64_t bag = 0; bag * width < rows_.count(); bag++) {
        const char* flow = dy.get(bag, buffer.data());
        const int64_t* to = rows + bag * width;
        sums_.compute() == kF64 ? add<double>(sums, flow, to, first, last) : add<float>(sums, flow, to, first, last);
      }
      sums_.finish(sums, result, first, last);
    });
  }

 private:
  template <class T>
  void add(char* sums, const char* flow, const int64_t* to, int64_t first, int64_t last) const {
    for (int64_t i = 0, n = sums_.width(); i < n; i++)
      if (to[i] >= first && to[i] < last)
        reinterpret_cast<T*>(sums)[to[i] * n + i] += reinterpret_cast<const T*>(flow)[i];
  }
  IndexValues rows_;
  TableSums sums_;
  uint64_t index_bytes_;
};
PG_KERNEL("embedding_bag_max_grad", EmbeddingBagMaxGrad);

}  // namespace
}  // namespace cpu::embedding_bag
