// SPDX-License-Identifier: Apache-2.0
#include "call/device_collective.hpp"

#include "builder/builder.hpp"
#include "tensor/kept.hpp"

namespace perigee {
namespace {

const char* name_of(uint32_t kind) {
  switch (kind) {
    case PG_COLLECTIVE_ALL_REDUCE: return "all_reduce";
    case PG_COLLECTIVE_REDUCE: return "reduce";
    case PG_COLLECTIVE_BROADCAST: return "broadcast";
    case PG_COLLECTIVE_ALL_GATHER: return "all_gather";
    default: pg::fail_argument(pg::format("kind %u is none of devices of one process", kind));
  }
}

void check_row(const char* name, const std::vector<Device*>& devices, const std::vector<Tensor*>& inputs,
               const std::vector<Tensor*>& outputs, int64_t factor) {
  const Meta& first = *inputs[0]->meta;
  for (size_t k = 0; k < devices.size(); k++) {
    const Meta &in = *inputs[k]->meta, &out = *outputs[k]->meta;
    if (inputs[k]->device != devices[k] || outputs[k]->device != devices[k])
      pg::fail_argument(pg::format("%s: tensor %zu is on %s; expected %s", name, k, inputs[k]->device->name.c_str(),
                                   devices[k]->name.c_str()));
    if (!in.contiguous || !out.contiguous)
      pg::fail_argument(pg::format("%s: tensor %zu does not lie densely", name, k));
    if (in.dtype != first.dtype || out.dtype != first.dtype || in.numel != first.numel ||
        out.numel != first.numel * factor)
      pg::fail_argument(pg::format("%s: %s %s to %s %s of member %zu beside %s %s", name, pg::dtype_name(in.dtype),
                                   shape_text(in).c_str(), pg::dtype_name(out.dtype), shape_text(out).c_str(), k,
                                   pg::dtype_name(first.dtype), shape_text(first).c_str()));
  }
}

}  // namespace

void run_on_devices(int64_t group, uint32_t kind, uint32_t reduction, int32_t root,
                    const std::vector<std::vector<Tensor*>>& inputs, const std::vector<std::vector<Tensor*>>& outputs) {
  const char* name = name_of(kind);
  const std::vector<Device*> devices = devices_of_group(group);
  const auto count = static_cast<int32_t>(devices.size());
  if (root < 0 || root >= count) pg::fail_argument(pg::format("%s: member %d; expected 0..%d", name, root, count - 1));
  const bool gathers = kind == PG_COLLECTIVE_ALL_GATHER;
  for (size_t r = 0; r < inputs.size(); r++) check_row(name, devices, inputs[r], outputs[r], gathers ? count : 1);
  std::vector<std::vector<Collective>> rows;
  std::vector<uint32_t> streams(devices.size(), ambient().stream);
  for (size_t r = 0; r < inputs.size(); r++) {
    if (inputs[r][0]->meta->numel == 0) continue;
    std::vector<Collective> row;
    for (int32_t k = 0; k < count; k++) {
      Tensor &x = *inputs[r][static_cast<size_t>(k)], &y = *outputs[r][static_cast<size_t>(k)];
      const bool reads = kind != PG_COLLECTIVE_BROADCAST || k == root;
      const bool writes = kind == PG_COLLECTIVE_BROADCAST ? k != root : kind != PG_COLLECTIVE_REDUCE || k == root;
      if (reads && x.storage) use_on(*x.storage, streams[static_cast<size_t>(k)], false);
      if (writes && y.storage) {
        use_on(*y.storage, streams[static_cast<size_t>(k)], true);
        raise_version(*y.storage);
      }
      Collective call{kind};
      call.reduction = reduction;
      call.dtype = x.meta->dtype;
      call.peer = root;
      call.count = static_cast<uint64_t>(x.meta->numel);
      call.input = x.address(), call.output = y.address();
      call.input_bytes = x.meta->bytes, call.output_bytes = y.meta->bytes;
      call.what = name;
      row.push_back(call);
    }
    rows.push_back(std::move(row));
  }
  queue_on_devices(group, rows, streams);
}

}  // namespace perigee
