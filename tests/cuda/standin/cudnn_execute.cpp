// SPDX-License-Identifier: Apache-2.0
// Runs plans: what a graph says, read from its descriptors.
#include <list>

#include "cudnn_store.hpp"
#include "standin.hpp"

namespace standin::dnn {
namespace {

const Object& graph_of(const Object& plan) { return *plan.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH); }

// Of [a, b, ...] the place `at` on the other axes.
using Tap = std::vector<int64_t>;
int64_t offset(const TensorView& t, int64_t a, int64_t b, const Tap& at) {
  int64_t sum = a * t.stride[0] + b * t.stride[1];
  for (size_t i = 0; i < at.size(); i++) sum += at[i] * t.stride[i + 2];
  return sum;
}

// body(place) for every place on the axes that windows slide over, in row-major order.
template <class Body>
void each_tap(const TensorView& t, const Body& body) {
  Tap at(t.shape.size() - 2, 0);
  for (int64_t count = t.count() / (t.shape[0] * t.shape[1]); count > 0; count--) {
    body(at);
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < t.shape[i + 2]) break;
      at[i] = 0;
    }
  }
}

// body(where in x, in weight, in y) for every product of the convolution.
template <class Body>
void each_product(const ConvolutionView& v, const Body& body) {
  int64_t in = v.weight.shape[1], out = v.weight.shape[0] / v.groups();
  for (int64_t n = 0; n < v.y.shape[0]; n++) {
    for (int64_t o = 0; o < v.y.shape[1]; o++) {
      each_tap(v.y, [&](const Tap& to) {
        for (int64_t c = 0; c < in; c++) {
          each_tap(v.weight, [&](const Tap& tap) {
            Tap from = to;
            for (size_t i = 0; i < from.size(); i++) {
              from[i] = to[i] * v.stride[i] - v.padding[i] + tap[i] * v.dilation[i];
              if (from[i] < 0 || from[i] >= v.x.shape[i + 2]) return;
            }
            int64_t at_x = offset(v.x, n, o / out * in + c, from), at_w = offset(v.weight, o, c, tap);
            body(at_x, at_w, offset(v.y, n, o, to));
          });
        }
      });
    }
  }
}

// Tensor cores see float32 with ten bits of fraction.
double rounded(double value, Number type, bool tensor_cores) {
  if (!tensor_cores || type != Number::kF32) return value;
  auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  bits &= 0xffffe000u;
  std::memcpy(&narrow, &bits, sizeof narrow);
  return narrow;
}

