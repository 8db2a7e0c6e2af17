// SPDX-License-Identifier: Apache-2.0
// What both directions of attention share: the operands' heads as dense rows, masks, the work's slices.
#pragma once

#include <cmath>

#include "attention_pass.hpp"
#include "dense_reader.hpp"
#include "perigee/kernels/strided.hpp"

namespace cpu {

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Elements handed out one stretch after the other, each beginning at a cache line.
class Pieces {
 public:
  Pieces(void* base, int64_t bytes) : base_(static_cast<char*>(base)), bytes_(bytes) {}
  char* take(int64_t elements) {
    char* piece = base_ + used_ * bytes_;
    used_ += round_up(elements, 16);
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  char* base_;
  int64_t bytes_, used_ = 0;
};

// The rows of one operand: [heads][rows][columns], heads being all axes but the last two.
struct Rows {
  Rows() = default;
  Rows(const pg_tensor& t, uint32_t rank) : storage(storage_of(t)) {
    uint32_t lead = rank - t.rank;  // a mask may have fewer axes
    for (uint32_t i = 0; i < rank; i++) {
      size[i] = i < lead ? 1 : t.shape[i - lead];
      stride[i] = i < lead || t.shape[i - lead] == 1 ? 0 : t.stride[i - lead];
    }
    row = stride[rank - 2], column = size[rank - 1] == 1 ? 1 : stride[rank - 1];
  }
  // Where head number h of a tensor of `shape` begins, in elements.
  int64_t head(int64_t h, uint32_t rank, const int64_t* shape) const {
    int64_t at = 0;
    for (uint32_t i = rank - 2; i-- > 0; h /= shape[i]) at += h % shape[i] * stride[i];
    return at;
  }
  Storage storage = sF32;
  int64_t size[PG_MAX_RANK], stride[PG_MAX_RANK], row = 0, column = 1;
};

class Attention : public pg::Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    uint32_t q = call.is("scaled_dot_product_attention") ? 0 : 1;
    if (!is_float(storage_of(call.in(q)))) refuse(call);
    for (uint32_t i = 0; i < q + 3; i++) {
      if (storage_of(call.in(i)) != storage_of(call.in(q))) refuse(call);
    }
    for (uint32_t i = 0; i < call.output_count(); i++) {
      if (call.has_output(i) && !pg::is_contiguous(call.out(i))) pg::fail_support("the results must be dense");
    }
  }

 protected:
  Attention(const pg::KernelCall& call, uint32_t q)
      : first_(q), scale_(call.runtime<double>("scale")), drop_(call.runtime<double>("dropout_p")) {
    const pg_tensor &tq = call.in(q), &tk = call.in(q + 1), &tv = call.in(q + 2);
    rank_ = tq.rank;
    std::copy_n(tq.shape, rank_, shape_);
    for (uint32_t i = 0; i + 2 < rank_; i++) heads_ *= tq.shape[i];
    queries_ = tq.shape[rank_ - 2], width_ = tq.shape[rank_ - 1];
    keys_ = tk.shape[rank_ - 2], value_width_ = tv.shape[rank_ - 1];
    q_ = Rows(tq, rank_), k_ = Rows(tk, rank_), v_ = Rows(tv, rank_);
    wide_ = q_.storage == sF64;
    paired_ = q_.storage == sBF16 && paired_attention.forward != nullptr;
    type_ = wide_ ? sF64 : sF32;
    bytes_ = wide_ ? 8 : 4;
    causal_ = call.attr<bool>("is_causal");
    has_key_ = call.has(q + 4);
    if (has_key_) key_stride_ = call.in(q + 4).stride[0];
    if (!call.has(q + 3)) return;
    const pg_tensor& mask = call.in(q + 3);
    has_mask_ = true;
    mask_ = Rows(mask, rank_);
    if (mask_.storage == sBool || mask_.storage == type_) return;
    mask_count_ = pg::element_count(mask);  // a copy in the type computed with
    mask_reader_ = DenseReader(mask, type_);
    for (uint32_t i = rank_, step = 1; i-- > 0;) {
      mask_.stride[i] = mask_.size[i] == 1 ? 0 : step;
      step *= static_cast<uint32_t>(mask_.size[i]);
    }
    mask_.row = mask_.stride[rank_ - 2], mask_.column = mask_.stride[rank_ - 1];
  }

