// SPDX-License-Identifier: Apache-2.0
// What the plugin describes to cuBLASLt and cuDNN is accepted by them, and mistakes are not. Needs no GPU: built twice,
// with the stand-ins and, where they are installed, with the real libraries.
#include <catch2/catch.hpp>

#include "cudnn/conv_graph.hpp"
#include "cudnn/norm_graph.hpp"
#include "cudnn/pool_graph.hpp"
#include "linalg/descriptors.hpp"

using namespace cuda::dnn;
using cuda::linalg::Operation;
using cuda::linalg::Preference;

namespace {

ConvShape shape_of(ConvKind kind, uint32_t dtype) {
  ConvShape s;
  s.kind = kind, s.dtype = dtype, s.groups = 2;
  s.x = {2, 4, 7, 6}, s.weight = {6, 2, 3, 3}, s.y = {2, 6, 4, 8};
  s.stride[0] = 2, s.padding[0] = s.behind[0] = 1, s.padding[1] = s.behind[1] = 2;
  s.x_stride = dense_strides(s.x), s.weight_stride = dense_strides(s.weight), s.y_stride = dense_strides(s.y);
  return s;
}

ConvShape volume_of(ConvKind kind, uint32_t dtype) {
  ConvShape s = shape_of(kind, dtype);
  s.x = {2, 4, 5, 7, 6}, s.weight = {6, 2, 2, 3, 3}, s.y = {2, 6, 4, 4, 8};
  s.stride[0] = 1, s.padding[0] = s.behind[0] = 0;
  s.stride[1] = 2, s.padding[1] = s.behind[1] = 1, s.padding[2] = s.behind[2] = 2;
  s.x_stride = dense_strides(s.x), s.weight_stride = dense_strides(s.weight), s.y_stride = dense_strides(s.y);
  return s;
}

PoolingShape pooling(PoolKind kind, uint32_t dtype) {
  PoolingShape s;
  s.kind = kind, s.dtype = dtype, s.full = {2, 3, 7, 6}, s.pooled = {2, 3, 4, 6};
  s.kernel[0] = s.kernel[1] = 3, s.stride[0] = 2, s.padding[0] = s.padding[1] = 1;
  return s;
}

Tensor matrix(int64_t alignment = 16) { return {1, CUDNN_DATA_FLOAT, {2, 2}, {2, 1}, alignment}; }

// The status of the failure.
template <class Body>
int64_t status_of(const Body& body) {
  try {
    body();
    return 0;
  } catch (const pg::Error& e) {
    return e.native;
  }
}

}  // namespace

TEST_CASE("cuDNN takes every convolution as we describe it") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (ConvKind kind : {ConvKind::kForward, ConvKind::kInputGradient, ConvKind::kWeightGradient}) {
      for (ConvShape s : {shape_of(kind, dtype), volume_of(kind, dtype)}) {
        for (int64_t alignment : {int64_t{16}, pg::dtype_bytes(dtype)}) {
          CHECK(ConvGraph(s, choose_layouts(s, true), false, alignment).operations().size() == 1);
        }
        s.x_stride = channels_last_strides(s.x), s.weight_stride = channels_last_strides(s.weight);
        CHECK(ConvGraph(s, choose_layouts(s, true), false, 16).operations().size() == 1);
      }
    }
    for (const ConvShape& s : {shape_of(ConvKind::kForward, dtype), volume_of(ConvKind::kForward, dtype)}) {
      for (int64_t alignment : {int64_t{16}, pg::dtype_bytes(dtype)}) {
        CHECK(ConvGraph(s, choose_layouts(s, true), true, alignment).operations().size() == 2);
      }
    }
  }
}

TEST_CASE("cuDNN takes every batch norm as we describe it") {
  for (uint32_t dtype : {PG_F32, PG_F16, PG_BF16}) {
    for (NormKind kind : {NormKind::kForward, NormKind::kGradient}) {
      for (bool running : {false, true}) {
        NormShape s;
        s.kind = kind, s.dtype = dtype, s.x = {2, 8, 7, 6}, s.running = running;
        CHECK(NormGraph(s).operations().size() == 1);
      }
    }
  }
}

