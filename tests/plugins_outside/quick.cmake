# SPDX-License-Identifier: Apache-2.0
# Included by each project() of outside.sh: the SDK's headers are read once a plugin instead of once a file, which halves
# the time. (That each file includes what it needs is seen in Perigee's own build, which does without.)
function(perigee_quick)
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  list(FILTER targets INCLUDE REGEX "^perigee_plugin_")
  foreach(target IN LISTS targets)
    target_precompile_headers(${target} PRIVATE <perigee/functions.hpp> <perigee/op.hpp> <perigee/kernel.hpp>)
  endforeach()
endfunction()
cmake_language(DEFER CALL perigee_quick)
