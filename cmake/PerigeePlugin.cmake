# SPDX-License-Identifier: Apache-2.0
# perigee_add_plugin(NAME
#   SOURCES file...          # what it is made of
#   KINDS "device,kernels"   # as in PG_PLUGIN: a plugin whose two lists differ does not load
#   [VERSION 1.0.0]          # default: the project's version
#   [LINK target...]         # libraries to link
#   [NEEDS_LIBS name...]     # shared libraries (by file name) without which it cannot load; reported by name
#   [LIB_FOLDERS folder...]  # where those may be when the system does not know them
#   [LIB_REMEDY text]        # what to do when one is missing; ends the message
#   [CPU_FEATURES name...]   # processor features (as in /proc/cpuinfo) without which it cannot run
#   [DEVICE_TYPES type...]   # devices of others that its kernels serve, so that it is loaded for no other; and those that
#                            # it brings, where they are not called as the plugin is
#   [MIN_HOST_MINOR n]       # as in PG_PLUGIN: the oldest minor of plugin.h that its host may have
#   [FOLDER folder]          # put it there and do not install it: plugins that only tests load
#   [PRECOMPILE header...]   # headers that most of its files begin with, read once instead of once a file
#   [TARGET target]          # default: perigee_plugin_NAME
# )
#
# Builds NAME.so, which exports pg_plugin_v1 and nothing else, and beside it the manifest NAME.json that the host reads
# before it loads the library. In Perigee's own tree and with an installed Perigee alike; g++ and clang++.

set(PERIGEE_PLUGIN_MODULE_DIR ${CMAKE_CURRENT_LIST_DIR})

# perigee_batches(LIST COUNT file...): puts into LIST what a target compiles in place of these files: at most COUNT files
# that include them, LIST_0.cpp and so on. They are named relative to a folder that the target includes. Most of a file's
# time goes into headers and what they instantiate, which is so done once a batch; names in unnamed namespaces must differ
# for that. Who works on one file builds with PERIGEE_BATCHES=OFF: each is compiled alone.
set(PERIGEE_BATCHES ON CACHE BOOL "Compile several files at a time: sooner from nothing, later when one has changed")
function(perigee_batches list count)
  set(batches ${ARGN})
  file(GLOB old ${CMAKE_CURRENT_BINARY_DIR}/${list}_*)
  if(PERIGEE_BATCHES)
    # By the name, so that a new file changes one batch and leaves the others in the compiler's cache.
    foreach(file IN LISTS ARGN)
      string(MD5 hash ${file})
      string(SUBSTRING ${hash} 0 6 hash)
      math(EXPR number "0x${hash} % ${count}")
      string(APPEND text_${number} "#include \"${file}\"\n")
      get_filename_component(suffix ${file} LAST_EXT)
    endforeach()
    set(batches)
    math(EXPR last "${count} - 1")
    foreach(number RANGE ${last})
      if(text_${number})
        set(batch ${CMAKE_CURRENT_BINARY_DIR}/${list}_${number}${suffix})
        file(CONFIGURE OUTPUT ${batch} CONTENT "${text_${number}}" @ONLY)
        list(APPEND batches ${batch})
      endif()
    endforeach()
    list(REMOVE_ITEM old ${batches})
  endif()
  if(old)
    file(REMOVE ${old})
  endif()
  set(${list} ${batches} PARENT_SCOPE)
endfunction()

