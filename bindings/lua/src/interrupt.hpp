// SPDX-License-Identifier: Apache-2.0
// Ctrl-C. Running Lua code stops at its next instruction outside of Perigee's native layer, and raises "interrupted"; a
// second Ctrl-C leaves the process: of a script at any time after the first, at the prompt before that has been
// answered. Compiled loops never look at hooks. At the prompt the compiler is off for the code of its user
// (perigee.prompt.repl says how); a script's loops are left at their next operator. One that calls none ends with the
// second Ctrl-C.
#pragma once

struct lua_State;

namespace perigee {

/// Lua function: watch(true) before code of the user runs, watch(false) behind it. The first call installs the handler.
int lua_watch(lua_State* L);

/// From here on Ctrl-C stops the script that L runs, unless the process was started to ignore it.
void watch_script(lua_State* L);

/// Whether it did; the script may have caught it.
bool was_interrupted();
constexpr int kInterruptedStatus = 130;  // of a process that it ended: 128 + SIGINT

/// Lua function: break_calls(address) of a function without arguments, which a signal handler may call, that brings the
/// next call of the library back to the interpreter.
int lua_break_calls(lua_State* L);

/// Whether Ctrl-C came since the last question, while no code was running.
bool take_interrupt();

}  // namespace perigee
