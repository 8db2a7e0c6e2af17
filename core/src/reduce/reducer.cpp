// SPDX-License-Identifier: Apache-2.0
#include "reduce/reducer.hpp"

#include <algorithm>
#include <limits>

#include "base/ambient.hpp"
#include "builder/builder.hpp"
#include "tensor/kept.hpp"

namespace perigee {
namespace {

bool is_leaf(const Tensor& x) { return x.node && x.node->kind == NodeKind::leaf; }

}  // namespace

Reducer::Reducer(std::unique_ptr<Wire> wire, Members members, const BucketSizes& sizes, bool overlaps, Scale scale)
    : wire_(std::move(wire)),
      members_(std::move(members)),
      count_(members_[0].size()),
      sizes_(sizes),
      overlaps_(overlaps),
      scale_(std::move(scale)),
      places_(members_.size() * count_) {
  if (members_.size() > 1) sizes_.direct = std::numeric_limits<uint64_t>::max();
}

Reducer::~Reducer() {
  end_listening();
  abandon();
}

// ---- while a pass runs ----

// What is left of a run that has failed stays away from this one's streams.
void Reducer::set_sending(std::optional<Weights> weights) {
  sending_ = std::move(weights);
  if (!sending_) return;
  for (Bucket& bucket : layout_.buckets)
    for (Share& share : bucket.shares)
      if (share.flat) mark_done(*share.flat->storage, false);
}

void Reducer::arrived(uint32_t number, Tensor& gradient, Tensor* own) {
  Place& place = places_[number];
  place.seen++;
  if (!sending_ || place.bucket < 0 || place.seen != place.expected) {
    stale_ |= place.sent;
    return;
  }
  const size_t member = number / count_;
  Bucket& bucket = layout_.buckets[static_cast<size_t>(place.bucket)];
  Share& share = bucket.shares[member];
  Scoped<uint32_t> beside(ambient().stream, wire_->filling_stream(ambient().stream));
  open_share(bucket, member, members_[member]);
  TensorRef whole = TensorRef::share(&gradient);
  if (own != nullptr) whole = call1(role_op(Role::accumulate), {own, &gradient});
  copy_elements(*share.parts[static_cast<size_t>(place.part)], *whole);
  if (!sent_) sent_ = sending_;
  stale_ |= *sent_ != *sending_;
  place.sent = true;
  place.storage = nullptr;
  if (--share.waiting == 0) close(share, (*sent_)[member], is_mean(*sent_));
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
void Reducer::weigh(Tensor& flat, bool& scaled, double weight, bool mean) {
  if (!scaled && weight != 1 && !(mean && wire_->runs_beside(*flat.device))) scale_(flat, weight);
  scaled = true;
}

void Reducer::close(Share& share, double weight, bool mean) {
  weigh(*share.flat, share.scaled, weight, mean);
  wire_->filled(*share.flat);
}

void Reducer::start(Bucket& bucket, bool mean) {
  if (!wire_->runs_beside(*bucket.device)) return;
  Row row;
  for (Share& share : bucket.shares) row.push_back(share.flat.get());
  bucket.request = wire_->begin(row, {mean, to_all_});
}

// Starts the buckets that are full, in their order. Where the engine computes nothing beside, they wait for the step.
void Reducer::start_full() {
  for (; started_ < layout_.buckets.size(); started_++) {
    Bucket& bucket = layout_.buckets[started_];
    for (const Share& share : bucket.shares)
      if (share.waiting > 0) return;
    if (!wire_->runs_beside(*bucket.device)) return;
    start(bucket, is_mean(*sent_));
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

void Reducer::sum(const Weights& weights, bool to_all) {
  Scoped<bool> plain(ambient().grad_enabled, false);
  Scoped<const Autocast*> as_given(ambient().autocast, nullptr);
  try {
    if (!agreed_) agree(weights, to_all);
    sum_agreed(weights);
  } catch (const pg::Error& error) {
    if (error.code != PG_E_OUT_OF_MEMORY) {
      abandon();
      forget();
      for (Place& place : places_) place.seen = 0;
      agreed_ = std::nullopt;
    }
    throw;
  }
  for (Place& place : places_) {
    place.expected = place.seen;
    place.seen = 0;
  }
  forget();
  agreed_ = std::nullopt;
}

void Reducer::sum_agreed(const Weights& weights) {
  if (agreed_->again) {
    discard();
    make_buckets();
    agreed_->again = false;
  }
  // All memory first: what has begun cannot be taken back.
  open_shares(layout_.buckets.size());
  open_direct();
  for (; started_ < layout_.buckets.size(); started_++) {
    Bucket& bucket = layout_.buckets[started_];
    for (size_t member = 0; member < members_.size(); member++) {
      Share& share = bucket.shares[member];
      if (share.scaled) continue;
      Scoped<uint32_t> beside(ambient().stream, wire_->filling_stream(ambient().stream));
      fill(bucket, member);
      close(share, weights[member], agreed_->mean);
    }
    start(bucket, agreed_->mean);
  }
  for (Direct& one : direct_) {
    if (one.request != 0) continue;
    weigh(*one.flat, one.scaled, weights[0], agreed_->mean);
    if (wire_->runs_beside(*one.flat->device)) one.request = wire_->begin({one.flat.get()}, {agreed_->mean, true});
  }
  for (Bucket& bucket : layout_.buckets) {
    finish(bucket);
    hand_out(bucket);
  }
  end_direct();
}

// Most steps are as the one before, for all of them: then there is one exchange.
void Reducer::agree(const Weights& weights, bool to_all) {
  std::vector<uint8_t> here(count_);
  for (size_t place = 0; place < places_.size(); place++)
    if (gradient(place) != nullptr && *gradient(place)) here[place % count_] = 1;
  const bool mean = is_mean(weights);
  if ((sent_ && *sent_ != weights) || (started_ > 0 && to_all != to_all_) || has_moved() || has_changed())
    stale_ = true;
  to_all_ = to_all;
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

// Memory of the first so many buckets, of the stream that fills them: it waits for no other one's work.
void Reducer::open_shares(size_t count) {
  Scoped<uint32_t> beside(ambient().stream, wire_->filling_stream(ambient().stream));
  for (size_t b = 0; b < count; b++)
    for (size_t member = 0; member < members_.size(); member++)
      open_share(layout_.buckets[b], member, members_[member]);
}

// Whether a parameter has become another tensor than its bucket was made for.
bool Reducer::has_moved() const {
  for (size_t i = 0; i < places_.size(); i++) {
    const Place& place = places_[i];
    const Tensor& p = param(i);
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
  open_shares(count);
  for (; started_ < count; started_++) start(layout_.buckets[started_], agreed_->mean);
  for (uint32_t b = 0; b < count; b++) finish(layout_.buckets[b]);
}

void Reducer::make_buckets() {
  any_ = agreed_->any;
  layout_ = lay_out(members_, any_, sizes_);
  for (Place& place : places_) place.bucket = place.part = -1;
  for (size_t b = 0; b < layout_.buckets.size(); b++)
    for (size_t n = 0; n < layout_.buckets[b].index.size(); n++)
      for (size_t member = 0; member < members_.size(); member++) {
        const uint32_t i = layout_.buckets[b].index[n];
        Place& place = place_of(member, i);
        place.bucket = static_cast<int32_t>(b), place.part = static_cast<int32_t>(n);
        place.meta = members_[member][i]->meta, place.device = members_[member][i]->device;
      }
  forget();
  listen();
}

// One bucket alone starts when all has been computed: then nobody listens.
void Reducer::listen() {
  end_listening();
  const size_t count = layout_.buckets.size() + (layout_.direct.empty() ? 0 : 1);
  if (!overlaps_ || count < 2) return;
  for (uint32_t i = 0; i < places_.size(); i++) {
    Place& place = places_[i];
    if (!is_leaf(param(i))) continue;
    if (place.seen == 0) place.seen = *gradient(i) ? 1 : 0;
    place.leaf = param(i).node;
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
    Tensor& p = param(i);
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
void Reducer::fill(Bucket& bucket, size_t member) {
  for (size_t n = 0; n < bucket.index.size(); n++) {
    const size_t place = member * count_ + bucket.index[n];
    if (places_[place].sent) continue;
    Tensor& part = *bucket.shares[member].parts[n];
    if (const TensorRef* own = gradient(place); own != nullptr && *own) {
      copy_elements(part, **own);
    } else {
      fill_with_zeros(part);
    }
  }
}

void Reducer::finish(Bucket& bucket) {
  if (bucket.over) return;
  if (bucket.request != 0) {
    wire_->finish(bucket.request);
    bucket.request = 0;
  } else {
    wire_->sum(*bucket.shares[0].flat);
  }
  bucket.over = true;
}

void Reducer::hand_out(Bucket& bucket) {
  for (size_t member = 0; member < members_.size(); member++)
    if (member == 0 || to_all_) hand_out(bucket, member);
}

// The sums become the gradients: where nobody else has one, by its place, or else by a copy.
void Reducer::hand_out(Bucket& bucket, size_t member) {
  Share& share = bucket.shares[member];
  use_on(*share.flat->storage, share.flat->device->synchronous ? 0 : ambient().stream, true);
  for (size_t n = 0; n < bucket.index.size(); n++) {
    const size_t number = member * count_ + bucket.index[n];
    places_[number].storage = nullptr;
    TensorRef* place = gradient(number);
    if (place == nullptr) continue;
    TensorRef& own = *place;
    const bool alone = own && own->refs.load() == 1 && own->storage->refs.load() == 1 && !own->node && !own->view;
    if (!own || (alone && own->meta.get() == share.parts[n]->meta.get())) {
      own = std::move(share.parts[n]);
    } else {
      copy_elements(*own, *share.parts[n]);
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

// What has begun, and nobody waits for.
void Reducer::abandon() {
  for (Bucket& bucket : layout_.buckets) {
    if (bucket.request == 0) continue;
    std::vector<TensorRef> row;
    for (Share& share : bucket.shares) row.push_back(std::move(share.flat));
    wire_->abandon(bucket.request, std::move(row));
    bucket.request = 0;
  }
  for (Direct& one : direct_)
    if (one.request != 0) wire_->abandon(one.request, {std::move(one.flat)});
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
