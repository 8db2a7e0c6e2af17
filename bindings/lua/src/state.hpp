// SPDX-License-Identifier: Apache-2.0
// A Lua state that finds this installation's modules.
#pragma once

#include <memory>
#include <string>

extern "C" {
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>
}

namespace perigee {

struct CloseState {
  void operator()(lua_State* L) const { lua_close(L); }
};
using State = std::unique_ptr<lua_State, CloseState>;

/// The folder above the one that this executable lies in; empty when it cannot be told.
std::string find_home();

/// Calls a function of a module. Where either is not there, or fails, nothing is said.
void call_module(lua_State* L, const char* module, const char* function);

/// A state with the standard libraries, whose package.path begins with the installation's. Null: out of memory.
State make_state(const std::string& home);

/// Sets the global `arg`: script at 0, what follows at 1..n, what came before at negative positions.
void set_arguments(lua_State* L, int argc, char** argv, int script);

/// Calls the function under its `count` arguments, with a handler that adds the user's frames to errors. Prints what
/// went wrong. True when it went well; then its results are on the stack.
bool call(lua_State* L, int count, int results);
/// What the last call that did not go well printed.
std::string& last_failure();

}  // namespace perigee
