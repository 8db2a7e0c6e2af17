// SPDX-License-Identifier: Apache-2.0
// index, index_put and index_grad: slices at the contents of several index tensors, which stand for axes in a row.
#include <algorithm>
#include <atomic>
#include <vector>

#include "copy.hpp"
#include "dense_reader.hpp"
#include "index_values.hpp"
#include "scatter.hpp"

namespace cpu {
namespace {

uint64_t round_up(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Several index tensors as one row of positions, in elements of a tensor with given strides.
class Places {
 public:
  Places() = default;
  // Inputs [first, first + count) of the call are for the axes of `x` from `axis` on.
  Places(const pg::KernelCall& call, uint32_t first, uint32_t count, const pg_tensor& x, uint32_t axis)
      : op_(call.raw->op->name), first_(first), axis_(axis) {
    for (uint32_t k = 0; k < count; k++) rank_ = std::max(rank_, call.in(first + k).rank);
    std::fill_n(shape_, rank_, 1);
    for (uint32_t k = 0; k < count; k++) {
      const pg_tensor& t = call.in(first + k);
      for (uint32_t i = 0; i < t.rank; i++)
        if (t.shape[i] != 1) shape_[rank_ - t.rank + i] = t.shape[i];
    }
    for (uint32_t i = 0; i < rank_; i++) count_ *= shape_[i];
    for (uint32_t k = 0; k < count; k++) {
      const pg_tensor& t = call.in(first + k);
      Part& part = parts_.emplace_back();
      part.values = IndexValues(t);
      part.size = x.shape[axis + k];
      DenseLike dense(t, PG_I64);
      int64_t stride[1][PG_MAX_RANK];
      pg::broadcast_strides(dense.tensor, rank_, stride[0]);
      part.nest = pg::make_nest<1>(rank_, shape_, stride, false);
      scratch_ = std::max(scratch_, part.values.workspace());
    }
    auto shown = call.attr<pg_ints>("shown");
    for (uint32_t k = 0; k < count; k++) parts_[k].shown = k < shown.count ? shown.value[k] : axis + k + 1;
  }

  int64_t count() const { return count_; }
  uint32_t rank() const { return rank_; }
  const int64_t* shape() const { return shape_; }
  uint32_t indexed() const { return static_cast<uint32_t>(parts_.size()); }
  uint64_t workspace() const { return round_up(static_cast<uint64_t>(count_) * 8) + scratch_; }

  // Checks all indices; the row lies in `scratch`. `stride`: of the whole tensor.
  const int64_t* read(const pg_launch& launch, char* scratch, const int64_t* stride) const {
    auto* row = reinterpret_cast<int64_t*>(scratch);
    char* rest = scratch + round_up(static_cast<uint64_t>(count_) * 8);
    for (uint32_t k = 0; k < parts_.size(); k++) {
      const Part& part = parts_[k];
      const int64_t* values = part.values.read(pg::input(launch, first_ + k), rest);
      if (!part.nest.linear(0)) {
        part.values.check(values, part.size, op_, {"index", part.shown});
        if (k == 0) std::fill_n(row, count_, 0);
        add(part.nest, values, stride[axis_ + k], row);
      } else if (!add_checked(values, part.size, stride[axis_ + k], k == 0, row)) {
        part.values.check(values, part.size, op_, {"index", part.shown});
      }
    }
    return row;
  }

 private:
  struct Part {
    IndexValues values;
    pg::Nest<1> nest;  // of its values, over the common shape
    int64_t size = 0, shown = 0;
  };

  // False where one is out of range: who it is, the slow way finds out.
  bool add_checked(const int64_t* values, int64_t size, int64_t stride, bool first, int64_t* row) const {
    std::atomic<bool> good{true};
    auto limit = static_cast<uint64_t>(size);
    auto step = static_cast<uint64_t>(stride);
    auto piece = [&](int64_t begin, int64_t end) {
      bool bad = false;
      for (int64_t i = begin; i < end; i++) {
        auto value = static_cast<uint64_t>(values[i]);  // bad ones wrap around, and are not used
        bad |= value >= limit;
        row[i] = static_cast<int64_t>((first ? 0 : static_cast<uint64_t>(row[i])) + value * step);
      }
      if (bad) good = false;
    };
    if (count_ <= kGrain)
      piece(0, count_);
    else
      pg::parallel_for(count_, kGrain, piece);
    return good;
  }

  static void add(const pg::Nest<1>& nest, const int64_t* values, int64_t stride, int64_t* row) {
    int64_t run = nest.inner(), step = nest.inner_stride(0);
    for (int64_t p = 0; p < nest.count; p += run) {
      const int64_t* from = values + nest.offset(0, p);
      for (int64_t i = 0; i < run; i++) row[p + i] += from[i * step] * stride;
    }
  }

  const char* op_ = nullptr;
  uint32_t first_ = 0, axis_ = 0, rank_ = 0;
  int64_t shape_[PG_MAX_RANK] = {}, count_ = 1;
  uint64_t scratch_ = 0;
  std::vector<Part> parts_;
};

void require_indices(const pg::KernelCall& call, uint32_t first, uint32_t count) {
  for (uint32_t k = 0; k < count; k++)
    if (!is_index(call.in(first + k))) refuse(call);
}

struct Index final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    require_indices(call, 1, call.group(1));
    if (storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }
  Index(const pg::KernelCall& call, pg::Plan& plan) : bytes_(kStorageBytes[storage_of(call.out(0))]) {
    const pg_tensor& x = call.in(0);
    uint32_t axis = static_cast<uint32_t>(call.axis("axis", x.rank)), count = call.group(1);
    places_ = Places(call, 1, count, x, axis);
    int64_t before[1][PG_MAX_RANK], inner[1][PG_MAX_RANK];
    for (uint32_t i = 0; i < x.rank; i++) stride_[i] = before[0][i] = x.stride[i];
    for (uint32_t i = axis + count; i < x.rank; i++) inner[0][i - axis - count] = x.stride[i];
    before_ = pg::make_nest<1>(axis, x.shape, before, false);
    inner_ = pg::make_nest<1>(x.rank - axis - count, x.shape + axis + count, inner, false);
    plan.workspace = places_.workspace();
  }

  void launch(const pg_launch& launch) override {
    const int64_t* places = places_.read(launch, pg::host_pointer<char>(launch.workspace), stride_);
    int64_t n = places_.count(), inner = inner_.count, slices = before_.count * n;
    if (slices * inner == 0) return;
    visit_bytes(bytes_, [&](auto zero) {
      using E = decltype(zero);
      const E* x = pg::input<const E>(launch, 0);
      E* out = pg::output<E>(launch, 0);
      auto piece = [&](int64_t begin, int64_t end) { copy_slices(x, places, out, begin, end); };
      if (slices * inner <= kGrain) return piece(0, slices);
      pg::parallel_for(slices, std::max<int64_t>(1, kGrain / inner), piece);
    });
  }

 private:
  template <class E>
  void copy_slices(const E* x, const int64_t* places, E* out, int64_t begin, int64_t end) const {
    int64_t n = places_.count(), inner = inner_.count;
    for (int64_t i = begin; i < end;) {
      const E* from = x + before_.offset(0, i / n);
      int64_t first = i / n * n, stop = std::min(end, first + n);
      if (inner == 1) {
        for (; i < stop; i++) out[i] = from[places[i - first]];
        continue;
      }
      for (; i < stop; i++) {
        const E* slice = from + places[i - first];
        if (inner_.linear(0))
          std::memcpy(out + i * inner, slice, static_cast<size_t>(inner) * sizeof(E));
        else
          gather(slice, sizeof(E), inner_.rank, inner_.shape, inner_.stride[0], 0, inner, out + i * inner);
      }
    }
  }

  int bytes_;
  Places places_;
  int64_t stride_[PG_MAX_RANK];
  pg::Nest<1> before_, inner_;
};
PG_KERNEL("index", Index);

// Sums of 16-bit numbers run in float32, in a dense copy of x.
struct IndexPut final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    require_indices(call, 1, call.group(1));
    Storage s = storage_of(call.out(0));
    if (storage_of(call.in(0)) != s || storage_of(call.in(value_input(call))) != s) refuse(call);
  }
  IndexPut(const pg::KernelCall& call, pg::Plan& plan)
      : storage_(storage_of(call.out(0))),
        type_(storage_),
        axis_(static_cast<uint32_t>(call.axis("axis", call.out(0).rank))),
        values_(value_input(call)),
        to_zeros_(call.is("index_grad")) {
    const pg_tensor& x = call.out(0);
    if (to_zeros_ || call.attr<bool>("accumulate")) fold_ = Fold::add;
    wide_ = fold_ == Fold::add && (storage_ == sF16 || storage_ == sBF16);
    if (wide_) type_ = sF32;
    places_ = Places(call, 1, call.group(1), x, axis_);
    DenseLike dense(x, PG_F32);
    const pg_tensor& target = wide_ ? dense.tensor : x;
    std::copy_n(target.stride, x.rank, stride_);
    whole_ = plan_of(call.in(values_), target, false);
    places_bytes_ = round_up(places_.workspace());
    target_bytes_ = wide_ ? round_up(static_cast<uint64_t>(pg::element_count(x)) * 4) : 0;
    // Values of another type, or in the memory that is written to, are copied first.
    copied_ = plan_of(call.in(values_), target, true);
    value_bytes_ = static_cast<uint64_t>(pg::element_count(call.in(values_)) * kStorageBytes[type_]);
    plan.workspace = places_bytes_ + target_bytes_ + (wide_ ? value_bytes_ : 0);
  }

