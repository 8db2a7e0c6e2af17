// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "state.hpp"

namespace perigee {

namespace {

lua_State* volatile running = nullptr;  // null: at the prompt
volatile sig_atomic_t asked = 0;

constexpr int kInterruptedStatus = 128 + SIGINT;

// The native layer finishes what it has begun: its scratch memory and its table of handles stay whole.
bool is_native(const char* source) {
  return std::strstr(source, "/perigee/native/") != nullptr || std::strncmp(source, "=perigee:", 9) == 0;
}

void stop(lua_State* L, lua_Debug* record) {
  lua_getinfo(L, "S", record);
  if (is_native(record->source)) return;
  lua_sethook(L, nullptr, 0, 0);
  luaL_error(L, "interrupted");  // code that catches it is left by the next one: `asked` stays
}

// Setting a hook is what LuaJIT allows a signal handler to do.
void on_interrupt(int) {
  if (running && asked) {
    [[maybe_unused]] auto written = write(STDERR_FILENO, "\n", 1);
    _exit(kInterruptedStatus);
  }
  asked = 1;
  if (running) lua_sethook(running, stop, LUA_MASKCOUNT, 1);
}

// Calls that wait (reading a line, sleeping) are to end: no SA_RESTART.
void install() {
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

bool take_interrupt() {
  const bool came = asked != 0;
  asked = 0;
  return came;
}

}  // namespace perigee
