// SPDX-License-Identifier: Apache-2.0
#include "state.hpp"

#include <sys/auxv.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

namespace perigee {

std::string find_home() {
  std::error_code error;
  auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {  // no /proc: as it was started
    const auto* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    self = std::filesystem::canonical(started != nullptr ? started : "", error);
  }
  return error ? std::string() : self.parent_path().parent_path().string();
}

void call_module(lua_State* L, const char* module, const char* function) {
  const int top = lua_gettop(L);
  lua_getglobal(L, "require");
  lua_pushstring(L, module);
  if (lua_pcall(L, 1, 1, 0) == 0) {
    lua_getfield(L, -1, function);
    lua_pcall(L, 0, 0, 0);
  }
  lua_settop(L, top);
}

State make_state(const std::string& home) {
  State state(luaL_newstate());
  if (!state) return state;
  lua_State* L = state.get();
  luaL_openlibs(L);
  if (home.empty()) return state;
  const std::string lua = home + "/share/lua/5.1/";
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  const std::string path = lua + "?.lua;" + lua + "?/init.lua;" + lua_tostring(L, -1);
  lua_pushlstring(L, path.data(), path.size());
  lua_setfield(L, -3, "path");
  lua_pop(L, 2);
  call_module(L, "perigee.native.coroutines", "watch");  // without it nothing is taken for granted
  return state;
}

void set_arguments(lua_State* L, int argc, char** argv, int script) {
  lua_createtable(L, argc - script, script + 1);
  for (int i = 0; i < argc; ++i) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - script);
  }
  lua_setglobal(L, "arg");
}

// The handler: perigee.printing.report turns the error into text with the user's frames. Without it, plain text.
static int report(lua_State* L) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "perigee.printing.report");
  if (lua_pcall(L, 1, 1, 0) == 0 && lua_isfunction(L, -1)) {
    lua_pushvalue(L, 1);
    if (lua_pcall(L, 1, 1, 0) == 0) return 1;
  }
  lua_settop(L, 1);
  if (luaL_callmeta(L, 1, "__tostring")) return 1;
  if (!lua_isstring(L, 1)) lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
  return 1;
}

std::string& last_failure() {
  static std::string text;
  return text;
}

bool call(lua_State* L, int count, int results) {
  const int base = lua_gettop(L) - count;
  lua_pushcfunction(L, report);
  lua_insert(L, base);
  const int status = lua_pcall(L, count, results, base);
  lua_remove(L, base);
  if (status == 0) return true;
  const char* text = lua_tostring(L, -1);
  std::fflush(stdout);
  last_failure() = text ? text : "unknown error";
  std::fprintf(stderr, "perigee: %s\n", last_failure().c_str());
  lua_pop(L, 1);
  return false;
}

}  // namespace perigee
