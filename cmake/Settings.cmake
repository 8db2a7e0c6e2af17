# SPDX-License-Identifier: Apache-2.0
# What holds for every target: build type, compiler cache, sanitizers, output folders, which plugins are built.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(PERIGEE_CCACHE ccache)
if(PERIGEE_CCACHE)
  # Without the first it passes by what includes a precompiled header; the second trusts the compiler's own list of
  # headers instead of preprocessing each file once more to find it.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${PERIGEE_CCACHE})
  foreach(language C CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endif()
  endforeach()
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_options(-Wall -Wextra)
# g++ 12 sees overlaps and overflows inside std::string that are not there.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-stringop-overflow>")
if(PERIGEE_WERROR)
  add_compile_options($<IF:$<COMPILE_LANGUAGE:CUDA>,-Werror=all-warnings,-Werror>)
endif()

# -O3 where time is spent (core, C API, processor kernels); -O2 for the rest, which builds sooner and runs no slower.
set(PERIGEE_HOT_OPTIONS $<$<CONFIG:Release>:-O3>)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

if(PERIGEE_SANITIZE)
  set(PERIGEE_HOT_OPTIONS)
  add_compile_options(-O1 -fsanitize=${PERIGEE_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${PERIGEE_SANITIZE})
  if(PERIGEE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

# Counts which lines run (scripts/dev/coverage). Threads count together, or the sums would not add up.
if(PERIGEE_COVERAGE)
  set(PERIGEE_HOT_OPTIONS)
  add_compile_options(-O1 --coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

# The build tree looks like an installation, so that nothing has to know which of the two it runs from. The library
# folder is always "lib": libperigee finds its plugins, and the executable its library, relative to themselves.
set(PERIGEE_BIN_FOLDER bin)
set(PERIGEE_LIB_FOLDER lib)
set(PERIGEE_PLUGIN_FOLDER lib/perigee/plugins)
set(PERIGEE_LUA_FOLDER share/lua/5.1/perigee)
set(PERIGEE_CMAKE_FOLDER lib/cmake/Perigee)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${PERIGEE_BIN_FOLDER})
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${PERIGEE_LIB_FOLDER})
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")

# Every folder of plugins/ that has a CMakeLists.txt; cuda only where nvcc and cuDNN are.
file(GLOB found CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/plugins ${PROJECT_SOURCE_DIR}/plugins/*/CMakeLists.txt)
list(TRANSFORM found REPLACE "/CMakeLists.txt$" "" OUTPUT_VARIABLE PERIGEE_PLUGINS)
if("cuda" IN_LIST PERIGEE_PLUGINS)
  include(CudaToolkit)
  if(PERIGEE_CUDA_MISSING)
    list(REMOVE_ITEM PERIGEE_PLUGINS cuda)
    message(STATUS "CUDA plugin: not built: ${PERIGEE_CUDA_MISSING}")
  else()
    message(STATUS "CUDA plugin: built with ${PERIGEE_NVCC}")
    # Its kernels take the longest: begun first, they do not keep one processor busy at the end while the others wait.
    list(REMOVE_ITEM PERIGEE_PLUGINS cuda)
    list(PREPEND PERIGEE_PLUGINS cuda)
  endif()
endif()

# mpi only where an MPI is; whoever looks for it later is told by `perigee doctor`.
if("mpi" IN_LIST PERIGEE_PLUGINS)
  find_package(MPI COMPONENTS C QUIET)
  if(NOT MPI_C_FOUND)
    list(REMOVE_ITEM PERIGEE_PLUGINS mpi)
    message(STATUS "MPI plugin: not built: no MPI was found (Debian: libopenmpi-dev openmpi-bin)")
  endif()
endif()

# nccl only where its header and CUDA's are; its libraries are looked for when it is loaded.
if("nccl" IN_LIST PERIGEE_PLUGINS)
  include(Nccl)
  if(PERIGEE_NCCL_MISSING)
    list(REMOVE_ITEM PERIGEE_PLUGINS nccl)
    message(STATUS "NCCL plugin: not built: ${PERIGEE_NCCL_MISSING}")
  else()
    message(STATUS "NCCL plugin: built with ${PERIGEE_NCCL_INCLUDE}/nccl.h of NCCL ${PERIGEE_NCCL_VERSION}")
  endif()
endif()