TEST_CASE("cuDNN takes all pooling as we describe it") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (PoolKind kind : {PoolKind::kMax, PoolKind::kAveragePadded, PoolKind::kAverage}) {
      CHECK(PoolGraph(pooling(kind, dtype)).operations().size() == 1);
    }
  }
}

TEST_CASE("cuDNN takes addresses by uid") {
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const int64_t uids[] = {kX, kWeight};
  void* addresses[] = {&pack, &pack};
  void* workspace = nullptr;
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span(uids));
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 2, addresses);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finalize();
  Descriptor uneven(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  uneven.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span(uids));
  uneven.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 1, addresses);
  CHECK(status_of([&] { uneven.finalize(); }) == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("cuDNN refuses mistakes") {
  CHECK(status_of([] { matrix().describe(); }) == 0);
  CHECK(status_of([] { matrix(3).describe(); }) == CUDNN_STATUS_BAD_PARAM);
  CHECK(status_of([] { matrix(2).describe(); }) == CUDNN_STATUS_BAD_PARAM);
  CHECK(status_of([] {
          Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
          t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_FLOAT, 1.0f);
        }) == CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  CHECK(status_of([] {
          const int64_t two[] = {1, 2};
          Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
          t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::span(two));
        }) == CUDNN_STATUS_BAD_PARAM);
  CHECK(status_of([] {
          Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
          t.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
        }) == CUDNN_STATUS_BAD_PARAM);
  CHECK(status_of([] {
          Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
          t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{2}).finalize();
        }) == CUDNN_STATUS_BAD_PARAM);
  CHECK(status_of([] { matrix().describe().set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{2}); }) == CUDNN_STATUS_BAD_PARAM);
  CHECK(status_of([] {
          Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
          t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{2});
          (void)t.get_int64(CUDNN_ATTR_TENSOR_UNIQUE_ID);
        }) == CUDNN_STATUS_NOT_INITIALIZED);
  CHECK(status_of([] {
          ConvShape s = shape_of(ConvKind::kForward, PG_F32);
          s.y[3] = 9;
          ConvGraph(s, choose_layouts(s, true), false, 16);
        }) == CUDNN_STATUS_BAD_PARAM);
  CHECK(status_of([] {
          ConvShape s = volume_of(ConvKind::kForward, PG_F32);
          s.y[2] = 9;
          ConvGraph(s, choose_layouts(s, true), false, 16);
        }) == CUDNN_STATUS_BAD_PARAM);
  CHECK(status_of([] {
          PoolingShape s = pooling(PoolKind::kAverage, PG_F32);
          s.pooled[2] = 9;
          PoolGraph graph(s);
        }) == CUDNN_STATUS_BAD_PARAM);
  CHECK(status_of([] {
          Descriptor norm(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
          norm.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM).finalize();
        }) == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("cuBLASLt takes what we set") {
  Operation operation(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  operation.set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  operation.set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  operation.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  operation.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(&operation));
  cuda::linalg::Layout layout(CUDA_R_16BF, 3, 4, 5, 6, 20);
  CHECK(layout.get() != nullptr);
  Preference preference;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{1} << 25);
  preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t{16});
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, uint32_t{2});
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, uint32_t{2});
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, uint32_t{2});
}

TEST_CASE("cuBLASLt refuses attributes of another size") {
  Operation operation(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  CHECK(status_of([&] { operation.set(CUBLASLT_MATMUL_DESC_TRANSA, int8_t{1}); }) == CUBLAS_STATUS_INVALID_VALUE);
  Preference preference;
  CHECK(status_of([&] { preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint32_t{1}); }) ==
        CUBLAS_STATUS_INVALID_VALUE);
}
