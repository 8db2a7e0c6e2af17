// SPDX-License-Identifier: Apache-2.0
// Input pipelines: stages, runs, workers.
#include "api.hpp"
#include "data/run.hpp"

using namespace perigee;
using namespace perigee::api;

struct pgc_stage {
  StageRef stage;
};
struct pgc_run {
  Run run;
};
struct pgc_workers {
  std::shared_ptr<Workers> workers;
};

namespace {

void give_stage(StageRef stage, pgc_stage** out) { *out = new pgc_stage{std::move(stage)}; }

// The element of the thread's last call; its tensors go to the caller.
void show(Element&& element, pgc_element* out) {
  thread_local Element last;
  thread_local std::vector<pgc_leaf> leaves;
  last = std::move(element);
  leaves.clear();
  for (Leaf& leaf : last.leaves)
    leaves.push_back(
        {leaf.tensor ? give(std::move(leaf.tensor)) : nullptr, leaf.number, leaf.text.data(), leaf.text.size()});
  *out = {last.layout->id, last.layout->text.c_str(), static_cast<uint32_t>(leaves.size()), leaves.data()};
}

Exchange& exchange_of(pgc_exchange* e) { return *reinterpret_cast<Exchange*>(e); }

template <class Make>
int32_t make_stage(const char* where, pgc_stage** out, Make&& make) {
  return run(where, [&] { give_stage(make(), out); });
}

}  // namespace

int32_t pgc_stage_slices(const char* layout, pgc_tensor* const* tensors, uint32_t count, pgc_stage** out) {
  return make_stage("data.from_slices", out, [&] {
    std::vector<TensorRef> list;
    for (uint32_t i = 0; i < count; i++) list.push_back(TensorRef::share(&eager(tensors[i], "a tensor")));
    return slices_stage(parse_layout(given(layout, "the layout")), std::move(list));
  });
}
int32_t pgc_stage_range(int64_t count, pgc_stage** out) {
  return make_stage("data.range", out, [&] { return range_stage(count); });
}
int32_t pgc_stage_window(pgc_stage* parent, int64_t count, int64_t modulo, int64_t step, int64_t offset,
                         pgc_stage** out) {
  return make_stage("data", out, [&] { return window_stage(parent->stage, count, modulo, step, offset); });
}
int32_t pgc_stage_order(pgc_stage* parent, const int64_t* positions, int64_t count, int64_t base, pgc_stage** out) {
  return make_stage("data", out, [&] {
    std::vector<int64_t> list(positions, positions + count);
    for (int64_t& i : list) i -= base;
    return order_stage(parent->stage, std::move(list));
  });
}
int32_t pgc_stage_zip(pgc_stage* const* parents, uint32_t count, pgc_stage** out) {
  return make_stage("zip", out, [&] {
    std::vector<StageRef> list;
    for (uint32_t i = 0; i < count; i++) list.push_back(parents[i]->stage);
    return zip_stage(std::move(list));
  });
}
int32_t pgc_stage_batch(pgc_stage* parent, int64_t size, int32_t drop_last, pgc_stage** out) {
  return make_stage("batch", out,
                    [&] { return batch_stage(parent->stage, size, drop_last != 0, ambient().default_dtype); });
}
int32_t pgc_stage_map(pgc_stage* parent, uint32_t function, uint64_t seed, uint64_t epoch, pgc_stage** out) {
  return make_stage("map", out, [&] { return map_stage(parent->stage, function, seed, epoch); });
}
int32_t pgc_stage_device(pgc_stage* parent, int32_t id, pgc_stage** out) {
  return make_stage("prefetch", out, [&] { return device_stage(parent->stage, device(id)); });
}
int64_t pgc_stage_count(const pgc_stage* stage) { return stage->stage->count; }
int32_t pgc_stage_get(pgc_stage* stage, int64_t position, pgc_element* element) {
  return run("data", [&] {
    if (position < 0 || position >= stage->stage->count) pg::fail_argument("a position beyond the end");
    show(stage->stage->get(position), element);
  });
}
void pgc_stage_release(pgc_stage* stage) { delete stage; }

int32_t pgc_draw_order(int64_t n, uint32_t seed, uint32_t epoch, int64_t buffer, int64_t* positions) {
  return run("shuffle", [&] { draw_order(n, seed, epoch, buffer, positions); });
}

int32_t pgc_workers_create(const pgc_worker* list, uint32_t count, pgc_workers** out) {
  return run("map", [&] {
    auto made = std::make_shared<Workers>();
    for (uint32_t i = 0; i < count; i++) {
      auto worker = std::make_unique<Worker>();
      worker->call = list[i].call, worker->close = list[i].close, worker->state = list[i].state;
      made->list.push_back(std::move(worker));
    }
    *out = new pgc_workers{std::move(made)};
  });
}
void pgc_workers_release(pgc_workers* workers) { delete workers; }

int32_t pgc_exchange_take(pgc_exchange* exchange, pgc_element* element) {
  return run("map", [&] { show(std::move(exchange_of(exchange).in), element); });
}
int32_t pgc_exchange_answer(pgc_exchange* exchange, const char* layout, uint64_t bytes, const pgc_leaf* leaves,
                            uint32_t count) {
  return run("map", [&] {
    Exchange& e = exchange_of(exchange);
    if (!e.last || std::string_view(e.last->text) != std::string_view(layout, bytes))
      e.last = parse_layout(std::string(layout, bytes));
    if (e.last->leaves != count) pg::fail_argument("a layout of other leaves");
    e.out.layout = e.last;
    e.out.leaves.clear();
    for (uint32_t i = 0; i < count; i++) {
      Leaf leaf;
      if (leaves[i].tensor != nullptr) leaf.tensor = TensorRef::share(&eager(leaves[i].tensor, "the result"));
      leaf.number = leaves[i].number;
      if (leaves[i].text != nullptr) leaf.text.assign(leaves[i].text, leaves[i].bytes);
      e.out.leaves.push_back(std::move(leaf));
    }
  });
}
int32_t pgc_exchange_fail(pgc_exchange* exchange, const char* message) {
  return run("map", [&] { exchange_of(exchange).error = message; });
}

int32_t pgc_run_start(pgc_stage* stage, int64_t first, uint32_t threads, uint32_t capacity, pgc_workers* workers,
                      pgc_run** out) {
  return run("each", [&] {
    *out = new pgc_run{Run(stage->stage, first, threads, capacity, workers != nullptr ? workers->workers : nullptr)};
  });
}
int32_t pgc_run_next(pgc_run* handle, pgc_element* element) {
  Step step = Step::end;
  const int32_t code = run("each", [&] {
    Element made;
    step = handle->run.next(made);
    if (step == Step::element) show(std::move(made), element);
  });
  if (code != PG_OK) return code;
  return step == Step::element ? PG_OK : step == Step::end ? PGC_END : PGC_WAITING;
}
int32_t pgc_run_close(pgc_run* handle) {
  bool done = false;
  const int32_t code = run("each", [&] { done = handle->run.close(); });
  return code != PG_OK ? code : done ? PG_OK : PGC_WAITING;
}
void pgc_run_release(pgc_run* handle) { delete handle; }
uint32_t pgc_run_threads(void) { return run_threads(); }
