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
  std::lock_guard guard(kept_mutex());
  Storage& storage = *x.storage;
  std::vector<Kept::Packed>& forms = kept_of(storage).packed;
  const uint64_t version = storage.version.load(std::memory_order_relaxed);
  Kept::Packed* entry = nullptr;
  for (Kept::Packed& p : forms)
    if (p.signature == s.serial && p.input == input && p.offset == x.offset) entry = &p;
  if (entry == nullptr) {
    if (forms.size() == kPackedForms) forms.erase(forms.begin());  // the oldest goes
    forms.push_back({s.serial, input, x.offset, version, nullptr});
    return nullptr;
  }
  if (entry->version != version) {  // changed since: forget the old form, wait for a second use
    *entry = {s.serial, input, x.offset, version, nullptr};
    return nullptr;
  }
  if (!entry->form)
    entry->form = pack(s, *storage.device, input, launch);
  else if (!storage.device->synchronous)
    use_on(*entry->form, ambient().stream, false);
  return entry->form;
}

}  // namespace perigee
