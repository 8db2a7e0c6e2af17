// SPDX-License-Identifier: Apache-2.0
// Fields that plugins give: of elements that look like the one before, and of those that look otherwise.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "data/fields.hpp"

using namespace perigee;

namespace {

struct Given {
  const char* name;
  uint32_t kind;
  double number = 0;
  const char* text = "";
};

// The layout and the leaves, as text.
std::pair<std::string, std::string> shown(const Element& element) {
  std::string leaves;
  for (const Leaf& leaf : element.leaves) leaves += pg::format("%g/%s ", leaf.number, leaf.text.c_str());
  return {element.layout->text, leaves};
}

Element make(const std::vector<Given>& fields, const LayoutRef& like) {
  FieldMaker maker(false, nullptr, nullptr, like);
  const pg_field_sink sink = maker.sink();
  CHECK(maker.empty());
  for (const Given& given : fields) {
    pg_field field{};
    field.size = PG_SIZE(pg_field, data);
    field.name = given.name, field.kind = given.kind, field.number = given.number;
    field.bytes = given.kind == PG_FIELD_BYTES ? std::strlen(given.text) : 0;
    pg_error error = pg::make_error();
    void* memory = sink.field(sink.context, &field, &error);
    REQUIRE(error.code == PG_OK);
    if (field.bytes != 0) std::memcpy(memory, given.text, field.bytes);
    CHECK(!maker.empty());
  }
  return maker.made();
}

}  // namespace

TEST_CASE("fields make the same element, whatever the one before looked like") {
  const std::vector<std::vector<Given>> elements = {
      {{"x", PG_FIELD_NUMBER, 1}},
      {{"x", PG_FIELD_NUMBER, 2}, {"name", PG_FIELD_BYTES, 0, "a short one"}},
      {{"name", PG_FIELD_BYTES, 0, "one that is too long to lie in the leaf"}, {"x", PG_FIELD_NUMBER, 3}},
      {{"x", PG_FIELD_BOOLEAN, 7}, {"name", PG_FIELD_BYTES, 0, ""}},
      {{"x", PG_FIELD_NUMBER, 4}, {"x", PG_FIELD_NUMBER, 5}, {"name", PG_FIELD_BYTES, 0, "twice"}},
      {{"x", PG_FIELD_NUMBER, 4}, {"x", PG_FIELD_BOOLEAN, 1}, {"name", PG_FIELD_BYTES, 0, "another kind"}},
      {{"a:x", PG_FIELD_NUMBER, 8}, {"x", PG_FIELD_NUMBER, 9}},
      {{"x", PG_FIELD_NUMBER, 10}, {"a:x", PG_FIELD_NUMBER, 11}},
      {{"list", PG_FIELD_TEXTS}, {"x", PG_FIELD_NUMBER, 12}},
      {},
  };
  for (const auto& before : elements) {
    const LayoutRef like = make(before, nullptr).layout;
    for (const auto& fields : elements) {
      const Element plain = make(fields, nullptr), quick = make(fields, like);
      CHECK(shown(quick) == shown(plain));
      CHECK((quick.layout == like) == (plain.layout->text == like->text));
    }
  }
}
