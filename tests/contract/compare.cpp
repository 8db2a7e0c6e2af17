// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

namespace contract {
namespace {

bool is_float(uint32_t dtype) { return dtype != 0 && pg::dtype_class(dtype) == PG_M_FLOAT; }

std::string text(const Shape& shape, const Shape& stride) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); i++) out += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  out += "] strides [";
  for (size_t i = 0; i < shape.size(); i++) out += (i > 0 ? ", " : "") + std::to_string(stride[i]);
  return out + "]";
}

std::string text(const Call& call) {
  std::string out = call.op->name;
  for (const Tensor& t : call.inputs) {
    out += t.dtype == 0 ? ", none" : std::string(", ") + pg::dtype_name(t.dtype) + text(t.shape, t.stride);
  }
  return out;
}

// The numbers as they are after rounding to the dtype.
Values rounded(const Tensor& like, uint32_t dtype, const Values& values) {
  Tensor t(dtype, like.shape, values);
  return from_bytes(t, to_bytes(t));
}

// The same call with floats in float64, of the numbers that the subject sees, dense.
Call widened(const Call& call, bool exact) {
  Call wide = call;
  for (Tensor& t : wide.inputs) {
    if (t.dtype == 0) continue;
    Tensor dense(t.dtype, t.shape, rounded(t, t.dtype, t.values));
    dense.kept = t.kept;
    if (!exact && is_float(t.dtype)) dense.dtype = PG_F64;
    t = std::move(dense);
  }
  if (exact) return wide;
  for (uint32_t i = 0; i < call.op->attr_count; i++) {
    const pg_attr_info& a = *call.op->attrs[i];
    uint32_t dtype;
    if (a.kind != PG_ATTR_DTYPE) continue;
    std::memcpy(&dtype, wide.attrs.data() + a.offset, sizeof dtype);
    if (is_float(dtype)) wide.set(a.name, PG_F64);
  }
  return wide;
}

void compare_values(const Tensor& got, const Tensor& expected, double allowed) {
  Values wanted = is_float(got.dtype) ? rounded(expected, got.dtype, expected.values) : expected.values;
  double largest = 0;
  for (double x : wanted) largest = std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
  REQUIRE(got.values.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); i++) {
    double a = got.values[i], b = wanted[i];
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    bool near = std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= allowed * std::max(largest, 1e-3);
    INFO("element " << i << ": " << a << ", expected " << b);
    REQUIRE(near);
  }
}

// Without its hidden outputs a call gives the same.
void compare_lean(Plugin& subject, Call call, const std::vector<Tensor>& all) {
  size_t spared = 0;
  for (uint32_t i = 0; i < call.op->output_count; i++) spared += subject.spares(*call.op, i) ? 1 : 0;
  if (spared == 0) return;
  INFO("without hidden outputs");
  call.lean = true;
  std::vector<Tensor> got = subject.run(call);
  REQUIRE(got.size() + spared == all.size());
  for (size_t i = 0; i < got.size(); i++) compare_values(got[i], all[i], 0);
}

// As a plan a call gives the same. None of these kernels needs to refuse that.
void compare_captured(Plugin& subject, Call call, const std::vector<Tensor>& all) {
  if (!subject.captures()) return;
  INFO("captured");
  call.captured = true;
  std::vector<Tensor> got = subject.run(call);
  REQUIRE(got.size() == all.size());
  for (size_t i = 0; i < got.size(); i++) {
    CHECK(got[i].shape == all[i].shape);
    compare_values(got[i], all[i], 0);
  }
}

}  // namespace

Reference::Reference(Plugin& subject) : subject_(subject) {
  if (std::string(subject.device->type) != "sim") own_ = std::make_unique<Plugin>(SIM_PLUGIN);
}

double tolerance(uint32_t dtype) {
  switch (dtype) {
    case PG_F64: return 1e-12;
    case PG_F32: return 2e-6;
    case PG_F16: return 2e-3;  // a unit in the last place, and a half
    case PG_BF16: return 1.6e-2;
    default: return 0;
  }
}

void compare(Plugin& subject, Plugin& reference, const Call& call, Report& report, Precision precision, double slack) {
  INFO(text(call));
  if (reference.kernel(call.op->name) < 0) FAIL("the reference has no kernel");
  std::vector<Tensor> got;
  Code code = subject.try_run(call, &got);
  if (code.code == PG_E_NOT_SUPPORTED) {
    CHECK(!code.message().empty());
    report.refused++;
    return;
  }
  INFO(code.message());
  REQUIRE(code.code == PG_OK);
  std::vector<Tensor> expected = reference.run(widened(call, precision == Precision::kExact));
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); i++) {
    INFO("result " << i);
    CHECK(got[i].shape == expected[i].shape);
    double allowed = precision == Precision::kExact ? 0 : tolerance(got[i].dtype) * slack;
    compare_values(got[i], expected[i], allowed);
  }
  compare_lean(subject, call, got);
  compare_captured(subject, call, got);
  report.compared++;
}

}  // namespace contract
