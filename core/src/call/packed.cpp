// SPDX-License-Identifier: Apache-2.0
#include "call/packed.hpp"

#include "base/ambient.hpp"
#include "tensor/kept.hpp"

namespace perigee {
namespace {

// Forms of one storage that are kept: enough for a few uses of a weight, not for every window over a long tensor.
constexpr size_t kPackedForms = 8;

StorageRef pack(Signature& s, Device& device, uint32_t input, const pg_launch& launch) {
  StorageRef form;
  try {
    form = allocate(device, s.pack_bytes[input]);
  } catch (const pg::Error& e) {
    if (e.code != PG_E_OUT_OF_MEMORY) throw;
    return nullptr;  // it only saves time
  }
  pg_error error = pg::make_error();
  int32_t code =
      s.kernel.table->pack(s.kernel.self, s.kernel.index, s.prepared, input, &launch, form->address(), &error);
  if (code != PG_OK) pg::check(code, error);
  return form;
}

}  // namespace

StorageRef packed_form(Signature& s, Tensor& x, uint32_t input, const pg_launch& launch) {
  Storage& storage = *x.storage;
  const uint64_t version = storage.version.load(std::memory_order_relaxed);
  auto of_this = [&]() -> Kept::Packed* {
    for (Kept::Packed& p : kept_of(storage).packed)
      if (p.signature == s.serial && p.input == input && p.offset == x.offset) return &p;
    return nullptr;
  };
  {
    std::lock_guard guard(kept_mutex());
    Kept::Packed* entry = of_this();
    if (entry == nullptr) {
      std::vector<Kept::Packed>& forms = kept_of(storage).packed;
      if (forms.size() == kPackedForms) forms.erase(forms.begin());  // the oldest goes
      forms.push_back({s.serial, input, x.offset, version, nullptr});
      return nullptr;
    }
    if (entry->version != version) {  // changed since: forget the old form, wait for a second use
      *entry = {s.serial, input, x.offset, version, nullptr};
      return nullptr;
    }
    if (entry->being_made) return nullptr;  // by another thread: this call takes the input as it is
    if (entry->form) {
      if (!storage.device->synchronous) use_on(*entry->form, ambient().stream, false);
      return entry->form;
    }
    entry->being_made = true;
  }
  // Without the mutex: others' weights are found meanwhile.
  StorageRef form;
  auto settle = [&] {
    std::lock_guard guard(kept_mutex());
    Kept::Packed* entry = of_this();  // it may have gone, or be of a later version
    if (entry == nullptr || entry->version != version) return;
    entry->being_made = false;
    entry->form = form;
  };
  try {
    form = pack(s, *storage.device, input, launch);
  } catch (...) {
    settle();
    throw;
  }
  settle();
  return form;
}

}  // namespace perigee
