// SPDX-License-Identifier: Apache-2.0
// perigee.h with failures as exceptions and references that are given back.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "perigee.h"

inline void check(int32_t code) {
  if (code != PG_OK) throw std::runtime_error(pgc_error()->message);
}

struct Release {
  void operator()(pgc_tensor* t) const { pgc_release(t); }
  void operator()(pgc_graph* g) const { pgc_graph_release(g); }
  void operator()(pgc_session* s) const { pgc_session_release(s); }
};
using Tensor = std::unique_ptr<pgc_tensor, Release>;
using Graph = std::unique_ptr<pgc_graph, Release>;
using Session = std::unique_ptr<pgc_session, Release>;

// Operators of PLUGINS; called before any other.
inline void start() {
  static const bool started = [] {
    check(pgc_add_plugin_path(PLUGINS));
    int32_t cpu = 0;
    check(pgc_find_device("cpu", &cpu));
    return true;
  }();
  static_cast<void>(started);
}

inline uint32_t op(const char* name) {
  uint32_t id = 0;
  check(pgc_find_op(name, &id));
  return id;
}

inline Tensor call(const char* name, const Tensor& x, const Tensor& y = nullptr) {
  pgc_tensor* made = nullptr;
  check(y ? pgc_call2(op(name), x.get(), y.get(), nullptr, &made) : pgc_call1(op(name), x.get(), nullptr, &made));
  return Tensor(made);
}

// x becomes x + y.
inline Tensor add_into(const Tensor& x, const Tensor& y) {
  pgc_tensor *inputs[] = {x.get(), y.get()}, *made = nullptr;
  check(pgc_call(op("add"), inputs, 2, nullptr, nullptr, PGC_IN_PLACE, &made, 1));
  return Tensor(made);
}

inline Tensor filled(int64_t rows, int64_t columns, float value) {
  int32_t cpu = 0;
  check(pgc_find_device("cpu", &cpu));
  std::vector<float> data(static_cast<size_t>(rows * columns), value);
  const int64_t shape[] = {rows, columns};
  pgc_tensor* made = nullptr;
  check(pgc_from_host(PG_F32, 2, shape, data.data(), cpu, &made));
  return Tensor(made);
}

inline std::vector<float> values_of(const Tensor& t) {
  const pg_tensor* d = pgc_describe(t.get());
  size_t count = 1;
  for (uint32_t i = 0; i < d->rank; i++) count *= static_cast<size_t>(d->shape[i]);
  std::vector<float> values(count);
  check(pgc_to_host(t.get(), values.data(), count * sizeof(float)));
  return values;
}

struct Recorded {
  Graph graph;
  Tensor x, w, y, steps, train;
};

// y = x w + steps of [rows, n] by [n, n], w so often; a run of `train` adds one to the variable `steps`, a [1, 1].
inline Recorded record(int64_t n, int depth) {
  Recorded r;
  pgc_graph* graph = nullptr;
  check(pgc_graph_create(&graph));
  r.graph.reset(graph);
  const int64_t shape[] = {0, n};
  const char* symbols[] = {"rows", nullptr};
  pgc_tensor* made = nullptr;
  check(pgc_graph_placeholder(graph, "x", PG_F32, 2, shape, symbols, &made));
  r.x.reset(made);
  check(pgc_graph_variable(graph, "w", filled(n, n, 1.0f / static_cast<float>(n)).get(), &made));
  r.w.reset(made);
  check(pgc_graph_variable(graph, "steps", filled(1, 1, 0).get(), &made));
  r.steps.reset(made);
  const Tensor one = filled(1, 1, 1);
  pgc_graph* before = pgc_set_graph(graph);
  const int32_t gradients = pgc_set_grad_enabled(0);
  Tensor y = call("matmul", r.x, r.w);
  for (int i = 1; i < depth; i++) y = call("matmul", y, r.w);
  r.y = call("add", y, r.steps);
  r.train = add_into(r.steps, one);  // both now stand for the updated value
  pgc_set_grad_enabled(gradients);
  pgc_set_graph(before);
  return r;
}

inline Session session_of(const Recorded& r) {
  pgc_session* made = nullptr;
  check(pgc_session_create(r.graph.get(), 0, &made));
  return Session(made);
}

inline Tensor run(const Session& s, const Tensor& fetch, const Recorded& r, const Tensor& x) {
  pgc_tensor *fetches[] = {fetch.get()}, *feeds[] = {r.x.get()}, *values[] = {x.get()}, *made = nullptr;
  check(pgc_session_run(s.get(), fetches, 1, feeds, values, x ? 1 : 0, &made));
  return Tensor(made);
}

// What a session holds of `steps` now.
inline float steps_of(const Session& s) {
  pgc_tensor* held = nullptr;
  check(pgc_session_contents(s.get(), "steps", &held));
  return values_of(Tensor(held))[0];
}
