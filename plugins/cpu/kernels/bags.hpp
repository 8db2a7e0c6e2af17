// SPDX-License-Identifier: Apache-2.0
// What bags of embeddings are made of: indices, where each bag begins, rows of a table.
#pragma once

#include <algorithm>
#include <string>

#include "index_values.hpp"

namespace cpu::embedding_bag {

// Where the inputs stand; kNone: the operator has no such input.
constexpr uint32_t kNone = UINT32_MAX;
struct Places {
  uint32_t table, index, offsets, weights;
};

// The indices of a call, and where each bag begins and the last one ends.
class BagIndex {
 public:
  BagIndex(const pg::KernelCall& call, const Places& at, int64_t rows)
      : op_(call.raw->op->name), at_(at), index_(call.in(at.index)), rows_(rows) {
    const pg_tensor& index = call.in(at.index);
    whole_ = !call.has(at.offsets);
    skip_ = call.attr<int64_t>("padding_idx");
    if (whole_) {
      bags_ = index.shape[0], length_ = index.shape[1];
    } else {
      offsets_ = IndexValues(call.in(at.offsets));
      last_ = call.attr<bool>("include_last_offset");
      bags_ = offsets_.count() - (last_ ? 1 : 0);
    }
    index_bytes_ = (index_.workspace() + 63) / 64 * 64;
    offset_bytes_ = whole_ ? 0 : (offsets_.workspace() + 63) / 64 * 64;
  }
  uint64_t workspace() const {
    return (index_bytes_ + offset_bytes_ + static_cast<uint64_t>(bags_ + 1) * 8 + 63) / 64 * 64;
  }
  int64_t bags() const { return bags_; }
  int64_t count() const { return index_.count(); }
  int64_t skip() const { return skip_; }

  struct Read {
    const int64_t *index, *begin;  // begin: [bags + 1]
  };
  // The contents; offsets are checked.
  Read read(const pg_launch& launch, char* scratch) const {
    const int64_t* index = index_.read(pg::input(launch, at_.index), scratch);
    auto* begin = reinterpret_cast<int64_t*>(scratch + index_bytes_ + offset_bytes_);
    if (whole_) {
      for (int64_t b = 0; b <= bags_; b++) begin[b] = b * length_;
    } else {
      const int64_t* offsets = offsets_.read(pg::input(launch, at_.offsets), scratch + index_bytes_);
      std::copy_n(offsets, bags_, begin);
      begin[bags_] = last_ ? offsets[bags_] : count();
      check_offsets(begin);
    }
    return {index, begin};
  }
  void check(const int64_t* index) const { index_.check(index, rows_, op_, {"token", 0}); }
  // How many of a bag's indices count.
  int64_t counted(const Read& r, int64_t bag) const {
    int64_t count = r.begin[bag + 1] - r.begin[bag];
    if (skip_ >= 0) count -= std::count(r.index + r.begin[bag], r.index + r.begin[bag + 1], skip_);
    return count;
  }
  // Bags that are work enough for a thread, of rows of `width` elements.
  int64_t grain(int64_t width) const {
    const int64_t each = std::max<int64_t>(1, count() / std::max<int64_t>(1, bags_)) * std::max<int64_t>(1, width);
    return std::max<int64_t>(1, kGrain / each);
  }

 private:
  void check_offsets(const int64_t* begin) const {
    auto number = [](int64_t v) { return static_cast<long long>(v); };
    if (bags_ > 0 && begin[0] != 0)
      pg::fail_argument(pg::format("%s: offsets begin at %lld; expected 0", op_, number(begin[0])));
    for (int64_t b = 1; b < bags_; b++) {
      if (begin[b] > count()) {
        const std::string place = pg::format("[%lld]", number(b + 1));
        pg::fail_argument(op_ + (": " + pg::out_of_range({"offset", 0}, begin[b], place, count() + 1)));
      }
      if (begin[b] < begin[b - 1]) {
        pg::fail_argument(pg::format("%s: offset %lld at position [%lld] is less than the one before, %lld", op_,
                                     number(begin[b]), number(b + 1), number(begin[b - 1])));
      }
    }
    if (last_ && begin[bags_] != count()) {
      pg::fail_argument(pg::format("%s: the last offset is %lld; expected %lld, the number of indices", op_,
                                   number(begin[bags_]), number(count())));
    }
  }

  const char* op_;
  Places at_;
  IndexValues index_, offsets_;
  bool whole_, last_ = false;
  int64_t rows_, bags_, length_ = 0, skip_;
  uint64_t index_bytes_, offset_bytes_;
};

// Indices may lie as they like; the rest is row-major, or the host asks again with copies. Of input `meta` only the
// shape counts.
inline void check_call(const pg::KernelCall& call, const Places& at, uint32_t meta = kNone) {
  require_all_dense(call);
  const Storage storage = storage_of(call.out(0));
  if (!is_float(storage)) refuse(call);
  for (uint32_t i = 0; i < call.input_count(); i++) {
    if (!call.has(i) || i == meta) continue;
    if (i == at.index || i == at.offsets) {
      if (!is_index(call.in(i))) refuse(call);
    } else if (storage_of(call.in(i)) != storage || !pg::is_contiguous(call.in(i))) {
      refuse(call);
    }
  }
}

// Rows in the type that is computed in.
class Rows {
 public:
  Rows(const void* base, Storage storage, int64_t width)
      : base_(static_cast<const char*>(base)), storage_(storage), width_(width) {}
  // Row i; `buffer` has room for one.
  const char* get(int64_t i, char* buffer) const {
    const char* at = base_ + i * width_ * kStorageBytes[storage_];
    const Storage type = kStorageOf[kComputeOf[storage_]];
    if (type == storage_) return at;
    convert(storage_, type, at, buffer, width_);
    return buffer;
  }

 private:
  const char* base_;
  Storage storage_;
  int64_t width_;
};
inline double number_at(const void* base, Storage storage, int64_t i) {
  double value;
  convert(storage, sF64, static_cast<const char*>(base) + i * kStorageBytes[storage], &value, 1);
  return value;
}

}  // namespace cpu::embedding_bag
