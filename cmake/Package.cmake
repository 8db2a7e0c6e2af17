# SPDX-License-Identifier: Apache-2.0
# What is installed besides plugins and scripts: headers, libraries, and the CMake package that out-of-tree plugins find.
include(CMakePackageConfigHelpers)

install(DIRECTORY core/include/perigee DESTINATION include FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp"
  PATTERN "*.cpp") # perigee/sdk/*.cpp: perigee_sdk_library compiles them
install(FILES bindings/c/perigee.h DESTINATION include)
# What who writes a plugin reads besides the headers.
install(FILES LICENSE core/docs/plugin_tutorial.md DESTINATION share/perigee)
install(DIRECTORY examples/plugins DESTINATION share/perigee/examples)
install(FILES core/include/perigee/README.md DESTINATION include/perigee)
install(DIRECTORY docs/library/ DESTINATION share/perigee/library FILES_MATCHING PATTERN "*.lua") # for editors
install(TARGETS perigee_plugin_sdk EXPORT PerigeeTargets)
if(TARGET perigee)
  install(TARGETS perigee EXPORT PerigeeTargets LIBRARY DESTINATION ${PERIGEE_LIB_FOLDER})
endif()
install(EXPORT PerigeeTargets NAMESPACE Perigee:: DESTINATION ${PERIGEE_CMAKE_FOLDER})

configure_package_config_file(cmake/PerigeeConfig.cmake.in ${PROJECT_BINARY_DIR}/PerigeeConfig.cmake
  INSTALL_DESTINATION ${PERIGEE_CMAKE_FOLDER})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PerigeeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PerigeeConfig.cmake ${PROJECT_BINARY_DIR}/PerigeeConfigVersion.cmake
  cmake/PerigeePlugin.cmake cmake/CheckPlugin.cmake cmake/CudaToolkit.cmake cmake/Nccl.cmake cmake/plugin.map
  DESTINATION ${PERIGEE_CMAKE_FOLDER})

# What a script needs: everything but the tests.
add_custom_target(perigee_runtime)
foreach(folder core bindings/c bindings/lua ${PERIGEE_PLUGINS})
  if(NOT folder MATCHES "core|bindings")
    string(PREPEND folder plugins/)
  endif()
  if(EXISTS ${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt)
    get_property(targets DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      add_dependencies(perigee_runtime ${target})
    endforeach()
  endif()
endforeach()
