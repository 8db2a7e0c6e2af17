// SPDX-License-Identifier: Apache-2.0
#include "lines.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "state.hpp"

namespace perigee {

namespace {

using Tell = void (*)(const char*);

struct Line {
  const char* source;  // the name of a chunk, which is kept alive: names at one address are one
  int number;
  int layer;
  const lua_State* caller;  // the coroutine
  bool operator==(const Line&) const = default;
};

struct HashLine {
  size_t operator()(const Line& l) const {
    const size_t code = reinterpret_cast<uintptr_t>(l.source) * 31 + reinterpret_cast<uintptr_t>(l.caller);
    return (code >> 4) + static_cast<size_t>(l.number) + static_cast<size_t>(l.layer) * 61;
  }
};

std::unordered_map<const char*, bool> is_own;
const char* last_own = nullptr;
const char* last_script = nullptr;

struct Place {
  Line line;
  const char* text;
};
std::unordered_map<Line, const char*, HashLine> places;
std::array<Place, 256> recent;  // of these, by hash
Line wanted = {};               // no source: none
Tell tell_place = nullptr;
Tell tell_put = nullptr;
Tell tell_offer = nullptr;

const char kAnchors = 0;  // its address: the registry's table of what start was given, and of the chunks' names

bool ask_whether_own(lua_State* L, const char* source) {
  lua_pushlightuserdata(L, const_cast<char*>(&kAnchors));
  lua_rawget(L, LUA_REGISTRYINDEX);
  lua_pushstring(L, source);  // the same text is the same object, which the table keeps
  lua_pushboolean(L, 1);
  lua_settable(L, -3);
  lua_rawgeti(L, -1, 1);
  lua_pushstring(L, source);
  lua_call(L, 1, 1);
  const bool own = lua_toboolean(L, -1) != 0;
  lua_pop(L, 2);
  is_own.emplace(source, own);
  return own;
}

bool is_script(lua_State* L, const char* source) {
  if (source == last_script) return true;
  if (source == last_own) return false;
  const auto known = is_own.find(source);
  const bool own = known != is_own.end() ? known->second : ask_whether_own(L, source);
  (own ? last_own : last_script) = source;
  return !own;
}

const char* look_up(const Line& line) {
  Place& near = recent[HashLine()(line) % recent.size()];
  if (near.line == line) return near.text;
  const auto place = places.find(line);
  if (place == places.end()) return nullptr;
  near = {line, place->second};
  return near.text;
}

// Levels of the stack that are origins.lua's function, and what it was called by, behind an operator and before one.
constexpr int kBehind = 3, kBefore = 2;

const char* find(lua_State* L, int level) {
  const int layer = static_cast<int>(lua_tointeger(L, 1));
  wanted.source = nullptr;
  lua_Debug frame;
  for (; lua_getstack(L, level, &frame) != 0; level++) {
    lua_getinfo(L, "Sl", &frame);
    if (frame.currentline <= 0 || !is_script(L, frame.source)) continue;
    const Line line = {frame.source, frame.currentline, layer, L};
    const char* place = look_up(line);
    if (place == nullptr) wanted = line;
    return place;
  }
  return nullptr;
}

int answer(lua_State* L, const char* place, Tell tell) {
  if (place == nullptr) {
    lua_pushboolean(L, 1);
    return 1;
  }
  if (tell != nullptr) tell(place);
  return 0;
}

int lua_place(lua_State* L) { return answer(L, find(L, kBehind), tell_place); }
int lua_offer(lua_State* L) {
  tell_offer(find(L, 1));
  return 0;
}
int lua_put(lua_State* L) { return answer(L, find(L, kBefore), tell_put); }
int lua_find(lua_State* L) { return answer(L, find(L, kBefore), nullptr); }

const void* to_address(lua_State* L, int argument) {
  return reinterpret_cast<const void*>(static_cast<uintptr_t>(luaL_checknumber(L, argument)));
}
Tell to_function(lua_State* L, int argument) {
  return reinterpret_cast<Tell>(static_cast<uintptr_t>(luaL_checknumber(L, argument)));
}

int lua_remember(lua_State* L) {
  if (wanted.source != nullptr) places.emplace(wanted, static_cast<const char*>(to_address(L, 1)));
  wanted.source = nullptr;
  return 0;
}

int lua_start(lua_State* L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  tell_place = to_function(L, 2);
  tell_put = to_function(L, 3);
  tell_offer = to_function(L, 4);
  is_own.clear();
  last_own = last_script = nullptr;
  places.clear();
  recent.fill({});
  wanted.source = nullptr;
  lua_pushlightuserdata(L, const_cast<char*>(&kAnchors));
  lua_newtable(L);
  lua_pushvalue(L, 1);
  lua_rawseti(L, -2, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
  return 0;
}

}  // namespace

void push_lines(lua_State* L) {
  static const luaL_Reg kFunctions[] = {{"start", lua_start}, {"place", lua_place}, {"offer", lua_offer},
                                        {"put", lua_put},     {"find", lua_find},   {"remember", lua_remember},
                                        {nullptr, nullptr}};
  lua_newtable(L);
  luaL_register(L, nullptr, kFunctions);
}

}  // namespace perigee
