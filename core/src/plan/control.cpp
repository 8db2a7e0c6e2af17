// SPDX-License-Identifier: Apache-2.0
#include "plan/control.hpp"

#include <algorithm>

#include "tensor/dims.hpp"

namespace perigee {
namespace {

bool read_bool(Tensor& x) {
  uint8_t value = 0;
  to_host(x, &value);
  return value != 0;
}

// Sizes that are known only inside of a body that does not run count as nothing.
MetaRef known_meta(const Meta& meta, const Bindings& sizes, bool expanded) {
  int64_t shape[PG_MAX_RANK];
  const int64_t stride[PG_MAX_RANK] = {};
  for (uint32_t i = 0; i < meta.rank; i++) {
    std::vector<int64_t> symbols = dim_symbols(meta.shape[i]);
    bool known = std::all_of(symbols.begin(), symbols.end(), [&](int64_t s) { return sizes.count(s) != 0; });
    shape[i] = known ? dim_value(meta.shape[i], sizes) : 0;
  }
  return intern_meta(meta.dtype, meta.rank, shape, expanded ? stride : nullptr);
}

// The tensor at one position of the first axis.
TensorRef step_of(Tensor& x, const MetaRef& meta, int64_t at) {
  int64_t bytes = pg::dtype_bytes(x.meta->dtype);
  return make_tensor(meta, x.storage, x.offset + at * x.meta->stride[0] * bytes, x.device);
}

MetaRef step_meta(const Meta& m) { return intern_meta(m.dtype, m.rank - 1, m.shape + 1, m.stride + 1); }

// Steps that are written one after the other into one tensor, which is made when the first one comes.
struct Stack {
  TensorRef whole{};
  MetaRef step{};
  void put(const Control& c, uint32_t output, int64_t at, int64_t length, Tensor& y) {
    if (!whole) {
      int64_t shape[PG_MAX_RANK] = {length};
      std::copy(y.meta->shape, y.meta->shape + y.meta->rank, shape + 1);
      whole = make_dense(*y.device, intern_meta(y.meta->dtype, y.meta->rank + 1, shape));
      step = step_meta(*whole->meta);
    }
    if (!same_shape(*step, *y.meta))
      pg::fail(PG_E_FAILED_PRECONDITION,
               pg::format("output %u of the body has shape %s in one step and %s in another", output - c.carries + 1,
                          shape_text(*step).c_str(), shape_text(*y.meta).c_str()));
    copy_into(*step_of(*whole, step, at), y, "stack");
  }
};

}  // namespace

// A body, and what is asked of it.
struct ControlRunner::Part {
  // A result is computed, or what an argument holds.
  struct Result {
    uint32_t output;
    bool is_argument;
    uint32_t at;  // among the fetched ones, or the node's input
  };
  std::vector<Result> results{};
  std::vector<uint32_t> inputs{}, fetches{}, feeds{};  // the node's inputs that the body takes; the body's values
  std::unique_ptr<Runner> runner{};

  // `output_of`: whether a result of the body is asked for.
  Part(const Control::Body& body, const std::vector<uint8_t>& asked, std::shared_ptr<const Placement> placement,
       bool fuses) {
    for (uint32_t i = 0; i < body.arguments.size(); i++) {
      if (body.arguments[i] == Control::none) continue;
      inputs.push_back(i);
      feeds.push_back(body.arguments[i]);
    }
    for (uint32_t k = 0; k < body.results.size(); k++) {
      if (body.results[k] == Control::none || !asked[k]) continue;
      auto argument = std::find(feeds.begin(), feeds.end(), body.results[k]);
      if (argument != feeds.end()) {
        results.push_back({k, true, inputs[static_cast<size_t>(argument - feeds.begin())]});
      } else {
        results.push_back({k, false, static_cast<uint32_t>(fetches.size())});
        fetches.push_back(body.results[k]);
      }
    }
    runner = std::make_unique<Runner>(*body.graph, fetches, feeds, std::move(placement), fuses);
  }

