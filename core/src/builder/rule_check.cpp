// SPDX-License-Identifier: Apache-2.0
#include "builder/rule_check.hpp"

#include <algorithm>

#include "tensor/dims.hpp"

namespace perigee {
namespace {

[[noreturn]] void fail_rule(const Op& op, const uint32_t* groups, uint32_t flat, const std::string& what) {
  pg::fail(PG_E_INTERNAL, "its shape rule " + what + " output " + output_text(op, groups, flat));
}

// The last element of a view, counted from input 0's first; -1 where that is more than an int64 holds.
int64_t last_element(const pg_meta& m) {
  int64_t last = m.offset;
  for (uint32_t i = 0; i < m.rank; i++) {
    int64_t step = 0;
    if (__builtin_mul_overflow(m.shape[i] - 1, m.stride[i], &step) || __builtin_add_overflow(last, step, &last))
      return -1;
  }
  return last;
}

}  // namespace

std::string output_text(const Op& op, const uint32_t* groups, uint32_t flat) {
  uint32_t declared = 0;
  for (; declared + 1 < op.info->output_count; declared++) {
    const pg_output_info& out = *op.info->outputs[declared];
    uint32_t count = out.flags & PG_OUTPUT_VARIADIC ? groups[out.like] : 1;
    if (flat < count) break;
    flat -= count;
  }
  return std::string("'") + op.info->outputs[declared]->name + "'";
}

void check_described(const Op& op, const uint32_t* groups, const pg_meta* metas, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const pg_meta& m = metas[i];
    uint32_t dtype = PG_DTYPE(m.dtype_code, m.dtype_bits);
    if (dtype == 0 && m.rank == 0) fail_rule(op, groups, i, "says nothing of");
    if (!is_dtype(dtype)) fail_rule(op, groups, i, "says dtype " + dtype_text(dtype) + " of");
    for (uint32_t k = 0; k < std::min<uint32_t>(m.rank, PG_MAX_RANK); k++)
      if (PG_DIM_IS_SYMBOLIC(m.shape[k]) && !is_dim(m.shape[k]))
        fail_rule(op, groups, i, pg::format("says a symbol that there is not for axis %u of", k));
    if (m.flags != 0 && !(op.info->traits & PG_OP_VIEW)) fail_rule(op, groups, i, "makes a view, which it is not, of");
  }
}

void check_view(const Op& op, const uint32_t* groups, uint32_t flat, const pg_meta& m, const Meta* x) {
  if (x == nullptr) pg::fail_argument(pg::format("needs %s, which it is a view of", op.info->inputs[0]->name));
  if (m.rank > PG_MAX_RANK) return;  // what is wrong with sizes alone is said where descriptions are made
  bool empty = false;
  for (uint32_t i = 0; i < m.rank; i++) {
    if (PG_DIM_IS_SYMBOLIC(m.shape[i])) return;
    empty |= m.shape[i] <= 0;
  }
  if (m.flags & PG_META_COPY) {
    if (x->contiguous) fail_rule(op, groups, flat, "wants a dense input, which it has, for");
    return;
  }
  if (!(m.flags & PG_META_VIEW)) fail_rule(op, groups, flat, "says no strides of");
  uint32_t dtype = PG_DTYPE(m.dtype_code, m.dtype_bits);
  if (dtype != x->dtype)
    fail_rule(op, groups, flat,
              pg::format("says dtype %s, where the input that it is a view of has %s, of", pg::dtype_name(dtype),
                         pg::dtype_name(x->dtype)));
  if (empty) return;
  for (uint32_t i = 0; i < m.rank; i++)
    if (m.stride[i] < 0) fail_rule(op, groups, flat, "says a negative stride of");
  int64_t last = last_element(m), reach = x->span / pg::dtype_bytes(dtype);
  if (m.offset < 0 || last < 0 || last >= reach)
    fail_rule(op, groups, flat,
              pg::format("goes beyond the %lld elements that its input reaches with", static_cast<long long>(reach)));
}

void check_extents(const Op& op, const uint32_t* groups, uint32_t flat, const Meta& bound, const int64_t* extents) {
  for (uint32_t i = 0; i < bound.rank; i++) {
    if (extents[i] >= 0 && extents[i] <= bound.shape[i]) continue;
    pg::fail(PG_E_INTERNAL, pg::format("its kernel says that axis %u of output %s has %lld elements; at most %lld fit",
                                       i, output_text(op, groups, flat).c_str(), static_cast<long long>(extents[i]),
                                       static_cast<long long>(bound.shape[i])));
  }
}

void check_part(const Op& op, const uint32_t* groups, uint32_t flat, const Meta& part, const Meta& described) {
  if (part.dtype == described.dtype && same_shape(part, described)) return;
  pg::fail(PG_E_INTERNAL,
           pg::format("its decomposition gave %s %s for output %s; its shape rule says %s %s",
                      pg::dtype_name(part.dtype), shape_text(part).c_str(), output_text(op, groups, flat).c_str(),
                      pg::dtype_name(described.dtype), shape_text(described).c_str()));
}

}  // namespace perigee
