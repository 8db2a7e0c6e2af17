// SPDX-License-Identifier: Apache-2.0
// nonzero, masked_select and its gradient. Outputs are as large as they can get; the true extents are published. Blocks
// of elements are counted first, so that the second pass knows where each block's results go.
#include <algorithm>
#include <vector>

#include "dense_reader.hpp"

namespace cpu {
namespace {

constexpr int64_t kPiece = kBlock * 16;

// places[i]: true elements before piece i; the last entry is their number.
template <class Count>
std::vector<int64_t> count_pieces(int64_t elements, const Count& count) {
  int64_t pieces = (elements + kPiece - 1) / kPiece;
  std::vector<int64_t> places(static_cast<size_t>(pieces) + 1, 0);
  auto body = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      places[static_cast<size_t>(i) + 1] = count(i * kPiece, std::min(elements, (i + 1) * kPiece));
    }
  };
  if (pieces <= 2)
    body(0, pieces);
  else
    pg::parallel_for(pieces, 2, body);
  for (size_t i = 1; i < places.size(); i++) places[i] += places[i - 1];
  return places;
}
template <class Body>
void each_piece(int64_t elements, const Body& body) {
  int64_t pieces = (elements + kPiece - 1) / kPiece;
  auto all = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) body(i, i * kPiece, std::min(elements, (i + 1) * kPiece));
  };
  if (pieces <= 2)
    all(0, pieces);
  else
    pg::parallel_for(pieces, 2, all);
}

// Calls body(p, bytes, n) with blocks of truth values of elements [begin, end).
template <class Body>
void each_truth(const DenseReader& reader, const void* base, int64_t begin, int64_t end, const Body& body) {
  alignas(64) char buffer[kBlock * 8];
  for (int64_t p = begin; p < end; p += kBlock) {
    int64_t n = std::min(kBlock, end - p);
    body(p, static_cast<const uint8_t*>(reader.read(base, p, n, buffer)), n);
  }
}
int64_t count_true(const DenseReader& reader, const void* base, int64_t begin, int64_t end) {
  int64_t total = 0;
  each_truth(reader, base, begin, end, [&](int64_t, const uint8_t* truth, int64_t n) {
    for (int64_t i = 0; i < n; i++) total += truth[i] != 0;
  });
  return total;
}

struct NonZero final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.out(0)) != sI64) refuse(call);
  }
  NonZero(const pg::KernelCall& call, pg::Plan&) : truth_(call.in(0), sBool), rank_(call.in(0).rank) {
    for (uint32_t i = 0; i < rank_; i++) shape_[i] = call.in(0).shape[i];
  }
  void launch(const pg_launch& launch) override {
    const void* x = pg::input(launch, 0);
    auto places =
        count_pieces(truth_.count(), [&](int64_t begin, int64_t end) { return count_true(truth_, x, begin, end); });
    auto* out = pg::output<int64_t>(launch, 0);
    each_piece(truth_.count(), [&](int64_t piece, int64_t begin, int64_t end) {
      int64_t* row = out + places[static_cast<size_t>(piece)] * rank_;
      each_truth(truth_, x, begin, end, [&](int64_t p, const uint8_t* truth, int64_t n) {
        for (int64_t i = 0; i < n; i++) {
          if (truth[i] == 0) continue;
          int64_t rest = p + i;
          for (uint32_t d = rank_; d-- > 0; rest /= shape_[d]) row[d] = rest % shape_[d];
          row += rank_;
        }
      });
    });
    launch.extents[0] = places.back();
    launch.extents[1] = rank_;
  }

 private:
  DenseReader truth_;
  uint32_t rank_;
  int64_t shape_[PG_MAX_RANK];
};
PG_KERNEL("nonzero", NonZero);

// A tensor seen under the common shape of two that broadcast.
struct Broadcast {
  pg_tensor tensor;
  int64_t shape[PG_MAX_RANK], stride[PG_MAX_RANK];
  Broadcast(const pg_tensor& t, const pg_tensor& other) : tensor(t) {
    uint32_t rank = std::max(t.rank, other.rank);
    for (uint32_t i = 0; i < rank; i++) {
      int64_t a = i < rank - t.rank ? 1 : t.shape[i - (rank - t.rank)];
      int64_t b = i < rank - other.rank ? 1 : other.shape[i - (rank - other.rank)];
      shape[i] = a == 1 ? b : a;
    }
    pg::broadcast_strides(t, rank, stride);
    tensor.rank = rank;
    tensor.shape = shape;
    tensor.stride = stride;
  }
};

