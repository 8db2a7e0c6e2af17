// SPDX-License-Identifier: Apache-2.0
// Batch normalisations in training and their gradients: what finalizing checks, and what they compute, as
// cudnn_graph.h and NVIDIA's guide say.
#include <cmath>

#include "cudnn_store.hpp"

namespace standin::dnn {
namespace {

struct VectorName {
  int name;
  bool required;
};
const std::vector<VectorName>& vector_names(bool forward) {
  static const std::vector<VectorName> of_forward = {{CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, true},
                                                     {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, true},
                                                     {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, true},
                                                     {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, true},
                                                     {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, false},
                                                     {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, false},
                                                     {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, false},
                                                     {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, false}};
  static const std::vector<VectorName> of_gradient = {{CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, true},
                                                      {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, true},
                                                      {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, true},
                                                      {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, true},
                                                      {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, true}};
  return forward ? of_forward : of_gradient;
}

bool is_forward(const Object& operation) { return operation.type == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR; }

std::vector<int> full_names(bool forward) {
  if (forward) return {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC};
  return {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC,
          CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC};
}

cudnnStatus_t wrong(const char* why) { return refuse(CUDNN_STATUS_BAD_PARAM, why); }

cudnnStatus_t check_number(const Object& operation, int name) {
  const Object* part = operation.part(name);
  if (part == nullptr || part->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) return wrong("a number is missing");
  TensorView t(*part);
  return t.by_value && t.count() == 1 && t.type == Number::kF32 ? CUDNN_STATUS_SUCCESS
                                                                : wrong("not one float by value");
}

// A tensor's elements, as numbers.
class Elements {
 public:
  Elements(const Object& operation, int name, const std::map<int64_t, void*>& addresses)
      : view_(*operation.part(name)), data_(addresses.at(view_.uid)) {}
  const TensorView& view() const { return view_; }
  double at(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return read_number(view_.type, data_, place(n, c, h, w));
  }
  void set(int64_t n, int64_t c, int64_t h, int64_t w, double value) const {
    write_number(view_.type, data_, place(n, c, h, w), value);
  }
  double of(int64_t channel) const { return at(0, channel, 0, 0); }
  void set(int64_t channel, double value) const { set(0, channel, 0, 0, value); }

