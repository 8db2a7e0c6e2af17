// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "harness.hpp"

using namespace harness;

namespace {

int64_t pooled(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1;
  int64_t count = (ceil_mode ? (span + stride - 1) / stride : span / stride) + 1;
  if (ceil_mode && (count - 1) * stride >= size + padding) count--;
  return count;
}

struct Window {
  Dims kernel, stride, padding, dilation;
  bool ceil_mode;
};

Window any_window() {
  Dims kernel{between(1, 3), between(1, 3)};
  return {kernel,
          {between(1, 3), between(1, 3)},
          {between(0, kernel[0] / 2), between(0, kernel[1] / 2)},
          {between(1, 2), between(1, 2)},
          between(0, 1) != 0};
}

std::vector<Attr> attrs_of(const Window& v) {
  return {{"kernel", v.kernel},
          {"stride", v.stride},
          {"padding", v.padding},
          {"dilation", v.dilation},
          Attr::flag("ceil_mode", v.ceil_mode)};
}

void check_max_pool(uint32_t dtype, const Window& v, Dims shape, Layout layout, bool with_nan) {
  Tensor x(dtype, shape, layout);
  x.random();
  if (with_nan) x.set(x.size() / 2, std::nan(""));
  Dims out{shape[0], shape[1], pooled(shape[2], v.kernel[0], v.stride[0], v.padding[0], v.dilation[0], v.ceil_mode),
           pooled(shape[3], v.kernel[1], v.stride[1], v.padding[1], v.dilation[1], v.ceil_mode)};
  Tensor y(dtype, out), indices(PG_I64, out), dy(dtype, out, layout), dx(dtype, shape), again(dtype, out);
  dy.random();
  run("max_pool2d", attrs_of(v), {&x}, {&y, &indices});
  std::vector<double> values, places, gradient(static_cast<size_t>(x.size()));
  for (int64_t i = 0; i < y.size(); i++) {
    int64_t ox = i % out[3], oy = i / out[3] % out[2], plane = i / out[3] / out[2], place = -1;
    double best = 0;
    for (int64_t a = 0; a < v.kernel[0]; a++) {
      for (int64_t b = 0; b < v.kernel[1]; b++) {
        int64_t sy = oy * v.stride[0] - v.padding[0] + a * v.dilation[0];
        int64_t sx = ox * v.stride[1] - v.padding[1] + b * v.dilation[1];
        if (sy < 0 || sx < 0 || sy >= shape[2] || sx >= shape[3]) continue;
        double value = x.get((plane * shape[2] + sy) * shape[3] + sx);
        if (place < 0 || value > best || std::isnan(value)) best = value, place = sy * shape[3] + sx;
      }
    }
    values.push_back(best), places.push_back(static_cast<double>(place));
    gradient[static_cast<size_t>(plane * shape[2] * shape[3] + place)] += dy.get(i);
  }
  check_close(y, values, 0, "max_pool2d");
  check_close(indices, places, 0, "max_pool2d indices");
  run("max_pool2d_grad", attrs_of(v), {&dy, &indices, &x}, {&dx});
  check_close(dx, gradient, tolerance(dtype, 9), "max_pool2d_grad");
  run("max_pool2d_gather", {}, {&x, &indices}, {&again});
  check_close(again, values, 0, "max_pool2d_gather");
}

}  // namespace

TEST_CASE("max_pool2d: windows, layouts, NaN, gradients") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_BF16, PG_F16}) {
    for (int trial = 0; trial < 30; trial++) {
      Dims shape{between(0, 3), between(1, 5), between(6, 12), between(6, 12)};
      if (trial == 0) shape[0] = 2;
      check_max_pool(dtype, any_window(), shape, any_layout(), trial % 4 == 0 && shape[0] > 0);
    }
    check_max_pool(dtype, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, false}, {4, 8, 28, 28}, Layout::kDense, false);
    check_max_pool(dtype, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, true}, {4, 8, 27, 28}, Layout::kChannelsLast, true);
  }
}

TEST_CASE("max_pool2d: an empty stride is the kernel's size; wrong indices are an error") {
  Tensor x(PG_F32, {1, 1, 4, 4}), y(PG_F32, {1, 1, 2, 2}), indices(PG_I64, {1, 1, 2, 2});
  x.random();
  Window v{{2, 2}, {}, {0, 0}, {1, 1}, false};
  run("max_pool2d", attrs_of(v), {&x}, {&y, &indices});
  double first = std::max(std::max(x.get(0), x.get(1)), std::max(x.get(4), x.get(5)));
  CHECK(y.get(0) == first);
  indices.set(1, 16);
  CHECK_THROWS_WITH(run("max_pool2d_gather", {}, {&x, &indices}, {&y}), Catch::Contains("index 16 is out of range"));
  Tensor dx(PG_F32, {1, 1, 4, 4});
  CHECK_THROWS_WITH(run("max_pool2d_grad", {}, {&y, &indices, &x}, {&dx}), Catch::Contains("index 16 is out of range"));
}

TEST_CASE("avg_pool2d and its gradient") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_BF16, PG_F16}) {
    for (int trial = 0; trial < 30; trial++) {
      Window v = any_window();
      bool with_padding = between(0, 1) != 0;
      Dims shape{between(0, 3), between(1, 4), between(5, 10), between(5, 10)};
      Dims out{shape[0], shape[1], pooled(shape[2], v.kernel[0], v.stride[0], v.padding[0], 1, v.ceil_mode),
               pooled(shape[3], v.kernel[1], v.stride[1], v.padding[1], 1, v.ceil_mode)};
      Layout layout = any_layout();
      Tensor x(dtype, shape, layout), y(dtype, out), dy(dtype, out, layout), dx(dtype, shape);
      x.random(), dy.random();
      std::vector<double> values, gradient(static_cast<size_t>(x.size()));
      for (int64_t i = 0; i < y.size(); i++) {
        int64_t ox = i % out[3], oy = i / out[3] % out[2], plane = i / out[3] / out[2], whole = 0, inside = 0;
        double sum = 0;
        std::vector<size_t> places;
        for (int64_t a = 0; a < v.kernel[0]; a++) {
          for (int64_t b = 0; b < v.kernel[1]; b++) {
            int64_t sy = oy * v.stride[0] - v.padding[0] + a, sx = ox * v.stride[1] - v.padding[1] + b;
            whole += sy < shape[2] + v.padding[0] && sx < shape[3] + v.padding[1];
            if (sy < 0 || sx < 0 || sy >= shape[2] || sx >= shape[3]) continue;
            inside++;
            places.push_back(static_cast<size_t>((plane * shape[2] + sy) * shape[3] + sx));
            sum += x.get(static_cast<int64_t>(places.back()));
          }
        }
        auto divisor = static_cast<double>(with_padding ? whole : inside);
        values.push_back(sum / divisor);
        for (size_t place : places) gradient[place] += dy.get(i) / divisor;
      }
      std::vector<Attr> attrs = {{"kernel", v.kernel},
                                 {"stride", v.stride},
                                 {"padding", v.padding},
                                 Attr::flag("ceil_mode", v.ceil_mode),
                                 Attr::flag("count_include_pad", with_padding),
                                 Attr::integer("divisor_override", 0)};
      run("avg_pool2d", attrs, {&x}, {&y});
      check_close(y, values, tolerance(dtype, 9), "avg_pool2d");
      run("avg_pool2d_grad", attrs, {&dy, &x}, {&dx});
      check_close(dx, gradient, tolerance(dtype, 9), "avg_pool2d_grad");
    }
  }
}