  // Pieces of the workspace: one for the mask, then as many as there are slices of the work.
  uint64_t workspace(int64_t tasks, int64_t elements) {
    slices_ = std::max<int64_t>(1, std::min<int64_t>(pg::thread_count(), tasks));
    slice_bytes_ = round_up(elements * bytes_, 64);
    mask_bytes_ = round_up(mask_count_ * bytes_, 64);
    return static_cast<uint64_t>(mask_bytes_ + slices_ * slice_bytes_ + 64);
  }

  // body(first task, last task + 1, scratch) for each slice.
  template <class Body>
  void each_slice(const pg_launch& launch, int64_t tasks, const Body& body) const {
    char* base = aligned(launch) + mask_bytes_;
    pg::parallel_for(slices_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; s++)
        body(tasks * s / slices_, tasks * (s + 1) / slices_, base + s * slice_bytes_);
    });
  }

  // What all heads share.
  AttentionPass common(const pg_launch& launch) const {
    AttentionPass p{};
    p.queries = queries_, p.keys = keys_, p.width = width_, p.value_width = value_width_, p.causal = causal_ ? 1 : 0;
    p.query_end = queries_, p.key_end = keys_;
    if (has_key_) {
      auto* key = pg::input<const int64_t>(launch, first_ + 4);
      p.drop = drop_(launch);
      if (!(p.drop >= 0 && p.drop <= 1)) pg::fail_argument(pg::format("dropout_p is %g; expected 0 to 1", p.drop));
      p.seed = static_cast<uint64_t>(key[0]), p.offset = static_cast<uint64_t>(key[key_stride_]);
    }
    if (!has_mask_ || pg::input(launch, first_ + 3) == nullptr) return p;
    p.mask_kind = mask_.storage == sBool ? 1 : 2;
    p.mask = pg::input(launch, first_ + 3);
    p.mask_row = mask_.row, p.mask_column = mask_.size[rank_ - 1] == 1 ? 0 : mask_.column;
    if (mask_count_ == 0) return p;
    char* copy = aligned(launch);
    pg::parallel_for(mask_count_, kGrain, [&, from = p.mask](int64_t begin, int64_t end) {
      char* target = copy + begin * bytes_;
      const void* got = mask_reader_.read(from, begin, end - begin, target);
      if (got != target) std::memcpy(target, got, static_cast<size_t>((end - begin) * bytes_));
    });
    p.mask = copy;
    return p;
  }
  // `all` for one head.
  AttentionPass for_head(const AttentionPass& all, int64_t h) const {
    AttentionPass p = all;
    p.first = static_cast<uint64_t>(h * queries_ * keys_);
    if (p.mask_kind != 0)
      p.mask = static_cast<const char*>(p.mask) + mask_.head(h, rank_, shape_) * (p.mask_kind == 1 ? 1 : bytes_);
    return p;
  }

  double scale(const pg_launch& launch) const {
    double scale = scale_(launch);
    return scale != 0 ? scale : width_ > 0 ? 1 / std::sqrt(static_cast<double>(width_)) : 1;
  }
  int64_t q_row() const { return attention_pad(width_); }
  int64_t v_row() const { return attention_pad(value_width_); }
  int64_t padded_keys() const { return round_up(keys_, kAttentionKeys); }

  // Rows [begin, end) of head h as dense rows of `padded` elements, times `scale`.
  void load(const pg_launch& launch, uint32_t input, const Rows& rows, int64_t h, int64_t begin, int64_t end,
            int64_t columns, int64_t padded, double scale, void* target) const {
    auto* from = pg::input<const char>(launch, input);
    if (from == nullptr) return;
    int size = kStorageBytes[rows.storage];
    from += rows.head(h, rank_, shape_) * size;
    for (int64_t i = begin; i < end; i++) {
      char* to = static_cast<char*>(target) + (i - begin) * padded * bytes_;
      load_row(from + i * rows.row * size, rows, columns, to);
      std::memset(to + columns * bytes_, 0, static_cast<size_t>((padded - columns) * bytes_));
      if (scale == 1) continue;
      if (wide_)
        multiply(reinterpret_cast<double*>(to), columns, scale);
      else
        multiply(reinterpret_cast<float*>(to), columns, static_cast<float>(scale));
    }
  }
  // The same without a factor, of bfloat16 as it is.
  void load_narrow(const pg_launch& launch, uint32_t input, const Rows& rows, int64_t h, int64_t count, int64_t columns,
                   int64_t padded, void* target) const {
    auto* from = pg::input<const uint16_t>(launch, input);
    if (from == nullptr) return;
    from += rows.head(h, rank_, shape_);
    auto* to = static_cast<uint16_t*>(target);
    for (int64_t i = 0; i < count; i++, from += rows.row, to += padded) {
      if (rows.column == 1)
        for (int64_t j = 0; j < columns; j++) to[j] = from[j];
      else
        for (int64_t j = 0; j < columns; j++) to[j] = from[j * rows.column];
      for (int64_t j = columns; j < padded; j++) to[j] = 0;
    }
  }
  // All keys of head h, up to whole blocks.
  void load_keys(const pg_launch& launch, uint32_t input, const Rows& rows, int64_t h, int64_t columns, int64_t padded,
                 void* target) const {
    load(launch, input, rows, h, 0, keys_, columns, padded, 1, target);
    std::memset(static_cast<char*>(target) + keys_ * padded * bytes_, 0,
                static_cast<size_t>((padded_keys() - keys_) * padded * bytes_));
  }
  void load_narrow_keys(const pg_launch& launch, uint32_t input, const Rows& rows, int64_t h, int64_t columns,
                        int64_t padded, void* target) const {
    load_narrow(launch, input, rows, h, keys_, columns, padded, target);
    std::memset(static_cast<uint16_t*>(target) + keys_ * padded, 0,
                static_cast<size_t>((padded_keys() - keys_) * padded) * sizeof(uint16_t));
  }
  // The same of rows of bfloat16, by words of two.
  void turn_narrow(const void* rows, int64_t padded, int64_t columns, void* target) const {
    const int64_t words = (columns + 1) / 2;
    for (int64_t key = 0; key < keys_; key += kAttentionKeys) {
      simd->turn_block[0](static_cast<const uint16_t*>(rows) + key * padded, padded / 2,
                          std::min(kAttentionKeys, keys_ - key), words, static_cast<uint32_t*>(target) + key * words);
    }
  }
  // Dense rows of `padded` elements in blocks of keys, each turned: [columns][kAttentionKeys].
  void turn(const void* rows, int64_t padded, int64_t columns, void* target) const {
    for (int64_t key = 0; key < keys_; key += kAttentionKeys) {
      simd->turn_block[wide_ ? 1 : 0](static_cast<const char*>(rows) + key * padded * bytes_, padded,
                                      std::min(kAttentionKeys, keys_ - key), columns,
                                      static_cast<char*>(target) + key * columns * bytes_);
    }
  }
  // The inverse of load, into rows of a dense result.
  void save(const void* rows, int64_t padded, int64_t count, int64_t columns, int64_t at, double scale,
            void* out) const {
    int size = kStorageBytes[q_.storage];
    for (int64_t i = 0; i < count; i++) {
      char* from = static_cast<char*>(const_cast<void*>(rows)) + i * padded * bytes_;
      if (scale != 1) {
        if (wide_)
          multiply(reinterpret_cast<double*>(from), columns, scale);
        else
          multiply(reinterpret_cast<float*>(from), columns, static_cast<float>(scale));
      }
      convert(type_, q_.storage, from, static_cast<char*>(out) + (at + i) * columns * size, columns);
    }
  }

  uint32_t first_, rank_ = 0;
  int64_t shape_[PG_MAX_RANK], heads_ = 1, queries_ = 0, keys_ = 0, width_ = 0, value_width_ = 0;
  bool wide_ = false, causal_ = false;
  bool paired_ = false;  // by products of pairs
  Storage type_ = sF32;
  int64_t bytes_ = 4;
  Rows q_, k_, v_;

 private:
  template <class T>
  static void multiply(T* x, int64_t n, T factor) {
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
  }
  void load_row(const char* from, const Rows& rows, int64_t columns, char* to) const {
    if (rows.column == 1) return convert(rows.storage, type_, from, to, columns);
    int size = kStorageBytes[rows.storage];
    for (int64_t j = 0; j < columns; j++)
      convert(rows.storage, type_, from + j * rows.column * size, to + j * bytes_, 1);
  }
  static char* aligned(const pg_launch& launch) {
    auto address = reinterpret_cast<uintptr_t>(pg::host_pointer<char>(launch.workspace));
    return reinterpret_cast<char*>((address + 63) / 64 * 64);
  }

  pg::Runtime<double> scale_, drop_;
  bool has_mask_ = false, has_key_ = false;
  int64_t key_stride_ = 0, mask_count_ = 0, mask_bytes_ = 0, slices_ = 1, slice_bytes_ = 0;
  Rows mask_;
  DenseReader mask_reader_;
};

}  // namespace cpu
