/* SPDX-License-Identifier: Apache-2.0
 * An exhibit in plain C: operators, a layer, an optimizer and a file format of the frozen interfaces, each table filled
 * by hand and none of a draft. Other operators are asked for by name alone, with their defaults, for their attributes
 * are no part of the boundary. Never change what is here: what is new gets an exhibit of its own (README.md). */
#include <perigee/plugin.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const pg_host* host;

static int32_t fail(pg_error* error, int32_t code, const char* where, const char* message, ...) {
  va_list arguments;
  va_start(arguments, message);
  error->code = code;
  snprintf(error->where, sizeof error->where, "%s", where);
  vsnprintf(error->message, sizeof error->message, message, arguments);
  va_end(arguments);
  return code;
}

static int32_t emit(pg_builder* builder, const char* name, pg_value a, pg_value b, const void* attrs, uint32_t flags,
                    pg_value* result, pg_error* error) {
  uint32_t op = 0;
  int32_t code = host->op_find(host->context, name, &op, NULL, error);
  pg_value inputs[2] = {a, b};
  if (code != PG_OK) return code;
  return host->emit(builder, op, inputs, NULL, b ? 2 : 1, attrs, flags, result, 1, error);
}

/* ---- plain_scale: every kind of attribute that fits a number, a gradient and an expression in place of a kernel ----
 */

typedef struct scale_attrs {
  int64_t axis;    /* PG_ATTR_AXIS */
  pg_ints repeats; /* PG_ATTR_INTS */
  int32_t negate;  /* PG_ATTR_BOOL */
  int32_t mode;    /* PG_ATTR_CHOICE: plain, squared */
  double factor;   /* PG_ATTR_FLOAT, runtime */
} scale_attrs;

static const char* const modes[] = {"plain", "squared"};
static const pg_attr_info scale_axis = {
    PG_SIZE(pg_attr_info, value), PG_ATTR_AXIS, 0, offsetof(scale_attrs, axis), "axis", "must be there", NULL, 0, 0};
static const pg_attr_info scale_repeats = {PG_SIZE(pg_attr_info, value),
                                           PG_ATTR_INTS,
                                           PG_ATTR_PAIR,
                                           offsetof(scale_attrs, repeats),
                                           "repeats",
                                           "two numbers above 0",
                                           NULL,
                                           0,
                                           0};
static const pg_attr_info scale_negate = {PG_SIZE(pg_attr_info, value),
                                          PG_ATTR_BOOL,
                                          0,
                                          offsetof(scale_attrs, negate),
                                          "negate",
                                          "the other sign",
                                          NULL,
                                          0,
                                          0};
static const pg_attr_info scale_mode = {
    PG_SIZE(pg_attr_info, value), PG_ATTR_CHOICE, 0, offsetof(scale_attrs, mode), "mode", "of the factor", modes, 2, 0};
static const pg_attr_info scale_factor = {PG_SIZE(pg_attr_info, value),
                                          PG_ATTR_FLOAT,
                                          PG_ATTR_RUNTIME,
                                          offsetof(scale_attrs, factor),
                                          "factor",
                                          "a number",
                                          NULL,
                                          0,
                                          0};
static const pg_attr_info* const scale_list[] = {&scale_axis, &scale_repeats, &scale_negate, &scale_mode,
                                                 &scale_factor};
static const scale_attrs scale_defaults = {0, {2, {1, 1}}, 0, 0, 2.0};

static int32_t scale_infer(const pg_infer* call, pg_error* error) {
  const scale_attrs* attrs = call->attrs;
  const pg_tensor* x = call->inputs[0];
  pg_meta* y = call->outputs[0];
  int64_t axis = attrs->axis < 0 ? attrs->axis + x->rank : attrs->axis;
  if (axis < 0 || (axis >= x->rank && x->rank > 0)) {
    return fail(error, PG_E_INVALID_ARGUMENT, "plain_scale", "there is no such axis of %u", x->rank);
  }
  if (attrs->repeats.count != 2 || attrs->repeats.value[0] < 1 || attrs->repeats.value[1] < 1) {
    return fail(error, PG_E_INVALID_ARGUMENT, "plain_scale", "repeats must be two numbers above 0");
  }
  y->dtype_code = x->dtype_code, y->dtype_bits = x->dtype_bits, y->rank = x->rank;
  for (uint32_t i = 0; i < x->rank; i++) y->shape[i] = x->shape[i];
  return PG_OK;
}

