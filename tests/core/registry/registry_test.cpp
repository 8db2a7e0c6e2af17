// SPDX-License-Identifier: Apache-2.0
#include "registry/registry.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "plugin/describe.hpp"
#include "plugin/loader.hpp"

using namespace perigee;
using Catch::Matchers::Contains;

namespace {

int32_t infer(const pg_infer*, pg_error*) { return PG_OK; }

// A schema with one of everything, which a test may then spoil. Registered tables live as long as the process.
struct Schema {
  explicit Schema(const char* name) {
    plugin.name = std::string("of ") + name;
    inputs = {{PG_SIZE(pg_input_info, written_if), PG_INPUT_OPTIONAL, PG_M_ANY, 0, "x", "first", nullptr},
              {PG_SIZE(pg_input_info, written_if), PG_INPUT_VARIADIC, PG_M_FLOAT, 0, "ys", nullptr, nullptr}};
    outputs = {{PG_SIZE(pg_output_info, doc), 0, 0, 0, "z", "result"},
               {PG_SIZE(pg_output_info, doc), PG_OUTPUT_HIDDEN, 0, 0, "mask", ""}};
    const uint32_t size = PG_SIZE(pg_attr_info, value);
    attrs = {{size, PG_ATTR_SCALAR, 0, 0, "scalar", "", nullptr, 0, 96},
             {size, PG_ATTR_CHOICE, 0, 8, "mode", "how", modes, 2, 0},
             {size, PG_ATTR_DTYPE, 0, 12, "dtype", "", nullptr, 0, 0},
             {size, PG_ATTR_DIMS, PG_ATTR_REQUIRED, 16, "shape", "", nullptr, 0, 0},
             {size, PG_ATTR_BOOL, 0, 88, "flat", "", nullptr, 0, 0},
             {size, PG_ATTR_DEVICE, 0, 92, "device", "", nullptr, 0, 0},
             {size, PG_ATTR_NUMBER, PG_ATTR_RUNTIME | PG_ATTR_INTERNAL, 96, "value", "", nullptr, 0, 0},
             {size, PG_ATTR_INT, PG_ATTR_RUNTIME, 128, "seed", "", nullptr, 0, 0},
             {size, PG_ATTR_INT, PG_ATTR_RUNTIME, 136, "offset", "", nullptr, 0, 0},
             {size, PG_ATTR_FLOAT, PG_ATTR_RUNTIME, 144, "top", "", nullptr, 0, 0}};
    info.size = PG_SIZE(pg_op_info, write_back);
    info.name = name;
    info.doc = "a \"test\"";
    info.effect = PG_EFFECT_RANDOM;
    info.attr_size = 152;
    info.static_size = 96;
    info.infer = infer;
    defaults.mode = 1;
    defaults.dtype = PG_F32;
    defaults.top = std::numeric_limits<double>::infinity();
  }

  void add() {
    auto point = [](auto& items, auto& pointers) {
      pointers.clear();
      for (auto& item : items) pointers.push_back(&item);
      return pointers.data();
    };
    info.inputs = point(inputs, input_pointers);
    info.outputs = point(outputs, output_pointers);
    info.attrs = point(attrs, attr_pointers);
    info.input_count = static_cast<uint32_t>(inputs.size());
    info.output_count = static_cast<uint32_t>(outputs.size());
    info.attr_count = static_cast<uint32_t>(attrs.size());
    if (has_defaults) info.defaults = &defaults;
    plugin.ops = &table;
    register_tables(&plugin);
  }

  struct Packed {
    pg_scalar scalar{};
    int32_t mode = 0;
    uint32_t dtype = 0;
    pg_ints shape{};
    int32_t flat = 1, device = -1;
    pg_number value{};
    int64_t seed = 0, offset = 0;
    double top = 0;
  };
  static_assert(sizeof(Packed) == 152);

  const char* modes[2] = {"slow", "fast"};
  bool has_defaults = true;
  Packed defaults;
  LoadedPlugin plugin;
  pg_op_info info{};
  std::vector<pg_input_info> inputs;
  std::vector<pg_output_info> outputs;
  std::vector<pg_attr_info> attrs;
  std::vector<const pg_input_info*> input_pointers;
  std::vector<const pg_output_info*> output_pointers;
  std::vector<const pg_attr_info*> attr_pointers;
  const pg_op_info* list[1] = {&info};
  pg_ops table{PG_SIZE(pg_ops, ops), 1, list};
};

Schema& registered() {
  static Schema& schema = *[] {
    auto* made = new Schema("registry_test_op");
    made->add();
    return made;
  }();
  return schema;
}

}  // namespace

