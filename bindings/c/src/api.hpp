// SPDX-License-Identifier: Apache-2.0
// What the files of the C API share: handles, and the one way in which failures become codes.
#pragma once

#include "builder/builder.hpp"
#include "compile/compiled.hpp"
#include "graph/graph.hpp"
#include "perigee.h"
#include "tape/tape.hpp"

namespace perigee::api {

pg_error& last_error();
// Text that lives until the thread's next call that returns text.
const char* keep_text(std::string text);

inline Tensor* get(pgc_tensor* t) { return reinterpret_cast<Tensor*>(t); }
inline const Tensor* get(const pgc_tensor* t) { return reinterpret_cast<const Tensor*>(t); }
inline Tensor* const* get(pgc_tensor* const* t) { return reinterpret_cast<Tensor* const*>(t); }
inline pgc_tensor* give(TensorRef t) { return reinterpret_cast<pgc_tensor*>(t.release()); }

// The tensor of a function that needs contents.
inline Tensor& eager(pgc_tensor* t, const char* what) {
  if (get(t)->is_graph())
    pg::fail(PG_E_FAILED_PRECONDITION, std::string(what) +
                                           " is a tensor of a graph and has no contents here; fetch it with "
                                           "session:run, or make it outside of pg.graph");
  return *get(t);
}

// Before something that is no item of a compiled function: contents are there afterwards.
inline void settle() {
  if (Compiled* compiled = compiled_now(); compiled != nullptr) [[unlikely]]
    compiled->settle();
}
inline void settle(const pgc_tensor* t) {
  if (Compiled* compiled = compiled_now(); compiled != nullptr) [[unlikely]]
    compiled->settle(*get(t));
}

// A text that a caller must give.
inline const char* given(const char* text, const char* what) {
  if (text == nullptr) pg::fail_argument(std::string(what) + " is NULL");
  return text;
}
inline void check_flags(uint32_t flags) {
  if ((flags & ~PGC_IN_PLACE) != 0)
    pg::fail_argument(pg::format("the flags are 0x%x; expected 0 or PGC_IN_PLACE", flags));
}

// Runs `body`; what it throws becomes a code and pgc_error(). Out of memory answers PG_E_RETRY the first time.
int32_t failed(const std::exception* e, const char* where) noexcept;
template <class Body>
int32_t run(const char* where, Body&& body) noexcept {
  try {
    body();
    ambient().last_resort = false;
    return PG_OK;
  } catch (const std::exception& e) {
    return failed(&e, where);
  } catch (...) {
    return failed(nullptr, where);
  }
}

// Whether somebody has interrupted the thread since it was asked.
inline bool take_interrupt() {
  if (!ambient().interrupted) [[likely]]
    return false;
  ambient().interrupted = false;
  return true;
}

// Runs `body` on what `find` answers for `id`, under its name; that there is none of that number is an error too.
template <class Find, class Body>
int32_t run_on(const char* sort, uint32_t id, Find&& find, Body&& body) noexcept {
  decltype(find(id).info) info = nullptr;
  if (int32_t code = run(sort, [&] { info = find(id).info; }); code != PG_OK) return code;
  return run(info->name, [&] { body(*info); });
}

}  // namespace perigee::api
