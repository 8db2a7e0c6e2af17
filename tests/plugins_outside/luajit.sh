#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# luajit.sh LUAJIT PREFIX: an installed Perigee works from plain luajit, in another folder, with nothing set but LUA_PATH.
set -e
luajit=$1 prefix=$2
tree=$(cd "$(dirname "$0")/../.." && pwd)
cd /
unset PERIGEE_PLUGIN_PATH
export LUA_PATH="$prefix/share/lua/5.1/?.lua;$prefix/share/lua/5.1/?/init.lua"
"$luajit" "$tree/tests/plugins_outside/work.lua"
