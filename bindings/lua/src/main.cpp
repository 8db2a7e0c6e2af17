// SPDX-License-Identifier: Apache-2.0
// perigee: runs scripts and commands. Commands are Lua (scripts/perigee/command); this file only tells them apart.

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "interrupt.hpp"
#include "line_editor.hpp"
#include "lines.hpp"
#include "state.hpp"

namespace {

using perigee::State;

constexpr const char* kUsage =
    "usage: perigee [script.lua [args]] | perigee -e code [args] | perigee COMMAND [words]\n"
    "  perigee                       read, run and print expressions\n"
    "  perigee script.lua [args]     run a script (- for standard input)\n"
    "  perigee -e code [args]        run code\n"
    "  perigee test [path...]        run *_test.lua files\n"
    "  perigee lint [path...]        what users of PyTorch write by habit and Lua takes without a word\n"
    "  perigee run-graph FILE        a graph that pg.save wrote, on arrays in files, without a script\n"
    "  perigee launch -n N script.lua [args]\n"
    "                                a script in N processes that know of each other, by mpirun\n"
    "  perigee plugins [--json]      plugins, their state and the reason where one is unavailable\n"
    "  perigee devices               devices, and why others are not there\n"
    "  perigee conform PLUGIN.so     whether a device does what devices must, and which operators it computes rightly\n"
    "  perigee doctor                what is here, what is in force, what is wrong and how to mend it\n"
    "  perigee watch RUN...          curves of trainings in the terminal, from their event files\n"
    "  perigee top                   devices, memory, and the processes that use them\n"
    "  perigee COMMAND --help        which words and options a command takes\n"
    "  perigee --version | --help\n";

bool is_command(const char* word) {
  for (const char* command :
       {"test", "lint", "run-graph", "launch", "watch", "top", "plugins", "devices", "doctor", "conform", "repl"}) {
    if (std::strcmp(word, command) == 0) return true;
  }
  return false;
}

// Whether a word may be a command's that was mistyped: no script has this name.
bool is_lost(const char* word) {
  std::error_code error;
  return std::strcmp(word, "-") != 0 && !std::strpbrk(word, "./") && !std::filesystem::exists(word, error);
}

// perigee.command.main(word, args...) -> exit status.
int run_command(lua_State* L, const char* word, int argc, char** argv, int first) {
  lua_getglobal(L, "require");
  lua_pushliteral(L, "perigee.command.main");
  if (!perigee::call(L, 1, 1)) return 1;
  lua_pushstring(L, word);
  for (int i = first; i < argc; ++i) lua_pushstring(L, argv[i]);
  if (!perigee::call(L, 1 + argc - first, 1)) return 1;
  return static_cast<int>(lua_tointeger(L, -1));
}

// A script that failed among several processes: those that wait for this one are told why (scripts/perigee/dist).
void tell_others(lua_State* L) {
  const int top = lua_gettop(L);
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "perigee.dist.ending");
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "failed");
    lua_pushstring(L, perigee::last_failure().c_str());
    lua_pcall(L, 1, 0, 0);
  }
  lua_settop(L, top);
}

// The loaded chunk is on the stack, or its syntax error.
int run_chunk(lua_State* L, int load_status, int argc, char** argv, int script) {
  if (load_status != 0) {
    const std::string message = lua_tostring(L, -1);
    const bool binary = message.find("wrong mode") != std::string::npos;
    std::fprintf(stderr, "perigee: %s%s\n", binary ? argv[script] : "",
                 binary ? ": bytecode is refused" : message.c_str());
    return 1;
  }
  perigee::set_arguments(L, argc, argv, script);
  for (int i = script + 1; i < argc; ++i) lua_pushstring(L, argv[i]);
  perigee::watch_script(L);
  if (perigee::call(L, argc - script - 1, 0)) return 0;
  tell_others(L);
  return perigee::was_interrupted() ? perigee::kInterruptedStatus : 1;
}

// Text only: bytecode from who knows where can crash the process.
int run_script(lua_State* L, int argc, char** argv) {
  const char* path = std::strcmp(argv[1], "-") == 0 ? nullptr : argv[1];
  return run_chunk(L, luaL_loadfilex(L, path, "t"), argc, argv, 1);
}

int run_code(lua_State* L, int argc, char** argv) {
  if (argc < 3) {
    std::fputs("perigee: -e needs code\n", stderr);
    return 2;
  }
  return run_chunk(L, luaL_loadbufferx(L, argv[2], std::strlen(argv[2]), "=(command line)", "t"), argc, argv, 2);
}

// What the REPL needs from here, and settings that a host of our own may make.
void prepare(lua_State* L) {
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  perigee::push_line_editor(L);
  lua_setfield(L, -2, "perigee.prompt.line_editor");
  lua_pushcfunction(L, perigee::lua_break_calls);
  lua_setfield(L, -2, "perigee.native.break_calls");
  perigee::push_lines(L);
  lua_setfield(L, -2, "perigee.native.lines");
  lua_pop(L, 1);
  perigee::call_module(L, "perigee.native.traces", "prepare");
}

int run_words(lua_State* L, int argc, char** argv) {
  if (argc < 2) return run_command(L, "repl", argc, argv, 1);
  if (is_command(argv[1])) return run_command(L, argv[1], argc, argv, 2);
  if (std::strcmp(argv[1], "-e") == 0) return run_code(L, argc, argv);
  if (argv[1][0] == '-' && argv[1][1] != '\0') {
    std::fprintf(stderr, "perigee: unknown option %s\n%s", argv[1], kUsage);
    return 2;
  }
  if (is_lost(argv[1])) return run_command(L, argv[1], argc, argv, 2);  // it says what there is
  return run_script(L, argc, argv);
}

// What counts the threads of pipelines (bindings/lua/native/data.lua); null: there have been none.
using CountThreads = uint32_t (*)();
CountThreads find_threads(lua_State* L) {
  const int top = lua_gettop(L);
  CountThreads count = nullptr;
  lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
  lua_getfield(L, -1, "perigee.native.data");
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "run_threads_address");
    if (lua_pcall(L, 0, 1, 0) == 0) count = reinterpret_cast<CountThreads>(static_cast<uintptr_t>(lua_tonumber(L, -1)));
  }
  lua_settop(L, top);
  return count;
}

// Threads whose pipelines went with the state end with the element that they make. Of a process that ends, libraries
// take down what they would go on to use: of one that takes long, the process ends without that.
void leave_threads(CountThreads count, int status) {
  if (count == nullptr) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  while (count() > 0 && std::chrono::steady_clock::now() < until) usleep(1000);
  if (count() == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

int run(int argc, char** argv, CountThreads& threads) {
  if (argc > 1 && (std::strcmp(argv[1], "--version") == 0 || std::strcmp(argv[1], "-v") == 0)) {
    std::printf("Perigee %s (%s)\n", PERIGEE_VERSION, LUAJIT_VERSION);
    return 0;
  }
  if (argc > 1 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  State state = perigee::make_state(perigee::find_home());
  if (!state) {
    std::fputs("perigee: out of memory\n", stderr);
    return 1;
  }
  lua_State* L = state.get();
  prepare(L);
  const int status = run_words(L, argc, argv);
  threads = find_threads(L);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CountThreads threads = nullptr;
  const int status = run(argc, argv, threads);
  leave_threads(threads, status);
  return status;
}
