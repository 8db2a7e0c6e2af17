// SPDX-License-Identifier: Apache-2.0
#include "plugin/table_copy.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace perigee {

namespace {

// What every sized struct begins with.
uint32_t size_of(const void* raw) {
  uint32_t size;
  std::memcpy(&size, raw, sizeof size);
  return size;
}

// The end of the last field that this host knows, not sizeof: padding holds nothing.
template <class T>
constexpr uint32_t kKnown = 0;
template <>
constexpr uint32_t kKnown<pg_ops> = PG_SIZE(pg_ops, ops);
template <>
constexpr uint32_t kKnown<pg_op_info> = PG_SIZE(pg_op_info, scalar);
template <>
constexpr uint32_t kKnown<pg_input_info> = PG_SIZE(pg_input_info, written_if);
template <>
constexpr uint32_t kKnown<pg_output_info> = PG_SIZE(pg_output_info, doc);
template <>
constexpr uint32_t kKnown<pg_attr_info> = PG_SIZE(pg_attr_info, value);
template <>
constexpr uint32_t kKnown<pg_device> = PG_SIZE(pg_device, plan_destroy);
template <>
constexpr uint32_t kKnown<pg_kernels> = PG_SIZE(pg_kernels, pack);
template <>
constexpr uint32_t kKnown<pg_kernel_info> = PG_SIZE(pg_kernel_info, spares);
template <>
constexpr uint32_t kKnown<pg_layers> = PG_SIZE(pg_layers, layers);
template <>
constexpr uint32_t kKnown<pg_layer_info> = PG_SIZE(pg_layer_info, build);
template <>
constexpr uint32_t kKnown<pg_optimizers> = PG_SIZE(pg_optimizers, optimizers);
template <>
constexpr uint32_t kKnown<pg_optimizer_info> = PG_SIZE(pg_optimizer_info, build_update);
template <>
constexpr uint32_t kKnown<pg_formats> = PG_SIZE(pg_formats, formats);
template <>
constexpr uint32_t kKnown<pg_format_info> = PG_SIZE(pg_format_info, write);
template <>
constexpr uint32_t kKnown<pg_collectives> = PG_SIZE(pg_collectives, peers);
template <>
constexpr uint32_t kKnown<pg_capture> = PG_SIZE(pg_capture, write);
template <>
constexpr uint32_t kKnown<pg_compiler> = PG_SIZE(pg_compiler, write);
template <>
constexpr uint32_t kKnown<pg_data> = PG_SIZE(pg_data, codecs);
template <>
constexpr uint32_t kKnown<pg_source_info> = PG_SIZE(pg_source_info, gather);
template <>
constexpr uint32_t kKnown<pg_transform_info> = PG_SIZE(pg_transform_info, close);
template <>
constexpr uint32_t kKnown<pg_codec_info> = PG_SIZE(pg_codec_info, encode);
template <>
constexpr uint32_t kKnown<pg_profiler> = PG_SIZE(pg_profiler, drain);
template <>
constexpr uint32_t kKnown<pg_device_collectives> = PG_SIZE(pg_device_collectives, take_failure);

template <class T>
T copy_struct(const void* raw, const std::string& where, uint32_t required) {
  if (raw == nullptr) pg::fail(PG_E_INVALID_ARGUMENT, where + ": an entry is NULL");
  const uint32_t size = size_of(raw);
  if (size < required) {
    pg::fail(PG_E_INVALID_ARGUMENT, pg::format("%s: the struct says it has %u bytes; its required part has %u",
                                               where.c_str(), size, required));
  }
  T copy{};
  static_assert(kKnown<T> != 0);
  std::memcpy(&copy, raw, std::min(size, kKnown<T>));
  copy.size = kKnown<T>;
  return copy;
}

// An array of copies and the array of pointers to them that the tables carry.
template <class T>
struct Copies {
  std::vector<T> items;
  std::vector<const T*> pointers;
};

template <class T>
Copies<T>& copy_array(const T* const* raw, uint32_t count, const std::string& where, uint32_t required,
                      TableMemory& keep) {
  if (count != 0 && raw == nullptr) pg::fail(PG_E_INVALID_ARGUMENT, where + " is NULL");
  auto copies = std::make_shared<Copies<T>>();
  for (uint32_t i = 0; i < count; i++) {
    copies->items.push_back(copy_struct<T>(raw[i], where + "[" + std::to_string(i) + "]", required));
  }
  for (const T& item : copies->items) copies->pointers.push_back(&item);
  keep.push_back(copies);
  return *copies;
}

template <class Pointer>
void require(Pointer entry, const std::string& where, const char* name) {
  if (entry != nullptr) return;
  constexpr bool is_function = std::is_function_v<std::remove_pointer_t<Pointer>>;
  pg::fail(PG_E_INVALID_ARGUMENT,
           where + ": required " + (is_function ? "function" : "field") + " '" + name + "' is missing");
}

template <class T>
T* keep_table(T table, TableMemory& keep) {
  auto copy = std::make_shared<T>(table);
  keep.push_back(copy);
  return copy.get();
}

int32_t answer_unimplemented(pg_error* error, const char* where) {
  return pg::set_error(error, PG_E_UNIMPLEMENTED, where, "this plugin does not implement it");
}

int32_t stub_peer(void*, uint32_t, uint64_t, uint64_t, uint32_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                  pg_error* error) {
  return answer_unimplemented(error, "peer");
}
int32_t stub_event_elapsed(void*, uint32_t, uint64_t, uint64_t, double*, pg_error* error) {
  return answer_unimplemented(error, "event_elapsed");
}
int32_t stub_native(void*, uint32_t, const char*, uint64_t, uint64_t*, pg_error* error) {
  return answer_unimplemented(error, "native");
}
int32_t stub_capture_begin(void*, uint32_t, uint64_t, pg_error* error) {
  return answer_unimplemented(error, "capture_begin");
}
int32_t stub_capture_end(void*, uint32_t, uint64_t, uint64_t*, pg_error* error) {
  return answer_unimplemented(error, "capture_end");
}
int32_t stub_plan_launch(void*, uint32_t, uint64_t, uint64_t, uint64_t, pg_error* error) {
  return answer_unimplemented(error, "plan_launch");
}
int32_t stub_plan_destroy(void*, uint32_t, uint64_t, pg_error* error) {
  return answer_unimplemented(error, "plan_destroy");
}
int32_t stub_pack(void*, uint32_t, void*, uint32_t, const pg_launch*, pg_address, pg_error* error) {
  return answer_unimplemented(error, "pack");
}

int32_t stub_abort(void*, uint64_t, const char*, pg_error* error) { return answer_unimplemented(error, "abort"); }
int32_t stub_peers(void*, uint64_t, uint32_t, uint32_t*, pg_error* error) {
  return answer_unimplemented(error, "peers");
}

// Capture's entries come together.
void complete_capture(pg_device& table, const char* where) {
  const bool present[] = {table.capture_begin != nullptr, table.capture_end != nullptr, table.plan_launch != nullptr,
                          table.plan_destroy != nullptr};
  const auto count = std::count(std::begin(present), std::end(present), true);
  if (count == std::ssize(present)) return;
  if (count != 0) {
    pg::fail(PG_E_INVALID_ARGUMENT, std::string(where) +
                                        ": capture_begin, capture_end, plan_launch and plan_destroy "
                                        "belong together, but only some of them are there");
  }
  table.capture_begin = stub_capture_begin;
  table.capture_end = stub_capture_end;
  table.plan_launch = stub_plan_launch;
  table.plan_destroy = stub_plan_destroy;
}

const pg_attr_info* const* copy_attrs(const pg_attr_info* const* raw, uint32_t count, const std::string& where,
                                      TableMemory& keep) {
  auto& attrs = copy_array(raw, count, where + ".attrs", PG_SIZE(pg_attr_info, value), keep);
  for (const pg_attr_info& attr : attrs.items) require(attr.name, where + ".attrs", "name");
  return attrs.pointers.data();
}

void copy_op(pg_op_info& op, const std::string& where, TableMemory& keep) {
  require(op.name, where, "name");
  const std::string named = where + ": " + op.name;
  require(op.infer, named, "infer");
  auto& inputs = copy_array(op.inputs, op.input_count, named + ".inputs", PG_SIZE(pg_input_info, doc), keep);
  for (const pg_input_info& input : inputs.items) require(input.name, named + ".inputs", "name");
  auto& outputs = copy_array(op.outputs, op.output_count, named + ".outputs", PG_SIZE(pg_output_info, doc), keep);
  for (const pg_output_info& output : outputs.items) require(output.name, named + ".outputs", "name");
  if (op.version == 0) op.version = 1;
  op.inputs = inputs.pointers.data();
  op.outputs = outputs.pointers.data();
  op.attrs = copy_attrs(op.attrs, op.attr_count, named, keep);
}

}  // namespace

