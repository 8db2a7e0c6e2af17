// SPDX-License-Identifier: Apache-2.0
// Reading lines for the REPL, with editing and history where libedit was found.
#pragma once

struct lua_State;

namespace perigee {

/// Lua function: read(prompt) -> line or nil at the end of input.
int lua_read_line(lua_State* L);

/// Lua function: history(path) loads it; history(path, line) appends a line. Nothing happens without libedit.
int lua_history(lua_State* L);

}  // namespace perigee
