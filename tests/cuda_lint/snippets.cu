// SPDX-License-Identifier: Apache-2.0
// What scripts/dev/unchecked_calls finds and what it lets pass. Not compiled: each line that it must find ends in
// "bad"; no other line may be found.
#include "runtime.hpp"

#define PG_CUDA(call) ::cuda::check_runtime((call), #call)

void unchecked(float* p, cudaStream_t stream) {
  cudaFree(p);                                             // bad
  cudaError_t status = cudaStreamSynchronize(stream);      // bad
  if (cudaStreamQuery(stream) == cudaErrorNotReady) wait;  // bad
  (void)cudaFree(p);                                       // bad
  ::cudaFree(p);                                           // bad
  cudaMallocHost<float>(&p, 4);                            // bad
  cudaMemcpyAsync                                          //
      (p, p, 4, cudaMemcpyDefault, stream);                // bad
  cublasLtMatmulDescInit(p);                               // bad
  cudnnBackendExecute(handle, plan, pack);                 // bad
  cub::DeviceSelect::Flagged(p, bytes, a, b, c, d, n, s);  // bad
  cuStreamWaitValue32(p);                                  // bad
  PG_CUDA(cudaFree(p)), cudaFree(p);                       // bad
  int limit = 65'535;
  cudaFree(p);             // bad
  log("//"), cudaFree(p);  // bad
  log("\""), cudaFree(p);  // bad
  kernel<<<1, 2>>>(p);     // bad
  kernel<float><<<1,       // bad
                  2>>>(p);
  std::ignore = cudaFree(p);  // bad
  not_a_check(cudaFree(p));   // bad
}

void checked(float* p, cudaStream_t stream) {
  PG_CUDA(cudaFree(p));
  PG_CUDA_WARN(cudaFree(p));
  if (PG_CUDA_STATUS(cudaStreamQuery(stream)) == cudaErrorNotReady) wait;
  PG_CUDA(cudaMemcpyAsync(p, p, sizeof(float) * (4 + 4), cudaMemcpyDefault,  // a comment with cudaFree(p)
                          stream));
  PG_CUBLAS(cublasLtMatmulDescInit(p));
  PG_CUDNN(cudnnBackendExecute(handle, plan, pack));
  PG_CUDA(cub::DeviceSelect::Flagged(p, bytes, a, b, c, d, n, s));
  fail("cudaFree(p) failed: %s", cudaGetErrorName(cudaGetLastError()));
  /* cudaFree(p) */
  auto raw = cudaStream_t(p);
  log(R"(cudaFree(p))");
  device.cudaFree(p);
  cuda::launch(stream, grid, kernel<float>, p);
  shift << 3, 1 < 2, list<list<list<int>>>();
}
