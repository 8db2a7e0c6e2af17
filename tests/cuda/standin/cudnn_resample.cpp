// SPDX-License-Identifier: Apache-2.0
// Pooling (what cuDNN calls resampling): what finalizing checks, and what the modes compute, as cudnn_graph.h and
// NVIDIA's guide say. The places of largest elements and gradients, which the plugin does not ask for, are not here.
#include <algorithm>
#include <cmath>

#include "cudnn_store.hpp"

namespace standin::dnn {
namespace {

int64_t place(const TensorView& t, int64_t n, int64_t c, int64_t h, int64_t w) {
  return n * t.stride[0] + c * t.stride[1] + h * t.stride[2] + w * t.stride[3];
}

// body(n, c, row, column) for every window.
template <class Body>
void each_window(const TensorView& pooled, const Body& body) {
  for (int64_t n = 0; n < pooled.shape[0]; n++) {
    for (int64_t c = 0; c < pooled.shape[1]; c++) {
      for (int64_t h = 0; h < pooled.shape[2]; h++) {
        for (int64_t w = 0; w < pooled.shape[3]; w++) body(n, c, h, w);
      }
    }
  }
}

// body(row, column) for every element of a window that lies within the plane.
template <class Body>
void each_inside(const ResampleView& r, int64_t h, int64_t w, const Body& body) {
  for (int64_t i = 0; i < r.window[0]; i++) {
    for (int64_t j = 0; j < r.window[1]; j++) {
      int64_t row = h * r.stride[0] - r.before[0] + i, column = w * r.stride[1] - r.before[1] + j;
      if (row >= 0 && column >= 0 && row < r.full.shape[2] && column < r.full.shape[3]) body(row, column);
    }
  }
}

double divisor(const ResampleView& r, int64_t h, int64_t w) {
  if (r.mode == CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING) return static_cast<double>(r.window[0] * r.window[1]);
  double count = 0;
  each_inside(r, h, w, [&](int64_t, int64_t) { count++; });
  return count;
}

void pool(const ResampleView& r, const void* x, void* y) {
  each_window(r.pooled, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    bool largest = r.mode == CUDNN_RESAMPLE_MAXPOOL;
    double result = largest ? -INFINITY : 0;
    each_inside(r, h, w, [&](int64_t row, int64_t column) {
      double value = read_number(r.full.type, x, place(r.full, n, c, row, column));
      if (!largest)
        result += value;
      else if (value > result || (std::isnan(value) && r.nan_wins))
        result = value;
    });
    write_number(r.pooled.type, y, place(r.pooled, n, c, h, w), largest ? result : result / divisor(r, h, w));
  });
}

}  // namespace

bool is_resample(const Object& operation) { return operation.type == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR; }

ResampleView::ResampleView(const Object& operation)
    : full(*operation.part(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC)),
      pooled(*operation.part(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC)) {
  const Object& windows = *operation.part(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
  mode = windows.value<cudnnResampleMode_t>(CUDNN_ATTR_RESAMPLE_MODE);
  padding = windows.value<cudnnPaddingMode_t>(CUDNN_ATTR_RESAMPLE_PADDING_MODE);
  compute = number_of(windows.value<cudnnDataType_t>(CUDNN_ATTR_RESAMPLE_COMP_TYPE));
  const Attribute* nan = windows.find(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION);
  nan_wins = nan != nullptr && *nan->values<cudnnNanPropagation_t>() == CUDNN_PROPAGATE_NAN;
  window = windows.numbers(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS);
  stride = windows.numbers(CUDNN_ATTR_RESAMPLE_STRIDES);
  before = windows.numbers(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS);
  behind = windows.numbers(CUDNN_ATTR_RESAMPLE_POST_PADDINGS);
}

cudnnStatus_t check_windows(const Object& windows) {
  auto dims = static_cast<size_t>(windows.number(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS));
  for (int name : {CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS,
                   CUDNN_ATTR_RESAMPLE_POST_PADDINGS}) {
    bool padding = name == CUDNN_ATTR_RESAMPLE_PRE_PADDINGS || name == CUDNN_ATTR_RESAMPLE_POST_PADDINGS;
    std::vector<int64_t> values = windows.numbers(name);
    if (values.size() != dims) return refuse(CUDNN_STATUS_BAD_PARAM, "one number per spatial dimension is needed");
    for (int64_t value : values) {
      if (value < (padding ? 0 : 1)) return refuse(CUDNN_STATUS_BAD_PARAM, "a window's number is too small");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_resample(const Object& operation) {
  const Object* windows = operation.part(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
  if (windows == nullptr || windows->type != CUDNN_BACKEND_RESAMPLE_DESCRIPTOR) {
    return refuse(CUDNN_STATUS_BAD_PARAM, "no windows");
  }
  for (int name : {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC}) {
    if (!is_tensor(operation.part(name))) return refuse(CUDNN_STATUS_BAD_PARAM, "not a tensor");
  }
  ResampleView r(operation);
  if (r.full.shape.size() != 4 || r.pooled.shape.size() != 4 || r.window.size() != 2) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "two spatial dimensions only");
  }
  if (r.full.type != r.pooled.type || r.compute != (r.full.type == Number::kF64 ? Number::kF64 : Number::kF32)) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "data and compute types");
  }
  bool fits = r.full.shape[0] == r.pooled.shape[0] && r.full.shape[1] == r.pooled.shape[1];
  for (size_t i = 0; i < 2; i++) {
    int64_t room = r.full.shape[i + 2] + r.before[i] + r.behind[i] - r.window[i];
    fits = fits && room >= 0 && r.pooled.shape[i + 2] == room / r.stride[i] + 1;
  }
  bool largest = r.mode == CUDNN_RESAMPLE_MAXPOOL;
  fits = fits && r.padding == (largest ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD);
  return fits ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_BAD_PARAM, "shapes and windows do not fit together");
}

void compute_resample(const Object& operation, const std::map<int64_t, void*>& addresses) {
  ResampleView r(operation);
  pool(r, addresses.at(r.full.uid), addresses.at(r.pooled.uid));
}

}  // namespace standin::dnn
