// SPDX-License-Identifier: Apache-2.0
#include "state.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace standin {
namespace {

long long number_of(const char* variable, long long otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

// "cudaMalloc:3:2,kernel:10:700": name, which call from 1, code.
void read_injections(State& s, std::string text) {
  for (size_t end; !text.empty(); text.erase(0, end == std::string::npos ? end : end + 1)) {
    end = text.find(',');
    std::string one = text.substr(0, end);
    size_t a = one.find(':'), b = one.find(':', a + 1);
    if (a == std::string::npos || b == std::string::npos) mistake("PERIGEE_STANDIN_FAIL: \"" + one + "\"");
    s.injections.push_back(
        {one.substr(0, a), std::stoull(one.substr(a + 1)), static_cast<cudaError_t>(std::stoi(one.substr(b + 1)))});
  }
}

// PERIGEE_STANDIN_DEVICES, _MEMORY and _ALIGNMENT (bytes), _JITTER (microseconds), _DRIVER (absent, old, none), _FAIL,
// _EXIT (early); README.md.
void read_environment(State& s) {
  s.devices = static_cast<int>(number_of("PERIGEE_STANDIN_DEVICES", 1));
  if (s.devices < 0 || s.devices > kMaxDevices) mistake("PERIGEE_STANDIN_DEVICES must be 0 to 16");
  s.memory = static_cast<uint64_t>(number_of("PERIGEE_STANDIN_MEMORY", 4ll << 30));
  s.alignment = static_cast<size_t>(number_of("PERIGEE_STANDIN_ALIGNMENT", 512));
  if (s.alignment == 0 || (s.alignment & (s.alignment - 1)) != 0) mistake("PERIGEE_STANDIN_ALIGNMENT: a power of 2");
  s.jitter = static_cast<int>(number_of("PERIGEE_STANDIN_JITTER", 0));
  const char* driver = std::getenv("PERIGEE_STANDIN_DRIVER");
  std::string kind = driver == nullptr ? "" : driver;
  s.driver = kind == "absent" ? Driver::kAbsent
             : kind == "old"  ? Driver::kOld
             : kind == "none" ? Driver::kNoDevice
                              : Driver::kPresent;
  const char* exit = std::getenv("PERIGEE_STANDIN_EXIT");
  s.ends_early = exit != nullptr && std::strcmp(exit, "early") == 0;
  if (const char* text = std::getenv("PERIGEE_STANDIN_FAIL")) read_injections(s, text);
}

// What is answered on a device that is lost.
bool works_when_lost(const char* name) {
  for (const char* free : {"cudaSetDevice", "cudaGetDevice", "cudaGetDeviceCount", "cudaDriverGetVersion",
                           "cudaRuntimeGetVersion", "cudaGetDeviceProperties", "cudaDeviceGetAttribute"}) {
    if (std::strcmp(name, free) == 0) return true;
  }
  return false;
}

// The driver is loaded by the first call that needs it, and so ends before whoever had handlers registered by then.
void load_driver() {
  if (!state().ends_early) return;
  [[maybe_unused]] static const int once = std::atexit([] { state().driver_gone = true; });
}

bool works_without_driver(const char* name) {
  return std::strcmp(name, "cudaDriverGetVersion") == 0 || std::strcmp(name, "cudaRuntimeGetVersion") == 0;
}

}  // namespace

State& state() {
  static State* s = [] {
    auto* fresh = new State();  // workers may outlive static destructors
    read_environment(*fresh);
    return fresh;
  }();
  return *s;
}

ThreadState& thread_state() {
  thread_local ThreadState own;
  return own;
}

bool is_sticky(cudaError_t code) {
  switch (code) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return true;
    default: return false;
  }
}

cudaError_t finish(cudaError_t status) {
  if (status != cudaSuccess) thread_state().last = status;
  return status;
}

cudaError_t injected(const char* name) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  for (auto it = s.injections.begin(); it != s.injections.end(); ++it) {
    if (it->name != name || --it->left > 0) continue;
    cudaError_t code = it->code;
    s.injections.erase(it);
    return code;
  }
  return cudaSuccess;
}

