// SPDX-License-Identifier: Apache-2.0
// Sums gradients over members, which are replicas of a model: one of each process, or devices of one process. In
// buckets, which start while a backward pass still computes the others.
//
// Passes put gradients into buckets as they come. A bucket starts when all of its parameters have had as many passes as
// they had in the step before, on all members of this process, and all buckets before it have started: all processes
// start the same ones in the same order, wherever in their passes. Before a step they tell each other which parameters
// have gradients, and whether one has seen a gradient after it was sent: what was guessed wrong is summed again, on
// all.
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
  using Weights = std::vector<double>;                 // by member of this process
  // `overlaps` false: nothing starts before `sum` is called. Gradients of several members are all copied
  // (BucketSizes::direct is one's).
  Reducer(std::unique_ptr<Wire> wire, Members members, const BucketSizes& sizes, bool overlaps, Scale scale);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // Gradients that come from now on may be sent, and count so much; without a weight none are.
  void set_sending(std::optional<Weights> weights);

  // Gradients of the parameters, times their member's weight, summed over all members: those of all, or with `to_all`
  // false of the first one alone. A parameter that has one on some member only counts as zero on the others; one that
  // has none anywhere keeps none. Called by all. Where memory is short it throws PG_E_OUT_OF_MEMORY and goes on when it
  // is called again; where something else has failed the next call sums what gradients are then.
  void sum(const Weights& weights, bool to_all = true);

  size_t members() const { return members_.size(); }        // of this process
  const std::vector<uint8_t>& any() const { return any_; }  // which have a gradient somewhere: of the last sum
  uint32_t started() const { return started_; }             // buckets, since the last sum
  uint32_t early() const { return early_; }                 // of the last sum: those that had started before it

  void arrived(uint32_t number, Tensor& gradient, Tensor* own) override;
  void collected(uint32_t number, Tensor& gradient) override;

 private:
  // What is known of a parameter of a member.
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

  // Places are numbered member after member.
  Tensor& param(size_t place) const { return *members_[place / count_][place % count_]; }
  TensorRef* gradient(size_t place) const { return gradient_of(param(place)); }
  Place& place_of(size_t member, uint32_t number) { return places_[member * count_ + number]; }
  bool is_mean(const Weights& weights) const { return wire_->size() == 2 && weights.size() == 1 && weights[0] == 0.5; }
  void weigh(Tensor& flat, bool& scaled, double weight, bool mean);
  void close(Share& share, double weight, bool mean);
  void start(Bucket& bucket, bool mean);
  void start_full();
  void keep_going();
  void agree(const Weights& weights, bool to_all);
  void sum_agreed(const Weights& weights);
  bool has_moved() const;
  bool has_changed() const;
  void open_shares(size_t count);
  void discard();
  void make_buckets();
  void listen();
  void end_listening();
  void open_direct();
  void fill(Bucket& bucket, size_t member);
  void finish(Bucket& bucket);
  void hand_out(Bucket& bucket);
  void hand_out(Bucket& bucket, size_t member);
  void end_direct();
  void abandon();
  void forget();

  std::unique_ptr<Wire> wire_;
  Members members_;
  size_t count_;  // parameters of one
  BucketSizes sizes_;
  bool overlaps_;
  Scale scale_;
  std::vector<Place> places_;
  BucketLayout layout_;
  std::vector<Direct> direct_;  // of a step
  std::vector<uint8_t> any_, here_;
  std::optional<Weights> sending_, sent_;  // sent_: what those count that were sent first
  std::optional<Agreed> agreed_;
  uint32_t started_ = 0, looked_ = 0, early_ = 0;
  bool stale_ = false, to_all_ = true;
};

}  // namespace perigee
