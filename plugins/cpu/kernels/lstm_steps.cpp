// SPDX-License-Identifier: Apache-2.0
// lstm_steps and its way back: the product with the state's weights and the gates, step by step. The weights are laid
// out for the product once for all steps; products of few rows, which only read them, walk them to and fro, so that
// what a step has read last is still near when the next one begins.
#include "copy.hpp"
#include "kernels/lstm.hpp"
#include "linalg/repeated.hpp"

namespace cpu {
namespace {

class LstmLoop : public LstmRows {
 protected:
  using Scratch = pg::cpu::Scratch;

  // A product of [n, k] by b, the weights: one for each step. `back`: by the weights as they lie, [k, columns]; else k
  // lies along their rows.
  LstmLoop(const pg_tensor& state, int64_t steps, bool reverse, int64_t columns, int64_t k, bool back)
      : LstmRows(state),
        steps_(steps),
        step_bytes_(rows_ * size_ * kStorageBytes[stored_]),
        columns_(columns),
        reverse_(reverse) {
    pg::ProductShape s = shape_of(state, columns, k);
    if (back) s.b = {columns, 1};
    if (steps > 1) product_ = pg::cpu::make_repeated_product(s);
    if (product_ != nullptr) return;
    turns_ = back;
    product_ = pg::cpu::make_product(shape_of(state, columns, k), true);
  }

  struct Rooms {
    void *product, *packed, *result, *turned;
  };
  // `result`: whether the product's result lies here.
  Rooms rooms(Scratch& scratch, bool result) const {
    Rooms r{};
    r.product = scratch.take(product_->workspace());
    r.packed = scratch.take(product_->packed_bytes());
    if (result) r.result = scratch.take(static_cast<uint64_t>(rows_ * columns_ * kStorageBytes[stored_]));
    r.turned = scratch.take(static_cast<uint64_t>(turns_ ? kGates * size_ * size_ * kStorageBytes[stored_] : 0));
    return r;
  }

  // b as the product wants it: as the host has kept it, or laid out now.
  const void* laid_out(const void* b, const void* kept, const Rooms& room) const {
    if (kept != nullptr || product_->packed_bytes() == 0 || steps_ < 2) return kept;
    product_->pack(b, room.packed);
    return room.packed;
  }

  int64_t place(int64_t step) const { return reverse_ ? steps_ - 1 - step : step; }

  int64_t steps_, step_bytes_, columns_;
  bool reverse_, turns_ = false;  // whether the weights have to be turned for the product
  std::unique_ptr<pg::cpu::Product> product_;

 private:
  static pg::ProductShape shape_of(const pg_tensor& state, int64_t columns, int64_t k) {
    pg::ProductShape s;
    s.dtype = pg::dtype_of(state);
    s.m = state.shape[0], s.n = columns, s.k = k;
    s.a = {k, 1}, s.b = {1, k}, s.c = {columns, 1};
    return s;
  }
};

class LstmSteps final : public LstmLoop {
 public:
  LstmSteps(const pg::KernelCall& call, pg::Plan& plan)
      : LstmLoop(call.in(2), call.in(0).shape[0], call.attr<bool>("reverse"), kGates * call.in(2).shape[1],
                 call.in(2).shape[1], false),
        keep_(call.attr<bool>("keep")) {
    Scratch scratch;
    rooms(scratch, true);
    plan.workspace = scratch.bytes();
    plan.pack_bytes[1] = product_->packed_bytes();
  }
  void launch(const pg_launch& launch) override {
    if (step_bytes_ == 0) return;
    Scratch scratch(pg::host_pointer(launch.workspace));
    const Rooms room = rooms(scratch, true);
    const void* weight = pg::input(launch, 1);
    const void* kept = launch.packed == nullptr ? nullptr : pg::host_pointer<const void>(launch.packed[1]);
    const void* packed = laid_out(weight, kept, room);
    const auto* h = pg::input<const char>(launch, 2);
    const auto* c = pg::input<const char>(launch, 3);
    for (int64_t i = 0; i < steps_; i++) {
      product_->run({h, weight, nullptr, room.result, room.product, packed, i % 2 == 1});
      const int64_t t = place(i);
      char* y = pg::output<char>(launch, 0) + t * step_bytes_;
      char* next = pg::output<char>(launch, 1) + (keep_ ? t * step_bytes_ : 0);
      char* gates = keep_ ? pg::output<char>(launch, 2) + t * kKept * step_bytes_ : nullptr;
      forward({pg::input<const char>(launch, 0) + t * kGates * step_bytes_, static_cast<const char*>(room.result), c, y,
               next, gates});
      h = y, c = next;
    }
  }
  void pack(uint32_t, const pg_launch& launch, pg_address target) override {
    product_->pack(pg::input(launch, 1), pg::host_pointer(target));
  }

 private:
  bool keep_;
};
PG_KERNEL("lstm_steps", LstmSteps, 0, 1U << 1);

class LstmStepsGrad final : public LstmLoop {
 public:
  LstmStepsGrad(const pg::KernelCall& call, pg::Plan& plan)
      : LstmLoop(call.in(6), call.in(3).shape[0], call.attr<bool>("reverse"), call.in(6).shape[1],
                 kGates * call.in(6).shape[1], true) {
    Scratch scratch;
    rooms(scratch, false);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (step_bytes_ == 0) return;
    Scratch scratch(pg::host_pointer(launch.workspace));
    const Rooms room = rooms(scratch, false);
    if (turns_) turn(*launch.inputs[5], launch.input[5], room.turned);
    const void* weight = turns_ ? room.turned : pg::input(launch, 5);
    const void* packed = laid_out(weight, nullptr, room);
    const auto *dy = pg::input<const char>(launch, 0), *dh = pg::input<const char>(launch, 1),
               *dc = pg::input<const char>(launch, 2);
    const auto *gates = pg::input<const char>(launch, 3), *states = pg::input<const char>(launch, 4);
    auto *dh0 = pg::output<char>(launch, 1), *dc0 = pg::output<char>(launch, 2);
    for (int64_t i = steps_ - 1; i >= 0; i--) {
      const int64_t t = place(i);
      const char* before = i == 0 ? pg::input<const char>(launch, 6) : states + place(i - 1) * step_bytes_;
      char* dx = pg::output<char>(launch, 0) + t * kGates * step_bytes_;
      back({dh, dy == nullptr ? nullptr : dy + t * step_bytes_, dc, gates + t * kKept * step_bytes_, before, dx, dc0});
      product_->run({dx, weight, nullptr, dh0, room.product, packed, i % 2 == 1});
      dh = dh0, dc = dc0;
    }
  }

 private:
  // [4 size, size] as [size, 4 size].
  void turn(const pg_tensor& weight, pg_address address, void* to) const {
    const int64_t shape[2] = {size_, kGates * size_}, across[2] = {1, size_}, dense[2] = {kGates * size_, 1};
    pg_tensor source = at_address(weight, address), target = source;
    source.shape = target.shape = shape;
    source.stride = across, target.stride = dense;
    target.buffer = reinterpret_cast<uint64_t>(to), target.offset = 0;
    copy_tensor(target, source);
  }
};
PG_KERNEL("lstm_steps_grad", LstmStepsGrad);

}  // namespace
}  // namespace cpu
