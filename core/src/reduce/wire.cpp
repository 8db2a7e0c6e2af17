// SPDX-License-Identifier: Apache-2.0
#include "reduce/wire.hpp"

#include <mutex>
#include <vector>

#include "base/log.hpp"
#include "call/collective.hpp"

namespace perigee {
namespace {

struct Abandoned {
  Group* group;
  uint64_t request;
  TensorRef x;
};
// Never destroyed: the engine may write into them until the process ends.
struct AbandonedList {
  std::mutex mutex;
  std::vector<Abandoned> list;
};
AbandonedList& abandoned() {
  static auto& list = *new AbandonedList;
  return list;
}

// Mutex held.
void drop_what_is_over() noexcept {
  auto& list = abandoned().list;
  for (size_t i = 0; i < list.size();) {
    bool over = true;
    try {
      over = look_at_collective(*list[i].group, list[i].request);
    } catch (const std::exception& error) {  // it failed, so its memory is nobody's
      write_log(PG_LOG_DEBUG, error.what());
    }
    if (over) {
      std::swap(list[i], list.back());
      list.pop_back();
    } else {
      i++;
    }
  }
}

class GroupWire final : public Wire {
 public:
  GroupWire(Group& among, Group& gradients) : among_(among), gradients_(gradients) {}

  int32_t size() const override { return among_.size(); }
  bool runs_beside(const Device& device) const override { return can_begin(device); }
  uint64_t begin(const Row& row, const SumKind& kind) override { return begin_sum(gradients_, *row[0], kind.mean); }
  bool look(uint64_t request) override { return look_at_collective(gradients_, request); }
  void finish(uint64_t request) override { finish_collective(gradients_, request); }
  void sum(Tensor& x) override { sum_in_place(gradients_, x); }
  void largest(int32_t* numbers, uint32_t count) override { find_largest(among_, numbers, count); }

  void abandon(uint64_t request, std::vector<TensorRef> row) noexcept override {
    std::lock_guard guard(abandoned().mutex);
    drop_what_is_over();
    for (TensorRef& x : row) abandoned().list.push_back({&gradients_, request, std::move(x)});
  }

 private:
  Group &among_, &gradients_;  // live until shutdown
};

}  // namespace

std::unique_ptr<Wire> make_wire(Group& among, Group& gradients) {
  return std::make_unique<GroupWire>(among, gradients);
}

}  // namespace perigee
