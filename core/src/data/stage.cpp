// SPDX-License-Identifier: Apache-2.0
#include "data/stage.hpp"

#include <algorithm>
#include <cmath>

#include "base/ambient.hpp"
#include "base/rng.hpp"
#include "data/worker.hpp"

namespace perigee {

thread_local Worker* this_worker = nullptr;

Element Stage::gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const {
  std::vector<Element> samples;
  samples.reserve(positions.size());
  for (int64_t i : positions) samples.push_back(get(i));
  return collate(samples, number_dtype, first);
}

namespace {

constexpr uint32_t kTransferStream = 1;  // of devices: work of the script's thread is on 0

class Slices : public Stage {
 public:
  Slices(LayoutRef layout, std::vector<TensorRef> tensors)
      : Stage(tensors[0]->meta->shape[0]), layout_(std::move(layout)), tensors_(std::move(tensors)) {
    for (const TensorRef& t : tensors_)
      pieces_.push_back(intern_meta(t->meta->dtype, t->meta->rank - 1, t->meta->shape + 1, t->meta->stride + 1));
  }

  Element get(int64_t i) const override {
    Element made{layout_, std::vector<Leaf>(tensors_.size())};
    for (size_t k = 0; k < tensors_.size(); k++) made.leaves[k].tensor = piece(k, i);
    return made;
  }
  Element gather(const std::vector<int64_t>& positions, uint32_t, int64_t) const override {
    Element made{layout_, std::vector<Leaf>(tensors_.size())};
    for (size_t k = 0; k < tensors_.size(); k++) made.leaves[k].tensor = rows(k, positions);
    return made;
  }

 private:
  TensorRef piece(size_t k, int64_t i) const {
    const Tensor& t = *tensors_[k];
    const int64_t step = t.meta->stride[0] * static_cast<int64_t>(t.meta->view.dtype_bits / 8);
    return make_tensor(pieces_[k], t.storage, t.offset + i * step, t.device);
  }

  TensorRef rows(size_t k, const std::vector<int64_t>& positions) const {
    const Tensor& t = *tensors_[k];
    const TensorRef like = make_tensor(pieces_[k], nullptr, 0, t.device);
    TensorRef batch = make_batch(*like, static_cast<int64_t>(positions.size()));
    const int64_t bytes = pieces_[k]->bytes;
    if (bytes == 0) return batch;
    if (!pieces_[k]->contiguous) {
      for (size_t i = 0; i < positions.size(); i++) put_piece(*batch, static_cast<int64_t>(i), *piece(k, positions[i]));
      return batch;
    }
    const int64_t step = t.meta->stride[0] * static_cast<int64_t>(t.meta->view.dtype_bits / 8);
    const pg_address from = t.address(), to = batch->address();
    const char* source = reinterpret_cast<const char*>(from.buffer + from.offset);
    char* target = reinterpret_cast<char*>(to.buffer + to.offset);
    for (int64_t i : positions) {
      std::copy_n(source + i * step, bytes, target);
      target += bytes;
    }
    return batch;
  }

  const LayoutRef layout_;
  const std::vector<TensorRef> tensors_;
  std::vector<MetaRef> pieces_;
};

class Range : public Stage {
 public:
  explicit Range(int64_t n) : Stage(n), layout_(parse_layout("{s5:valueN}")) {}
  Element get(int64_t i) const override {
    Element made{layout_, std::vector<Leaf>(1)};
    made.leaves[0].number = static_cast<double>(i);
    return made;
  }

 private:
  const LayoutRef layout_;
};

// A parent seen through a function of positions.
class Through : public Stage {
 public:
  Through(StageRef parent, int64_t elements) : Stage(elements), parent_(std::move(parent)) {}
  Element get(int64_t i) const override { return parent_->get(position(i)); }
  Element gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const override {
    std::vector<int64_t> mapped(positions.size());
    std::transform(positions.begin(), positions.end(), mapped.begin(), [this](int64_t i) { return position(i); });
    return parent_->gather(mapped, number_dtype, first);
  }

 protected:
  virtual int64_t position(int64_t i) const = 0;

 private:
  const StageRef parent_;
};

class Window : public Through {
 public:
  Window(StageRef parent, int64_t elements, int64_t modulo, int64_t step, int64_t offset)
      : Through(std::move(parent), elements), modulo_(modulo), step_(step), offset_(offset) {}

 protected:
  int64_t position(int64_t i) const override { return i % modulo_ * step_ + offset_; }

 private:
  const int64_t modulo_, step_, offset_;
};

class Order : public Through {
 public:
  Order(StageRef parent, std::vector<int64_t> positions)
      : Through(std::move(parent), static_cast<int64_t>(positions.size())), positions_(std::move(positions)) {}

 protected:
  int64_t position(int64_t i) const override { return positions_[static_cast<size_t>(i)]; }

 private:
  const std::vector<int64_t> positions_;
};

int64_t shortest(const std::vector<StageRef>& parents) {
  int64_t count = parents.at(0)->count;
  for (const StageRef& parent : parents) count = std::min(count, parent->count);
  return count;
}

class Zip : public Stage {
 public:
  explicit Zip(std::vector<StageRef> parents) : Stage(shortest(parents)), parents_(std::move(parents)) {}
  Element get(int64_t i) const override {
    Element made;
    std::string text = "{";
    for (size_t k = 0; k < parents_.size(); k++) {
      Element one = parents_[k]->get(i);
      text += "i" + std::to_string(k + 1) + ";" + one.layout->text;
      std::move(one.leaves.begin(), one.leaves.end(), std::back_inserter(made.leaves));
    }
    made.layout = parse_layout(text + "}");
    return made;
  }

