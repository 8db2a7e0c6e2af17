// SPDX-License-Identifier: Apache-2.0
// Batches that are begun with their first sample: where a source's and a transform's tensors are written, and what
// becomes of samples that look otherwise.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "data/parts.hpp"
#include "perigee/data.h"
#include "plugin/loader.hpp"
#include "sources.hpp"

using namespace perigee;

namespace {

std::vector<const float*> given;  // where the maker was told to write, by element

// Element i: x, i in every place of {2, 3}; of element `odd` x is {6}; tag, a number.
struct Maker {
  int64_t odd = -1;
  bool twice = false;  // x is given once more, in another place of the element
};
Maker maker;

int32_t write(int64_t i, const pg_field_sink* sink, pg_error* error) {
  const int64_t sides[2] = {2, 3}, flat[1] = {6};
  const bool odd = i == maker.odd;
  pg_field x{};
  x.size = PG_SIZE(pg_field, data);
  x.name = "x", x.kind = PG_FIELD_TENSOR, x.dtype = PG_F32, x.rank = odd ? 1 : 2, x.shape = odd ? flat : sides;
  for (int k = 0; k < (maker.twice ? 2 : 1); k++) {
    auto* memory = static_cast<float*>(sink->field(sink->context, &x, error));
    if (memory == nullptr) return error->code;
    for (int n = 0; n < 6; n++) memory[n] = static_cast<float>(i + 10 * k);
    given.push_back(memory);
  }
  pg_field tag{};
  tag.size = x.size, tag.name = "tag", tag.kind = PG_FIELD_NUMBER, tag.number = static_cast<double>(i);
  sink->field(sink->context, &tag, error);
  return error->code;
}

int32_t open(void*, const void*, void** self, int64_t* count, pg_error*) {
  *self = nullptr, *count = 8;
  return PG_OK;
}
int32_t read(void*, void*, int64_t i, const pg_field_sink* sink, uint32_t*, pg_error* error) {
  return write(i, sink, error);
}
int32_t open_transform(void*, const void*, void** self, pg_error*) {
  *self = nullptr;
  return PG_OK;
}
int32_t apply(void*, void*, const pg_transform_call* call, const pg_field_sink* sink, pg_error* error) {
  return write(call->sample, sink, error);
}
void close(void*, void*) {}

// Tensors are made in the memory of the plugin's device.
[[maybe_unused]] const bool found = [] {
  add_plugin_path(PLUGINS);
  return true;
}();

pg_source_info source() {
  pg_source_info info{};
  info.size = PG_SIZE(pg_source_info, close);
  info.name = "sixes", info.open = open, info.read = read, info.close = close;
  return info;
}
pg_transform_info transform() {
  pg_transform_info info{};
  info.size = PG_SIZE(pg_transform_info, close);
  info.name = "to_sixes", info.open = open_transform, info.apply = apply, info.close = close;
  return info;
}

OptionsRef no_options() { return std::make_shared<const Options>(nullptr, 0, 0, nullptr); }

const float* contents(const Leaf& leaf) {
  const pg_address a = leaf.tensor->address();
  return reinterpret_cast<const float*>(a.buffer + a.offset);
}

// The leaf of batch `b` under that key.
Leaf& under(Element& batch, const std::string& key) {
  for (size_t i = 0; i < batch.layout->entries.size(); i++) {
    if (batch.layout->entries[i].key == key) return batch.leaves[i];
  }
  FAIL("no " << key);
  return batch.leaves[0];
}

// Elements 0 to 3 and 4 to 7: the second batch's numbers, and from the batch's second element on where they lie.
void check_in_place(const StageRef& batches) {
  for (int64_t b = 0; b < 2; b++) {
    given.clear();
    Element batch = batches->get(b);
    const Leaf& x = under(batch, "s1:x");
    REQUIRE(x.tensor->meta->rank == 3);
    REQUIRE(x.tensor->meta->shape[0] == 4);
    for (int64_t i = 0; i < 24; i++) CHECK(contents(x)[i] == static_cast<float>(b * 4 + i / 6));
    REQUIRE(given.size() == 4);
    for (size_t i = 1; i < 4; i++) CHECK(given[i] == contents(x) + 6 * i);
    CHECK(contents(under(batch, "s3:tag"))[2] == static_cast<float>(b * 4 + 2));
  }
}

}  // namespace

TEST_CASE("what a source makes is written into the batch, behind its first element") {
  maker = {};
  const pg_source_info info = source();
  check_in_place(batch_stage(source_stage(info, no_options(), "sixes"), 4, false, PG_F32));
}

