// SPDX-License-Identifier: Apache-2.0
// Ctrl-C at the prompt. Running Lua code stops at its next instruction outside of Perigee's native layer, and raises; a
// second Ctrl-C before that leaves the process. What runs must be interpreted: compiled loops never look at hooks, so
// the REPL turns the compiler off for the code of its user (perigee.prompt.repl says how).
#pragma once

struct lua_State;

namespace perigee {

/// Lua function: watch(true) before code of the user runs, watch(false) behind it. The first call installs the handler.
int lua_watch(lua_State* L);

/// Whether Ctrl-C came since the last question, while no code was running.
bool take_interrupt();

}  // namespace perigee