static int32_t scale_grad(const pg_grad* call, pg_error* error) {
  if (!call->needed[0] || !call->cotangents[0]) return PG_OK;
  return emit(call->builder, "plain_scale", call->cotangents[0], 0, call->attrs, 0, &call->gradients[0], error);
}

static const pg_input_info floats = {
    PG_SIZE(pg_input_info, doc), PG_INPUT_PROMOTE, PG_M_FLOAT, 0, "x", "any shape", NULL};
static const pg_input_info* const one_input[] = {&floats};
static const pg_output_info same = {PG_SIZE(pg_output_info, doc), 0, 0, 0, "y", "shape of x"};
static const pg_output_info* const one_output[] = {&same};
static const pg_op_info scale_op = {.size = PG_SIZE(pg_op_info, scalar),
                                    .traits = PG_OP_ELEMENTWISE | PG_OP_IN_PLACE,
                                    .name = "plain_scale",
                                    .doc = "x times factor.",
                                    .category = "elementwise",
                                    .input_count = 1,
                                    .output_count = 1,
                                    .attr_count = 5,
                                    .attr_size = sizeof(scale_attrs),
                                    .static_size = offsetof(scale_attrs, factor),
                                    .inputs = one_input,
                                    .outputs = one_output,
                                    .attrs = scale_list,
                                    .defaults = &scale_defaults,
                                    .infer = scale_infer,
                                    .grad = scale_grad,
                                    .version = 1,
                                    .scalar =
                                        "negate ? mode ? Neg(Mul(Mul(x, factor), factor)) : Neg(Mul(x, factor)) "
                                        ": mode ? Mul(Mul(x, factor), factor) : Mul(x, factor)"};

/* ---- plain_mean: a group of inputs, an optional one, a hidden output; decomposed ----------------------------------
 */

static const pg_input_info group = {PG_SIZE(pg_input_info, doc),
                                    PG_INPUT_VARIADIC | PG_INPUT_PROMOTE,
                                    PG_M_FLOAT,
                                    0,
                                    "xs",
                                    "tensors of one shape",
                                    NULL};
static const pg_input_info weight = {
    PG_SIZE(pg_input_info, doc), PG_INPUT_OPTIONAL | PG_INPUT_PROMOTE, PG_M_FLOAT, 0, "weight", "of that shape", NULL};
static const pg_input_info* const mean_inputs[] = {&group, &weight};
static const pg_output_info total = {PG_SIZE(pg_output_info, doc), PG_OUTPUT_HIDDEN, 0, 0, "total",
                                     "before the weight"};
static const pg_output_info* const mean_outputs[] = {&same, &total};

static int32_t mean_infer(const pg_infer* call, pg_error* error) {
  if (call->groups[0] == 0) return fail(error, PG_E_INVALID_ARGUMENT, "plain_mean", "there is no tensor");
  const pg_tensor* x = call->inputs[0];
  for (uint32_t k = 0; k < call->output_count; k++) {
    pg_meta* y = call->outputs[k];
    y->dtype_code = x->dtype_code, y->dtype_bits = x->dtype_bits, y->rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++) y->shape[i] = x->shape[i];
  }
  return PG_OK;
}

static int32_t mean_decompose(const pg_expand* call, pg_error* error) {
  scale_attrs attrs = scale_defaults;
  pg_value sum = call->inputs[0], w = call->groups[1] ? call->inputs[call->groups[0]] : 0;
  attrs.factor = 1.0 / call->groups[0];
  for (uint32_t i = 1; i < call->groups[0]; i++) {
    int32_t code = emit(call->builder, "add", sum, call->inputs[i], NULL, 0, &sum, error);
    if (code != PG_OK) return code;
  }
  int32_t code = emit(call->builder, "plain_scale", sum, 0, &attrs, 0, &sum, error);
  if (code != PG_OK) return code;
  if (call->output_count > 1) call->outputs[1] = sum;
  call->outputs[0] = sum;
  return w ? emit(call->builder, "mul", sum, w, NULL, 0, &call->outputs[0], error) : PG_OK;
}