TEST_CASE("what a transform makes is written into the batch, through an order too") {
  maker = {};
  const pg_transform_info info = transform();
  auto opened = std::make_shared<const OpenTransform>(info, no_options(), "to_sixes", 1);
  const StageRef made = transform_stage(range_stage(8), opened, 0, 0);
  check_in_place(batch_stage(made, 4, false, PG_F32));
  given.clear();
  const StageRef backwards = order_stage(made, {7, 6, 5, 4, 3, 2, 1, 0});
  Element batch = batch_stage(backwards, 8, false, PG_F32)->get(0);
  for (size_t i = 1; i < 8; i++) {
    CHECK(given[i] == contents(under(batch, "s1:x")) + 6 * i);
    CHECK(contents(under(batch, "s1:x"))[6 * i] == static_cast<float>(7 - i));
  }
  // The input is still there beside what was made of it.
  CHECK(contents(under(batch, "s5:value"))[3] == 4.0F);
}

TEST_CASE("a field that is given twice is what came last") {
  maker = {-1, true};
  const pg_source_info info = source();
  Element batch = batch_stage(source_stage(info, no_options(), "sixes"), 8, false, PG_F32)->get(0);
  for (int64_t i = 0; i < 48; i++) CHECK(contents(under(batch, "s1:x"))[i] == static_cast<float>(10 + i / 6));
}

TEST_CASE("a sample of another shape is refused by its number, whichever it is") {
  for (const int64_t odd : {0, 2, 7}) {
    maker = {odd, false};
    const pg_source_info info = source();
    const StageRef batches = batch_stage(source_stage(info, no_options(), "sixes"), 8, false, PG_F32);
    const std::string number = odd == 0 ? "x of sample 2 is" : "x of sample " + std::to_string(odd + 1) + " is";
    CHECK_THROWS_WITH(batches->get(0), Catch::Contains(number));
  }
}

TEST_CASE("a batch keeps nothing of the samples' memory, and a source alone makes its own") {
  maker = {};
  const pg_source_info info = source();
  const StageRef all = source_stage(info, no_options(), "sixes");
  given.clear();
  Element one = all->get(5), other = all->get(6);
  CHECK(contents(under(one, "s1:x")) == given[0]);
  CHECK(contents(under(other, "s1:x")) == given[1]);
  CHECK(under(one, "s1:x").tensor->storage->bytes == 24);
}

namespace {

// Elements come in order, `ends` of them, which nobody knows before.
int64_t ends = 0;
int32_t open_in_order(void*, const void*, void** self, int64_t* count, pg_error*) {
  *self = nullptr, *count = PG_COUNT_UNKNOWN;
  return PG_OK;
}
int32_t read_in_order(void*, void*, int64_t i, const pg_field_sink* sink, uint32_t* end, pg_error* error) {
  if (i < ends) return write(i, sink, error);
  *end = 1;
  return PG_OK;
}
pg_source_info in_order() {
  pg_source_info info = source();
  info.flags = PG_SOURCE_IN_ORDER, info.open = open_in_order, info.read = read_in_order;
  return info;
}

}  // namespace

TEST_CASE("batches of unknown length are begun with their first sample too") {
  maker = {}, ends = 8;
  const pg_source_info info = in_order();
  const StageRef batches = batch_stage(source_stage(info, no_options(), "sixes"), 4, false, PG_F32);
  CHECK(batches->count == kUnknown);
  check_in_place(batches);
  CHECK(!batches->get(2).layout);
}

TEST_CASE("the last batch of unknown length is as large as what came, or left out") {
  maker = {}, ends = 6;
  const pg_source_info info = in_order();
  for (const bool drop_last : {false, true}) {
    const StageRef batches = batch_stage(source_stage(info, no_options(), "sixes"), 4, drop_last, PG_F32);
    batches->get(0);
    Element last = batches->get(1);
    if (drop_last) {
      CHECK(!last.layout);
      continue;
    }
    const Leaf& x = under(last, "s1:x");
    REQUIRE(x.tensor->meta->shape[0] == 2);
    CHECK(x.tensor->storage->bytes == 2 * 24);
    for (int64_t i = 0; i < 12; i++) CHECK(contents(x)[i] == static_cast<float>(4 + i / 6));
    CHECK(under(last, "s3:tag").tensor->meta->shape[0] == 2);
    CHECK(!batches->get(2).layout);
  }
}

TEST_CASE("a batch that may have few samples takes no memory for very many") {
  maker = {}, ends = 3;
  const pg_source_info info = in_order();
  const StageRef batches = batch_stage(source_stage(info, no_options(), "sixes"), int64_t{1} << 40, false, PG_F32);
  Element all = batches->get(0);
  REQUIRE(under(all, "s1:x").tensor->meta->shape[0] == 3);
  CHECK(contents(under(all, "s1:x"))[17] == 2.0F);
}

TEST_CASE("a sample of another shape is refused by its number where the length is unknown") {
  ends = 8;
  for (const int64_t odd : {0, 2, 7}) {
    maker = {odd, false};
    const pg_source_info info = in_order();
    const StageRef batches = batch_stage(source_stage(info, no_options(), "sixes"), 8, false, PG_F32);
    CHECK_THROWS_WITH(batches->get(0),
                      Catch::Contains("x of sample " + std::to_string(odd == 0 ? 2 : odd + 1) + " is"));
  }
}
