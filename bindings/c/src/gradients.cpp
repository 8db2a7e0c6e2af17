// SPDX-License-Identifier: Apache-2.0
// Backward passes, and the nodes whose gradients the front end computes.
#include "api.hpp"
#include "base/profile.hpp"
#include "tape/custom.hpp"

using namespace perigee;
using namespace perigee::api;

namespace {

thread_local PassRef paused;

Pass* get(pgc_pass* pass) { return reinterpret_cast<Pass*>(pass); }
const Pass* get(const pgc_pass* pass) { return reinterpret_cast<const Pass*>(pass); }
Tensor** results_of(pgc_tensor** results) { return reinterpret_cast<Tensor**>(results); }

// A pass, which a compiled function may know.
PassRef begin_pass(const BackwardCall& call) {
  PassRef pass;
  if (Compiled* compiled = compiled_now(); compiled != nullptr && compiled->backward(call, pass)) return pass;
  return backward(call);
}

// `body` begins or continues a pass.
template <class Body>
int32_t run_pass(const char* where, Body&& body) {
  ProfileSpan span;
  int32_t code = run(where, [&] { paused = body(); });
  span.done(ProfileKind::backward, where, -1);
  return code == PG_OK && paused ? PGC_PAUSED : code;
}

}  // namespace

int32_t pgc_backward(pgc_tensor* const* roots, pgc_tensor* const* seeds, uint32_t root_count, int32_t retain_graph,
                     int32_t create_graph) {
  return run_pass("backward", [&] {
    for (uint32_t i = 0; i < root_count; i++)
      if (api::get(roots[i])->is_graph())
        pg::fail(PG_E_FAILED_PRECONDITION,
                 "this is a tensor of a graph: g:gradients(loss, {...}) adds its gradients to the graph");
    return begin_pass(
        {api::get(roots), api::get(seeds), root_count, nullptr, 0, retain_graph != 0, create_graph != 0, nullptr});
  });
}
int32_t pgc_gradients(pgc_tensor* const* roots, pgc_tensor* const* seeds, uint32_t root_count,
                      pgc_tensor* const* inputs, uint32_t input_count, int32_t retain_graph, int32_t create_graph,
                      pgc_tensor** gradients) {
  return run_pass("grad", [&]() -> PassRef {
    for (uint32_t i = 0; i < input_count; i++) gradients[i] = nullptr;
    if (input_count == 0) return nullptr;
    return begin_pass({api::get(roots), api::get(seeds), root_count, api::get(inputs), input_count, retain_graph != 0,
                       create_graph != 0, results_of(gradients)});
  });
}

int32_t pgc_custom(pgc_tensor* const* inputs, uint32_t input_count, pgc_tensor* const* outputs, uint32_t output_count,
                   uint32_t flags, pgc_tensor** made, uint64_t* number) {
  return run("custom_grad", [&] {
    std::vector<TensorRef> results;
    for (uint32_t i = 0; i < output_count; i++) results.push_back(TensorRef::share(api::get(outputs[i])));
    const bool pure = (flags & PGC_CUSTOM_PURE) != 0;
    Compiled* compiled = pure ? compiled_now() : nullptr;
    if (compiled == nullptr ||
        !compiled->custom(api::get(inputs), input_count, results.data(), output_count, *number)) {
      settle();
      *number = record_custom(api::get(inputs), input_count, results.data(), output_count,
                              {(flags & PGC_CUSTOM_REHANG) != 0, pure, 0});
    }
    for (const TensorRef& y : results) graph_note_custom(*y);
    for (uint32_t i = 0; i < output_count; i++) made[i] = give(std::move(results[i]));
  });
}
int32_t pgc_hook(pgc_tensor* tensor, uint64_t* number) {
  return run("hook", [&] {
    settle();
    const uint64_t fresh = next_node_sequence();
    set_hook(*api::get(tensor), fresh);
    *number = fresh;
  });
}
void pgc_unhook(uint64_t number) { remove_hook(number); }
int32_t pgc_retain_grad(pgc_tensor* tensor) {
  return run("retain_grad", [&] {
    settle();
    retain_gradient(*api::get(tensor));
  });
}
uint32_t pgc_forgotten(uint64_t* numbers, uint32_t room) { return take_forgotten(numbers, room); }
int32_t pgc_leaves(pgc_tensor* const* tensors, uint32_t tensor_count, pgc_tensor* const* except, uint32_t except_count,
                   pgc_tensor** leaves, uint32_t room, uint32_t* count) {
  return run("leaves", [&] {
    settle();
    std::vector<TensorRef> found = leaves_of(api::get(tensors), tensor_count, api::get(except), except_count);
    *count = static_cast<uint32_t>(found.size());
    if (*count > room) return;
    for (uint32_t i = 0; i < *count; i++) leaves[i] = give(std::move(found[i]));
  });
}

pgc_pass* pgc_paused(void) { return reinterpret_cast<pgc_pass*>(paused.release()); }
uint64_t pgc_pass_number(const pgc_pass* pass) { return number_of(*get(pass)); }
int32_t pgc_pass_needed(pgc_pass* pass, uint32_t input) { return input_needed(*get(pass), input) ? 1 : 0; }
int32_t pgc_pass_creates_graph(const pgc_pass* pass) { return creates_graph(*get(pass)) ? 1 : 0; }
int32_t pgc_pass_cotangent(pgc_pass* pass, uint32_t output, pgc_tensor** cotangent) {
  return run("backward", [&] {
    TensorRef found = cotangent_of(*get(pass), output);
    *cotangent = found ? give(std::move(found)) : nullptr;
  });
}
int32_t pgc_pass_output(pgc_pass* pass, pgc_tensor* saved, uint32_t output, pgc_tensor** linked) {
  return run("backward", [&] { *linked = give(link_output(*get(pass), *api::get(saved), output)); });
}
int32_t pgc_pass_unchanged(const pgc_pass* pass, const pgc_tensor* tensor, int32_t output, uint32_t index) {
  return is_unchanged(*get(pass), *api::get(tensor), output != 0, index) ? 1 : 0;
}
int32_t pgc_pass_go_on(pgc_pass* pass, pgc_tensor* const* gradients, pgc_tensor** results) {
  return run_pass("backward", [&] {
    Compiled* compiled = compiled_now();
    if (compiled != nullptr && compiled->in_pass())
      return compiled->go_on(PassRef(get(pass)), api::get(gradients), results_of(results));
    return go_on(PassRef(get(pass)), api::get(gradients), results_of(results));
  });
}
void pgc_pass_abandon(pgc_pass* pass) {
  PassRef(get(pass)).reset();
  if (Compiled* compiled = compiled_now(); compiled != nullptr) compiled->abandon_pass();
}
