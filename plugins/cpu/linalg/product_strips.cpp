// SPDX-License-Identifier: Apache-2.0
#include "linalg/product_strips.hpp"

#include <algorithm>
#include <bit>

#include "first_failure.hpp"
#include "linalg/work.hpp"
#include "onednn/onednn.hpp"
#include "rooms.hpp"

namespace pg::cpu {
namespace {

// Beyond these the product takes so much longer than its result's way to memory and back that strips save little, or a
// strip of rows enough for the multipliers no longer lies in the caches; below, a strip takes little more than the
// call.
constexpr int64_t kShallowest = 32, kDeepest = 256, kFewestColumns = 16, kMostColumns = 1024;
// Smaller results are in the caches anyway.
constexpr int64_t kLeastResults = int64_t{1} << 20;
constexpr int64_t kStripElements = 65536, kFewestRows = 64, kMostRows = 1024;

// Whether it is dnnl_sgemm's (product.cpp), which gathers b anew for each strip.
bool packs_each_time(const ProductShape& s) {
  const bool weight = s.b.row == 1 && s.b.column != 1;
  return s.dtype == PG_F32 && !weight && !onednn::has_avx512() && !deterministic();
}

ProductShape with_rows(ProductShape shape, int64_t rows) {
  shape.m = rows;
  return shape;
}

}  // namespace

int64_t strip_rows(const ProductShape& s) {
  if ((s.dtype != PG_F32 && s.dtype != PG_F64) || !s.batch.empty() || s.k < kShallowest || s.k > kDeepest) return 0;
  if (s.n < kFewestColumns || s.n > kMostColumns || work_of({s.m, s.n}) < kLeastResults) return 0;
  if (s.a.column != 1 || s.c.column != 1 || s.c.row != s.n || packs_each_time(s)) return 0;
  const auto rows = static_cast<uint64_t>(kStripElements / std::max(s.n, s.k));
  return std::clamp(static_cast<int64_t>(std::bit_floor(rows)), kFewestRows, kMostRows);
}

StripProduct::StripProduct(const ProductShape& shape)
    : s_(shape), rows_(strip_rows(shape)), bytes_(dtype_bytes(shape.dtype)), rooms_(::cpu::Rooms::count()) {
  const onednn::OneThread guard(true);
  whole_ = make_product(with_rows(s_, rows_), true, true);
  if (s_.m % rows_ != 0) rest_ = make_product(with_rows(s_, s_.m % rows_), false, true);
}

uint64_t StripProduct::workspace() const {
  Scratch scratch;
  scratch.take(room_of_b());
  scratch.take(::cpu::Rooms::workspace(rooms_, static_cast<int64_t>(room_of_strip())));
  return scratch.bytes();
}

uint64_t StripProduct::room_of_strip() const {
  return std::max<uint64_t>(whole_->workspace(), rest_ != nullptr ? rest_->workspace() : 0);
}

void StripProduct::run(const ProductData& given) {
  ProductData data = given;
  Scratch scratch(given.workspace);
  void* const room_of_b = scratch.take(this->room_of_b());
  ::cpu::Rooms rooms(scratch.take(0), rooms_, static_cast<int64_t>(room_of_strip()));
  prepare(data.b, room_of_b);
  data.packed_b = room_of_b;
  ::cpu::FirstFailure failure;
  parallel_for((s_.m + rows_ - 1) / rows_, 1, [&](int64_t begin, int64_t end) {
    failure.watch([&] {
      const ::cpu::Rooms::Room room(rooms);
      ProductData mine = data;
      mine.workspace = room.at();
      for (int64_t i = begin; i < end; i++) run_rows(mine, i * rows_, std::min((i + 1) * rows_, s_.m));
    });
  });
  failure.raise();
}

void StripProduct::run_rows(const ProductData& data, int64_t first, int64_t last) {
  Product& product = last - first == rows_ ? *whole_ : *rest_;
  const bool packed = &product == whole_.get() && room_of_b() > 0;
  const onednn::OneThread guard(true);
  auto row = [&](const void* base, int64_t step) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(base) + static_cast<uintptr_t>(first * step * bytes_));
  };
  product.run({row(data.a, s_.a.row), data.b, data.bias, row(data.c, s_.c.row), data.workspace,
               packed ? data.packed_b : nullptr});
}

}  // namespace pg::cpu
