# SPDX-License-Identifier: Apache-2.0
# Whether the CUDA plugin can be built: PERIGEE_CUDA_MISSING says what is in the way, and is empty when nothing is. With
# PERIGEE_CUDA=ON that is an error. Perigee's own build and plugins/cuda as a project of its own ask this file.
#
# PERIGEE_NVCC: the compiler. PERIGEE_CUDA_FOLDER: its toolkit. PERIGEE_CUDNN, PERIGEE_CUDNN_INCLUDE: cuDNN's library and
# the folder of its headers.
set(PERIGEE_CUDA_MISSING)
if(PERIGEE_CUDA STREQUAL "OFF")
  set(PERIGEE_CUDA_MISSING "PERIGEE_CUDA is OFF")
  return()
endif()
if(PERIGEE_SANITIZE AND NOT PERIGEE_CUDA STREQUAL "ON")
  set(PERIGEE_CUDA_MISSING "sanitizers watch its stand-in in tests/cuda instead")
  return()
endif()

if(DEFINED ENV{CUDACXX} AND NOT PERIGEE_NVCC)
  set(PERIGEE_NVCC $ENV{CUDACXX} CACHE FILEPATH "The CUDA compiler" FORCE)
endif()
find_program(PERIGEE_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
if(PERIGEE_NVCC)
  get_filename_component(folder ${PERIGEE_NVCC} REALPATH)
  get_filename_component(folder ${folder} DIRECTORY)
  get_filename_component(PERIGEE_CUDA_FOLDER ${folder} DIRECTORY)
  execute_process(COMMAND ${PERIGEE_NVCC} --version OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)" found "${text}")
  if(NOT found OR CMAKE_MATCH_1 LESS 13)
    set(PERIGEE_CUDA_MISSING "${PERIGEE_NVCC} is not of CUDA 13 or newer")
  endif()
  find_library(PERIGEE_CUDNN cudnn HINTS ${PERIGEE_CUDA_FOLDER}/lib64 ${PERIGEE_CUDA_FOLDER}/lib ENV CUDNN_PATH
               PATH_SUFFIXES lib lib64)
  find_path(PERIGEE_CUDNN_INCLUDE cudnn_version.h HINTS ${PERIGEE_CUDA_FOLDER}/include ENV CUDNN_PATH
            PATH_SUFFIXES include)
  if(PERIGEE_CUDA_MISSING)
    # That comes first.
  elseif(NOT PERIGEE_CUDNN OR NOT PERIGEE_CUDNN_INCLUDE)
    set(PERIGEE_CUDA_MISSING "cuDNN 9 is not found (its library: ${PERIGEE_CUDNN}, its headers: ${PERIGEE_CUDNN_INCLUDE}; CUDNN_PATH may name its folder)")
  else()
    file(STRINGS ${PERIGEE_CUDNN_INCLUDE}/cudnn_version.h text REGEX "^#define CUDNN_MAJOR ")
    if(NOT text MATCHES " 9$")
      set(PERIGEE_CUDA_MISSING "${PERIGEE_CUDNN_INCLUDE}/cudnn_version.h is not of cuDNN 9: ${text}")
    endif()
  endif()
else()
  set(PERIGEE_CUDA_MISSING "nvcc is not found (CUDA_PATH may name the toolkit's folder)")
endif()
if(PERIGEE_CUDA_MISSING AND PERIGEE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "PERIGEE_CUDA is ON, but ${PERIGEE_CUDA_MISSING}")
endif()