const pg_ops* copy_ops(const void* raw, TableMemory& keep) {
  auto* table = keep_table(copy_struct<pg_ops>(raw, PG_IFACE_OPS, PG_SIZE(pg_ops, ops)), keep);
  auto& ops =
      copy_array(table->ops, table->count, std::string(PG_IFACE_OPS) + ": ops", PG_SIZE(pg_op_info, infer), keep);
  for (pg_op_info& op : ops.items) copy_op(op, PG_IFACE_OPS, keep);
  table->ops = ops.pointers.data();
  return table;
}

const pg_device* copy_device(const void* raw, TableMemory& keep) {
  const char* where = PG_IFACE_DEVICE;
  // The struct may end anywhere; entries behind its end read as missing and are named.
  auto* table = keep_table(copy_struct<pg_device>(raw, where, PG_SIZE(pg_device, type)), keep);
  require(table->type, where, "type");
  if (table->aliases == nullptr) table->aliases = "";
  require(table->count, where, "count");
  require(table->properties, where, "properties");
  require(table->alloc, where, "alloc");
  require(table->free, where, "free");
  require(table->stream_create, where, "stream_create");
  require(table->stream_destroy, where, "stream_destroy");
  require(table->stream_sync, where, "stream_sync");
  require(table->event_create, where, "event_create");
  require(table->event_destroy, where, "event_destroy");
  require(table->event_record, where, "event_record");
  require(table->event_wait, where, "event_wait");
  require(table->event_query, where, "event_query");
  require(table->event_sync, where, "event_sync");
  require(table->upload, where, "upload");
  require(table->download, where, "download");
  require(table->copy, where, "copy");
  require(table->fill, where, "fill");
  if (table->peer == nullptr) table->peer = stub_peer;
  if (table->event_elapsed == nullptr) table->event_elapsed = stub_event_elapsed;
  if (table->native == nullptr) table->native = stub_native;
  complete_capture(*table, where);
  return table;
}

