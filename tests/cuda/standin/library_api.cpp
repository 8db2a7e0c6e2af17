// SPDX-License-Identifier: Apache-2.0
// Code that is loaded while the program runs: shared objects of the stand-in's NVRTC.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include "emulator.hpp"
#include "library.hpp"
#include "state.hpp"

namespace {

using namespace standin;

constexpr char kMark[8] = {'S', 'T', 'A', 'N', 'D', 'I', 'N', '1'};

using Bind = void (*)(void** arguments, std::function<void()>* body);

struct Kernel {
  std::shared_ptr<void> object;
  Bind bind;
};

// Of libraries and kernels that are loaded. Launches that were queued keep what they run.
struct Loaded {
  std::mutex mutex;
  std::map<cudaLibrary_t, std::shared_ptr<void>> libraries;
  std::map<const void*, Kernel> kernels;
  std::map<std::pair<cudaLibrary_t, std::string>, cudaKernel_t> named;
  uintptr_t next = 1;
};
Loaded& loaded() {
  static auto& all = *new Loaded;
  return all;
}

std::shared_ptr<void> open_object(const char* bytes, size_t size) {
  std::string path = (std::filesystem::temp_directory_path() / "perigee-kernel-XXXXXX").string();
  const int file = mkstemp(path.data());  // a name of its own: dlopen would take another of that name for the same
  if (file < 0) return nullptr;
  void* object = nullptr;
  if (write(file, bytes, size) == static_cast<ssize_t>(size)) {
    object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) mistake(std::string("generated code does not load: ") + dlerror());
  }
  close(file);
  unlink(path.c_str());
  if (object == nullptr) return nullptr;
  return {object, [](void* o) { dlclose(o); }};
}

}  // namespace

std::string standin::as_code(const std::string& object) {
  const uint64_t size = object.size();
  std::string code(kMark, sizeof kMark);
  code.append(reinterpret_cast<const char*>(&size), sizeof size);
  return code + object;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  STANDIN_ENTER();
  if (std::memcmp(code, kMark, sizeof kMark) != 0) return finish(cudaErrorInvalidKernelImage);
  const char* bytes = static_cast<const char*>(code) + sizeof kMark;
  uint64_t size = 0;
  std::memcpy(&size, bytes, sizeof size);
  std::shared_ptr<void> object = open_object(bytes + sizeof size, size);
  if (object == nullptr) return finish(cudaErrorMemoryAllocation);
  Loaded& l = loaded();
  std::lock_guard lock(l.mutex);
  *library = reinterpret_cast<cudaLibrary_t>(l.next++);
  l.libraries[*library] = std::move(object);
  return finish(cudaSuccess);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  STANDIN_ENTER();
  Loaded& l = loaded();
  std::lock_guard lock(l.mutex);
  if (l.libraries.erase(library) == 0) return finish(cudaErrorInvalidResourceHandle);
  for (auto at = l.named.begin(); at != l.named.end();) {
    if (at->first.first != library) {
      ++at;
      continue;
    }
    l.kernels.erase(at->second);
    at = l.named.erase(at);
  }
  return finish(cudaSuccess);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  STANDIN_ENTER();
  Loaded& l = loaded();
  std::lock_guard lock(l.mutex);
  auto found = l.libraries.find(library);
  if (found == l.libraries.end()) return finish(cudaErrorInvalidResourceHandle);
  void* bind = dlsym(found->second.get(), (std::string("standin_bind_") + name).c_str());
  if (bind == nullptr) return finish(cudaErrorSymbolNotFound);
  cudaKernel_t& known = l.named[{library, name}];
  if (known == nullptr) {
    known = reinterpret_cast<cudaKernel_t>(l.next++);
    l.kernels[known] = {found->second, reinterpret_cast<Bind>(bind)};
  }
  *kernel = known;
  return finish(cudaSuccess);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  STANDIN_ENTER();
  Loaded& l = loaded();
  std::lock_guard lock(l.mutex);
  if (l.kernels.count(function) == 0) return finish(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  return finish(cudaSuccess);
}

// Of kernels that were loaded; those of the plugin's own files are launched by the emulator itself.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream) {
  std::shared_ptr<void> object;
  std::function<void()> body;
  {
    Loaded& l = loaded();
    std::lock_guard lock(l.mutex);
    auto found = l.kernels.find(function);
    if (found == l.kernels.end()) return finish(cudaErrorInvalidDeviceFunction);
    object = found->second.object;
    found->second.bind(arguments, &body);
  }
  if (block.y != 1 || block.z != 1) return finish(cudaErrorInvalidConfiguration);
  // The body's own code lies in the object: it goes first.
  struct Held {
    std::shared_ptr<void> object;
    std::function<void()> body;
  };
  auto held = std::make_shared<Held>(Held{std::move(object), std::move(body)});
  return emulator::launch_kernel(stream, {grid.x, grid.y, grid.z, block.x, static_cast<uint32_t>(shared)},
                                 [held] { held->body(); });
}
