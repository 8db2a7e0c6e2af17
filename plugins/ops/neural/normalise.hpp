// SPDX-License-Identifier: Apache-2.0
// The derivatives that batch_norm, layer_norm and rms_norm share. With the normalised xh = (x - mean) s, s = 1 /
// sqrt(var + eps), and both statistics over `axes`: d xh = s P(dx), where P(v) = v - mean(v) - xh mean(v xh) is
// self-adjoint, and d s = -s^2 mean(xh dx). All values broadcast against x; everything emitted is differentiable again.
#pragma once

#include "../rules.hpp"

namespace pg {

struct Normalised {
  Value xh, s;
  pg_ints axes;         // that the statistics are over
  bool fixed;           // the statistics do not depend on x (evaluation)
  bool centred = true;  // false: there is no mean, and s = 1 / sqrt(mean(x^2) + eps)

  Value average(Value v) const { return mean(v, axes, true); }
  Value project(Value v) const {
    if (fixed) return v;
    return (centred ? v - average(v) : v) - xh * average(v * xh);
  }
};

// From statistics of x, so that derivatives see through them.
inline Normalised normalise(Value x, const pg_ints& axes, double eps) {
  Value centred = x - mean(x, axes, true);
  Value s = rsqrt(mean(square(centred), axes, true) + eps);
  return {centred * s, s, axes, false};
}

inline Value times(Value v, Value weight) { return weight ? v * weight : v; }
inline Value plus(Value a, Value b) { return !a ? b : !b ? a : a + b; }

// The gradient of x: s P(dy weight).
inline Value normalised_dx(const Normalised& n, Value dy, Value weight) { return n.s * n.project(times(dy, weight)); }

// Second derivatives. a, b, c: cotangents of dx, dweight, dbias, absent where nothing flowed.
struct SecondOrder {
  Value ddy, dx, dweight;  // dweight still to be summed to its shape
};

inline SecondOrder normalised_second(const Normalised& n, Value dy, Value weight, Value a, Value b, Value c) {
  SecondOrder out;
  if (a) {
    Value pa = n.s * n.project(a), g = times(dy, weight);
    out.ddy = times(pa, weight);
    if (weight) out.dweight = dy * pa;
    if (!n.fixed) {
      Value ax = n.average(a * n.xh), gx = n.average(g * n.xh);
      Value overlap = n.average(a * g) - ax * gx;
      if (n.centred) overlap = overlap - n.average(a) * n.average(g);
      out.dx = -(square(n.s) * (n.xh * overlap + n.project(a * gx + g * ax)));
    }
  }
  if (b) {
    out.ddy = plus(out.ddy, b * n.xh);
    out.dx = plus(out.dx, n.s * n.project(b * dy));
  }
  if (c) out.ddy = plus(out.ddy, expand_like(c, dy));
  return out;
}

// Statistics are kept in float32, in float64 for float64.
inline uint32_t statistics_dtype(uint32_t dtype) { return dtype == PG_F64 ? PG_F64 : PG_F32; }

inline void check_affine(const ShapeContext& c, uint32_t input, uint32_t x) {
  uint32_t dtype = c.dtype(input);
  c.need(dtype == c.dtype(x) || dtype == statistics_dtype(c.dtype(x)), "%s is %s; expected %s, the dtype of x, or %s",
         c.name(input), dtype_name(dtype), dtype_name(c.dtype(x)), dtype_name(statistics_dtype(c.dtype(x))));
}

}  // namespace pg
