// SPDX-License-Identifier: Apache-2.0
// A plugin's library before it is loaded: what it exports, says and does when it is opened and closed.
#include <dlfcn.h>
#include <elf.h>

#include <cstring>
#include <fstream>
#include <set>

#include "conform/probe.hpp"
#include "plugin/loader.hpp"
#include "registry/registry.hpp"

namespace perigee {
namespace {

using conform::need;
using conform::wrong;

struct Library {
  std::string path;
  const pg_plugin* entry = nullptr;
};

// The names of what a library defines for others, by its table of dynamic symbols.
std::set<std::string> exports_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  auto at = [&](uint64_t offset, auto& into) {
    if (offset > bytes.size() || sizeof into > bytes.size() - offset) wrong("the library ends early");
    std::memcpy(&into, bytes.data() + offset, sizeof into);
  };
  Elf64_Ehdr header{};
  at(0, header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    wrong("it is no 64-bit ELF library");
  std::set<std::string> names;
  for (unsigned i = 0; i < header.e_shnum; i++) {
    Elf64_Shdr section{}, text{};
    at(header.e_shoff + uint64_t{i} * header.e_shentsize, section);
    if (section.sh_type != SHT_DYNSYM) continue;
    at(header.e_shoff + uint64_t{section.sh_link} * header.e_shentsize, text);
    for (uint64_t offset = 0; offset + sizeof(Elf64_Sym) <= section.sh_size; offset += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol{};
      at(section.sh_offset + offset, symbol);
      const unsigned binding = ELF64_ST_BIND(symbol.st_info), seen = ELF64_ST_VISIBILITY(symbol.st_other);
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_ABS || binding == STB_LOCAL || seen == STV_HIDDEN)
        continue;
      const uint64_t name = text.sh_offset + symbol.st_name;
      if (name < bytes.size()) names.insert(bytes.c_str() + name);
    }
  }
  return names;
}

void exports_its_entry(Library& library) {
  const std::set<std::string> names = exports_of(library.path);
  need(names.contains("pg_plugin_v1"), "it exports no pg_plugin_v1");
  for (const std::string& name : names)
    need(name == "pg_plugin_v1", "it exports " + name + ", which may meet another plugin's");
}

void says_what_it_is(Library& library) {
  const pg_plugin& e = *library.entry;
  need(e.magic == PG_MAGIC, "its magic number is another");
  need(e.size >= PG_SIZE(pg_plugin, close), "its size ends before `close`");
  need(e.name != nullptr && e.name[0] != '\0', "it has no name");
  need(e.version != nullptr && e.version[0] != '\0', "it has no version");
  need(e.kinds != nullptr && e.kinds[0] != '\0', "it has no kinds");
  need(e.min_host_minor <= PG_ABI_MINOR,
       pg::format("it needs minor %u of the boundary; this is %u", e.min_host_minor, PG_ABI_MINOR));
}

struct Opened {
  explicit Opened(const Library& library) : entry(*library.entry) {
    pg_error error = pg::make_error();
    const int32_t code = entry.open(&host(), &self, &error);
    if (code != PG_OK) wrong("open fails: " + pg::message_of(code, error));
  }
  ~Opened() {
    pg_error error = pg::make_error();
    if (self != nullptr) entry.close(self, &error);
  }
  void close() {
    pg_error error = pg::make_error();
    const int32_t code = entry.close(std::exchange(self, nullptr), &error);
    if (code != PG_OK) wrong("close fails: " + pg::message_of(code, error));
  }
  // Plugins may hold on to it until they close.
  static const pg_host& host() {
    static auto& owner = *new LoadedPlugin;
    if (owner.host.size == 0) {
      owner.name = "conform";
      owner.host = make_host(&owner);
    }
    return owner.host;
  }
  const pg_plugin& entry;
  void* self = nullptr;
};

void answers_for_what_it_has(Library& library) {
  Opened opened(library);
  for (const char* id : {"pg.nothing/1", "", "pg.device/99"})
    need(library.entry->iface(opened.self, id) == nullptr, std::string("it has a table for '") + id + "'");
  opened.close();
}

void tables_stay(Library& library) {
  Opened opened(library);
  for (const char* id : {PG_IFACE_DEVICE, PG_IFACE_KERNELS, PG_IFACE_OPS, PG_IFACE_LAYERS})
    need(library.entry->iface(opened.self, id) == library.entry->iface(opened.self, id),
         std::string("its table of ") + id + " is another each time");
  opened.close();
}

void kernels_are_named(Library& library) {
  Opened opened(library);
  auto* device = static_cast<const pg_device*>(library.entry->iface(opened.self, PG_IFACE_DEVICE));
  auto* kernels = static_cast<const pg_kernels*>(library.entry->iface(opened.self, PG_IFACE_KERNELS));
  if (kernels != nullptr) {
    need(kernels->device_type != nullptr && kernels->device_type[0] != '\0', "its kernels are for no type of device");
    if (device != nullptr)
      need(std::strcmp(kernels->device_type, device->type) == 0,
           std::string("its kernels are for ") + kernels->device_type + ", its devices are " + device->type);
    for (uint32_t i = 0; i < kernels->count; i++)
      need(kernels->kernels[i] != nullptr && kernels->kernels[i]->op != nullptr && kernels->kernels[i]->op[0] != '\0',
           pg::format("kernel %u has no name", i));
  }
  opened.close();
}

// Nobody knows this kind of number, so a kernel that takes it has not looked.
void refusals_have_reasons(Library& library) {
  Opened opened(library);
  auto* kernels = static_cast<const pg_kernels*>(library.entry->iface(opened.self, PG_IFACE_KERNELS));
  int64_t shape = 2, stride = 1;
  pg_tensor x{};
  x.size = PG_SIZE(pg_tensor, components);
  x.dtype_code = 99;
  x.dtype_bits = 32;
  x.rank = 1;
  x.shape = &shape;
  x.stride = &stride;
  const pg_tensor* list[] = {&x};
  const uint32_t groups[] = {1};
  auto ask = [&](uint32_t i, const Op* op) {
    if (op == nullptr || op->info->input_count != 1 || op->info->output_count != 1 ||
        (op->info->inputs[0]->flags | op->info->outputs[0]->flags) != 0)
      return;
    const std::string name = op->info->name;
    pg_call call{};
    call.size = PG_SIZE(pg_call, attrs);
    call.op = op->info;
    call.input_count = call.output_count = 1;
    call.inputs = call.outputs = list;
    call.groups = groups;
    call.attrs = op->info->defaults;
    pg_error why = pg::make_error();
    const int32_t code = kernels->supports(opened.self, i, &call, &why);
    need(code != PG_OK, name + " takes numbers of an unknown kind");
    need(code == PG_E_NOT_SUPPORTED, name + pg::format(" refuses an unknown kind of numbers with code %d", code));
    need(why.message[0] != '\0', name + " refuses an unknown kind of numbers without a reason");
  };
  for (uint32_t i = 0; kernels != nullptr && i < kernels->count; i++) {
    if ((kernels->kernels[i]->flags & PG_KERNEL_SCALAR) == 0) {
      ask(i, find_op(kernels->kernels[i]->op));
      continue;
    }
    for (uint32_t k = 0; k < op_count(); k++)
      if (op_at(k)->info->scalar != nullptr) ask(i, op_at(k));
  }
  opened.close();
}

void opens_again(Library& library) {
  for (int i = 1; i <= 100; i++) {
    try {
      Opened opened(library);
      auto* device = static_cast<const pg_device*>(library.entry->iface(opened.self, PG_IFACE_DEVICE));
      uint64_t buffer = 0;
      pg_error error = pg::make_error();
      if (device != nullptr && device->alloc(opened.self, 0, PG_MEMORY_DEVICE, 64, &buffer, &error) == PG_OK)
        device->free(opened.self, 0, PG_MEMORY_DEVICE, buffer, &error);
      opened.close();
    } catch (const pg::Error& e) {
      wrong(pg::format("time %d: ", i) + e.what());
    }
  }
}

struct LibraryCheck {
  const char *group, *name;
  void (*run)(Library&);
  bool opens;
};
constexpr LibraryCheck kChecks[] = {
    {"abi", "exports its entry and nothing else", exports_its_entry, false},
    {"abi", "says what it is", says_what_it_is, false},
    {"abi", "has no table for what nobody knows", answers_for_what_it_has, true},
    {"abi", "tables stay where they are", tables_stay, true},
    {"abi", "kernels have names, and devices that they are for", kernels_are_named, true},
    {"errors", "what is not computed with is refused with a reason", refusals_have_reasons, true},
    {"lifecycle", "opens and closes a hundred times", opens_again, true},
};

bool is_open(const pg_plugin* entry) {
  for (const LoadedPlugin* plugin : find_plugins())
    if (plugin->entry == entry && plugin->opened) return true;
  return false;
}

}  // namespace

std::vector<Finding> conform_library(const std::string& path) {
  load_kind("ops");  // kernels look their operators up
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) pg::fail(PG_E_NOT_FOUND, dlerror());
  Library library{path, static_cast<const pg_plugin*>(dlsym(handle, "pg_plugin_v1"))};
  std::vector<Finding> found;
  for (const LibraryCheck& check : kChecks) {
    if (library.entry == nullptr && check.run != exports_its_entry) continue;
    if (check.opens && is_open(library.entry)) continue;  // no two at once
    Finding& finding = found.emplace_back(Finding{check.group, check.name, ""});
    try {
      check.run(library);
    } catch (const std::exception& e) {
      finding.problem = e.what()[0] != '\0' ? e.what() : "it fails";
    }
  }
  return found;
}

}  // namespace perigee
