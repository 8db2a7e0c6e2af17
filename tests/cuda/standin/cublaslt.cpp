// SPDX-License-Identifier: Apache-2.0
// A stand-in for cuBLASLt: the entry points that the plugin uses, over the real header. Strict where the real library
// is or may be: attributes of the wrong size, algorithms for another problem, addresses or a workspace that do not keep
// what the algorithm was asked for.
#include "cublaslt.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "standin.hpp"

namespace standin {
namespace {

constexpr uint64_t kMagic = 0x706572696765656c;

std::atomic<uint32_t> refused_below{1};
std::atomic<bool> epilogues_refused{false};

struct Alive {
  std::mutex mutex;
  std::set<const void*> objects;  // handles and descriptors
};
Alive& alive() {
  static auto* instance = new Alive();
  return *instance;
}
bool is_alive(const void* object) {
  std::lock_guard lock(alive().mutex);
  return alive().objects.count(object) != 0;
}

template <class Object, class Raw>
cublasStatus_t create(Raw** out, Object value) {
  if (out == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto* object = new Object(value);
  std::lock_guard lock(alive().mutex);
  alive().objects.insert(object);
  *out = reinterpret_cast<Raw*>(object);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Object>
cublasStatus_t destroy(const void* raw) {
  refuse_after_exit("a cublasLt*Destroy");
  {
    std::lock_guard lock(alive().mutex);
    if (alive().objects.erase(raw) == 0) return CUBLAS_STATUS_INVALID_VALUE;
  }
  delete static_cast<const Object*>(raw);
  return CUBLAS_STATUS_SUCCESS;
}

// Copies an attribute's value; its size must be that of the field.
template <class T>
cublasStatus_t assign(T& field, const void* value, size_t bytes) {
  if (value == nullptr || bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
const T* object(const void* raw) {
  return is_alive(raw) ? static_cast<const T*>(raw) : nullptr;
}

bool types_fit(const StandinProduct& op, cudaDataType_t data, cudaDataType_t result) {
  if (op.compute == CUBLAS_COMPUTE_64F) return data == CUDA_R_64F && result == data && op.scale == CUDA_R_64F;
  bool half = data == CUDA_R_16F || data == CUDA_R_16BF, same = result == data && (half || data == CUDA_R_32F);
  return op.compute == CUBLAS_COMPUTE_32F && op.scale == CUDA_R_32F && (same || (half && result == CUDA_R_32F));
}

bool is_layout(const StandinMatrix& m) {
  return m.rows > 0 && m.columns > 0 && m.rows <= INT32_MAX && m.columns <= INT32_MAX && m.batch > 0 &&
         m.ld >= static_cast<int64_t>(m.rows) && m.batch_offset >= 0;
}

cublasStatus_t check_problem(const StandinProduct* op, const StandinMatrix* a, const StandinMatrix* b,
                             const StandinMatrix* c, const StandinMatrix* d) {
  if (op == nullptr || a == nullptr || b == nullptr || c == nullptr || d == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  for (const StandinMatrix* m : {a, b, c, d}) {
    if (!is_layout(*m) || m->batch != d->batch) return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (a->type != b->type || c->type != d->type || !types_fit(*op, a->type, d->type)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  bool flip_a = op->transpose_a != CUBLAS_OP_N, flip_b = op->transpose_b != CUBLAS_OP_N;
  uint64_t m = flip_a ? a->columns : a->rows, k = flip_a ? a->rows : a->columns;
  uint64_t n = flip_b ? b->rows : b->columns, deep = flip_b ? b->columns : b->rows;
  bool fits = k == deep && d->rows == m && d->columns == n && c->rows == m && c->columns == n;
  if (!fits || (d->batch > 1 && d->batch_offset == 0)) return CUBLAS_STATUS_INVALID_VALUE;
  return op->knows_epilogue() ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

// What an algorithm is good for.
uint64_t fingerprint(const StandinProduct& op, const StandinMatrix& a, const StandinMatrix& b, const StandinMatrix& d) {
  uint64_t hash = 1469598103934665603u;
  auto mix = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  mix(op.compute), mix(op.transpose_a), mix(op.transpose_b), mix(op.epilogue);
  for (const StandinMatrix* m : {&a, &b, &d}) {
    mix(m->type), mix(m->rows), mix(m->columns), mix(static_cast<uint64_t>(m->ld));
    mix(static_cast<uint64_t>(m->batch)), mix(static_cast<uint64_t>(m->batch_offset));
  }
  return hash;
}

// The alignment that an address promises, as far as heuristics look.
uint32_t alignment_of(const void* address) {
  uint32_t bytes = 256;
  while (bytes > 1 && !is_aligned(address, bytes)) bytes /= 2;
  return bytes;
}

bool is_readable(const void* address, const StandinMatrix& m) {
  return is_device_range(address, static_cast<size_t>(m.extent() * number_bytes(m.number())));
}

}  // namespace

void refuse_products_below(uint32_t bytes) { refused_below = bytes; }
void refuse_epilogues(bool refuse) { epilogues_refused = refuse; }

}  // namespace standin

using namespace standin;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (enter("cublasLtCreate") != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  load_vendor();
  return create(handle, int{0});
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy<int>(handle); }
size_t cublasLtGetVersion(void) { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion(void) { return CUDART_VERSION; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  StandinProduct product{};
  product.compute = compute, product.scale = scale;
  return create(desc, product);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return destroy<StandinProduct>(desc); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t bytes) {
  if (!is_alive(desc)) return CUBLAS_STATUS_INVALID_VALUE;
  auto& op = *reinterpret_cast<StandinProduct*>(desc);
  switch (name) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return assign(op.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return assign(op.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return assign(op.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return assign(op.bias, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  StandinMatrix matrix{};
  matrix.type = type, matrix.rows = rows, matrix.columns = columns, matrix.ld = ld;
  return create(layout, matrix);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy<StandinMatrix>(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name,
                                                const void* value, size_t bytes) {
  if (!is_alive(layout)) return CUBLAS_STATUS_INVALID_VALUE;
  auto& matrix = *reinterpret_cast<StandinMatrix*>(layout);
  switch (name) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return assign(matrix.batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return assign(matrix.batch_offset, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, StandinPreference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<StandinPreference>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void* value,
                                                    size_t bytes) {
  if (!is_alive(preference)) return CUBLAS_STATUS_INVALID_VALUE;
  auto& p = *reinterpret_cast<StandinPreference*>(preference);
  switch (name) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return assign(p.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return assign(p.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return assign(p.align_a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return assign(p.align_b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return assign(p.align_c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return assign(p.align_d, value, bytes);
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a_layout, cublasLtMatrixLayout_t b_layout,
                                              cublasLtMatrixLayout_t c_layout, cublasLtMatrixLayout_t d_layout,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  if (enter("cublasLtMatmulAlgoGetHeuristic") != cudaSuccess) return CUBLAS_STATUS_INTERNAL_ERROR;
  auto* op = object<StandinProduct>(desc);
  auto *a = object<StandinMatrix>(a_layout), *b = object<StandinMatrix>(b_layout);
  auto *c = object<StandinMatrix>(c_layout), *d = object<StandinMatrix>(d_layout);
  auto* p = object<StandinPreference>(preference);
  if (!is_alive(handle) || p == nullptr || requested < 1 || count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (cublasStatus_t status = check_problem(op, a, b, c, d); status != CUBLAS_STATUS_SUCCESS) return status;
  *count = 0;
  bool bias = op->has_bias();
  if (op->epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogues_refused) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (bias && op->bias == nullptr) return CUBLAS_STATUS_NOT_SUPPORTED;  // its alignment is not known
  uint32_t align = std::min({p->align_a, p->align_b, p->align_c, p->align_d});
  if (align < refused_below) return CUBLAS_STATUS_NOT_SUPPORTED;
  // Products with long sums are split and want a workspace.
  uint64_t workspace = std::min<uint64_t>(p->workspace, (op->transpose_a != CUBLAS_OP_N ? a->rows : a->columns) * 64);
  StandinAlgorithm algorithm{kMagic,     fingerprint(*op, *a, *b, *d),     workspace, p->align_a, p->align_b,
                             p->align_d, bias ? alignment_of(op->bias) : 1};
  results[0] = {};
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = workspace;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a_data,
                              cublasLtMatrixLayout_t a_layout, const void* b_data, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c_data, cublasLtMatrixLayout_t c_layout, void* d_data,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  if (enter("cublasLtMatmul") != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  auto* op = object<StandinProduct>(desc);
  auto *a = object<StandinMatrix>(a_layout), *b = object<StandinMatrix>(b_layout);
  auto *c = object<StandinMatrix>(c_layout), *d = object<StandinMatrix>(d_layout);
  if (!is_alive(handle) || algo == nullptr || alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (cublasStatus_t status = check_problem(op, a, b, c, d); status != CUBLAS_STATUS_SUCCESS) return status;
  StandinAlgorithm chosen;
  std::memcpy(&chosen, algo, sizeof chosen);
  bool bias = op->has_bias();
  if (chosen.magic != kMagic || chosen.problem != fingerprint(*op, *a, *b, *d)) return CUBLAS_STATUS_INVALID_VALUE;
  if (workspace_bytes < chosen.workspace || !is_aligned(workspace, 16)) return CUBLAS_STATUS_INVALID_VALUE;
  bool aligned = is_aligned(a_data, chosen.align_a) && is_aligned(b_data, chosen.align_b) &&
                 is_aligned(d_data, chosen.align_c) && (!bias || is_aligned(op->bias, chosen.align_bias));
  if (!aligned) return CUBLAS_STATUS_INVALID_VALUE;
  size_t bias_bytes = bias ? d->rows * static_cast<size_t>(number_bytes(d->number())) : 0;
  bool valid = is_readable(a_data, *a) && is_readable(b_data, *b) && is_readable(d_data, *d) &&
               is_device_range(workspace, chosen.workspace) && is_device_range(op->bias, bias_bytes);
  if (!valid) return CUBLAS_STATUS_EXECUTION_FAILED;  // there: an illegal address, later
  bool wide = op->scale == CUDA_R_64F;
  double scale = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  double keep = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  cudaError_t queued = enqueue(stream, "cublasLtMatmul", [=, op = *op, a = *a, b = *b, d = *d] {
    if (chosen.workspace > 0) std::memset(workspace, 0xa5, chosen.workspace);
    multiply(op, a, b, d, scale, keep, a_data, b_data, c_data, d_data);
  });
  return queued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
