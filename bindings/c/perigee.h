/* SPDX-License-Identifier: Apache-2.0
 *
 * perigee.h: the flat C interface of libperigee, for front ends (the Lua layer is one).
 *
 * CAVEATS, first:
 *  - Nothing throws. A function that can fail returns PG_OK (0) or a PG_E_* code of perigee/plugin.h; pgc_error() then
 *    describes the failure, until the next failing call of the same thread.
 *  - PG_E_RETRY: memory is short, and nothing has happened. Release what you can, call pgc_again(), and reissue once.
 *  - pgc_tensor* is a counted reference. A function that hands one out gives you a reference: pgc_release it.
 *    Functions that take one borrow it.
 *  - Ambient state (gradient mode, device scope, recording graph, stream) belongs to the calling thread.
 *  - All functions may be called from any thread unless they say otherwise. None calls back into the front end but
 *    those that take a function pointer, during the call.
 *  - Numbers of axes and positions count from 0 here; front ends with another base translate.
 *  - A pointer may be NULL where that is said, and that of a tensor that is released or retained; what else the compiler
 *    cannot see (a tensor that is gone, too small an array) is not checked.
 *
 * The square of a number (CMake: target_link_libraries(square Perigee::perigee)):
 *
 *   float x = 3, y = 0;
 *   uint32_t mul;
 *   pgc_tensor *a = NULL, *b = NULL;
 *   if (pgc_find_op("mul", &mul) || pgc_from_host(PG_F32, 0, NULL, &x, -1, &a) || pgc_call2(mul, a, a, NULL, &b) ||
 *       pgc_to_host(b, &y, sizeof y))
 *     fprintf(stderr, "%s: %s\n", pgc_error()->where, pgc_error()->message);
 *   pgc_release(a);
 *   pgc_release(b);
 */
#ifndef PERIGEE_H
#define PERIGEE_H

#include "perigee/data.h"
#include "perigee/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PGC_API PG_EXPORT

typedef struct pgc_tensor pgc_tensor;
typedef struct pgc_graph pgc_graph;
typedef struct pgc_session pgc_session;
typedef struct pgc_pass pgc_pass;

/* ---- process ---- */
PGC_API const char *pgc_version(void);
/* Adds a folder of plugins behind PERIGEE_PLUGIN_PATH. Reads manifests only; plugins load when first needed. Where no
 * folder is added it is the installation's: perigee/plugins beside libperigee.so. */
PGC_API int32_t pgc_add_plugin_path(const char *folder);
PGC_API int32_t pgc_load_plugin(const char *path); /* a relative one is relative to the current directory */
/* JSON: [{"name","kinds","version","path","state","reason"}]. state: found, loaded, available, unavailable. `load` 1
 * loads each first, and adds "unknown_ops" where a plugin has kernels for operators that there are not. The string lives
 * until the thread's next call that returns JSON. */
PGC_API const char *pgc_plugins_json(int32_t load);
/* JSON: {"devices": [{"name","type","index","device","description","memory_total","memory_free","accelerator"}],
 * "unavailable": [{"type","reason"}]}; "device" is the number used everywhere below. */
PGC_API const char *pgc_devices_json(void);
/* Waits for all devices, destroys everything in order, closes plugins. Also runs at exit. Later calls fail. */
PGC_API int32_t pgc_shutdown(void);
PGC_API const pg_error *pgc_error(void);
PGC_API const char *pgc_error_message(void); /* all of it, where pgc_error()->message has no room */
/* The next call may take its last resort instead of answering PG_E_RETRY. */
PGC_API void pgc_again(void);
/* The calling thread's next call of an operator, or for an element, answers PG_E_RETRY before anything has happened: so a
 * front end that compiles its loops comes to look at its signals. A signal handler may call it. */
PGC_API void pgc_interrupt(void);
PGC_API int32_t pgc_set_threads(int32_t count); /* that an operator may use on the processor, in the whole process */
PGC_API int32_t pgc_threads(void);
/* 1: no result depends on the number of threads, devices or workers, in the whole process; operators that cannot keep
 * that answer PG_E_NOT_SUPPORTED. 0, as it begins: only the same number of each gives the same bits. The old value. */
PGC_API int32_t pgc_set_deterministic(int32_t on);
PGC_API int32_t pgc_deterministic(void);

/* ---- ambient state of this thread: each returns the old value ---- */
PGC_API int32_t pgc_set_grad_enabled(int32_t on);
PGC_API int32_t pgc_grad_enabled(void);
PGC_API int32_t pgc_set_device(int32_t device);       /* -1: none in force */
PGC_API int32_t pgc_device(void);
PGC_API int32_t pgc_set_default_device(int32_t device); /* of eager code that no scope decides about; -1: the processor */
PGC_API int32_t pgc_default_device(void);
/* 1: no scope's device is in force, none is the default, and there was no pgc_interrupt since the last such call. */
PGC_API int32_t pgc_undisturbed(void);
PGC_API pgc_graph *pgc_set_graph(pgc_graph *graph);   /* NULL: eager */
PGC_API int32_t pgc_set_stream(int32_t index);        /* of the current device, from 0 */
PGC_API int32_t pgc_set_detect_anomaly(int32_t on);   /* an eager operator that makes NaN or Inf of none fails */
/* Every operator that is called or recorded becomes a line on standard error, "add: (Add): /gpu:0": its name, kind and
 * device. A session's runs say nothing: pgc_session_placement does. */
PGC_API int32_t pgc_set_log_placement(int32_t on);
/* Where the operators that follow are called from ("net.lua:12 in Net.0 (Linear)"; NULL: nowhere said): what fails
 * asynchronously then names it. Each text is kept until the process ends. */
PGC_API int32_t pgc_set_origin(const char *text);
PGC_API void pgc_put_origin(const char *interned); /* the same for a text of pgc_interned, which is not looked up */
/* What the names of what is recorded into a graph begin with: "encoder" gives "encoder/add". NULL: nothing. Each text is
 * kept until the process ends. */
PGC_API int32_t pgc_set_name_scope(const char *text);
/* The text, kept until the process ends; equal texts give one pointer. NULL: out of memory. */
PGC_API const char *pgc_interned(const char *text);
PGC_API uint32_t pgc_set_default_dtype(uint32_t dtype);
PGC_API uint32_t pgc_default_dtype(void);
/* Mixed precision. A scope begins as the one in force (casts of parameters are kept by the outermost one, until it is
 * released) with `dtype` (PG_BF16, PG_F16; 0: off) on devices of a type ("cpu"; "gpu": accelerators; NULL: all). What is
 * set is borrowed: release it once no thread has it. */
typedef struct pgc_autocast pgc_autocast;
PGC_API int32_t pgc_autocast_create(const char *device_type, uint32_t dtype, pgc_autocast **output);
PGC_API void pgc_autocast_release(pgc_autocast *scope);
PGC_API pgc_autocast *pgc_set_autocast(pgc_autocast *scope); /* NULL: none */
PGC_API pgc_autocast *pgc_autocast_scope(void);
PGC_API uint32_t pgc_autocast_dtype(int32_t device);         /* 0: off */
/* From now on operators of this thread that write do so only where `skip`, one bool, is false; NULL: always. For the
 * steps of optimizers: kernels read the flag on the device, those that cannot make the host wait for it once. */
PGC_API int32_t pgc_set_condition(pgc_tensor *skip);

