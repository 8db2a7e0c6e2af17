/* SPDX-License-Identifier: Apache-2.0
 *
 * perigee/plugin.h: the C interface between Perigee's core and its plugins.
 *
 * This header is the specification. A plugin includes it (or plugin.hpp, the C++ SDK over it) and its vendor's
 * headers, imports no symbol of the core and exports exactly one: the constant `pg_plugin_v1`.
 *
 * CONTENTS, and the C++ header over each part:
 *  versions, errors, dtypes, tensors, attributes, pg_host (what a plugin may call), pg_plugin (the entry): plugin.hpp
 *  pg.ops/1        what operators are: schemas, shape rules, gradients      op.hpp, op_context.hpp, functions.hpp
 *  pg.device/0     memory, streams, events, copies                          device.hpp
 *  pg.kernels/0    what computes operators on a device                      kernel.hpp
 *  pg.layer/1      layers, as emitters of operators                         layer.hpp, emit.hpp, functions.hpp
 *  pg.optimizer/1  optimizers, as emitters of updates                       optimizer.hpp
 *  pg.format/1     files of tensors                                         format.hpp
 *  pg.collectives/0  tensors between processes
 *
 * CAVEATS, first:
 *  - No function of a table may let a C++ exception or a longjmp leave it.
 *  - A function that can fail returns a code (PG_OK or PG_E_*) and, when it fails, fills the caller's pg_error.
 *  - `size` in every struct is the end of its last field as its writer knew it (PG_SIZE), never sizeof. A reader asks
 *    PG_HAS before it touches a field that a later minor version appended. Arrays of sized structs are arrays of
 *    pointers, because the element size differs between versions.
 *  - Struct members have fixed width. No bool, long, enum or bit-field.
 *  - Strings are UTF-8, NUL-terminated. The host copies tables and the structs in their arrays when the plugin loads.
 *    What those point to beyond that (strings, `choices`, `defaults`, `user`) is the plugin's and lives until close.
 *  - `reserved` fields, and flags without a name here, are 0.
 *  - Interfaces of `/1` are frozen: what a plugin was built with works for as long as there is pg_plugin_v1. They only
 *    grow, by fields at the ends of structs, flags and values whose absence means what was. Those of `/0` are drafts:
 *    host and plugin must have the same, and each change is for all that are built with it.
 *
 * THREADS. Every function is tagged:
 *  [loader]  called from one thread at a time, while plugins load or close;
 *  [any]     may be called from any thread at any time between open and close;
 *  [stream]  may be called from any thread, but one at a time for one stream. On a device that is
 *            PG_DEVICE_SYNCHRONOUS the host takes no turns: there it means [any].
 *  [call]    a service that a callback may use on the thread that it was called on, until it returns.
 *
 * LIFETIME. Who creates, destroys. The host destroys prepared kernels, then buffers, then events, then streams, then
 * calls close. close with live objects answers PG_E_BUSY, which the host logs. A library stays mapped until the process
 * ends. What the arguments of a function point to is the caller's and lives until the function returns: copy what work
 * on a stream will need later. Only pg_op_info lives on, as long as the process.
 */
#ifndef PERIGEE_PLUGIN_H
#define PERIGEE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- versions, sizes ------------------------------------------------------------------------------------------- */

#define PG_MAGIC 0x31474750u /* "PGG1", little endian */
#define PG_ABI_MINOR 9u      /* raised by one whenever a field or function is appended */
#define PG_MAX_RANK 8        /* dimensions of a tensor */

/* The end of `last` in `type`: what a writer stores in `size`. */
#define PG_SIZE(type, last) ((uint32_t)(offsetof(type, last) + sizeof(((type *)0)->last)))
/* Whether the struct behind `p`, as its writer made it, holds `field`. */
#define PG_HAS(p, type, field) ((p)->size >= PG_SIZE(type, field))

#if defined(__GNUC__)
#define PG_EXPORT __attribute__((visibility("default")))
#else
#define PG_EXPORT
#endif

/* ---- errors ---------------------------------------------------------------------------------------------------- */

#define PG_OK 0
#define PG_E_INVALID_ARGUMENT 1
#define PG_E_OUT_OF_MEMORY 2
#define PG_E_NOT_SUPPORTED 3
#define PG_E_NOT_FOUND 4
#define PG_E_FAILED_PRECONDITION 5
#define PG_E_DATA_LOSS 6
#define PG_E_DEADLINE_EXCEEDED 7
#define PG_E_INTERNAL 8
#define PG_E_BUSY 9          /* close: objects are alive; query: work is pending (not an error there) */
#define PG_E_RETRY 10        /* host to front end only: memory is short, nothing has happened yet, free some and reissue */
#define PG_E_UNIMPLEMENTED 11 /* the other side is older and lacks this optional function */
#define PG_E_OUT_OF_DISK 12  /* no room for a file: the disk, a quota, a limit of file sizes; the message names the path */

#define PG_ERROR_DEVICE_LOST 1u /* flag: every later call on the device will fail too */

/* Owned by the caller, so that it works when memory is out. `message` has no trailing newline. The caller sets `size`
 * and an empty `message`; what fails sets `code` to what it returns. After PG_OK it is not read, but for
 * pg_device.count. */
typedef struct pg_error {
  uint32_t size;
  int32_t code;
  int64_t native;    /* the vendor's error number, or 0; from stream_sync and event_sync the failed sequence, or 0 */
  uint32_t flags;    /* PG_ERROR_* */
  uint32_t device;   /* ordinal of the device it happened on */
  char where[64];    /* function or operator */
  char message[416]; /* what, with got and expected; begins in lower case */
} pg_error;

/* ---- dtypes ---------------------------------------------------------------------------------------------------- */

/* Kinds are DLPack's codes, so that tensors can be exchanged without a table. */
#define PG_INT 0u
#define PG_UINT 1u
#define PG_FLOAT 2u
#define PG_BFLOAT 4u
#define PG_COMPLEX 5u /* bits count both parts: complex64 has 64 */
#define PG_BOOL 6u
#define PG_FLOAT8_E4M3FN 10u /* no infinities; NaN is all ones behind the sign */
#define PG_FLOAT8_E5M2 12u
/* A code without a name here is no float and no integer: of a kind that belongs to no class (PG_M_*). Sizes are bits: n
 * elements take (n * bits + 7) / 8 bytes where they lie densely. Of dtypes below 8 bits every row (the last axis) begins
 * on a byte, and an address within one is pg_tensor.bit_offset. */

