// SPDX-License-Identifier: Apache-2.0
#include "line_editor.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "interrupt.hpp"
#include "state.hpp"
#ifdef PERIGEE_LIBEDIT
#include <histedit.h>
#endif

namespace perigee {

namespace {

constexpr int kPasteWait = 5;  // ms: a terminal hands over a paste in pieces

bool input_waits() {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, kPasteWait) > 0 && (input.revents & POLLIN) != 0;
}

// ---- plain lines ----

std::string buffered;  // what was read behind the last line
bool at_end = false;

// False: the end, or Ctrl-C.
bool fill_buffer() {
  char part[4096];
  const ssize_t count = read(STDIN_FILENO, part, sizeof part);
  if (count > 0) buffered.append(part, static_cast<size_t>(count));
  if (count == 0) at_end = true;
  return count > 0;
}

int push_end(lua_State* L) {
  lua_pushnil(L);
  lua_pushstring(L, take_interrupt() ? "interrupted" : "end");
  return 2;
}

int read_plain(lua_State* L, const char* prompt) {
  std::fputs(prompt, stdout);
  std::fflush(stdout);
  size_t end;
  while ((end = buffered.find('\n')) == std::string::npos) {
    if (fill_buffer()) continue;
    if (!at_end || buffered.empty()) return push_end(L);
    buffered.push_back('\n');
  }
  lua_pushlstring(L, buffered.data(), end);
  buffered.erase(0, end + 1);
  return 1;
}

// ---- libedit ----

#ifdef PERIGEE_LIBEDIT

struct CloseEditor {
  void operator()(EditLine* el) const { el_end(el); }
};
struct CloseHistory {
  void operator()(History* h) const { history_end(h); }
};

constexpr int kHistoryLines = 5000;

std::unique_ptr<History, CloseHistory> past;
std::unique_ptr<EditLine, CloseEditor> editor;
std::string shown_prompt;
lua_State* completing = nullptr;  // whose registry holds the completer
int completer = LUA_NOREF;

char* prompt_of(EditLine*) { return shown_prompt.data(); }

unsigned char complete(EditLine* el, int) {
  const LineInfo* line = el_line(el);
  lua_State* L = completing;
  const int top = lua_gettop(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, completer);
  lua_pushlstring(L, line->buffer, static_cast<size_t>(line->cursor - line->buffer));
  unsigned char result = CC_ERROR;
  if (lua_pcall(L, 1, 2, 0) == 0) {
    const char* insert = lua_tostring(L, -2);
    const char* list = lua_tostring(L, -1);
    if (insert && *insert && el_insertstr(el, insert) == 0) result = CC_REFRESH;
    if (list) {
      std::printf("\n%s\n", list);
      std::fflush(stdout);
      result = CC_REDISPLAY;
    }
  }
  lua_settop(L, top);
  return result;
}

// UTF-8 in lines needs a locale; nothing but characters follows it.
void set_characters() {
  const char* name = std::setlocale(LC_CTYPE, "");
  if (!name || std::strcmp(name, "C") == 0 || std::strcmp(name, "POSIX") == 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

void open_editor() {
  set_characters();
  past.reset(history_init());
  editor.reset(el_init("perigee", stdin, stdout, stderr));
  if (!past || !editor) {
    editor.reset();
    return;
  }
  HistEvent event;
  history(past.get(), &event, H_SETSIZE, kHistoryLines);
  history(past.get(), &event, H_SETUNIQUE, 1);
  EditLine* el = editor.get();
  el_set(el, EL_PROMPT, &prompt_of);
  el_set(el, EL_EDITOR, "emacs");
  el_set(el, EL_SIGNAL, 1);
  el_set(el, EL_HIST, history, past.get());
  el_set(el, EL_ADDFN, "perigee-complete", "completes a name", &complete);
  el_set(el, EL_BIND, "^I", "perigee-complete", nullptr);
  el_set(el, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(el, EL_BIND, "\\e[1;5D", "ed-prev-word", nullptr);  // Ctrl-Left and Ctrl-Right
  el_set(el, EL_BIND, "\\e[1;5C", "em-next-word", nullptr);
  el_source(el, nullptr);
}

int read_edited(lua_State* L, const char* prompt) {
  shown_prompt = prompt;
  int count = 0;
  completing = L;
  const char* line = el_gets(editor.get(), &count);
  if (!line || count <= 0) {
    const LineInfo* typed = el_line(editor.get());
    push_end(L);
    lua_pushboolean(L, typed->lastchar > typed->buffer);
    return 3;
  }
  size_t length = static_cast<size_t>(count);
  if (line[length - 1] == '\n') --length;
  lua_pushlstring(L, line, length);
  return 1;
}

#endif

// ---- Lua functions ----

bool is_interactive() { return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO); }

int open(lua_State* L) {
#ifdef PERIGEE_LIBEDIT
  const char* terminal = std::getenv("TERM");
  if (!is_interactive() || (terminal && std::strcmp(terminal, "dumb") == 0)) return 0;
  lua_settop(L, 1);
  completer = luaL_ref(L, LUA_REGISTRYINDEX);
  open_editor();
#else
  (void)L;
#endif
  return 0;
}

int read_line(lua_State* L) {
  const char* prompt = luaL_checkstring(L, 1);
  take_interrupt();
#ifdef PERIGEE_LIBEDIT
  if (editor) return read_edited(L, prompt);
#endif
  return read_plain(L, isatty(STDIN_FILENO) ? prompt : "");
}

int pending(lua_State* L) {
  bool waits = buffered.find('\n') != std::string::npos;
  if (!waits && !at_end && input_waits()) {
#ifdef PERIGEE_LIBEDIT
    waits = editor != nullptr || fill_buffer();
#else
    waits = fill_buffer();
#endif
  }
  lua_pushboolean(L, waits);
  return 1;
}

int remember(lua_State* L) {
  const char* line = luaL_checkstring(L, 1);
#ifdef PERIGEE_LIBEDIT
  HistEvent event;
  if (past) history(past.get(), &event, H_ENTER, line);
#else
  (void)line;
#endif
  return 0;
}

int make_folder(lua_State* L) {
  std::error_code error;
  std::filesystem::create_directories(luaL_checkstring(L, 1), error);
  lua_pushboolean(L, !error);
  return 1;
}

// The terminal is given back as it was found.
int close(lua_State*) {
#ifdef PERIGEE_LIBEDIT
  editor.reset();
  past.reset();
#endif
  return 0;
}

}  // namespace

void push_line_editor(lua_State* L) {
  const luaL_Reg functions[] = {{"open", open},
                                {"read", read_line},
                                {"pending", pending},
                                {"remember", remember},
                                {"make_folder", make_folder},
                                {"close", close},
                                {"watch", lua_watch},
                                {nullptr, nullptr}};
  lua_newtable(L);
  for (const luaL_Reg* f = functions; f->name; ++f) {
    lua_pushcfunction(L, f->func);
    lua_setfield(L, -2, f->name);
  }
  lua_pushboolean(L, is_interactive());
  lua_setfield(L, -2, "interactive");
}

}  // namespace perigee