/* ---- what is done, and when ---- */
enum {
  PGC_PROFILE_OP = 1,   /* a call of an operator: all that it takes on the host */
  PGC_PROFILE_KERNEL,   /* its kernel, on the device; on a synchronous one the thread that called it computes */
  PGC_PROFILE_LAUNCH,   /* submission of a kernel or of a copy to an asynchronous device */
  PGC_PROFILE_BACKWARD, /* an operator's gradient rule, with the operators that it calls; or the whole pass */
  PGC_PROFILE_UPLOAD,   /* bytes from the host to a device */
  PGC_PROFILE_DOWNLOAD, /* and back; on an asynchronous device with what was waited for */
  PGC_PROFILE_PEER,     /* bytes from device to device */
  PGC_PROFILE_WAIT,     /* for a stream */
  PGC_PROFILE_ALLOC,    /* of memory: `sequence` is the block's number */
  PGC_PROFILE_FREE,
  PGC_PROFILE_RANGE,    /* named by pgc_profile_end */
  PGC_PROFILE_STAGE,    /* of a pipeline, an element or a batch of it */
  PGC_PROFILE_OPTIMIZER, /* a step of one */
  PGC_PROFILE_PLAN       /* a run of a graph or of a compiled function, whose kernels it launches */
};
#define PGC_PROFILE_LARGEST (UINT64_C(1) << 26)
#define PGC_PROFILE_DEVICE UINT32_MAX
typedef struct pgc_profile_record {
  int64_t begin, end; /* nanoseconds of CLOCK_MONOTONIC */
  const char *name;   /* of the operator, the copy, the range; of memory the operator that it was taken for */
  const char *shapes; /* "float32 [2, 3], [3] -> [2, 3]"; NULL: not told */
  const char *origin, *layer; /* pgc_set_origin, and the layer of a plugin; NULL: not told */
  uint64_t bytes;             /* of operators and kernels what they read and write at least; of a stage the number of
                               * its elements, 0: one */
  uint64_t sequence;          /* of work on an asynchronous device: a launch and what it began have the same; 0: none */
  uint32_t kind;              /* PGC_PROFILE_... */
  int32_t device;             /* -1: none */
  uint32_t thread;            /* 0: that of pgc_profile_start; PGC_PROFILE_DEVICE: the device itself; else a helper's */
  uint32_t stream;            /* of what a device did */
} pgc_profile_record;
/* Notes what the calling thread does until pgc_profile_stop, the last `capacity` records, 80 bytes each; what threads
 * of pipelines do meanwhile, a quarter of that each; and what devices say they did, where their plugins tell
 * (perigee/profiler.h). One profile of a process at a time. */
PGC_API int32_t pgc_profile_start(uint64_t capacity);
/* The records by their ends, the oldest first, and how many had no room. All devices must be idle. They are there until
 * the next pgc_profile_start or _drop. */
PGC_API int32_t pgc_profile_stop(const pgc_profile_record **records, uint64_t *count, uint64_t *lost);
PGC_API void pgc_profile_drop(void); /* ends a profile, and forgets the records */
PGC_API const char *pgc_profile_thread(uint32_t thread); /* a name of one in the records; NULL: there is none */
PGC_API int64_t pgc_profile_time(void); /* now, as the records count */
/* What lasts from begin (0 without a profile, then end does nothing), of kind RANGE or STAGE, and its name. */
PGC_API int64_t pgc_profile_begin(void);
PGC_API int32_t pgc_profile_end(int64_t begin, uint32_t kind, const char *name);
/* Where the last operator of this thread was called from: the line of all that was noted since it began, a text of
 * pgc_interned. */
PGC_API void pgc_profile_place(const char *interned);
/* The same for less, for front ends whose compiler specialises code by what calls it: such code calls pgc_profile_site
 * from one address for one place, and is answered by that address. pgc_profile_sites forgets all and begins (0: ends)
 * that for this thread; it must be called by the front end's interpreter, as its calls are told from those of compiled
 * code by where they return to. */
PGC_API int32_t pgc_profile_sites(int32_t on);
/* There is new machine code, and what was there is no longer. `fixed`: all that it asks for from one address lies at one
 * place of the script; else its addresses are never known. */
PGC_API int32_t pgc_profile_code(const void *begin, uint64_t size, int32_t fixed);
/* 1: the last operator was called from the known place of this call in layer number `layer`, and has it now. 0: that is
 * not known, and the next pgc_profile_place of this thread tells it. */
PGC_API int32_t pgc_profile_site(int32_t layer);
/* Before pgc_profile_place: what it tells holds once only. */
PGC_API void pgc_profile_unsure(void);
/* While the interpreter writes down what is to be compiled: the place of its next pgc_profile_site, which then answers 1,
 * so that compiled code takes that way; NULL: it is not known, and is answered as ever. */
PGC_API void pgc_profile_offer(const char *interned);

/* ---- devices and memory ---- */
PGC_API int32_t pgc_find_device(const char *name, int32_t *device); /* "cpu", "sim:1", "/gpu:0", "/device:GPU:1" */
/* The same for scopes and for what is told to be on a device: while a graph is recorded the name may be one that is not
 * here, which stays a name until a session is made; the number of such a one is good for nothing else. */
PGC_API int32_t pgc_place_device(const char *name, int32_t *device);
/* The first accelerator that stands for any ("gpu:0"); -1: there is none. */
PGC_API int32_t pgc_first_accelerator(int32_t *device);
PGC_API const char *pgc_device_name(int32_t device);                /* "cpu:0"; NULL: no such device */
/* From now on only these are shown and found, in this order, besides the processors, which always are: "gpu:0" is the
 * first. NULL: all. A device that has given memory cannot be hidden. */
PGC_API int32_t pgc_set_visible_devices(const char *const *names, uint32_t count);
PGC_API int32_t pgc_synchronize(int32_t device);                    /* -1: all; raises what failed asynchronously */
typedef struct pgc_memory_stats {
  uint64_t live, reserved, peak, limit; /* bytes; limit 0: none */
  uint64_t allocations, device_allocations; /* served; asked of the device */
  uint64_t requested; /* of what is live: the bytes that were asked for */
  uint64_t grows;     /* 1: memory is taken as it is needed */
} pgc_memory_stats;
PGC_API int32_t pgc_get_memory_stats(int32_t device, pgc_memory_stats *out);
/* 0: none. What is cached above the limit goes back to the device. */
PGC_API int32_t pgc_set_memory_limit(int32_t device, uint64_t bytes);
/* on 0: all that the device may have (its limit, else what is free) is taken now and nothing more later, and a new limit
 * takes or gives back what nobody uses. */
PGC_API int32_t pgc_set_memory_growth(int32_t device, int32_t on);
/* Several devices that stand for one, each with a limit of its own: the device itself first, then new ones. ids: room
 * for `count` numbers. Asked again, it changes the limits, and adds devices where there are more. */
PGC_API int32_t pgc_split_device(int32_t device, const uint64_t *limits, uint32_t count, int32_t *ids);
/* For tests: from the `after`th allocation from now on, `count` fail as if memory had run out (UINT64_MAX: until this is
 * called again). 0, 0: none. */
PGC_API int32_t pgc_fail_allocations(int32_t device, uint64_t after, uint64_t count);
/* What a device's plugin has to say of a handle, in its vendor's terms (pg_device.native). */
PGC_API int32_t pgc_device_native(int32_t device, const char *what, uint64_t handle, uint64_t *out);
/* What a plugin's tables must do: of a library that is not loaded yet, by its path; of a device, all or a group of them
 * ("memory", "copies", "streams", "threads"; NULL: all); of the sources, transforms and codecs of a plugin, which is loaded,
 * with options as lines "name.option=value". A line a check: group, name, "absent" where it could not be asked, and what is
 * wrong or was missing, separated by tabs; valid until the thread's next call. */
PGC_API int32_t pgc_conform_library(const char *path, const char **lines);
PGC_API int32_t pgc_conform_device(int32_t device, const char *group, const char **lines);
PGC_API int32_t pgc_conform_parts(const char *path, const char *options, const char **lines);
PGC_API int32_t pgc_reset_peak(int32_t device); /* the peak is what is live now */
PGC_API int32_t pgc_empty_cache(int32_t device); /* memory that nobody uses, pinned memory too; -1: of all */
/* Bytes that live tensors hold over all devices. */
PGC_API uint64_t pgc_live_bytes(void);
/* Cheap to ask: what a collecting front end paces itself by. Of the live bytes, those that threads of pipelines have not
   made ahead; on such a thread, all bytes that functions on its worker have taken so far, given back or not. */
