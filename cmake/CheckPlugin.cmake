# SPDX-License-Identifier: Apache-2.0
# cmake -D NM=... -D FILE=plugin.so -P CheckPlugin.cmake: fails unless the library exports pg_plugin_v1 and nothing else,
# and imports nothing of Perigee's.
execute_process(COMMAND ${NM} -D --defined-only ${FILE} OUTPUT_VARIABLE exported COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+\n" symbols "${exported}")
string(REPLACE "\n" "" symbols "${symbols}")
if(NOT symbols STREQUAL "pg_plugin_v1")
  message(FATAL_ERROR "${FILE} must export pg_plugin_v1 and nothing else, but exports: ${symbols}")
endif()
execute_process(COMMAND ${NM} -D --undefined-only ${FILE} OUTPUT_VARIABLE imported COMMAND_ERROR_IS_FATAL ANY)
if(imported MATCHES " (pgc_[^\n]*|_Z[A-Za-z]*[0-9]*7perigee[^\n]*)")
  message(FATAL_ERROR "${FILE} imports ${CMAKE_MATCH_1}: plugins reach the core through the host's table only")
endif()
