// SPDX-License-Identifier: Apache-2.0
// all_reduce within one device: every output is the sum, mean, largest or smallest over all inputs, in their order.
#include <vector>

#include "copy.hpp"
#include "dense_reader.hpp"

namespace cpu {
namespace {

enum Choice { kSum, kMean, kMax, kMin };

struct AllReduce final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (call.input_count() == 0) pg::fail_support("all_reduce needs at least one tensor");
    for (uint32_t i = 0; i < call.input_count(); i++) {
      if (storage_of(call.in(i)) != storage_of(call.in(0)) || !pg::is_contiguous(call.out(i))) refuse(call);
      if (storage_of(call.out(i)) != storage_of(call.in(0))) refuse(call);
    }
    if (!is_float(storage_of(call.in(0))) && call.attr<int>("op") == kMean) refuse(call);
  }
  AllReduce(const pg::KernelCall& call, pg::Plan&)
      : choice_(static_cast<Choice>(call.attr<int>("op"))), storage_(storage_of(call.in(0))) {
    compute_ = kComputeOf[storage_];
    for (uint32_t i = 0; i < call.input_count(); i++) xs_.emplace_back(call.in(i), kStorageOf[compute_]);
  }

  void launch(const pg_launch& launch) override {
    Primitive op = choice_ == kMax ? pMaximum : choice_ == kMin ? pMinimum : pAdd;
    BinaryFn combine = simd->binary[op][compute_];
    Storage type = kStorageOf[compute_];
    int bytes = kStorageBytes[storage_];
    auto piece = [&](int64_t begin, int64_t end) {
      alignas(64) char total[kBlock * 8], buffer[kBlock * 8], result[kBlock * 8];
      for (int64_t p = begin; p < end; p += kBlock) {
        int64_t n = std::min(kBlock, end - p);
        const void* first = xs_[0].read(pg::input(launch, 0), p, n, buffer);
        std::memcpy(total, first, static_cast<size_t>(n * kStorageBytes[type]));
        for (uint32_t i = 1; i < xs_.size(); i++)
          combine(total, xs_[i].read(pg::input(launch, i), p, n, buffer), total, n);
        if (choice_ == kMean) divide(total, n);
        convert(type, storage_, total, result, n);
        for (uint32_t i = 0; i < launch.output_count; i++) {
          std::memcpy(pg::output<char>(launch, i) + p * bytes, result, static_cast<size_t>(n * bytes));
        }
      }
    };
    int64_t count = xs_[0].count();
    if (count <= kGrain) return piece(0, count);
    pg::parallel_for(count, kGrain, piece);
  }

 private:
  void divide(char* total, int64_t n) const {
    double by = static_cast<double>(xs_.size());
    if (compute_ == kF64) {
      for (int64_t i = 0; i < n; i++) reinterpret_cast<double*>(total)[i] /= by;
    } else {
      for (int64_t i = 0; i < n; i++) reinterpret_cast<float*>(total)[i] /= static_cast<float>(by);
    }
  }
  Choice choice_;
  Storage storage_;
  Compute compute_;
  std::vector<DenseReader> xs_;
};
PG_KERNEL("all_reduce", AllReduce);

}  // namespace
}  // namespace cpu