# perigee_sdk_library(FOLDER): the target perigee_sdk, what the SDK's headers leave out of line. It is compiled by whoever
# builds plugins, once a project and with its compiler and flags: C++ libraries are not shared between compilers, plugins
# are. Perigee's own build gives the folder; without one it is that of the installed headers.
function(perigee_sdk_library)
  if(TARGET perigee_sdk)
    return()
  endif()
  set(folder ${ARGN})
  if(NOT folder)
    get_target_property(folder Perigee::plugin_sdk INTERFACE_INCLUDE_DIRECTORIES)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/perigee/sdk/*.cpp)
  if(PERIGEE_BATCHES)
    perigee_batches(sdk 1 ${sources})
  else()
    list(TRANSFORM sources PREPEND ${folder}/ OUTPUT_VARIABLE sdk)
  endif()
  add_library(perigee_sdk STATIC EXCLUDE_FROM_ALL ${sdk})
  set_target_properties(perigee_sdk PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_features(perigee_sdk PUBLIC cxx_std_20)
  # In sections, so that a plugin keeps no more of it than it uses.
  target_compile_options(perigee_sdk PRIVATE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique> -ffunction-sections -fdata-sections)
  target_include_directories(perigee_sdk PUBLIC $<BUILD_INTERFACE:${folder}>)
endfunction()

function(perigee_add_plugin name)
  cmake_parse_arguments(arg "" "KINDS;VERSION;FOLDER;TARGET;LIB_REMEDY;MIN_HOST_MINOR"
    "SOURCES;LINK;NEEDS_LIBS;LIB_FOLDERS;CPU_FEATURES;DEVICE_TYPES;PRECOMPILE" ${ARGN})
  if(NOT arg_SOURCES OR NOT arg_KINDS)
    message(FATAL_ERROR "perigee_add_plugin(${name}): SOURCES and KINDS are needed")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "perigee_add_plugin(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  # A project that says nothing would get code that is not optimised at all.
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    message(STATUS "${name}: CMAKE_BUILD_TYPE is not set; it will be Release")
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
  endif()
  if(NOT arg_VERSION)
    set(arg_VERSION ${PROJECT_VERSION})
  endif()

  # Target names are global; plugin names ("cpu") would clash with other targets and folders.
  set(target perigee_plugin_${name})
  if(arg_TARGET)
    set(target ${arg_TARGET})
  endif()
  add_library(${target} MODULE ${arg_SOURCES})
  set(folder ${CMAKE_BINARY_DIR}/lib/perigee/plugins)
  if(arg_FOLDER)
    set(folder ${arg_FOLDER})
  endif()
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${folder}
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON INSTALL_RPATH "")
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  # Unique symbols are merged across plugins even under RTLD_LOCAL, and pin the library for good.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
  perigee_sdk_library()
  target_link_libraries(${target} PRIVATE Perigee::plugin_sdk perigee_sdk ${arg_LINK})
  if(arg_PRECOMPILE)
    perigee_precompile(${target} ${arg_PRECOMPILE})
  endif()

  set(script ${PERIGEE_PLUGIN_MODULE_DIR}/plugin.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${script} -Wl,-z,now -Wl,--gc-sections)
  if(NOT PERIGEE_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${script})
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -D NM=${CMAKE_NM} -D FILE=$<TARGET_FILE:${target}>
            -P ${PERIGEE_PLUGIN_MODULE_DIR}/CheckPlugin.cmake)

  _perigee_write_manifest(${name} ${folder}/${name}.json)
  if(NOT arg_FOLDER)
    install(TARGETS ${target} LIBRARY DESTINATION lib/perigee/plugins)
    install(FILES ${folder}/${name}.json DESTINATION lib/perigee/plugins)
  endif()
endfunction()

# perigee_precompile(TARGET header...): the C++ sources of TARGET read these headers in precompiled form.
function(perigee_precompile target)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>" OUTPUT_VARIABLE headers)
  target_precompile_headers(${target} PRIVATE ${headers})
  # So that ccache sees what the precompiled header was made of.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endfunction()

# Reads the caller's arg_*.
function(_perigee_write_manifest name path)
  foreach(list NEEDS_LIBS LIB_FOLDERS CPU_FEATURES DEVICE_TYPES)
    list(TRANSFORM arg_${list} REPLACE "(.+)" "\"\\1\"")
    list(JOIN arg_${list} ", " ${list})
  endforeach()
  get_target_property(include Perigee::plugin_sdk INTERFACE_INCLUDE_DIRECTORIES)
  string(REGEX REPLACE "^\\$<BUILD_INTERFACE:([^>]+)>.*" "\\1" include "${include}")
  file(STRINGS ${include}/perigee/plugin.h line REGEX "^#define PG_ABI_MINOR ")
  string(REGEX MATCH "[0-9]+" minor "${line}")
  set(text "{\n  \"name\": \"${name}\",\n  \"version\": \"${arg_VERSION}\",\n  \"kinds\": \"${arg_KINDS}\",\n")
  string(APPEND text "  \"abi\": 1,\n  \"abi_minor\": ${minor},\n")
  if(arg_MIN_HOST_MINOR)
    string(APPEND text "  \"min_host_minor\": ${arg_MIN_HOST_MINOR},\n")
  endif()
  if(arg_DEVICE_TYPES)
    string(APPEND text "  \"device_types\": [${DEVICE_TYPES}],\n")
  endif()
  if(arg_LIB_FOLDERS)
    string(APPEND text "  \"library_folders\": [${LIB_FOLDERS}],\n")
  endif()
  if(arg_LIB_REMEDY)
    string(APPEND text "  \"library_remedy\": \"${arg_LIB_REMEDY}\",\n")
  endif()
  string(APPEND text "  \"libraries\": [${NEEDS_LIBS}],\n  \"cpu_features\": [${CPU_FEATURES}]\n}\n")
  file(CONFIGURE OUTPUT ${path} CONTENT "${text}" @ONLY)
endfunction()
