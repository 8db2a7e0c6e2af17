#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# install.sh BUILD PREFIX: installs afresh and checks what an installation must hold, and that no path of the build leaked.
set -e
build=$1 prefix=$2
rm -rf "$prefix"
cmake --install "$build" --prefix "$prefix" >/dev/null
for file in bin/perigee lib/libperigee.so include/perigee.h include/perigee/plugin.h include/perigee/plugin.hpp \
  include/perigee/sdk/plugin.cpp \
  lib/cmake/Perigee/PerigeeConfig.cmake share/lua/5.1/perigee/init.lua \
  share/perigee/library/perigee.lua share/perigee/LICENSE share/perigee/plugin_tutorial.md \
  share/perigee/examples/plugins/my_layer/plugin.cpp include/perigee/README.md; do
  [ -f "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
exported=$(nm -D --defined-only "$prefix/lib/libperigee.so" | awk '{ print $NF }' | grep -v '^pgc_' || true)
[ -z "$exported" ] || { echo "libperigee.so exports more than pgc_*:" $exported; exit 1; }
for file in "$prefix"/bin/perigee "$prefix"/lib/libperigee.so "$prefix"/lib/perigee/plugins/*.so; do
  if readelf -d "$file" | grep -E 'R(UN)?PATH.*\[/'; then echo "$file looks for libraries by an absolute path"; exit 1; fi
done