/* A dtype in one number, as attributes carry it. 0 means "none given". */
#define PG_DTYPE(code, bits) (((uint32_t)(code) << 16) | (uint32_t)(bits))
#define PG_F64 PG_DTYPE(PG_FLOAT, 64)
#define PG_F32 PG_DTYPE(PG_FLOAT, 32)
#define PG_F16 PG_DTYPE(PG_FLOAT, 16)
#define PG_BF16 PG_DTYPE(PG_BFLOAT, 16)
#define PG_I64 PG_DTYPE(PG_INT, 64)
#define PG_I32 PG_DTYPE(PG_INT, 32)
#define PG_I16 PG_DTYPE(PG_INT, 16)
#define PG_I8 PG_DTYPE(PG_INT, 8)
#define PG_U8 PG_DTYPE(PG_UINT, 8)
#define PG_B8 PG_DTYPE(PG_BOOL, 8)
#define PG_C64 PG_DTYPE(PG_COMPLEX, 64)
#define PG_C128 PG_DTYPE(PG_COMPLEX, 128)

/* ---- tensors and dimensions ------------------------------------------------------------------------------------ */

#define PG_CLASS_DENSE 0u

/* What a plugin sees of a tensor: a buffer handle and an offset, never a bare pointer. On a host-visible device the
 * handle is the address. Where only the description matters (infer, prepare), buffer is 0. */
typedef struct pg_tensor {
  uint32_t size;
  uint16_t dtype_code, dtype_bits;
  uint32_t rank, flags;  /* flags: none yet */
  const int64_t *shape;  /* rank dimensions; may hold symbols where the host says so */
  const int64_t *stride; /* in elements, 0 where broadcast, never negative; NULL: not known yet (symbolic) */
  uint64_t buffer;
  uint64_t offset;       /* bytes from the buffer's start to element 0 */
  uint64_t bit_offset;   /* 0 but for sub-byte dtypes */
  uint64_t layout;       /* 0: strides say it all */
  uint32_t class_id, component_count; /* PG_CLASS_*; a dense tensor has no components */
  const struct pg_tensor *const *components;
} pg_tensor;

/* A dimension below this names an expression over the host's symbols ("batch"). Plugins never compute with dimensions
 * themselves where a symbol may occur: they ask the host (pg_host.dim_*). */
#define PG_DIM_SYMBOLIC (-((int64_t)1 << 62))
#define PG_DIM_IS_SYMBOLIC(d) ((d) < PG_DIM_SYMBOLIC)

/* ---- attributes ------------------------------------------------------------------------------------------------ */

#define PG_ATTR_BOOL 1u   /* int32_t, 0 or 1 */
#define PG_ATTR_INT 2u    /* int64_t */
#define PG_ATTR_FLOAT 3u  /* double */
#define PG_ATTR_DTYPE 4u  /* uint32_t, PG_DTYPE or 0 */
#define PG_ATTR_CHOICE 5u /* int32_t, an index into `choices` */
#define PG_ATTR_AXIS 6u   /* int64_t, from 0, negative from the end (front ends translate their own base) */
#define PG_ATTR_INTS 7u   /* pg_ints: a list of plain numbers; front ends accept one number n for {n, n} if PG_ATTR_PAIR */
#define PG_ATTR_AXES 8u   /* pg_ints of axes, from 0, negative from the end */
#define PG_ATTR_DIMS 9u   /* pg_ints of dimensions: may hold symbols, and -1 where the operator infers one */
#define PG_ATTR_DEVICE 10u /* int32_t, the host's device number */
#define PG_ATTR_SCALAR 11u /* pg_scalar: a number in place of a tensor */
#define PG_ATTR_NUMBER 12u /* pg_number: what keeps an int64 whole, and both parts of a complex number */

/* Attribute flags. Static attributes are part of a kernel's key; runtime attributes are arguments of launch. */
#define PG_ATTR_RUNTIME 1u
#define PG_ATTR_REQUIRED 2u
#define PG_ATTR_PAIR 4u     /* one number stands for the list {n, n, ...} that the operator wants */
#define PG_ATTR_INTERNAL 8u /* filled by the host or by other operators; front ends do not show it */

typedef struct pg_ints {
  int64_t count;
  int64_t value[PG_MAX_RANK];
} pg_ints;

/* A plain number in place of the declared input `input`, which is then absent. Static, since its kind decides the dtype;
 * the number itself is the runtime attribute (a pg_number) at pg_attr_info.value. */
#define PG_SCALAR_NONE 0
#define PG_SCALAR_BOOL 1
#define PG_SCALAR_INT 2
#define PG_SCALAR_FLOAT 3
#define PG_SCALAR_COMPLEX 4 /* of a pg_number only */
typedef struct pg_scalar {
  int32_t kind, input;
} pg_scalar;

/* A number that says what it is. `real` is always set: what computes in floats needs nothing else. */
typedef struct pg_number {
  double real;      /* of an integer the nearest double */
  double imaginary; /* 0 but for PG_SCALAR_COMPLEX */
  int64_t integer;  /* PG_SCALAR_INT and PG_SCALAR_BOOL: the number, exactly; else 0 */
  uint32_t kind;    /* PG_SCALAR_*; PG_SCALAR_NONE, as zeroed bytes have it, is a float */
  uint32_t reserved;
} pg_number;

/* Attributes travel as one packed struct that the plugin lays out. All runtime attributes lie at or behind
 * `static_size` (pg_op_info), all static ones before it; bytes that no attribute covers are zero. Offsets are multiples
 * of 8, of 4 for kinds of 4 bytes and pg_scalar. */
typedef struct pg_attr_info {
  uint32_t size;
  uint32_t kind, flags;
  uint32_t offset;             /* bytes into the packed struct */
  const char *name, *doc;
  const char *const *choices;  /* PG_ATTR_CHOICE: the names, by index */
  uint32_t choice_count;
  uint32_t value; /* PG_ATTR_SCALAR: offset of the number, an internal runtime attribute of kind PG_ATTR_NUMBER */
} pg_attr_info;

/* ---- services of the host -------------------------------------------------------------------------------------- */

typedef struct pg_builder pg_builder; /* emits operators; valid only during the call that received it */
typedef uint64_t pg_value;            /* a tensor inside that call; 0 is "absent" */

struct pg_op_info;

#define PG_LOG_DEBUG 0
#define PG_LOG_INFO 1
#define PG_LOG_WARNING 2
#define PG_LOG_ERROR 3

