// SPDX-License-Identifier: Apache-2.0
#include "data/cache.hpp"

#include "base/ambient.hpp"

namespace perigee {

bool Cache::fill(const Stage& parent, int64_t i, Element& out) {
  if (const int64_t all = count_.load(); all >= 0) return i < all && get(i, out);
  if (get(i, out)) {
    if (parent.in_order) parent.pass(i);
    return true;
  }
  const Scoped bound(ambient().bound_for, static_cast<Device*>(nullptr));  // what is kept goes nowhere
  if (i < parent.count) out = parent.get(i);
  keep(i, parent.count, out);
  return out.layout != nullptr;
}

void Cache::keep(int64_t i, int64_t count, const Element& element) {
  const bool is_new = element.layout && put(i, element);
  std::lock_guard lock(mutex_);
  end_ = std::min(element.layout ? count : std::min(i, count), end_);
  put_ += is_new;
  if (put_ == end_ && count_ < 0) finish(end_);
}

namespace {

class MemoryCache : public Cache {
 public:
  bool get(int64_t i, Element& out) override {
    std::lock_guard lock(mutex_);
    const auto found = kept_.find(i);
    if (found == kept_.end()) return false;
    out = found->second;
    for (Leaf& leaf : out.leaves) {
      if (leaf.tensor) leaf.tensor = alias(*leaf.tensor);
    }
    return true;
  }
  bool put(int64_t i, const Element& element) override {
    Element kept = element;
    for (Leaf& leaf : kept.leaves) {
      if (leaf.tensor) leaf.tensor = alias(*leaf.tensor);
    }
    std::lock_guard lock(mutex_);
    return kept_.try_emplace(i, std::move(kept)).second;
  }
  void finish(int64_t count) override { count_ = count; }

 private:
  std::mutex mutex_;
  std::map<int64_t, Element> kept_;
};

class Cached : public Stage {
 public:
  Cached(StageRef parent, CacheRef cache)
      : Stage(traits_of(*parent, *cache)), parent_(std::move(parent)), cache_(std::move(cache)) {}
  Element get(int64_t i) const override {
    Element made;
    return cache_->fill(*parent_, i, made) ? made : Element{};
  }
  void want(int64_t i) const override {
    if (cache_->count() < 0) parent_->want(i);
  }

 protected:
  StageRef remade() const override { return std::make_shared<Cached>(parent_->again(), cache_); }

 private:
  static Traits traits_of(const Stage& parent, const Cache& cache) {
    if (cache.count() < 0) return parent.traits();
    return {parent.count == kUnknown ? kUnknown : cache.count()};
  }
  const StageRef parent_;
  const CacheRef cache_;
};

}  // namespace

CacheRef memory_cache() { return std::make_shared<MemoryCache>(); }
StageRef cache_stage(StageRef parent, CacheRef cache) {
  return std::make_shared<Cached>(std::move(parent), std::move(cache));
}

}  // namespace perigee
