// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention(q, k, v, mask?, key?) -> out, lse and its gradient (dout, q, k, v, mask?, key?, lse,
// delta) -> dq, dk, dv. The loops over a head are in simd/attention.cpp. What is added to what, and in which order,
// does not depend on the number of threads.
#include "kernels/attention.hpp"

namespace cpu {
namespace {

class Forward final : public Attention {
 public:
  Forward(const pg::KernelCall& call, pg::Plan& plan) : Attention(call, 0), has_lse_(call.has_output(1)) {
    chunks_ = std::max<int64_t>(1, (queries_ + kChunk - 1) / kChunk);
    plan.workspace = workspace(heads_ * chunks_, Buffers(*this, nullptr).pieces.used());
  }
  void launch(const pg_launch& launch) override {
    if (heads_ * queries_ == 0) return;
    const AttentionPass all = common(launch);
    each_slice(launch, heads_ * chunks_, [&](int64_t begin, int64_t end, char* scratch) {
      Buffers b(*this, scratch);
      for (int64_t task = begin; task < end; task++) {
        int64_t h = task / chunks_, row = task % chunks_ * kChunk;
        if (task == begin || row == 0) fill(launch, b, h);
        run(launch, for_head(all, h), b, h, row, std::min(queries_, row + kChunk));
      }
    });
  }

 private:
  static constexpr int64_t kChunk = 2 * kAttentionRows;  // queries of a task
  struct Buffers {
    Buffers(const Forward& f, void* base)
        : pieces(base, f.bytes_),
          q(pieces.take(f.queries_ * f.q_row())),
          out(pieces.take(f.queries_ * f.v_row())),
          lse(pieces.take(f.queries_)),
          k(pieces.take(f.padded_keys() * std::max(f.q_row(), f.v_row()))),
          v(pieces.take(f.padded_keys() * f.v_row())),
          kt(pieces.take(f.padded_keys() * f.width_)),
          scratch(pieces.take(attention_scratch(f.value_width_))) {}
    Pieces pieces;
    char *q, *out, *lse, *k, *v, *kt, *scratch;
  };

  void fill(const pg_launch& launch, const Buffers& b, int64_t h) const {
    if (!paired_) {
      load_keys(launch, 1, k_, h, width_, q_row(), b.k), turn(b.k, q_row(), width_, b.kt);
      load_keys(launch, 2, v_, h, value_width_, v_row(), b.v);
      return;
    }
    load_narrow_keys(launch, 1, k_, h, width_, q_row(), b.k), turn_narrow(b.k, q_row(), width_, b.kt);
    load_narrow_keys(launch, 2, v_, h, value_width_, v_row(), b.k);  // rows, which are not needed longer
    paired_attention.pair_rows(b.k, padded_keys(), v_row(), b.v);
    load_narrow(launch, 0, q_, h, queries_, width_, q_row(), b.q);
  }

  void run(const pg_launch& launch, AttentionPass p, const Buffers& b, int64_t h, int64_t begin, int64_t end) const {
    if (!paired_) load(launch, 0, q_, h, begin, end, width_, q_row(), scale(launch), b.q + begin * q_row() * bytes_);
    p.scale = scale(launch);
    p.q = b.q, p.kt = b.kt, p.v = b.v, p.scratch = b.scratch;
    p.query_begin = begin, p.query_end = end;
    p.out = b.out, p.lse = has_lse_ ? pg::output<char>(launch, 1) + h * queries_ * bytes_ : b.lse;
    paired_ ? paired_attention.forward(p) : simd->attention[wide_ ? 1 : 0](p);
    if (value_width_ > 0)
      save(b.out + begin * v_row() * bytes_, v_row(), end - begin, value_width_, h * queries_ + begin, 1,
           pg::output(launch, 0));
  }