static int32_t mean_grad(const pg_grad* call, pg_error* error) {
  scale_attrs attrs = scale_defaults;
  pg_value dy = call->cotangents[0], w = call->groups[1] ? call->inputs[call->groups[0]] : 0, part = dy;
  attrs.factor = 1.0 / call->groups[0];
  if (!dy) return PG_OK;
  int32_t code = w ? emit(call->builder, "mul", dy, w, NULL, 0, &part, error) : PG_OK;
  for (uint32_t i = 0; i < call->groups[0] && code == PG_OK; i++) {
    if (call->needed[i]) code = emit(call->builder, "plain_scale", part, 0, &attrs, 0, &call->gradients[i], error);
  }
  if (code != PG_OK || !w || !call->needed[call->groups[0]]) return code;
  return emit(call->builder, "mul", dy, call->outputs[1], NULL, 0, &call->gradients[call->groups[0]], error);
}

static const pg_op_info mean_op = {.size = PG_SIZE(pg_op_info, version),
                                   .numeric = PG_NUMERIC_FLOAT32,
                                   .name = "plain_mean",
                                   .doc = "The mean of tensors, times a weight.",
                                   .category = "reduction",
                                   .input_count = 2,
                                   .output_count = 2,
                                   .inputs = mean_inputs,
                                   .outputs = mean_outputs,
                                   .saved_inputs = 2,
                                   .saved_outputs = 2,
                                   .infer = mean_infer,
                                   .grad = mean_grad,
                                   .decompose = mean_decompose,
                                   .version = 1};

/* ---- plain_every: a view -------------------------------------------------------------------------------------------
 */

typedef struct every_attrs {
  int64_t step; /* PG_ATTR_INT */
} every_attrs;
static const pg_attr_info every_step = {
    PG_SIZE(pg_attr_info, value), PG_ATTR_INT, PG_ATTR_REQUIRED, 0, "step", "from one element to the next", NULL, 0, 0};
static const pg_attr_info* const every_list[] = {&every_step};
static const every_attrs every_defaults = {1};

static int32_t every_infer(const pg_infer* call, pg_error* error) {
  const pg_tensor* x = call->inputs[0];
  const every_attrs* attrs = call->attrs;
  pg_meta* y = call->outputs[0];
  if (x->rank != 1) return fail(error, PG_E_INVALID_ARGUMENT, "plain_every", "got %u axes; expected one", x->rank);
  if (attrs->step < 1) return fail(error, PG_E_INVALID_ARGUMENT, "plain_every", "step must be above 0");
  y->dtype_code = x->dtype_code, y->dtype_bits = x->dtype_bits, y->rank = 1;
  y->shape[0] = host->dim_div(host->context, host->dim_add(host->context, x->shape[0], attrs->step - 1), attrs->step);
  if (call->symbolic) return PG_OK;
  y->flags = PG_META_VIEW, y->stride[0] = x->stride[0] * attrs->step, y->offset = 0;
  return PG_OK;
}

static const pg_input_info anything = {PG_SIZE(pg_input_info, doc), 0, PG_M_ANY, 0, "x", "[n]", NULL};
static const pg_input_info* const every_inputs[] = {&anything};
static const pg_op_info every_op = {.size = PG_SIZE(pg_op_info, write_back), /* as before minor 6 */
                                    .traits = PG_OP_VIEW | PG_OP_NO_GRAD,
                                    .name = "plain_every",
                                    .doc = "Every so many elements.",
                                    .category = "view",
                                    .input_count = 1,
                                    .output_count = 1,
                                    .attr_count = 1,
                                    .attr_size = sizeof(every_attrs),
                                    .static_size = sizeof(every_attrs),
                                    .inputs = every_inputs,
                                    .outputs = one_output,
                                    .attrs = every_list,
                                    .defaults = &every_defaults,
                                    .infer = every_infer};

static const pg_op_info* const op_list[] = {&scale_op, &mean_op, &every_op};
static const pg_ops ops = {PG_SIZE(pg_ops, ops), 3, op_list};

/* ---- nn.PlainGain --------------------------------------------------------------------------------------------------
 */

typedef struct gain_attrs {
  int64_t features;
  double begin;
} gain_attrs;
static const pg_attr_info gain_features = {PG_SIZE(pg_attr_info, value),
                                           PG_ATTR_INT,
                                           PG_ATTR_REQUIRED,
                                           offsetof(gain_attrs, features),
                                           "features",
                                           "size of the last axis",
                                           NULL,
                                           0,
                                           0};
static const pg_attr_info gain_begin = {PG_SIZE(pg_attr_info, value),
                                        PG_ATTR_FLOAT,
                                        0,
                                        offsetof(gain_attrs, begin),
                                        "begin",
                                        "where the gain begins",
                                        NULL,
                                        0,
                                        0};