typedef struct pg_host {
  uint32_t size, abi_minor;
  void *context; /* first argument of every function below; names the plugin that was opened with this table */

  void (*log)(void *context, int32_t level, const char *message); /* [any] */

  /* Runs body(argument, begin, end) over [0, count) in pieces of at least `grain`, on the one thread runtime of the
   * process, and returns when all are done. Runs inline when there is one piece or when called from inside itself.
   * Where pieces end depends on the number of threads. body must not throw. [any] */
  void (*parallel_for)(void *context, int64_t count, int64_t grain, void (*body)(void *argument, int64_t begin, int64_t end),
                       void *argument);
  int32_t (*thread_count)(void *context); /* threads that parallel_for may use; at least 1 [any] */

  /* Dimensions. Plain numbers work too. An overflow or an impossible request gives -1; in infer it also sets an error,
   * which the host raises instead of what infer makes of the -1. [any] */
  int32_t (*dim_equal)(void *context, int64_t a, int64_t b); /* 1: equal, or assumed so because a symbol is involved */
  int64_t (*dim_add)(void *context, int64_t a, int64_t b);   /* subtract with dim_mul(b, -1) */
  int64_t (*dim_mul)(void *context, int64_t a, int64_t b);
  int64_t (*dim_div)(void *context, int64_t a, int64_t b);   /* rounds down; b > 0 */
  int64_t (*dim_max)(void *context, int64_t a, int64_t b);

  /* Looks an operator up by name, loading its plugin if it must; PG_E_NOT_FOUND. *op is its number in this process,
   * *info (`info` may be NULL) lives as long as the process. [any] */
  int32_t (*op_find)(void *context, const char *name, uint32_t *op, const struct pg_op_info **info, pg_error *error);

  /* Emits an operator. `inputs` is flat: groups[i] values for the i-th declared input (NULL groups: one each). `attrs`
   * is the operator's packed struct (NULL: its defaults), copied. Values made here live until the callback returns.
   * `flags` are PG_EMIT_*. Hidden outputs come behind the visible ones; fewer may be asked for. An absent input is 0;
   * with NULL groups absent ones at the end may be left out. [call] */
  int32_t (*emit)(pg_builder *builder, uint32_t op, const pg_value *inputs, const uint32_t *groups, uint32_t input_count,
                  const void *attrs, uint32_t flags, pg_value *outputs, uint32_t output_count, pg_error *error);
  /* The description of a value: buffer is 0, shape may hold symbols. Valid while the value is. NULL for 0. [call] */
  const pg_tensor *(*describe)(pg_builder *builder, pg_value value);
  /* The host's device number of a value (not 0), for PG_ATTR_DEVICE. [call] */
  int32_t (*device_of)(pg_builder *builder, pg_value value);
  /* A dimension as text for messages ("batch", "3"). Valid until the thread's eighth next call. [any] */
  const char *(*dim_name)(void *context, int64_t dimension);
  /* Since minor 2. What the device plugin of that type answers for a handle of its device `device` (pg_launch.device):
   * pg_device.native. So kernels for somebody else's device get at its streams and memory. PG_E_UNIMPLEMENTED where that
   * plugin has no `native`; PG_E_NOT_FOUND for types and devices that are not there. [any] */
  int32_t (*device_native)(void *context, const char *device_type, uint32_t device, const char *what, uint64_t handle,
                           uint64_t *native, pg_error *error);
  /* Since minor 5. 1: no result may depend on the number of threads, devices or workers (config.set{deterministic=true});
   * 0: it may, where that is faster. Kernels ask in supports and in prepare, choose a way that keeps to the answer, and
   * refuse in supports, saying so, where they have none. What was prepared is released when the answer changes, and
   * when the number of threads does, so neither needs watching in launch. [any] */
  int32_t (*deterministic)(void *context);
} pg_host;

#define PG_EMIT_IN_PLACE 1u /* write the first output into the first input; the schema must say PG_OP_IN_PLACE */

/* ---- the entry ------------------------------------------------------------------------------------------------- */

/* kinds: of "ops device kernels layers optimizers formats collectives" those that the plugin has, separated by commas. The host
 * calls open, asks iface once for every interface it knows (one that `kinds` promises and that is NULL fails the load),
 * and calls close once. A failing open cleans up after itself: there is no close then. No two plugins have one name. The
 * manifest beside the library, where there is one, says the same name and kinds. */
typedef struct pg_plugin {
  uint32_t magic, size;              /* PG_MAGIC, PG_SIZE(pg_plugin, close) */
  uint32_t abi_minor;                /* PG_ABI_MINOR of the header it was built with */
  uint32_t min_host_minor;           /* refuse hosts older than this */
  const char *name, *version, *kinds; /* "cpu", "1.0.0", "device,kernels" */
  int32_t (*open)(const pg_host *host, void **self, pg_error *error); /* [loader]; host outlives self */
  const void *(*iface)(void *self, const char *id);                   /* [loader] NULL where it has none; lives until close */
  int32_t (*close)(void *self, pg_error *error);                      /* [loader] joins the plugin's threads */
} pg_plugin;
/* extern const pg_plugin pg_plugin_v1; is the one exported symbol. */

/* ---- pg.ops/1: what operators are ------------------------------------------------------------------------------ */

#define PG_IFACE_OPS "pg.ops/1"

/* Input flags. */
#define PG_INPUT_OPTIONAL 1u
#define PG_INPUT_VARIADIC 2u  /* a group of any length */
#define PG_INPUT_MUTATES 4u   /* the kernel writes into it; it counts as a new version afterwards */
#define PG_INPUT_PROMOTE 8u   /* takes part in dtype promotion; the host casts it to the common dtype */
#define PG_INPUT_META 16u     /* only shape and dtype are read, never the contents */
#define PG_INPUT_HOST_SCALAR 32u /* a 0-dim tensor of another device may be copied over silently */
#define PG_INPUT_CONDITION 64u   /* optional, the last, one bool: where it is given and true the kernel writes into none
                                    of its inputs. The host fills it in while a step must not happen if gradients
                                    overflowed (loss scaling), so that nobody waits for the device to know; operators
                                    that write and lack it are decided by the host, which does wait. */

/* Output flags. */
#define PG_OUTPUT_HIDDEN 1u   /* between forward and backward only (indices, masks, statistics) */
#define PG_OUTPUT_DYNAMIC 2u  /* infer gives upper bounds; the kernel publishes the extents (pg_launch.extents) and
                                 writes the elements densely, as if the output had had that shape; one above its bound
                                 fails the call */
#define PG_OUTPUT_VARIADIC 4u /* as many as there are tensors in input group `like` */

/* Traits. */
#define PG_OP_ELEMENTWISE 1u
#define PG_OP_REDUCTION 2u
#define PG_OP_VIEW 4u        /* no kernel: outputs alias input 0 with the strides that infer gives */
#define PG_OP_IN_PLACE 8u    /* output 0 may be written into input 0: launch then sees both with one address and one set
                                of strides, which need not be dense. Another input that shares memory with it lies
                                there in the same way, or the host has copied it. */
#define PG_OP_FLOAT_RESULT 16u /* promotion lifts integers and booleans to the default float dtype (div, exp) */
#define PG_OP_CREATES 32u    /* makes a tensor of nothing: placed by the device scope, dtype by attribute "dtype" */
#define PG_OP_NO_GRAD 64u    /* outputs never need gradients */

#define PG_EFFECT_NONE 0u
#define PG_EFFECT_RANDOM 1u  /* has internal runtime attributes "seed" and "offset" (PG_ATTR_INT), filled by the host */
#define PG_EFFECT_ORDERED 2u /* never removed, merged or reordered */

