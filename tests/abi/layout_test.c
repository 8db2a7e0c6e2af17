/* SPDX-License-Identifier: Apache-2.0
 *
 * The frozen layout of perigee/plugin.h on 64-bit hosts: where every field of every struct lies, and the size of each.
 * It compiles or it does not. A line that no longer holds means that plugins built before would read the wrong bytes:
 * mend the header, not this file. A field that is appended gets a line here (and the size of its struct a new number);
 * nothing else may change.
 */
#include "perigee/plugin.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type)
#define AT(type, field, bytes) _Static_assert(offsetof(type, field) == (bytes), #type "." #field)

SIZE(pg_error, 504);
AT(pg_error, size, 0);
AT(pg_error, code, 4);
AT(pg_error, native, 8);
AT(pg_error, flags, 16);
AT(pg_error, device, 20);
AT(pg_error, where, 24);
AT(pg_error, message, 88);

SIZE(pg_tensor, 80);
AT(pg_tensor, size, 0);
AT(pg_tensor, dtype_code, 4);
AT(pg_tensor, dtype_bits, 6);
AT(pg_tensor, rank, 8);
AT(pg_tensor, flags, 12);
AT(pg_tensor, shape, 16);
AT(pg_tensor, stride, 24);
AT(pg_tensor, buffer, 32);
AT(pg_tensor, offset, 40);
AT(pg_tensor, bit_offset, 48);
AT(pg_tensor, layout, 56);
AT(pg_tensor, class_id, 64);
AT(pg_tensor, component_count, 68);
AT(pg_tensor, components, 72);

SIZE(pg_ints, 72);
AT(pg_ints, count, 0);
AT(pg_ints, value, 8);

SIZE(pg_scalar, 8);
AT(pg_scalar, kind, 0);
AT(pg_scalar, input, 4);

SIZE(pg_number, 32);
AT(pg_number, real, 0);
AT(pg_number, imaginary, 8);
AT(pg_number, integer, 16);
AT(pg_number, kind, 24);
AT(pg_number, reserved, 28);

SIZE(pg_attr_info, 48);
AT(pg_attr_info, size, 0);
AT(pg_attr_info, kind, 4);
AT(pg_attr_info, flags, 8);
AT(pg_attr_info, offset, 12);
AT(pg_attr_info, name, 16);
AT(pg_attr_info, doc, 24);
AT(pg_attr_info, choices, 32);
AT(pg_attr_info, choice_count, 40);
AT(pg_attr_info, value, 44);

SIZE(pg_host, 136);
AT(pg_host, size, 0);
AT(pg_host, abi_minor, 4);
AT(pg_host, context, 8);
AT(pg_host, log, 16);
AT(pg_host, parallel_for, 24);
AT(pg_host, thread_count, 32);
AT(pg_host, dim_equal, 40);
AT(pg_host, dim_add, 48);
AT(pg_host, dim_mul, 56);
AT(pg_host, dim_div, 64);
AT(pg_host, dim_max, 72);
AT(pg_host, op_find, 80);
AT(pg_host, emit, 88);
AT(pg_host, describe, 96);
AT(pg_host, device_of, 104);
AT(pg_host, dim_name, 112);
AT(pg_host, device_native, 120);
AT(pg_host, deterministic, 128);

SIZE(pg_plugin, 64);
AT(pg_plugin, magic, 0);
AT(pg_plugin, size, 4);
AT(pg_plugin, abi_minor, 8);
AT(pg_plugin, min_host_minor, 12);
AT(pg_plugin, name, 16);
AT(pg_plugin, version, 24);
AT(pg_plugin, kinds, 32);
AT(pg_plugin, open, 40);
AT(pg_plugin, iface, 48);
AT(pg_plugin, close, 56);

SIZE(pg_input_info, 40);
AT(pg_input_info, size, 0);
AT(pg_input_info, flags, 4);
AT(pg_input_info, dtypes, 8);
AT(pg_input_info, reserved, 12);
AT(pg_input_info, name, 16);
AT(pg_input_info, doc, 24);
AT(pg_input_info, written_if, 32);