void lose(int device, cudaError_t code) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.device[device].lost == cudaSuccess) s.device[device].lost = code;
}

cudaError_t lost(int device) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.device[device].lost;
}

cudaError_t enter(const char* name) {
  State& s = state();
  ThreadState& t = thread_state();
  std::lock_guard lock(s.mutex);
  s.calls[name]++;
  if (t.in_host_function) return cudaErrorNotPermitted;
  if (!works_without_driver(name)) {
    if (s.driver == Driver::kAbsent || s.driver == Driver::kOld) return cudaErrorInsufficientDriver;
    if (s.driver == Driver::kNoDevice || s.devices == 0) return cudaErrorNoDevice;
    if (s.driver_gone) return cudaErrorCudartUnloading;
    load_driver();
  }
  if (cudaError_t code = injected(name); code != cudaSuccess) {
    if (is_sticky(code)) lose(t.device, code);
    return code;
  }
  return works_when_lost(name) || works_without_driver(name) ? cudaSuccess : s.device[t.device].lost;
}

void load_vendor() {
  if (!state().ends_early) return;
  [[maybe_unused]] static const int once = std::atexit([] { state().vendor_gone = true; });
}

void refuse_after_exit(const char* function) {
  if (state().vendor_gone) mistake(std::string(function) + " was called after its library's exit handlers had run");
}

const Block* find_block(const void* address, size_t bytes) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto at = static_cast<const char*>(address);
  auto it = s.blocks.upper_bound(at);
  if (it == s.blocks.begin()) return nullptr;
  const Block& block = (--it)->second;
  return at + bytes <= block.begin + block.bytes ? &block : nullptr;
}

bool is_device_range(const void* address, size_t bytes) { return bytes == 0 || find_block(address, bytes) != nullptr; }

void mistake(const std::string& message) {
  std::fprintf(stderr, "cuda stand-in: %s\n", message.c_str());
  std::abort();
}

// ---- control ----

void reset() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (live() != Live{}) mistake("reset while objects are alive");
  s.injections.clear();
  s.calls.clear();
  for (DeviceState& d : s.device) {
    d.lost = cudaSuccess;
    d.major = 9, d.minor = 0;
    d.peers.clear();
  }
  thread_state() = ThreadState();
  read_environment(s);
}

void forget() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.injections.clear();
  for (DeviceState& d : s.device) d.lost = cudaSuccess;
  thread_state().last = cudaSuccess;
  State::Handles left{s.streams, s.events, {}, {}};
  for (const auto& [address, block] : s.blocks) left.blocks.push_back(block.begin);
  for (const auto& [address, bytes] : s.host_blocks) left.host_blocks.push_back(const_cast<char*>(address));
  s.graphs.clear();
  lock.unlock();
  for (CUstream_st* stream : left.streams) cudaStreamDestroy(stream);
  for (CUevent_st* event : left.events) cudaEventDestroy(event);
  for (char* block : left.blocks) cudaFree(block);
  for (char* block : left.host_blocks) cudaFreeHost(block);
}

void fail(const std::string& name, uint64_t nth, cudaError_t code) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.injections.push_back({name, nth, code});
}

std::map<std::string, uint64_t> calls() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.calls;
}

void forget_calls() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.calls.clear();
}

Live live() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto count = [](const auto& set) { return static_cast<int64_t>(set.size()); };
  return {count(s.blocks), count(s.host_blocks), count(s.streams), count(s.events), count(s.graphs)};
}

void set_driver(Driver driver) { state().driver = driver; }
void set_devices(int count) { state().devices = count; }
void set_memory(uint64_t bytes) { state().memory = bytes; }
void set_jitter(int microseconds) { state().jitter = microseconds; }
void set_capability(int device, int major, int minor) {
  state().device[device].major = major;
  state().device[device].minor = minor;
}

}  // namespace standin
