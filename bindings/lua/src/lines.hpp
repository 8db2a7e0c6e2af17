// SPDX-License-Identifier: Apache-2.0
// The script's line for a profile, which asks behind each operator: found again, it must cost less than the operator.
// LuaJIT compiles no look at the stack, so this is one call of C that walks frames, looks the line up and tells the
// library, without making a Lua value.
#pragma once

struct lua_State;

namespace perigee {

/// Pushes the table that the native layer knows as perigee.native.lines (origins.lua):
///   start(own, place, put, offer)  forgets all; `own` answers whether a chunk's name is of Perigee's own code, the
///                           others are the addresses of the library's functions that take a place behind an operator,
///                           before one, and one that is offered
///   place(layer), put(layer)  tell the library where the script stands in this layer's call, by number; answer true,
///                           and tell nothing, where that is not known yet
///   offer(layer)            tells it what place would tell next, or nothing: by what watches LuaJIT record a trace. No
///                           Lua but `own` runs
///   find(layer)             answers the same and tells nothing
///   remember(place)         the address of the place that the last of these did not know
void push_lines(lua_State* L);

}  // namespace perigee
