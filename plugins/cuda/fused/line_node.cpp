// SPDX-License-Identifier: Apache-2.0
#include "line_node.hpp"

#include <cmath>

#include "expression.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda::fused {
namespace {

constexpr int64_t kMostBytes = 16384;   // of a line that a block keeps in its memory
constexpr int64_t kLongSoftmax = 4096;  // elements from which on floats of up to 32 bits have a kernel of their own,
                                        // and all a gradient whose block has one line

enum class Kind : uint8_t { kSum, kProduct, kExtreme, kTruth, kVariance, kLogSumExp, kMeasure, kPlace, kWhole };
struct Row {
  const char* op;
  Kind kind;
  const char *reducer, *fields;
};
constexpr Row kRows[] = {
    {"sum", Kind::kSum, "SumOf", "r.count = static_cast<double>(length);"},
    {"sum_like", Kind::kSum, "SumOf", "r.count = static_cast<double>(length);"},
    {"mean", Kind::kSum, "SumOf", "r.mean = true, r.count = static_cast<double>(length);"},
    {"prod", Kind::kProduct, "ProductOf", ""},
    {"amax", Kind::kExtreme, "ExtremeOf", ""},
    {"amin", Kind::kExtreme, "ExtremeOf", "r.smallest = true;"},
    {"any", Kind::kTruth, "TruthOf", ""},
    {"all", Kind::kTruth, "TruthOf", "r.all = true;"},
    {"argmax", Kind::kPlace, "PlaceOf", ""},
    {"argmin", Kind::kPlace, "PlaceOf", "r.smallest = true;"},
    {"var", Kind::kVariance, "VarianceOf", ""},
    {"std", Kind::kVariance, "VarianceOf", "r.root = true;"},
    {"logsumexp", Kind::kLogSumExp, "LogSumExpOf", ""},
    {"nansum", Kind::kMeasure, "MeasureOf", "r.measure = cuda::Measure::kNumbers;"},
    {"norm", Kind::kMeasure, "MeasureOf", ""},
    {"softmax", Kind::kWhole, "", ""},
    {"log_softmax", Kind::kWhole, "", ""},
    {"softmax_grad", Kind::kWhole, "", ""},
    {"log_softmax_grad", Kind::kWhole, "", ""},
    {"layer_norm", Kind::kWhole, "", ""},
};

const Row* find_row(const char* op) {
  for (const Row& row : kRows)
    if (std::strcmp(row.op, op) == 0) return &row;
  return nullptr;
}

[[noreturn]] void refuse_lines(const pg::KernelCall& call) {
  pg::fail_support(pg::format("%s (%s) is no part of a generated kernel", call.op(), pg::describe(call).c_str()));
}

bool is_float(uint32_t dtype) { return pg::dtype_class(dtype) == PG_M_FLOAT; }
bool is_plain(const pg_tensor& t) {
  return t.layout == 0 && t.class_id == PG_CLASS_DENSE && storage_name(pg::dtype_of(t)) != nullptr &&
         pg::is_contiguous(t);
}
bool is_statistic(uint32_t dtype, uint32_t x) { return dtype == (x == PG_F64 ? PG_F64 : PG_F32); }

const char* measure_of(const pg::KernelCall& call) {
  const auto p = call.attr<double>("p");
  if (p == 0) return "kNonzeros";
  if (p == 1) return "kMagnitudes";
  if (p == 2) return "kSquares";
  if (!std::isinf(p)) refuse_lines(call);
  return p > 0 ? "kLargest" : "kLeast";
}

// As the operators' own kernels read a dtype (kernels/reduce.cu).
void find_storage(Kind kind, LineNode& out) {
  const uint32_t dtype = out.dtype;
  const auto bytes = static_cast<int>(pg::dtype_bytes(dtype));
  auto set = [&](const char* name, int width) { out.storage = name, out.width = width; };
  if (kind == Kind::kTruth) return set(pg::format("uint%d_t", 8 * bytes).c_str(), 16 / bytes);
  if (kind == Kind::kProduct) return set(is_float(dtype) ? "cuda::AnyFloat" : "cuda::AnyInt", 1);
  if (dtype == PG_I64 && kind == Kind::kSum) return set("int64_t", 2);
  if (!is_float(dtype)) return set("cuda::AnyInt", 1);
  set(dtype == PG_F32 ? "float" : dtype == PG_F64 ? "double" : "cuda::AnyHalf", 16 / bytes);
}

bool fits(Kind kind, uint32_t x, uint32_t y) {
  switch (kind) {
    case Kind::kTruth: return y == PG_B8;
    case Kind::kPlace: return y == PG_I64;
    case Kind::kSum:
    case Kind::kProduct: return x == y || (!is_float(x) && y == PG_I64);
    case Kind::kExtreme: return x == y;
    default: return x == y && is_float(x);
  }
}

uint32_t reduced_axes(const pg::KernelCall& call, Kind kind) {
  const pg_tensor &x = call.in(0), &y = call.out(0);
  if (call.is("sum_like")) {
    uint32_t mask = 0, lead = x.rank - y.rank;
    for (uint32_t i = 0; i < x.rank; i++)
      if (i < lead || (y.shape[i - lead] == 1 && x.shape[i] != 1)) mask |= 1u << i;
    return mask;
  }
  if (kind != Kind::kPlace) return call.axis_mask("axes", x.rank);
  if (call.attr<bool>("flat")) return (1u << x.rank) - 1;
  return x.rank == 0 ? 0 : 1u << call.axis("axis", x.rank);
}

// Axes of one element say nothing. False: they are not neighbours.
bool find_run(const pg_tensor& x, uint32_t mask, LineAxes& axes) {
  axes = {};
  bool seen = false, ended = false;
  for (uint32_t i = 0; i < x.rank; i++) {
    if (x.shape[i] == 1) continue;
    const bool reduced = (mask >> i & 1u) != 0;
    if (reduced && ended) return false;
    if (reduced && !seen) axes.first = i;
    if (reduced) axes.last = i + 1, axes.length *= x.shape[i];
    if (!reduced && seen) ended = true;
    if (!reduced) (ended ? axes.inner : axes.outer) *= x.shape[i];
    seen = seen || reduced;
  }
  return seen;
}

void read_reduction(const pg::KernelCall& call, const Row& row, LineNode& out) {
  const pg_tensor &x = call.in(0), &y = call.out(0);
  out.result_dtype = pg::dtype_of(y);
  if (!is_plain(x) || !is_plain(y) || !fits(row.kind, out.dtype, out.result_dtype)) refuse_lines(call);
  if (!find_run(x, reduced_axes(call, row.kind), out.axes)) refuse_lines(call);
  find_storage(row.kind, out);
  const LineAxes& a = out.axes;
  if (a.length < 2 || a.lines() == 0) refuse_lines(call);
  if (a.inner > 1) {
    const ColumnsPlan plan = plan_columns(a.outer, a.inner, a.length);
    out.lanes = plan.lanes, out.parts = plan.parts, out.per_part = plan.per_part, out.tiles = plan.tiles;
    out.grid = plan.grid;
    const bool wide = out.storage == "double" || pg::dtype_bytes(out.dtype) == 8;
    out.batch = out.width == 1 ? 1 : wide ? 4 : 8;
    out.streamed = true;
  } else {
    const RowsPlan plan = plan_rows(a.lines(), a.length, out.width);
    out.lanes = plan.lanes, out.parts = plan.parts, out.per_part = plan.per_part;
    out.grid = plan.grid;
    out.streamed = out.parts > 1 || a.length * pg::dtype_bytes(out.dtype) > kMostBytes;
  }
  const char* s = out.storage.c_str();
  out.reducer = pg::format("cuda::%s<%s>", row.reducer, s);
  out.fields = row.fields;
  if (row.kind == Kind::kVariance) out.fields += pg::format("r.correction = %.17g;", call.attr<double>("correction"));
  if (call.is("norm")) out.fields = pg::format("r.measure = cuda::Measure::%s;", measure_of(call));
  if (row.kind == Kind::kTruth)  // -0 is zero
    out.fields += pg::format("r.mask = static_cast<%s>(static_cast<%s>(~%s{0}) >> %d);", s, s, s, is_float(out.dtype));
}

void read_whole(const pg::KernelCall& call, LineNode& out) {
  const pg_tensor &x = call.in(0), &y = call.out(0);
  if (!is_float(out.dtype) || !is_plain(x) || !is_plain(y) || pg::dtype_of(y) != out.dtype) refuse_lines(call);
  find_storage(Kind::kWhole, out);
  out.kind = call.is("layer_norm")                                    ? LineNode::kLayerNorm
             : call.is("softmax_grad") || call.is("log_softmax_grad") ? LineNode::kSoftmaxGrad
                                                                      : LineNode::kSoftmax;
  uint32_t mask = 0;
  if (out.kind != LineNode::kLayerNorm) {
    if (x.rank == 0) refuse_lines(call);
    mask = 1u << call.axis("axis", x.rank);
    const bool alike = out.kind == LineNode::kSoftmax ||
                       (is_plain(call.in(1)) && pg::dtype_of(call.in(1)) == out.dtype && pg::same_shape(call.in(1), x));
    if (!alike) refuse_lines(call);
  } else {
    const auto dims = call.attr<int64_t>("dims");
    if (dims < 1 || dims > x.rank) refuse_lines(call);
    for (auto i = static_cast<uint32_t>(x.rank - dims); i < x.rank; i++) mask |= 1u << i;
    for (uint32_t i = 1; i < 3; i++) {
      if (!call.has(i)) continue;
      const uint32_t dtype = pg::dtype_of(call.in(i));
      if (!is_plain(call.in(i)) || (dtype != out.dtype && !is_statistic(dtype, out.dtype))) refuse_lines(call);
    }
  }
  const int64_t bytes = pg::dtype_bytes(out.dtype), computed = out.dtype == PG_F64 ? 8 : 4;
  if (!find_run(x, mask, out.axes) || out.axes.inner != 1 || out.axes.lines() == 0) refuse_lines(call);
  const int64_t length = out.axes.length, lines = out.axes.lines();
  if (length < 2 || length * bytes > kMostBytes) refuse_lines(call);
  if (out.kind == LineNode::kSoftmaxGrad) {
    if (length >= kLongSoftmax) refuse_lines(call);
    return;
  }
  out.in_packets = length % out.width == 0;
  const CachedRowsPlan packets = plan_cached_rows(lines, length, out.width, computed),
                       single = plan_cached_rows(lines, length, 1, computed);
  out.lanes = packets.lanes, out.single_lanes = single.lanes;
  if (out.kind == LineNode::kSoftmax) {
    if (out.dtype != PG_F64 && length >= kLongSoftmax) refuse_lines(call);
    if (!single.cached || (out.in_packets && !packets.cached)) refuse_lines(call);  // other arithmetic
  } else if (out.in_packets && out.dtype != PG_F64 && length >= 256 && length <= 2048) {
    out.kept = length <= 1024 ? 32 : 64;
  }
}

bool same_but_ones(const pg_tensor& t, const pg_tensor& full, const LineAxes& axes) {
  uint32_t i = 0, j = 0;
  auto skip = [&] {
    while (i < t.rank && t.shape[i] == 1) i++;
    while (j < full.rank && (full.shape[j] == 1 || (j >= axes.first && j < axes.last))) j++;
  };
  for (skip(); i < t.rank && j < full.rank; skip())
    if (t.shape[i++] != full.shape[j++]) return false;
  return i == t.rank && j == full.rank;
}

}  // namespace