  bool has_lse_;
  int64_t chunks_;
};

// A head at a time, where there are as many as threads. Else heads are cut into stretches of keys, for dk and dv, and
// of queries, for dq: that computes the scores twice, and gives the same bits.
class Backward final : public Attention {
 public:
  Backward(const pg::KernelCall& call, pg::Plan& plan) : Attention(call, 1), outputs_(call.output_count()) {
    dout_ = Rows(call.in(0), rank_), lse_ = statistic(call.in(6)), delta_ = statistic(call.in(7));
    bool cut = heads_ < pg::thread_count() && queries_ * keys_ >= int64_t{1} << 16;
    chunk_ = cut ? kChunk : std::max<int64_t>(1, std::max(queries_, keys_));
    query_chunks_ = cut ? (queries_ + kChunk - 1) / kChunk : 0;
    key_chunks_ = cut ? (keys_ + kChunk - 1) / kChunk : 1;
    plan.workspace = workspace(heads_ * (query_chunks_ + key_chunks_), Buffers(*this, nullptr).pieces.used());
  }
  void launch(const pg_launch& launch) override {
    if (heads_ * (queries_ + keys_) == 0) return;
    const AttentionPass all = common(launch);
    int64_t per_head = query_chunks_ + key_chunks_;
    each_slice(launch, heads_ * per_head, [&](int64_t begin, int64_t end, char* scratch) {
      Buffers b(*this, scratch);
      for (int64_t task = begin; task < end; task++) {
        int64_t h = task / per_head, part = task % per_head;
        if (task == begin || part == 0) fill(launch, b, h);
        AttentionPass p = for_head(all, h);
        p.q = b.q, p.k = b.k, p.kt = b.kt, p.vt = b.vt, p.dout = b.dout, p.scratch = b.scratch;
        p.lse = b.lse, p.delta = b.delta;
        p.scale = scale(launch), p.q_pairs = b.q_pairs, p.dout_pairs = b.dout_pairs;
        bool queries = query_chunks_ == 0 || part < query_chunks_, keys = part >= query_chunks_;
        int64_t at = (keys ? part - query_chunks_ : part) * chunk_;
        if (query_chunks_ > 0 && queries) p.query_begin = at, p.query_end = std::min(queries_, at + chunk_);
        if (query_chunks_ > 0 && keys) p.key_begin = at, p.key_end = std::min(keys_, at + chunk_);
        if (queries) p.dq = b.dq;
        if (keys) p.dk = b.dk, p.dv = b.dv;
        run(launch, p, h);
      }
    });
  }

 private:
  static constexpr int64_t kChunk = 4 * kAttentionRows;  // a multiple of kAttentionKeys too
  static_assert(kChunk % kAttentionKeys == 0);
  struct Buffers {
    Buffers(const Backward& f, void* base)
        : pieces(base, f.bytes_),
          q(pieces.take(f.queries_ * f.q_row())),
          dq(pieces.take(f.queries_ * f.q_row())),
          dout(pieces.take(f.queries_ * f.v_row())),
          lse(pieces.take(f.queries_)),
          delta(pieces.take(f.queries_)),
          k(pieces.take(f.padded_keys() * f.q_row())),
          dk(pieces.take(f.padded_keys() * f.q_row())),
          v(pieces.take(f.padded_keys() * f.v_row())),
          dv(pieces.take(f.padded_keys() * f.v_row())),
          kt(pieces.take(f.padded_keys() * f.width_)),
          vt(pieces.take(f.padded_keys() * f.value_width_)),
          q_pairs(pieces.take(f.paired_ ? (f.queries_ + 1) / 2 * f.q_row() : 0)),
          dout_pairs(pieces.take(f.paired_ ? (f.queries_ + 1) / 2 * f.v_row() : 0)),
          scratch(pieces.take(attention_scratch(f.value_width_))) {}
    Pieces pieces;
    char *q, *dq, *dout, *lse, *delta, *k, *dk, *v, *dv, *kt, *vt, *q_pairs, *dout_pairs, *scratch;
  };