PGC_API uint64_t pgc_own_bytes(void);

/* ---- operators ---- */
/* JSON of one operator: name, doc, category, role, inputs, outputs, attributes with kind, offset and default, attr_size,
 * static_size, traits. NULL when there is none of that name. */
PGC_API const char *pgc_op_json(const char *name);
PGC_API const char *pgc_op_names_json(void);
PGC_API int32_t pgc_find_op(const char *name, uint32_t *op);
PGC_API const void *pgc_op_defaults(uint32_t op); /* attr_size bytes */
#define PGC_IN_PLACE 1u /* result goes into the first input, a new reference to which is returned */
/* Runs or records an operator. inputs: flat, NULL where absent; groups: tensors in each declared input, NULL: one each.
 * attrs: its packed struct, NULL: defaults. outputs: room for all visible outputs; variadic ones for all their tensors. */
PGC_API int32_t pgc_call(uint32_t op, pgc_tensor *const *inputs, uint32_t input_count, const uint32_t *groups,
                         const void *attrs, uint32_t flags, pgc_tensor **outputs, uint32_t output_count);
/* The commonest forms: all inputs single, one output. */
PGC_API int32_t pgc_call1(uint32_t op, pgc_tensor *x, const void *attrs, pgc_tensor **output);
PGC_API int32_t pgc_call2(uint32_t op, pgc_tensor *x, pgc_tensor *y, const void *attrs, pgc_tensor **output);

/* ---- tensors ---- */
PGC_API void pgc_retain(pgc_tensor *tensor);
PGC_API void pgc_release(pgc_tensor *tensor);
PGC_API void pgc_release_many(pgc_tensor *const *tensors, uint32_t count);
/* A dense tensor from host memory, which is copied before the call returns. device -1: the current or default one. */
PGC_API int32_t pgc_from_host(uint32_t dtype, uint32_t rank, const int64_t *shape, const void *data, int32_t device,
                              pgc_tensor **output);
/* Copies the elements, row-major, in the tensor's dtype, to host memory; waits for them. bytes must match. */
PGC_API int32_t pgc_to_host(pgc_tensor *tensor, void *target, uint64_t bytes);
/* shape, stride, dtype; buffer is 0. Lives as long as the tensor. A graph tensor's shape may hold symbols. */
PGC_API const pg_tensor *pgc_describe(const pgc_tensor *tensor);
PGC_API int32_t pgc_device_of(const pgc_tensor *tensor);
/* The address of a host-visible tensor's element 0, after its device's work is done; NULL for others, and where that
 * work failed (pgc_error). */
PGC_API void *pgc_data(pgc_tensor *tensor);
PGC_API uint64_t pgc_storage_id(const pgc_tensor *tensor);  /* equal: they share memory */
PGC_API uint64_t pgc_version_of(const pgc_tensor *tensor);  /* raised by every write */
PGC_API int32_t pgc_is_graph_tensor(const pgc_tensor *tensor);
/* A word for the front end: set it to find its own object again. 0 at first. */
PGC_API uint64_t pgc_tag(const pgc_tensor *tensor);
PGC_API void pgc_set_tag(pgc_tensor *tensor, uint64_t tag);
/* A symbolic dimension as text ("batch", "2*batch+1"), or the number. Lives until the thread's next such call. */
PGC_API const char *pgc_dim_name(int64_t dimension);
/* a + b, a * b, a / b (rounded down) and max(a, b) of dimensions, each plain or symbolic. */
PGC_API int32_t pgc_dim_add(int64_t a, int64_t b, int64_t *result);
PGC_API int32_t pgc_dim_mul(int64_t a, int64_t b, int64_t *result);
PGC_API int32_t pgc_dim_div(int64_t a, int64_t b, int64_t *result);
PGC_API int32_t pgc_dim_max(int64_t a, int64_t b, int64_t *result);
/* Makes `target` show `source`'s memory and description: how a lazily made parameter is filled. Same graph or eager. */
PGC_API int32_t pgc_assign(pgc_tensor *target, pgc_tensor *source);

/* ---- gradients ---- */
PGC_API int32_t pgc_requires_grad(const pgc_tensor *tensor);
PGC_API int32_t pgc_set_requires_grad(pgc_tensor *tensor, int32_t on); /* leaves of a floating dtype only */
PGC_API int32_t pgc_is_leaf(const pgc_tensor *tensor);
PGC_API int32_t pgc_grad_of(pgc_tensor *tensor, pgc_tensor **output); /* NULL where there is none yet */
PGC_API int32_t pgc_set_grad(pgc_tensor *tensor, pgc_tensor *gradient); /* NULL clears */
PGC_API void pgc_clear_grads(pgc_tensor *const *tensors, uint32_t count);
PGC_API int32_t pgc_detach(pgc_tensor *tensor, pgc_tensor **output); /* same memory, no history */
/* Adds into the gradients of leaves; PGC_PAUSED: see below. seeds: NULL, or a cotangent per root (NULL entries: ones, for one-element roots). */
PGC_API int32_t pgc_backward(pgc_tensor *const *roots, pgc_tensor *const *seeds, uint32_t root_count, int32_t retain_graph,
                             int32_t create_graph);
/* gradients[i] of the roots with respect to inputs[i]; NULL where unused. */
PGC_API int32_t pgc_gradients(pgc_tensor *const *roots, pgc_tensor *const *seeds, uint32_t root_count,
                              pgc_tensor *const *inputs, uint32_t input_count, int32_t retain_graph, int32_t create_graph,
                              pgc_tensor **gradients);

/* ---- gradients that the front end computes ---- */
/* Hangs `outputs` on a node over `inputs`: `made` receives aliases of them; with PGC_CUSTOM_REHANG, wherever that can
 * be, the very tensors, which let go of the history that they had. PGC_CUSTOM_PURE: the node's gradients depend on
 * nothing but what the pass shows, so that where a compiled function launches a plan it does not stop there. When a
 * backward pass reaches the node, the function that began it returns PGC_PAUSED; pgc_paused() then hands out the pass,
 * once, which either goes on with the node's gradients (and answers like the function that began it) or is abandoned.
 * Passes may be nested. */
#define PGC_PAUSED 100
#define PGC_CUSTOM_REHANG 1u
#define PGC_CUSTOM_PURE 2u
PGC_API int32_t pgc_custom(pgc_tensor *const *inputs, uint32_t input_count, pgc_tensor *const *outputs,
                           uint32_t output_count, uint32_t flags, pgc_tensor **made, uint64_t *number);
/* A backward pass stops with the whole gradient of the tensor, as it is now, before it uses it (a leaf's: before it is
 * added to what the leaf has), at several hooks in their order: pgc_pass_number is the hook's, output 0 of
 * pgc_pass_cotangent the gradient, and the one entry that pgc_pass_go_on takes stands in for it (NULL: it stays). A hook
 * goes when the tensor's history does. */
PGC_API int32_t pgc_hook(pgc_tensor *tensor, uint64_t *number);
PGC_API void pgc_unhook(uint64_t number); /* one that is gone: nothing */
PGC_API int32_t pgc_retain_grad(pgc_tensor *tensor); /* pgc_grad_of answers for a computed tensor too */
/* Numbers of nodes and hooks that no pass will stop at any more: how many were written. */
PGC_API uint32_t pgc_forgotten(uint64_t *numbers, uint32_t room);
/* The leaves that tensors depend on, other than through `except`, as tensors without contents that serve as inputs of
 * pgc_gradients and pgc_custom. *count is how many there are; room for fewer writes none. */
PGC_API int32_t pgc_leaves(pgc_tensor *const *tensors, uint32_t tensor_count, pgc_tensor *const *except,
                           uint32_t except_count, pgc_tensor **leaves, uint32_t room, uint32_t *count);