bool is_read(const pg_node& node, uint32_t i) {
  if (node.inputs[i] == PG_VALUE_NONE) return false;
  return i >= node.op->input_count || (node.op->inputs[i]->flags & PG_INPUT_META) == 0;
}

bool is_line_operator(const pg::Region& region, uint32_t node) {
  return find_row(region.node(node).op->name) != nullptr;
}

void read_line_node(const pg::Region& region, uint32_t node, LineNode& out) {
  out = {};
  region.describe(node, out.call);
  const pg::KernelCall call(&out.call.call);
  const Row* row = find_row(call.op());
  if (row == nullptr || region.node(node).in_place != 0 || !call.has_output(0) || !call.has(0)) refuse_lines(call);
  out.dtype = pg::dtype_of(call.in(0));
  if (row->kind == Kind::kWhole) return read_whole(call, out);
  if (call.output_count() != 1 || call.input_count() != (call.is("sum_like") ? 2 : 1)) refuse_lines(call);
  read_reduction(call, *row, out);
}

bool find_axes(const pg_tensor& full, int64_t length, LineAxes& axes) {
  int64_t count = 1;
  uint32_t axis = full.rank;
  while (axis > 0 && count < length) count *= full.shape[--axis];
  if (count != length) return false;
  return find_run(full, ~((1u << axis) - 1), axes) && axes.length == length;
}

bool holds_numbers(const pg_tensor& t, const pg_tensor& full, const LineAxes& axes) {
  return pg::is_contiguous(t) && pg::element_count(t) == axes.lines() && same_but_ones(t, full, axes);
}

bool spreads_numbers(const pg_tensor& t, const pg_tensor& full, const LineAxes& axes) {
  if (axes.inner != 1 || !holds_numbers(t, full, axes)) return false;
  if (pg::element_count(t) == 1) return true;
  if (t.rank != full.rank) return false;
  for (uint32_t i = 0; i < t.rank; i++)
    if (t.shape[i] != full.shape[i] && t.shape[i] != 1) return false;
  return true;
}

}  // namespace cuda::fused