// The sums, where the result's elements lie.
std::vector<double> convolve(const ConvolutionView& v, const void* first, const void* second, bool tensor_cores) {
  Number type = v.x.type;
  std::vector<Sum> sums(static_cast<size_t>(v.result().extent()), Sum(type == Number::kF64));
  auto read = [&](const void* data, int64_t i) { return rounded(read_number(type, data, i), type, tensor_cores); };
  each_product(v, [&](int64_t x, int64_t w, int64_t y) {
    if (v.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
      sums[static_cast<size_t>(y)].add_product(read(first, x), read(second, w));
    else if (v.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
      sums[static_cast<size_t>(x)].add_product(read(first, y), read(second, w));
    else
      sums[static_cast<size_t>(w)].add_product(read(first, y), read(second, x));
  });
  std::vector<double> values;
  for (const Sum& sum : sums) values.push_back(v.alpha * sum.value());
  return values;
}

// body(a, b, place) for every element.
template <class Body>
void each_element(const TensorView& t, const Body& body) {
  for (int64_t i = 0; i < t.shape[0] * t.shape[1]; i++)
    each_tap(t, [&](const Tap& at) { body(i / t.shape[1], i % t.shape[1], at); });
}

std::map<int64_t, TensorView> tensors_of(const Object& graph) {
  std::map<int64_t, TensorView> tensors;
  for (const Ref& operation : graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    for (const auto& [name, parts] : operation->parts) {
      for (const Ref& part : parts) {
        if (part->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
        TensorView view(*part);
        if (!view.is_virtual) tensors.emplace(view.uid, view);
      }
    }
  }
  return tensors;
}

}  // namespace

cudnnStatus_t execute(const Ref& plan, const Object& pack, cudaStream_t stream) {
  std::vector<int64_t> uids = pack.numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto* given = pack.find(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->values<void*>();
  std::map<int64_t, void*> addresses;
  for (size_t i = 0; i < uids.size(); i++) {
    if (!addresses.emplace(uids[i], given[i]).second) return refuse(CUDNN_STATUS_BAD_PARAM, "a uid twice");
  }
  std::map<int64_t, TensorView> tensors = tensors_of(graph_of(*plan));
  auto values = std::make_shared<std::list<std::vector<char>>>();  // as they are now
  if (addresses.size() != tensors.size()) return refuse(CUDNN_STATUS_BAD_PARAM, "an address too many, or too few");
  for (const auto& [uid, tensor] : tensors) {
    auto found = addresses.find(uid);
    if (found == addresses.end()) return refuse(CUDNN_STATUS_BAD_PARAM, "no address for a tensor");
    if (tensor.by_value) {
      if (is_device_range(found->second, 1)) return refuse(CUDNN_STATUS_EXECUTION_FAILED, "a value in device memory");
      values->emplace_back(static_cast<const char*>(found->second),
                           static_cast<const char*>(found->second) + number_bytes(tensor.type));
      found->second = values->back().data();
      continue;
    }
    if (!is_aligned(found->second, static_cast<uint64_t>(tensor.alignment))) {
      return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "an address is not aligned as its tensor says");
    }
    auto bytes = static_cast<size_t>(tensor.extent() * number_bytes(tensor.type));
    if (!is_device_range(found->second, bytes)) return refuse(CUDNN_STATUS_EXECUTION_FAILED, "an illegal address");
  }
  bool given_workspace = pack.find(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) != nullptr;
  void* workspace = given_workspace ? pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) : nullptr;
  auto bytes = static_cast<size_t>(plan->workspace);
  if (!is_device_range(workspace, bytes) || !is_aligned(workspace, 16)) {
    return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the workspace is too small");
  }
  cudaError_t queued = enqueue(stream, "cudnnBackendExecute", [=, kept = std::move(values)] {
    if (bytes > 0) std::memset(workspace, 0xa5, bytes);
    compute(*plan, addresses);
  });
  return queued == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

void compute(const Object& plan, const std::map<int64_t, void*>& addresses) {
  const std::vector<Ref>& operations = graph_of(plan).parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (is_norm(*operations[0])) return compute_norm(*operations[0], addresses);
  if (is_resample(*operations[0])) return compute_resample(*operations[0], addresses);
  if (is_matmul(*operations[0])) return compute_attention(graph_of(plan), addresses);
  ConvolutionView v(*operations[0]);
  bool forward = v.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  bool data = v.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  const void* first = addresses.at(forward ? v.x.uid : v.y.uid);
  const void* second = addresses.at(forward || data ? v.weight.uid : v.x.uid);
  std::vector<double> sums = convolve(v, first, second, plan.engine == kTensorCoreEngine);
  const TensorView& from = v.result();
  if (operations.size() == 1) {
    void* target = addresses.at(from.uid);
    each_element(from, [&](int64_t a, int64_t b, const Tap& place) {
      int64_t at = offset(from, a, b, place);
      write_number(from.type, target, at, sums[static_cast<size_t>(at)]);
    });
    return;
  }
  TensorView bias(*operations[1]->part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC)),
      y(*operations[1]->part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  each_element(y, [&](int64_t a, int64_t b, const Tap& place) {
    auto own = [&](size_t axis, int64_t i) { return bias.shape[axis] == 1 ? 0 : i; };
    Tap at = place;
    for (size_t i = 0; i < at.size(); i++) at[i] = own(i + 2, at[i]);
    double addend = read_number(bias.type, addresses.at(bias.uid), offset(bias, own(0, a), own(1, b), at));
    double sum = sums[static_cast<size_t>(offset(from, a, b, place))];
    write_number(y.type, addresses.at(y.uid), offset(y, a, b, place), sum + addend);
  });
}

}  // namespace standin::dnn