SIZE(pg_output_info, 32);
AT(pg_output_info, size, 0);
AT(pg_output_info, flags, 4);
AT(pg_output_info, like, 8);
AT(pg_output_info, reserved, 12);
AT(pg_output_info, name, 16);
AT(pg_output_info, doc, 24);

SIZE(pg_meta, 152);
AT(pg_meta, size, 0);
AT(pg_meta, flags, 4);
AT(pg_meta, dtype_code, 8);
AT(pg_meta, dtype_bits, 10);
AT(pg_meta, rank, 12);
AT(pg_meta, shape, 16);
AT(pg_meta, stride, 80);
AT(pg_meta, offset, 144);

SIZE(pg_infer, 56);
AT(pg_infer, size, 0);
AT(pg_infer, symbolic, 4);
AT(pg_infer, user, 8);
AT(pg_infer, input_count, 16);
AT(pg_infer, output_count, 20);
AT(pg_infer, inputs, 24);
AT(pg_infer, groups, 32);
AT(pg_infer, attrs, 40);
AT(pg_infer, outputs, 48);

SIZE(pg_grad, 88);
AT(pg_grad, size, 0);
AT(pg_grad, reserved, 4);
AT(pg_grad, user, 8);
AT(pg_grad, builder, 16);
AT(pg_grad, input_count, 24);
AT(pg_grad, output_count, 28);
AT(pg_grad, inputs, 32);
AT(pg_grad, groups, 40);
AT(pg_grad, outputs, 48);
AT(pg_grad, cotangents, 56);
AT(pg_grad, needed, 64);
AT(pg_grad, attrs, 72);
AT(pg_grad, gradients, 80);

SIZE(pg_expand, 64);
AT(pg_expand, size, 0);
AT(pg_expand, reserved, 4);
AT(pg_expand, user, 8);
AT(pg_expand, builder, 16);
AT(pg_expand, input_count, 24);
AT(pg_expand, output_count, 28);
AT(pg_expand, inputs, 32);
AT(pg_expand, groups, 40);
AT(pg_expand, attrs, 48);
AT(pg_expand, outputs, 56);

SIZE(pg_op_info, 168);
AT(pg_op_info, size, 0);
AT(pg_op_info, traits, 4);
AT(pg_op_info, effect, 8);
AT(pg_op_info, numeric, 12);
AT(pg_op_info, name, 16);
AT(pg_op_info, doc, 24);
AT(pg_op_info, category, 32);
AT(pg_op_info, role, 40);
AT(pg_op_info, input_count, 48);
AT(pg_op_info, output_count, 52);
AT(pg_op_info, attr_count, 56);
AT(pg_op_info, attr_size, 60);
AT(pg_op_info, static_size, 64);
AT(pg_op_info, inputs, 72);
AT(pg_op_info, outputs, 80);
AT(pg_op_info, attrs, 88);
AT(pg_op_info, defaults, 96);
AT(pg_op_info, saved_inputs, 104);
AT(pg_op_info, saved_outputs, 112);
AT(pg_op_info, user, 120);
AT(pg_op_info, infer, 128);
AT(pg_op_info, grad, 136);
AT(pg_op_info, decompose, 144);
AT(pg_op_info, write_back, 152);
AT(pg_op_info, version, 160);
AT(pg_op_info, reserved, 164);

SIZE(pg_ops, 16);
AT(pg_ops, size, 0);
AT(pg_ops, count, 4);
AT(pg_ops, ops, 8);

SIZE(pg_device_properties, 168);
AT(pg_device_properties, size, 0);
AT(pg_device_properties, flags, 4);
AT(pg_device_properties, name, 8);
AT(pg_device_properties, memory_total, 136);
AT(pg_device_properties, memory_free, 144);
AT(pg_device_properties, stream_count, 152);
AT(pg_device_properties, alignment, 156);
AT(pg_device_properties, compute_units, 160);
AT(pg_device_properties, reserved, 164);