TEST_CASE("an operator is found by name and number, with what dispatch needs") {
  Schema& schema = registered();
  const Op* found = find_op("registry_test_op");
  REQUIRE(found != nullptr);
  CHECK(&op(found->id) == found);
  CHECK(found->id < op_count());
  CHECK(found->info == &schema.info);
  CHECK(found->plugin == &schema.plugin);
  CHECK(found->visible_outputs == 1);
  CHECK(found->variadic);
  CHECK(found->scalar_attr == 0);
  CHECK(found->dtype_offset == 12);
  CHECK(found->shape_offset == 16);
  CHECK(found->device_offset == 92);
  CHECK(found->value_offset == 96);
  CHECK(found->seed_offset == 128);
  CHECK(found->offset_offset == 136);
  CHECK(found->has_dims);
  CHECK(kernel_places(*found).empty());
}

TEST_CASE("an operator's description is JSON") {
  registered();
  const auto json = nlohmann::json::parse(op_json("registry_test_op"));
  CHECK(json.at("doc") == "a \"test\"");
  CHECK(json.at("attr_size") == 152);
  CHECK(json.at("static_size") == 96);
  CHECK(json.at("inputs").at(1).at("flags") == PG_INPUT_VARIADIC);
  CHECK(json.at("inputs").at(1).at("doc") == "");
  CHECK(json.at("outputs").at(1).at("flags") == PG_OUTPUT_HIDDEN);
  const auto& attrs = json.at("attrs");
  CHECK(attrs.at(0).at("value") == 96);
  CHECK_FALSE(attrs.at(0).contains("default"));
  CHECK(attrs.at(1).at("choices") == nlohmann::json({"slow", "fast"}));
  CHECK(attrs.at(1).at("default") == "fast");
  CHECK(attrs.at(2).at("default") == "float32");
  CHECK_FALSE(attrs.at(3).contains("default"));
  CHECK(attrs.at(4).at("default") == true);
  CHECK(attrs.at(5).at("default") == -1);
  CHECK(attrs.at(9).at("default") == "inf");
  CHECK(op_json("no_such_op").empty());
  const auto names = nlohmann::json::parse(op_names_json());
  CHECK(std::find(names.begin(), names.end(), "registry_test_op") != names.end());
}

