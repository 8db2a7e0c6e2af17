// SPDX-License-Identifier: Apache-2.0
#include "nvrtc.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "perigee/plugin.hpp"

namespace cuda::fused {
namespace {

// As nvrtc.h declares them; a status is an int whose 0 is success.
struct Nvrtc {
  using Program = struct _nvrtcProgram*;
  const char* (*status_name)(int) = nullptr;
  int (*arch_count)(int*) = nullptr;
  int (*archs)(int*) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*ptx_size)(Program, size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
  std::string defect;

  Nvrtc() {
    void* library = open();
    if (library == nullptr) return;
    auto find = [&](auto& function, const char* name) {
      void* found = dlsym(library, name);
      if (found == nullptr) defect = std::string(nvrtc_name) + " has no " + name;
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    };
    find(status_name, "nvrtcGetErrorString");
    find(arch_count, "nvrtcGetNumSupportedArchs");
    find(archs, "nvrtcGetSupportedArchs");
    find(create, "nvrtcCreateProgram");
    find(destroy, "nvrtcDestroyProgram");
    find(compile, "nvrtcCompileProgram");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(cubin_size, "nvrtcGetCUBINSize");
    find(cubin, "nvrtcGetCUBIN");
    find(ptx_size, "nvrtcGetPTXSize");
    find(ptx, "nvrtcGetPTX");
  }

  // Stays open: what it has loaded by itself would not go.
  void* open() {
    if (void* library = dlopen(nvrtc_name, RTLD_NOW | RTLD_LOCAL)) return library;
    defect = dlerror();
    std::string folders = nvrtc_folders;
    for (size_t begin = 0; begin < folders.size();) {
      const size_t end = std::min(folders.find(':', begin), folders.size());
      const std::string path = folders.substr(begin, end - begin) + "/" + nvrtc_name;
      if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        defect.clear();
        return library;
      }
      begin = end + 1;
    }
    return nullptr;
  }

  void check(int status, const char* what) const {
    if (status != 0) pg::fail(PG_E_INTERNAL, pg::format("%s: %s", what, status_name(status)));
  }
};

const Nvrtc& nvrtc() {
  static const auto& found = *new Nvrtc;
  return found;
}

bool knows(const Nvrtc& n, int capability) {
  int count = 0;
  n.check(n.arch_count(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> all(static_cast<size_t>(count));
  n.check(n.archs(all.data()), "nvrtcGetSupportedArchs");
  return std::find(all.begin(), all.end(), capability) != all.end();
}

using ReadSize = int (*)(Nvrtc::Program, size_t*);
using Read = int (*)(Nvrtc::Program, char*);
std::string read_all(const Nvrtc& n, Nvrtc::Program program, ReadSize size_of, Read read, const char* what) {
  size_t bytes = 0;
  n.check(size_of(program, &bytes), what);
  std::string all(bytes, '\0');
  n.check(read(program, all.data()), what);
  return all;
}

}  // namespace

const std::string& nvrtc_defect() { return nvrtc().defect; }

std::string compile_source(const std::string& text, int capability, bool readable) {
  const Nvrtc& n = nvrtc();
  if (!n.defect.empty()) pg::fail_support(n.defect);
  if (!knows(n, capability))
    pg::fail_support(
        pg::format("%s makes no code for compute capability %d.%d", nvrtc_name, capability / 10, capability % 10));
  std::vector<const char*> names, texts;
  for (size_t i = 0; i < device_text_count; i++) {
    names.push_back(device_texts[i].name);
    texts.push_back(device_texts[i].text);
  }
  Nvrtc::Program program = nullptr;
  n.check(n.create(&program, text.c_str(), "region.cu", static_cast<int>(names.size()), texts.data(), names.data()),
          "nvrtcCreateProgram");
  const auto destroy = [&](Nvrtc::Program* p) { (void)n.destroy(p); };
  const std::unique_ptr<Nvrtc::Program, decltype(destroy)> guard(&program, destroy);
  const std::string arch =
      (readable ? "--gpu-architecture=compute_" : "--gpu-architecture=sm_") + std::to_string(capability);
  const char* options[] = {
      arch.c_str(),      "--std=c++20",      "--fmad=false",   "--ftz=false",
      "--prec-div=true", "--prec-sqrt=true", "-default-device"};  // host code of headers: never called
  if (const int status = n.compile(program, static_cast<int>(std::size(options)), options); status != 0) {
    std::string log = read_all(n, program, n.log_size, n.log, "nvrtcGetProgramLog");
    pg::fail(PG_E_INTERNAL, pg::format("nvrtcCompileProgram: %s: ", n.status_name(status)) + log.substr(0, 2000));
  }
  if (readable) return read_all(n, program, n.ptx_size, n.ptx, "nvrtcGetPTX");
  return read_all(n, program, n.cubin_size, n.cubin, "nvrtcGetCUBIN");
}

}  // namespace cuda::fused