  void launch(const pg_launch& launch) override {
    char* scratch = pg::host_pointer<char>(launch.workspace);
    const int64_t* places = places_.read(launch, scratch, stride_);
    if (launch.output[0].buffer == 0) return;
    pg_tensor y = at_address(*launch.outputs[0], launch.output[0]);
    void* out = pg::output(launch, 0);
    if (wide_) {
      DenseLike target(y, PG_F32);
      char* sums = scratch + places_bytes_;
      pg_tensor whole = at_address(target.tensor, {reinterpret_cast<uint64_t>(sums), 0});
      begin(whole, launch);
      scatter_fold(copied_, sF32, fold_, sums, copy_values(launch, PG_F32, sums + target_bytes_), places);
      return copy_tensor(y, whole);
    }
    bool same = pg::input(launch, values_) == out;
    std::vector<char> own(same ? value_bytes_ : 0);
    const void* values = same ? copy_values(launch, pg::dtype_of(y), own.data()) : pg::input(launch, values_);
    if (to_zeros_ || pg::input(launch, 0) != out) begin(y, launch);
    scatter_fold(same ? copied_ : whole_, type_, fold_, out, values, places);
  }

 private:
  static uint32_t value_input(const pg::KernelCall& call) { return call.is("index_grad") ? 0 : call.group_begin(2); }