TEST_CASE("schemas that lie are refused, wholly") {
  struct Case {
    const char* message;
    std::function<void(Schema&)> spoil;
  };
  const Case cases[] = {
      {"attribute 'top' at offset 148, 8 bytes, lies outside the struct of 152",
       [](Schema& s) { s.attrs[9].offset = 148; }},
      {"attribute 'top' at offset 4294967288", [](Schema& s) { s.attrs[9].offset = 4294967288u; }},
      {"attribute 'mode' at offset 9 is not aligned", [](Schema& s) { s.attrs[1].offset = 9; }},
      {"attribute 'mode' overlaps 'scalar'", [](Schema& s) { s.attrs[1].offset = 4; }},
      {"attribute 'mode' is declared twice", [](Schema& s) { s.attrs[2].name = "mode"; }},
      {"'x' is an input and an attribute", [](Schema& s) { s.attrs[1].name = "x"; }},
      {"attribute 'mode' is a choice without choices", [](Schema& s) { s.attrs[1].choices = nullptr; }},
      {"attribute 'flat' has the unknown kind 99", [](Schema& s) { s.attrs[4].kind = 99; }},
      {"attribute 'flat' is a runtime one, but lies in", [](Schema& s) { s.attrs[4].flags = PG_ATTR_RUNTIME; }},
      {"attribute 'top' is a static one, but lies outside", [](Schema& s) { s.attrs[9].flags = 0; }},
      {"attribute 'scalar' needs a runtime attribute of kind NUMBER", [](Schema& s) { s.attrs[0].value = 128; }},
      {"needs the runtime attribute 'seed'", [](Schema& s) { s.attrs[7].name = "seeds"; }},
      {"required field 'defaults' is missing", [](Schema& s) { s.has_defaults = false; }},
      {"static_size is larger than attr_size", [](Schema& s) { s.info.static_size = 153; }},
      {"input 'x' is written if 'flat': needs", [](Schema& s) { s.inputs[0].written_if = "flat"; }},
      {"input 'ys' is written if 'none': needs",
       [](Schema& s) {
         s.inputs[1].flags |= PG_INPUT_MUTATES;
         s.inputs[1].written_if = "none";
       }},
      {"output 'mask' stands behind a hidden one",
       [](Schema& s) { std::swap(s.outputs[0].flags, s.outputs[1].flags); }},
      {"output 'z' must be like a variadic input", [](Schema& s) { s.outputs[0].flags = PG_OUTPUT_VARIADIC; }},
      {"saves an input it does not have", [](Schema& s) { s.info.saved_inputs = 4; }},
      {"saves an output it does not have", [](Schema& s) { s.info.saved_outputs = 4; }},
      {"a view needs one tensor", [](Schema& s) { s.info.traits = PG_OP_VIEW; }},
      {"a view needs an input",
       [](Schema& s) {
         s.info.traits = PG_OP_VIEW;
         s.inputs.clear();
       }},
  };
  for (const Case& c : cases) {
    auto schema = std::make_unique<Schema>("registry_spoilt_op");
    c.spoil(*schema);
    const uint32_t before = op_count();
    CHECK_THROWS_WITH(schema->add(), Contains("operator 'registry_spoilt_op'") && Contains(c.message));
    CHECK(op_count() == before);
  }
  CHECK(find_op("registry_spoilt_op") == nullptr);
}

TEST_CASE("operators have names that can be written") {
  for (const char* name : {"", "Softmax", "my op", "2d", "größe"}) {
    CHECK_THROWS_WITH(Schema(name).add(), Contains("its name is made of lower case letters, digits and '_'"));
    CHECK(find_op(name) == nullptr);
  }
  CHECK_THROWS_WITH(Schema("sum_").add(), Contains("a '_' at the end means an in-place form"));
}

TEST_CASE("names and extensions of formats are taken once") {
  auto add = [](const char* plugin, std::vector<std::pair<const char*, const char*>> formats) {
    struct Tables {
      LoadedPlugin plugin;
      std::deque<pg_format_info> infos;
      std::vector<const pg_format_info*> pointers;
      pg_formats table{};
    };
    auto* t = new Tables();  // what was registered stays
    t->plugin.name = plugin;
    for (auto [name, extensions] : formats) {
      pg_format_info& info = t->infos.emplace_back();
      if (*name != 'w') info.read = [](auto...) { return int32_t{PG_OK}; };
      if (*name != 'r') info.write = [](auto...) { return int32_t{PG_OK}; };
      info.name = name;
      info.extensions = extensions;
      t->pointers.push_back(&info);
    }
    t->table.count = static_cast<uint32_t>(t->pointers.size());
    t->table.formats = t->pointers.data();
    t->plugin.formats = &t->table;
    register_tables(&t->plugin);
  };
  add("first", {{"one", ".one .uno"}, {"two", ".one.two"}, {"read", ".r .rr"}, {"written", ".w"}});
  CHECK_THROWS_WITH(add("second", {{"one", ".other"}}), "format 'one' is provided by plugin 'first' already");
  CHECK_THROWS_WITH(add("second", {{"fresh", ".fresh .uno"}}),
                    "extension '.uno' is provided by plugin 'first' already");
  CHECK_THROWS_WITH(add("second", {{"a", ".same"}, {"b", ".same"}}), "extension '.same' is provided twice");
  CHECK_THROWS_WITH(find_file_kind("x.fresh"),
                    Contains("no file format fits the name 'x.fresh'; read and written are .one .uno .one.two; "
                             "only read .r .rr; only written .w"));
  CHECK(std::string(find_file_kind("x.one.two").name()) == "two");
}