PGC_API pgc_pass *pgc_paused(void);
PGC_API uint64_t pgc_pass_number(const pgc_pass *pass); /* of the node or the hook */
PGC_API int32_t pgc_pass_needed(pgc_pass *pass, uint32_t input);
PGC_API int32_t pgc_pass_creates_graph(const pgc_pass *pass);
PGC_API int32_t pgc_pass_cotangent(pgc_pass *pass, uint32_t output, pgc_tensor **cotangent); /* NULL: nothing flowed */
/* Whether nothing was written into the memory of `tensor` since it was that input, or with `output` 1 that output, of
 * the node. */
PGC_API int32_t pgc_pass_unchanged(const pgc_pass *pass, const pgc_tensor *tensor, int32_t output, uint32_t index);
/* `saved`, which holds what that output of the node held, as that output: for gradients of gradients. */
PGC_API int32_t pgc_pass_output(pgc_pass *pass, pgc_tensor *saved, uint32_t output, pgc_tensor **linked);
/* gradients: by input, NULL where there is none. results: as in pgc_gradients. The pass is gone whatever is returned,
 * but for PGC_PAUSED. */
PGC_API int32_t pgc_pass_go_on(pgc_pass *pass, pgc_tensor *const *gradients, pgc_tensor **results);
PGC_API void pgc_pass_abandon(pgc_pass *pass);

/* ---- random numbers ---- */
PGC_API int32_t pgc_manual_seed(uint64_t seed);
PGC_API int32_t pgc_rng_state(uint64_t *seed, uint64_t *offset);
PGC_API int32_t pgc_set_rng_state(uint64_t seed, uint64_t offset);

/* ---- layers and optimizers from plugins ---- */
PGC_API const char *pgc_layer_json(const char *name);     /* like pgc_op_json, with parameters */
PGC_API const char *pgc_layer_names_json(void);
PGC_API int32_t pgc_find_layer(const char *name, uint32_t *layer);
/* Fills the inferred attribute (input may be NULL when it is given) and describes each declared parameter. */
PGC_API int32_t pgc_layer_parameters(uint32_t layer, void *attrs, pgc_tensor *input, pg_param *params);
/* `path`: what the memory of its results is said to be for ("Net.blocks.0 (Conv2d)"; pgc_interned), or NULL. */
PGC_API int32_t pgc_layer_call(uint32_t layer, const void *attrs, int32_t training, const char *path,
                               pgc_tensor *const *params, pgc_tensor *const *inputs, pgc_tensor **outputs);
PGC_API const char *pgc_optimizer_json(const char *name); /* with slots */
PGC_API const char *pgc_optimizer_names_json(void);
PGC_API int32_t pgc_find_optimizer(const char *name, uint32_t *optimizer);
PGC_API int32_t pgc_optimizer_slots(uint32_t optimizer, const void *attrs, uint64_t *mask);
/* gradients NULL: each parameter's own. */
PGC_API int32_t pgc_optimizer_step(uint32_t optimizer, const void *attrs, uint64_t step, uint32_t count,
                                   pgc_tensor *const *params, pgc_tensor *const *gradients, pgc_tensor *const *state);

/* ---- processes that were launched together ---- */
typedef struct pgc_dist_about {
  int32_t rank, size, local_rank, local_size; /* from 0; local: among those of the same machine. Alone: 0 and 1 */
} pgc_dist_about;
/* Joins the others when it is first asked. *engine ("mpi"; "" where it is alone) lives until the thread's next call that
 * returns text. */
PGC_API int32_t pgc_dist_world(pgc_dist_about *about, const char **engine);
/* Called by all of these ranks of the world, which rise. *group is what attribute `group` of the collective operators
 * takes, and the functions below; 1 is the group of all, which is there, 0 this process alone, of which they know nothing. */
PGC_API int32_t pgc_dist_group(const int32_t *ranks, uint32_t count, int64_t *group);
PGC_API int32_t pgc_dist_barrier(int64_t group);
PGC_API int32_t pgc_dist_send(int64_t group, pgc_tensor *tensor, int32_t peer, int32_t tag);
/* A new tensor of the shape, dtype and device of `like`. */
PGC_API int32_t pgc_dist_receive(int64_t group, pgc_tensor *like, int32_t peer, int32_t tag, pgc_tensor **output);
/* Begins to sum a dense tensor over a group, in place; nobody else touches it until that is over. *number is what look and
 * finish take; 0, with PG_OK: nothing has begun, since this is for host memory alone. A look lets it go on and
 * does not wait; over: 1, and the number is none any more. finish waits. */
PGC_API int32_t pgc_dist_begin_sum(int64_t group, pgc_tensor *tensor, uint64_t *number);
/* Writes the tensors of all ranks, in their order, into a dense output. flags: 1, begins it as above (*number 0: it is
 * done); 2, the output gets no new version, since it is what it was before pgc_drop_memory. */
PGC_API int32_t pgc_dist_gather(int64_t group, pgc_tensor *tensor, pgc_tensor *output, uint32_t flags, uint64_t *number);
PGC_API int32_t pgc_dist_begin_send(int64_t group, pgc_tensor *tensor, int32_t peer, int32_t tag, uint64_t *number);
PGC_API int32_t pgc_dist_look(uint64_t number, int32_t *over);
PGC_API int32_t pgc_dist_finish(uint64_t number);
/* Sums gradients of parameters over members, in buckets, which start while a backward pass computes the others. Members
 * are the processes of a group, where `members` is 1: `among`, and `gradients`, another group of the same ranks, whose
 * calls come between others' at any time. Or they are `members` devices of this process, which have an engine
 * (pgc_dist_device_group): params are then those of the first one, of the second, ..., `count` each. `scale`: the
 * operator "mul". */
typedef struct pgc_reducer pgc_reducer;
typedef struct pgc_reducer_options {
  int64_t among, gradients;
  uint64_t first, others, direct; /* most bytes of the first bucket and of others; least of a gradient that is in none */
  uint32_t scale;
  int32_t overlaps; /* 0: nothing starts before pgc_reducer_sum */
  uint32_t members;
} pgc_reducer_options;
PGC_API int32_t pgc_reducer_create(const pgc_reducer_options *options, pgc_tensor *const *params, uint32_t count,
                                   pgc_reducer **output);
PGC_API void pgc_reducer_release(pgc_reducer *reducer);
/* Gradients that come from now on count `weights`, by member of this process, and may be sent; NULL: none are. */
PGC_API void pgc_reducer_send(pgc_reducer *reducer, const double *weights);
/* Gradients, times the weights of this process's members, become the sums over all: those of all members, or with `to_all`
 * 0 the first one's. Called by all. One that some members lack counts as zero there; one that all lack stays so. any[i]:
 * whether some member has the i-th; the same memory until the release. */
PGC_API int32_t pgc_reducer_sum(pgc_reducer *reducer, const double *weights, int32_t to_all, const uint8_t **any);
/* Buckets that have started since the last sum, and those that had before it. */
PGC_API void pgc_reducer_count(const pgc_reducer *reducer, uint32_t *started, uint32_t *early);
/* Gives the memory of a tensor, and of all that share it, back to the allocator; and takes memory for it again, whose
 * contents the caller brings. In between what reads it fails. */
PGC_API int32_t pgc_drop_memory(pgc_tensor *tensor);
PGC_API int32_t pgc_renew_memory(pgc_tensor *tensor);
/* Seconds that calls between processes may take, from now on; 0: any time. *old may be NULL. */
PGC_API int32_t pgc_dist_set_deadline(double seconds, double *old);
/* The group of these devices of this process, by member: *group is 0 where no engine serves them (a plugin with
 * pg.device_collectives), and what on_devices takes. */
PGC_API int32_t pgc_dist_device_group(const int32_t *devices, uint32_t count, int64_t *group);
/* Queues PG_COLLECTIVE_ALL_REDUCE, REDUCE, BROADCAST or ALL_GATHER of dense tensors, `rows` times `count`, one of each
 * member a row, and does not wait. root: a member. Inputs may be outputs. */
