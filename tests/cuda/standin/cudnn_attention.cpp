// SPDX-License-Identifier: Apache-2.0
// Graphs that begin with a product of matrices: cuDNN 9.19 knows attention by the form of its graph (for sm_90, 16-bit
// operands, and only with the logarithms of the sums among its results). Their operations are computed one after the
// other, in float64, what is passed on within the graph being kept whole.
#include <cmath>

#include "cudnn_store.hpp"

namespace standin::dnn {
namespace {

using Dense = std::vector<double>;  // row-major

int y_of(const Object& operation) {
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return CUDNN_ATTR_OPERATION_MATMUL_CDESC;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return CUDNN_ATTR_OPERATION_REDUCTION_YDESC;
    default: return CUDNN_ATTR_OPERATION_POINTWISE_YDESC;
  }
}
TensorView view(const Object& operation, int name) { return TensorView(*operation.part(name)); }

cudnnPointwiseMode_t mode_of(const Object& operation) {
  return operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
      ->value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
}

// body(row-major number, position) for every element of four dimensions.
template <class Body>
void each(const std::vector<int64_t>& shape, const Body& body) {
  int64_t at[4], i = 0;
  for (at[0] = 0; at[0] < shape[0]; at[0]++) {
    for (at[1] = 0; at[1] < shape[1]; at[1]++) {
      for (at[2] = 0; at[2] < shape[2]; at[2]++) {
        for (at[3] = 0; at[3] < shape[3]; at[3]++) body(static_cast<size_t>(i++), at);
      }
    }
  }
}
// Where a position lies in a tensor that axes of size 1 are broadcast from.
size_t place(const std::vector<int64_t>& shape, const int64_t (&at)[4]) {
  int64_t i = 0;
  for (size_t axis = 0; axis < 4; axis++) i = i * shape[axis] + (shape[axis] == 1 ? 0 : at[axis]);
  return static_cast<size_t>(i);
}

double point(cudnnPointwiseMode_t mode, double x, double b, double t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD: return x + b;
    case CUDNN_POINTWISE_SUB: return x - b;
    case CUDNN_POINTWISE_MUL: return x * b;
    case CUDNN_POINTWISE_DIV: return x / b;
    case CUDNN_POINTWISE_EXP: return std::exp(x);
    case CUDNN_POINTWISE_LOG: return std::log(x);
    case CUDNN_POINTWISE_CMP_GE: return x >= b ? 1 : 0;
    case CUDNN_POINTWISE_BINARY_SELECT: return t != 0 ? x : b;
    default: return std::nan("");
  }
}

class Evaluation {
 public:
  explicit Evaluation(const std::map<int64_t, void*>& addresses) : addresses_(addresses) {}

  void run(const Object& operation) {
    const TensorView y = view(operation, y_of(operation));
    Dense result(static_cast<size_t>(y.count()), 0);
    switch (operation.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: multiply(operation, y, result); break;
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: reduce(operation, result); break;
      default: pointwise(operation, y, result);
    }
    if (y.type == Number::kF16 || y.type == Number::kBf16) {
      for (double& x : result) x = rounded(y.type, x);
    }
    if (!y.is_virtual) {
      each(y.shape, [&](size_t i, const int64_t(&at)[4]) {
        int64_t offset = 0;
        for (size_t axis = 0; axis < 4; axis++) offset += at[axis] * y.stride[axis];
        write_number(y.type, addresses_.at(y.uid), offset, result[i]);
      });
    }
    values_[y.uid] = std::move(result);
  }

 private:
  static double rounded(Number type, double x) {
    uint16_t bits = 0;
    write_number(type, &bits, 0, x);
    return read_number(type, &bits, 0);
  }
  const Dense& value(const TensorView& t) {
    if (auto found = values_.find(t.uid); found != values_.end()) return found->second;
    Dense values(static_cast<size_t>(t.count()));
    each(t.shape, [&](size_t i, const int64_t(&at)[4]) {
      int64_t offset = 0;
      for (size_t axis = 0; axis < 4; axis++) offset += at[axis] * t.stride[axis];
      values[i] = read_number(t.type, addresses_.at(t.uid), offset);
    });
    return values_[t.uid] = std::move(values);
  }

