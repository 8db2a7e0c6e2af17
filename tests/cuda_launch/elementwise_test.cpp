// SPDX-License-Identifier: Apache-2.0
// How elementwise kernels are dealt their work: every element once, accesses of 16 bytes only where they are aligned,
// and 64-bit positions where 32 bits do not reach. Nothing is read: addresses are numbers.
#include "elementwise_plan.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "tensor.hpp"

using namespace cuda;
using namespace cuda::elementwise;

namespace {

void* address(uint64_t number) { return reinterpret_cast<void*>(number); }

// Elements of an item as (position in the loop's order, offsets of the operands), the way a kernel takes them: of one
// dimension the packets, then the head, then the tail; of several, packets along the innermost.
struct Piece {
  int64_t at, offset[2];
  int64_t count;
};
Piece piece_of(const elementwise::Walk<2>& walk, int64_t item, int width) {
  Piece piece = {item * width, {}, width};
  if (walk.rank <= 1) {
    piece.at += walk.head;
    if (item >= walk.packets) {
      piece.at = item == walk.packets ? 0 : walk.head + walk.packets * width;
      piece.count = item == walk.packets ? walk.head : walk.tail;
    }
    for (int k = 0; k < 2; k++) piece.offset[k] = piece.at * (walk.rank == 0 ? 0 : walk.stride[k][0]);
    return piece;
  }
  int64_t rest = item;
  for (int i = walk.rank - 1; i >= 0; i--) {
    int64_t next = i > 0 ? rest / walk.shape[i] : 0;
    for (int k = 0; k < 2; k++) piece.offset[k] += (rest - next * walk.shape[i]) * walk.stride[k][i];
    rest = next;
  }
  return piece;
}

// out[k] = in[k] over all elements, by the definition: offset of the output to offset of the input.
std::map<int64_t, int64_t> expected(const Tensor& out_, const Tensor& in_) {
  const pg_tensor &out = *out_, &in = *in_;
  int64_t count = 1, stride[PG_MAX_RANK];
  pg::broadcast_strides(in, out.rank, stride);
  for (uint32_t i = 0; i < out.rank; i++) count *= out.shape[i];
  std::map<int64_t, int64_t> pairs;
  for (int64_t p = 0; p < count; p++) {
    int64_t rest = p, to = 0, from = 0;
    for (uint32_t i = out.rank; i-- > 0;) {
      to += rest % out.shape[i] * out.stride[i];
      from += rest % out.shape[i] * stride[i];
      rest /= out.shape[i];
    }
    pairs[to] = from;
  }
  return pairs;
}

void check(const Tensor& out_, const Tensor& in_, uint64_t to, uint64_t from, bool in_order) {
  Loop<2> loop({typed(*out_), typed(*in_)}, 8 | 4 | 2, 1, in_order);
  elementwise::Walk<2> walk = loop.walk({address(to), address(from)});
  int width = loop.width();
  CAPTURE(width, walk.head, walk.packets, walk.tail, to, from, in_order);
  std::map<int64_t, int64_t> visited;
  for (int64_t item = 0; item < walk.items; item++) {
    Piece piece = piece_of(walk, item, width);
    if (in_order && width > 1) REQUIRE(piece.at % width == 0);
    for (int k = 0; k < 2; k++) {
      uint64_t start = (k == 0 ? to : from) + static_cast<uint64_t>(piece.offset[k]) * 4;
      bool whole = piece.count == width && width > 1;
      if (whole && walk.access[k] == kVector) REQUIRE(start % (4u * static_cast<uint64_t>(width)) == 0);
    }
    for (int64_t i = 0; i < piece.count; i++) {
      // Within a packet outputs are neighbours; inputs are, or all are the same.
      int64_t step = walk.access[1] == kSplat ? 0 : 1;
      bool fresh = visited.emplace(piece.offset[0] + i, piece.offset[1] + i * step).second;
      REQUIRE(fresh);
    }
  }
  REQUIRE(visited == expected(out_, in_));
}

}  // namespace

TEST_CASE("one dimension: heads, packets and tails at every alignment") {
  for (int64_t count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100}) {
    for (uint64_t to = 4096; to < 4096 + 32; to += 4) {
      for (uint64_t from : {uint64_t{8192}, uint64_t{8196}, uint64_t{8200}, uint64_t{8204}, to}) {
        Tensor t({count}, {1});
        check(t, t, to, from, false);
      }
    }
  }
}

TEST_CASE("one dimension: a number, one element for all, gaps") {
  Tensor out({37}, {1}), one({1}, {1}), gaps({37}, {3});
  check(out, one, 4096, 8196, false);
  check(out, gaps, 4096, 8192, false);
  Loop<2> loop({typed(*out), number()}, 4);
  CHECK(loop.width() == 4);
  CHECK(loop.walk({address(4096), nullptr}).access[1] == kNumber);
  CHECK(Loop<2>({typed(*gaps), typed(*out)}, 8 | 4 | 2).width() == 1);
}

