// SPDX-License-Identifier: Apache-2.0
// Sums of gradients over processes.
#include "reduce/reducer.hpp"

#include <cstring>

#include "api.hpp"

using namespace perigee;
using namespace perigee::api;

namespace {

Reducer* get(pgc_reducer* reducer) { return reinterpret_cast<Reducer*>(reducer); }
const Reducer* get(const pgc_reducer* reducer) { return reinterpret_cast<const Reducer*>(reducer); }

// x = x * by, of an operator whose second input may be a number.
Reducer::Scale scaled_by(const Op& op) {
  if (op.scalar_attr < 0 || op.info->input_count != 2)
    pg::fail_argument(pg::format("%s does not scale a tensor", op.info->name));
  return [&op](Tensor& x, double by) {
    const auto* defaults = static_cast<const uint8_t*>(op.info->defaults);
    std::vector<uint8_t> attrs(defaults, defaults + op.info->attr_size);
    const pg_attr_info& scalar = *op.info->attrs[op.scalar_attr];
    const pg_scalar second{PG_SCALAR_FLOAT, 1};
    const pg_number number = pg::make_number(by);
    std::memcpy(attrs.data() + scalar.offset, &second, sizeof second);
    std::memcpy(attrs.data() + scalar.value, &number, sizeof number);
    Tensor* inputs[2] = {&x, nullptr};
    TensorRef same;
    call_named(op, inputs, 2, nullptr, attrs.data(), emit_in_place, &same, 1);
  };
}

}  // namespace

int32_t pgc_reducer_create(const pgc_reducer_options* options, pgc_tensor* const* params, uint32_t count,
                           pgc_reducer** output) {
  return run("all_reduce", [&] {
    settle();
    std::vector<TensorRef> list;
    for (uint32_t i = 0; i < count; i++) list.push_back(TensorRef::share(&eager(params[i], "a parameter")));
    *output = reinterpret_cast<pgc_reducer*>(new Reducer(
        make_wire(find_group(options->among), find_group(options->gradients)), std::move(list),
        {options->first, options->others, options->direct}, options->overlaps != 0, scaled_by(op(options->scale))));
  });
}

void pgc_reducer_release(pgc_reducer* reducer) { delete get(reducer); }

void pgc_reducer_send(pgc_reducer* reducer, int32_t on, double weight) {
  get(reducer)->set_sending(on != 0 ? std::optional(weight) : std::nullopt);
}

int32_t pgc_reducer_sum(pgc_reducer* reducer, double weight, const uint8_t** any) {
  return run("all_reduce", [&] {
    settle();
    get(reducer)->sum(weight);
    *any = get(reducer)->any().data();
  });
}

void pgc_reducer_count(const pgc_reducer* reducer, uint32_t* started, uint32_t* early) {
  *started = get(reducer)->started();
  *early = get(reducer)->early();
}
