// SPDX-License-Identifier: Apache-2.0
#include "line_node.hpp"

#include <cmath>

#include "../reduce_plan.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda::fused {
namespace {

constexpr int64_t kMostBytes = 16384;  // of a line

struct Row {
  const char *op, *reducer, *fields;
};
constexpr Row kRows[] = {
    {"sum", "SumOf", "r.count = static_cast<double>(length);"},
    {"mean", "SumOf", "r.mean = true, r.count = static_cast<double>(length);"},
    {"amax", "ExtremeOf", ""},
    {"amin", "ExtremeOf", "r.smallest = true;"},
    {"var", "VarianceOf", ""},
    {"std", "VarianceOf", "r.root = true;"},
    {"logsumexp", "LogSumExpOf", ""},
    {"nansum", "MeasureOf", "r.measure = cuda::Measure::kNumbers;"},
    {"norm", "MeasureOf", ""},
};

const Row* find_row(const char* op) {
  for (const Row& row : kRows)
    if (std::strcmp(row.op, op) == 0) return &row;
  return nullptr;
}

[[noreturn]] void refuse_lines(const pg::KernelCall& call) {
  pg::fail_support(pg::format("%s (%s) is no part of a generated kernel", call.op(), pg::describe(call).c_str()));
}

const char* measure_of(const pg::KernelCall& call) {
  const auto p = call.attr<double>("p");
  if (p == 0) return "kNonzeros";
  if (p == 1) return "kMagnitudes";
  if (p == 2) return "kSquares";
  if (!std::isinf(p)) refuse_lines(call);
  return p > 0 ? "kLargest" : "kLeast";
}

// Axes of one element say nothing.
bool same_but_ones(const pg_tensor& a, uint32_t a_end, const pg_tensor& b, uint32_t b_end) {
  uint32_t i = 0, j = 0;
  for (;;) {
    while (i < a_end && a.shape[i] == 1) i++;
    while (j < b_end && b.shape[j] == 1) j++;
    if (i == a_end || j == b_end) return i == a_end && j == b_end;
    if (a.shape[i++] != b.shape[j++]) return false;
  }
}

// From which axis on `full` is one line.
uint32_t first_axis(const pg_tensor& full, int64_t length) {
  int64_t count = 1;
  uint32_t axis = full.rank;
  while (axis > 0 && count < length) count *= full.shape[--axis];
  return count == length ? axis : UINT32_MAX;
}

}  // namespace

bool is_line_operator(const pg::Region& region, uint32_t node) {
  return find_row(region.node(node).op->name) != nullptr;
}

void read_line_node(const pg::Region& region, uint32_t node, LineNode& out) {
  region.describe(node, out.call);
  const pg::KernelCall call(&out.call.call);
  const Row* row = find_row(call.op());
  if (row == nullptr || region.node(node).in_place != 0 || call.output_count() != 1 || !call.has_output(0) ||
      call.input_count() != 1 || !call.has(0))
    refuse_lines(call);
  const pg_tensor &x = call.in(0), &y = call.out(0);
  out.dtype = pg::dtype_of(x);
  const char* storage = out.dtype == PG_F32 ? "float" : out.dtype == PG_F64 ? "double" : "cuda::AnyHalf";
  if (out.dtype != PG_F32 && out.dtype != PG_F64 && out.dtype != PG_F16 && out.dtype != PG_BF16) refuse_lines(call);
  const bool plain = x.layout == 0 && y.layout == 0 && x.class_id == PG_CLASS_DENSE && y.class_id == PG_CLASS_DENSE;
  if (!plain || pg::dtype_of(y) != out.dtype || !pg::is_contiguous(x) || !pg::is_contiguous(y)) refuse_lines(call);
  const uint32_t axes = call.axis_mask("axes", x.rank);
  out.length = 1;
  uint32_t axis = x.rank;
  while (axis > 0 && (axes >> (axis - 1) & 1u) != 0) out.length *= x.shape[--axis];
  if ((axes & ((1u << axis) - 1)) != 0 || out.length < 2) refuse_lines(call);
  const int64_t bytes = pg::dtype_bytes(out.dtype);
  out.lines = pg::element_count(x) / out.length;
  if (out.lines == 0 || out.length * bytes > kMostBytes) refuse_lines(call);
  const RowsPlan plan = plan_rows(out.lines, out.length, 16 / bytes);
  if (plan.parts != 1) refuse_lines(call);
  out.lanes = plan.lanes, out.per_part = plan.per_part;
  out.reducer = pg::format("cuda::%s<%s>", row->reducer, storage);
  out.fields = row->fields;
  if (std::strcmp(row->reducer, "VarianceOf") == 0)
    out.fields += pg::format("r.correction = %.17g;", call.attr<double>("correction"));
  if (call.is("norm")) out.fields = pg::format("r.measure = cuda::Measure::%s;", measure_of(call));
}

bool holds_numbers(const pg_tensor& t, const pg_tensor& full, int64_t length) {
  const uint32_t axis = first_axis(full, length);
  return axis != UINT32_MAX && pg::is_contiguous(t) && pg::element_count(t) * length == pg::element_count(full) &&
         same_but_ones(t, t.rank, full, axis);
}

bool spreads_numbers(const pg_tensor& t, const pg_tensor& full, int64_t length) {
  if (!holds_numbers(t, full, length)) return false;
  if (pg::element_count(t) == 1) return true;
  if (t.rank != full.rank) return false;
  for (uint32_t i = 0; i < t.rank; i++)
    if (t.shape[i] != full.shape[i] && t.shape[i] != 1) return false;
  return true;
}

}  // namespace cuda::fused