TEST_CASE("an order that counts has no head") {
  Tensor t({37}, {1});
  for (uint64_t to = 4096; to < 4096 + 32; to += 4) check(t, t, to, 8192, true);
  Loop<2> loop({typed(*t), typed(*t)}, 4, 1, true);
  elementwise::Walk<2> walk = loop.walk({address(4100), address(8192)});
  CHECK(walk.head == 0);
  CHECK(walk.access[0] == kElements);
}

TEST_CASE("several dimensions: transposed, broadcast, rows with gaps, ragged rows") {
  const List shapes[] = {{3, 8},     {8, 3}, {5, 16}, {4, 5, 8}, {2, 3, 4, 8}, {3, 7},
                         {2, 1, 12}, {1, 1}, {},      {0, 4},    {4, 0}};
  for (const List& shape : shapes) {
    Tensor out(shape, dense(shape));
    List gaps = dense(shape), reversed(shape.size()), rows(shape);
    for (size_t i = 0; i + 1 < gaps.size(); i++) gaps[i] *= 2;
    int64_t step = 1;
    for (size_t i = 0; i < shape.size(); i++) {
      reversed[i] = step;
      step *= shape[i];
    }
    std::vector<Tensor> inputs = {out, Tensor(shape, gaps), Tensor(shape, reversed), Tensor({}, {})};
    if (!shape.empty()) {
      inputs.push_back(Tensor({shape.back()}, {1}));
      rows.back() = 1;
      inputs.push_back(Tensor(rows, dense(rows)));
    }
    for (const Tensor& in : inputs) {
      for (uint64_t to : {uint64_t{4096}, uint64_t{4100}, uint64_t{4104}}) {
        for (uint64_t from : {uint64_t{8192}, uint64_t{8196}}) {
          check(out, in, to, from, false);
          check(out, in, to, from, true);
        }
      }
    }
    check(Tensor(shape, reversed), out, 4096, 8192, false);
    check(Tensor(shape, gaps), out, 4096, 8192, false);
  }
}

TEST_CASE("packets are of at most 16 bytes") {
  Tensor f32({64}, {1}), f64({64}, {1}, PG_F64), f16({64}, {1}, PG_F16), u8({64}, {1}, PG_U8);
  CHECK(Loop<2>({typed(*f32), typed(*f32)}, 8 | 4 | 2).width() == 4);
  CHECK(Loop<2>({typed(*f64), typed(*f64)}, 8 | 4 | 2).width() == 2);
  CHECK(Loop<2>({typed(*f16), typed(*f16)}, 8 | 4 | 2).width() == 8);
  CHECK(Loop<2>({typed(*u8), typed(*f32)}, 8 | 4 | 2).width() == 4);
  CHECK(Loop<2>({typed(*u8), typed(*f64)}, 8 | 4).width() == 1);
}

TEST_CASE("32 bits are enough up to 2^31 - 1, and not beyond") {
  auto wide = [](const List& shape, const List& stride) {
    Tensor out(shape, dense(shape)), x(shape, stride);
    return Loop<2>({typed(*out), typed(*x)}, 4).walk({address(4096), address(8192)}).wide;
  };
  constexpr int64_t kLimit = (int64_t{1} << 31) - 1;
  CHECK_FALSE(wide({kLimit}, {1}));
  CHECK(wide({kLimit + 1}, {1}));
  CHECK_FALSE(wide({46340, 46340}, {1, 46340}));
  CHECK(wide({46341, 46341}, {1, 46341}));
  CHECK_FALSE(wide({2, 3}, {kLimit - 2, 1}));  // the last element lies at 2^31 - 1
  CHECK(wide({2, 4}, {kLimit - 2, 1}));        // and here beyond
  CHECK(wide({2, 2}, {int64_t{1} << 40, 1}));
  CHECK_FALSE(wide({0, 5}, {int64_t{1} << 40, 1}));
}

TEST_CASE("items beyond 2^31 are counted and placed in 64 bits") {
  constexpr int64_t kBig = (int64_t{1} << 33) + 3;
  Tensor t({kBig}, {1});
  Loop<2> loop({typed(*t), typed(*t)}, 4);
  elementwise::Walk<2> walk = loop.walk({address(4104), address(8200)});
  CHECK(walk.head == 2);
  CHECK(walk.head + walk.packets * 4 + walk.tail == kBig);
  CHECK(walk.items == walk.packets + 2);
  CHECK(piece_of(walk, walk.packets + 1, 4).at == kBig - walk.tail);
  CHECK(walk.access[0] == kVector);
  CHECK(walk.access[1] == kVector);
  CHECK(walk.wide);
}
