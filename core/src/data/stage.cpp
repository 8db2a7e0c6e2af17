// SPDX-License-Identifier: Apache-2.0
#include "data/stage.hpp"

#include <algorithm>
#include <numeric>

#include "base/ambient.hpp"
#include "data/at_once.hpp"
#include "data/timed.hpp"
#include "data/worker.hpp"

namespace perigee {

void Stage::get_each(const int64_t* positions, size_t many, Made* out) const {
  for (size_t k = 0; k < many; k++) {
    try {
      check_wanted();
      out[k].element = get(positions[k]);
    } catch (...) {
      out[k].error = std::current_exception();
    }
  }
}

Element Stage::gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const {
  std::vector<Element> samples;
  samples.reserve(positions.size());
  Landing landing(static_cast<int64_t>(positions.size()));
  for (int64_t i : positions) {
    check_wanted();
    samples.push_back(get_into(i, landing));
    landing.land(samples.back());
  }
  return landing.batch(samples, number_dtype, first);
}

namespace {

constexpr uint32_t kTransferStream = 1;  // of devices: work of the script's thread is on 0

// A parent seen through a function of positions.
class Through : public Stage {
 public:
  Through(StageRef parent, int64_t elements) : Stage(parent->traits(elements)), parent_(std::move(parent)) {}
  Element get(int64_t i) const override { return parent_->get(position(i)); }
  Element get_into(int64_t i, const Landing& landing) const override { return parent_->get_into(position(i), landing); }
  void get_each(const int64_t* positions, size_t many, Made* out) const override {
    parent_->get_each(mapped(positions, many).data(), many, out);
  }
  Element gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const override {
    return parent_->gather(mapped(positions.data(), positions.size()), number_dtype, first);
  }
  bool batches() const override { return parent_->batches(); }
  void want(int64_t i) const override { parent_->want(position(i)); }

 protected:
  virtual int64_t position(int64_t i) const = 0;
  virtual void map(int64_t* positions, size_t many) const = 0;

 private:
  std::vector<int64_t> mapped(const int64_t* positions, size_t many) const {
    std::vector<int64_t> list(positions, positions + many);
    map(list.data(), many);
    return list;
  }
  const StageRef parent_;
};

class Window : public Through {
 public:
  Window(StageRef parent, int64_t elements, int64_t modulo, int64_t step, int64_t offset)
      : Through(std::move(parent), elements), modulo_(modulo), step_(step), offset_(offset) {}

 protected:
  int64_t position(int64_t i) const override { return i % modulo_ * step_ + offset_; }
  void map(int64_t* positions, size_t many) const override {
    for (size_t k = 0; k < many; k++) positions[k] = Window::position(positions[k]);
  }

 private:
  const int64_t modulo_, step_, offset_;
};

class Order : public Through {
 public:
  Order(StageRef parent, std::vector<int64_t> positions)
      : Through(std::move(parent), static_cast<int64_t>(positions.size())), positions_(std::move(positions)) {}

 protected:
  int64_t position(int64_t i) const override { return positions_[static_cast<size_t>(i)]; }
  void map(int64_t* positions, size_t many) const override {
    for (size_t k = 0; k < many; k++) positions[k] = Order::position(positions[k]);
  }

 private:
  const std::vector<int64_t> positions_;
};

// Every step-th element behind the first `offset` of a parent in order, which is asked for those between too.
class Every : public Stage {
 public:
  Every(StageRef parent, int64_t elements, int64_t step, int64_t offset)
      : Stage(parent->traits(parent->count == kUnknown ? kUnknown : elements)),
        parent_(std::move(parent)),
        most_(elements),
        step_(step),
        offset_(offset) {}
  Element get(int64_t i) const override { return reach(i) ? parent_->get(i * step_ + offset_) : Element{}; }
  bool pass(int64_t i) const override { return reach(i) && parent_->pass(i * step_ + offset_); }
  bool batches() const override { return parent_->batches(); }
  void want(int64_t i) const override {
    if (i < most_) parent_->want(i * step_ + offset_);
  }

 protected:
  StageRef remade() const override { return std::make_shared<Every>(parent_->again(), most_, step_, offset_); }