static const pg_attr_info* const gain_list[] = {&gain_features, &gain_begin};
static const gain_attrs gain_defaults = {0, 1.0};
static const char* const gain_params[] = {"gain"};

static int32_t gain_parameters(void* user, void* packed, const pg_tensor* input, pg_param* const* params,
                               pg_error* error) {
  gain_attrs* attrs = packed;
  (void)user;
  if (attrs->features == 0 && input != NULL && input->rank > 0) attrs->features = input->shape[input->rank - 1];
  if (attrs->features < 1) return fail(error, PG_E_INVALID_ARGUMENT, "PlainGain", "features must be above 0");
  params[0]->present = 1, params[0]->rank = 1, params[0]->shape[0] = attrs->features;
  params[0]->init = PG_INIT_CONSTANT, params[0]->a = attrs->begin;
  return PG_OK;
}

static int32_t gain_build(void* user, const pg_layer_build* call, pg_error* error) {
  (void)user;
  return emit(call->builder, "mul", call->inputs[0], call->params[0], NULL, 0, &call->outputs[0], error);
}

static const pg_layer_info gain_layer = {.size = PG_SIZE(pg_layer_info, build),
                                         .input_count = 1,
                                         .output_count = 1,
                                         .param_count = 1,
                                         .attr_count = 2,
                                         .attr_size = sizeof(gain_attrs),
                                         .name = "PlainGain",
                                         .doc = "x times a learnt number for each place of the last axis.",
                                         .param_names = gain_params,
                                         .attrs = gain_list,
                                         .defaults = &gain_defaults,
                                         .inferred = 1,
                                         .parameters = gain_parameters,
                                         .build = gain_build};
static const pg_layer_info* const layer_list[] = {&gain_layer};
static const pg_layers layers = {PG_SIZE(pg_layers, layers), 1, layer_list};

/* ---- optim.PlainDescent: w -= lr (g + slot), slot += g -------------------------------------------------------------
 */

typedef struct descent_attrs {
  double lr;
} descent_attrs;
static const pg_attr_info descent_lr = {
    PG_SIZE(pg_attr_info, value), PG_ATTR_FLOAT, 0, 0, "lr", "learning rate", NULL, 0, 0};
static const pg_attr_info* const descent_list[] = {&descent_lr};
static const descent_attrs descent_defaults = {0.1};
static const char* const descent_slots[] = {"sum"};

static int32_t descent_slots_used(void* user, const void* attrs, uint64_t* mask, pg_error* error) {
  (void)user;
  if (!(((const descent_attrs*)attrs)->lr > 0)) {
    return fail(error, PG_E_INVALID_ARGUMENT, "PlainDescent", "lr must be above 0");
  }
  *mask = 1;
  return PG_OK;
}

static int32_t descent_update(void* user, const pg_optimizer_step* call, pg_error* error) {
  scale_attrs attrs = scale_defaults;
  (void)user;
  attrs.factor = ((const descent_attrs*)call->attrs)->lr;
  for (uint32_t i = 0; i < call->count; i++) {
    pg_value step, ignored;
    int32_t code;
    if (!call->gradients[i]) continue;
    code = emit(call->builder, "add", call->state[i], call->gradients[i], NULL, PG_EMIT_IN_PLACE, &ignored, error);
    if (code == PG_OK) code = emit(call->builder, "plain_scale", call->state[i], 0, &attrs, 0, &step, error);
    if (code == PG_OK)
      code = emit(call->builder, "sub", call->params[i], step, NULL, PG_EMIT_IN_PLACE, &ignored, error);
    if (code != PG_OK) return code;
  }
  return PG_OK;
}

static const pg_optimizer_info descent = {.size = PG_SIZE(pg_optimizer_info, build_update),
                                          .attr_count = 1,
                                          .attr_size = sizeof(descent_attrs),
                                          .slot_count = 1,
                                          .name = "PlainDescent",
                                          .doc = "Steps along the sum of all gradients.",
                                          .attrs = descent_list,
                                          .defaults = &descent_defaults,
                                          .slots = descent_slots,
                                          .slots_used = descent_slots_used,
                                          .build_update = descent_update};
static const pg_optimizer_info* const optimizer_list[] = {&descent};
static const pg_optimizers optimizers = {PG_SIZE(pg_optimizers, optimizers), 1, optimizer_list};

/* ---- files: "PLAIN", then for each tensor: bytes of its name, name, dtype, rank, sizes, bytes; and one note --------
 */

