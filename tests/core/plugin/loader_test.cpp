// SPDX-License-Identifier: Apache-2.0
// Every plugin of tests/plugins_bad is found, and becomes a clear reason or a negotiated load; the rest still works.
#include "plugin/loader.hpp"
#include "plugin/describe.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "device/device.hpp"
#include "registry/registry.hpp"

using namespace perigee;
using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
namespace fs = std::filesystem;

namespace {

void write_text(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

// The first `bytes` of a library; below zero, all but so many.
void write_part(const fs::path& from, const fs::path& to, int64_t bytes) {
  fs::copy_file(from, to);
  fs::resize_file(to, bytes < 0 ? fs::file_size(to) - static_cast<uintmax_t>(-bytes) : static_cast<uintmax_t>(bytes));
}

// A folder with all of the bad plugins, made and searched once a process, as a user would meet it.
const fs::path& bad_folder() {
  static const fs::path folder = [] {
    fs::path made = fs::temp_directory_path() / ("perigee-bad-plugins-" + std::to_string(getpid()));
    fs::remove_all(made);
    fs::create_directories(made);
    const fs::path built = BAD_PLUGINS;
    for (const auto& entry : fs::directory_iterator(built)) {
      if (entry.path().extension() == ".so") fs::copy_file(entry.path(), made / entry.path().filename());
    }
    const auto size = static_cast<int64_t>(fs::file_size(built / "good.so"));
    write_part(built / "good.so", made / "truncated_half.so", size / 2);
    write_part(built / "good.so", made / "truncated_header.so", 40);
    write_part(built / "good.so", made / "truncated_end.so", -64);
    write_text(made / "text.so", "this is not a library\n");
    write_text(made / "empty.so", "");
    fs::create_directory(made / "folder.so");
    for (const char* name :
         {"needs_library", "needs_feature", "bad_manifest", "other_name", "other_abi", "young_host"}) {
      fs::copy_file(built / "good.so", made / (std::string(name) + ".so"));
    }
    write_text(made / "needs_library.json",
               R"({"name": "needs_library", "kinds": "device", "libraries": ["libno-such-driver.so.1"],
                   "library_folders": ["/no/such/folder"], "library_remedy": "install the driver"})");
    // Its library is only where its manifest says.
    fs::create_directory(made / "apart");
    fs::copy_file(built / "good.so", made / "apart" / "libperigee-apart.so.1");
    fs::copy_file(built / "good.so", made / "needs_folder.so");
    write_text(
        made / "needs_folder.json",
        R"({"name": "needs_folder", "kinds": "ops", "libraries": ["libperigee-apart.so.1"], "library_folders": [")" +
            (made / "apart").string() + R"("]})");
    write_text(made / "needs_feature.json",
               R"({"name": "needs_feature", "kinds": "ops", "cpu_features": ["avx9000"]})");
    write_text(made / "other_abi.json", R"({"name": "other_abi", "kinds": "ops", "abi": 2})");
    write_text(made / "young_host.json", R"({"name": "young_host", "kinds": "ops", "abi": 1, "min_host_minor": 999})");
    write_text(made / "bad_manifest.json", R"({"name": "bad_manifest", )");
    write_text(made / "other_name.json", R"({"name": "other_name", "kinds": "ops"})");
    // One pair that can be told apart before loading, one that cannot.
    for (const char* name : {"pair_a", "pair_b"}) {
      fs::copy_file(built / "good.so", made / (std::string(name) + ".so"));
      write_text(made / (std::string(name) + ".json"), R"({"name": "pair", "kinds": "ops", "version": "2"})");
    }
    add_plugin_path(made.string());
    plugins_json(true);
    return made;
  }();
  return folder;
}

LoadedPlugin& at(const std::string& file) {
  const std::string path = fs::canonical(bad_folder() / (file + ".so")).string();
  for (LoadedPlugin* plugin : find_plugins()) {
    if (plugin->path == path) return *plugin;
  }
  throw std::runtime_error(file + " was not found");
}

template <class Matcher>
void check_unavailable(const std::string& file, const Matcher& reason) {
  INFO(file);
  LoadedPlugin& plugin = at(file);
  CHECK(plugin.state == PluginState::unavailable);
  CHECK_THAT(plugin.reason, reason);
  CHECK_THROWS_WITH(load_plugin(&plugin), Contains(plugin.path));
}

}  // namespace

TEST_CASE("a good plugin among bad ones loads and works") {
  LoadedPlugin& good = at("good");
  CHECK(good.state == PluginState::available);
  CHECK(good.name == "good");
  CHECK(good.kinds == "ops");
  CHECK(good.version == "1.2.3");
  const Op* op = find_op("good_op");
  REQUIRE(op != nullptr);
  CHECK(op->plugin == &good);
  CHECK(find_op("no_such_op") == nullptr);
}