 private:
  bool reach(int64_t i) const {
    if (i >= most_) return false;
    if (!parent_->in_order) return true;
    const int64_t end = i * step_ + offset_;
    for (int64_t k = i == 0 ? 0 : end - step_ + 1; k < end; k++) {
      check_wanted();
      if (!parent_->pass(k)) return false;
    }
    return true;
  }
  const StageRef parent_;
  const int64_t most_, step_, offset_;
};

Stage::Traits shared_traits(const std::vector<StageRef>& parents) {
  Stage::Traits all = parents.at(0)->traits();
  for (const StageRef& parent : parents) {
    const bool unknown = all.count == kUnknown || parent->count == kUnknown;
    all.count = unknown ? kUnknown : std::min(all.count, parent->count);
    all.in_order = all.in_order || parent->in_order;
    all.fed = all.fed || parent->fed;
  }
  return all;
}

class Zip : public Stage {
 public:
  explicit Zip(std::vector<StageRef> parents) : Stage(shared_traits(parents)), parents_(std::move(parents)) {}
  Element get(int64_t i) const override {
    Element made;
    std::string text = "{";
    for (size_t k = 0; k < parents_.size(); k++) {
      if (i >= parents_[k]->count) return {};
      Element one = parents_[k]->get(i);
      if (!one.layout) return {};
      text += "i" + std::to_string(k + 1) + ";" + one.layout->text;
      std::move(one.leaves.begin(), one.leaves.end(), std::back_inserter(made.leaves));
    }
    made.layout = parse_layout(text + "}");
    return made;
  }
  bool pass(int64_t i) const override {
    return std::all_of(parents_.begin(), parents_.end(), [i](const StageRef& parent) {
      return i < parent->count && (!parent->in_order || parent->pass(i));
    });
  }
  void want(int64_t i) const override {
    for (const StageRef& parent : parents_) {
      if (i < parent->count) parent->want(i);
    }
  }

 protected:
  StageRef remade() const override {
    std::vector<StageRef> list;
    for (const StageRef& parent : parents_) list.push_back(parent->again());
    return std::make_shared<Zip>(std::move(list));
  }

 private:
  const std::vector<StageRef> parents_;
};

class Batch : public Stage {
 public:
  Batch(StageRef parent, int64_t size, bool drop_last, uint32_t number_dtype)
      : Stage(parent->traits(batches(parent->count, size, drop_last))),
        parent_(std::move(parent)),
        size_(size),
        drop_last_(drop_last),
        number_dtype_(number_dtype) {}
  Element get(int64_t i) const override {
    const int64_t begin = i * size_, end = std::min(begin + size_, parent_->count);
    if (count == kUnknown) return ragged(begin);
    std::vector<int64_t> positions(static_cast<size_t>(end - begin));
    std::iota(positions.begin(), positions.end(), begin);
    return parent_->gather(positions, number_dtype_, begin + 1);
  }
  bool batches() const override { return true; }
  bool pass(int64_t i) const override {
    const int64_t begin = i * size_, end = std::min(begin + size_, parent_->count);
    int64_t k = begin;
    while (k < end && parent_->pass(k)) k++;
    return k == begin + size_ || (k > begin && !drop_last_);
  }
  void want(int64_t i) const override {
    for (int64_t k = i * size_; k < std::min((i + 1) * size_, parent_->count); k++) parent_->want(k);
  }

 protected:
  StageRef remade() const override {
    return std::make_shared<Batch>(parent_->again(), size_, drop_last_, number_dtype_);
  }

 private:
  static int64_t batches(int64_t elements, int64_t size, bool drop_last) {
    if (elements == kUnknown) return kUnknown;
    return elements / size + (!drop_last && elements % size != 0 ? 1 : 0);
  }
  Element ragged(int64_t begin) const {
    std::vector<Element> samples;
    Landing landing(size_, kMostBegun);
    for (int64_t k = begin; k < begin + size_; k++) {
      check_wanted();
      Element one = parent_->get_into(k, landing);
      if (!one.layout) break;
      samples.push_back(std::move(one));
      landing.land(samples.back());
    }
    if (samples.empty() || (drop_last_ && static_cast<int64_t>(samples.size()) < size_)) return {};
    return landing.batch(samples, number_dtype_, begin + 1);
  }
  static constexpr int64_t kMostBegun = int64_t{64} << 20;  // bytes of a batch that may turn out to be a smaller one
  const StageRef parent_;
  const int64_t size_;
  const bool drop_last_;
  const uint32_t number_dtype_;
};

class Map : public Stage {
 public:
  Map(StageRef parent, uint32_t function, uint64_t key)
      : Stage(parent->traits()), parent_(std::move(parent)), function_(function), key_(key) {}
  Element get(int64_t i) const override {
    Element in = parent_->get(i);
    return in.layout ? call_worker(function_, std::move(in), i, key_) : Element{};
  }
  void get_each(const int64_t* positions, size_t many, Made* out) const override {
    parent_->get_each(positions, many, out);
    call_worker(function_, out, positions, many, key_);
  }
  Element gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const override {
    const auto many = static_cast<int64_t>(positions.size());
    std::vector<Element> samples;
    samples.reserve(positions.size());
    Landing landing(many);
    AtOnce at_once;
    for (int64_t i = 0; i < many;) {
      check_wanted();
      const int64_t some = at_once.count(many - i), begin = now_ns();
      Made made[AtOnce::kMost];
      get_each(positions.data() + i, static_cast<size_t>(some), made);
      for (int64_t k = 0; k < some; k++) {
        if (made[k].error) std::rethrow_exception(made[k].error);
        samples.push_back(std::move(made[k].element));
        landing.land(samples.back());
      }
      at_once.took(some, now_ns() - begin);
      i += some;
    }
    return landing.batch(samples, number_dtype, first);
  }
  bool pass(int64_t i) const override { return parent_->pass(i); }
  void want(int64_t i) const override { parent_->want(i); }

