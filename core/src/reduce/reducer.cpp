// SPDX-License-Identifier: Apache-2.0
#include "reduce/reducer.hpp"

#include <algorithm>

#include "base/ambient.hpp"
#include "builder/builder.hpp"
#include "tensor/kept.hpp"

namespace perigee {
namespace {

bool is_leaf(const Tensor& x) { return x.node && x.node->kind == NodeKind::leaf; }

}  // namespace

Reducer::Reducer(std::unique_ptr<Wire> wire, std::vector<TensorRef> params, const BucketSizes& sizes, bool overlaps,
                 Scale scale)
    : wire_(std::move(wire)),
      params_(std::move(params)),
      sizes_(sizes),
      overlaps_(overlaps),
      scale_(std::move(scale)),
      places_(params_.size()) {}

Reducer::~Reducer() {
  end_listening();
  for (Bucket& bucket : layout_.buckets)
    if (bucket.request != 0) wire_->abandon(bucket.request, std::move(bucket.flat));
  for (Direct& one : direct_)
    if (one.request != 0) wire_->abandon(one.request, std::move(one.flat));
}

// ---- while a pass runs ----

void Reducer::arrived(uint32_t number, Tensor& gradient, Tensor* own) {
  Place& place = places_[number];
  place.seen++;
  if (!sending_ || place.bucket < 0 || place.seen != place.expected) {
    stale_ |= place.sent;
    return;
  }
  Bucket& bucket = layout_.buckets[static_cast<size_t>(place.bucket)];
  open_bucket(bucket, params_);
  TensorRef whole = TensorRef::share(&gradient);
  if (own != nullptr) whole = call1(role_op(Role::accumulate), {own, &gradient});
  copy_elements(*bucket.parts[static_cast<size_t>(place.part)], *whole);
  if (sent_ && *sent_ != *sending_) stale_ = true;
  place.sent = true;
  place.storage = nullptr;
  sent_ = sending_;
  bucket.waiting--;
  start_full();
  keep_going();
}

void Reducer::collected(uint32_t number, Tensor& gradient) {
  Place& place = places_[number];
  if (!place.sent || place.seen != place.expected) return;
  place.storage = gradient.storage;
  place.version = gradient.storage->version.load(std::memory_order_relaxed);
}

// Of two processes that count the same, the engine's mean has the bits that the sum of halves has, and halves nothing
// before.
void Reducer::begin(Tensor& flat, bool& scaled, uint64_t& request, double weight, bool mean) {
  const bool beside = wire_->runs_beside(*flat.device);
  if (!scaled && weight != 1 && !(beside && mean)) scale_(flat, weight);
  scaled = true;
  if (beside) request = wire_->begin(flat, mean);
}

// Starts the buckets that are full, in their order. Where the engine computes nothing beside, they wait for the step.
void Reducer::start_full() {
  for (; started_ < layout_.buckets.size(); started_++) {
    Bucket& bucket = layout_.buckets[started_];
    if (bucket.waiting > 0 || !wire_->runs_beside(*bucket.device)) return;
    begin(*bucket.flat, bucket.scaled, bucket.request, *sent_, is_mean(*sent_));
  }
}

void Reducer::keep_going() {
  if (looked_ >= started_) return;
  Bucket& bucket = layout_.buckets[looked_];
  if (!wire_->look(bucket.request)) return;
  bucket.request = 0;
  bucket.over = true;
  looked_++;
}

// ---- before a step ----

void Reducer::sum(double weight) {
  Scoped<bool> plain(ambient().grad_enabled, false);
  Scoped<const Autocast*> as_given(ambient().autocast, nullptr);
  if (!agreed_) agree(weight);
  if (agreed_->again) {
    discard();
    make_buckets();
    agreed_->again = false;
  }
  // All memory first: what has begun cannot be taken back.
  for (Bucket& bucket : layout_.buckets) open_bucket(bucket, params_);
  open_direct();
  for (; started_ < layout_.buckets.size(); started_++) {
    Bucket& bucket = layout_.buckets[started_];
    if (!bucket.scaled) fill(bucket);
    begin(*bucket.flat, bucket.scaled, bucket.request, weight, agreed_->mean);
  }
  for (Direct& one : direct_)
    if (one.request == 0) begin(*one.flat, one.scaled, one.request, weight, agreed_->mean);
  for (Bucket& bucket : layout_.buckets) {
    finish(bucket);
    hand_out(bucket);
  }
  end_direct();
  for (Place& place : places_) {
    place.expected = place.seen;
    place.seen = 0;
  }
  forget();
  agreed_ = std::nullopt;
}

// Most steps are as the one before, for all of them: then there is one exchange.
void Reducer::agree(double weight) {
  std::vector<uint8_t> here(params_.size());
  for (uint32_t i = 0; i < params_.size(); i++) here[i] = gradient(i) != nullptr && *gradient(i) ? 1 : 0;
  const bool mean = is_mean(weight);
  if ((sent_ && *sent_ != weight) || has_moved() || has_changed()) stale_ = true;
  int32_t said[5] = {here != here_, stale_, static_cast<int32_t>(started_), mean, !mean};
  wire_->largest(said, 5);
  std::vector<uint8_t> any = any_;
  if (said[0] != 0) {
    std::vector<int32_t> all(here.begin(), here.end());
    wire_->largest(all.data(), static_cast<uint32_t>(all.size()));
    any.assign(all.begin(), all.end());
    here_ = std::move(here);
  }
  const bool mixed = said[3] != 0 && said[4] != 0, again = said[1] != 0 || mixed || any != any_;
  early_ = started_;
  agreed_ = Agreed{std::move(any), again, static_cast<uint32_t>(said[2]), mean && !mixed};
}

// Whether a parameter has become another tensor than its bucket was made for.
bool Reducer::has_moved() const {
  for (size_t i = 0; i < places_.size(); i++) {
    const Place& place = places_[i];
    const Tensor& p = *params_[i];
    if (place.bucket < 0 || (p.meta.get() == place.meta.get() && p.device == place.device)) continue;
    if (p.device != place.device || p.meta->dtype != place.meta->dtype || !same_shape(*p.meta, *place.meta))
      return true;
  }
  return false;
}

// Whether something was sent that is not the parameter's gradient now.
bool Reducer::has_changed() const {
  for (uint32_t i = 0; i < places_.size(); i++) {
    const Place& place = places_[i];
    if (!place.sent) continue;
    const TensorRef* own = gradient(i);
    if (own == nullptr || !*own || (*own)->storage.get() != place.storage.get()) return true;
    if (place.storage->version.load(std::memory_order_relaxed) != place.version) return true;
  }
  return false;
}

// Starts and ends what some process has started, for nothing.
void Reducer::discard() {
  const uint32_t count = std::min<uint32_t>(agreed_->started, static_cast<uint32_t>(layout_.buckets.size()));
  for (uint32_t b = started_; b < count; b++) open_bucket(layout_.buckets[b], params_);
  for (; started_ < count; started_++) {
    Bucket& bucket = layout_.buckets[started_];
    bucket.request = wire_->begin(*bucket.flat, agreed_->mean);
  }
  for (uint32_t b = 0; b < count; b++) finish(layout_.buckets[b]);
}

void Reducer::make_buckets() {
  any_ = agreed_->any;
  layout_ = lay_out(params_, any_, sizes_);
  for (Place& place : places_) place.bucket = place.part = -1;
  for (size_t b = 0; b < layout_.buckets.size(); b++)
    for (size_t n = 0; n < layout_.buckets[b].index.size(); n++) {
      const uint32_t i = layout_.buckets[b].index[n];
      places_[i].bucket = static_cast<int32_t>(b), places_[i].part = static_cast<int32_t>(n);
      places_[i].meta = params_[i]->meta, places_[i].device = params_[i]->device;
    }
  forget();
  listen();
}

// One bucket alone starts when all has been computed: then nobody listens.
void Reducer::listen() {
  end_listening();
  const size_t count = layout_.buckets.size() + (layout_.direct.empty() ? 0 : 1);
  if (!overlaps_ || count < 2) return;
  for (uint32_t i = 0; i < params_.size(); i++) {
    Place& place = places_[i];
    if (!is_leaf(*params_[i])) continue;
    if (place.seen == 0) place.seen = *gradient(i) ? 1 : 0;
    place.leaf = params_[i]->node;
    listen_to(*place.leaf, *this, i);
  }
}

void Reducer::end_listening() {
  for (Place& place : places_) {
    if (place.leaf) perigee::end_listening(*place.leaf, *this);
    place.leaf = nullptr;
  }
}

// Sums of what is not copied, unless it lies otherwise.
void Reducer::open_direct() {
  for (size_t n = direct_.size(); n < layout_.direct.size(); n++) {
    const uint32_t i = layout_.direct[n];
    Tensor& p = *params_[i];
    TensorRef own = gradient(i) != nullptr ? *gradient(i) : nullptr;
    if (!own) {
      own = make_dense(*p.device, dense_meta(*p.meta, p.meta->dtype), "all_reduce");
      fill_with_zeros(*own);
      if (gradient(i) != nullptr) *gradient(i) = own;
    }
    TensorRef flat = own->meta->contiguous ? own : copy_dense(*own, own->meta->dtype);
    direct_.push_back({std::move(own), std::move(flat)});
  }
}

// What no pass has put into its bucket.
void Reducer::fill(Bucket& bucket) {
  for (size_t n = 0; n < bucket.index.size(); n++) {
    const uint32_t i = bucket.index[n];
    if (places_[i].sent) continue;
    if (const TensorRef* own = gradient(i); own != nullptr && *own) {
      copy_elements(*bucket.parts[n], **own);
    } else {
      fill_with_zeros(*bucket.parts[n]);
    }
  }
}

void Reducer::finish(Bucket& bucket) {
  if (bucket.over) return;
  if (bucket.request != 0) {
    wire_->finish(bucket.request);
    bucket.request = 0;
  } else {
    wire_->sum(*bucket.flat);
  }
  bucket.over = true;
}

// The sums become the gradients: where nobody else has one, by its place, or else by a copy.
void Reducer::hand_out(Bucket& bucket) {
  for (size_t n = 0; n < bucket.index.size(); n++) {
    const uint32_t i = bucket.index[n];
    places_[i].storage = nullptr;
    TensorRef* place = gradient(i);
    if (place == nullptr) continue;
    TensorRef& own = *place;
    const bool alone = own && own->refs.load() == 1 && own->storage->refs.load() == 1 && !own->node && !own->view;
    if (!own || (alone && own->meta.get() == bucket.parts[n]->meta.get())) {
      own = std::move(bucket.parts[n]);
    } else {
      copy_elements(*own, *bucket.parts[n]);
      raise_version(*own->storage);
    }
  }
}

void Reducer::end_direct() {
  for (Direct& one : direct_) {
    if (one.request != 0) {
      wire_->finish(one.request);
    } else {
      wire_->sum(*one.flat);
    }
    one.request = 0;
    if (one.own.get() != one.flat.get()) copy_elements(*one.own, *one.flat);
    raise_version(*one.own->storage);
  }
  direct_.clear();
}

void Reducer::forget() {
  started_ = looked_ = 0;
  stale_ = false;
  sent_ = std::nullopt;
  for (Bucket& bucket : layout_.buckets) forget_step(bucket);
  for (Place& place : places_) {
    place.sent = false;
    place.storage = nullptr;
  }
}

}  // namespace perigee
