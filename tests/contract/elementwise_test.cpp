// SPDX-License-Identifier: Apache-2.0
// Every elementwise operator that there is, from its schema: random dtypes, shapes, strides, broadcasting, numbers in
// place of tensors, empties, NaN and infinities.
#include "compare.hpp"
#include "subject.hpp"

using namespace contract;

namespace {

constexpr int kRounds = 14;

bool is_case(const pg_op_info& op) {
  // The largest number of a dtype is not that of float64, in which the expected numbers are computed.
  if (std::strcmp(op.name, "nan_to_num") == 0) return false;
  if ((op.traits & PG_OP_ELEMENTWISE) == 0 || op.effect != PG_EFFECT_NONE || op.input_count == 0) return false;
  for (uint32_t i = 0; i < op.input_count; i++) {
    if ((op.inputs[i]->flags & (PG_INPUT_VARIADIC | PG_INPUT_META | PG_INPUT_MUTATES)) != 0) return false;
  }
  return op.output_count == 1;
}

uint32_t dtype_for(Random& random, const pg_op_info& op, uint32_t mask) {
  for (;;) {
    uint32_t dtype = kDtypes[static_cast<size_t>(random.below(10))];
    bool lifted = (op.traits & PG_OP_FLOAT_RESULT) != 0 && pg::dtype_class(dtype) != PG_M_FLOAT;
    if ((mask & pg::dtype_class(dtype)) != 0 && !lifted) return dtype;
  }
}

// One that broadcasts to the shape.
Shape narrowed(Random& random, Shape shape) {
  for (int64_t& d : shape) d = random.chance(25) ? 1 : d;
  if (!shape.empty() && random.chance(15)) shape.erase(shape.begin());
  return shape;
}

const pg_attr_info* scalar_of(const pg_op_info& op) {
  for (uint32_t i = 0; i < op.attr_count; i++) {
    if (op.attrs[i]->kind == PG_ATTR_SCALAR) return op.attrs[i];
  }
  return nullptr;
}

void replace_by_number(Random& random, Call& call, const pg_attr_info& scalar) {
  auto last = static_cast<int32_t>(call.inputs.size()) - 1;
  bool floats = pg::dtype_class(call.inputs.back().dtype) == PG_M_FLOAT;
  call.inputs.back() = Tensor();
  pg_scalar value = {floats ? PG_SCALAR_FLOAT : PG_SCALAR_INT, last};
  pg_number number = pg::make_number((1 + random.below(20)) / 8.0);
  if (!floats) number = pg::make_number(static_cast<int64_t>(1 + random.below(3)));
  std::memcpy(call.attrs.data() + scalar.offset, &value, sizeof value);
  std::memcpy(call.attrs.data() + scalar.value, &number, sizeof number);
}

// A number that is none by default stands for something of the dtype's own, and the reference computes in another one.
void settle_numbers(Call& call, const pg_op_info& op) {
  for (uint32_t i = 0; i < op.attr_count; i++) {
    if (op.attrs[i]->kind != PG_ATTR_FLOAT) continue;
    double value;
    std::memcpy(&value, call.attrs.data() + op.attrs[i]->offset, sizeof value);
    if (value == value) continue;
    value = 7.5;
    std::memcpy(call.attrs.data() + op.attrs[i]->offset, &value, sizeof value);
  }
}

Call random_call(Random& random, const pg_op_info& op) {
  Call call(op.name);
  settle_numbers(call, op);
  Shape shape = random.shape(4, 8);
  uint32_t shared = 0;
  for (uint32_t i = 0; i < op.input_count; i++) {
    const pg_input_info& input = *op.inputs[i];
    uint32_t dtype =
        (input.flags & PG_INPUT_PROMOTE) != 0 && shared != 0 ? shared : dtype_for(random, op, input.dtypes);
    if ((input.flags & PG_INPUT_PROMOTE) != 0) shared = dtype;
    // Integers divide by no zero and are raised to no negative power.
    bool positive = i > 0 && pg::dtype_class(dtype) == PG_M_INT;
    call.in(random.tensor(dtype, i == 0 ? shape : narrowed(random, shape), positive, true));
  }
  const pg_attr_info* scalar = scalar_of(op);
  if (scalar != nullptr && random.chance(30) && shared != PG_B8) replace_by_number(random, call, *scalar);
  return call;
}

}  // namespace

TEST_CASE("Elementwise operators") {
  SUBJECT(subject);
  Reference reference(subject);
  Report report;
  int operators = 0;
  for (const pg_op_info* op : all_ops()) {
    if (!is_case(*op)) continue;
    INFO(op->name);
    CHECK(subject.kernel(op->name) >= 0);
    if (subject.kernel(op->name) < 0) continue;
    operators++;
    Random random(std::hash<std::string>()(op->name));
    for (int round = 0; round < kRounds; round++) {
      Call call = random_call(random, *op);
      bool floats = false;
      for (const Tensor& t : call.inputs) floats |= t.dtype != 0 && pg::dtype_class(t.dtype) == PG_M_FLOAT;
      compare(subject, *reference, call, report, floats ? Precision::kFloat64 : Precision::kExact, 4);
    }
  }
  CHECK(operators > 50);
  CHECK(report.refused * 10 < report.compared);
}