/* Numeric classes for mixed precision: what becomes of the 16 and 32 bit float inputs. */
#define PG_NUMERIC_KEEP 0u    /* runs in the dtype it is given */
#define PG_NUMERIC_LOWER 1u   /* matrix products, convolutions: safe and faster in 16 bits */
#define PG_NUMERIC_FLOAT32 2u /* losses, sums, exponentials: wants float32 */
#define PG_NUMERIC_WIDEST 3u  /* wants one dtype and does not promote: all are cast to the widest among them */

/* dtype masks */
#define PG_M_BOOL 1u
#define PG_M_INT 2u /* u8 i8 i16 i32 i64 */
#define PG_M_FLOAT 4u /* f16 bf16 f32 f64 */
#define PG_M_COMPLEX 8u
#define PG_M_ANY 15u     /* of the four above */
#define PG_M_FLOAT8 16u  /* both float8: stored and converted, so only what names them takes them */

typedef struct pg_input_info {
  uint32_t size, flags;
  uint32_t dtypes; /* PG_M_* */
  uint32_t reserved;
  const char *name, *doc;
  const char *written_if; /* since minor 4. PG_INPUT_MUTATES only where this static bool attribute is true; NULL: always */
} pg_input_info;

typedef struct pg_output_info {
  uint32_t size, flags;
  uint32_t like; /* PG_OUTPUT_VARIADIC: the input group it follows */
  uint32_t reserved;
  const char *name, *doc;
} pg_output_info;

/* What infer writes for an output: every one of them, with a dtype named above. A view lies within the elements that
 * input 0 reaches, in its dtype; the host checks that, and answers PG_E_INTERNAL. */
#define PG_META_VIEW 1u /* of PG_OP_VIEW: stride and offset are given, the output aliases input 0 */
#define PG_META_COPY 2u /* of PG_OP_VIEW: cannot be one here. The host makes input 0 contiguous first, and asks again
                           (reshape of a transposed tensor); an error where input 0 is contiguous */
typedef struct pg_meta {
  uint32_t size, flags;
  uint16_t dtype_code, dtype_bits;
  uint32_t rank;
  int64_t shape[PG_MAX_RANK];
  int64_t stride[PG_MAX_RANK]; /* elements */
  int64_t offset;              /* elements, relative to input 0's element 0 */
} pg_meta;

typedef struct pg_infer {
  uint32_t size;
  uint32_t symbolic;     /* 1: dimensions may be symbols and strides are unknown; view operators give shapes only */
  void *user;            /* pg_op_info.user */
  uint32_t input_count, output_count;
  const pg_tensor *const *inputs; /* flat; NULL where absent */
  const uint32_t *groups;         /* tensors in each declared input */
  const void *attrs;
  pg_meta *const *outputs; /* flat, hidden ones last; size is set, the rest is infer's to write */
} pg_infer;

typedef struct pg_grad {
  uint32_t size;
  uint32_t reserved;
  void *user;
  pg_builder *builder;
  uint32_t input_count, output_count;
  const pg_value *inputs;     /* those not declared as saved may only be described or used as PG_INPUT_META */
  const uint32_t *groups;
  const pg_value *outputs;    /* likewise; hidden ones are always there */
  const pg_value *cotangents; /* an output's, of its shape and dtype; 0 where nothing flowed */
  const uint8_t *needed;      /* an input's: 0 where the host will drop the gradient, so that it need not be emitted */
  const void *attrs;
  pg_value *gradients;        /* an input's, of its shape and dtype (checked); leave 0 where there is none */
} pg_grad;

/* decompose: emit simpler operators that compute the output_count first outputs (hidden ones too if counted), of the
 * dtypes and shapes that infer says.
 * write_back, for views: outputs[0] is inputs[0] with the part that the view shows replaced by inputs[1]. */
typedef struct pg_expand {
  uint32_t size;
  uint32_t reserved;
  void *user;
  pg_builder *builder;
  uint32_t input_count, output_count;
  const pg_value *inputs;
  const uint32_t *groups;
  const void *attrs;
  pg_value *outputs;
} pg_expand;

typedef struct pg_op_info {
  uint32_t size;
  uint32_t traits, effect, numeric;
  const char *name, *doc; /* the name: lower case, digits and '_', as front ends can write it; so too of attributes and
                             inputs, which share one space of names */
  const char *category; /* "elementwise", "reduction", "view", "matrix", "neural", "random", ...: chapters of the reference */
  /* The role this operator plays for the host, or NULL. One schema claims a role. Computed by kernels: "accumulate"
   * (x, y) -> x + y; "sum_like" (dy, META x) -> dy summed to x's shape; "zeros_like", "ones_like" (META x);
   * "all_finite" (variadic) -> bool. Carried out by the device's own copy and fill entries: "clone" (x); "cast" (x;
   * dtype); "transfer" (x; device); "fill" (; DIMS shape, NUMBER value, DTYPE dtype); "copy" (META dst, src) -> dst's
   * next contents, always run in place but in graphs.
   * Where the INT attribute "group" is not 0, carried out by an engine of pg.collectives for that group, whose size is
   * the INT attribute "ranks" (checked): "all_reduce" (variadic xs, one of them; CHOICE op: sum mean max min),
   * "reduce_scatter" (x; op), "reduce" (x; op, INT root), "broadcast" (x; root), "all_gather" (x), "all_to_all" (x). */
  const char *role;
  uint32_t input_count, output_count, attr_count;
  uint32_t attr_size, static_size; /* bytes of the packed struct, and of its static part */
  const pg_input_info *const *inputs;
  const pg_output_info *const *outputs; /* hidden ones last */
  const pg_attr_info *const *attrs;
  const void *defaults;            /* attr_size bytes; NULL only where that is 0 */
  uint64_t saved_inputs, saved_outputs; /* by declared position: all that grad may use the contents of */
  void *user;                      /* handed back in every call below */
  int32_t (*infer)(const pg_infer *call, pg_error *error);       /* [any] */
  int32_t (*grad)(const pg_grad *call, pg_error *error);         /* [any] NULL: not differentiable */
  int32_t (*decompose)(const pg_expand *call, pg_error *error);  /* [any] NULL: none */
  int32_t (*write_back)(const pg_expand *call, pg_error *error); /* [any] views only; NULL: not writable */
  /* Since minor 6. Of the schema: raised when inputs, attributes or outputs change what they mean, so that a call that was
   * written down before means something else. Saved graphs hold it, and one that was saved with another version does not
   * load. 0 reads as 1. What is only appended (an attribute whose default is what was so far) raises nothing. */
  uint32_t version;
  uint32_t reserved;
  /* Since minor 8. What an elementwise operator (PG_OP_ELEMENTWISE, one output) computes, as a text over the primitives of
   * perigee/kernels/primitives.hpp, or NULL. Kernels, fused code and references follow from it: an operator that has one
   * needs no kernel of its own where kernels of PG_KERNEL_SCALAR are.
   *
   *   expr  := input                                    by name; not variadic, not META
   *          | attr | number                            the same for all elements
   *          | Primitive "(" expr {"," expr} [";" param {"," param}] ")"
   *          | attr "?" expr ":" expr                   by a static bool, choice or whole number: whether it is not 0
   *   param := attr | number                            attributes of kinds BOOL, INT, FLOAT, CHOICE, NUMBER
   *
   *   "Add(x, y)"  "Clamp(x; min, max)"  "approximate ? GeluTanh(x) : Gelu(x)"  "Select(mask, value, x)"
   *
   * Inputs of which only bool is taken, comparisons and predicates are truth values. The other inputs that are there have
   * one dtype, the call's; bool where there is none. A primitive computes in float (float32 and 16-bit floats), double,
   * int64 or int32 (the smaller integers and bool), and its result is converted to the call's dtype at once, as that of an
   * operator is: an expression has the bits of the composition of the operators. A primitive of truth values alone computes
   * in bool; beside other operands a truth value is 0 or 1. Numbers, and a Lua number in place of an input, are in the type
   * of the arithmetic, unrounded, but for those that Select moves. The result is converted to the output's dtype. Integer
   * division by zero and negative powers of integers fail the call. */
  const char *scalar;
} pg_op_info;