const pg_kernels* copy_kernels(const void* raw, TableMemory& keep) {
  const char* where = PG_IFACE_KERNELS;
  auto* table = keep_table(copy_struct<pg_kernels>(raw, where, PG_SIZE(pg_kernels, kernels)), keep);
  require(table->device_type, where, "device_type");
  require(table->supports, where, "supports");
  require(table->prepare, where, "prepare");
  require(table->launch, where, "launch");
  require(table->release, where, "release");
  if (table->pack == nullptr) table->pack = stub_pack;
  auto& kernels =
      copy_array(table->kernels, table->count, std::string(where) + ": kernels", PG_SIZE(pg_kernel_info, op), keep);
  for (const pg_kernel_info& kernel : kernels.items) require(kernel.op, where, "op");
  table->kernels = kernels.pointers.data();
  return table;
}

const pg_layers* copy_layers(const void* raw, TableMemory& keep) {
  const std::string where = PG_IFACE_LAYERS;
  auto* table = keep_table(copy_struct<pg_layers>(raw, where, PG_SIZE(pg_layers, layers)), keep);
  auto& layers = copy_array(table->layers, table->count, where + ": layers", PG_SIZE(pg_layer_info, build), keep);
  for (pg_layer_info& layer : layers.items) {
    require(layer.name, where, "name");
    const std::string named = where + ": " + layer.name;
    require(layer.parameters, named, "parameters");
    require(layer.build, named, "build");
    if (layer.param_count != 0) require(layer.param_names, named, "param_names");
    layer.attrs = copy_attrs(layer.attrs, layer.attr_count, named, keep);
  }
  table->layers = layers.pointers.data();
  return table;
}

const pg_optimizers* copy_optimizers(const void* raw, TableMemory& keep) {
  const std::string where = PG_IFACE_OPTIMIZERS;
  auto* table = keep_table(copy_struct<pg_optimizers>(raw, where, PG_SIZE(pg_optimizers, optimizers)), keep);
  auto& optimizers = copy_array(table->optimizers, table->count, where + ": optimizers",
                                PG_SIZE(pg_optimizer_info, build_update), keep);
  for (pg_optimizer_info& optimizer : optimizers.items) {
    require(optimizer.name, where, "name");
    const std::string named = where + ": " + optimizer.name;
    require(optimizer.slots_used, named, "slots_used");
    require(optimizer.build_update, named, "build_update");
    if (optimizer.slot_count != 0) require(optimizer.slots, named, "slots");
    optimizer.attrs = copy_attrs(optimizer.attrs, optimizer.attr_count, named, keep);
  }
  table->optimizers = optimizers.pointers.data();
  return table;
}

const pg_formats* copy_formats(const void* raw, TableMemory& keep) {
  const std::string where = PG_IFACE_FORMATS;
  auto* table = keep_table(copy_struct<pg_formats>(raw, where, PG_SIZE(pg_formats, formats)), keep);
  auto& formats = copy_array(table->formats, table->count, where + ": formats", PG_SIZE(pg_format_info, read), keep);
  for (pg_format_info& format : formats.items) {
    require(format.name, where, "name");
    require(format.extensions, where + ": " + format.name, "extensions");
    if (format.write == nullptr) require(format.read, where + ": " + format.name, "read");
    if (format.options == nullptr) format.options = "";
  }
  table->formats = formats.pointers.data();
  return table;
}

