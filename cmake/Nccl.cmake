# SPDX-License-Identifier: Apache-2.0
# Whether the NCCL plugin can be built: PERIGEE_NCCL_MISSING says what is in the way, and is empty when nothing is. Only
# headers are needed: NCCL's (Debian's and NVIDIA's libnccl-dev, or the Python package nvidia-nccl-cu13, whose folder
# NCCL_PATH may name) and those of the CUDA runtime. Perigee's own build and plugins/nccl as a project ask this file.
#
# PERIGEE_NCCL_HEADERS: whether they are there. PERIGEE_NCCL_INCLUDE, PERIGEE_CUDART_INCLUDE: their folders.
# PERIGEE_NCCL_VERSION: of the header. PERIGEE_CUDART: the runtime's library by its file name. PERIGEE_NCCL_FOLDERS: where the
# libraries may be.
set(PERIGEE_NCCL_MISSING)
set(PERIGEE_NCCL_HEADERS OFF)
set(PERIGEE_NCCL_FOLDERS)
find_path(PERIGEE_CUDART_INCLUDE cuda_runtime_api.h HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda
          PATH_SUFFIXES include)
find_path(PERIGEE_NCCL_INCLUDE nccl.h HINTS ENV NCCL_PATH ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda
          PATH_SUFFIXES include)
if(NOT PERIGEE_NCCL_INCLUDE)
  set(PERIGEE_NCCL_MISSING "nccl.h is not found (NCCL_PATH may name the folder that has include/nccl.h; packages: libnccl-dev, Python's nvidia-nccl-cu13)")
  return()
endif()
if(NOT PERIGEE_CUDART_INCLUDE)
  set(PERIGEE_NCCL_MISSING "cuda_runtime_api.h is not found (CUDA_PATH may name the toolkit's folder)")
  return()
endif()
file(STRINGS ${PERIGEE_NCCL_INCLUDE}/nccl.h text REGEX "^#define NCCL_(MAJOR|MINOR) ")
string(REGEX REPLACE "[^0-9]+" "." text "${text}")
string(REGEX REPLACE "^\\.|\\.$" "" PERIGEE_NCCL_VERSION "${text}")
file(STRINGS ${PERIGEE_CUDART_INCLUDE}/cuda_runtime_api.h text REGEX "^#define CUDART_VERSION ")
string(REGEX MATCH "[0-9]+" text "${text}")
math(EXPR text "0${text} / 1000")
set(PERIGEE_CUDART libcudart.so.${text})
if(PERIGEE_NCCL_VERSION VERSION_LESS 2.18)
  set(PERIGEE_NCCL_MISSING "${PERIGEE_NCCL_INCLUDE}/nccl.h is of NCCL ${PERIGEE_NCCL_VERSION}; 2.18 or newer is needed")
elseif(text LESS 13)
  set(PERIGEE_NCCL_MISSING "${PERIGEE_CUDART_INCLUDE}/cuda_runtime_api.h is not of CUDA 13 or newer")
endif()
foreach(folder ${PERIGEE_NCCL_INCLUDE} ${PERIGEE_CUDART_INCLUDE})
  get_filename_component(folder ${folder} DIRECTORY)
  foreach(name lib64 lib)
    if(EXISTS ${folder}/${name}/libnccl.so.2 OR EXISTS ${folder}/${name}/${PERIGEE_CUDART})
      list(APPEND PERIGEE_NCCL_FOLDERS ${folder}/${name})
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES PERIGEE_NCCL_FOLDERS)
if(NOT PERIGEE_NCCL_MISSING)
  set(PERIGEE_NCCL_HEADERS ON)
  if(PERIGEE_SANITIZE)
    set(PERIGEE_NCCL_MISSING "sanitizers watch its stand-in in tests/nccl instead")
  endif()
endif()
