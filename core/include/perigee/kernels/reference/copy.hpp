// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/copy.hpp: a device's strided copy and fill, where the processor reaches its memory: any
// dtype to any, complex included.
//
//   void copy(uint32_t, const pg_tensor& target, const pg_tensor& source, pg::Ticket) {
//     pg::reference::copy_elements({target, address_of(target)}, {source, address_of(source)});
//   }
#pragma once

#include <complex>

#include "perigee/kernels/reference/create.hpp"

namespace pg::reference {
namespace detail {

using Complex = std::complex<double>;

inline bool is_complex(uint32_t dtype) { return dtype_class(dtype) == PG_M_COMPLEX; }

inline std::vector<Complex> read_complex(const Operand& x) {
  std::vector<Complex> out;
  if (x.dtype == PG_C128) {
    each_offset(x.shape, x.stride, [&](int64_t at) { out.push_back(static_cast<const Complex*>(x.data)[at]); });
  } else if (x.dtype == PG_C64) {
    each_offset(x.shape, x.stride,
                [&](int64_t at) { out.push_back(static_cast<const std::complex<float>*>(x.data)[at]); });
  } else {
    for (double real : read<double>(x)) out.push_back(real);
  }
  return out;
}

// A real target takes the real part; a boolean asks for both.
inline void write_complex(const Operand& y, const std::vector<Complex>& values) {
  const Complex* next = values.data();
  if (y.dtype == PG_C128) {
    each_offset(y.shape, y.stride, [&](int64_t at) { static_cast<Complex*>(y.data)[at] = *next++; });
  } else if (y.dtype == PG_C64) {
    each_offset(y.shape, y.stride,
                [&](int64_t at) { static_cast<std::complex<float>*>(y.data)[at] = std::complex<float>(*next++); });
  } else {
    std::vector<double> real;
    for (Complex value : values) real.push_back(y.dtype == PG_B8 ? value != 0.0 : value.real());
    write(y, real);
  }
}

}  // namespace detail

// Throws pg::Error (not supported) for a dtype that is unknown here.
inline void check_dtype(uint32_t dtype) {
  if (!detail::is_complex(dtype))
    with_storage(dtype, [](auto) {});
  else if (dtype != PG_C64 && dtype != PG_C128)
    fail_support("unknown complex dtype");
}

// Of one shape; the two may overlap.
inline void copy_elements(const Operand& target, const Operand& source) {
  bool plain = target.stride == source.stride && target.stride == dense(target.shape);
  if (plain && target.dtype == source.dtype) {
    std::memmove(target.data, source.data, static_cast<size_t>(target.count() * dtype_bytes(target.dtype)));
  } else if (detail::is_complex(target.dtype) || detail::is_complex(source.dtype)) {
    detail::write_complex(target, detail::read_complex(source));
  } else {
    with_compute(source.dtype, [&](auto tag) { write(target, read<decltype(tag)>(source)); });
  }
}

inline void fill_elements(const Operand& target, const pg_number& value) {
  const detail::Complex number(value.real, value.imaginary);
  if (detail::is_complex(target.dtype) || (target.dtype == PG_B8 && value.kind == PG_SCALAR_COMPLEX)) {
    detail::write_complex(target, std::vector<detail::Complex>(static_cast<size_t>(target.count()), number));
  } else {
    fill(value, target);
  }
}

}  // namespace pg::reference
