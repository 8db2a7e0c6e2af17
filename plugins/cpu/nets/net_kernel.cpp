// SPDX-License-Identifier: Apache-2.0
#include "nets/net_kernel.hpp"

namespace pg::cpu {

NetKernel::NetKernel(NetProgram program, Plan& plan) : net_(std::move(program)) {
  Scratch workspace, packed;
  workspace.take(net_.memory.bytes()), workspace.take(net_.scratchpad_bytes), packed.take(net_.packed_bytes);
  plan.workspace = workspace.bytes();
  plan.pack_bytes[0] = packed.bytes();
}

void NetKernel::pack(uint32_t, const pg_launch& launch, pg_address target) {
  char* block = static_cast<char*>(Scratch(host_pointer(target)).take(net_.packed_bytes));
  for (NetProgram::Weights& w : net_.weights) w.weights.write(launch, block + w.weight, block + w.bias);
}

namespace {

void run_tiles(const NetTiles& tiles, const std::vector<void*>& addresses, void* scratchpad) {
  auto floats = [&](size_t i) { return static_cast<float*>(addresses[i]); };
  Winograd::Call call{floats(0), floats(1), nullptr, floats(2), tiles.add, tiles.relu, scratchpad};
  if (addresses.size() > 3) call.bias = floats(3);
  tiles.winograd.run(call);
}

}  // namespace

void NetKernel::launch(const pg_launch& launch) {
  Scratch scratch(host_pointer(launch.workspace));
  char* buffers = static_cast<char*>(scratch.take(net_.memory.bytes()));
  void* scratchpad = scratch.take(net_.scratchpad_bytes);
  char* packed = static_cast<char*>(Scratch(host_pointer(launch.packed[0])).take(net_.packed_bytes));
  auto address = [&](const NetPlace& place) -> void* {
    switch (place.where) {
      case NetPlace::kInput: return const_cast<void*>(input(launch, static_cast<uint32_t>(place.at)));
      case NetPlace::kOutput: return output(launch, static_cast<uint32_t>(place.at));
      case NetPlace::kPacked: return packed + place.at;
      case NetPlace::kBuffer: break;
    }
    return buffers + net_.memory.offset(place.at);
  };
  std::vector<void*> addresses;
  for (NetWork& work : net_.works) {
    const onednn::OneThread guard(work.one_thread);
    addresses.clear();
    for (const NetPlace& place : work.places) addresses.push_back(address(place));
    if (work.copy) {
      work.copy->run(addresses[0], addresses[1], scratchpad);
    } else if (work.scale) {
      work.scale->run(addresses[0], addresses[1], addresses[2]);
    } else if (work.tiles) {
      run_tiles(*work.tiles, addresses, scratchpad);
    } else {
      addresses.push_back(scratchpad);
      work.step.run(addresses);
    }
  }
}

Kernel* make_net(const Region& piece, Plan& plan) {
  return onednn::translate("net", [&]() -> Kernel* { return new NetKernel(build_net(piece), plan); });
}

}  // namespace pg::cpu