typedef struct pg_ops {
  uint32_t size;
  uint32_t count;
  const pg_op_info *const *ops;
} pg_ops;

/* ---- pg.device/0: what a device is ----------------------------------------------------------------------------- */

#define PG_IFACE_DEVICE "pg.device/0"

#define PG_MEMORY_DEVICE 0u
#define PG_MEMORY_PINNED 1u /* host memory the device copies from and to without staging; the handle is the address */

#define PG_DEVICE_HOST_VISIBLE 1u /* buffer handles are addresses that the host may use */
#define PG_DEVICE_SYNCHRONOUS 2u  /* every call has happened when it returns; streams and events are formalities */
#define PG_DEVICE_ACCELERATOR 4u  /* is chosen where a graph's inputs lie on it and on another that is none, and listed
                                     among the gpus. It is *found* as "gpu:n" when `aliases` says "gpu". */

typedef struct pg_device_properties {
  uint32_t size, flags; /* PG_DEVICE_* */
  char name[128];       /* "AMD EPYC (AVX2)" */
  uint64_t memory_total, memory_free; /* bytes; 0: unknown */
  uint32_t stream_count; /* streams worth having; at least 1. A hint: the host makes one when it is first asked for */
  uint32_t alignment;    /* of allocations, in bytes: a power of two, at least 16. Tensors begin at multiples of it */
  uint32_t compute_units, reserved;
} pg_device_properties;

/* `device` counts from 0 within the plugin. Buffers, streams and events are handles that the plugin makes; 0 is none.
 *
 * count is asked once, when the plugin loads; properties then, and again for the free memory of the moment (the host
 * sets out->size; write no more). alloc answers PG_E_OUT_OF_MEMORY when there is too little: the host then frees what
 * it caches and asks again; any other code is final. The host asks for few, large buffers and places tensors in them by
 * offset. Pinned memory is asked for on asynchronous devices, and by kernels with dynamic outputs on all.
 *
 * `sequence` numbers pieces of work: rising within a device, 0 on synchronous ones. A call that fails at once returns a
 * code. What fails later is reported by stream_sync, and by event_sync of an event recorded behind it, on its stream or
 * on one that waited for such an event: the code, and in error->native the failed sequence, or 0 where it is not known
 * (never the vendor's number: the host would take it for a sequence). Later work of a failed stream may be skipped.
 * stream_sync reports a failure once; the stream is then as usable as before, but for PG_ERROR_DEVICE_LOST.
 *
 * Events: one that was never recorded has passed; recording again replaces. A wait is for the recording at the time of
 * the call: the host may record the event again, on any stream, before the waiting stream has got there. A stream may be
 * made to wait for an event of another device of the same plugin, as before and after a copy between the two: event_wait's
 * `device` is the stream's. On a synchronous device it uses no events and one stream, and calls no stream_sync; where the
 * device is host-visible too, it copies bytes itself and calls neither upload nor download. */