  void fill(const pg_launch& launch, const Buffers& b, int64_t h) const {
    load_statistic(launch, 6, lse_, h, b.lse), load_statistic(launch, 7, delta_, h, b.delta);
    if (paired_) return fill_pairs(launch, b, h);
    load(launch, 0, dout_, h, 0, queries_, value_width_, v_row(), 1, b.dout);
    load(launch, 1, q_, h, 0, queries_, width_, q_row(), scale(launch), b.q);
    load_keys(launch, 2, k_, h, width_, q_row(), b.k), turn(b.k, q_row(), width_, b.kt);
    load_keys(launch, 3, v_, h, value_width_, v_row(), b.v), turn(b.v, v_row(), value_width_, b.vt);
  }
  void fill_pairs(const pg_launch& launch, const Buffers& b, int64_t h) const {
    load_narrow(launch, 0, dout_, h, queries_, value_width_, v_row(), b.dout);
    load_narrow(launch, 1, q_, h, queries_, width_, q_row(), b.q);
    paired_attention.pair_rows(b.dout, queries_, v_row(), b.dout_pairs);
    paired_attention.pair_rows(b.q, queries_, q_row(), b.q_pairs);
    load_narrow_keys(launch, 3, v_, h, value_width_, v_row(), b.v), turn_narrow(b.v, v_row(), value_width_, b.vt);
    load_narrow_keys(launch, 2, k_, h, width_, q_row(), b.dk);  // rows, where nothing is added up yet
    turn_narrow(b.dk, q_row(), width_, b.kt), paired_attention.pair_rows(b.dk, padded_keys(), q_row(), b.k);
  }

  // [heads][queries] as rows of one element.
  Rows statistic(const pg_tensor& t) const {
    pg_tensor rows = t;
    int64_t shape[PG_MAX_RANK], stride[PG_MAX_RANK];
    std::copy_n(t.shape, t.rank, shape), std::copy_n(t.stride, t.rank, stride);
    shape[t.rank] = 1, stride[t.rank] = 1;
    rows.rank = t.rank + 1, rows.shape = shape, rows.stride = stride;
    return Rows(rows, rank_);
  }
  void load_statistic(const pg_launch& launch, uint32_t input, const Rows& rows, int64_t h, char* target) const {
    auto* from = pg::input<const char>(launch, input);
    if (from == nullptr) return;
    from += rows.head(h, rank_, shape_) * bytes_;
    for (int64_t i = 0; i < queries_; i++) std::memcpy(target + i * bytes_, from + i * rows.row * bytes_, bytes_);
  }

  void run(const pg_launch& launch, const AttentionPass& p, int64_t h) const {
    auto clear = [&](void* rows, int64_t begin, int64_t end, int64_t row) {
      if (rows != nullptr)
        std::memset(static_cast<char*>(rows) + begin * row * bytes_, 0, (end - begin) * row * bytes_);
    };
    clear(p.dq, p.query_begin, p.query_end, q_row());
    clear(p.dk, p.key_begin, p.key_end, q_row()), clear(p.dv, p.key_begin, p.key_end, v_row());
    paired_ ? paired_attention.backward(p) : simd->attention_grad[wide_ ? 1 : 0](p);
    auto write = [&](uint32_t i, void* rows, int64_t begin, int64_t end, int64_t row, int64_t columns, int64_t count,
                     double factor) {
      if (rows == nullptr || i >= outputs_ || columns * (end - begin) == 0) return;
      save(static_cast<char*>(rows) + begin * row * bytes_, row, end - begin, columns, h * count + begin, factor,
           pg::output(launch, i));
    };
    write(0, p.dq, p.query_begin, p.query_end, q_row(), width_, queries_, scale(launch));
    write(1, p.dk, p.key_begin, p.key_end, q_row(), width_, keys_, paired_ ? scale(launch) : 1);
    write(2, p.dv, p.key_begin, p.key_end, v_row(), value_width_, keys_, 1);
  }

  uint32_t outputs_;
  int64_t chunk_, query_chunks_, key_chunks_;
  Rows dout_, lse_, delta_;
};

PG_KERNEL("scaled_dot_product_attention", Forward, 0, 0, 1u << 1);
PG_KERNEL("scaled_dot_product_attention_grad", Backward);

}  // namespace
}  // namespace cpu
