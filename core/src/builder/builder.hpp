// SPDX-License-Identifier: Apache-2.0
// Emitting operators: the one way in which anything above a kernel computes.
#pragma once

#include <initializer_list>
#include <vector>

#include "base/ambient.hpp"
#include "base/small_vector.hpp"
#include "registry/registry.hpp"
#include "tensor/tensor.hpp"

// What a plugin's callback emits into: values live until the callback returns.
struct pg_builder {
  std::vector<perigee::TensorRef> values;
  pg_value add(perigee::TensorRef tensor) {
    values.push_back(std::move(tensor));
    return reinterpret_cast<pg_value>(values.back().get());
  }
  static perigee::Tensor* tensor(pg_value value) { return reinterpret_cast<perigee::Tensor*>(value); }
};

namespace perigee {

constexpr uint32_t emit_in_place = PG_EMIT_IN_PLACE;
constexpr uint32_t emit_functional = 1u << 31;  // a graph's replay: "copy" makes a new tensor

// Runs `op` at once, or records it, after promotion and placement; the tape notes it. `inputs` is flat (NULL: absent),
// groups[i] of them for the i-th declared input (NULL: one each). attrs NULL: defaults. Writes new references to
// `outputs`: visible ones first; fewer than there are may be asked for. Throws pg::Error with no side effect.
void call(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
          uint32_t flags, TensorRef* outputs, uint32_t output_count);

// The same for calls that nobody asked for by name: what is thrown begins with the operator's.
void call_named(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, const void* attrs,
                uint32_t flags, TensorRef* outputs, uint32_t output_count);
TensorRef call1(const Op& op, std::initializer_list<Tensor*> inputs, const void* attrs = nullptr, uint32_t flags = 0);
// Roles.
TensorRef emit_cast(Tensor& x, uint32_t dtype);
TensorRef emit_clone(Tensor& x);
TensorRef emit_row_major(Tensor& x);  // a copy that is
TensorRef emit_transfer(Tensor& x, Device& device);

// A call on its way through the interposers (call/interposers.hpp).
struct PendingCall {
  const Op& op;
  SmallVector<Tensor*, 8> inputs;
  SmallVector<uint32_t, 8> groups;  // by declared input
  SmallVector<uint8_t, 128> attrs;
  uint32_t flags;
  Device* device = nullptr;  // where it will run
  bool wished = false;       // since the script said so
  std::vector<TensorRef> keep;
  bool in_place() const { return (flags & emit_in_place) != 0; }
  uint32_t input_flags(uint32_t flat) const;  // of the declared input that a flat one belongs to
};
// How many outputs the call has, hidden ones included, and how many of them are visible.
uint32_t output_total(const Op& op, const uint32_t* groups, uint32_t* visible);
// Asks the schema. metas has room for all outputs.
void infer(const Op& op, const pg_tensor* const* inputs, uint32_t input_count, const uint32_t* groups,
           const void* attrs, bool symbolic, pg_meta* metas, uint32_t output_count);

// Throws a size error that a dimension service left behind during a callback.
void raise_pending_dim_error();
void defer_dim_error(const pg::Error& error);
void clear_dim_error();

}  // namespace perigee
