// SPDX-License-Identifier: Apache-2.0
#include "tensor/order.hpp"

#include <utility>

namespace perigee {
namespace {

// The step along an axis of the result; 0: this operand does not say.
int64_t step_along(const Meta& x, uint32_t rank, const int64_t* shape, uint32_t axis) {
  const uint32_t lead = rank - x.rank;
  if (axis < lead || shape[axis] <= 1 || x.shape[axis - lead] != shape[axis]) return 0;
  return x.stride[axis - lead];
}

bool broadcasts(const Meta& x, uint32_t rank, const int64_t* shape) {
  if (x.rank > rank || x.symbolic) return false;
  for (uint32_t i = 0; i < x.rank; i++)
    if (x.shape[i] != 1 && x.shape[i] != shape[rank - x.rank + i]) return false;
  return true;
}

}  // namespace

AxisOrder order_of_operands(uint32_t rank, const int64_t* shape, const Meta* const* operands, uint32_t count) {
  // Above 0: `outer` lies within `inner`.
  auto compare = [&](uint32_t outer, uint32_t inner) {
    for (uint32_t k = 0; k < count; k++) {
      if (operands[k] == nullptr || !broadcasts(*operands[k], rank, shape)) continue;
      const int64_t a = step_along(*operands[k], rank, shape, outer);
      const int64_t b = step_along(*operands[k], rank, shape, inner);
      if (a == 0 || b == 0 || a == b) continue;
      return a < b ? 1 : -1;
    }
    return 0;
  };
  AxisOrder order;
  order.rank = rank;
  for (uint32_t i = 0; i < rank; i++) order.axis[i] = static_cast<uint8_t>(i);
  // By insertion from the inside out: pairs that nobody tells apart stay as they are, and do not stop the search.
  for (uint32_t i = 1; i < rank; i++) {
    uint32_t at = rank - 1 - i;
    for (uint32_t k = at + 1; k < rank; k++) {
      const int c = compare(order.axis[at], order.axis[k]);
      if (c < 0) break;
      if (c > 0) std::swap(order.axis[at], order.axis[k]), at = k;
    }
  }
  return order;
}

AxisOrder order_of(const Meta& meta) {
  const Meta* one = &meta;
  return order_of_operands(meta.rank, meta.shape, &one, 1);
}

AxisOrder order_of_format(MemoryFormat format, const Meta& meta) {
  AxisOrder order;
  order.rank = meta.rank;
  for (uint32_t i = 0; i < meta.rank; i++) order.axis[i] = static_cast<uint8_t>(i);
  if (format == MemoryFormat::contiguous) return order;
  const bool volume = format == MemoryFormat::channels_last_3d;
  const uint32_t rank = volume ? 5 : 4;
  if (meta.rank != rank)
    pg::fail_argument(pg::format("%s is an order of %u axes, %s; got %s", volume ? "channels_last_3d" : "channels_last",
                                 rank, volume ? "[n, c, d, h, w]" : "[n, c, h, w]", shape_text(meta).c_str()));
  for (uint32_t i = 1; i + 1 < rank; i++) order.axis[i] = static_cast<uint8_t>(i + 1);
  order.axis[rank - 1] = 1;
  return order;
}

MetaRef ordered_meta(uint32_t dtype, uint32_t rank, const int64_t* shape, const AxisOrder& order) {
  int64_t stride[PG_MAX_RANK] = {}, step = 1;
  const uint32_t lead = order.rank - rank;
  for (uint32_t i = order.rank; i-- > 0;) {
    if (order.axis[i] < lead) continue;
    const uint32_t axis = order.axis[i] - lead;
    stride[axis] = step;
    if (shape[axis] > 0 && __builtin_mul_overflow(step, shape[axis], &step)) return intern_meta(dtype, rank, shape);
  }
  return intern_meta(dtype, rank, shape, stride);
}

MetaRef meta_like_operands(const MetaRef& plain, const Meta* const* operands, uint32_t count) {
  if (plain->symbolic) return plain;
  const AxisOrder order = order_of_operands(plain->rank, plain->shape, operands, count);
  if (order.row_major()) return plain;
  MetaRef made = ordered_meta(plain->dtype, plain->rank, plain->shape, order);
  for (uint32_t k = 0; k < count; k++) {
    const Meta* x = operands[k];
    if (x == nullptr || !x->dense || !same_shape(*x, *plain)) continue;
    bool same = true;  // but for axes of one element
    for (uint32_t i = 0; i < x->rank; i++) same = same && (x->shape[i] == 1 || x->stride[i] == made->stride[i]);
    if (same) return keep_order(*x, plain->dtype);
  }
  return made;
}

MetaRef keep_order(const Meta& meta, uint32_t dtype) {
  if (meta.symbolic || meta.contiguous) return dense_meta(meta, dtype);
  if (meta.dense) {
    if (meta.dtype == dtype) return MetaRef::share(const_cast<Meta*>(&meta));
    return intern_meta(dtype, meta.rank, meta.shape, meta.stride);
  }
  return ordered_meta(dtype, meta.rank, meta.shape, order_of(meta));
}

}  // namespace perigee
