// SPDX-License-Identifier: Apache-2.0
// Devices are given their work one after the other, so a row starts when the last one's is given to it: by then streams
// of the others have been given all of their pass. Marks (mark_done) say how far they must be.
#include "base/ambient.hpp"
#include "call/device_collective.hpp"
#include "reduce/wire.hpp"

namespace perigee {
namespace {

// Streams of their own: of what fills rows, and of sums, which are behind each other.
constexpr uint32_t kFilling = 30, kSumming = 31;

// Requests are over for who comes behind them on a stream.
class DeviceWire final : public Wire {
 public:
  explicit DeviceWire(std::vector<Device*> devices) : devices_(std::move(devices)) {}

  int32_t size() const override { return 1; }
  bool runs_beside(const Device&) const override { return true; }
  uint32_t filling_stream(uint32_t) const override { return kFilling; }
  void filled(Tensor& x) override { mark_done(*x.storage, true); }
  uint64_t begin(const Row& row, const SumKind& kind) override {
    Scoped<uint32_t> beside(ambient().stream, kSumming);
    // A group whose call has failed is another one the next time.
    const int64_t group = find_device_group(devices_);
    if (group == 0) pg::fail(PG_E_FAILED_PRECONDITION, "no engine sums over these devices any more");
    run_on_devices(group, kind.to_all ? PG_COLLECTIVE_ALL_REDUCE : PG_COLLECTIVE_REDUCE, PG_REDUCE_SUM, 0, {row},
                   {row});
    for (Tensor* x : row) mark_done(*x->storage, true);
    return 1;
  }
  bool look(uint64_t) override { return true; }
  void finish(uint64_t) override {}
  void sum(Tensor&) override { pg::fail(PG_E_INTERNAL, "sums of devices begin, and nobody waits for them"); }
  void largest(int32_t*, uint32_t) override {}
  void abandon(uint64_t, std::vector<TensorRef>) noexcept override {}

 private:
  std::vector<Device*> devices_;
};

}  // namespace

std::unique_ptr<Wire> make_device_wire(std::vector<Device*> devices) {
  return std::make_unique<DeviceWire>(std::move(devices));
}

}  // namespace perigee
