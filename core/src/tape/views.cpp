// SPDX-License-Identifier: Apache-2.0
// Views of other tensors, and what is written through them.
#include "builder/builder.hpp"
#include "tape/tape.hpp"

namespace perigee {
namespace {

// A view operator once more, on another tensor.
TensorRef apply_step(const Node::Step& step, Tensor& x) {
  SmallVector<Tensor*, 2> inputs{&x};
  for (const TensorRef& t : step.others) inputs.push_back(t.get());
  TensorRef y;
  call_named(*step.op, inputs.data(), static_cast<uint32_t>(inputs.size()), nullptr, step.attrs.data(), 0, &y, 1);
  return y;
}

TensorRef step_write_back(const Node::Step& step, Tensor& parent, Tensor& value) {
  if (step.op->info->write_back == nullptr)
    pg::fail(PG_E_NOT_SUPPORTED, pg::format("cannot write through a view made by %s", step.op->info->name));
  pg_builder builder;
  pg_value inputs[2] = {reinterpret_cast<pg_value>(&parent), reinterpret_cast<pg_value>(&value)}, output = 0;
  uint32_t groups[2] = {1, 1};
  pg_expand ask{};
  ask.size = PG_SIZE(pg_expand, outputs);
  ask.user = step.op->info->user;
  ask.builder = &builder;
  ask.input_count = 2;
  ask.output_count = 1;
  ask.inputs = inputs;
  ask.groups = groups;
  ask.attrs = step.attrs.data();
  ask.outputs = &output;
  pg_error error = pg::make_error();
  pg::check(step.op->info->write_back(&ask, &error), error);
  return TensorRef::share(pg_builder::tensor(output));
}

}  // namespace

TensorRef apply_chain(const ViewChain& chain, Tensor& base) {
  TensorRef x = TensorRef::share(&base);
  for (const Node::Step& step : chain) x = apply_step(step, *x);
  return x;
}

TensorRef write_back(const ViewChain& chain, Tensor& base, Tensor& value) {
  std::vector<TensorRef> parents{TensorRef::share(&base)};
  for (size_t i = 0; i + 1 < chain.size(); i++) parents.push_back(apply_step(chain[i], *parents.back()));
  TensorRef result = TensorRef::share(&value);
  for (size_t i = chain.size(); i-- > 0;) result = step_write_back(chain[i], *parents[i], *result);
  return result;
}

}  // namespace perigee