 protected:
  StageRef remade() const override { return std::make_shared<Map>(parent_->again(), function_, key_); }

 private:
  const StageRef parent_;
  const uint32_t function_;
  const uint64_t key_;
};

class OnDevice : public Stage {
 public:
  OnDevice(StageRef parent, Device& device) : Stage(parent->traits()), parent_(std::move(parent)), device_(device) {}
  Element get(int64_t i) const override {
    const Scoped bound(ambient().bound_for, bound_for());
    Element made = parent_->get(i);
    move(made);
    return made;
  }
  void get_each(const int64_t* positions, size_t many, Made* out) const override {
    const Scoped bound(ambient().bound_for, bound_for());
    parent_->get_each(positions, many, out);
    for (size_t k = 0; k < many; k++) {
      try {
        move(out[k].element);
      } catch (...) {
        out[k] = {{}, std::current_exception()};
      }
    }
  }
  bool pass(int64_t i) const override { return parent_->pass(i); }
  void want(int64_t i) const override { parent_->want(i); }

 protected:
  StageRef remade() const override { return std::make_shared<OnDevice>(parent_->again(), device_); }

 private:
  // Batches that this stage alone sees are made where the device copies from.
  Device* bound_for() const { return parent_->batches() && !device_.synchronous ? &device_ : nullptr; }
  void move(Element& made) const {
    const Scoped stream(ambient().stream, device_.synchronous ? 0 : kTransferStream);
    for (Leaf& leaf : made.leaves) {
      if (leaf.tensor && leaf.tensor->device != &device_) leaf.tensor = move_to(*leaf.tensor, device_);
    }
  }
  const StageRef parent_;
  Device& device_;
};

}  // namespace

StageRef window_stage(StageRef parent, int64_t count, int64_t modulo, int64_t step, int64_t offset) {
  if (modulo < 1 || step < 1 || offset < 0 || count < 0 ||
      (count > 0 && parent->count != kUnknown && (std::min(count, modulo) - 1) > (parent->count - 1 - offset) / step))
    pg::fail_argument("positions beyond the end");
  if (parent->in_order || parent->count == kUnknown)
    return std::make_shared<Every>(std::move(parent), count, step, offset);
  return std::make_shared<Window>(std::move(parent), count, modulo, step, offset);
}
StageRef order_stage(StageRef parent, std::vector<int64_t> positions) {
  if (parent->in_order) pg::fail_argument("elements that come in order have no other");
  for (int64_t i : positions) {
    if (i < 0 || i >= parent->count) pg::fail_argument("positions beyond the end");
  }
  return std::make_shared<Order>(std::move(parent), std::move(positions));
}
StageRef shuffle_stage(StageRef parent, uint32_t seed, uint32_t epoch, int64_t buffer) {
  if (parent->in_order || parent->count == kUnknown) pg::fail_argument("elements that come in order have no other");
  if (buffer < 1) pg::fail_argument("buffer must be at least 1");
  std::vector<int64_t> positions(static_cast<size_t>(parent->count));
  draw_order(parent->count, seed, epoch, buffer, positions.data());
  for (int64_t& i : positions) i--;
  return std::make_shared<Order>(std::move(parent), std::move(positions));
}
StageRef zip_stage(std::vector<StageRef> parents) {
  if (parents.empty()) pg::fail_argument("nothing to zip");
  return std::make_shared<Zip>(std::move(parents));
}
StageRef batch_stage(StageRef parent, int64_t size, bool drop_last, uint32_t number_dtype) {
  if (size < 1) pg::fail_argument("size must be at least 1");
  return std::make_shared<Batch>(std::move(parent), size, drop_last, number_dtype);
}
StageRef map_stage(StageRef parent, uint32_t function, uint64_t seed, uint64_t epoch) {
  return std::make_shared<Map>(std::move(parent), function, worker_key(seed, epoch));
}
StageRef device_stage(StageRef parent, Device& device) { return std::make_shared<OnDevice>(std::move(parent), device); }

namespace {

uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x21f0aaadu;
  x ^= x >> 15;
  x *= 0x735a2d97u;
  return x ^ (x >> 15);
}

}  // namespace

int64_t draw_step(uint32_t seed, uint32_t epoch, int64_t i, int64_t reach) {
  const uint32_t state = (mix(seed) ^ mix(epoch)) + static_cast<uint32_t>(i + 1) * 0x9e3779b9u;
  return static_cast<int64_t>(static_cast<double>(mix(state)) / 4294967296.0 * static_cast<double>(reach));
}

void draw_order(int64_t n, uint32_t seed, uint32_t epoch, int64_t buffer, int64_t* positions) {
  for (int64_t i = 0; i < n; i++) positions[i] = i + 1;
  for (int64_t i = 0; i < n - 1; i++)
    std::swap(positions[i], positions[i + draw_step(seed, epoch, i, std::min(n - i, buffer))]);
}

}  // namespace perigee
