// SPDX-License-Identifier: Apache-2.0
// Bags of embeddings as primitives: rows, one for each index, and what becomes of those of a bag.
#pragma once

#include <limits>

#include "../rules.hpp"

namespace pg {

class Bags {
 public:
  // index [B, L], or [N] with offsets.
  Bags(const AttrReader& attrs, Value index, Value offsets)
      : index_(index), flat_(static_cast<bool>(offsets)), padding_(attrs.get<int>("padding_idx")) {
    if (flat_) {
      if (attrs.get<bool>("include_last_offset")) offsets = without_last(offsets);
      find_bags(offsets);
    }
    if (padding_ >= 0) valid_ = ne(index, static_cast<double>(padding_));
  }

  // The rows of the indices, wide, times the weights where there are any; 0 for those that do not count.
  Value pick(Value table, Value weights) const {
    Value rows = widen(embedding(table, index_));
    if (weights) rows = rows * unsqueeze(widen(weights), weights.rank());
    return valid_ ? where(unsqueeze(valid_, valid_.rank()), rows, 0.0) : rows;
  }
  // The sum of each bag's rows.
  Value total(Value rows) const { return flat_ ? sum_by_bag(rows, rows.dim(1)) : sum(rows, make_ints({1})); }
  // How many indices of each bag count, at least 1.
  Value count(uint32_t dtype) const { return maximum(counted(dtype), 1.0); }
  // A row of each bag at each of its indices.
  Value spread(Value dy) const {
    if (flat_) return embedding(dy, bag_);
    return expand(unsqueeze(dy, 1), make_ints({-1, index_.dim(1), -1}));
  }
  // Numbers by index, 0 for those that do not count.
  Value masked(Value each) const { return valid_ ? where(valid_, each, 0.0) : each; }

  struct Largest {
    Value value, row;
  };
  // The largest of each bag's rows, and which rows of the table they are of.
  Largest largest(Value table) const {
    int64_t width = table.dim(1), length = index_.dim(index_.rank() - 1);
    Value rows = embedding(table, index_), index = cast(index_, PG_I64);
    if (length == 0) return {filled(table.dtype(), {bags_of(), width}, 0), filled(PG_I64, {bags_of(), width}, -1)};
    if (valid_) rows = where(unsqueeze(valid_, valid_.rank()), rows, -std::numeric_limits<double>::infinity());
    Value none = unsqueeze(eq(counted(PG_F32), 0.0), 1);
    Largest result = flat_ ? largest_flat(rows, index, none) : largest_whole(rows, index);
    return {where(none, 0.0, result.value), where(none, -1.0, result.row)};
  }

 private:
  static Value embedding(Value table, Value index) {
    static constinit OpRef op("embedding");
    return Call(table.builder, op).input(table).input(index).emit();
  }
  static Value expand(Value x, const pg_ints& shape) {
    static constinit OpRef op("expand", "shape");
    return Call(x.builder, op).input(x).set(0, shape).emit();
  }
  Value filled(uint32_t dtype, std::initializer_list<int64_t> shape, double value) const {
    static constinit OpRef op("fill", "shape", "dtype", "value");
    return Call(index_.builder, op).set(0, make_ints(shape)).set(1, dtype).set(2, value).emit();
  }
  static Value without_last(Value x) {
    static constinit OpRef op("slice", "starts", "stops");
    return Call(x.builder, op).input(x).set(0, make_ints({0})).set(1, make_ints({-1})).emit();
  }
  // rows[i] added to row at[i] of a tensor [rows, width].
  Value summed(Value rows, Value at, int64_t count, int64_t width) const {
    static constinit OpRef op("embedding_grad");
    Value like = expand(filled(rows.dtype(), {1, 1}, 0), make_ints({count, width}));
    return Call(rows.builder, op).input(rows).input(at).input(like).emit();
  }
  Value sum_by_bag(Value rows, int64_t width) const { return summed(rows, bag_, bags_of(), width); }
  int64_t bags_of() const { return flat_ ? bags_ : index_.dim(0); }

  // The bag of every position: how many begin there or before, less 1.
  void find_bags(Value offsets) {
    bags_ = offsets.dim(0);
    int64_t places = dim_add(index_.dim(0), 1);
    Value marks = summed(filled(PG_F64, {bags_, 1}, 1), offsets, places, 1);
    Value begun = cumsum(squeeze(marks, make_ints({1})), 0);
    bag_ = cast(without_last(begun) - 1.0, PG_I64);
  }
  Value counted(uint32_t dtype) const {
    Value each = cast(valid_ ? valid_ : ones_like(index_), dtype);
    if (!flat_) return sum(each, make_ints({1}));
    return squeeze(sum_by_bag(unsqueeze(each, 1), 1), make_ints({1}));
  }

  static Largest largest_whole(Value rows, Value index) {
    static constinit OpRef op("argmax", "axis", "flat");
    Value at = Call(rows.builder, op).input(rows).set(0, 1).set(1, false).emit();
    return {amax(rows, make_ints({1})), gather(index, at, 1)};
  }
  // An extreme of each bag's values.
  Value extreme(Value values, const pg_ints& shape, int32_t how) const {
    static constinit OpRef op("scatter_reduce", "axis", "reduce", "include_self");
    return Call(values.builder, op)
        .input(filled(values.dtype(), {bags_, values.dim(1)}, 0))
        .input(expand(unsqueeze(bag_, 1), shape))
        .input(values)
        .set(0, 0)
        .set(1, how)
        .set(2, false)
        .emit();
  }
  Largest largest_flat(Value rows, Value index, Value none) const {
    constexpr int32_t kLargest = 3, kSmallest = 4;  // of scatter_reduce's choices
    constexpr double kBehind = 0x1p53;
    const pg_ints shape = make_ints({rows.dim(0), rows.dim(1)});
    Value top = extreme(rows, shape, kLargest);
    Value place = expand(unsqueeze(cumsum(ones_like(index), 0) - 1.0, 1), shape);
    Value at = extreme(where(lt(rows, embedding(top, bag_)), kBehind, place), shape, kSmallest);
    return {top, gather(expand(unsqueeze(index, 1), shape), where(none, 0.0, at), 0)};
  }

  Value index_, bag_, valid_;  // bag_: of offsets; valid_: where there is a padding_idx
  bool flat_;
  int64_t padding_, bags_ = 0;
};

}  // namespace pg