PGC_API int32_t pgc_dist_on_devices(int64_t group, uint32_t kind, uint32_t reduction, int32_t root, uint32_t rows,
                                    uint32_t count, pgc_tensor *const *inputs, pgc_tensor *const *outputs);
/* Whether every rank says before a collective what it is about to call (operator, shape, dtype, and the line of
 * pgc_set_origin), so that all fail, naming both sides, where they do not agree. All ranks set it alike. */
PGC_API void pgc_dist_set_agreement(int32_t on);
/* PG_PEER_* of every rank of a group; `room` is at least its size. */
PGC_API int32_t pgc_dist_peers(int64_t group, uint32_t *states, uint32_t room);
/* This process has failed and is about to end: those that wait for it are told why. Never fails. */
PGC_API void pgc_dist_abandon(const char *reason);

/* ---- files ---- */
typedef struct pgc_file pgc_file; /* what was read: named tensors on the CPU, and notes */
PGC_API int32_t pgc_read(const char *path, const char *options, pgc_file **output);
/* As the format of an extension (".gz") whatever the path ends in; NULL: as pgc_read. */
PGC_API int32_t pgc_read_as(const char *path, const char *extension, const char *options, pgc_file **output);
/* A file's bytes in memory. Messages call them "the bytes given". */
PGC_API int32_t pgc_read_bytes(const char *extension, const void *bytes, uint64_t size, const char *options,
                               pgc_file **output);
PGC_API uint32_t pgc_file_count(const pgc_file *file);
PGC_API const char *pgc_file_name(const pgc_file *file, uint32_t index);   /* NULL: not so many */
PGC_API pgc_tensor *pgc_file_tensor(const pgc_file *file, uint32_t index); /* a new reference; NULL: not so many */
PGC_API const char *pgc_file_note(const pgc_file *file, const char *key);  /* NULL: no such note */
PGC_API const char *pgc_file_note_key(const pgc_file *file, uint32_t index); /* NULL: not so many */
PGC_API void pgc_file_close(pgc_file *file);
/* Codecs of plugins (perigee/data.h). pgc_codec_of: whose bytes begin so (64 are enough); NULL: nobody's. pgc_probe:
 * what the header of a file, or of bytes where `path` is NULL, says; `codec` NULL: by the path's extension. */
PGC_API const char *pgc_codecs_json(void);
PGC_API const char *pgc_codec_of(const void *head, uint64_t size);
PGC_API int32_t pgc_probe(const char *codec, const char *path, const void *bytes, uint64_t size, pg_coded_info *info);
/* `bytes` live until the thread's next call that returns text. Notes as of pgc_write. */
PGC_API int32_t pgc_encode(const char *codec, pgc_tensor *tensor, uint32_t note_count, const char *const *notes,
                           const char **bytes, uint64_t *size);
/* Atomic: a temporary file beside it, of a name that cannot be foreseen, fsync, rename, fsync of the folder. A disk, a
 * quota or a limit of file sizes without room is PG_E_OUT_OF_DISK. notes: key, value, key, value, ... */
PGC_API int32_t pgc_write(const char *path, uint32_t count, const char *const *names, pgc_tensor *const *tensors,
                          uint32_t note_count, const char *const *notes);
/* The same, as STEM.CHECKSUM.EXTENSION with the 16 hexadecimal digits of pgc_checksum: what was damaged can be told. */
PGC_API int32_t pgc_write_sealed(const char *stem, const char *extension, uint32_t count, const char *const *names,
                                 pgc_tensor *const *tensors, uint32_t note_count, const char *const *notes,
                                 uint64_t *checksum);
PGC_API int32_t pgc_write_bytes(const char *path, const void *bytes, uint64_t size); /* atomic too */
/* Removes the temporary files of processes that are gone, of targets whose names begin with `prefix`. */
PGC_API int32_t pgc_remove_unfinished(const char *folder, const char *prefix);
PGC_API int32_t pgc_checksum(const char *path, uint64_t *checksum); /* 64 bits over a file; finds damage, not malice */
PGC_API int32_t pgc_make_folder(const char *path);                  /* with all above it; one that is there is fine */
PGC_API const char *pgc_folder_names(const char *path);             /* a line each, in no order; NULL: see pgc_error */

/* ---- graphs ---- */
PGC_API int32_t pgc_graph_create(pgc_graph **output);
/* Where nodes and sources go that no scope and no accelerator among their inputs decides about; -1: to their inputs. */
PGC_API int32_t pgc_graph_set_device(pgc_graph *graph, int32_t device);
PGC_API void pgc_graph_release(pgc_graph *graph);
/* Dimensions: names[i] NULL: shape[i]; else that symbol. */
PGC_API int32_t pgc_graph_placeholder(pgc_graph *graph, const char *name, uint32_t dtype, uint32_t rank, const int64_t *shape,
                                      const char *const *symbols, pgc_tensor **output);
/* A variable: state that lives between runs, first holding `value` (eager). */
PGC_API int32_t pgc_graph_variable(pgc_graph *graph, const char *name, pgc_tensor *value, pgc_tensor **output);
/* The same where the variable that `beside` means is, in every session: what is updated along with it. */
PGC_API int32_t pgc_graph_variable_beside(pgc_graph *graph, const char *name, pgc_tensor *value, pgc_tensor *beside,
                                          pgc_tensor **output);
PGC_API int32_t pgc_graph_constant(pgc_graph *graph, const char *name, pgc_tensor *value, pgc_tensor **output);
PGC_API int32_t pgc_graph_set_name(pgc_graph *graph, pgc_tensor *tensor, const char *name);
/* What a model holds becomes the graph's variables where it is used from now on, under the names of its state ("fc1.weight")
 * in the scope in force, all with "CLASS_1." in front where one of them is taken. Those known already stay what they are. */
PGC_API int32_t pgc_graph_call(pgc_graph *graph, const char *class_name, uint32_t count, pgc_tensor *const *tensors,
                               const char *const *names);
/* The variable that a tensor means, as pgc_graph_variable gave it; NULL: none. */
PGC_API int32_t pgc_graph_variable_of(pgc_graph *graph, pgc_tensor *tensor, pgc_tensor **output);
PGC_API int32_t pgc_graph_knows(pgc_graph *graph, pgc_tensor *tensor); /* whether pgc_graph_call was told of it */
/* How many values variables have got in the graph. Below: those from the index-th on, and `also` (or NULL), are made in a run
 * before what computes `tensor`, which `output` stands for from then on. */
PGC_API uint32_t pgc_graph_written(pgc_graph *graph);
PGC_API int32_t pgc_graph_after_writes(pgc_graph *graph, pgc_tensor *tensor, uint32_t index, pgc_tensor *also,
                                       pgc_tensor **output);
/* The call of a model is over: reads from now on are of what sessions hold of what it wrote. Below: the same for all values that
 * variables have got from the index-th on. */
PGC_API void pgc_graph_settle(pgc_graph *graph);
PGC_API void pgc_graph_forget_writes(pgc_graph *graph, uint32_t index);
/* In the nodes from the first-th on, runs read the number `attr` off a float64 [] of the graph (NULL: they do not); count:
 * how many have one. */
