// SPDX-License-Identifier: Apache-2.0
// Between the stand-ins of NVRTC, which compiles, and of the runtime, which loads and launches what was compiled.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>

namespace standin {

// A shared object as "code": behind a mark and its size, as CUDA's code tells its own.
std::string as_code(const std::string& object);

// A kernel and the arguments of a launch, which are copied.
template <class... P>
std::function<void()> bind(void (*kernel)(P...), void** arguments) {
  size_t i = 0;
  std::tuple<P...> values{*static_cast<P*>(arguments[i++])...};
  return [kernel, values] { std::apply(kernel, values); };
}

}  // namespace standin
