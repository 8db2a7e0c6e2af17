// SPDX-License-Identifier: Apache-2.0
// Sums gradients over processes, in buckets, which start while a backward pass still computes the others.
//
// Passes put gradients into buckets as they come. A bucket starts when all of its parameters have had as many passes as
// they had in the step before, and all buckets before it have started: all processes start the same ones in the same
// order, wherever in their passes. Before a step they tell each other which parameters have gradients, and whether one
// has seen a gradient after it was sent: what was guessed wrong is summed again, on all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "reduce/buckets.hpp"
#include "reduce/wire.hpp"
#include "tape/listener.hpp"

namespace perigee {

// Of one thread at a time.
class Reducer final : public GradientListener {
 public:
  using Scale = std::function<void(Tensor&, double)>;  // in place
  // `overlaps` false: nothing starts before `sum` is called.
  Reducer(std::unique_ptr<Wire> wire, std::vector<TensorRef> params, const BucketSizes& sizes, bool overlaps,
          Scale scale);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Gradients that come from now on may be sent, and count so much; without a weight none are.
  void set_sending(std::optional<double> weight) { sending_ = weight; }

  // Gradients of the parameters, times this process's weight, summed over all processes. A parameter that has one on
  // some process only counts as zero on the others; one that has none anywhere keeps none. Called by all. Where memory
  // is short it throws PG_E_OUT_OF_MEMORY and goes on when it is called again; other failures are for ever.
  void sum(double weight);

  const std::vector<uint8_t>& any() const { return any_; }  // which have a gradient somewhere, since the last sum
  uint32_t started() const { return started_; }             // buckets, since the last sum
  uint32_t early() const { return early_; }                 // of the last sum: those that had started before it

  void arrived(uint32_t number, Tensor& gradient, Tensor* own) override;
  void collected(uint32_t number, Tensor& gradient) override;

 private:
  // What is known of a parameter.
  struct Place {
    int32_t bucket = -1, part = -1;
    uint32_t seen = 0, expected = 0;  // passes: since the last step, in the step before
    bool sent = false;
    MetaRef meta;  // of the parameter, when buckets were made
    Device* device = nullptr;
    StorageRef storage;  // of the gradient that was sent, behind its pass
    uint64_t version = 0;
    NodeRef leaf;  // that is listened to
  };
  // A gradient that is summed where it lies, or in a copy.
  struct Direct {
    TensorRef own, flat;
    uint64_t request = 0;
    bool scaled = false;
  };
  // What all processes have told each other before a step.
  struct Agreed {
    std::vector<uint8_t> any;
    bool again;        // buckets are made anew, and what has started counts for nothing
    uint32_t started;  // buckets, by the one that has started most
    bool mean;
  };

  bool is_mean(double weight) const { return wire_->size() == 2 && weight == 0.5; }
  TensorRef* gradient(uint32_t number) const { return gradient_of(*params_[number]); }
  void begin(Tensor& flat, bool& scaled, uint64_t& request, double weight, bool mean);
  void start_full();
  void keep_going();
  void agree(double weight);
  bool has_moved() const;
  bool has_changed() const;
  void discard();
  void make_buckets();
  void listen();
  void end_listening();
  void open_direct();
  void fill(Bucket& bucket);
  void finish(Bucket& bucket);
  void hand_out(Bucket& bucket);
  void end_direct();
  void forget();

  std::unique_ptr<Wire> wire_;
  std::vector<TensorRef> params_;
  BucketSizes sizes_;
  bool overlaps_;
  Scale scale_;
  std::vector<Place> places_;
  BucketLayout layout_;
  std::vector<Direct> direct_;  // of a step
  std::vector<uint8_t> any_, here_;
  std::optional<double> sending_, sent_;  // sent_: what those count that have been sent
  std::optional<Agreed> agreed_;
  uint32_t started_ = 0, looked_ = 0, early_ = 0;
  bool stale_ = false;
};

}  // namespace perigee
