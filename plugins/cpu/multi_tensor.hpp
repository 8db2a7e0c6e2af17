// SPDX-License-Identifier: Apache-2.0
// Optimizer steps over many tensors in one launch: the elements of all of them form one range that is dealt out to
// threads. Kernels give the arithmetic of a dense block, in float32 (float64 for float64 parameters).
#pragma once

#include <algorithm>
#include <vector>

#include "block_loop.hpp"

namespace cpu {

// N operands for each tensor: parameter, gradient, state. All but the gradient (1) are written.
template <int N>
class MultiTensor {
 public:
  // tensors[k * count + i]: operand k of tensor i; NULL: absent.
  MultiTensor() = default;
  MultiTensor(const std::vector<const pg_tensor*>& tensors, size_t count) {
    for (size_t i = 0; i < count; i++) {
      Item item;
      const pg_tensor& param = *tensors[i];
      int64_t stride[N][PG_MAX_RANK] = {};
      item.type = storage_of(param) == sF64 ? sF64 : sF32;
      for (int k = 0; k < N; k++) {
        const pg_tensor* t = tensors[static_cast<size_t>(k) * count + i];
        if (t == nullptr) continue;
        item.storage[k] = storage_of(*t);
        item.present[k] = true;
        for (uint32_t d = 0; d < t->rank; d++) stride[k][d] = t->stride[d];
      }
      item.nest = pg::make_nest<N>(param.rank, param.shape, stride, true);
      item.plain = true;
      for (int k = 0; k < N; k++) {
        if (item.present[k]) item.plain = item.plain && item.nest.linear(k) && item.storage[k] == item.type;
      }
      items_.push_back(item);
      starts_.push_back(total_);
      total_ += item.nest.count;
    }
    starts_.push_back(total_);
  }

  // address(k, i): where operand k of tensor i lies. block(type, pointers, n): pointers[k] are dense, NULL where
  // absent.
  template <class Address, class Block>
  void run(const Address& address, const Block& block) const {
    auto piece = [&](int64_t begin, int64_t end) { run_range<true>(begin, end, address, block); };
    if (total_ == 0) return;
    if (total_ <= kGrain / 2) return piece(0, total_);
    pg::parallel_for(total_, kGrain / 2, piece);
  }

  // Only looks: block(part, type, pointers, n), where the parts are `parts()` stretches that do not depend on the
  // number of threads. Those of one part come in order.
  template <class Address, class Block>
  void read(const Address& address, const Block& block) const {
    auto range = [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; part++) {
        run_range<false>(part * kPart, std::min(total_, (part + 1) * kPart), address,
                         [&](Storage type, char* const* p, int64_t n) { block(part, type, p, n); });
      }
    };
    if (parts() <= 1) return range(0, parts());
    pg::parallel_for(parts(), 1, range);
  }
  int64_t parts() const { return (total_ + kPart - 1) / kPart; }

 private:
  struct Item {
    pg::Nest<N> nest;
    Storage type = sF32, storage[N] = {};
    bool present[N] = {}, plain = false;
  };

  static constexpr int64_t kPart = kGrain;

  template <bool writes, class Address, class Block>
  void run_range(int64_t begin, int64_t end, const Address& address, const Block& block) const {
    size_t i = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin()) - 1;
    for (; begin < end; i++) {
      int64_t stop = std::min(end, starts_[i + 1]);
      if (begin < stop) run_item<writes>(i, begin - starts_[i], stop - starts_[i], address, block);
      begin = std::max(begin, stop);
    }
  }

  template <bool writes, class Address, class Block>
  void run_item(size_t i, int64_t begin, int64_t end, const Address& address, const Block& block) const {
    const Item& item = items_[i];
    char *base[N], *pointer[N];
    for (int k = 0; k < N; k++) base[k] = item.present[k] ? static_cast<char*>(address(k, i)) : nullptr;
    if (item.plain) {
      for (int k = 0; k < N; k++)
        pointer[k] = base[k] == nullptr ? nullptr : base[k] + begin * kStorageBytes[item.type];
      return block(item.type, pointer, end - begin);
    }
    alignas(64) char raw[kBlock * 8], buffer[N][kBlock * 8];
    for (int64_t p = begin; p < end; p += kBlock) {
      int64_t n = std::min(kBlock, end - p);
      for (int k = 0; k < N; k++) {
        pointer[k] = base[k] == nullptr ? nullptr : buffer[k];
        if (base[k] == nullptr) continue;
        gather(base[k], kStorageBytes[item.storage[k]], item.nest.rank, item.nest.shape, item.nest.stride[k], p, n,
               raw);
        convert(item.storage[k], item.type, raw, buffer[k], n);
      }
      block(item.type, pointer, n);
      for (int k = 0; k < N; k++) {
        if (!writes || base[k] == nullptr || k == 1) continue;
        convert(item.type, item.storage[k], buffer[k], raw, n);
        scatter(base[k], kStorageBytes[item.storage[k]], item.nest.rank, item.nest.shape, item.nest.stride[k], p, n,
                raw);
      }
    }
  }

  std::vector<Item> items_;
  std::vector<int64_t> starts_;
  int64_t total_ = 0;
};

}  // namespace cpu
