// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "state.hpp"

namespace perigee {

namespace {

lua_State* volatile running = nullptr;  // null: at the prompt
volatile sig_atomic_t asked = 0;
void (*volatile break_call)() = nullptr;  // of the library, once that is loaded
pthread_t lua_thread;

// The native layer finishes what it has begun: its scratch memory and its table of handles stay whole.
bool is_native(const char* source) {
  return std::strstr(source, "/perigee/native/") != nullptr || std::strncmp(source, "=perigee:", 9) == 0;
}

bool is_own(const char* source) { return std::strstr(source, "/lua/5.1/perigee/") != nullptr || is_native(source); }

// "train.lua:12: " of the nearest frame of the script.
void push_place(lua_State* L) {
  lua_Debug frame;
  for (int level = 0; lua_getstack(L, level, &frame); level++) {
    lua_getinfo(L, "Sl", &frame);
    if (frame.currentline <= 0 || is_own(frame.source)) continue;
    lua_pushfstring(L, "%s:%d: ", frame.short_src, frame.currentline);
    return;
  }
  lua_pushliteral(L, "");
}

void stop(lua_State* L, lua_Debug* record) {
  lua_getinfo(L, "S", record);
  if (is_native(record->source)) return;
  lua_sethook(L, nullptr, 0, 0);
  push_place(L);
  lua_pushliteral(L, "interrupted");
  lua_concat(L, 2);
  lua_error(L);  // code that catches it is left by the next one: `asked` stays
}

// Setting a hook is what LuaJIT allows a signal handler to do. Compiled loops look at no hooks, but leave to the
// interpreter where a call of the library does not go the usual way.
void on_interrupt(int) {
  if (!pthread_equal(pthread_self(), lua_thread)) {
    pthread_kill(lua_thread, SIGINT);
    return;
  }
  if (running && asked) {
    [[maybe_unused]] auto written = write(STDERR_FILENO, "\n", 1);
    _exit(kInterruptedStatus);
  }
  asked = 1;
  if (!running) return;
  lua_sethook(running, stop, LUA_MASKCOUNT, 1);
  if (break_call) break_call();
}

// Calls that wait (reading a line, sleeping) are to end: no SA_RESTART.
void install() {
  lua_thread = pthread_self();
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

int lua_watch(lua_State* L) {
  static bool installed = false;
  if (!installed) {
    install();
    installed = true;
  }
  const bool on = lua_toboolean(L, 1);
  running = nullptr;
  asked = 0;
  lua_sethook(L, nullptr, 0, 0);
  if (on) running = L;
  return 0;
}

void watch_script(lua_State* L) {
  struct sigaction before;
  if (sigaction(SIGINT, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) return;  // of a background job
  install();
  running = L;
}

bool was_interrupted() { return asked != 0; }

int lua_break_calls(lua_State* L) {
  break_call = reinterpret_cast<void (*)()>(static_cast<uintptr_t>(luaL_checknumber(L, 1)));
  return 0;
}

bool take_interrupt() {
  const bool came = asked != 0;
  asked = 0;
  return came;
}

}  // namespace perigee
