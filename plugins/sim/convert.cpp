// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"

#include <complex>

#include "perigee/kernels/reference/create.hpp"

namespace sim {
namespace {

using pg::reference::each_offset;
using pg::reference::Operand;
using Complex = std::complex<double>;

bool is_complex(uint32_t dtype) { return pg::dtype_class(dtype) == PG_M_COMPLEX; }

std::vector<Complex> read_complex(const Operand& x) {
  std::vector<Complex> out;
  if (x.dtype == PG_C128) {
    each_offset(x.shape, x.stride, [&](int64_t at) { out.push_back(static_cast<const Complex*>(x.data)[at]); });
  } else if (x.dtype == PG_C64) {
    each_offset(x.shape, x.stride,
                [&](int64_t at) { out.push_back(static_cast<const std::complex<float>*>(x.data)[at]); });
  } else {
    for (double real : pg::reference::read<double>(x)) out.push_back(real);
  }
  return out;
}

// A real target takes the real part; a boolean asks for both.
void write_complex(const Operand& y, const std::vector<Complex>& values) {
  const Complex* next = values.data();
  if (y.dtype == PG_C128) {
    each_offset(y.shape, y.stride, [&](int64_t at) { static_cast<Complex*>(y.data)[at] = *next++; });
  } else if (y.dtype == PG_C64) {
    each_offset(y.shape, y.stride,
                [&](int64_t at) { static_cast<std::complex<float>*>(y.data)[at] = std::complex<float>(*next++); });
  } else {
    std::vector<double> real;
    for (Complex value : values) real.push_back(y.dtype == PG_B8 ? value != 0.0 : value.real());
    pg::reference::write(y, real);
  }
}

}  // namespace

void check_dtype(uint32_t dtype) {
  if (!is_complex(dtype))
    pg::reference::with_storage(dtype, [](auto) {});
  else if (dtype != PG_C64 && dtype != PG_C128)
    pg::fail_support("unknown complex dtype");
}

void copy_elements(const Operand& target, const Operand& source) {
  bool dense = target.stride == source.stride && target.stride == pg::reference::dense(target.shape);
  if (dense && target.dtype == source.dtype) {
    std::memmove(target.data, source.data, static_cast<size_t>(target.count() * pg::dtype_bytes(target.dtype)));
  } else if (is_complex(target.dtype) || is_complex(source.dtype)) {
    write_complex(target, read_complex(source));
  } else {
    pg::reference::with_compute(
        source.dtype, [&](auto tag) { pg::reference::write(target, pg::reference::read<decltype(tag)>(source)); });
  }
}

void fill_elements(const Operand& target, double value) {
  if (is_complex(target.dtype)) {
    write_complex(target, std::vector<Complex>(static_cast<size_t>(target.count()), Complex(value)));
  } else {
    pg::reference::fill(value, target);
  }
}

}  // namespace sim