PGC_API uint32_t pgc_graph_node_count(pgc_graph *graph);
PGC_API int32_t pgc_graph_bind(pgc_graph *graph, uint32_t first, const char *attr, pgc_tensor *value, uint32_t *count);
/* The eager tensor that the index-th variable was; NULL: it was none. */
PGC_API int32_t pgc_graph_source_at(pgc_graph *graph, uint32_t index, pgc_tensor **output);
/* Variables in the order in which they were made; NULL: not so many. */
PGC_API int32_t pgc_graph_variable_at(pgc_graph *graph, uint32_t index, pgc_tensor **output);
/* Another number whenever anything was recorded or named since. */
PGC_API uint64_t pgc_graph_revision(pgc_graph *graph);
/* The name of a tensor of a graph; valid until it is renamed. NULL for others. */
PGC_API const char *pgc_graph_name(pgc_tensor *tensor);
PGC_API int32_t pgc_graph_find(pgc_graph *graph, const char *name, pgc_tensor **output);
PGC_API const char *pgc_graph_text(pgc_graph *graph); /* a line per node */
PGC_API const char *pgc_graph_dot(pgc_graph *graph);
/* The graph as a JSON object with "graph" and "operators" as in docs/graph_files.md, without the contents of its variables and constants, which
 * pgc_session_contents gives by their names. NULL: see pgc_error. */
PGC_API const char *pgc_graph_document(pgc_graph *graph);
/* A graph of such an object, every call recorded anew. Nothing in it is trusted: PG_E_DATA_LOSS names the node and what
 * is wrong with it. `contents`: of all variables and constants, by name; they become the graph's own. device: where all
 * of it goes; -1: where the document says, devices that are not there being the default one, which a warning tells that
 * begins with `shown`. */
PGC_API int32_t pgc_graph_read(const char *document, uint32_t count, const char *const *names,
                               pgc_tensor *const *contents, int32_t device, const char *shown, pgc_graph **output);
/* Bodies: graphs that a node of another one owns and runs. What is used in them from around them becomes an argument. */
PGC_API int32_t pgc_body_create(pgc_graph *around, pgc_graph **output);
/* An argument like a tensor, or (step) like one position of its first axis. `twin` is for who may write into it. */
PGC_API int32_t pgc_body_argument(pgc_graph *body, const char *name, pgc_tensor *like, int32_t step, int32_t differentiable,
                                  pgc_tensor **output, pgc_tensor **twin);
PGC_API int32_t pgc_body_take(pgc_graph *body, pgc_tensor *tensor, pgc_tensor **output); /* as one of the body's */
/* What a body uses from around it: the index-th tensor and the argument for it, from 0; NULL: not so many. */
PGC_API int32_t pgc_body_taken(pgc_graph *body, uint32_t index, pgc_tensor **outer, pgc_tensor **inner);
/* Reserves "cond", or that with a number, in the scope in force. */
PGC_API const char *pgc_control_name(pgc_graph *graph, const char *wanted);
#define PGC_CONTROL_COND 0
#define PGC_CONTROL_SCAN 1
#define PGC_CONTROL_WHILE 2
typedef struct pgc_control_form {
  uint32_t kind, input_count, carries, steps, body_count;
  int32_t reverse;
  int64_t length, most; /* steps of a scan where no input has them; rounds of a loop, -1: no limit */
  const char *name;     /* that was reserved */
  pgc_tensor *const *inputs;
  pgc_graph *const *bodies;
  const char *const *body_names;
  const uint32_t *result_counts; /* by body */
  pgc_tensor *const *arguments;  /* by body and input, NULL: not used there */
  pgc_tensor *const *results;    /* by body, one after the other */
} pgc_control_form;
/* Appends a node; outputs has room for all results of the last body. `node`: its number in the graph. */
PGC_API int32_t pgc_control(pgc_graph *graph, const pgc_control_form *form, pgc_tensor **outputs, uint32_t *node);
/* A value of a body as one more output of the node. */
PGC_API int32_t pgc_control_keep(pgc_graph *graph, uint32_t node, uint32_t body, pgc_tensor *inner, pgc_tensor **output);
/* What such a node is: all but the lists, to which the next ones answer. `name` lives as long as the graph. */
PGC_API int32_t pgc_control_read(pgc_graph *graph, uint32_t node, pgc_control_form *form);
/* Its bodies, not owned by the caller; the tensors of its inputs, and of a body what stands for an input and what is
 * given for an output; NULL: nothing. */
PGC_API pgc_graph *pgc_control_body(pgc_graph *graph, uint32_t node, uint32_t body, const char **name, uint32_t *results);
PGC_API int32_t pgc_control_input(pgc_graph *graph, uint32_t node, uint32_t input, pgc_tensor **output);
PGC_API int32_t pgc_control_argument(pgc_graph *graph, uint32_t node, uint32_t body, uint32_t input, pgc_tensor **output);
PGC_API int32_t pgc_control_result(pgc_graph *graph, uint32_t node, uint32_t body, uint32_t index, pgc_tensor **output);
/* Of a graph that was read: the index-th node of the tape that stops a backward pass, for the front end to compute its
 * gradients: some outputs of a node that owns bodies, or (lost) a tensor whose gradient was a front end's function. 0:
 * not so many. */
typedef struct pgc_hung_node {
  uint64_t number;
  pgc_graph *graph;
  uint32_t node, first, count, inputs;
  int32_t lost;
  const char *name;
} pgc_hung_node;
PGC_API int32_t pgc_graph_hung(pgc_graph *graph, uint32_t index, pgc_hung_node *what);
PGC_API pgc_graph *pgc_graph_of(pgc_tensor *tensor); /* NULL: of none */
/* What tells a tensor of a graph from others: its graph, its value there, its history. */
PGC_API void pgc_graph_key(pgc_tensor *tensor, uint64_t key[3]);
/* From now on what is recorded into the graph runs after the nodes that made these tensors; answers in `before` how many
 * nodes that were so far, which pgc_graph_after_end goes back to. */
PGC_API int32_t pgc_graph_after(pgc_graph *graph, pgc_tensor *const *tensors, uint32_t count, uint32_t *before);
PGC_API void pgc_graph_after_end(pgc_graph *graph, uint32_t before);
/* Decides where everything runs. What cannot be where it was placed is an error that names all of it, or goes elsewhere,
 * which the log tells. Nodes may be launched as one kernel where a compiler can, unless each is wanted apart. */
enum { PGC_SESSION_SOFT = 1, PGC_SESSION_APART = 2 };
PGC_API int32_t pgc_session_create(pgc_graph *graph, uint32_t flags, pgc_session **output);
PGC_API void pgc_session_release(pgc_session *session);
/* What a variable of the session holds now, or a constant: the very tensor, to be looked at before the next run. */
PGC_API int32_t pgc_session_contents(pgc_session *session, const char *name, pgc_tensor **output);
/* A mapping of names to devices, a line per node, "add_1: (Add): /gpu:0", and the copies between devices in bytes. */
PGC_API const char *pgc_session_placement(pgc_session *session);
/* What the run that was asked for last does: a line about all, then a line a step. NULL: nothing has run yet. */
PGC_API const char *pgc_session_plan(pgc_session *session);
/* Several threads may run one session at once; only runs that update variables wait for each other. fetches and feeds are
 * graph tensors; values and results eager ones. Variables keep what the run wrote. Fetching a
 * variable (as pgc_graph_variable gave it) reads it and asks for no update; fetching its updated value does. */
PGC_API int32_t pgc_session_run(pgc_session *session, pgc_tensor *const *fetches, uint32_t fetch_count,
                                pgc_tensor *const *feeds, pgc_tensor *const *values, uint32_t feed_count,
                                pgc_tensor **results);
/* A run in parts: all that will be fetched and fed is told first; the parts then fetch some of it with what has been fed so
 * far, and no node is computed twice. Feeds once each. Release it before the session. */
typedef struct pgc_partial pgc_partial;
PGC_API int32_t pgc_partial_create(pgc_session *session, pgc_tensor *const *fetches, uint32_t fetch_count,
                                   pgc_tensor *const *feeds, uint32_t feed_count, pgc_partial **output);
PGC_API int32_t pgc_partial_run(pgc_partial *partial, pgc_tensor *const *fetches, uint32_t fetch_count,
                                pgc_tensor *const *feeds, pgc_tensor *const *values, uint32_t feed_count,
                                pgc_tensor **results);
