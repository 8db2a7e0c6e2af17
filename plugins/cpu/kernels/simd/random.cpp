// SPDX-License-Identifier: Apache-2.0
// Ranges of the counter-based generator's numbers, as perigee/kernels/philox.hpp defines them.
#include "loop.hpp"
#include "perigee/kernels/philox.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

void words(uint32_t* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  pg::philox::fill_words(out, begin, end, seed, offset);
}
void pairs(uint64_t* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  pg::philox::fill_pairs(out, begin, end, seed, offset);
}
void uniform_f32(float* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  pg::philox::fill_uniform_f32(out, begin, end, seed, offset);
}
void uniform_f64(double* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  pg::philox::fill_uniform_f64(out, begin, end, seed, offset);
}
void normal_f32(float* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  pg::philox::fill_normal_f32(out, begin, end, seed, offset);
}
void normal_f64(double* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  pg::philox::fill_normal_f64(out, begin, end, seed, offset);
}
void shuffle_i32(int32_t* bucket, uint64_t first, uint64_t count, uint64_t seed, uint64_t offset) {
  pg::philox::shuffle(bucket, first, count, seed, offset);
}
void shuffle_i64(int64_t* bucket, uint64_t first, uint64_t count, uint64_t seed, uint64_t offset) {
  pg::philox::shuffle(bucket, first, count, seed, offset);
}
void keep(uint8_t* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset, double p) {
  pg::philox::fill_keep(out, begin, end, seed, offset, p);
}

}  // namespace

void fill_random(Simd& table) {
  table.words = words;
  table.pairs = pairs;
  table.uniform_f32 = uniform_f32;
  table.uniform_f64 = uniform_f64;
  table.normal_f32 = normal_f32;
  table.normal_f64 = normal_f64;
  table.shuffle_i32 = shuffle_i32;
  table.shuffle_i64 = shuffle_i64;
  table.keep = keep;
}

}  // namespace cpu::PG_CPU_ISA
