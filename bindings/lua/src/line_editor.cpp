// SPDX-License-Identifier: Apache-2.0
#include "line_editor.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "state.hpp"
#ifdef PERIGEE_LIBEDIT
#include <editline/readline.h>
#endif

namespace perigee {

static int read_plain(lua_State* L, const char* prompt) {
  std::fputs(prompt, stdout);
  std::fflush(stdout);
  std::string line;
  int c = std::getchar();
  if (c == EOF) return 0;
  for (; c != EOF && c != '\n'; c = std::getchar()) line.push_back(static_cast<char>(c));
  lua_pushlstring(L, line.data(), line.size());
  return 1;
}

int lua_read_line(lua_State* L) {
  const char* prompt = luaL_checkstring(L, 1);
#ifdef PERIGEE_LIBEDIT
  if (isatty(STDIN_FILENO)) {
    char* line = readline(prompt);
    if (!line) return 0;
    lua_pushstring(L, line);
    std::free(line);
    return 1;
  }
#endif
  return read_plain(L, isatty(STDIN_FILENO) ? prompt : "");
}

int lua_history(lua_State* L) {
#ifdef PERIGEE_LIBEDIT
  const char* path = luaL_checkstring(L, 1);
  const char* line = luaL_optstring(L, 2, nullptr);
  if (!line) {
    using_history();
    read_history(path);
  } else {
    add_history(line);
    write_history(path);
  }
#else
  (void)L;
#endif
  return 0;
}

}  // namespace perigee