static int32_t plain_write(void* user, const char* path, uint32_t count, const pg_named_tensor* const* items,
                           uint32_t note_count, const char* const* notes, pg_error* error) {
  FILE* file = fopen(path, "wb");
  (void)user;
  if (!file) return fail(error, PG_E_NOT_FOUND, "plain", "cannot open %s", path);
  fprintf(file, "PLAIN %u %s\n", count, note_count > 0 ? notes[1] : "-");
  for (uint32_t i = 0; i < count; i++) {
    const pg_tensor* t = items[i]->tensor;
    int64_t elements = 1;
    fprintf(file, "%s %u %u %u", items[i]->name, t->dtype_code, t->dtype_bits, t->rank);
    for (uint32_t k = 0; k < t->rank; k++) elements *= t->shape[k], fprintf(file, " %lld", (long long)t->shape[k]);
    fputc('\n', file);
    if (elements > 0) {
      fwrite((const char*)(uintptr_t)t->buffer + t->offset, 1, (size_t)((elements * t->dtype_bits + 7) / 8), file);
    }
  }
  return fclose(file) == 0 ? PG_OK : fail(error, PG_E_OUT_OF_DISK, "plain", "cannot write %s", path);
}

static int32_t plain_read(void* user, const char* path, const char* options, const pg_sink* sink, pg_error* error) {
  FILE* file = fopen(path, "rb");
  unsigned count = 0;
  char note[64];
  int32_t code = PG_OK;
  (void)user;
  (void)options;
  if (!file) return fail(error, PG_E_NOT_FOUND, "plain", "cannot open %s", path);
  if (fscanf(file, "PLAIN %u %63s", &count, note) != 2) {
    code = fail(error, PG_E_DATA_LOSS, "plain", "%s does not begin as such files do", path);
  } else {
    code = sink->note(sink->context, "note", note, error);
  }
  for (unsigned i = 0; i < count && code == PG_OK; i++) {
    char name[64];
    unsigned dtype, bits, rank;
    int64_t shape[PG_MAX_RANK], elements = 1;
    int right = fscanf(file, " %63s %u %u %u", name, &dtype, &bits, &rank) == 4 && rank <= PG_MAX_RANK;
    for (unsigned k = 0; right && k < rank; k++) {
      long long size = 0;
      right = fscanf(file, "%lld", &size) == 1;
      shape[k] = size, elements *= size;
    }
    if (!right || fgetc(file) != '\n') {
      code = fail(error, PG_E_DATA_LOSS, "plain", "%s ends before tensor %u", path, i + 1);
      break;
    }
    error->code = PG_OK;
    void* to = sink->tensor(sink->context, name, PG_DTYPE(dtype, bits), rank, shape, error);
    size_t bytes = (size_t)((elements * bits + 7) / 8);
    if (to == NULL && error->code != PG_OK) code = error->code;
    if (to != NULL && fread(to, 1, bytes, file) != bytes) {
      code = fail(error, PG_E_DATA_LOSS, "plain", "%s ends within %s", path, name);
    }
  }
  fclose(file);
  return code;
}

static const pg_format_info plain_format = {.size = PG_SIZE(pg_format_info, write),
                                            .name = "plain",
                                            .doc = "An exhibit's files.",
                                            .extensions = ".plain",
                                            .options = "",
                                            .read = plain_read,
                                            .write = plain_write};
static const pg_format_info* const format_list[] = {&plain_format};
static const pg_formats formats = {PG_SIZE(pg_formats, formats), 1, format_list};

/* ---- the entry -----------------------------------------------------------------------------------------------------
 */

static int32_t open_plugin(const pg_host* given, void** self, pg_error* error) {
  (void)error;
  host = given;
  *self = (void*)&ops;
  return PG_OK;
}
static const void* iface(void* self, const char* id) {
  (void)self;
  if (strcmp(id, "pg.ops/1") == 0) return &ops;
  if (strcmp(id, "pg.layer/1") == 0) return &layers;
  if (strcmp(id, "pg.optimizer/1") == 0) return &optimizers;
  if (strcmp(id, "pg.format/1") == 0) return &formats;
  return NULL;
}
static int32_t close_plugin(void* self, pg_error* error) {
  (void)self;
  (void)error;
  return PG_OK;
}

PG_EXPORT const pg_plugin pg_plugin_v1 = {PG_MAGIC, PG_SIZE(pg_plugin, close),       PG_ABI_MINOR, 0,     "plain",
                                          "1.0.0",  "ops,layers,optimizers,formats", open_plugin,  iface, close_plugin};
