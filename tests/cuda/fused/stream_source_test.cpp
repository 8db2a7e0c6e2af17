// SPDX-License-Identifier: Apache-2.0
// The sources of generated kernels that stream lines, shown to the real NVRTC, which makes PTX without a GPU.
#include "lines.hpp"

TEST_CASE("Reductions of columns with what they reduce and what is made of them compile, in all floating dtypes") {
  for (uint32_t dtype : kFloats) {
    for (const Shape& full : {Shape{3000, 500}, Shape{20, 30, 70000}}) {  // with parts and without
      Lines r;
      const Shape one = {full.back()};
      const uint32_t x = r.input(dtype, full), y = r.input(dtype, one), w = r.input(dtype, one);
      const uint32_t z = r.add("mul", {r.add("exp", {x}, dtype, full), y}, dtype, full);
      for (const char* op : {"sum", "mean", "prod", "amax", "var", "logsumexp", "norm"})
        r.keep(r.add("mul", {r.reduce_columns(op, z, dtype, full), w}, dtype, one));
      r.keep(z);
      const std::vector<uint32_t> cluster = r.claimed();
      CHECK(std::count(cluster.begin(), cluster.end(), cluster[0]) == static_cast<int64_t>(cluster.size()));
      REQUIRE(cuda::fused::has_streams(r.region()));
      CHECK((cuda::fused::write_streams(r.region()).parts > 1) == (full.size() == 2));
      const std::string code = r.ptx();
      CHECK(code.find("bar.sync") != std::string::npos);
      CHECK(code.find(".local") == std::string::npos);
    }
  }
}

TEST_CASE("Long lines, and lines in parts") {
  for (uint32_t dtype : kFloats) {
    for (const Shape& full : {Shape{1, 3000000}, Shape{2000, 9000}}) {
      Lines r;
      const Shape one = {full[0], 1};
      const uint32_t x = r.input(dtype, full), y = r.input(dtype, full);
      const uint32_t z = r.add("square", {r.add("sub", {x, y}, dtype, full)}, dtype, full);
      r.keep(r.add("sqrt", {r.reduce("mean", z, dtype, full)}, dtype, one));
      r.keep(r.reduce("amax", z, dtype, full));
      r.keep(r.reduce("argmin", z, PG_I64, full));
      r.keep(r.reduce("any", z, PG_B8, full));
      const std::vector<uint32_t> cluster = r.claimed();
      CAPTURE(cluster, dtype, full);
      CHECK(std::count(cluster.begin(), cluster.end(), cluster[0]) == static_cast<int64_t>(cluster.size()));
      const cuda::fused::StreamSource made = cuda::fused::write_streams(r.region());
      CHECK((made.parts > 1) == (full[0] == 1));
      CHECK((made.workspace() > 0) == (made.parts > 1));
      const std::string code = r.ptx();
      CHECK(code.find("ld.global.v") != std::string::npos);  // packets
      CHECK(code.find(".local") == std::string::npos);
    }
  }
}

TEST_CASE("What is made of a streamed line's number and of its elements is another kernel") {
  Lines r;
  const Shape full = {8, 50000}, one = {8, 1};
  const uint32_t x = r.input(PG_F32, full), z = r.add("exp", {r.add("neg", {x}, PG_F32, full)}, PG_F32, full);
  const uint32_t mean = r.reduce("mean", z, PG_F32, full);
  r.keep(r.add("sub", {z, mean}, PG_F32, full));
  r.keep(r.add("sqrt", {mean}, PG_F32, one));
  const std::vector<uint32_t> cluster = r.claimed();
  CHECK(cluster[0] == cluster[2]);
  CHECK(cluster[2] != cluster[3]);
  CHECK(cluster[2] == cluster[4]);
}

TEST_CASE("Long lines from outside begin where they like: their reductions are left alone") {
  Lines r;
  const Shape full = {8, 50000};
  const uint32_t x = r.input(PG_F32, full), z = r.add("exp", {x}, PG_F32, full);
  r.keep(r.reduce("mean", z, PG_F32, full));
  r.keep(r.reduce("amax", z, PG_F32, full));
  r.keep(r.reduce("amin", x, PG_F32, full));
  const std::vector<uint32_t> cluster = r.claimed();
  CHECK(cluster[0] == cluster[1]);
  CHECK(cluster[1] == cluster[2]);
  CHECK(cluster[3] == 0);
}