  // What is written to, before it is: x, or zeros.
  void begin(const pg_tensor& target, const pg_launch& launch) const {
    if (to_zeros_)
      fill_tensor(target, 0);
    else
      copy_tensor(target, at_address(*launch.inputs[0], launch.input[0]));
  }

  const void* copy_values(const pg_launch& launch, uint32_t dtype, char* target) const {
    const pg_tensor& values = *launch.inputs[values_];
    DenseLike dense(values, dtype);
    if (pg::element_count(values) > 0) {
      copy_tensor(at_address(dense.tensor, {reinterpret_cast<uint64_t>(target), 0}),
                  at_address(values, launch.input[values_]));
    }
    return target;
  }

  // Operands of scatter_fold: the row of places is the index, whose values are offsets already.
  ScatterPlan plan_of(const pg_tensor& given, const pg_tensor& target, bool dense_values) const {
    DenseLike dense(given, pg::dtype_of(given));
    const pg_tensor& values = dense_values ? dense.tensor : given;
    uint32_t common = places_.rank(), behind = axis_ + places_.indexed(), rest = target.rank - behind;
    int64_t source[PG_MAX_RANK];
    pg::broadcast_strides(values, axis_ + common + rest, source);
    int64_t before[3][PG_MAX_RANK] = {}, inner[3][PG_MAX_RANK] = {};
    for (uint32_t i = 0; i < axis_; i++) before[0][i] = target.stride[i], before[1][i] = source[i];
    for (uint32_t i = 0; i < rest; i++)
      inner[0][i] = target.stride[behind + i], inner[1][i] = source[axis_ + common + i];
    ScatterPlan plan;
    plan.inner = pg::make_nest<3>(rest, target.shape + behind, inner, false);
    plan.step[0] = 1;
    plan.limit = 1;
    for (uint32_t i = axis_; i < behind; i++) plan.limit += (target.shape[i] - 1) * target.stride[i];
    // The indices' own axes are one loop where the values' strides allow it, else the outer ones go to `before`.
    int64_t stride[1][PG_MAX_RANK];
    std::copy_n(source + axis_, common, stride[0]);
    pg::Nest<1> rows = pg::make_nest<1>(common, places_.shape(), stride, false);
    int64_t shape[2 * PG_MAX_RANK], at = places_.count();
    uint32_t rank = axis_;
    std::copy_n(target.shape, axis_, shape);
    for (int i = 0; i + 1 < rows.rank; i++, rank++) {
      at /= std::max<int64_t>(1, rows.shape[i]);  // of no places none is written
      shape[rank] = rows.shape[i];
      before[0][rank] = 0;
      before[1][rank] = rows.stride[0][i];
      before[2][rank] = at;
    }
    plan.count = rows.inner();
    plan.step[1] = rows.inner_stride(0);
    plan.step[2] = 1;
    plan.before = pg::make_nest<3>(rank, shape, before, false);
    plan.split_before = rows.rank <= 1;
    return plan;
  }

  Storage storage_, type_;  // of x; of the arithmetic
  uint32_t axis_, values_;  // values_: which input
  bool to_zeros_;
  Fold fold_ = Fold::write;
  bool wide_ = false;
  Places places_;
  int64_t stride_[PG_MAX_RANK];
  ScatterPlan whole_, copied_;
  uint64_t places_bytes_, target_bytes_, value_bytes_;
};
PG_KERNEL("index_put", IndexPut);
PG_KERNEL("index_grad", IndexPut);

}  // namespace
}  // namespace cpu
