// SPDX-License-Identifier: Apache-2.0
// The sources of generated kernels of lines, shown to the real NVRTC, which makes PTX without a GPU.
#include "lines.hpp"

TEST_CASE("Sources with every reduction compile, in all floating dtypes") {
  REQUIRE(cuda::fused::nvrtc_defect().empty());
  for (uint32_t dtype : kFloats) {
    Lines r;
    const Shape full = {1024, 96}, one = {1024, 1};
    const uint32_t x = r.input(dtype, full), y = r.input(dtype, {96});
    const uint32_t z = r.add("mul", {x, y}, dtype, full);
    for (const char* op : {"sum", "mean", "prod", "amax", "amin", "var", "std", "logsumexp", "nansum", "norm"}) {
      const uint32_t number = r.reduce(op, z, dtype, full);
      r.keep(r.add("sub", {z, r.add("exp", {number}, dtype, one)}, dtype, full));
      r.keep(number);
    }
    std::vector<uint32_t> cluster = r.claimed();
    CHECK(std::count(cluster.begin(), cluster.end(), cluster[0]) == static_cast<int64_t>(cluster.size()));
    const std::string code = r.ptx();
    CHECK(code.find(cuda::fused::kKernelName) != std::string::npos);
    CHECK(code.find("bar.sync") != std::string::npos);
    CHECK(code.find(".local") == std::string::npos);
  }
}

TEST_CASE("A reduction is left alone where it saves little, and where a kernel of lines cannot make it") {
  auto cluster_of = [](const Shape& full, const char* op, bool chain) {
    Lines r;
    const uint32_t x = r.input(PG_F32, full);
    uint32_t z = x;
    for (int i = 0; i < (chain ? 3 : 0); i++) z = r.add("exp", {z}, PG_F32, full);
    r.keep(r.reduce(op, z, PG_F32, full));
    return r.claimed().back();
  };
  CHECK(cluster_of({1024, 96}, "sum", true) != 0);
  CHECK(cluster_of({4, 8192}, "sum", true) != 0);    // streamed
  CHECK(cluster_of({1024, 96}, "sum", false) == 0);  // reads what the operator reads
  CHECK(cluster_of({1024, 1}, "sum", true) == 0);    // no lines
}

TEST_CASE("Positions, and whether any or all elements are not zero, of all dtypes") {
  for (uint32_t dtype : {PG_F32, PG_F16, PG_BF16, PG_F64, PG_I64, PG_I32, PG_I16, PG_I8, PG_U8}) {
    Lines r;
    const Shape full = {700, 90};
    const uint32_t x = r.input(dtype, full), z = r.add("mul", {r.add("neg", {x}, dtype, full), x}, dtype, full);
    for (const char* op : {"argmax", "argmin"}) r.keep(r.reduce(op, z, PG_I64, full));
    for (const char* op : {"any", "all"}) r.keep(r.reduce(op, z, PG_B8, full));
    for (const char* op : {"sum", "prod", "amax"}) r.keep(r.reduce(op, z, dtype, full));
    r.keep(z);
    CHECK(r.ptx().find("bar.sync") != std::string::npos);
  }
}

TEST_CASE("The gradients of softmax and log_softmax, of lines that are made and of others") {
  for (uint32_t dtype : kFloats) {
    Lines r;
    const Shape full = {1024, 96};
    const uint32_t x = r.input(dtype, full), y = r.input(dtype, full);
    const uint32_t dp = r.add("mul", {x, y}, dtype, full), p = r.add("softmax", {x}, dtype, full);
    r.keep(r.add("relu", {r.add("softmax_grad", {p, dp}, dtype, full)}, dtype, full));
    r.keep(r.add("neg", {r.add("log_softmax_grad", {x, y}, dtype, full)}, dtype, full));
    std::vector<uint32_t> cluster = r.claimed();
    CHECK(std::count(cluster.begin(), cluster.end(), cluster[0]) == static_cast<int64_t>(cluster.size()));
    const std::string code = r.ptx();
    CHECK(code.find("bar.sync") != std::string::npos);
    CHECK(code.find(".local") == std::string::npos);
  }
}

TEST_CASE("A gradient of softmax whose operator has a block for a line is left alone") {
  for (int64_t length : {4095, 4096}) {
    Lines r;
    const Shape full = {64, length};
    const uint32_t y = r.input(PG_BF16, full), dy = r.add("exp", {r.input(PG_BF16, full)}, PG_BF16, full);
    r.keep(r.add("relu", {r.add("softmax_grad", {y, dy}, PG_BF16, full)}, PG_BF16, full));
    const std::vector<uint32_t> cluster = r.claimed();
    CHECK((cluster[1] != 0) == (length < 4096));
  }
}

TEST_CASE("Softmax and layer_norm with what is around them") {
  for (uint32_t dtype : kFloats) {
    const uint32_t statistics = dtype == PG_F64 ? static_cast<uint32_t>(PG_F64) : static_cast<uint32_t>(PG_F32);
    const bool all = dtype == PG_F32 || dtype == PG_BF16;
    for (int64_t length :
         all ? std::vector<int64_t>{100, 1000, 1200} : std::vector<int64_t>{96}) {  // also in registers
      Lines r;
      const Shape full = {1024, length};
      const uint32_t x = r.input(dtype, full), y = r.input(dtype, full), w = r.input(statistics, {length});
      const uint32_t z = r.add("add", {r.add("mul", {x, y}, dtype, full), y}, dtype, full);
      const uint32_t p = r.add("softmax", {z}, dtype, full);
      const uint32_t normed = r.add("layer_norm", {r.add("mul", {p, y}, dtype, full), w, w}, dtype, full);
      r.keep(r.add("relu", {normed}, dtype, full));
      r.keep(r.reduce("sum", r.add("log_softmax", {x}, dtype, full), dtype, full));
      std::vector<uint32_t> cluster = r.claimed();
      CHECK(std::count(cluster.begin(), cluster.end(), cluster[0]) == static_cast<int64_t>(cluster.size()));
      const std::string code = r.ptx();
      CHECK(code.find("bar.sync") != std::string::npos);
      CHECK(code.find(".local") == std::string::npos);
    }
  }
}

TEST_CASE("Weights of a norm that are made with its elements are no part of the kernel") {
  Lines r;
  const Shape full = {512, 64}, line = {64};
  const uint32_t x = r.input(PG_F32, full), w = r.input(PG_F32, line), twice = r.add("add", {w, w}, PG_F32, line);
  const uint32_t z = r.add("mul", {r.add("exp", {x}, PG_F32, full), x}, PG_F32, full);
  r.keep(r.add("relu", {r.add("layer_norm", {z, twice, twice}, PG_F32, full)}, PG_F32, full));
  const std::vector<uint32_t> cluster = r.claimed();
  CHECK(cluster[0] != cluster[3]);
  CHECK(cluster[3] == cluster[4]);
}

TEST_CASE("A piece without the reduction that its cluster was claimed for") {
  Lines r;
  const Shape full = {256, 64}, one = {256, 1};
  const uint32_t x = r.input(PG_F32, full), n = r.input(PG_F32, one);
  const uint32_t root = r.add("sqrt", {n}, PG_F32, one);
  r.keep(r.add("div", {x, root}, PG_F32, full));
  r.keep(root);
  CHECK(cuda::fused::has_lines(r.region()));
  CHECK(r.ptx().find("sqrt.rn.f32") != std::string::npos);
}
