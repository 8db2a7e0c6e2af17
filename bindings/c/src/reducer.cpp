// SPDX-License-Identifier: Apache-2.0
// Sums of gradients over replicas.
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

std::unique_ptr<Wire> wire_of(const pgc_reducer_options& options, const Members& members) {
  if (members.size() == 1) return make_wire(find_group(options.among), find_group(options.gradients));
  std::vector<Device*> devices;
  for (const std::vector<TensorRef>& params : members)
    if (!params.empty()) devices.push_back(params[0]->device);
  return make_device_wire(std::move(devices));
}

}  // namespace

int32_t pgc_reducer_create(const pgc_reducer_options* options, pgc_tensor* const* params, uint32_t count,
                           pgc_reducer** output) {
  return run("all_reduce", [&] {
    settle();
    if (options->members == 0) pg::fail_argument("a reducer has a member");
    Members members(options->members);
    for (uint32_t i = 0; i < options->members * count; i++)
      members[i / count].push_back(TensorRef::share(&eager(params[i], "a parameter")));
    std::unique_ptr<Wire> wire = wire_of(*options, members);
    *output = reinterpret_cast<pgc_reducer*>(new Reducer(std::move(wire), std::move(members),
                                                         {options->first, options->others, options->direct},
                                                         options->overlaps != 0, scaled_by(op(options->scale))));
  });
}

void pgc_reducer_release(pgc_reducer* reducer) { delete get(reducer); }

void pgc_reducer_send(pgc_reducer* reducer, const double* weights) {
  Reducer& r = *get(reducer);
  r.set_sending(weights != nullptr ? std::optional(Reducer::Weights(weights, weights + r.members())) : std::nullopt);
}

int32_t pgc_reducer_sum(pgc_reducer* reducer, const double* weights, int32_t to_all, const uint8_t** any) {
  return run("all_reduce", [&] {
    settle();
    Reducer& r = *get(reducer);
    r.sum(Reducer::Weights(weights, weights + r.members()), to_all != 0);
    *any = r.any().data();
  });
}

void pgc_reducer_count(const pgc_reducer* reducer, uint32_t* started, uint32_t* early) {
  *started = get(reducer)->started();
  *early = get(reducer)->early();
}