TEST_CASE("libraries that are no plugins for this host say why") {
  check_unavailable("wrong_major", Contains("major version 2") && Contains("pg_plugin_v2"));
  check_unavailable("missing_symbol", Contains("exports no pg_plugin_v1"));
  check_unavailable("wrong_magic", Contains("wrong magic 0x12345678"));
  check_unavailable("undefined_symbol", Contains("nobody_defines_this"));
  check_unavailable("needs_newer_host",
                    Contains("needs a host of interface version 1." + std::to_string(PG_ABI_MINOR + 9)));
  check_unavailable("other_draft", Contains("it has no pg.ops/1"));
}

TEST_CASE("files that are no libraries are turned away before they are mapped") {
  check_unavailable("truncated_half", Contains("is truncated"));
  check_unavailable("truncated_header", Contains("is truncated"));
  check_unavailable("truncated_end", Contains("is truncated"));
  check_unavailable("text", Contains("is not a shared library (no ELF header)"));
  check_unavailable("empty", Contains("is not a shared library"));
}

TEST_CASE("a missing required entry fails the load by name") {
  check_unavailable("missing_entry", Equals("pg.device/0: required function 'alloc' is missing"));
}

TEST_CASE("open may refuse, and even throw") {
  check_unavailable("throws_in_open", Contains("open threw an exception: the licence has run out"));
  check_unavailable("refuses_open", Equals("open: no driver for the quantum abacus"));
}

TEST_CASE("manifests are read before the library") {
  check_unavailable("needs_library", Contains("needs the library libno-such-driver.so.1") &&
                                         Contains("; also looked in /no/such/folder; install the driver"));
  check_unavailable("needs_folder", Contains("its manifest names it 'needs_folder', the library 'good'"));
  check_unavailable("needs_feature", Contains("needs the processor feature 'avx9000'"));
  check_unavailable("other_abi", Contains("was built for major version 2 of the plugin interface"));
  check_unavailable("young_host", Contains("needs a host of interface version 1.999 or newer"));
  check_unavailable("bad_manifest", Contains("bad_manifest.json") && Contains("parse error"));
  check_unavailable("other_name", Contains("its manifest names it 'other_name', the library 'good'"));
}

TEST_CASE("two plugins of one name are an error on both") {
  for (const char* file : {"pair_a", "pair_b"}) {
    check_unavailable(file, Contains("two plugins are named 'pair'") && Contains("pair_a.so") && Contains("pair_b.so"));
  }
  // Without manifests the first has been loaded when the second's name is read.
  CHECK(at("twin_a").state == PluginState::available);
  check_unavailable("twin_b", Contains("two plugins are named 'twin'") && Contains("twin_a.so"));
}

TEST_CASE("an older plugin's missing fields read as absent") {
  LoadedPlugin& plugin = at("older_minor");
  INFO(plugin.reason);
  REQUIRE(plugin.state == PluginState::available);
  const Op* op = find_op("older_op");
  REQUIRE(op != nullptr);
  CHECK(op->info->grad == nullptr);
  CHECK(op->info->decompose == nullptr);
  CHECK(op->info->write_back == nullptr);
  REQUIRE(find_kernels(*op, "older").size() == 1);
  CHECK(find_kernels(*op, "older")[0].info->packs == 0);
  CHECK(find_kernels(*op, "older")[0].info->spares == 0);
  pg_error error = pg::make_error();
  CHECK(plugin.kernels->pack(plugin.self, 0, nullptr, 0, nullptr, {}, &error) == PG_E_UNIMPLEMENTED);
  CHECK(std::string(error.message) == "this plugin does not implement it");
}

TEST_CASE("a newer plugin's additions are ignored") {
  LoadedPlugin& plugin = at("newer_minor");
  INFO(plugin.reason);
  REQUIRE(plugin.state == PluginState::available);
  const Op* op = find_op("newer_op");
  REQUIRE(op != nullptr);
  CHECK(op->info->size == PG_SIZE(pg_op_info, scalar));
  CHECK(op->info->input_count == 2);
  CHECK(std::string(op->info->inputs[1]->name) == "x");
  CHECK(std::string(op->info->attrs[0]->name) == "rate");
  CHECK_THAT(op_json("newer_op"), Contains(R"("default":0.5)"));
}

TEST_CASE("plugins are loaded by path, once") {
  LoadedPlugin& good = at("good");
  CHECK(load_plugin(good.path) == &good);
  const fs::path before = fs::current_path();
  fs::current_path(bad_folder());
  CHECK(load_plugin("good.so") == &good);
  CHECK(load_plugin("./folder.so/../good.so") == &good);
  fs::current_path(before);
  CHECK_THROWS_WITH(load_plugin(""), Contains("which is empty"));
  CHECK_THROWS_WITH(load_plugin("/no/such/plugin.so"), Contains("cannot be read: No such file"));
  const fs::path elsewhere = bad_folder() / "folder.so" / "copy.so";
  if (!fs::exists(elsewhere)) fs::copy_file(good.path, elsewhere);
  CHECK_THROWS_WITH(load_plugin(elsewhere.string()), Contains("two plugins are named 'good'"));
}