SIZE(pg_device, 216);
AT(pg_device, size, 0);
AT(pg_device, reserved, 4);
AT(pg_device, type, 8);
AT(pg_device, aliases, 16);
AT(pg_device, count, 24);
AT(pg_device, properties, 32);
AT(pg_device, alloc, 40);
AT(pg_device, free, 48);
AT(pg_device, stream_create, 56);
AT(pg_device, stream_destroy, 64);
AT(pg_device, stream_sync, 72);
AT(pg_device, event_create, 80);
AT(pg_device, event_destroy, 88);
AT(pg_device, event_record, 96);
AT(pg_device, event_wait, 104);
AT(pg_device, event_query, 112);
AT(pg_device, event_sync, 120);
AT(pg_device, upload, 128);
AT(pg_device, download, 136);
AT(pg_device, copy, 144);
AT(pg_device, fill, 152);
AT(pg_device, peer, 160);
AT(pg_device, event_elapsed, 168);
AT(pg_device, native, 176);
AT(pg_device, capture_begin, 184);
AT(pg_device, capture_end, 192);
AT(pg_device, plan_launch, 200);
AT(pg_device, plan_destroy, 208);

SIZE(pg_kernel_info, 32);
AT(pg_kernel_info, size, 0);
AT(pg_kernel_info, flags, 4);
AT(pg_kernel_info, op, 8);
AT(pg_kernel_info, packs, 16);
AT(pg_kernel_info, spares, 24);

SIZE(pg_call, 56);
AT(pg_call, size, 0);
AT(pg_call, device, 4);
AT(pg_call, op, 8);
AT(pg_call, input_count, 16);
AT(pg_call, output_count, 20);
AT(pg_call, inputs, 24);
AT(pg_call, groups, 32);
AT(pg_call, outputs, 40);
AT(pg_call, attrs, 48);

SIZE(pg_prepared, 88);
AT(pg_prepared, size, 0);
AT(pg_prepared, reserved, 4);
AT(pg_prepared, kernel, 8);
AT(pg_prepared, workspace, 16);
AT(pg_prepared, pack_bytes, 24);

SIZE(pg_address, 16);
AT(pg_address, buffer, 0);
AT(pg_address, offset, 8);

SIZE(pg_launch, 112);
AT(pg_launch, size, 0);
AT(pg_launch, device, 4);
AT(pg_launch, stream, 8);
AT(pg_launch, sequence, 16);
AT(pg_launch, input_count, 24);
AT(pg_launch, output_count, 28);
AT(pg_launch, inputs, 32);
AT(pg_launch, outputs, 40);
AT(pg_launch, groups, 48);
AT(pg_launch, input, 56);
AT(pg_launch, output, 64);
AT(pg_launch, packed, 72);
AT(pg_launch, attrs, 80);
AT(pg_launch, workspace, 88);
AT(pg_launch, extents, 104);

SIZE(pg_kernels, 64);
AT(pg_kernels, size, 0);
AT(pg_kernels, count, 4);
AT(pg_kernels, device_type, 8);
AT(pg_kernels, kernels, 16);
AT(pg_kernels, supports, 24);
AT(pg_kernels, prepare, 32);
AT(pg_kernels, launch, 40);
AT(pg_kernels, release, 48);
AT(pg_kernels, pack, 56);

SIZE(pg_param, 104);
AT(pg_param, size, 0);
AT(pg_param, buffer, 4);
AT(pg_param, present, 8);
AT(pg_param, dtype, 12);
AT(pg_param, rank, 16);
AT(pg_param, init, 20);
AT(pg_param, a, 24);
AT(pg_param, b, 32);
AT(pg_param, shape, 40);

SIZE(pg_layer_build, 56);
AT(pg_layer_build, size, 0);
AT(pg_layer_build, training, 4);
AT(pg_layer_build, builder, 8);
AT(pg_layer_build, attrs, 16);
AT(pg_layer_build, param_count, 24);
AT(pg_layer_build, input_count, 28);
AT(pg_layer_build, params, 32);
AT(pg_layer_build, inputs, 40);
AT(pg_layer_build, outputs, 48);