typedef struct pg_device {
  uint32_t size;
  uint32_t reserved;
  const char *type;    /* "cpu": devices are "cpu:0", ...; lower case, digits and '_' */
  const char *aliases; /* further names for its devices, separated by spaces: "gpu", or "" */
  /* Required. */
  int32_t (*count)(void *self, uint32_t *count, pg_error *error);                                  /* [any] 0 with a reason in error->message and PG_OK: none here */
  int32_t (*properties)(void *self, uint32_t device, pg_device_properties *out, pg_error *error);  /* [any] */
  int32_t (*alloc)(void *self, uint32_t device, uint32_t kind, uint64_t bytes, uint64_t *buffer, pg_error *error); /* [any] bytes > 0 */
  int32_t (*free)(void *self, uint32_t device, uint32_t kind, uint64_t buffer, pg_error *error);   /* [any] no work may be pending on it */
  int32_t (*stream_create)(void *self, uint32_t device, uint64_t *stream, pg_error *error);        /* [any] */
  int32_t (*stream_destroy)(void *self, uint32_t device, uint64_t stream, pg_error *error);        /* [any] */
  int32_t (*stream_sync)(void *self, uint32_t device, uint64_t stream, pg_error *error);           /* [any] reports what failed on it since; error->native is the failed `sequence` */
  int32_t (*event_create)(void *self, uint32_t device, uint64_t *event, pg_error *error);          /* [any] */
  int32_t (*event_destroy)(void *self, uint32_t device, uint64_t event, pg_error *error);          /* [any] */
  int32_t (*event_record)(void *self, uint32_t device, uint64_t event, uint64_t stream, pg_error *error); /* [stream] */
  int32_t (*event_wait)(void *self, uint32_t device, uint64_t event, uint64_t stream, pg_error *error);   /* [stream] makes the stream wait; poison passes on */
  int32_t (*event_query)(void *self, uint32_t device, uint64_t event, pg_error *error);            /* [any] PG_OK: passed; PG_E_BUSY: not yet */
  int32_t (*event_sync)(void *self, uint32_t device, uint64_t event, pg_error *error);             /* [any] */
  /* Host memory stays valid until the stream has passed the copy: the host stages pageable memory itself, and hands an
   * asynchronous device pinned memory only. 0 bytes: nothing. */
  int32_t (*upload)(void *self, uint32_t device, uint64_t buffer, uint64_t offset, const void *source, uint64_t bytes, uint64_t stream, uint64_t sequence, pg_error *error);  /* [stream] */
  int32_t (*download)(void *self, uint32_t device, void *target, uint64_t buffer, uint64_t offset, uint64_t bytes, uint64_t stream, uint64_t sequence, pg_error *error);      /* [stream] */
  /* Strided copy within the device, converting the dtype: any pair of dtypes, any strides, source stride 0 included,
   * same shape, empty included. float to int truncates towards zero, what does not fit gives some number and no error;
   * to bool: not equal to zero. */
  int32_t (*copy)(void *self, uint32_t device, const pg_tensor *target, const pg_tensor *source, uint64_t stream, uint64_t sequence, pg_error *error); /* [stream] */
  /* Sets every element to `value` converted to the dtype, as copy would convert a 0-dim tensor of its kind: an integer
   * stays whole in int64, a complex target takes both parts, a real one the real part. */
  int32_t (*fill)(void *self, uint32_t device, const pg_tensor *target, const pg_number *value, uint64_t stream, uint64_t sequence, pg_error *error); /* [stream] */
  /* Optional. Without peer, or once it has answered PG_E_UNIMPLEMENTED, the host copies through its own memory. It does
   * not ask for event_elapsed yet, and for native only on behalf of other plugins (pg_host.device_native), so a device
   * that wants to be served by kernels of others answers it: what its handles stand for, in its vendor's terms. */
  int32_t (*peer)(void *self, uint32_t target_device, uint64_t target, uint64_t target_offset, uint32_t source_device, uint64_t source, uint64_t source_offset, uint64_t bytes, uint64_t stream, uint64_t sequence, pg_error *error); /* [stream] dense bytes between two devices of this plugin, which may be one, on the target's stream */
  int32_t (*event_elapsed)(void *self, uint32_t device, uint64_t start, uint64_t stop, double *seconds, pg_error *error); /* [any] both passed */
  int32_t (*native)(void *self, uint32_t device, const char *what, uint64_t handle, uint64_t *native, pg_error *error);   /* [any] what: "stream", "buffer" (the address that offsets are added to); PG_E_NOT_SUPPORTED for others */
  /* Optional since minor 1, all four or none: what a stream is given between capture_begin and capture_end is recorded
   * as a plan instead of run, with the buffers, attributes and workspaces of these very calls, which the host keeps as
   * they are for the plan's life. In between, the stream takes launches, copy and fill; whatever else is asked of it,
   * and a kernel that cannot be captured (it allocates, synchronises, or reads host memory), fails with
   * PG_E_FAILED_PRECONDITION or PG_E_NOT_SUPPORTED. capture_end ends the capture even when it fails, and the stream is
   * then as usable as before. Not asked for by this host yet. */
  int32_t (*capture_begin)(void *self, uint32_t device, uint64_t stream, pg_error *error);                /* [stream] */
  int32_t (*capture_end)(void *self, uint32_t device, uint64_t stream, uint64_t *plan, pg_error *error);  /* [stream] *plan is 0 when it fails */
  int32_t (*plan_launch)(void *self, uint32_t device, uint64_t plan, uint64_t stream, uint64_t sequence, pg_error *error); /* [stream] one after the other for a plan, on any stream of its device */
  int32_t (*plan_destroy)(void *self, uint32_t device, uint64_t plan, pg_error *error);                   /* [any] no launch of it may be pending */
} pg_device;

/* ---- pg.kernels/0: what computes operators on a device --------------------------------------------------------- */

#define PG_IFACE_KERNELS "pg.kernels/0"

/* What a kernel can take, or cannot keep, beyond what every kernel does: the host asks for no more than is flagged. What
 * is prepared serves exactly the shapes and strides that it was prepared with. */
#define PG_KERNEL_VARIES 1u /* its results depend on the order in which threads get there (atomic sums): never asked while
                               pg_host.deterministic says 1 */
#define PG_KERNEL_SCALAR 2u /* since minor 8, with "*" for `op`: of any operator with a scalar expression. Asked behind the
                               kernels that name the operator; pg_call.op tells which it is */
/* Since minor 9: outputs may lie densely in any order of axes (channels-last, a transposed matrix), and the strides of
 * pg_call.outputs say in which. Without the flag they are row-major.
 *
 * Of an elementwise operator (PG_OP_ELEMENTWISE) the order is that of the inputs: of two axes the one with the larger
 * stride in the first input that tells them apart (which neither is broadcast along, and both have elements) is the outer
 * one. Of other operators, outputs of the rank of the first input that is dense in another order than row-major take its
 * order; those of other ranks are row-major. Inputs that the host makes dense for such a kernel lie in that order too.
 * A kernel that refuses a call is asked again with row-major outputs, so it may take some orders and not others. */
#define PG_KERNEL_ANY_ORDER 4u

typedef struct pg_kernel_info {
  uint32_t size;
  uint32_t flags;    /* PG_KERNEL_* */
  const char *op;    /* operator's name; "*" with PG_KERNEL_SCALAR */
  uint64_t packs;    /* declared inputs that the kernel may want in a private layout; pg_prepared.pack_bytes decides */
  /* Since minor 3. Declared hidden outputs, by bit, that the kernel can leave out; bits of visible ones mean nothing.
   * Where nobody will read the hidden outputs of a call, the host leaves those out all together: their entries in
   * pg_call.outputs and pg_launch.outputs are NULL and their addresses have buffer 0, as absent inputs', while
   * output_count and the positions stay. supports must accept a call without them if it accepts the whole one; what was
   * prepared for one of the two serves that one alone; and the other outputs hold the same in both. */
  uint64_t spares;
} pg_kernel_info;

/* A call without its data: what supports and prepare see. Tensors are flat, absent ones NULL. Outputs are dense, and
 * row-major where PG_KERNEL_ANY_ORDER is not set, but for one that is written in place. Dimensions are plain numbers
 * here. */
typedef struct pg_call {
  uint32_t size;
  uint32_t device;
  const struct pg_op_info *op;
  uint32_t input_count, output_count;
  const pg_tensor *const *inputs;
  const uint32_t *groups;
  const pg_tensor *const *outputs; /* hidden ones last; NULL where left out, see pg_kernel_info.spares */
  const void *attrs;               /* the static part is meaningful */
} pg_call;

/* prepare writes what the call needs; it is zeroed before, `size` is set. */
typedef struct pg_prepared {
  uint32_t size;
  uint32_t reserved;
  void *kernel;         /* the plugin's own; given to launch, and to release when the host drops it */
  uint64_t workspace;   /* bytes of scratch memory that launch wants: aligned like tensors, contents undefined */
  uint64_t pack_bytes[8]; /* by declared input: size of its private layout, 0: takes it as it is. An input's packed
                             form is made once per (storage, version) and reused; see pack. */
} pg_prepared;

typedef struct pg_address {
  uint64_t buffer, offset; /* offset in bytes, of element 0 */
} pg_address;

