-- SPDX-License-Identifier: Apache-2.0
std = "luajit"
max_line_length = 120
-- Arguments that an interface dictates, and loop variables, may go unused.
unused_args = false
self = false

-- The scripted suite: `perigee test` gives these to its files.
files["tests/lua"] = { globals = { "test" } }
files["tests/amx"] = { globals = { "test" } }
files["tests/gpu"] = { globals = { "test" } }
files["tests/nccl"] = { globals = { "test" } }
files["tests/expressions"] = { globals = { "test" } }
files["tests/plugins_faulty"] = { globals = { "test" } }
files["tests/plugins_data"] = { globals = { "test" } }
files["tests/museum"] = { globals = { "test" } }
files["tests/mutants"] = { globals = { "test" } }