  void multiply(const Object& operation, const TensorView& y, Dense& result) {
    TensorView a = view(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
               b = view(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    Dense left = value(a), right = value(b);
    each(y.shape, [&](size_t i, const int64_t(&at)[4]) {
      for (int64_t k = 0; k < a.shape[3]; k++) {
        const int64_t first[4] = {at[0], at[1], at[2], k}, second[4] = {at[0], at[1], k, at[3]};
        result[i] += left[place(a.shape, first)] * right[place(b.shape, second)];
      }
    });
  }
  void reduce(const Object& operation, Dense& result) {
    TensorView x = view(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
               y = view(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    bool largest = operation.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                       ->value<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
    if (largest) result.assign(result.size(), -INFINITY);
    const Dense& values = value(x);
    each(x.shape, [&](size_t i, const int64_t(&at)[4]) {
      double& into = result[place(y.shape, at)];
      into = !largest ? into + values[i] : values[i] > into || std::isnan(values[i]) ? values[i] : into;
    });
  }
  void pointwise(const Object& operation, const TensorView& y, Dense& result) {
    const cudnnPointwiseMode_t mode = mode_of(operation);
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
      auto axis = static_cast<size_t>(
          operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)->number(CUDNN_ATTR_POINTWISE_AXIS));
      each(y.shape, [&](size_t i, const int64_t(&at)[4]) { result[i] = static_cast<double>(at[axis]); });
      return;
    }
    struct Given {
      std::vector<int64_t> shape = {1, 1, 1, 1};
      Dense values = {0};
    } given[3];
    const int names[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                         CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    for (int i = 0; i < 3; i++) {
      if (operation.part(names[i]) == nullptr) continue;
      TensorView t = view(operation, names[i]);
      given[i] = {t.shape, value(t)};
    }
    each(y.shape, [&](size_t i, const int64_t(&at)[4]) {
      auto of = [&](int k) { return given[k].values[place(given[k].shape, at)]; };
      result[i] = point(mode, of(0), of(1), of(2));
    });
  }

  const std::map<int64_t, void*>& addresses_;
  std::map<int64_t, Dense> values_;
};

}  // namespace

bool is_matmul(const Object& operation) { return operation.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR; }
bool is_reduction(const Object& operation) { return operation.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR; }

// As cuDNN tells attention: two products with a softmax between them, which may be masked and gives its logarithms.
bool is_attention(const Object& graph) {
  std::vector<int> forms;
  for (const Ref& operation : graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    forms.push_back(is_pointwise(*operation) ? mode_of(*operation) : is_reduction(*operation) ? -2 : -1);
    if (is_matmul(*operation)) {
      Number type = view(*operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC).type;
      if (type != Number::kF16 && type != Number::kBf16) return false;
    }
  }
  std::vector<int> softmax = {
      -2, CUDNN_POINTWISE_SUB, CUDNN_POINTWISE_EXP, -2, CUDNN_POINTWISE_LOG, CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_DIV,
      -1};
  std::vector<int> mask = {CUDNN_POINTWISE_GEN_INDEX, CUDNN_POINTWISE_GEN_INDEX, CUDNN_POINTWISE_CMP_GE,
                           CUDNN_POINTWISE_BINARY_SELECT};
  std::vector<int> plain = {-1, CUDNN_POINTWISE_MUL}, masked = plain;
  masked.insert(masked.end(), mask.begin(), mask.end());
  for (std::vector<int>* form : {&plain, &masked}) form->insert(form->end(), softmax.begin(), softmax.end());
  return forms == plain || forms == masked;
}

void compute_attention(const Object& graph, const std::map<int64_t, void*>& addresses) {
  Evaluation evaluation(addresses);
  for (const Ref& operation : graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) evaluation.run(*operation);
}

}  // namespace standin::dnn