PGC_API void pgc_partial_release(pgc_partial *partial);
/* What a variable of the session's graph holds from now on: a copy of an eager tensor of its shape and dtype. */
PGC_API int32_t pgc_session_assign(pgc_session *session, pgc_tensor *variable, pgc_tensor *value);

/* ---- compiled functions ----
 * Between begin and end of a call, what the calling thread asks of this interface is compared with what the function
 * asked before: where it is the same, tensors are handed out that have no contents as yet, and kernels run when
 * something looks at contents, or at the end. What differs is called as always, and noted. */
typedef struct pgc_compiled pgc_compiled;
PGC_API int32_t pgc_compiled_create(pgc_compiled **output);
PGC_API void pgc_compiled_release(pgc_compiled *compiled);
PGC_API void pgc_compiled_fuse(pgc_compiled *compiled, int32_t fuse); /* whether several operators may be one kernel; at first not */
PGC_API void pgc_compiled_capture(pgc_compiled *compiled, int32_t capture); /* whether plans are captured where a device can; at first not */
/* *entered 0: a compiled function is being called already, of which this call is a part: neither end nor abort it. */
PGC_API int32_t pgc_compiled_begin(pgc_compiled *compiled, int32_t *entered);
/* Others call on this thread meanwhile (a coroutine has yielded), and it goes on. */
PGC_API void pgc_compiled_pause(pgc_compiled *compiled);
PGC_API void pgc_compiled_go_on(pgc_compiled *compiled);
/* Tensors that only the function knows are to be released before. PG_E_RETRY: nothing has happened, issue it again. What
 * fails otherwise is to be aborted. */
PGC_API int32_t pgc_compiled_end(pgc_compiled *compiled);
PGC_API void pgc_compiled_abort(pgc_compiled *compiled); /* an error ended the function: what it asked for has happened */
/* Calls without the function. After pgc_compiled_freezes, calls end with pgc_compiled_freeze (as _end, which see): given
 * its arguments and results it says of each result whether a frozen call makes it, and answers NULL after the first
 * call. A frozen one stays until it is released, and with its function. pgc_frozen_run: *ran 0: the arguments are
 * described otherwise, or the call is part of another, and nothing has happened. results: those that are made. layouts:
 * whether they may differ by rounding from what the function gives. */
typedef struct pgc_frozen pgc_frozen;
PGC_API void pgc_compiled_freezes(pgc_compiled *compiled, int32_t layouts);
PGC_API int32_t pgc_compiled_freeze(pgc_compiled *compiled, pgc_tensor *const *arguments, uint32_t argument_count,
                                    pgc_tensor *const *results, uint32_t result_count, uint8_t *made,
                                    pgc_frozen **output);
PGC_API void pgc_frozen_release(pgc_compiled *compiled, pgc_frozen *frozen);
PGC_API int32_t pgc_frozen_run(pgc_compiled *compiled, pgc_frozen *frozen, pgc_tensor *const *arguments,
                               pgc_tensor **results, int32_t *ran);
PGC_API const char *pgc_compiled_json(pgc_compiled *compiled);
/* ---- input pipelines ---- */
/* Stages; each keeps those that it was made of. Positions count from 0. */
typedef struct pgc_stage pgc_stage;
typedef struct pgc_run pgc_run;
typedef struct pgc_workers pgc_workers;
typedef struct pgc_exchange pgc_exchange;
typedef struct pgc_leaf {
  pgc_tensor *tensor; /* NULL: none */
  double number;      /* of a number or a boolean */
  const char *text;   /* of a text, `bytes` long */
  uint64_t bytes;
} pgc_leaf;
/* The layout says what the leaves are: T (tensor), N (number), B (boolean), S (text), or a table: "{" keys, each with
 * its value, "}"; a key is "s5:value" or "i3;". The number stands for it: no other text of the process has it. Lives
 * until the thread's next call that fills one; tensors in it are references that it gives you. */
typedef struct pgc_element {
  uint64_t layout;
  const char *text;
  uint32_t count;
  const pgc_leaf *leaves;
} pgc_element;
/* Element k is the parent's k % modulo * step + offset; where it comes in order, `modulo` has no effect. */
PGC_API int32_t pgc_stage_window(pgc_stage *parent, int64_t count, int64_t modulo, int64_t step, int64_t offset,
                                 pgc_stage **output);
PGC_API int32_t pgc_stage_shuffle(pgc_stage *parent, uint32_t seed, uint32_t epoch, int64_t buffer,
                                  pgc_stage **output); /* in the order of pgc_draw_order; not of a parent in order */
PGC_API int32_t pgc_stage_zip(pgc_stage *const *parents, uint32_t count, pgc_stage **output); /* lists of one of each */
PGC_API int32_t pgc_stage_batch(pgc_stage *parent, int64_t size, int32_t drop_last, pgc_stage **output);
/* A function of the front end, by its number, which workers are asked for. What it draws depends on the seed, the epoch
 * and the position of its element in the parent alone. */
PGC_API int32_t pgc_stage_map(pgc_stage *parent, uint32_t function, uint64_t seed, uint64_t epoch, pgc_stage **output);
/* Elements that were left out as a function failed: how many, and the messages of the first. `what`: whose they are, in
 * the warnings that are logged. Any thread may use it. */
typedef struct pgc_skips pgc_skips;
PGC_API int32_t pgc_skips_create(const char *what, pgc_skips **output);
PGC_API void pgc_skips_release(pgc_skips *skips);
PGC_API int32_t pgc_skips_add(pgc_skips *skips, int64_t position, const char *message); /* positions count from 0 */
PGC_API int64_t pgc_skips_count(const pgc_skips *skips);
PGC_API const char *pgc_skips_message(const pgc_skips *skips, int64_t index); /* NULL: not so many are kept */
/* As pgc_stage_map; an element of which the function fails is left out. */
PGC_API int32_t pgc_stage_map_or_skip(pgc_stage *parent, uint32_t function, uint64_t seed, uint64_t epoch, pgc_skips *skips,
                                      pgc_stage **output);
/* Elements of a parent by position, but for those that cannot be made. */
PGC_API int32_t pgc_stage_or_skip(pgc_stage *parent, pgc_skips *skips, pgc_stage **output);
/* Elements for which a function of workers answers true; how many, nobody knows before the end. */
PGC_API int32_t pgc_stage_filter(pgc_stage *parent, uint32_t function, uint64_t seed, uint64_t epoch, pgc_stage **output);
/* Elements through a buffer: the order that pgc_draw_order gives to as many, for parents that come in order. */
PGC_API int32_t pgc_stage_mix(pgc_stage *parent, uint32_t seed, uint32_t epoch, int64_t buffer, pgc_stage **output);
PGC_API int32_t pgc_stage_repeat(pgc_stage *parent, int64_t times, pgc_stage **output); /* of parents in order */
PGC_API int32_t pgc_stage_device(pgc_stage *parent, int32_t device, pgc_stage **output); /* by a stream of its own */
/* Sources and transforms of plugins. `attrs` is the packed struct of their options, copied, but for tensors, which are
 * beside it; `shown` is what messages call them. A transform's `number`: which of its pipeline's it is. */
typedef struct pgc_option_tensor {
  const char *option; /* whose, of kind PG_ATTR_TENSOR or PG_ATTR_TENSORS */
  const char *name;   /* of one among PG_ATTR_TENSORS: given in the order of names */
  pgc_tensor *tensor;
} pgc_option_tensor;
PGC_API const char *pgc_source_json(const char *name); /* NULL: there is none */
PGC_API const char *pgc_source_names_json(void);
PGC_API const char *pgc_transform_json(const char *name);
PGC_API const char *pgc_transform_names_json(void);
PGC_API int32_t pgc_stage_source(const char *name, const void *attrs, const pgc_option_tensor *tensors, uint32_t count,
                                 const char *shown, pgc_stage **output);
typedef struct pgc_transform pgc_transform;
PGC_API int32_t pgc_transform_open(const char *name, const void *attrs, const pgc_option_tensor *tensors, uint32_t count,
                                   const char *shown, uint64_t number, pgc_transform **output);