const pg_collectives* copy_collectives(const void* raw, TableMemory& keep) {
  const std::string where = PG_IFACE_COLLECTIVES;
  auto* table = keep_table(copy_struct<pg_collectives>(raw, where, PG_SIZE(pg_collectives, wait)), keep);
  require(table->name, where, "name");
  require(table->world, where, "world");
  require(table->group_create, where, "group_create");
  require(table->group_destroy, where, "group_destroy");
  require(table->submit, where, "submit");
  require(table->wait, where, "wait");
  if (table->device_type == nullptr) table->device_type = "";
  if (table->abort == nullptr) table->abort = stub_abort;
  if (table->peers == nullptr) table->peers = stub_peers;
  return table;
}

const pg_capture* copy_capture(const void* raw, TableMemory& keep) {
  const char* where = PG_IFACE_CAPTURE;
  auto* table = keep_table(copy_struct<pg_capture>(raw, where, PG_SIZE(pg_capture, write)), keep);
  require(table->measure, where, "measure");
  require(table->launch, where, "launch");
  require(table->write, where, "write");
  return table;
}

const pg_compiler* copy_compiler(const void* raw, TableMemory& keep) {
  const char* where = PG_IFACE_COMPILER;
  auto* table = keep_table(copy_struct<pg_compiler>(raw, where, PG_SIZE(pg_compiler, release)), keep);
  require(table->device_type, where, "device_type");
  require(table->claim, where, "claim");
  require(table->compile, where, "compile");
  require(table->launch, where, "launch");
  require(table->release, where, "release");
  const bool some = table->measure != nullptr || table->launch_captured != nullptr || table->write != nullptr;
  if (some) {
    require(table->measure, where, "measure");
    require(table->launch_captured, where, "launch_captured");
    require(table->write, where, "write");
  }
  return table;
}

const pg_data* copy_data(const void* raw, TableMemory& keep) {
  const std::string where = PG_IFACE_DATA;
  auto* table = keep_table(copy_struct<pg_data>(raw, where, PG_SIZE(pg_data, codecs)), keep);
  auto& sources =
      copy_array(table->sources, table->source_count, where + ": sources", PG_SIZE(pg_source_info, close), keep);
  for (pg_source_info& source : sources.items) {
    require(source.name, where, "name");
    const std::string named = where + ": " + source.name;
    require(source.open, named, "open");
    require(source.read, named, "read");
    require(source.close, named, "close");
    source.attrs = copy_attrs(source.attrs, source.attr_count, named, keep);
  }
  auto& transforms = copy_array(table->transforms, table->transform_count, where + ": transforms",
                                PG_SIZE(pg_transform_info, close), keep);
  for (pg_transform_info& transform : transforms.items) {
    require(transform.name, where, "name");
    const std::string named = where + ": " + transform.name;
    require(transform.open, named, "open");
    require(transform.apply, named, "apply");
    require(transform.close, named, "close");
    transform.attrs = copy_attrs(transform.attrs, transform.attr_count, named, keep);
  }
  auto& codecs =
      copy_array(table->codecs, table->codec_count, where + ": codecs", PG_SIZE(pg_codec_info, decode), keep);
  for (pg_codec_info& codec : codecs.items) {
    require(codec.name, where, "name");
    const std::string named = where + ": " + codec.name;
    require(codec.extensions, named, "extensions");
    require(codec.matches, named, "matches");
    require(codec.probe, named, "probe");
    require(codec.decode, named, "decode");
    codec.decode_attrs = copy_attrs(codec.decode_attrs, codec.decode_attr_count, named, keep);
    codec.encode_attrs = copy_attrs(codec.encode_attrs, codec.encode_attr_count, named, keep);
  }
  table->sources = sources.pointers.data();
  table->transforms = transforms.pointers.data();
  table->codecs = codecs.pointers.data();
  return table;
}

const pg_profiler* copy_profiler(const void* raw, TableMemory& keep) {
  const std::string where = PG_IFACE_PROFILER;
  auto* table = keep_table(copy_struct<pg_profiler>(raw, where, PG_SIZE(pg_profiler, device_type)), keep);
  require(table->device_type, where, "device_type");
  require(table->start, where, "start");
  require(table->stop, where, "stop");
  require(table->drain, where, "drain");
  return table;
}

const pg_device_collectives* copy_device_collectives(const void* raw, TableMemory& keep) {
  const std::string where = PG_IFACE_DEVICE_COLLECTIVES;
  auto* table =
      keep_table(copy_struct<pg_device_collectives>(raw, where, PG_SIZE(pg_device_collectives, device_type)), keep);
  require(table->name, where, "name");
  require(table->device_type, where, "device_type");
  require(table->group_create, where, "group_create");
  require(table->group_destroy, where, "group_destroy");
  require(table->submit, where, "submit");
  require(table->abort, where, "abort");
  return table;
}

}  // namespace perigee