TEST_CASE("a path that is named has its manifest read, and is tried again") {
  const fs::path folder = bad_folder() / "named";
  fs::create_directories(folder);
  fs::copy_file(fs::path(BAD_PLUGINS) / "named" / "named.so", folder / "named.so",
                fs::copy_options::overwrite_existing);
  const std::string path = (folder / "named.so").string();
  auto manifest = [&](const std::string& rest) {
    write_text(folder / "named.json", R"({"name": "named", "kinds": "ops")" + rest + "}");
  };
  manifest(R"(, "cpu_features": ["avx9000"])");
  CHECK_THROWS_WITH(load_plugin(path), Contains("needs the processor feature 'avx9000'"));
  manifest(R"(, "min_host_minor": 999)");
  CHECK_THROWS_WITH(load_plugin(path), Contains("needs a host of interface version 1.999"));
  write_text(folder / "named.json", "{");
  CHECK_THROWS_WITH(load_plugin(path), Contains("parse error") && !Contains("json.exception"));
  write_text(folder / "named.json", "[]");
  CHECK_THROWS_WITH(load_plugin(path), Contains("named.json: it holds no object"));
  manifest(R"(, "libraries": "libc.so")");
  CHECK_THROWS_WITH(load_plugin(path), Contains("named.json: 'libraries': type must be array, but is string"));
  manifest(R"(, "abi": -1)");
  CHECK_THROWS_WITH(load_plugin(path), Contains("named.json: 'abi': it is -1; expected a whole number from 0"));
  write_text(folder / "named.json", R"({"name": "named", "kinds": "ops,kernels"})");
  CHECK_THROWS_WITH(load_plugin(path),
                    Contains("the kinds of its manifest are 'ops,kernels', those of the library 'ops'"));
  manifest("");
  LoadedPlugin* loaded = load_plugin(path);
  CHECK(loaded->state == PluginState::available);
  CHECK(load_plugin(path) == loaded);
}

TEST_CASE("what a plugin has and what it says that it has are one") {
  check_unavailable("unlisted_kind", Equals("it has pg.ops/1, but its kinds are 'kernels'"));
}

TEST_CASE("devices come all or not at all") {
  check_unavailable("half_devices", Equals("half_devices:1: properties: this one is broken"));
  CHECK(find_made_device("half_devices", 0) == nullptr);
  check_unavailable("many_devices", Contains("it has 300 devices; of 256 in all there is room for"));
  CHECK(find_made_device("many_devices", 0) == nullptr);
  check_unavailable("odd_alignment",
                    Contains("odd_alignment:0: properties: the alignment is 48; expected a power of two"));
}

TEST_CASE("names that could not be written are refused") {
  check_unavailable("capital_device", Contains("device type 'Big': its name is made of lower case letters"));
}

TEST_CASE("the current directory is never searched") {
  add_plugin_path(bad_folder().string());
  const size_t count = find_plugins().size();
  const fs::path before = fs::current_path();
  fs::current_path(BAD_PLUGINS);
  CHECK_THROWS_WITH(add_plugin_path(""), Contains("must have a name"));
  CHECK(find_plugins().size() == count);
  fs::current_path(before);
}

TEST_CASE("the list has every plugin with its state and reason") {
  bad_folder();
  const auto list = nlohmann::json::parse(plugins_json(false));
  REQUIRE(list.size() == find_plugins().size());
  for (const auto& plugin : list) {
    CHECK(plugin.at("path").get<std::string>()[0] == '/');
    CHECK((plugin.at("state") == "unavailable") == !plugin.at("reason").get<std::string>().empty());
  }
}

TEST_CASE("an unknown device is an error that lists what there is and what is not") {
  bad_folder();
  CHECK_THROWS_WITH(find_device("quantum:3"), Contains("there is no device 'quantum:3'") &&
                                                  Contains("'needs_library' is unavailable: needs the library"));
  for (const char* name : {"", ":", "cpu:", "cpu:x", "cpu:-1", "cpu:99999999999999", "/", "cpu:1:2"}) {
    CHECK_THROWS_WITH(find_device(name), Contains("is not a device name"));
  }
  CHECK_THROWS_WITH(device(-1), Contains("there is no device number -1"));
  CHECK_THROWS_WITH(device(INT32_MIN), Contains("there is no device number -2147483648"));
  CHECK_THROWS_WITH(device(INT32_MAX), Contains("there is no device number 2147483647"));
}
