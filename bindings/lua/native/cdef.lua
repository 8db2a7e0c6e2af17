-- SPDX-License-Identifier: Apache-2.0
-- The declarations of bindings/c/perigee.h, and the structs of perigee/plugin.h that pass through it, as LuaJIT reads
-- them. tests/lua/native/cdef_test.lua compares the function list with the header.

return [[
typedef struct pg_error {
  uint32_t size;
  int32_t code;
  int64_t native;
  uint32_t flags;
  uint32_t device;
  char where[64];
  char message[416];
} pg_error;
typedef struct pg_tensor {
  uint32_t size;
  uint16_t dtype_code, dtype_bits;
  uint32_t rank, flags;
  const int64_t *shape;
  const int64_t *stride;
  uint64_t buffer;
  uint64_t offset;
  uint64_t bit_offset;
  uint64_t layout;
  uint32_t class_id, component_count;
  const struct pg_tensor *const *components;
} pg_tensor;
typedef struct pg_ints {
  int64_t count;
  int64_t value[8];
} pg_ints;
typedef struct pg_scalar {
  int32_t kind, input;
} pg_scalar;
typedef struct pg_number {
  double real, imaginary;
  int64_t integer;
  uint32_t kind, reserved;
} pg_number;
typedef struct pg_param {
  uint32_t size;
  uint32_t buffer;
  uint32_t present;
  uint32_t dtype;
  uint32_t rank, init;
  double a, b;
  int64_t shape[8];
} pg_param;
typedef struct pg_texts {
  uint32_t size;
  uint32_t count;
  const char *const *list;
} pg_texts;
typedef struct pg_coded_info {
  uint32_t size;
  uint32_t dtype, rank;
  uint32_t flags;
  uint32_t scales;
  uint32_t reserved;
  int64_t shape[8];
} pg_coded_info;

typedef struct pgc_tensor pgc_tensor;
typedef struct pgc_graph pgc_graph;
typedef struct pgc_session pgc_session;
typedef struct pgc_compiled pgc_compiled;
typedef struct pgc_frozen pgc_frozen;
typedef struct pgc_partial pgc_partial;
const char *pgc_version(void);
int32_t pgc_add_plugin_path(const char *folder);
int32_t pgc_load_plugin(const char *path);
const char *pgc_plugins_json(int32_t load);
const char *pgc_devices_json(void);
int32_t pgc_shutdown(void);
const pg_error *pgc_error(void);
const char *pgc_error_message(void);
void pgc_again(void);
void pgc_interrupt(void);
int32_t pgc_set_threads(int32_t count);
int32_t pgc_threads(void);
int32_t pgc_set_deterministic(int32_t on);
int32_t pgc_deterministic(void);
int32_t pgc_set_grad_enabled(int32_t on);
int32_t pgc_grad_enabled(void);
int32_t pgc_set_device(int32_t device);
int32_t pgc_device(void);
int32_t pgc_set_default_device(int32_t device);
int32_t pgc_default_device(void);
int32_t pgc_undisturbed(void);
pgc_graph *pgc_set_graph(pgc_graph *graph);
int32_t pgc_set_stream(int32_t index);
int32_t pgc_set_detect_anomaly(int32_t on);
int32_t pgc_set_log_placement(int32_t on);
int32_t pgc_set_origin(const char *text);
void pgc_put_origin(const char *interned);
int32_t pgc_set_name_scope(const char *text);
const char *pgc_interned(const char *text);
uint32_t pgc_set_default_dtype(uint32_t dtype);
uint32_t pgc_default_dtype(void);
typedef struct pgc_profile_record {
  int64_t begin, end;
  const char *name, *shapes, *origin, *layer;
  uint64_t bytes, sequence;
  uint32_t kind;
  int32_t device;
  uint32_t thread, stream;
} pgc_profile_record;
int32_t pgc_profile_start(uint64_t capacity);
int32_t pgc_profile_stop(const pgc_profile_record **records, uint64_t *count, uint64_t *lost);
void pgc_profile_drop(void);
const char *pgc_profile_thread(uint32_t thread);
int64_t pgc_profile_time(void);
int64_t pgc_profile_begin(void);
int32_t pgc_profile_end(int64_t begin, uint32_t kind, const char *name);
void pgc_profile_place(const char *interned);
int32_t pgc_profile_sites(int32_t on);
int32_t pgc_profile_code(const void *begin, uint64_t size, int32_t fixed);
int32_t pgc_profile_site(int32_t layer);
void pgc_profile_unsure(void);
void pgc_profile_offer(const char *interned);
typedef struct pgc_autocast pgc_autocast;
int32_t pgc_autocast_create(const char *device_type, uint32_t dtype, pgc_autocast **output);
void pgc_autocast_release(pgc_autocast *scope);
pgc_autocast *pgc_set_autocast(pgc_autocast *scope);
pgc_autocast *pgc_autocast_scope(void);
uint32_t pgc_autocast_dtype(int32_t device);
int32_t pgc_set_condition(pgc_tensor *skip);
int32_t pgc_find_device(const char *name, int32_t *device);
int32_t pgc_place_device(const char *name, int32_t *device);
int32_t pgc_first_accelerator(int32_t *device);
int32_t pgc_set_visible_devices(const char *const *names, uint32_t count);
const char *pgc_device_name(int32_t device);
int32_t pgc_synchronize(int32_t device);
typedef struct pgc_dist_about {
  int32_t rank, size, local_rank, local_size;
} pgc_dist_about;
int32_t pgc_dist_world(pgc_dist_about *about, const char **engine);
int32_t pgc_dist_group(const int32_t *ranks, uint32_t count, int64_t *group);
int32_t pgc_dist_barrier(int64_t group);
int32_t pgc_dist_send(int64_t group, pgc_tensor *tensor, int32_t peer, int32_t tag);
int32_t pgc_dist_receive(int64_t group, pgc_tensor *like, int32_t peer, int32_t tag, pgc_tensor **output);
int32_t pgc_dist_begin_sum(int64_t group, pgc_tensor *tensor, uint64_t *number);
int32_t pgc_dist_gather(int64_t group, pgc_tensor *tensor, pgc_tensor *output, uint32_t flags, uint64_t *number);
int32_t pgc_dist_begin_send(int64_t group, pgc_tensor *tensor, int32_t peer, int32_t tag, uint64_t *number);
int32_t pgc_dist_look(uint64_t number, int32_t *over);
int32_t pgc_dist_finish(uint64_t number);
typedef struct pgc_reducer pgc_reducer;
typedef struct pgc_reducer_options {
  int64_t among, gradients;
  uint64_t first, others, direct;
  uint32_t scale;
  int32_t overlaps;
  uint32_t members;
} pgc_reducer_options;
int32_t pgc_reducer_create(const pgc_reducer_options *options, pgc_tensor *const *params, uint32_t count,
                           pgc_reducer **output);
void pgc_reducer_release(pgc_reducer *reducer);
void pgc_reducer_send(pgc_reducer *reducer, const double *weights);
int32_t pgc_reducer_sum(pgc_reducer *reducer, const double *weights, int32_t to_all, const uint8_t **any);
void pgc_reducer_count(const pgc_reducer *reducer, uint32_t *started, uint32_t *early);
int32_t pgc_drop_memory(pgc_tensor *tensor);
int32_t pgc_renew_memory(pgc_tensor *tensor);
int32_t pgc_dist_set_deadline(double seconds, double *old);
int32_t pgc_dist_device_group(const int32_t *devices, uint32_t count, int64_t *group);
int32_t pgc_dist_on_devices(int64_t group, uint32_t kind, uint32_t reduction, int32_t root, uint32_t rows,
                            uint32_t count, pgc_tensor *const *inputs, pgc_tensor *const *outputs);
void pgc_dist_set_agreement(int32_t on);
int32_t pgc_dist_peers(int64_t group, uint32_t *states, uint32_t room);
void pgc_dist_abandon(const char *reason);
typedef struct pgc_memory_stats {
  uint64_t live, reserved, peak, limit;
  uint64_t allocations, device_allocations;
  uint64_t requested;
  uint64_t grows;
} pgc_memory_stats;
int32_t pgc_get_memory_stats(int32_t device, pgc_memory_stats *out);
int32_t pgc_set_memory_limit(int32_t device, uint64_t bytes);
int32_t pgc_set_memory_growth(int32_t device, int32_t on);
int32_t pgc_split_device(int32_t device, const uint64_t *limits, uint32_t count, int32_t *ids);
int32_t pgc_fail_allocations(int32_t device, uint64_t after, uint64_t count);
int32_t pgc_device_native(int32_t device, const char *what, uint64_t handle, uint64_t *out);
int32_t pgc_conform_library(const char *path, const char **lines);
int32_t pgc_conform_device(int32_t device, const char *group, const char **lines);
int32_t pgc_conform_parts(const char *path, const char *options, const char **lines);
int32_t pgc_reset_peak(int32_t device);
int32_t pgc_empty_cache(int32_t device);
uint64_t pgc_live_bytes(void);
uint64_t pgc_own_bytes(void);
const char *pgc_op_json(const char *name);
const char *pgc_op_names_json(void);
int32_t pgc_find_op(const char *name, uint32_t *op);
const void *pgc_op_defaults(uint32_t op);
int32_t pgc_call(uint32_t op, pgc_tensor *const *inputs, uint32_t input_count, const uint32_t *groups,
                         const void *attrs, uint32_t flags, pgc_tensor **outputs, uint32_t output_count);
int32_t pgc_call1(uint32_t op, pgc_tensor *x, const void *attrs, pgc_tensor **output);
int32_t pgc_call2(uint32_t op, pgc_tensor *x, pgc_tensor *y, const void *attrs, pgc_tensor **output);
void pgc_retain(pgc_tensor *tensor);
void pgc_release(pgc_tensor *tensor);
void pgc_release_many(pgc_tensor *const *tensors, uint32_t count);
int32_t pgc_from_host(uint32_t dtype, uint32_t rank, const int64_t *shape, const void *data, int32_t device,
                              pgc_tensor **output);
int32_t pgc_to_host(pgc_tensor *tensor, void *target, uint64_t bytes);
const pg_tensor *pgc_describe(const pgc_tensor *tensor);
int32_t pgc_device_of(const pgc_tensor *tensor);
void *pgc_data(pgc_tensor *tensor);
uint64_t pgc_storage_id(const pgc_tensor *tensor);
uint64_t pgc_version_of(const pgc_tensor *tensor);
int32_t pgc_is_graph_tensor(const pgc_tensor *tensor);
uint64_t pgc_tag(const pgc_tensor *tensor);
void pgc_set_tag(pgc_tensor *tensor, uint64_t tag);
const char *pgc_dim_name(int64_t dimension);
int32_t pgc_dim_add(int64_t a, int64_t b, int64_t *result);
int32_t pgc_dim_mul(int64_t a, int64_t b, int64_t *result);
int32_t pgc_dim_div(int64_t a, int64_t b, int64_t *result);
int32_t pgc_dim_max(int64_t a, int64_t b, int64_t *result);
int32_t pgc_assign(pgc_tensor *target, pgc_tensor *source);
int32_t pgc_requires_grad(const pgc_tensor *tensor);
int32_t pgc_set_requires_grad(pgc_tensor *tensor, int32_t on);
int32_t pgc_is_leaf(const pgc_tensor *tensor);
int32_t pgc_grad_of(pgc_tensor *tensor, pgc_tensor **output);
int32_t pgc_set_grad(pgc_tensor *tensor, pgc_tensor *gradient);
void pgc_clear_grads(pgc_tensor *const *tensors, uint32_t count);
int32_t pgc_detach(pgc_tensor *tensor, pgc_tensor **output);
int32_t pgc_backward(pgc_tensor *const *roots, pgc_tensor *const *seeds, uint32_t root_count, int32_t retain_graph,
                             int32_t create_graph);
int32_t pgc_gradients(pgc_tensor *const *roots, pgc_tensor *const *seeds, uint32_t root_count,
                              pgc_tensor *const *inputs, uint32_t input_count, int32_t retain_graph,
    int32_t create_graph,
                              pgc_tensor **gradients);
typedef struct pgc_pass pgc_pass;
int32_t pgc_custom(pgc_tensor *const *inputs, uint32_t input_count, pgc_tensor *const *outputs,
                   uint32_t output_count, uint32_t flags, pgc_tensor **made, uint64_t *number);
int32_t pgc_hook(pgc_tensor *tensor, uint64_t *number);
void pgc_unhook(uint64_t number);
int32_t pgc_retain_grad(pgc_tensor *tensor);
uint32_t pgc_forgotten(uint64_t *numbers, uint32_t room);
int32_t pgc_leaves(pgc_tensor *const *tensors, uint32_t tensor_count, pgc_tensor *const *except,
                   uint32_t except_count, pgc_tensor **leaves, uint32_t room, uint32_t *count);
pgc_pass *pgc_paused(void);
uint64_t pgc_pass_number(const pgc_pass *pass);
int32_t pgc_pass_needed(pgc_pass *pass, uint32_t input);
int32_t pgc_pass_creates_graph(const pgc_pass *pass);
int32_t pgc_pass_cotangent(pgc_pass *pass, uint32_t output, pgc_tensor **cotangent);
int32_t pgc_pass_output(pgc_pass *pass, pgc_tensor *saved, uint32_t output, pgc_tensor **linked);
int32_t pgc_pass_unchanged(const pgc_pass *pass, const pgc_tensor *tensor, int32_t output, uint32_t index);
int32_t pgc_pass_go_on(pgc_pass *pass, pgc_tensor *const *gradients, pgc_tensor **results);
void pgc_pass_abandon(pgc_pass *pass);
int32_t pgc_manual_seed(uint64_t seed);
int32_t pgc_rng_state(uint64_t *seed, uint64_t *offset);
int32_t pgc_set_rng_state(uint64_t seed, uint64_t offset);
const char *pgc_layer_json(const char *name);
const char *pgc_layer_names_json(void);
int32_t pgc_find_layer(const char *name, uint32_t *layer);
int32_t pgc_layer_parameters(uint32_t layer, void *attrs, pgc_tensor *input, pg_param *params);
int32_t pgc_layer_call(uint32_t layer, const void *attrs, int32_t training, const char *path,
                               pgc_tensor *const *params, pgc_tensor *const *inputs, pgc_tensor **outputs);
const char *pgc_optimizer_json(const char *name);
const char *pgc_optimizer_names_json(void);
int32_t pgc_find_optimizer(const char *name, uint32_t *optimizer);
int32_t pgc_optimizer_slots(uint32_t optimizer, const void *attrs, uint64_t *mask);
int32_t pgc_optimizer_step(uint32_t optimizer, const void *attrs, uint64_t step, uint32_t count,
                                   pgc_tensor *const *params, pgc_tensor *const *gradients, pgc_tensor *const *state);
typedef struct pgc_file pgc_file;
int32_t pgc_read(const char *path, const char *options, pgc_file **output);
int32_t pgc_read_as(const char *path, const char *extension, const char *options, pgc_file **output);
int32_t pgc_read_bytes(const char *extension, const void *bytes, uint64_t size, const char *options, pgc_file **output);
uint32_t pgc_file_count(const pgc_file *file);
const char *pgc_file_name(const pgc_file *file, uint32_t index);
pgc_tensor *pgc_file_tensor(const pgc_file *file, uint32_t index);
const char *pgc_file_note(const pgc_file *file, const char *key);
const char *pgc_file_note_key(const pgc_file *file, uint32_t index);
void pgc_file_close(pgc_file *file);
int32_t pgc_write(const char *path, uint32_t count, const char *const *names, pgc_tensor *const *tensors,
                          uint32_t note_count, const char *const *notes);
int32_t pgc_write_sealed(const char *stem, const char *extension, uint32_t count, const char *const *names,
                                 pgc_tensor *const *tensors, uint32_t note_count, const char *const *notes,
                                 uint64_t *checksum);
const char *pgc_codecs_json(void);
const char *pgc_codec_of(const void *head, uint64_t size);
int32_t pgc_probe(const char *codec, const char *path, const void *bytes, uint64_t size, pg_coded_info *info);
int32_t pgc_encode(const char *codec, pgc_tensor *tensor, uint32_t note_count, const char *const *notes,
                           const char **bytes, uint64_t *size);
int32_t pgc_write_bytes(const char *path, const void *bytes, uint64_t size);
int32_t pgc_remove_unfinished(const char *folder, const char *prefix);
int32_t pgc_checksum(const char *path, uint64_t *checksum);
int32_t pgc_make_folder(const char *path);
const char *pgc_folder_names(const char *path);
int32_t pgc_graph_create(pgc_graph **output);
int32_t pgc_graph_set_device(pgc_graph *graph, int32_t device);
void pgc_graph_release(pgc_graph *graph);
int32_t pgc_graph_placeholder(pgc_graph *graph, const char *name, uint32_t dtype, uint32_t rank, const int64_t *shape,
                                      const char *const *symbols, pgc_tensor **output);
int32_t pgc_graph_variable(pgc_graph *graph, const char *name, pgc_tensor *value, pgc_tensor **output);
int32_t pgc_graph_variable_beside(pgc_graph *graph, const char *name, pgc_tensor *value, pgc_tensor *beside,
                                  pgc_tensor **output);
int32_t pgc_graph_constant(pgc_graph *graph, const char *name, pgc_tensor *value, pgc_tensor **output);
int32_t pgc_graph_set_name(pgc_graph *graph, pgc_tensor *tensor, const char *name);
int32_t pgc_graph_call(pgc_graph *graph, const char *class_name, uint32_t count, pgc_tensor *const *tensors,
                       const char *const *names);
int32_t pgc_graph_variable_of(pgc_graph *graph, pgc_tensor *tensor, pgc_tensor **output);
uint32_t pgc_graph_written(pgc_graph *graph);
int32_t pgc_graph_after_writes(pgc_graph *graph, pgc_tensor *tensor, uint32_t index, pgc_tensor *also,
                               pgc_tensor **output);
void pgc_graph_settle(pgc_graph *graph);
void pgc_graph_forget_writes(pgc_graph *graph, uint32_t index);
uint32_t pgc_graph_node_count(pgc_graph *graph);
int32_t pgc_graph_bind(pgc_graph *graph, uint32_t first, const char *attr, pgc_tensor *value, uint32_t *count);
int32_t pgc_graph_source_at(pgc_graph *graph, uint32_t index, pgc_tensor **output);
int32_t pgc_graph_knows(pgc_graph *graph, pgc_tensor *tensor);
int32_t pgc_graph_variable_at(pgc_graph *graph, uint32_t index, pgc_tensor **output);
uint64_t pgc_graph_revision(pgc_graph *graph);
const char *pgc_graph_name(pgc_tensor *tensor);
int32_t pgc_graph_find(pgc_graph *graph, const char *name, pgc_tensor **output);
const char *pgc_graph_text(pgc_graph *graph);
const char *pgc_graph_dot(pgc_graph *graph);
const char *pgc_graph_document(pgc_graph *graph);
int32_t pgc_graph_read(const char *document, uint32_t count, const char *const *names, pgc_tensor *const *contents,
                       int32_t device, const char *shown, pgc_graph **output);
int32_t pgc_body_create(pgc_graph *around, pgc_graph **output);
int32_t pgc_body_argument(pgc_graph *body, const char *name, pgc_tensor *like, int32_t step, int32_t differentiable,
                                  pgc_tensor **output, pgc_tensor **twin);
int32_t pgc_body_take(pgc_graph *body, pgc_tensor *tensor, pgc_tensor **output);
int32_t pgc_body_taken(pgc_graph *body, uint32_t index, pgc_tensor **outer, pgc_tensor **inner);
const char *pgc_control_name(pgc_graph *graph, const char *wanted);
typedef struct pgc_control_form {
  uint32_t kind, input_count, carries, steps, body_count;
  int32_t reverse;
  int64_t length, most;
  const char *name;
  pgc_tensor *const *inputs;
  pgc_graph *const *bodies;
  const char *const *body_names;
  const uint32_t *result_counts;
  pgc_tensor *const *arguments;
  pgc_tensor *const *results;
} pgc_control_form;
int32_t pgc_control(pgc_graph *graph, const pgc_control_form *form, pgc_tensor **outputs, uint32_t *node);
int32_t pgc_control_keep(pgc_graph *graph, uint32_t node, uint32_t body, pgc_tensor *inner, pgc_tensor **output);
int32_t pgc_control_read(pgc_graph *graph, uint32_t node, pgc_control_form *form);
pgc_graph *pgc_control_body(pgc_graph *graph, uint32_t node, uint32_t body, const char **name, uint32_t *results);
int32_t pgc_control_input(pgc_graph *graph, uint32_t node, uint32_t input, pgc_tensor **output);
int32_t pgc_control_argument(pgc_graph *graph, uint32_t node, uint32_t body, uint32_t input, pgc_tensor **output);
int32_t pgc_control_result(pgc_graph *graph, uint32_t node, uint32_t body, uint32_t index, pgc_tensor **output);
typedef struct pgc_hung_node {
  uint64_t number;
  pgc_graph *graph;
  uint32_t node, first, count, inputs;
  int32_t lost;
  const char *name;
} pgc_hung_node;
int32_t pgc_graph_hung(pgc_graph *graph, uint32_t index, pgc_hung_node *what);
pgc_graph *pgc_graph_of(pgc_tensor *tensor);
void pgc_graph_key(pgc_tensor *tensor, uint64_t key[3]);
int32_t pgc_graph_after(pgc_graph *graph, pgc_tensor *const *tensors, uint32_t count, uint32_t *before);
void pgc_graph_after_end(pgc_graph *graph, uint32_t before);
int32_t pgc_session_create(pgc_graph *graph, uint32_t flags, pgc_session **output);
void pgc_session_release(pgc_session *session);
int32_t pgc_session_contents(pgc_session *session, const char *name, pgc_tensor **output);
const char *pgc_session_placement(pgc_session *session);
const char *pgc_session_plan(pgc_session *session);
int32_t pgc_session_run(pgc_session *session, pgc_tensor *const *fetches, uint32_t fetch_count,
                                pgc_tensor *const *feeds, pgc_tensor *const *values, uint32_t feed_count,
                                pgc_tensor **results);
int32_t pgc_partial_create(pgc_session *session, pgc_tensor *const *fetches, uint32_t fetch_count,
                                   pgc_tensor *const *feeds, uint32_t feed_count, pgc_partial **output);
int32_t pgc_partial_run(pgc_partial *partial, pgc_tensor *const *fetches, uint32_t fetch_count,
                                pgc_tensor *const *feeds, pgc_tensor *const *values, uint32_t feed_count,
                                pgc_tensor **results);
void pgc_partial_release(pgc_partial *partial);
int32_t pgc_session_assign(pgc_session *session, pgc_tensor *variable, pgc_tensor *value);
int32_t pgc_compiled_create(pgc_compiled **output);
void pgc_compiled_release(pgc_compiled *compiled);
void pgc_compiled_fuse(pgc_compiled *compiled, int32_t fuse);
void pgc_compiled_capture(pgc_compiled *compiled, int32_t capture);
int32_t pgc_compiled_begin(pgc_compiled *compiled, int32_t *entered);
void pgc_compiled_pause(pgc_compiled *compiled);
void pgc_compiled_go_on(pgc_compiled *compiled);
int32_t pgc_compiled_end(pgc_compiled *compiled);
void pgc_compiled_abort(pgc_compiled *compiled);
void pgc_compiled_freezes(pgc_compiled *compiled, int32_t layouts);
int32_t pgc_compiled_freeze(pgc_compiled *compiled, pgc_tensor *const *arguments, uint32_t argument_count,
                            pgc_tensor *const *results, uint32_t result_count, uint8_t *made, pgc_frozen **output);
void pgc_frozen_release(pgc_compiled *compiled, pgc_frozen *frozen);
int32_t pgc_frozen_run(pgc_compiled *compiled, pgc_frozen *frozen, pgc_tensor *const *arguments, pgc_tensor **results,
                       int32_t *ran);
const char *pgc_compiled_json(pgc_compiled *compiled);

typedef struct pgc_stage pgc_stage;
typedef struct pgc_run pgc_run;
typedef struct pgc_workers pgc_workers;
typedef struct pgc_exchange pgc_exchange;
typedef struct pgc_leaf {
  pgc_tensor *tensor;
  double number;
  const char *text;
  uint64_t bytes;
} pgc_leaf;
typedef struct pgc_element {
  uint64_t layout;
  const char *text;
  uint32_t count;
  const pgc_leaf *leaves;
} pgc_element;
int32_t pgc_stage_window(pgc_stage *parent, int64_t count, int64_t modulo, int64_t step, int64_t offset,
                                 pgc_stage **output);
int32_t pgc_stage_shuffle(pgc_stage *parent, uint32_t seed, uint32_t epoch, int64_t buffer, pgc_stage **output);
int32_t pgc_stage_zip(pgc_stage *const *parents, uint32_t count, pgc_stage **output);
int32_t pgc_stage_batch(pgc_stage *parent, int64_t size, int32_t drop_last, pgc_stage **output);
int32_t pgc_stage_map(pgc_stage *parent, uint32_t function, uint64_t seed, uint64_t epoch, pgc_stage **output);
typedef struct pgc_skips pgc_skips;
int32_t pgc_skips_create(const char *what, pgc_skips **output);
void pgc_skips_release(pgc_skips *skips);
int32_t pgc_skips_add(pgc_skips *skips, int64_t position, const char *message);
int64_t pgc_skips_count(const pgc_skips *skips);
const char *pgc_skips_message(const pgc_skips *skips, int64_t index);
int32_t pgc_stage_map_or_skip(pgc_stage *parent, uint32_t function, uint64_t seed, uint64_t epoch, pgc_skips *skips,
  pgc_stage **output);
int32_t pgc_stage_or_skip(pgc_stage *parent, pgc_skips *skips, pgc_stage **output);
int32_t pgc_stage_filter(pgc_stage *parent, uint32_t function, uint64_t seed, uint64_t epoch, pgc_stage **output);
int32_t pgc_stage_mix(pgc_stage *parent, uint32_t seed, uint32_t epoch, int64_t buffer, pgc_stage **output);
int32_t pgc_stage_repeat(pgc_stage *parent, int64_t times, pgc_stage **output);
int32_t pgc_stage_device(pgc_stage *parent, int32_t device, pgc_stage **output);
const char *pgc_source_json(const char *name);
const char *pgc_source_names_json(void);
const char *pgc_transform_json(const char *name);
const char *pgc_transform_names_json(void);
typedef struct pgc_option_tensor {
  const char *option;
  const char *name;
  pgc_tensor *tensor;
} pgc_option_tensor;
int32_t pgc_stage_source(const char *name, const void *attrs, const pgc_option_tensor *tensors, uint32_t count,
                                 const char *shown, pgc_stage **output);
typedef struct pgc_transform pgc_transform;
int32_t pgc_transform_open(const char *name, const void *attrs, const pgc_option_tensor *tensors, uint32_t count,
                                   const char *shown, uint64_t number, pgc_transform **output);
void pgc_transform_release(pgc_transform *transform);
int32_t pgc_transform_apply(pgc_transform *transform, uint64_t seed, uint64_t epoch, int64_t position,
                                    const char *layout, uint64_t bytes, const pgc_leaf *leaves, uint32_t count,
                                    pgc_element *element);
int32_t pgc_stage_transform(pgc_stage *parent, pgc_transform *transform, uint64_t seed, uint64_t epoch,
                                    pgc_stage **output);
typedef struct pgc_cache pgc_cache;
int32_t pgc_cache_create(const char *path, const char *identity, pgc_cache **output);
void pgc_cache_release(pgc_cache *cache);
int64_t pgc_cache_count(const pgc_cache *cache);
int32_t pgc_cache_get(pgc_cache *cache, int64_t position, pgc_element *element);
int32_t pgc_cache_put(pgc_cache *cache, int64_t position, int64_t count, const char *layout, uint64_t bytes,
                              const pgc_leaf *leaves, uint32_t leaf_count);
int32_t pgc_stage_cache(pgc_stage *parent, pgc_cache *cache, pgc_stage **output);
uint64_t pgc_checksum_bytes(const char *bytes, uint64_t size);
int32_t pgc_checksum_tensor(pgc_tensor *tensor, uint64_t *checksum);
int64_t pgc_stage_count(const pgc_stage *stage);
int32_t pgc_stage_in_order(const pgc_stage *stage);
int32_t pgc_stage_get(pgc_stage *stage, int64_t position, pgc_element *element);
void pgc_stage_release(pgc_stage *stage);
int32_t pgc_draw_order(int64_t n, uint32_t seed, uint32_t epoch, int64_t buffer, int64_t *positions);
int64_t pgc_draw_step(uint32_t seed, uint32_t epoch, int64_t i, int64_t reach);
typedef struct pgc_feeds pgc_feeds;
typedef struct pgc_request {
  uint32_t source, time;
  int64_t position;
} pgc_request;
int32_t pgc_feeds_create(pgc_feeds **output);
void pgc_feeds_release(pgc_feeds *feeds);
int32_t pgc_stage_feed(pgc_feeds *feeds, uint32_t source, int64_t count, int32_t in_order, pgc_stage **output);
int32_t pgc_feeds_next(pgc_feeds *feeds, pgc_request *request);
int32_t pgc_feeds_answer(pgc_feeds *feeds, const pgc_request *request, const char *layout, uint64_t bytes,
                                 const pgc_leaf *leaves, uint32_t count);
int32_t pgc_feeds_fail(pgc_feeds *feeds, const pgc_request *request, const char *message);
typedef struct pgc_worker {
  int32_t (*call)(uint32_t function, void *exchange);
  void (*close)(void *state);
  void *state;
} pgc_worker;
int32_t pgc_workers_create(const pgc_worker *list, uint32_t count, pgc_workers **output);
void pgc_workers_release(pgc_workers *workers);
int32_t pgc_exchange_take(pgc_exchange *exchange, pgc_element *element);
int32_t pgc_exchange_answer(pgc_exchange *exchange, const char *layout, uint64_t bytes, const pgc_leaf *leaves,
                                    uint32_t count);
int32_t pgc_exchange_fail(pgc_exchange *exchange, const char *message);
typedef struct pgc_pace {
  uint32_t threads, capacity;
  int32_t tunes_threads, tunes_capacity;
  uint64_t memory;
} pgc_pace;
int32_t pgc_run_start(pgc_stage *stage, int64_t first, const pgc_pace *pace, pgc_workers *workers,
                              pgc_feeds *feeds, pgc_run **output);
typedef struct pgc_run_state {
  uint32_t threads, capacity;
  uint64_t element_bytes, given, starved, starved_ns, blocked_ns, run_ns;
} pgc_run_state;
int32_t pgc_run_look(pgc_run *run, pgc_run_state *state);
typedef struct pgc_times pgc_times;
int32_t pgc_times_create(pgc_times **output);
void pgc_times_release(pgc_times *times);
void pgc_times_look(pgc_times *times, int64_t *elements, int64_t *own, int64_t *waited);
int32_t pgc_stage_timed(pgc_stage *stage, pgc_times *times, pgc_stage **output);
int32_t pgc_stage_noted(pgc_stage *stage, const char *name, const char *line, pgc_stage **output);
int32_t pgc_run_next(pgc_run *run, pgc_element *element);
int32_t pgc_run_close(pgc_run *run);
void pgc_run_release(pgc_run *run);
uint32_t pgc_run_threads(void);

typedef struct perigee_size {
  int64_t dimension;
} perigee_size;

typedef struct perigee_handle {
  pgc_tensor *ptr;
  uint32_t slot;
  double kept;
} perigee_handle;
typedef struct perigee_slots {
  pgc_tensor **ptrs;
  int32_t *free;
  int32_t top, capacity;
  uint64_t limit;
  int32_t scoped;
} perigee_slots;
typedef struct perigee_timespec {
  int64_t seconds, nanoseconds;
} perigee_timespec;
typedef struct lua_State lua_State;
lua_State *luaL_newstate(void);
void luaL_openlibs(lua_State *L);
int luaL_loadbuffer(lua_State *L, const char *text, size_t bytes, const char *name);
void lua_pushlstring(lua_State *L, const char *text, size_t bytes);
const char *lua_tolstring(lua_State *L, int index, size_t *bytes);
double lua_tonumber(lua_State *L, int index);
int lua_pcall(lua_State *L, int arguments, int results, int handler);
void lua_close(lua_State *L);
int perigee_setenv(const char *name, const char *value, int overwrite) __asm__("setenv");
int perigee_isatty(int descriptor) __asm__("isatty");
typedef struct perigee_winsize {
  uint16_t rows, columns, width, height;
} perigee_winsize;
int perigee_ioctl(int descriptor, unsigned long request, perigee_winsize *size) __asm__("ioctl");
int perigee_clock(int clock, perigee_timespec *time) __asm__("clock_gettime");
int perigee_sleep(const perigee_timespec *time, perigee_timespec *left) __asm__("nanosleep");
]]
