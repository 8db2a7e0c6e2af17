// SPDX-License-Identifier: Apache-2.0
// Reading lines for the REPL: with editing, history and completion where libedit was found and both ends are a
// terminal, else plain lines.
#pragma once

struct lua_State;

namespace perigee {

/// Pushes the table of Lua functions that perigee.prompt.repl uses:
///   open(complete)  before the first line. complete(text before the cursor) -> what to insert, what to show (or nil)
///   read(prompt)    -> line, or nil and "end" or "interrupted", and whether something had been typed
///   pending()       -> whether more input waits: the lines of a paste, or of a pipe
///   remember(line)  appends to the history in memory
///   watch(on)       of interrupt.hpp
///   make_folder(path)
///   interactive     whether somebody sits there
void push_line_editor(lua_State* L);

}  // namespace perigee