PGC_API void pgc_transform_release(pgc_transform *transform); /* stages keep it */
PGC_API int32_t pgc_transform_apply(pgc_transform *transform, uint64_t seed, uint64_t epoch, int64_t position,
                                    const char *layout, uint64_t bytes, const pgc_leaf *leaves, uint32_t count,
                                    pgc_element *element); /* `element`: until the thread's next call that gives one */
PGC_API int32_t pgc_stage_transform(pgc_stage *parent, pgc_transform *transform, uint64_t seed, uint64_t epoch,
                                    pgc_stage **output);
/* Elements that are kept: in memory (path NULL), or in a file that appears under its name once it has all. `identity`
 * says whose elements they are, a line a stage: PG_E_FAILED_PRECONDITION where the file is another's, PG_E_DATA_LOSS where
 * it is damaged. Any thread may use it. */
typedef struct pgc_cache pgc_cache;
PGC_API int32_t pgc_cache_create(const char *path, const char *identity, pgc_cache **output);
PGC_API void pgc_cache_release(pgc_cache *cache);
PGC_API int64_t pgc_cache_count(const pgc_cache *cache); /* -1: not all elements are there */
PGC_API int32_t pgc_cache_get(pgc_cache *cache, int64_t position, pgc_element *element); /* PGC_END: not there */
/* The element at a position of a pipeline of `count` (-1: unknown); layout NULL: there is none, and none behind it. */
PGC_API int32_t pgc_cache_put(pgc_cache *cache, int64_t position, int64_t count, const char *layout, uint64_t bytes,
                              const pgc_leaf *leaves, uint32_t leaf_count);
PGC_API int32_t pgc_stage_cache(pgc_stage *parent, pgc_cache *cache, pgc_stage **output); /* computed once, then kept */
/* Checksum of bytes, and of a tensor's contents: they find differences, not malice. */
PGC_API uint64_t pgc_checksum_bytes(const char *bytes, uint64_t size);
PGC_API int32_t pgc_checksum_tensor(pgc_tensor *tensor, uint64_t *checksum);
PGC_API int64_t pgc_stage_count(const pgc_stage *stage); /* -1: unknown */
PGC_API int32_t pgc_stage_in_order(const pgc_stage *stage);
PGC_API int32_t pgc_stage_get(pgc_stage *stage, int64_t position, pgc_element *element);
PGC_API void pgc_stage_release(pgc_stage *stage);
/* Positions 1 .. n in the random order of (seed, epoch); none travels further than `buffer`. */
PGC_API int32_t pgc_draw_order(int64_t n, uint32_t seed, uint32_t epoch, int64_t buffer, int64_t *positions);
/* Step i of it, from 0: which of `reach` that are left in the buffer, from 0. */
PGC_API int64_t pgc_draw_step(uint32_t seed, uint32_t epoch, int64_t i, int64_t reach);
/* What only the caller's thread can make: stages of a run that ask for it, and its answers. `source` is the caller's
 * number of what makes the elements, `time` how often that had been begun before. count -1: unknown. in_order: elements
 * are asked for once each, and may be answered before they are. */
typedef struct pgc_feeds pgc_feeds;
typedef struct pgc_request {
  uint32_t source, time;
  int64_t position;
} pgc_request;
PGC_API int32_t pgc_feeds_create(pgc_feeds **output);
PGC_API void pgc_feeds_release(pgc_feeds *feeds);
PGC_API int32_t pgc_stage_feed(pgc_feeds *feeds, uint32_t source, int64_t count, int32_t in_order, pgc_stage **output);
PGC_API int32_t pgc_feeds_next(pgc_feeds *feeds, pgc_request *request); /* what is waited for; PGC_END: nothing */
/* layout NULL: there are only `position` elements or fewer. */
PGC_API int32_t pgc_feeds_answer(pgc_feeds *feeds, const pgc_request *request, const char *layout, uint64_t bytes,
                                 const pgc_leaf *leaves, uint32_t count);
PGC_API int32_t pgc_feeds_fail(pgc_feeds *feeds, const pgc_request *request, const char *message);
/* Interpreters of the front end, for functions; a run has them to itself. `call` gets a function's number and an
 * exchange, on one thread at a time. It takes samples by pgc_exchange_take until that answers PGC_END (random draws that
 * follow are the sample's), and answers them, now or later but in their order, by pgc_exchange_answer or
 * pgc_exchange_fail. The number PGC_WORKER_ENDS asks it to let go of all tensors. `close` is the last that is called. */
#define PGC_WORKER_ENDS UINT32_MAX
typedef struct pgc_worker {
  int32_t (*call)(uint32_t function, void *exchange);
  void (*close)(void *state);
  void *state;
} pgc_worker;
PGC_API int32_t pgc_workers_create(const pgc_worker *list, uint32_t count, pgc_workers **output);
PGC_API void pgc_workers_release(pgc_workers *workers); /* closed once no run has them */
PGC_API int32_t pgc_exchange_take(pgc_exchange *exchange, pgc_element *element);
PGC_API int32_t pgc_exchange_answer(pgc_exchange *exchange, const char *layout, uint64_t bytes, const pgc_leaf *leaves,
                                    uint32_t count);
PGC_API int32_t pgc_exchange_fail(pgc_exchange *exchange, const char *message);
/* A pass over a stage, from element `first` on. `threads` of its own compute at most `capacity` elements ahead; 0 and no
 * workers: pgc_run_next computes. With workers there is a thread for each of them. feeds: of the stage, or NULL. What
 * it tunes is between 1 and these, by whether the consumer waits; `memory` bounds what is ready then, in bytes. */
typedef struct pgc_pace {
  uint32_t threads, capacity;
  int32_t tunes_threads, tunes_capacity;
  uint64_t memory;
} pgc_pace;
PGC_API int32_t pgc_run_start(pgc_stage *stage, int64_t first, const pgc_pace *pace, pgc_workers *workers,
                              pgc_feeds *feeds, pgc_run **output);
/* Threads at work, elements that may be ready, the largest one's bytes; elements handed out, and those that the consumer
 * waited for; nanoseconds that it waited, that threads waited for room, and since the first was asked for. */
typedef struct pgc_run_state {
  uint32_t threads, capacity;
  uint64_t element_bytes, given, starved, starved_ns, blocked_ns, run_ns;
} pgc_run_state;
PGC_API int32_t pgc_run_look(pgc_run *run, pgc_run_state *state);
/* What a stage takes, in all its passes: elements, nanoseconds of its own, and those that it waited for others. */
typedef struct pgc_times pgc_times;
PGC_API int32_t pgc_times_create(pgc_times **output);
PGC_API void pgc_times_release(pgc_times *times);
PGC_API void pgc_times_look(pgc_times *times, int64_t *elements, int64_t *own, int64_t *waited);
PGC_API int32_t pgc_stage_timed(pgc_stage *stage, pgc_times *times, pgc_stage **output);
/* A stage whose elements profiles note, under a name and a line of the script (NULL: none). */
PGC_API int32_t pgc_stage_noted(pgc_stage *stage, const char *name, const char *line, pgc_stage **output);
#define PGC_END 101     /* there are no more elements */
#define PGC_WAITING 102 /* nothing happened for a while: look at signals and ask again */
#define PGC_ASKED 103   /* the run waits for its feeds: answer and ask again */
/* PGC_END, PGC_WAITING, PGC_ASKED; an error ends the run. */
PGC_API int32_t pgc_run_next(pgc_run *run, pgc_element *element);
/* Ends it, and waits for its threads to leave: PGC_WAITING while they have not. */
PGC_API int32_t pgc_run_close(pgc_run *run);
PGC_API void pgc_run_release(pgc_run *run); /* ends it, and waits for nobody */
PGC_API uint32_t pgc_run_threads(void);     /* of all runs that there are now */

#ifdef __cplusplus
}
#endif

#endif
