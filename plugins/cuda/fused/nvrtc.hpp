// SPDX-License-Identifier: Apache-2.0
// CUDA's compiler for sources that are made while a program runs. It is no library that the plugin is linked to: where
// there is none, nothing is joined.
#pragma once

#include <cstddef>
#include <string>

namespace cuda::fused {

// A file that sources may include: this folder's device/, and what of perigee/kernels that needs. Their text is part of
// the plugin (device_text.cmake).
struct DeviceText {
  const char *name, *text;
};
extern const DeviceText device_texts[];
extern const size_t device_text_count;
// NVRTC's file, and folders where it may be, between colons.
extern const char nvrtc_name[], nvrtc_folders[];

// An empty string where NVRTC is there; else why it is not. Any thread.
const std::string& nvrtc_defect();

// Code for a device of this compute capability (90: sm_90), with the options that decide bits as nvcc has them for the
// plugin's own kernels. Refuses capabilities that NVRTC does not know. `readable`: PTX. Any thread.
std::string compile_source(const std::string& text, int capability, bool readable = false);

}  // namespace cuda::fused