SIZE(pg_layer_info, 96);
AT(pg_layer_info, size, 0);
AT(pg_layer_info, input_count, 4);
AT(pg_layer_info, output_count, 8);
AT(pg_layer_info, param_count, 12);
AT(pg_layer_info, attr_count, 16);
AT(pg_layer_info, attr_size, 20);
AT(pg_layer_info, name, 24);
AT(pg_layer_info, doc, 32);
AT(pg_layer_info, param_names, 40);
AT(pg_layer_info, attrs, 48);
AT(pg_layer_info, defaults, 56);
AT(pg_layer_info, inferred, 64);
AT(pg_layer_info, reserved, 68);
AT(pg_layer_info, user, 72);
AT(pg_layer_info, parameters, 80);
AT(pg_layer_info, build, 88);

SIZE(pg_layers, 16);
AT(pg_layers, size, 0);
AT(pg_layers, count, 4);
AT(pg_layers, layers, 8);

SIZE(pg_optimizer_step, 64);
AT(pg_optimizer_step, size, 0);
AT(pg_optimizer_step, reserved, 4);
AT(pg_optimizer_step, builder, 8);
AT(pg_optimizer_step, attrs, 16);
AT(pg_optimizer_step, step, 24);
AT(pg_optimizer_step, count, 32);
AT(pg_optimizer_step, slot_count, 36);
AT(pg_optimizer_step, params, 40);
AT(pg_optimizer_step, gradients, 48);
AT(pg_optimizer_step, state, 56);

SIZE(pg_optimizer_info, 80);
AT(pg_optimizer_info, size, 0);
AT(pg_optimizer_info, attr_count, 4);
AT(pg_optimizer_info, attr_size, 8);
AT(pg_optimizer_info, slot_count, 12);
AT(pg_optimizer_info, name, 16);
AT(pg_optimizer_info, doc, 24);
AT(pg_optimizer_info, attrs, 32);
AT(pg_optimizer_info, defaults, 40);
AT(pg_optimizer_info, slots, 48);
AT(pg_optimizer_info, user, 56);
AT(pg_optimizer_info, slots_used, 64);
AT(pg_optimizer_info, build_update, 72);

SIZE(pg_optimizers, 16);
AT(pg_optimizers, size, 0);
AT(pg_optimizers, count, 4);
AT(pg_optimizers, optimizers, 8);

SIZE(pg_sink, 32);
AT(pg_sink, size, 0);
AT(pg_sink, reserved, 4);
AT(pg_sink, context, 8);
AT(pg_sink, tensor, 16);
AT(pg_sink, note, 24);

SIZE(pg_named_tensor, 24);
AT(pg_named_tensor, size, 0);
AT(pg_named_tensor, reserved, 4);
AT(pg_named_tensor, name, 8);
AT(pg_named_tensor, tensor, 16);

SIZE(pg_format_info, 64);
AT(pg_format_info, size, 0);
AT(pg_format_info, reserved, 4);
AT(pg_format_info, name, 8);
AT(pg_format_info, doc, 16);
AT(pg_format_info, extensions, 24);
AT(pg_format_info, user, 32);
AT(pg_format_info, options, 40);
AT(pg_format_info, read, 48);
AT(pg_format_info, write, 56);

SIZE(pg_formats, 16);
AT(pg_formats, size, 0);
AT(pg_formats, count, 4);
AT(pg_formats, formats, 8);

#define IS(name, value) _Static_assert((name) == (value), #name)