 private:
  int64_t place(int64_t n, int64_t c, int64_t h, int64_t w) const {
    const std::vector<int64_t>& s = view_.stride;
    return n * s[0] + c * s[1] + h * s[2] + w * s[3];
  }
  TensorView view_;
  void* data_;
};

template <class Body>
void each_place(const TensorView& x, const Body& body) {
  for (int64_t n = 0; n < x.shape[0]; n++) {
    for (int64_t h = 0; h < x.shape[2]; h++) {
      for (int64_t w = 0; w < x.shape[3]; w++) body(n, h, w);
    }
  }
}

void normalise(const Object& op, const std::map<int64_t, void*>& addresses) {
  auto elements = [&](int name) { return Elements(op, name, addresses); };
  Elements x = elements(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC), y = elements(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC),
           scale = elements(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC),
           bias = elements(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC),
           mean_out = elements(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC),
           invstd_out = elements(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC);
  double eps = elements(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC).of(0);
  double count = static_cast<double>(x.view().count() / x.view().shape[1]);
  for (int64_t c = 0; c < x.view().shape[1]; c++) {
    double mean = 0, variance = 0;
    each_place(x.view(), [&](int64_t n, int64_t h, int64_t w) { mean += x.at(n, c, h, w) / count; });
    each_place(x.view(), [&](int64_t n, int64_t h, int64_t w) {
      variance += (x.at(n, c, h, w) - mean) * (x.at(n, c, h, w) - mean) / count;
    });
    double invstd = 1 / std::sqrt(variance + eps);
    each_place(x.view(), [&](int64_t n, int64_t h, int64_t w) {
      y.set(n, c, h, w, (x.at(n, c, h, w) - mean) * invstd * scale.of(c) + bias.of(c));
    });
    mean_out.set(c, mean), invstd_out.set(c, invstd);
    if (op.part(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC) == nullptr) continue;
    double share = elements(CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC).of(0);
    auto move = [&](int from, int to, double batch) {
      elements(to).set(c, (1 - share) * elements(from).of(c) + share * batch);
    };
    move(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
         mean);
    move(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC,
         variance * count / (count - 1));
  }
}

void differentiate(const Object& op, const std::map<int64_t, void*>& addresses) {
  auto elements = [&](int name) { return Elements(op, name, addresses); };
  Elements x = elements(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC), dy = elements(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC),
           dx = elements(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC),
           scale = elements(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC),
           mean = elements(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC),
           invstd = elements(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC),
           dscale = elements(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC),
           dbias = elements(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC);
  double count = static_cast<double>(x.view().count() / x.view().shape[1]);
  for (int64_t c = 0; c < x.view().shape[1]; c++) {
    double sum = 0, product = 0;
    auto normal = [&](int64_t n, int64_t h, int64_t w) { return (x.at(n, c, h, w) - mean.of(c)) * invstd.of(c); };
    each_place(x.view(), [&](int64_t n, int64_t h, int64_t w) {
      sum += dy.at(n, c, h, w), product += dy.at(n, c, h, w) * normal(n, h, w);
    });
    each_place(x.view(), [&](int64_t n, int64_t h, int64_t w) {
      double centred = dy.at(n, c, h, w) - sum / count - normal(n, h, w) * product / count;
      dx.set(n, c, h, w, scale.of(c) * invstd.of(c) * centred);
    });
    dscale.set(c, product), dbias.set(c, sum);
  }
}

}  // namespace

bool is_norm(const Object& operation) {
  return is_forward(operation) || operation.type == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
}

cudnnStatus_t check_norm(const Object& operation) {
  bool forward = is_forward(operation);
  int mode = forward ? CUDNN_ATTR_OPERATION_NORM_FWD_MODE : CUDNN_ATTR_OPERATION_NORM_BWD_MODE;
  if (operation.value<cudnnBackendNormMode_t>(mode) != CUDNN_BATCH_NORM) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "batch norms only");
  }
  std::vector<int> full = full_names(forward);
  for (int name : full) {
    if (!is_tensor(operation.part(name))) return wrong("not a tensor");
    TensorView t(*operation.part(name)), x(*operation.part(full[0]));
    if (t.shape.size() != 4 || t.shape != x.shape || t.type != x.type) return wrong("tensors of different shapes");
  }
  int64_t channels = TensorView(*operation.part(full[0])).shape[1];
  for (const VectorName& vector : vector_names(forward)) {
    const Object* part = operation.part(vector.name);
    if (part == nullptr && !vector.required) continue;
    if (!is_tensor(part)) return wrong("not a tensor");
    TensorView t(*part);
    if (t.shape != std::vector<int64_t>{1, channels, 1, 1}) return wrong("statistics are [1, C, 1, 1]");
    if (t.type != Number::kF32) return refuse(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "statistics are float32");
  }
  if (!forward) return CUDNN_STATUS_SUCCESS;
  if (auto status = check_number(operation, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC); status != CUDNN_STATUS_SUCCESS)
    return status;
  size_t running = 0;
  for (size_t i = 4; i < 8; i++) running += operation.part(vector_names(true)[i].name) != nullptr ? 1 : 0;
  if (running == 0) return CUDNN_STATUS_SUCCESS;
  if (running != 4) return wrong("running statistics go together");
  return check_number(operation, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC);
}

NormView::NormView(const Object& operation)
    : x(*operation.part(full_names(is_forward(operation))[0])), one_layout(true), aligned(true), training(true) {
  bool dense = true, last = true;
  for (int name : full_names(is_forward(operation))) {
    TensorView t(*operation.part(name));
    dense = dense && t.is_dense(), last = last && t.is_channels_last(), aligned = aligned && t.alignment >= 16;
  }
  one_layout = dense || last;
  if (is_forward(operation)) {
    auto phase = operation.value<cudnnBackendNormFwdPhase_t>(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE);
    training = phase == CUDNN_NORM_FWD_TRAINING;
  }
}

void compute_norm(const Object& operation, const std::map<int64_t, void*>& addresses) {
  if (is_forward(operation))
    normalise(operation, addresses);
  else
    differentiate(operation, addresses);
}

}  // namespace standin::dnn
