// SPDX-License-Identifier: Apache-2.0
// Input pipelines: stages, runs, workers.
#include "api.hpp"
#include "base/profile.hpp"
#include "data/cache.hpp"
#include "data/cache_record.hpp"
#include "data/parts.hpp"
#include "data/run.hpp"
#include "data/timed.hpp"
#include "registry/registry.hpp"

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
struct pgc_times {
  std::shared_ptr<StageTimes> times = std::make_shared<StageTimes>();
};
struct pgc_skips {
  SkipsRef skips;
};
struct pgc_cache {
  CacheRef cache;
};
struct pgc_transform {
  std::shared_ptr<const OpenTransform> transform;
  LayoutRef last;  // of what it was given
};
struct pgc_feeds {
  std::shared_ptr<Feeds> feeds = std::make_shared<Feeds>();
  LayoutRef last;  // of what was answered
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

Leaf take_leaf(const pgc_leaf& given) {
  Leaf leaf;
  if (given.tensor != nullptr) leaf.tensor = TensorRef::share(&eager(given.tensor, "the result"));
  leaf.number = given.number;
  if (given.text != nullptr) leaf.text.assign(given.text, given.bytes);
  return leaf;
}

// The element of a layout and leaves of the caller's; `last` was the layout before, as most are alike.
Element take_element(LayoutRef& last, const char* layout, uint64_t bytes, const pgc_leaf* leaves, uint32_t count) {
  if (!last || std::string_view(last->text) != std::string_view(layout, bytes))
    last = parse_layout(std::string(layout, bytes));
  if (last->leaves != count) pg::fail_argument("a layout of other leaves");
  Element made{last, {}};
  made.leaves.reserve(count);
  for (uint32_t i = 0; i < count; i++) made.leaves.push_back(take_leaf(leaves[i]));
  return made;
}

Exchange& exchange_of(pgc_exchange* e) { return *reinterpret_cast<Exchange*>(e); }

template <class Info>
OptionsRef options_of(const Info& info, const void* attrs, const pgc_option_tensor* tensors, uint32_t count) {
  auto made = std::make_shared<Options>(info.attrs, info.attr_count, info.attr_size, attrs);
  if (count > 0) settle();
  for (uint32_t i = 0; i < count; i++) {
    const std::string option = given(tensors[i].option, "the option");
    made->set_tensor(option, tensors[i].name != nullptr ? tensors[i].name : option,
                     eager(tensors[i].tensor, "a tensor"));
  }
  return made;
}

template <class Make>
int32_t make_stage(const char* where, pgc_stage** out, Make&& make) {
  return run(where, [&] { give_stage(make(), out); });
}

}  // namespace

