// SPDX-License-Identifier: Apache-2.0
// The first interposers: input checks, and dtype promotion by PyTorch's rules.
#include "call/promote.hpp"
#include "call/interposers.hpp"
#include "graph/graph.hpp"

namespace perigee {
namespace {

// Categories in rising order: bool, integer, float, complex.
int category(uint32_t dtype) {
  switch (pg::dtype_class(dtype)) {
    case PG_M_BOOL: return 0;
    case PG_M_INT: return 1;
    case PG_M_FLOAT:
    case PG_M_FLOAT8: return 2;
    default: return 3;
  }
}

std::string mask_text(uint32_t mask) {
  std::string text;
  auto add = [&](uint32_t bit, const char* name) {
    if (mask & bit) text += (text.empty() ? "" : " or ") + std::string(name);
  };
  add(PG_M_BOOL, "bool");
  add(PG_M_INT, "integers");
  add(PG_M_FLOAT, "floating point");
  add(PG_M_COMPLEX, "complex");
  add(PG_M_FLOAT8, "float8");
  return text;
}

bool is_float8(uint32_t dtype) { return pg::dtype_class(dtype) == PG_M_FLOAT8; }

constexpr const char* kFloat8Hint = "float8 is for storage: convert it first, x:to(\"float32\")";

}  // namespace

uint32_t promote_dtypes(uint32_t a, uint32_t b) {
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (is_float8(a) || is_float8(b))
    pg::fail_argument(
        pg::format("%s and %s have no common dtype; %s", pg::dtype_name(a), pg::dtype_name(b), kFloat8Hint));
  int ca = category(a), cb = category(b);
  if (ca != cb) {
    uint32_t high = ca > cb ? a : b, low = ca > cb ? b : a;
    if (high == PG_C64 && low == PG_F64) return PG_C128;
    return high;
  }
  if (ca == 1) {  // uint8 with a signed type of its own width needs the next one
    uint32_t bits_a = a & 0xffff, bits_b = b & 0xffff;
    if ((a >> 16) != (b >> 16)) {
      uint32_t unsigned_bits = (a >> 16) == PG_UINT ? bits_a : bits_b;
      uint32_t signed_bits = (a >> 16) == PG_UINT ? bits_b : bits_a;
      return PG_DTYPE(PG_INT, signed_bits > unsigned_bits ? signed_bits : unsigned_bits * 2);
    }
    return bits_a > bits_b ? a : b;
  }
  if ((a & 0xffff) == (b & 0xffff)) return PG_F32;  // float16 with bfloat16
  return (a & 0xffff) > (b & 0xffff) ? a : b;
}

void check_inputs(PendingCall& call) {
  const pg_op_info& info = *call.op.info;
  uint32_t flat = 0;
  for (uint32_t i = 0; i < info.input_count; i++) {
    const pg_input_info& in = *info.inputs[i];
    for (uint32_t k = 0; k < call.groups[i]; k++, flat++) {
      if (call.inputs[flat] != nullptr) continue;
      bool scalar = false;
      if (call.op.scalar_attr >= 0) {
        auto* s = reinterpret_cast<const pg_scalar*>(call.attrs.data() + info.attrs[call.op.scalar_attr]->offset);
        scalar = s->kind != PG_SCALAR_NONE && s->input == static_cast<int32_t>(i);
      }
      // Where a number may stand in, the input is declared optional; without the number it is missing after all.
      if (!scalar && (!(in.flags & PG_INPUT_OPTIONAL) || (call.op.scalar_attr >= 0 && (in.flags & PG_INPUT_PROMOTE))))
        pg::fail_argument(pg::format("argument %u (%s) is missing", i + 1, in.name));
    }
  }
}

// After promotion: bool may join integers where the operator takes those.
void check_dtypes(const PendingCall& call) {
  const pg_op_info& info = *call.op.info;
  uint32_t flat = 0;
  for (uint32_t i = 0; i < info.input_count; i++) {
    const pg_input_info& in = *info.inputs[i];
    for (uint32_t k = 0; k < call.groups[i]; k++, flat++) {
      Tensor* x = call.inputs[flat];
      if (x != nullptr && in.dtypes != 0 && !(in.dtypes & pg::dtype_class(x->meta->dtype)))
        pg::fail_argument(pg::format("%s is %s; expected %s%s%s", in.name, pg::dtype_name(x->meta->dtype),
                                     mask_text(in.dtypes).c_str(), is_float8(x->meta->dtype) ? "; " : "",
                                     is_float8(x->meta->dtype) ? kFloat8Hint : ""));
    }
  }
}

namespace {

// The common dtype of the promoted inputs: tensors with dimensions come before 0-dimensional ones, those before
// numbers, within each category of kind; 0 where nothing takes part.
uint32_t common_dtype(const PendingCall& call) {
  uint32_t tensors = 0, zero_dim = 0, number = 0;
  for (uint32_t i = 0; i < call.inputs.size(); i++) {
    Tensor* x = call.inputs[i];
    if (x == nullptr || !(call.input_flags(i) & PG_INPUT_PROMOTE)) continue;
    uint32_t& place = x->meta->rank > 0 ? tensors : zero_dim;
    place = promote_dtypes(place, x->meta->dtype);
  }
  if (call.op.scalar_attr >= 0) {
    auto* s = reinterpret_cast<const pg_scalar*>(call.attrs.data() + call.op.info->attrs[call.op.scalar_attr]->offset);
    if (s->kind == PG_SCALAR_BOOL) number = PG_B8;
    if (s->kind == PG_SCALAR_INT) number = PG_I64;
    if (s->kind == PG_SCALAR_FLOAT) number = ambient().default_dtype;
  }
  uint32_t result = tensors;
  for (uint32_t weaker : {zero_dim, number})
    if (weaker != 0)
      result = result == 0 ? weaker : category(weaker) > category(result) ? promote_dtypes(result, weaker) : result;
  return result;
}

}  // namespace

void promote(PendingCall& call) {
  uint32_t common = common_dtype(call);
  if (common == 0) return;
  if ((call.op.info->traits & PG_OP_FLOAT_RESULT) && category(common) < 2) common = ambient().default_dtype;
  if (call.in_place() && call.inputs[0] != nullptr && (call.input_flags(0) & PG_INPUT_PROMOTE)) {
    uint32_t target = call.inputs[0]->meta->dtype;
    if (category(common) > category(target))
      pg::fail_argument(pg::format("the result is %s and cannot be written into a tensor of %s", pg::dtype_name(common),
                                   pg::dtype_name(target)));
    common = target;
  }
  Graph* graph = recording_graph(call);
  for (uint32_t i = 0; i < call.inputs.size(); i++) {
    Tensor* x = call.inputs[i];
    if (x == nullptr || !(call.input_flags(i) & PG_INPUT_PROMOTE) || x->meta->dtype == common) continue;
    // What is eager joins the graph first, so that runs cast what it holds then.
    TensorRef taken = graph != nullptr && !x->is_graph() ? graph_capture(*graph, *x) : TensorRef::share(x);
    call.keep.push_back(emit_cast(*taken, common));
    call.inputs[i] = call.keep.back().get();
  }
}

}  // namespace perigee