typedef struct pg_launch {
  uint32_t size;
  uint32_t device;
  uint64_t stream, sequence;
  uint32_t input_count, output_count;
  const pg_tensor *const *inputs; /* descriptions, as at prepare; buffer 0 */
  const pg_tensor *const *outputs;
  const uint32_t *groups;
  const pg_address *input;  /* where they are; buffer 0 where absent or empty (empty calls are launched too) */
  const pg_address *output; /* likewise; buffer 0 where left out or empty */
  const pg_address *packed; /* by declared input; buffer 0: not packed, use `input`. NULL: none is */
  const void *attrs;        /* static and runtime attributes of this very call */
  pg_address workspace;     /* the kernel's until the stream has passed this launch; buffer 0: asked for none */
  int64_t *extents;         /* NULL without dynamic outputs; else pinned memory for the extents of all outputs, rank
                               numbers each, in order. Those of dynamic ones are read after the stream has been
                               synchronised */
} pg_launch;

/* The host asks the kernels for an operator and device type in the order in which they were registered, and takes the
 * first that supports the call. One that refuses is asked again with strided inputs made dense, where there are any; if
 * all refuse, the operator is decomposed, or the call fails with every `why`.
 *
 * A prepared kernel serves all threads and streams: launch may run at once on several, and must not change it without a
 * lock. release may come while launches are still queued on a stream: what they use on the device is workspace, not
 * memory of the kernel's own. launch returns what fails at once; what fails later is reported as pg_device says. */
typedef struct pg_kernels {
  uint32_t size;
  uint32_t count;
  const char *device_type; /* the pg_device.type it serves, its own or another plugin's */
  const pg_kernel_info *const *kernels;
  /* Required. `index` is a position in `kernels`. */
  int32_t (*supports)(void *self, uint32_t index, const pg_call *call, pg_error *why); /* [any] PG_OK: a launch will succeed; PG_E_NOT_SUPPORTED and the reason */
  int32_t (*prepare)(void *self, uint32_t index, const pg_call *call, pg_prepared *out, pg_error *error); /* [any] */
  int32_t (*launch)(void *self, uint32_t index, void *kernel, const pg_launch *launch, pg_error *error);  /* [stream] */
  void (*release)(void *self, uint32_t index, void *kernel);                                              /* [any] */
  /* Optional: writes declared input `input` in its private layout to `target`, on launch->stream, before the launch
   * that first uses it. */
  int32_t (*pack)(void *self, uint32_t index, void *kernel, uint32_t input, const pg_launch *launch, pg_address target, pg_error *error); /* [stream] */
} pg_kernels;

/* ---- pg.layer/1: layers, as emitters of operators -------------------------------------------------------------- */

#define PG_IFACE_LAYERS "pg.layer/1"

#define PG_INIT_CONSTANT 0u /* a */
#define PG_INIT_UNIFORM 1u  /* [a, b) */
#define PG_INIT_NORMAL 2u   /* mean a, standard deviation b */

typedef struct pg_param {
  uint32_t size;
  uint32_t buffer;      /* 1: state, not trained (running statistics) */
  uint32_t present;     /* 0: switched off by an attribute (bias=false) */
  uint32_t dtype;       /* 0: the default float dtype */
  uint32_t rank, init;  /* PG_INIT_* */
  double a, b;
  int64_t shape[PG_MAX_RANK];
} pg_param;

typedef struct pg_layer_build {
  uint32_t size;
  uint32_t training;
  pg_builder *builder;
  const void *attrs;
  uint32_t param_count, input_count;
  const pg_value *params; /* by declared position, 0 where not present */
  const pg_value *inputs;
  pg_value *outputs;      /* output_count of the layer: the first must be set, a later one left 0 is not given */
} pg_layer_build;

typedef struct pg_layer_info {
  uint32_t size;
  uint32_t input_count, output_count, param_count, attr_count, attr_size;
  const char *name, *doc;              /* "Linear" */
  const char *const *param_names;      /* "weight", "bias" */
  const pg_attr_info *const *attrs;    /* in the order of positional arguments */
  const void *defaults;
  uint32_t inferred;  /* 1 + the attribute that names the input's size, which the first call may fill in; 0: none. It
                         is left out when the constructor got one positional number too few. */
  uint32_t reserved;
  void *user;
  /* Checks attributes, fills in the inferred one from the first input (NULL when it is given), describes parameters.
   * `params` are param_count structs, zeroed, `size` set. [any] */
  int32_t (*parameters)(void *user, void *attrs, const pg_tensor *input, pg_param *const *params, pg_error *error);
  /* What it emits follows from the attributes, `training` and the descriptions of what it is given: a compiled function
   * repeats it without asking where these are the same. [any] */
  int32_t (*build)(void *user, const pg_layer_build *call, pg_error *error);
} pg_layer_info;

typedef struct pg_layers {
  uint32_t size;
  uint32_t count;
  const pg_layer_info *const *layers;
} pg_layers;

/* ---- pg.optimizer/1: optimizers, as emitters of updates -------------------------------------------------------- */

#define PG_IFACE_OPTIMIZERS "pg.optimizer/1"

typedef struct pg_optimizer_step {
  uint32_t size;
  uint32_t reserved;
  pg_builder *builder;
  const void *attrs;  /* hyperparameters as they are now (schedules change them) */
  uint64_t step;      /* this one's number, from 1 */
  uint32_t count;     /* parameters */
  uint32_t slot_count;
  const pg_value *params, *gradients; /* count each; no gradient is 0 */
  const pg_value *state;              /* slot-major: state[slot * count + i]; 0 where the slot is not in use */
} pg_optimizer_step;

typedef struct pg_optimizer_info {
  uint32_t size;
  uint32_t attr_count, attr_size, slot_count;
  const char *name, *doc;          /* "Adam" */
  const pg_attr_info *const *attrs; /* the front end takes parameters first, these by name */
  const void *defaults;
  const char *const *slots;        /* "exp_avg": state like its parameter (shape, dtype), zero at first; at most 64 */
  void *user;
  int32_t (*slots_used)(void *user, const void *attrs, uint64_t *mask, pg_error *error);          /* [any] bit i: slot i is in use; also checks attributes */
  int32_t (*build_update)(void *user, const pg_optimizer_step *call, pg_error *error); /* [any] updates params and state in place; gradients are not recorded */
} pg_optimizer_info;

typedef struct pg_optimizers {
  uint32_t size;
  uint32_t count;
  const pg_optimizer_info *const *optimizers;
} pg_optimizers;

/* ---- pg.format/1: files of tensors ----------------------------------------------------------------------------- */

#define PG_IFACE_FORMATS "pg.format/1"

/* The host's side of reading. `tensor` returns memory for a dense, row-major tensor, which the reader fills before its
 * next call; NULL with error->code (0 before the call) not PG_OK: stop; NULL and PG_OK: the tensor is empty. `note`
 * receives metadata, copied. Both may be called during read only, on its thread. */
typedef struct pg_sink {
  uint32_t size;
  uint32_t reserved;
  void *context;
  void *(*tensor)(void *context, const char *name, uint32_t dtype, uint32_t rank, const int64_t *shape, pg_error *error);
  int32_t (*note)(void *context, const char *key, const char *value, pg_error *error);
} pg_sink;

