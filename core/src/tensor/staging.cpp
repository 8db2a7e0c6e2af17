// SPDX-License-Identifier: Apache-2.0
#include "tensor/staging.hpp"

#include "base/ambient.hpp"

namespace perigee {

namespace {

constexpr int64_t kMost = int64_t{256} << 20;

}  // namespace

TensorRef make_staging(Device& target, const MetaRef& meta) {
  if (target.synchronous || meta->bytes == 0 || meta->bytes > kMost) return nullptr;
  auto staging = std::make_unique<HostStaging>();
  try {
    staging->memory = target.staging(static_cast<uint64_t>(meta->bytes));
  } catch (const pg::Error& error) {
    if (error.code != PG_E_OUT_OF_MEMORY) throw;
    return nullptr;
  }
  staging->block.buffer = reinterpret_cast<uint64_t>(staging->memory.data);
  staging->block.bytes = staging->memory.bytes;
  staging->block.asked = static_cast<uint64_t>(meta->bytes);
  StorageRef storage = StorageRef::adopt(new Storage());
  storage->device = &default_device();
  storage->bytes = staging->block.asked;
  storage->block = &staging->block;
  storage->staging = staging.release();
  return make_tensor(meta, std::move(storage), 0, &default_device());
}

bool upload_staging(Tensor& source, Tensor& target) {
  HostStaging* staging = source.storage->staging;
  if (staging == nullptr || staging->memory.device != target.device) return false;
  const pg_address from = source.address();
  staging->read =
      target.device->upload_pinned(target.address(), reinterpret_cast<const void*>(from.buffer + from.offset),
                                   static_cast<uint64_t>(source.meta->bytes), ambient().stream);
  return true;
}

void drop_staging(HostStaging* staging) {
  const Device::Pinned memory = staging->memory;
  memory.device->release(memory, std::move(staging->read));
  delete staging;
}

}  // namespace perigee