  // `given`: by input of the node; `made`: by output.
  void run(Tensor* const* given, const Bindings& sizes, TensorRef* made) {
    SmallVector<Tensor*, 8> fed;
    for (uint32_t i : inputs) fed.push_back(given[i]);
    SmallVector<TensorRef, 8> fetched(fetches.size());
    runner->run(fed.data(), nullptr, fetched.data(), nullptr, &sizes);
    for (const Result& r : results) made[r.output] = r.is_argument ? alias(*given[r.at]) : fetched[r.at];
  }
};

ControlRunner::ControlRunner(const Graph& g, uint32_t node, const std::vector<uint8_t>& wanted,
                             const Placement* placement, bool fuses)
    : control_(g.nodes[node].control),
      input_count_(static_cast<uint32_t>(g.nodes[node].inputs.size())),
      wanted_(wanted) {
  for (uint32_t id : g.nodes[node].outputs) {
    metas_.push_back(g.values[id].meta);
    devices_.push_back(placement != nullptr ? placement->value[id] : g.values[id].device);
  }
  const Control& c = *control_;
  std::vector<uint8_t> asked = wanted;
  if (c.kind != ControlKind::cond) std::fill(asked.begin(), asked.begin() + c.carries, 1);
  for (size_t b = 0; b < c.bodies.size(); b++) {
    bool condition = c.kind == ControlKind::loop && b == 0;
    parts_.push_back(std::make_unique<Part>(c.bodies[b],
                                            condition ? std::vector<uint8_t>(c.bodies[b].results.size(), 1) : asked,
                                            placement != nullptr ? placement->bodies.at(node)[b] : nullptr, fuses));
  }
}
ControlRunner::~ControlRunner() = default;

void ControlRunner::run(Tensor* const* inputs, const Bindings& sizes, TensorRef* outputs) {
  if (control_->kind == ControlKind::cond) run_cond(inputs, sizes, outputs);
  if (control_->kind == ControlKind::scan) run_scan(inputs, sizes, outputs);
  if (control_->kind == ControlKind::loop) run_loop(inputs, sizes, outputs);
  for (size_t k = 0; k < metas_.size(); k++)  // branches may lie on different devices
    if (outputs[k] && outputs[k]->device != devices_[k]) outputs[k] = move_to(*outputs[k], *devices_[k]);
}

// One element for all positions.
TensorRef ControlRunner::zero(uint32_t output, const Bindings& sizes) const {
  const uint8_t nothing[16] = {};
  TensorRef one = from_host(metas_[output]->dtype, 0, nullptr, nothing, *devices_[output]);
  return make_tensor(known_meta(*metas_[output], sizes, true), one->storage, 0, devices_[output]);
}

TensorRef ControlRunner::empty(uint32_t output, const Bindings& sizes) const {
  MetaRef known = known_meta(*metas_[output], sizes, false);
  int64_t shape[PG_MAX_RANK];
  std::copy(known->shape, known->shape + known->rank, shape);
  shape[0] = 0;
  return make_dense(*devices_[output], intern_meta(known->dtype, known->rank, shape));
}

void ControlRunner::run_cond(Tensor* const* inputs, const Bindings& sizes, TensorRef* outputs) {
  Tensor& decides = *inputs[0];
  if (decides.meta->numel != 1)
    pg::fail_argument("the condition must have one element, got " + shape_text(*decides.meta));
  parts_[read_bool(decides) ? 0 : 1]->run(inputs, sizes, outputs);
  for (uint32_t k = 0; k < metas_.size(); k++)
    if (wanted_[k] && !outputs[k]) outputs[k] = zero(k, sizes);
}

void ControlRunner::check_carry(uint32_t i, const Tensor& now, const Tensor& first) const {
  if (same_shape(*now.meta, *first.meta)) return;
  pg::fail(PG_E_FAILED_PRECONDITION,
           pg::format("tensor %u of what is handed on has shape %s after a step; it began with %s", i + 1,
                      shape_text(*now.meta).c_str(), shape_text(*first.meta).c_str()));
}

void ControlRunner::run_scan(Tensor* const* inputs, const Bindings& sizes, TensorRef* outputs) {
  const Control& c = *control_;
  const uint32_t fixed = c.carries + c.steps;
  const int64_t length = c.steps > 0 ? inputs[c.carries]->meta->shape[0] : dim_value(c.length, sizes);
  SmallVector<MetaRef, 4> metas;
  for (uint32_t i = c.carries; i < fixed; i++) {
    metas.push_back(step_meta(*inputs[i]->meta));
    if (inputs[i]->meta->shape[0] != length)
      pg::fail_argument(pg::format("tensors of %lld and of %lld steps cannot be gone through together",
                                   static_cast<long long>(length), static_cast<long long>(inputs[i]->meta->shape[0])));
  }
  SmallVector<Tensor*, 8> given(inputs, inputs + input_count_);
  SmallVector<TensorRef, 8> carry, slices(c.steps), made(metas_.size());
  for (uint32_t i = 0; i < c.carries; i++) carry.push_back(alias(*inputs[i]));
  std::vector<Stack> stacks(metas_.size());
  for (int64_t step = 0; step < length; step++) {
    const int64_t at = c.reverse ? length - 1 - step : step;
    for (uint32_t i = 0; i < c.carries; i++) given[i] = carry[i].get();
    for (uint32_t i = 0; i < c.steps; i++) {
      slices[i] = step_of(*inputs[c.carries + i], metas[i], at);
      given[c.carries + i] = slices[i].get();
    }
    parts_[0]->run(given.data(), sizes, made.data());
    for (uint32_t i = 0; i < c.carries; i++) {
      check_carry(i, *made[i], *inputs[i]);
      carry[i] = std::move(made[i]);
    }
    for (uint32_t k = c.carries; k < metas_.size(); k++)
      if (wanted_[k]) stacks[k].put(c, k, at, length, *made[k]);
  }
  for (uint32_t k = 0; k < metas_.size(); k++) {
    if (!wanted_[k]) continue;
    outputs[k] = k < c.carries ? carry[k] : length > 0 ? stacks[k].whole : empty(k, sizes);
  }
}

void ControlRunner::run_loop(Tensor* const* inputs, const Bindings& sizes, TensorRef* outputs) {
  const Control& c = *control_;
  SmallVector<Tensor*, 8> given(inputs, inputs + input_count_);
  SmallVector<TensorRef, 8> state, made(metas_.size());
  for (uint32_t i = 0; i < c.carries; i++) state.push_back(alias(*inputs[i]));
  std::vector<std::vector<TensorRef>> rounds(metas_.size());
  for (int64_t done = 0; c.most < 0 || done < c.most; done++) {
    for (uint32_t i = 0; i < c.carries; i++) given[i] = state[i].get();
    TensorRef go_on;
    parts_[0]->run(given.data(), sizes, &go_on);
    if (go_on->meta->numel != 1)
      pg::fail_argument("what the condition gave must have one element, got " + shape_text(*go_on->meta));
    if (!read_bool(*go_on)) break;
    parts_[1]->run(given.data(), sizes, made.data());
    for (uint32_t i = 0; i < c.carries; i++) {
      check_carry(i, *made[i], *inputs[i]);
      state[i] = std::move(made[i]);
    }
    for (uint32_t k = c.carries; k < metas_.size(); k++)
      if (wanted_[k]) rounds[k].push_back(std::move(made[k]));
  }
  for (uint32_t k = 0; k < metas_.size(); k++) {
    if (!wanted_[k]) continue;
    if (k < c.carries) outputs[k] = state[k];
    if (k < c.carries) continue;
    Stack stack;
    const auto length = static_cast<int64_t>(rounds[k].size());
    for (int64_t at = 0; at < length; at++) stack.put(c, k, at, length, *rounds[k][static_cast<size_t>(at)]);
    outputs[k] = length > 0 ? stack.whole : empty(k, sizes);
  }
}

}  // namespace perigee
