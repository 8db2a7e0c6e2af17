-- SPDX-License-Identifier: Apache-2.0
-- The commands of the `perigee` executable. Each takes its words and answers an exit status.

local live = require "perigee.command.live"

local commands = {}

-- What `perigee COMMAND --help` prints.
local HELP = {
  test = [[
usage: perigee test [folder|file...] [options]
Runs *_test.lua files, of the current folder if none is given. Status: 0 all passed, 1 something failed, 2 no test ran.
  --filter PATTERN  only tests whose name or file fits the Lua pattern
  --compiled        calls each test that passes again, plainly and compiled by pg.compile: what it checks must be the
                    same to the bit; a test that does not repeat itself is counted, and not compared
  --device NAME     on this device
  --absent FILE     a Lua file that answers the operators that lack kernels, {cuda = {median = true}}: their failures
                    are skipped
  --shard I/N       every N-th test, from the I-th
  --times           ends with what took longest
  --verbose         says each test's name before it runs]],
  plugins = [[
usage: perigee plugins [--json]
All plugins that are found: kinds, version, state, and the reason where one is not available.]],
  devices = [[
usage: perigee devices
The devices and their memory, and why others are not there.]],
  conform = [[
usage: perigee conform PLUGIN.so [--level N] [--json] [--group NAME] [--ops NAMES] [--cases FOLDER]
                       [--with NAME.OPTION=VALUE]...
Asks a device plugin for everything that plugin.h promises, and each of its kernels for what the CPU computes; and the
sources, transforms and codecs of a plugin for what data.h promises, which has no levels.
Levels: 0 loads, 1 memory, 2 streams, 3 core kernels, 4 training, 5 everything. Status: 0 nothing failed, 1 something.
  --level N         asks for no more than that level does
  --json            what was found as JSON: level, groups, failures by name, operators and dtypes
  --group NAME      asks one group of questions only: abi lifecycle memory copies streams threads kernels strides
                    empty aliases repeated gradients training errors random profiler sources transforms codecs
  --with N.O=VALUE  gives the source or transform N the option O, where it needs one to be asked with
  --ops NAMES       of kernels only those of these operators, separated by commas
  --cases FOLDER    what holds the folder of cases; tests if not given]],
  lint = [[
usage: perigee lint [folder|script...] [--rules]
Looks through scripts, all *.lua of the current folder if none is given, for what users of PyTorch write by habit and
Lua takes without a word: tensors as conditions and in ==, axes and positions from 0, a dot for a colon.
Prints FILE:LINE:COLUMN: MESSAGE (RULE). Status: 0 nothing found, 1 something, 2 no such script.
A line whose comment begins with "lint: ignore" is passed over.
  --rules           an example of what each rule finds, and of what it does not]],
  ["run-graph"] = [[
usage: perigee run-graph FILE.pgraph [options]
Runs a graph that pg.save wrote, without a script, and prints the dtype and shape of what it gives. Status: 0 it ran,
1 something failed, 2 wrong words.
  --feed NAME=FILE   an input, from a .npy, .npz, .safetensors, .csv or .png file; of a file with several tensors that
                     of the same name, or FILE:MEMBER. As often as there are inputs
  --fetch NAME       what to compute, several times or with commas; without it the file's outputs
  --out FILE         writes what was fetched: one array as .npy, several as .npz or .safetensors
  --device NAME      where all of it goes, instead of where the file says
  --seed NUMBER      what random operators draw from
  --print            the graph's text, its inputs and outputs; alone, nothing is run]],
  launch = [[
usage: perigee launch -n N [options] script.lua [args]
Runs a script in N processes that know of each other (pg.dist), by mpirun; under Slurm, -n is its number of tasks. Each
line that a process prints begins with its rank. Status: mpirun's, 2 wrong words.
  -n N              how many processes
  --hosts A,B:4     on these machines (mpirun's --host), A once and B four times; they have Perigee and the script at
                    the same places. Without it on this one, as many as asked for, or on what the batch system gave
  --max-restarts N  where a process fails, all are started again, up to N times, and PERIGEE_RESTARTS counts them; a
                    script goes on where its last checkpoint stands. Not where SIGINT or SIGTERM ended it
  --mpirun PATH     this one instead of the first on the path
  --no-prefix       lines as they are printed
  --allow-root      as root too, which mpirun refuses without it]],
  watch = [[
usage: perigee watch RUN... [options]
Draws the scalars of event files (pg.SummaryWriter, callbacks.TensorBoard) in the terminal, those of several runs over
each other, again whenever there is more. A RUN is a folder of event files, a folder of such folders, or a file.
  --tag PATTERN     only curves whose name fits the Lua pattern
  --once            draws once and ends; so it does where standard output is no terminal
  --every SECONDS   between two looks; 2 if not given]],
  top = [[
usage: perigee top [options]
The devices with their memory, and the processes that use Perigee: share of the processor, memory, devices.
  --once            shows it once and ends; so it does where standard output is no terminal
  --every SECONDS   between two looks; 2 if not given]],
  doctor = [[
usage: perigee doctor
What is here, what is in force, what is wrong and how to mend it. Status 1 when something is wrong.]],
  repl = [[
usage: perigee repl
Reads, runs and prints expressions; :help there says more.]],
}
local TAKES_NONE = { devices = true, doctor = true, repl = true }

local function usage(text)
  io.stderr:write("perigee: ", text, "\n")
  return 2
end

local function columns(rows) print(live.columns(rows)) end

function commands.plugins(...)
  local native = require "perigee.native"
  local as_json
  for _, word in ipairs { ... } do
    if word ~= "--json" then return usage("plugins: unknown word " .. word) end
    as_json = true
  end
  if as_json then
    print(native.plugins_text(true))
    return 0
  end
  local rows = { { "NAME", "KINDS", "VERSION", "STATE", "PATH", "REASON" } }
  for _, p in ipairs(native.plugins(true)) do
    local reason = p.reason or ""
    if p.unknown_ops then reason = "has kernels for what is no operator: " .. table.concat(p.unknown_ops, ", ") end
    rows[#rows + 1] = { p.name or "?", p.kinds or "", p.version or "", p.state or "", p.path or "", reason }
  end
  columns(rows)
  return 0
end

local function gigabytes(n) return n and n > 0 and ("%.1f GB"):format(n / 2 ^ 30) or "" end

function commands.devices()
  local pg = require "perigee"
  local devices = pg.devices()
  local rows = { { "NAME", "MEMORY", "FREE", "DESCRIPTION" } }
  for _, d in ipairs(devices) do
    rows[#rows + 1] = { d.name, gigabytes(d.memory_total), gigabytes(d.memory_free), d.description or "" }
  end
  columns(rows)
  for _, u in ipairs(devices.unavailable or {}) do print(("%s: not available: %s"):format(u.type, u.reason)) end
  return 0
end

function commands.conform(...) return require("perigee.command.conform")(...) end
function commands.lint(...) return require("perigee.command.lint")(...) end
function commands.doctor(...) return require("perigee.command.doctor")(...) end
function commands.launch(...) return require("perigee.command.launch")(...) end
commands["run-graph"] = function(...) return require("perigee.command.run_graph")(...) end
function commands.watch(...) return require("perigee.command.watch")(...) end
function commands.top(...) return require("perigee.command.top")(...) end
function commands.test(...) return require("perigee.command.test")(...) end
function commands.repl(...) return require("perigee.prompt.repl")(...) end

-- A word that is neither a command nor a script that is there.
local function unknown(word)
  local names = {}
  for name in pairs(commands) do names[#names + 1] = name end
  table.sort(names)
  local near = require "perigee.native.suggest"(word, names)
  return usage(("%s is neither a command nor a script (%s)"):format(
    word, near and "did you mean " .. near .. "?" or "commands are " .. table.concat(names, ", ")))
end

---@param word string
---@return integer status
return function(word, ...)
  if not commands[word] then return unknown(word) end
  for _, given in ipairs { ... } do
    if given == "--help" or given == "-h" then
      print(HELP[word])
      return 0
    end
    if word == "launch" and given:find "%.lua$" then break end -- what follows is the script's
  end
  if TAKES_NONE[word] and select("#", ...) > 0 then return usage(word .. " takes no words") end
  return commands[word](...)
end
