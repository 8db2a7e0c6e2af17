// SPDX-License-Identifier: Apache-2.0
// The fastest of oneDNN's primitives on this machine, found once a process: over all of its implementations but the
// reference ones, tensors in the layouts that the implementation asks for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace bench {

struct Seconds {
  double wall = 0, cpu = 0;
  Seconds& operator+=(const Seconds& more) {
    wall += more.wall, cpu += more.cpu;
    return *this;
  }
  Seconds operator*(double times) const { return {wall * times, cpu * times}; }
};

using Body = std::function<void()>;  // runs a primitive once

// A square convolution or pooling window over n images of c channels.
struct Convolution {
  int64_t n, c, o, side, kernel, stride, padding;
};

enum class Pass { kForward, kData, kWeights };

// Each answers a body with tensors of its own.
class Primitives {
 public:
  using Maker = std::function<Body()>;
  explicit Primitives(bool low_precision) : low_(low_precision) {}
  // `batch` products of [m, k] by [k, n].
  Body product(int64_t batch, int64_t m, int64_t n, int64_t k);
  Body convolution(const Convolution& c, Pass pass);
  Body batch_norm(int64_t n, int64_t c, int64_t side, bool training, bool backward);
  Body max_pool(const Convolution& window, bool training, bool backward);

 private:
  template <class Find>
  Body known(const std::vector<int64_t>& key, const Find& find);

  bool low_;
  std::map<std::vector<int64_t>, Maker> known_;
};

// All one after another, as long as a model is measured and with the mean taken like there: what one leaves in the
// caches is what the next one finds.
Seconds time_chain(const std::vector<Body>& chain);

// A byte moved by a streaming addition over arrays far larger than the caches.
Seconds seconds_a_byte();

}  // namespace bench