IS(PG_MAGIC, 826754896);
IS(PG_MAX_RANK, 8);
IS(PG_OK, 0);
IS(PG_E_INVALID_ARGUMENT, 1);
IS(PG_E_OUT_OF_MEMORY, 2);
IS(PG_E_NOT_SUPPORTED, 3);
IS(PG_E_NOT_FOUND, 4);
IS(PG_E_FAILED_PRECONDITION, 5);
IS(PG_E_DATA_LOSS, 6);
IS(PG_E_DEADLINE_EXCEEDED, 7);
IS(PG_E_INTERNAL, 8);
IS(PG_E_BUSY, 9);
IS(PG_E_RETRY, 10);
IS(PG_E_UNIMPLEMENTED, 11);
IS(PG_E_OUT_OF_DISK, 12);
IS(PG_ERROR_DEVICE_LOST, 1);
IS(PG_INT, 0);
IS(PG_UINT, 1);
IS(PG_FLOAT, 2);
IS(PG_BFLOAT, 4);
IS(PG_COMPLEX, 5);
IS(PG_BOOL, 6);
IS(PG_FLOAT8_E4M3FN, 10);
IS(PG_FLOAT8_E5M2, 12);
IS(PG_F64, 131136);
IS(PG_F32, 131104);
IS(PG_F16, 131088);
IS(PG_BF16, 262160);
IS(PG_I64, 64);
IS(PG_I32, 32);
IS(PG_I16, 16);
IS(PG_I8, 8);
IS(PG_U8, 65544);
IS(PG_B8, 393224);
IS(PG_C64, 327744);
IS(PG_C128, 327808);
IS(PG_CLASS_DENSE, 0);
IS(PG_DIM_SYMBOLIC, -4611686018427387904);
IS(PG_ATTR_BOOL, 1);
IS(PG_ATTR_INT, 2);
IS(PG_ATTR_FLOAT, 3);
IS(PG_ATTR_DTYPE, 4);
IS(PG_ATTR_CHOICE, 5);
IS(PG_ATTR_AXIS, 6);
IS(PG_ATTR_INTS, 7);
IS(PG_ATTR_AXES, 8);
IS(PG_ATTR_DIMS, 9);
IS(PG_ATTR_DEVICE, 10);
IS(PG_ATTR_SCALAR, 11);
IS(PG_ATTR_NUMBER, 12);
IS(PG_ATTR_RUNTIME, 1);
IS(PG_ATTR_REQUIRED, 2);
IS(PG_ATTR_PAIR, 4);
IS(PG_ATTR_INTERNAL, 8);
IS(PG_SCALAR_NONE, 0);
IS(PG_SCALAR_BOOL, 1);
IS(PG_SCALAR_INT, 2);
IS(PG_SCALAR_FLOAT, 3);
IS(PG_SCALAR_COMPLEX, 4);
IS(PG_LOG_DEBUG, 0);
IS(PG_LOG_INFO, 1);
IS(PG_LOG_WARNING, 2);
IS(PG_LOG_ERROR, 3);
IS(PG_EMIT_IN_PLACE, 1);
IS(PG_INPUT_OPTIONAL, 1);
IS(PG_INPUT_VARIADIC, 2);
IS(PG_INPUT_MUTATES, 4);
IS(PG_INPUT_PROMOTE, 8);
IS(PG_INPUT_META, 16);
IS(PG_INPUT_HOST_SCALAR, 32);
IS(PG_OUTPUT_HIDDEN, 1);
IS(PG_OUTPUT_DYNAMIC, 2);
IS(PG_OUTPUT_VARIADIC, 4);
IS(PG_OP_ELEMENTWISE, 1);
IS(PG_OP_REDUCTION, 2);
IS(PG_OP_VIEW, 4);
IS(PG_OP_IN_PLACE, 8);
IS(PG_OP_FLOAT_RESULT, 16);
IS(PG_OP_CREATES, 32);
IS(PG_OP_NO_GRAD, 64);
IS(PG_EFFECT_NONE, 0);
IS(PG_EFFECT_RANDOM, 1);
IS(PG_EFFECT_ORDERED, 2);
IS(PG_NUMERIC_KEEP, 0);
IS(PG_NUMERIC_LOWER, 1);
IS(PG_NUMERIC_FLOAT32, 2);
IS(PG_M_BOOL, 1);
IS(PG_M_INT, 2);
IS(PG_M_FLOAT, 4);
IS(PG_M_COMPLEX, 8);
IS(PG_M_ANY, 15);
IS(PG_M_FLOAT8, 16);
IS(PG_META_VIEW, 1);
IS(PG_META_COPY, 2);
IS(PG_MEMORY_DEVICE, 0);
IS(PG_MEMORY_PINNED, 1);
IS(PG_DEVICE_HOST_VISIBLE, 1);
IS(PG_DEVICE_SYNCHRONOUS, 2);
IS(PG_DEVICE_ACCELERATOR, 4);
IS(PG_KERNEL_VARIES, 1);
IS(PG_INIT_CONSTANT, 0);
IS(PG_INIT_UNIFORM, 1);
IS(PG_INIT_NORMAL, 2);

int main(void) { return 0; }
