// SPDX-License-Identifier: Apache-2.0
#include "epilogue.hpp"

#include "dtypes.hpp"
#include "launch.hpp"
#include "walk.hpp"

namespace cuda {
namespace {

template <class S, int V>
struct alignas(sizeof(S) * V) Group {
  S value[V];
};

// Groups of V elements, which have one channel.
template <class S, int V>
__global__ void __launch_bounds__(kThreads)
    epilogue_kernel(Group<S, V>* y, Epilogue epilogue, int64_t groups, Extent plane, Extent channels, bool narrow) {
  auto* bias = static_cast<const S*>(epilogue.bias);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < groups; i += gridDim.x * int64_t{kThreads}) {
    Compute<S> addend = 0;
    if (bias != nullptr) {
      int64_t rest = i, channel = plane.split(rest, narrow);
      channels.split(channel, narrow);
      addend = unpack(bias[channel * epilogue.bias_stride]);
    }
    Group<S, V> group = y[i];
    for (int v = 0; v < V; v++) {
      group.value[v] = pack<S>(activate(epilogue.activation, unpack(group.value[v]) + addend));
    }
    y[i] = group;
  }
}

template <class S, int V>
void run(cudaStream_t stream, int64_t blocks, int64_t channels, int64_t plane, const Epilogue& epilogue, void* y) {
  int64_t groups = blocks * channels * (plane / V);
  launch(stream, grid_for(groups), epilogue_kernel<S, V>, static_cast<Group<S, V>*>(y), epilogue, groups,
         Extent(plane / V), Extent(channels), groups < kNarrow);
}

}  // namespace

void run_epilogue(cudaStream_t stream, uint32_t dtype, int64_t blocks, int64_t channels, int64_t plane,
                  const Epilogue& epilogue, void* y) {
  if (blocks * channels * plane == 0) return;
  // Without a bias there are no channels: all of it is one plane.
  if (epilogue.bias == nullptr) plane *= blocks * channels, blocks = channels = 1;
  with_float(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    constexpr int kWide = 16 / sizeof(S);
    bool wide = plane % kWide == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0;
    auto* chosen = wide ? run<S, kWide> : run<S, 1>;
    chosen(stream, blocks, channels, plane, epilogue, y);
  });
}

}  // namespace cuda
