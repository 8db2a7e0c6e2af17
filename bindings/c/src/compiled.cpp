// SPDX-License-Identifier: Apache-2.0
// Compiled functions.
#include "api.hpp"

using namespace perigee;
using namespace perigee::api;

namespace {
Compiled& compiled_of(pgc_compiled* c) { return *reinterpret_cast<Compiled*>(c); }
}  // namespace

int32_t pgc_compiled_create(pgc_compiled** output) {
  return run("compile", [&] { *output = reinterpret_cast<pgc_compiled*>(new Compiled()); });
}
void pgc_compiled_release(pgc_compiled* compiled) { delete &compiled_of(compiled); }
void pgc_compiled_fuse(pgc_compiled* compiled, int32_t fuse) { compiled_of(compiled).set_fuse(fuse != 0); }
void pgc_compiled_capture(pgc_compiled* compiled, int32_t capture) { compiled_of(compiled).set_capture(capture != 0); }
void pgc_compiled_freezes(pgc_compiled* compiled, int32_t layouts) { compiled_of(compiled).set_freeze(layouts != 0); }
int32_t pgc_compiled_freeze(pgc_compiled* compiled, pgc_tensor* const* arguments, uint32_t argument_count,
                            pgc_tensor* const* results, uint32_t result_count, uint8_t* made, pgc_frozen** output) {
  return run("compile", [&] {
    *output = reinterpret_cast<pgc_frozen*>(
        compiled_of(compiled).freeze(get(arguments), argument_count, get(results), result_count, made));
  });
}
void pgc_frozen_release(pgc_compiled* compiled, pgc_frozen* frozen) {
  compiled_of(compiled).release(reinterpret_cast<Frozen*>(frozen));
}
int32_t pgc_frozen_run(pgc_compiled* compiled, pgc_frozen* frozen, pgc_tensor* const* arguments, pgc_tensor** results,
                       int32_t* ran) {
  return run("compile", [&] {
    Compiled& c = compiled_of(compiled);
    Frozen& f = *reinterpret_cast<Frozen*>(frozen);
    *ran = 0;
    if (ambient().items != nullptr || c.running() || ambient().graph != nullptr || ambient().detect_anomaly) return;
    std::vector<TensorRef> made(f.results.size());
    if (!c.run(f, get(arguments), made.data())) return;
    for (size_t i = 0; i < made.size(); i++) results[i] = made[i] ? give(std::move(made[i])) : nullptr;
    *ran = 1;
  });
}
int32_t pgc_compiled_begin(pgc_compiled* compiled, int32_t* entered) {
  return run("compile", [&] {
    Compiled& c = compiled_of(compiled);
    *entered = compiled_now() == nullptr && !c.running() && ambient().graph == nullptr;
    if (*entered) c.begin();
  });
}
void pgc_compiled_pause(pgc_compiled*) { ambient().items = nullptr; }
void pgc_compiled_go_on(pgc_compiled* compiled) { ambient().items = compiled_of(compiled).listener(); }
int32_t pgc_compiled_end(pgc_compiled* compiled) {
  return run("compile", [&] { compiled_of(compiled).end(); });
}
void pgc_compiled_abort(pgc_compiled* compiled) {
  run("compile", [&] { compiled_of(compiled).abort(); });
}
const char* pgc_compiled_json(pgc_compiled* compiled) {
  const char* text = nullptr;
  run("compile", [&] { text = keep_text(compiled_of(compiled).text()); });
  return text;
}