 private:
  const std::vector<StageRef> parents_;
};

class Batch : public Stage {
 public:
  Batch(StageRef parent, int64_t size, bool drop_last, uint32_t number_dtype)
      : Stage(parent->count / size + (!drop_last && parent->count % size != 0 ? 1 : 0)),
        parent_(std::move(parent)),
        size_(size),
        number_dtype_(number_dtype) {}
  Element get(int64_t i) const override {
    const int64_t begin = i * size_, end = std::min(begin + size_, parent_->count);
    std::vector<int64_t> positions;
    positions.reserve(static_cast<size_t>(end - begin));
    for (int64_t k = begin; k < end; k++) positions.push_back(k);
    return parent_->gather(positions, number_dtype_, begin + 1);
  }

 private:
  const StageRef parent_;
  const int64_t size_;
  const uint32_t number_dtype_;
};

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Map : public Stage {
 public:
  Map(StageRef parent, uint32_t function, uint64_t seed, uint64_t epoch)
      : Stage(parent->count), parent_(std::move(parent)), function_(function), seed_(mixed(mixed(seed) ^ epoch)) {}
  Element get(int64_t i) const override {
    Element in = parent_->get(i);
    Worker* worker = this_worker;
    if (worker == nullptr) pg::fail(PG_E_FAILED_PRECONDITION, "a function was to run outside of a worker");
    Exchange& exchange = worker->exchange;
    exchange.in = std::move(in);
    exchange.error.clear();
    const ThreadRandom own({mixed(seed_ ^ static_cast<uint64_t>(i)), 0});
    const int32_t code = worker->call(function_, &exchange);
    exchange.in = {};
    if (code != PG_OK) pg::fail_argument(exchange.error.empty() ? "a worker could not begin" : exchange.error);
    return std::move(exchange.out);
  }

 private:
  const StageRef parent_;
  const uint32_t function_;
  const uint64_t seed_;
};

class OnDevice : public Stage {
 public:
  OnDevice(StageRef parent, Device& device) : Stage(parent->count), parent_(std::move(parent)), device_(device) {}
  Element get(int64_t i) const override {
    Element made = parent_->get(i);
    const Scoped stream(ambient().stream, device_.synchronous ? 0 : kTransferStream);
    for (Leaf& leaf : made.leaves) {
      if (leaf.tensor && leaf.tensor->device != &device_) leaf.tensor = move_to(*leaf.tensor, device_);
    }
    return made;
  }

 private:
  const StageRef parent_;
  Device& device_;
};

}  // namespace

StageRef slices_stage(LayoutRef layout, std::vector<TensorRef> tensors) {
  if (tensors.empty() || layout->leaves != tensors.size()) pg::fail_argument("a layout of other tensors");
  for (const TensorRef& t : tensors) {
    if (t->is_graph() || !t->device->host_visible || !t->device->synchronous)
      pg::fail(PG_E_NOT_SUPPORTED, "slices are taken in the processor's memory");
    if (t->meta->rank == 0 || t->meta->shape[0] != tensors[0]->meta->shape[0])
      pg::fail_argument("tensors must have one first axis");
  }
  return std::make_shared<Slices>(std::move(layout), std::move(tensors));
}
StageRef range_stage(int64_t count) { return std::make_shared<Range>(count); }
StageRef window_stage(StageRef parent, int64_t count, int64_t modulo, int64_t step, int64_t offset) {
  if (modulo < 1 || step < 1 || offset < 0 || count < 0 ||
      (count > 0 && (std::min(count, modulo) - 1) > (parent->count - 1 - offset) / step))
    pg::fail_argument("positions beyond the end");
  return std::make_shared<Window>(std::move(parent), count, modulo, step, offset);
}
StageRef order_stage(StageRef parent, std::vector<int64_t> positions) {
  for (int64_t i : positions) {
    if (i < 0 || i >= parent->count) pg::fail_argument("positions beyond the end");
  }
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
  return std::make_shared<Map>(std::move(parent), function, seed, epoch);
}
StageRef device_stage(StageRef parent, Device& device) { return std::make_shared<OnDevice>(std::move(parent), device); }

void draw_order(int64_t n, uint32_t seed, uint32_t epoch, int64_t buffer, int64_t* positions) {
  const auto mix = [](uint32_t x) {
    x ^= x >> 16;
    x *= 0x21f0aaadu;
    x ^= x >> 15;
    x *= 0x735a2d97u;
    return x ^ (x >> 15);
  };
  uint32_t state = mix(seed) ^ mix(epoch);
  for (int64_t i = 0; i < n; i++) positions[i] = i + 1;
  for (int64_t i = 0; i < n - 1; i++) {
    const int64_t reach = std::min(n - i, buffer);
    state += 0x9e3779b9u;
    const double drawn = static_cast<double>(mix(state)) / 4294967296.0 * static_cast<double>(reach);
    std::swap(positions[i], positions[i + static_cast<int64_t>(drawn)]);
  }
}

}  // namespace perigee