int32_t pgc_stage_source(const char* name, const void* attrs, const pgc_option_tensor* tensors, uint32_t count,
                         const char* shown, pgc_stage** out) {
  return make_stage("data.source", out, [&] {
    const Source* found = find_source(given(name, "the name"));
    if (found == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no source '%s'", name));
    return source_stage(*found->info, options_of(*found->info, attrs, tensors, count), given(shown, "the text shown"));
  });
}
int32_t pgc_transform_open(const char* name, const void* attrs, const pgc_option_tensor* tensors, uint32_t count,
                           const char* shown, uint64_t number, pgc_transform** out) {
  return run("transform", [&] {
    const Transform* found = find_transform(given(name, "the name"));
    if (found == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no transform '%s'", name));
    *out = new pgc_transform{
        std::make_shared<const OpenTransform>(*found->info, options_of(*found->info, attrs, tensors, count),
                                              given(shown, "the text shown"), number),
        nullptr};
  });
}
void pgc_transform_release(pgc_transform* transform) { delete transform; }
int32_t pgc_transform_apply(pgc_transform* transform, uint64_t seed, uint64_t epoch, int64_t position,
                            const char* layout, uint64_t bytes, const pgc_leaf* leaves, uint32_t count,
                            pgc_element* element) {
  return run("transform", [&] {
    Element in = take_element(transform->last, given(layout, "the layout"), bytes, leaves, count);
    show(transform->transform->apply(std::move(in), seed, epoch, position), element);
  });
}
int32_t pgc_stage_transform(pgc_stage* parent, pgc_transform* transform, uint64_t seed, uint64_t epoch,
                            pgc_stage** out) {
  return make_stage("transform", out,
                    [&] { return transform_stage(parent->stage, transform->transform, seed, epoch); });
}
int32_t pgc_stage_window(pgc_stage* parent, int64_t count, int64_t modulo, int64_t step, int64_t offset,
                         pgc_stage** out) {
  return make_stage("data", out, [&] { return window_stage(parent->stage, count, modulo, step, offset); });
}
int32_t pgc_stage_shuffle(pgc_stage* parent, uint32_t seed, uint32_t epoch, int64_t buffer, pgc_stage** out) {
  return make_stage("shuffle", out, [&] { return shuffle_stage(parent->stage, seed, epoch, buffer); });
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
int32_t pgc_stage_filter(pgc_stage* parent, uint32_t function, uint64_t seed, uint64_t epoch, pgc_stage** out) {
  return make_stage("filter", out, [&] { return filter_stage(parent->stage, function, seed, epoch); });
}
int32_t pgc_skips_create(const char* what, pgc_skips** out) {
  return run("map", [&] { *out = new pgc_skips{std::make_shared<Skips>(given(what, "what it is of"))}; });
}
void pgc_skips_release(pgc_skips* skips) { delete skips; }
int32_t pgc_skips_add(pgc_skips* skips, int64_t position, const char* message) {
  return run("map", [&] { skips->skips->add(position, given(message, "the message")); });
}
int64_t pgc_skips_count(const pgc_skips* skips) { return skips->skips->count(); }
const char* pgc_skips_message(const pgc_skips* skips, int64_t index) { return skips->skips->message(index); }
int32_t pgc_stage_map_or_skip(pgc_stage* parent, uint32_t function, uint64_t seed, uint64_t epoch, pgc_skips* skips,
                              pgc_stage** out) {
  return make_stage("map", out, [&] { return map_or_skip_stage(parent->stage, function, seed, epoch, skips->skips); });
}
int32_t pgc_stage_or_skip(pgc_stage* parent, pgc_skips* skips, pgc_stage** out) {
  return make_stage("data", out, [&] { return or_skip_stage(parent->stage, skips->skips); });
}
int32_t pgc_stage_mix(pgc_stage* parent, uint32_t seed, uint32_t epoch, int64_t buffer, pgc_stage** out) {
  return make_stage("shuffle", out, [&] { return mix_stage(parent->stage, seed, epoch, buffer); });
}
int32_t pgc_stage_repeat(pgc_stage* parent, int64_t times, pgc_stage** out) {
  return make_stage("repeated", out, [&] { return repeat_stage(parent->stage, times); });
}
int32_t pgc_stage_device(pgc_stage* parent, int32_t id, pgc_stage** out) {
  return make_stage("prefetch", out, [&] { return device_stage(parent->stage, device(id)); });
}
int32_t pgc_cache_create(const char* path, const char* identity, pgc_cache** out) {
  return run("cache", [&] {
    *out = new pgc_cache{path == nullptr ? memory_cache() : file_cache(path, given(identity, "the identity"))};
  });
}
void pgc_cache_release(pgc_cache* cache) { delete cache; }
int64_t pgc_cache_count(const pgc_cache* cache) { return cache->cache->count(); }
int32_t pgc_cache_get(pgc_cache* cache, int64_t position, pgc_element* element) {
  bool here = false;
  const int32_t code = run("cache", [&] {
    Element made;
    here = cache->cache->get(position, made);
    if (here) show(std::move(made), element);
  });
  return code != PG_OK ? code : here ? PG_OK : PGC_END;
}
int32_t pgc_cache_put(pgc_cache* cache, int64_t position, int64_t count, const char* layout, uint64_t bytes,
                      const pgc_leaf* leaves, uint32_t leaf_count) {
  return run("cache", [&] {
    LayoutRef own;
    Element made;
    if (layout != nullptr) made = take_element(own, layout, bytes, leaves, leaf_count);
    cache->cache->keep(position, count < 0 ? kUnknown : count, made);
  });
}
int32_t pgc_stage_cache(pgc_stage* parent, pgc_cache* cache, pgc_stage** out) {
  return make_stage("cache", out, [&] { return cache_stage(parent->stage, cache->cache); });
}
uint64_t pgc_checksum_bytes(const char* bytes, uint64_t size) { return checksum_of(bytes, size); }
int32_t pgc_checksum_tensor(pgc_tensor* tensor, uint64_t* checksum) {
  return run("data", [&] {
    Tensor& t = eager(tensor, "the tensor");
    std::string bytes(static_cast<size_t>(dense_meta(*t.meta, t.meta->dtype)->bytes), '\0');
    to_host(t.meta->contiguous ? t : *copy_dense(t, t.meta->dtype), bytes.data());
    *checksum = checksum_of(bytes.data(), bytes.size());
  });
}
int64_t pgc_stage_count(const pgc_stage* stage) { return stage->stage->count == kUnknown ? -1 : stage->stage->count; }
int32_t pgc_stage_in_order(const pgc_stage* stage) { return stage->stage->in_order ? 1 : 0; }
int32_t pgc_stage_get(pgc_stage* stage, int64_t position, pgc_element* element) {
  if (take_interrupt()) [[unlikely]]
    return PG_E_RETRY;
  return run("data", [&] {
    if (position < 0 || position >= stage->stage->count) pg::fail_argument("a position beyond the end");
    Element made = stage->stage->get(position);
    if (!made.layout) pg::fail_argument("a position beyond the end");
    show(std::move(made), element);
  });
}
void pgc_stage_release(pgc_stage* stage) { delete stage; }

int32_t pgc_draw_order(int64_t n, uint32_t seed, uint32_t epoch, int64_t buffer, int64_t* positions) {
  return run("shuffle", [&] { draw_order(n, seed, epoch, buffer, positions); });
}

int64_t pgc_draw_step(uint32_t seed, uint32_t epoch, int64_t i, int64_t reach) {
  return draw_step(seed, epoch, i, reach);
}

int32_t pgc_feeds_create(pgc_feeds** out) {
  return run("each", [&] { *out = new pgc_feeds; });
}
void pgc_feeds_release(pgc_feeds* feeds) { delete feeds; }
int32_t pgc_stage_feed(pgc_feeds* feeds, uint32_t source, int64_t count, int32_t in_order, pgc_stage** out) {
  return make_stage("each", out,
                    [&] { return feed_stage(feeds->feeds, source, count < 0 ? kUnknown : count, in_order != 0); });
}
int32_t pgc_feeds_next(pgc_feeds* feeds, pgc_request* request) {
  bool some = false;
  const int32_t code = run("each", [&] {
    Feeds::Request one;
    some = feeds->feeds->next(one);
    if (some) *request = {one.source, one.time, one.position};
  });
  return code != PG_OK ? code : some ? PG_OK : PGC_END;
}
int32_t pgc_feeds_answer(pgc_feeds* feeds, const pgc_request* to, const char* layout, uint64_t bytes,
                         const pgc_leaf* leaves, uint32_t count) {
  return run("each", [&] {
    Element made;
    if (layout != nullptr) made = take_element(feeds->last, layout, bytes, leaves, count);
    feeds->feeds->answer({to->source, to->time, to->position}, std::move(made));
  });
}
int32_t pgc_feeds_fail(pgc_feeds* feeds, const pgc_request* to, const char* message) {
  return run("each", [&] { feeds->feeds->fail({to->source, to->time, to->position}, given(message, "the message")); });
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
  bool some = false;
  const int32_t code = run("map", [&] {
    Element* next = exchange_of(exchange).take();
    some = next != nullptr;
    if (some) show(std::move(*next), element);
  });
  return code != PG_OK ? code : some ? PG_OK : PGC_END;
}
int32_t pgc_exchange_answer(pgc_exchange* exchange, const char* layout, uint64_t bytes, const pgc_leaf* leaves,
                            uint32_t count) {
  return run("map", [&] {
    Exchange& e = exchange_of(exchange);
    e.answer(take_element(e.last, layout, bytes, leaves, count));
  });
}
int32_t pgc_exchange_fail(pgc_exchange* exchange, const char* message) {
  return run("map", [&] { exchange_of(exchange).fail(given(message, "the message")); });
}

int32_t pgc_run_start(pgc_stage* stage, int64_t first, const pgc_pace* pace, pgc_workers* workers, pgc_feeds* feeds,
                      pgc_run** out) {
  return run("each", [&] {
    *out = new pgc_run{
        Run(stage->stage, first,
            {pace->threads, pace->capacity, pace->tunes_threads != 0, pace->tunes_capacity != 0, pace->memory},
            workers != nullptr ? workers->workers : nullptr, feeds != nullptr ? feeds->feeds : nullptr)};
  });
}
int32_t pgc_run_look(pgc_run* handle, pgc_run_state* state) {
  return run("each", [&] {
    const RunState s = handle->run.state();
    *state = {s.threads, s.capacity, s.element_bytes, s.given, s.starved, s.starved_ns, s.blocked_ns, s.run_ns};
  });
}
int32_t pgc_times_create(pgc_times** out) {
  return run("benchmark", [&] { *out = new pgc_times; });
}
void pgc_times_release(pgc_times* times) { delete times; }
void pgc_times_look(pgc_times* times, int64_t* elements, int64_t* own, int64_t* waited) {
  *elements = times->times->elements, *own = times->times->own_ns, *waited = times->times->waited_ns;
}
int32_t pgc_stage_timed(pgc_stage* stage, pgc_times* times, pgc_stage** out) {
  return make_stage("benchmark", out, [&] { return timed_stage(stage->stage, times->times); });
}
int32_t pgc_stage_noted(pgc_stage* stage, const char* name, const char* line, pgc_stage** out) {
  return make_stage("profile", out, [&] {
    return noted_stage(stage->stage, interned(given(name, "the name")), line != nullptr ? interned(line) : nullptr);
  });
}
int32_t pgc_run_next(pgc_run* handle, pgc_element* element) {
  if (take_interrupt()) [[unlikely]]
    return PG_E_RETRY;
  Step step = Step::end;
  const int32_t code = run("each", [&] {
    Element made;
    step = handle->run.next(made);
    if (step == Step::element) show(std::move(made), element);
  });
  if (code != PG_OK) return code;
  switch (step) {
    case Step::element: return PG_OK;
    case Step::end: return PGC_END;
    case Step::waiting: return PGC_WAITING;
    case Step::asked: break;
  }
  return PGC_ASKED;
}
int32_t pgc_run_close(pgc_run* handle) {
  bool done = false;
  const int32_t code = run("each", [&] { done = handle->run.close(); });
  return code != PG_OK ? code : done ? PG_OK : PGC_WAITING;
}
void pgc_run_release(pgc_run* handle) { delete handle; }
uint32_t pgc_run_threads(void) { return run_threads(); }