struct MaskedSelect final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(1)) != sBool || storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }
  MaskedSelect(const pg::KernelCall& call, pg::Plan&) : storage_(storage_of(call.in(0))) {
    x_ = DenseReader(Broadcast(call.in(0), call.in(1)).tensor, storage_);
    mask_ = DenseReader(Broadcast(call.in(1), call.in(0)).tensor, sBool);
  }
  void launch(const pg_launch& launch) override {
    const void *x = pg::input(launch, 0), *mask = pg::input(launch, 1);
    auto places =
        count_pieces(mask_.count(), [&](int64_t begin, int64_t end) { return count_true(mask_, mask, begin, end); });
    visit_bytes(kStorageBytes[storage_], [&](auto zero) {
      using E = decltype(zero);
      E* out = pg::output<E>(launch, 0);
      each_piece(mask_.count(), [&](int64_t piece, int64_t begin, int64_t end) {
        E* to = out + places[static_cast<size_t>(piece)];
        alignas(64) char buffer[kBlock * 8];
        each_truth(mask_, mask, begin, end, [&](int64_t p, const uint8_t* truth, int64_t n) {
          const E* from = static_cast<const E*>(x_.read(x, p, n, buffer));
          for (int64_t i = 0; i < n; i++) {
            if (truth[i] != 0) *to++ = from[i];
          }
        });
      });
    });
    launch.extents[0] = places.back();
  }

 private:
  Storage storage_;
  DenseReader x_, mask_;
};
PG_KERNEL("masked_select", MaskedSelect);

// dx gets dy's elements one after the other where the mask is true, else 0. The mask broadcasts to dx.
struct MaskedSelectGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(1)) != sBool || storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
    if (!pg::is_contiguous(call.out(0)) || call.in(1).rank > call.out(0).rank) refuse(call);
    uint32_t lead = call.out(0).rank - call.in(1).rank;
    for (uint32_t i = 0; i < call.in(1).rank; i++) {
      int64_t m = call.in(1).shape[i];
      if (m != 1 && m != call.out(0).shape[lead + i]) refuse(call);
    }
  }
  MaskedSelectGrad(const pg::KernelCall& call, pg::Plan&)
      : storage_(storage_of(call.out(0))),
        step_(call.in(0).rank == 0 ? 0 : call.in(0).stride[0]),
        given_(call.in(0).rank == 0 ? 1 : call.in(0).shape[0]) {
    mask_ = DenseReader(Broadcast(call.in(1), call.out(0)).tensor, sBool);
  }
  void launch(const pg_launch& launch) override {
    const void* mask = pg::input(launch, 1);
    auto places =
        count_pieces(mask_.count(), [&](int64_t begin, int64_t end) { return count_true(mask_, mask, begin, end); });
    if (places.back() != given_)
      pg::fail_argument(pg::format("masked_select_grad: the mask selects %lld elements, dy has %lld",
                                   static_cast<long long>(places.back()), static_cast<long long>(given_)));
    visit_bytes(kStorageBytes[storage_], [&](auto zero) {
      using E = decltype(zero);
      const E* dy = pg::input<const E>(launch, 0);
      E* out = pg::output<E>(launch, 0);
      each_piece(mask_.count(), [&](int64_t piece, int64_t begin, int64_t end) {
        const E* from = dy + places[static_cast<size_t>(piece)] * step_;
        each_truth(mask_, mask, begin, end, [&](int64_t p, const uint8_t* truth, int64_t n) {
          for (int64_t i = 0; i < n; i++) {
            out[p + i] = E(0);
            if (truth[i] != 0) out[p + i] = *from, from += step_;
          }
        });
      });
    });
  }

 private:
  Storage storage_;
  int64_t step_, given_;  // of dy
  DenseReader mask_;
};
PG_KERNEL("masked_select_grad", MaskedSelectGrad);

}  // namespace
}  // namespace cpu