TEST_CASE("codecs share the extensions of formats, and options have texts") {
  struct Options {
    const char* text = "";
    int64_t number = 3;
  };
  struct Tables {
    LoadedPlugin plugin;
    pg_codec_info codec{};
    const pg_codec_info* codecs[1] = {&codec};
    pg_attr_info attr{PG_SIZE(pg_attr_info, value), PG_ATTR_TEXT, 0, 0, "text", "", nullptr, 0, 0};
    const pg_attr_info* attrs[1] = {&attr};
    Options defaults;
    pg_data data{};
  };
  auto make = [](const char* name, const char* extensions) {
    auto* t = new Tables();  // what was registered stays
    t->plugin.name = std::string("codec ") + name;
    t->codec.name = name, t->codec.extensions = extensions;
    t->codec.matches = [](void*, const void* head, uint64_t count) {
      return int32_t{count > 1 && static_cast<const char*>(head)[0] == '!'};
    };
    t->codec.decode_attrs = t->attrs, t->codec.decode_attr_count = 1;
    t->codec.decode_attr_size = sizeof(Options), t->codec.decode_defaults = &t->defaults;
    t->data.codec_count = 1, t->data.codecs = t->codecs;
    t->plugin.data = &t->data;
    return t;
  };
  Tables* first = make("coded", ".coded");
  register_tables(&first->plugin);
  CHECK(find_file_kind("A.CODED").codec == &first->codec);
  CHECK(find_codec("coded")->info == &first->codec);
  CHECK(find_codec("other") == nullptr);
  CHECK(find_codec_of("!!", 2)->info == &first->codec);
  CHECK(find_codec_of("!!", 1) == nullptr);
  CHECK_THROWS_WITH(register_tables(&make("coded", ".other")->plugin),
                    "codec 'coded' is provided by plugin 'codec coded' already");
  CHECK_THROWS_WITH(register_tables(&make("second", ".coded")->plugin),
                    "extension '.coded' is provided by plugin 'codec coded' already");
  CHECK_THROWS_WITH(register_tables(&make("third", ".t .uno")->plugin),
                    "extension '.uno' is provided by plugin 'first' already");
  Tables* bad = make("bad", ".bad");
  bad->defaults.text = nullptr;
  CHECK_THROWS_WITH(register_tables(&bad->plugin),
                    Contains("codec 'bad': attribute 'text' is a text whose default is NULL"));
  bad->defaults.text = "", bad->attr.offset = 12;
  CHECK_THROWS_WITH(register_tables(&bad->plugin), Contains("outside the struct"));
  bad->attr.offset = 4;
  CHECK_THROWS_WITH(register_tables(&bad->plugin), Contains("is not aligned"));
  bad->attr.offset = 0, bad->attr.kind = PG_ATTR_SCALAR;
  CHECK_THROWS_WITH(register_tables(&bad->plugin), Contains("has the unknown kind"));
}

TEST_CASE("names and roles are taken once") {
  registered();
  Schema again("registry_test_op");
  CHECK_THROWS_WITH(again.add(),
                    Contains("operator 'registry_test_op' is provided by plugin 'of registry_test_op' already"));

  CHECK_THROWS_WITH(role_op(Role::all_finite), Contains("no operator claims the role 'all_finite'"));
  auto* first = new Schema("registry_role_op");
  first->info.role = "all_finite";
  first->add();
  CHECK(role_op(Role::all_finite).info == &first->info);
  Schema second("registry_role_op_2");
  second.info.role = "all_finite";
  CHECK_THROWS_WITH(second.add(), Contains("role 'all_finite' is provided by plugin 'of registry_role_op' already"));
  CHECK(find_op("registry_role_op_2") == nullptr);
}

TEST_CASE("numbers that do not exist are errors") {
  CHECK_THROWS_WITH(op(op_count()), Contains("there is no operator number"));
  CHECK_THROWS_WITH(op(UINT32_MAX), Contains("there is no operator number 4294967295"));
  CHECK_THROWS_WITH(layer(123456), Contains("there is no layer number 123456"));
  CHECK_THROWS_WITH(optimizer(123456), Contains("there is no optimizer number 123456"));
  CHECK(find_layer("NoSuchLayer") == nullptr);
  CHECK(layer_json("NoSuchLayer").empty());
  CHECK(optimizer_json("NoSuchOptimizer").empty());
  CHECK_THROWS_WITH(find_file_kind("model.unknown"), Contains("no file format fits the name 'model.unknown'"));
}
