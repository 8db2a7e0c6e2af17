// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "harness.hpp"

using namespace harness;

namespace {

struct Conv {
  int64_t n, c, h, w, o, kh, kw, groups;
  Dims stride, padding, dilation;
  int64_t out(int i) const {
    int64_t size = i == 0 ? h : w, kernel = i == 0 ? kh : kw;
    return (size + 2 * padding[i] - dilation[i] * (kernel - 1) - 1) / stride[i] + 1;
  }
  // body(position in x, in weight, in y) for every product.
  template <class Body>
  void each(Body&& body) const {
    int64_t oh = out(0), ow = out(1), cg = c / groups, og = o / groups;
    for (int64_t b = 0; b < n; b++)
      for (int64_t f = 0; f < o; f++)
        for (int64_t y = 0; y < oh; y++)
          for (int64_t x = 0; x < ow; x++)
            for (int64_t ch = 0; ch < cg; ch++)
              for (int64_t i = 0; i < kh; i++)
                for (int64_t j = 0; j < kw; j++) {
                  int64_t sy = y * stride[0] - padding[0] + i * dilation[0];
                  int64_t sx = x * stride[1] - padding[1] + j * dilation[1];
                  if (sy < 0 || sx < 0 || sy >= h || sx >= w) continue;
                  body(((b * c + f / og * cg + ch) * h + sy) * w + sx, ((f * cg + ch) * kh + i) * kw + j,
                       ((b * o + f) * oh + y) * ow + x);
                }
  }
};

void check_conv(uint32_t dtype, const Conv& v, Layout lx, Layout lw, bool with_bias) {
  Dims xs{v.n, v.c, v.h, v.w}, ws{v.o, v.c / v.groups, v.kh, v.kw}, ys{v.n, v.o, v.out(0), v.out(1)};
  std::vector<Attr> attrs = {
      {"stride", v.stride}, {"padding", v.padding}, {"dilation", v.dilation}, Attr::integer("groups", v.groups)};
  Tensor x(dtype, xs, lx), weight(dtype, ws, lw), bias(dtype, {v.o}), y(dtype, ys), dy(dtype, ys, lx), dx(dtype, xs),
      dw(dtype, ws);
  x.random(), weight.random(), bias.random(), dy.random();
  std::vector<double> ey(static_cast<size_t>(y.size())), ex(static_cast<size_t>(x.size())),
      ew(static_cast<size_t>(weight.size()));
  if (with_bias) {
    for (int64_t i = 0; i < y.size(); i++) ey[static_cast<size_t>(i)] = bias.get(i / (v.out(0) * v.out(1)) % v.o);
  }
  v.each([&](int64_t p, int64_t q, int64_t r) {
    ey[static_cast<size_t>(r)] += x.get(p) * weight.get(q);
    ex[static_cast<size_t>(p)] += dy.get(r) * weight.get(q);
    ew[static_cast<size_t>(q)] += dy.get(r) * x.get(p);
  });
  run("conv2d", attrs, {&x, &weight, with_bias ? &bias : nullptr}, {&y});
  check_close(y, ey, tolerance(dtype, v.c * v.kh * v.kw), "conv2d");
  run("conv2d_grad_input", attrs, {&dy, &weight, &x}, {&dx});
  check_close(dx, ex, tolerance(dtype, v.o * v.kh * v.kw), "conv2d_grad_input");
  run("conv2d_grad_weight", attrs, {&dy, &x, &weight}, {&dw});
  check_close(dw, ew, tolerance(dtype, v.n * v.out(0) * v.out(1)), "conv2d_grad_weight");
}

}  // namespace

TEST_CASE("conv2d and its gradients: shapes, strides, groups, layouts") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_BF16, PG_F16}) {
    check_conv(dtype, {2, 3, 9, 8, 16, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}}, Layout::kDense, Layout::kDense, true);
    check_conv(dtype, {2, 16, 9, 8, 24, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}}, Layout::kChannelsLast, Layout::kDense, true);
    check_conv(dtype, {1, 16, 7, 7, 16, 1, 1, 1, {1, 1}, {0, 0}, {1, 1}}, Layout::kDense, Layout::kReversed, false);
    check_conv(dtype, {2, 16, 8, 8, 16, 3, 3, 16, {2, 2}, {1, 1}, {1, 1}}, Layout::kDense, Layout::kDense, true);
    check_conv(dtype, {2, 1, 8, 8, 4, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}}, Layout::kDense, Layout::kDense, true);
    for (int trial = 0; trial < 20; trial++) {
      int64_t groups = between(1, 3);
      Conv v{between(1, 3),
             groups * between(1, 5),
             between(5, 12),
             between(5, 12),
             groups * between(1, 5),
             between(1, 3),
             between(1, 3),
             groups,
             {between(1, 3), between(1, 3)},
             {between(0, 2), between(0, 2)},
             {between(1, 2), between(1, 2)}};
      check_conv(dtype, v, any_layout(), any_layout(), trial % 2 == 0);
    }
  }
}

TEST_CASE("conv2d: empties and broadcast inputs") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_BF16}) {
    check_conv(dtype, {0, 3, 5, 5, 4, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}}, Layout::kDense, Layout::kDense, true);
    check_conv(dtype, {2, 0, 5, 5, 4, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}}, Layout::kDense, Layout::kDense, true);
    check_conv(dtype, {2, 3, 5, 5, 0, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}}, Layout::kDense, Layout::kDense, true);
    Tensor one(dtype, {1, 1, 1, 1}), weight(dtype, {2, 1, 3, 3}), y(dtype, {2, 2, 2, 2});
    one.fill(2), weight.fill(0.5);
    Tensor x = one.expand(0, 2).expand(2, 4).expand(3, 4);
    run("conv2d",
        {{"stride", Dims{1, 1}}, {"padding", Dims{0, 0}}, {"dilation", Dims{1, 1}}, Attr::integer("groups", 1)},
        {&x, &weight, nullptr}, {&y});
    check_close(y, std::vector<double>(16, 9.0), tolerance(dtype, 9), "expanded");
  }
}
