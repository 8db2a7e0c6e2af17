// SPDX-License-Identifier: Apache-2.0
// The emulator itself: what it runs, and what it does not let pass.
#include "emulator.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <vector>

namespace {

struct Ordered {  // sets the order for a scope
  explicit Ordered(const char* order) { setenv("PERIGEE_STANDIN_ORDER", order, 1); }
  ~Ordered() { unsetenv("PERIGEE_STANDIN_ORDER"); }
};

template <class... P, class... A>
void run(emulator::Geometry geometry, void (*kernel)(P...), A... arguments) {
  emulator::run_kernel(geometry, [=] { kernel(arguments...); });
}

// What a child says before it dies of the body.
template <class Body>
std::string last_words_of(Body&& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    for (int number : {SIGABRT, SIGSEGV}) signal(number, SIG_DFL);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char piece[256];
  for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) == 0));
  return text;
}

template <class... P, class... A>
std::string last_words(emulator::Geometry geometry, void (*kernel)(P...), A... arguments) {
  return last_words_of([&] { run(geometry, kernel, arguments...); });
}

__global__ void block_sums(const int* x, int* y) {
  __shared__ int sums[256];
  int* scratch = cuda::dynamic_shared<int>();
  scratch[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  sums[threadIdx.x] = scratch[threadIdx.x];
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = sums[0];
}

__global__ void warp_sums(const float* x, float* y) {
  float value = x[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = value;
}

__global__ void exchanges(unsigned* out) {
  unsigned lane = threadIdx.x % 32;
  out[threadIdx.x * 6 + 0] = __shfl_sync(0xffffffffu, lane, 5);
  out[threadIdx.x * 6 + 1] = __shfl_up_sync(0xffffffffu, lane, 3);
  out[threadIdx.x * 6 + 2] = __shfl_xor_sync(0xffffffffu, lane, 1, 8);
  out[threadIdx.x * 6 + 3] = __ballot_sync(0xffffffffu, lane % 2 == 0);
  out[threadIdx.x * 6 + 4] = static_cast<unsigned>(__any_sync(0xffffffffu, lane == 31)) +
                             2 * static_cast<unsigned>(__all_sync(0xffffffffu, lane < 31));
  out[threadIdx.x * 6 + 5] = static_cast<unsigned>(__syncthreads_count(threadIdx.x < 40)) +
                             1000 * static_cast<unsigned>(__syncthreads_or(threadIdx.x == 63)) +
                             2000 * static_cast<unsigned>(__syncthreads_and(threadIdx.x == 63));
}

__global__ void half_warps(int* out) {
  // Halves of a warp part, and each keeps to its own lanes.
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_sync(0x0000ffffu, static_cast<int>(threadIdx.x), 3);
  } else {
    out[threadIdx.x] = __shfl_xor_sync(0xffff0000u, static_cast<int>(threadIdx.x), 1);
  }
}

__global__ void forgets_a_barrier(int* out) {
  __shared__ int values[64];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = values[63 - threadIdx.x];
}

__global__ void leaves_early() {
  if (threadIdx.x == 3) return;
  __syncthreads();
}
__global__ void parts() {
  if (threadIdx.x < 8)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void lanes_part() {
  if (threadIdx.x == 0) __syncwarp();
  if (threadIdx.x != 0) __ballot_sync(0xffffffffu, 1);
}
__global__ void waits_for_ever() {
  if (threadIdx.x == 32) __syncwarp(0x3u);  // for its neighbour, which waits for it
  __syncthreads();
}

}  // namespace

TEST_CASE("Blocks reduce in shared memory, in every order of threads") {
  for (const char* order : {"forward", "backward", "shuffle:1", "shuffle:7"}) {
    Ordered ordered(order);
    std::vector<int> x(256 * 5), y(5, -1);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<int>(i);
    run({5, 1, 1, 256, 256 * sizeof(int)}, block_sums, static_cast<const int*>(x.data()), y.data());
    for (int b = 0; b < 5; b++) CHECK(y[static_cast<size_t>(b)] == 256 * (256 * b) + 255 * 128);
  }
}

TEST_CASE("Warps exchange values") {
  std::vector<float> x(64, 0.5f), y(2);
  run({1, 1, 1, 64, 0}, warp_sums, static_cast<const float*>(x.data()), y.data());
  CHECK((y[0] == 16 && y[1] == 16));
  std::vector<unsigned> out(64 * 6);
  run({1, 1, 1, 64, 0}, exchanges, out.data());
  for (unsigned t = 0; t < 64; t++) {
    unsigned lane = t % 32;
    INFO("thread " << t);
    CHECK(out[t * 6] == 5);
    CHECK(out[t * 6 + 1] == (lane < 3 ? lane : lane - 3));
    CHECK(out[t * 6 + 2] == (lane ^ 1));
    CHECK(out[t * 6 + 3] == 0x55555555u);
    CHECK(out[t * 6 + 4] == 1);
    CHECK(out[t * 6 + 5] == 1040);
  }
  std::vector<int> halves(32);
  run({1, 1, 1, 32, 0}, half_warps, halves.data());
  CHECK((halves[0] == 3 && halves[15] == 3 && halves[16] == 17 && halves[31] == 30));
}

TEST_CASE("A forgotten barrier shows in some order") {
  auto right = [](const char* order) {
    Ordered ordered(order);
    std::vector<int> out(64, -1);
    run({1, 1, 1, 64, 0}, forgets_a_barrier, out.data());
    for (int i = 0; i < 64; i++) {
      if (out[static_cast<size_t>(i)] != 63 - i) return false;
    }
    return true;
  };
  CHECK(!right("forward"));  // nothing has been written to the upper half yet: 0
}

TEST_CASE("What would hang a device ends the process, and says where") {
  emulator::Geometry block = {1, 1, 1, 64, 0};
  CHECK_THAT(last_words(block, leaves_early), Catch::Contains("left the kernel") && Catch::Contains("leaves_early"));
  CHECK_THAT(last_words(block, parts), Catch::Contains("different barriers") && Catch::Contains("parts"));
  CHECK_THAT(last_words({1, 1, 1, 32, 0}, lanes_part), Catch::Contains("have parted"));
  CHECK_THAT(last_words(block, waits_for_ever), Catch::Contains("for ever") && Catch::Contains("waits_for_ever"));
}

TEST_CASE("A write beyond a block is found, at the latest when the block is freed") {
  auto beyond = [](ptrdiff_t at) {
    return last_words_of([at] {
      void* memory = nullptr;
      if (cudaMalloc(&memory, 100) != cudaSuccess) _exit(0);
      static_cast<volatile char*>(memory)[at] = 1;
      if (cudaFree(memory) != cudaSuccess) _exit(0);
    });
  };
  CHECK_THAT(beyond(100), Catch::Contains("behind its bounds") || Catch::Contains("AddressSanitizer"));
  CHECK_THAT(beyond(-1), Catch::Contains("before its bounds") || Catch::Contains("AddressSanitizer"));
  beyond(512);  // the page that nobody may touch
}