typedef struct pg_named_tensor {
  uint32_t size;
  uint32_t reserved;
  const char *name;
  const pg_tensor *tensor; /* dense, row-major, in host memory: buffer is its address */
} pg_named_tensor;

typedef struct pg_format_info {
  uint32_t size;
  uint32_t reserved;
  const char *name, *doc;
  const char *extensions; /* ".safetensors .st"; the longest that fits the path wins. Names and extensions are one
                             plugin's each: who comes second does not load */
  void *user;
  const char *options; /* what `options` of read may say, as "key=default key=default"; "" for none */
  /* options: "key=value" lines, or "". A damaged file is PG_E_DATA_LOSS with the offset and what was wrong. NULL: write
     only. [any] */
  int32_t (*read)(void *user, const char *path, const char *options, const pg_sink *sink, pg_error *error);
  /* Writes to `path` and makes it durable (fsync); the host gives a temporary name and renames. NULL: read only. [any] */
  int32_t (*write)(void *user, const char *path, uint32_t count, const pg_named_tensor *const *items, uint32_t note_count,
                   const char *const *notes, pg_error *error); /* notes: key, value, key, value, ... */
} pg_format_info;

typedef struct pg_formats {
  uint32_t size;
  uint32_t count;
  const pg_format_info *const *formats;
} pg_formats;

/* ---- pg.collectives/0: tensors between processes ---------------------------------------------------------------- */

#define PG_IFACE_COLLECTIVES "pg.collectives/0" /* since minor 7 */

/* What a call does. `size` is the number of ranks in the group, `rank` the caller's. */
#define PG_COLLECTIVE_BARRIER 1u        /* nobody is through before all have come */
#define PG_COLLECTIVE_ALL_REDUCE 2u     /* output: the reduction of all inputs; the same bits on every rank */
#define PG_COLLECTIVE_REDUCE 3u         /* the same at `peer`; other ranks' output is not written */
#define PG_COLLECTIVE_BROADCAST 4u      /* output: the input of `peer`; other ranks' input is not read */
#define PG_COLLECTIVE_ALL_GATHER 5u     /* output: size * count elements, all inputs in the order of ranks */
#define PG_COLLECTIVE_REDUCE_SCATTER 6u /* input: size * count elements; output: block `rank` of their reduction */
#define PG_COLLECTIVE_ALL_TO_ALL 7u     /* size * count elements each; block k of the input goes to rank k */
#define PG_COLLECTIVE_SEND 8u           /* the input, to `peer` */
#define PG_COLLECTIVE_RECEIVE 9u        /* the output, from `peer`; another number of elements than it sends is an error */

#define PG_REDUCE_SUM 0u
#define PG_REDUCE_MEAN 1u /* of floating dtypes */
#define PG_REDUCE_MAX 2u  /* NaN where any is */
#define PG_REDUCE_MIN 3u

/* One call of one rank. All ranks of a group make the same calls in the same order, but for sends and receives, which
 * pair up by (sender, receiver, tag) in their order. Elements lie densely. Input and output are one address or do not
 * overlap; they are the engine's from submit until the call is over. */
typedef struct pg_collective {
  uint32_t size;
  uint32_t kind;      /* PG_COLLECTIVE_* */
  uint32_t reduction; /* PG_REDUCE_* of the kinds that reduce */
  uint32_t dtype;     /* reductions take the integers and floats of 16 to 64 bits and int8, uint8; all else any dtype */
  int32_t peer;       /* rank in the group */
  int32_t tag;        /* of send and receive: 0 to 32767 */
  uint64_t count;     /* elements, as the kind says; 0 is a call like any other */
  pg_address input, output;
  uint64_t stream, sequence; /* of an engine with a device_type: as in pg_launch */
  double deadline;    /* seconds from submit by which it must be over; 0: none */
  const char *what;   /* for messages, copied: "all_reduce" */
} pg_collective;

typedef struct pg_world {
  uint32_t size;
  uint32_t rank, count;             /* of this process, from 0; processes in all. 0 and 1 where nothing was launched */
  uint32_t local_rank, local_count; /* among those of the same machine */
  uint32_t reserved;
} pg_world;

typedef struct pg_group_info {
  uint32_t size;
  uint32_t count;
  const int32_t *ranks; /* of the world, by rank in the group; rising, and this process's own among them */
  uint32_t device;      /* of an engine with a device_type: where this rank's tensors are */
  uint32_t reserved;
} pg_group_info;

#define PG_PEER_ALIVE 0u   /* or not known to be otherwise */
#define PG_PEER_STOPPED 1u /* does not run, but may again */
#define PG_PEER_LOST 2u    /* has ended, or has left the group */

/* An engine that carries tensors: MPI, NCCL. It serves calls on host memory (device_type ""; addresses are plain) or on
 * one type of device, on whose streams it then queues them. The host brings tensors of other devices to host memory and
 * back.
 *
 * A call that fails breaks its group: what is still pending fails, and so does every later call, until it is destroyed.
 * Errors name the ranks they are about. A call whose deadline passes is PG_E_DEADLINE_EXCEEDED, with the ranks that have
 * not come to it as far as they are known; a peer that has ended is PG_E_FAILED_PRECONDITION, at once where that can be
 * seen.
 *
 * Functions are called by one thread at a time, unless the tag says [any]. */
typedef struct pg_collectives {
  uint32_t size;
  uint32_t reserved;
  const char *name;        /* "mpi" */
  const char *device_type; /* "": host memory */
  /* Required. world joins the other processes when it is first called. group_create is called by all ranks of the group,
   * with the same list, and returns when all have; there is a deadline of its own. */
  int32_t (*world)(void *self, pg_world *out, pg_error *error);
  int32_t (*group_create)(void *self, const pg_group_info *info, double deadline, uint64_t *group, pg_error *error);
  int32_t (*group_destroy)(void *self, uint64_t group, pg_error *error); /* nothing is pending on it */
  /* Begins calls, all together: sends and receives among them may meet in any order, other kinds in that of the array.
   * *request stands for the whole of them, and is over once wait has answered anything but PG_E_BUSY. */
  int32_t (*submit)(void *self, uint64_t group, uint32_t count, const pg_collective *const *calls, uint64_t *request,
                    pg_error *error);
  /* Waits for at most `seconds` (0: looks only). PG_OK: done, on a stream queued; PG_E_BUSY: not yet (not an error). */
  int32_t (*wait)(void *self, uint64_t group, uint64_t request, double seconds, pg_error *error);
  /* Optional. abort: this process will make no further calls, because of `reason`: peers that wait for it fail at once
   * where they can be told. Group 0: all groups. */
  int32_t (*abort)(void *self, uint64_t group, const char *reason, pg_error *error);
  int32_t (*peers)(void *self, uint64_t group, uint32_t count, uint32_t *states, pg_error *error); /* PG_PEER_* by rank */
} pg_collectives;

#ifdef __cplusplus
}
#endif

#endif
