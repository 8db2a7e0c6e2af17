/* SPDX-License-Identifier: Apache-2.0
 *
 * c_api_test [PLUGINS]: perigee.h as a front end in C uses it, and its error paths: each failing call answers a code
 * and a message, and leaves everything usable.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perigee.h"

static int failures;
static int32_t cpu = -1;

static void check(int holds, const char* what, int line) {
  if (holds) return;
  failures++;
  printf("c_api_test.c:%d: %s does not hold (last error: %s)\n", line, what, pgc_error()->message);
}
#define CHECK(condition) check((condition), #condition, __LINE__)
#define FAILS(call, expected, text)                      \
  do {                                                   \
    CHECK((call) == (expected));                         \
    CHECK(pgc_error()->code == (expected));              \
    CHECK(strstr(pgc_error()->message, (text)) != NULL); \
  } while (0)

static pgc_tensor* tensor(uint32_t dtype, int64_t count, const void* data, int32_t device) {
  pgc_tensor* made = NULL;
  CHECK(pgc_from_host(dtype, 1, &count, data, device, &made) == PG_OK);
  return made;
}

static void test_operators(void) {
  const float values[] = {1, 2, 3};
  float got[3] = {0};
  uint32_t add = 0, neg = 0;
  CHECK(pgc_find_op("add", &add) == PG_OK && pgc_find_op("neg", &neg) == PG_OK);
  FAILS(pgc_find_op("adt", &add), PG_E_NOT_FOUND, "adt");
  CHECK(pgc_op_json("adt") == NULL && strstr(pgc_op_json("add"), "\"add\"") != NULL);
  CHECK(strstr(pgc_op_names_json(), "\"softmax\"") != NULL);
  CHECK(pgc_op_defaults(1u << 30) == NULL);

  pgc_tensor *x = tensor(PG_F32, 3, values, cpu), *short_one = tensor(PG_F32, 2, values, cpu), *y = NULL;
  CHECK(pgc_call2(add, x, x, NULL, &y) == PG_OK);
  CHECK(pgc_to_host(y, got, sizeof got) == PG_OK && got[0] == 2 && got[2] == 6);
  FAILS(pgc_to_host(y, got, 4), PG_E_INVALID_ARGUMENT, "room for 4 bytes; the tensor has 12");
  pgc_tensor* none = NULL;
  FAILS(pgc_call2(add, x, short_one, NULL, &none), PG_E_INVALID_ARGUMENT, "[3]");
  CHECK(none == NULL);

  /* Two references to one tensor: it lives until the second is given back. */
  pgc_retain(y);
  pgc_release(y);
  CHECK(pgc_describe(y)->rank == 1 && pgc_device_of(y) == cpu);
  const float* contents = pgc_data(y);
  CHECK(contents != NULL && contents[1] == 4);

  pgc_tensor* in_place = NULL;
  uint64_t version = pgc_version_of(y);
  CHECK(pgc_call(neg, &y, 1, NULL, NULL, PGC_IN_PLACE, &in_place, 1) == PG_OK);
  CHECK(in_place != NULL && pgc_storage_id(in_place) == pgc_storage_id(y) && pgc_version_of(y) > version);
  pgc_tensor* all[] = {x, short_one, y, in_place};
  pgc_release_many(all, 4);
}

static void test_devices(void) {
  const int32_t values[] = {7, 8};
  int32_t sim = -1, wrong = -1;
  int64_t negative = -2;
  CHECK(pgc_find_device("sim:0", &sim) == PG_OK && sim > 0 && strcmp(pgc_device_name(sim), "sim:0") == 0);
  CHECK(pgc_find_device("nowhere:0", &wrong) != PG_OK && pgc_error()->message[0] != 0);
  CHECK(pgc_device_name(12345) == NULL);
  pgc_tensor *x = tensor(PG_I32, 2, values, sim), *none = NULL;
  int32_t got[2] = {0};
  CHECK(pgc_data(x) == NULL); /* its memory is not the host's */
  CHECK(pgc_to_host(x, got, sizeof got) == PG_OK && got[1] == 8);
  FAILS(pgc_from_host(PG_I32, 1, &negative, values, cpu, &none), PG_E_INVALID_ARGUMENT, "-2");
  CHECK(pgc_from_host(999, 1, &negative, values, cpu, &none) != PG_OK && none == NULL);

  pgc_memory_stats stats;
  CHECK(pgc_get_memory_stats(sim, &stats) == PG_OK && stats.live >= sizeof values);
  CHECK(pgc_live_bytes() >= sizeof values);
  CHECK(pgc_synchronize(-1) == PG_OK);
  CHECK(pgc_get_memory_stats(12345, &stats) != PG_OK);
  CHECK(pgc_set_memory_limit(12345, 1) != PG_OK);
  CHECK(pgc_empty_cache(-1) == PG_OK);
  pgc_release(x);
}

static void test_gradients(void) {
  const double values[] = {2, 3};
  const int64_t integers[] = {1, 2};
  double got[2] = {0};
  uint32_t mul = 0, sum = 0;
  CHECK(pgc_find_op("mul", &mul) == PG_OK && pgc_find_op("sum", &sum) == PG_OK);
  pgc_tensor *x = tensor(PG_F64, 2, values, cpu), *n = tensor(PG_I64, 2, integers, cpu), *y = NULL, *total = NULL;
  pgc_tensor *gradient = NULL, *detached = NULL;
  CHECK(pgc_set_requires_grad(n, 1) != PG_OK);
  FAILS(pgc_set_grad(x, x), PG_E_FAILED_PRECONDITION, "requires gradients");
  CHECK(pgc_set_requires_grad(x, 1) == PG_OK && pgc_requires_grad(x) && pgc_is_leaf(x));
  FAILS(pgc_set_grad(x, n), PG_E_INVALID_ARGUMENT, "expected float64 [2]");
  CHECK(pgc_call2(mul, x, x, NULL, &y) == PG_OK && pgc_call1(sum, y, NULL, &total) == PG_OK);
  CHECK(!pgc_is_leaf(y) && pgc_backward(&total, NULL, 1, 0, 0) == PG_OK);
  CHECK(pgc_grad_of(x, &gradient) == PG_OK && gradient != NULL);
  CHECK(pgc_to_host(gradient, got, sizeof got) == PG_OK && got[0] == 4 && got[1] == 6);
  CHECK(pgc_backward(&total, NULL, 1, 0, 0) != PG_OK && pgc_error()->message[0] != 0); /* what it saved is gone */
  CHECK(pgc_detach(y, &detached) == PG_OK && !pgc_requires_grad(detached));
  pgc_clear_grads(&x, 1);
  pgc_release(gradient);
  CHECK(pgc_grad_of(x, &gradient) == PG_OK && gradient == NULL);
  pgc_tensor* all[] = {x, n, y, total, detached};
  pgc_release_many(all, 5);
}

static void test_graphs_and_modules(void) {
  const char* symbols[] = {"batch"};
  int64_t shape[] = {0}, three = 3;
  const float values[] = {1, 2, 3};
  float got[3] = {0};
  uint32_t neg = 0, unknown = 0;
  pgc_graph* graph = NULL;
  pgc_session* session = NULL;
  pgc_tensor *x = NULL, *y = NULL, *none = NULL, *result = NULL;
  CHECK(pgc_find_op("neg", &neg) == PG_OK && pgc_graph_create(&graph) == PG_OK);
  CHECK(pgc_graph_placeholder(graph, "x", PG_F32, 1, shape, symbols, &x) == PG_OK && pgc_is_graph_tensor(x));
  CHECK(strcmp(pgc_dim_name(pgc_describe(x)->shape[0]), "batch") == 0 && strcmp(pgc_dim_name(3), "3") == 0);
  int64_t batch = pgc_describe(x)->shape[0], size = 0;
  CHECK(pgc_dim_mul(batch, 6, &size) == PG_OK && pgc_dim_add(size, 2, &size) == PG_OK);
  CHECK(strcmp(pgc_dim_name(size), "6*batch + 2") == 0);
  CHECK(pgc_dim_div(size, 2, &size) == PG_OK && strcmp(pgc_dim_name(size), "3*batch + 1") == 0);
  CHECK(pgc_dim_max(4, 3, &size) == PG_OK && size == 4 && pgc_dim_div(batch, 0, &size) == PG_E_INVALID_ARGUMENT);
  pgc_graph* before = pgc_set_graph(graph);
  CHECK(pgc_call1(neg, x, NULL, &y) == PG_OK);
  CHECK(pgc_set_graph(before) == graph);
  CHECK(pgc_graph_set_name(graph, y, "minus") == PG_OK && pgc_graph_find(graph, "minus", &none) == PG_OK);
  pgc_release(none);
  none = NULL;
  CHECK(pgc_graph_find(graph, "plus", &none) != PG_OK && none == NULL);
  FAILS(pgc_to_host(y, got, sizeof got), PG_E_FAILED_PRECONDITION, "tensor of a graph");
  pgc_tensor* value = tensor(PG_F32, three, values, cpu);
  FAILS(pgc_assign(y, value), PG_E_INVALID_ARGUMENT, "cannot be exchanged");
  CHECK(pgc_session_create(graph, 0, &session) == PG_OK);
  CHECK(pgc_session_run(session, &y, 1, NULL, NULL, 0, &result) != PG_OK && result == NULL); /* x is not fed */
  CHECK(pgc_session_run(session, &y, 1, &x, &value, 1, &result) == PG_OK);
  CHECK(pgc_to_host(result, got, sizeof got) == PG_OK && got[2] == -3);
  pgc_release(result);
  pgc_session_release(session);
  pgc_tensor* all[] = {x, y, value};
  pgc_release_many(all, 3);
  pgc_graph_release(graph);

  CHECK(pgc_find_layer("no_such_layer", &unknown) != PG_OK && pgc_find_optimizer("no_such", &unknown) != PG_OK);
  CHECK(pgc_layer_json("no_such_layer") == NULL && pgc_optimizer_json("no_such") == NULL);
}

/* Numbers of nothing, and NULL where something must stand: codes, never the end of the process. */
static void test_nothing(void) {
  const float values[] = {1, 2, 3, 4};
  int64_t three = 3;
  uint32_t add = 0, id = 0;
  int32_t device = 0;
  uint64_t mask = 0;
  pgc_file* file = NULL;
  CHECK(pgc_find_op("add", &add) == PG_OK);
  pgc_tensor *x = tensor(PG_F32, 3, values, cpu), *y = NULL;
  FAILS(pgc_call1(4000, x, NULL, &y), PG_E_INVALID_ARGUMENT, "no operator number 4000");
  FAILS(pgc_call2(999999, x, x, NULL, &y), PG_E_INVALID_ARGUMENT, "no operator number 999999");
  FAILS(pgc_call(4000, &x, 1, NULL, NULL, 0, &y, 1), PG_E_INVALID_ARGUMENT, "no operator number 4000");
  FAILS(pgc_layer_parameters(999, NULL, NULL, NULL), PG_E_INVALID_ARGUMENT, "no layer number 999");
  FAILS(pgc_layer_call(999, NULL, 0, NULL, NULL, NULL, NULL), PG_E_INVALID_ARGUMENT, "no layer number 999");
  FAILS(pgc_optimizer_slots(999, NULL, &mask), PG_E_INVALID_ARGUMENT, "no optimizer number 999");
  FAILS(pgc_optimizer_step(999, NULL, 1, 0, NULL, NULL, NULL), PG_E_INVALID_ARGUMENT, "no optimizer number 999");

  pgc_tensor* four[] = {x, x, x, x};
  uint32_t groups[] = {3, 1}, pair[] = {1, 1};
  FAILS(pgc_call(add, four, 4, groups, NULL, 0, &y, 1), PG_E_INVALID_ARGUMENT, "got 3 tensors for x; it is one");
  FAILS(pgc_call(add, four, 2, pair, NULL, 0xff00, &y, 1), PG_E_INVALID_ARGUMENT, "the flags are 0xff00");
  CHECK(y == NULL && pgc_call(add, four, 2, pair, NULL, 0, &y, 1) == PG_OK);
  pgc_release(y);

  y = NULL;
  FAILS(pgc_from_host(0, 1, &three, values, cpu, &y), PG_E_INVALID_ARGUMENT, "none is no dtype");
  FAILS(pgc_from_host(PG_DTYPE(77, 7), 1, &three, values, cpu, &y), PG_E_INVALID_ARGUMENT, "kind 77 of 7 bits");
  FAILS(pgc_from_host(PG_F32, 1, &three, NULL, cpu, &y), PG_E_INVALID_ARGUMENT, "the data is NULL");
  CHECK(y == NULL);
  FAILS(pgc_find_op(NULL, &id), PG_E_INVALID_ARGUMENT, "the name is NULL");
  FAILS(pgc_find_layer(NULL, &id), PG_E_INVALID_ARGUMENT, "the name is NULL");
  FAILS(pgc_find_optimizer(NULL, &id), PG_E_INVALID_ARGUMENT, "the name is NULL");
  FAILS(pgc_find_device(NULL, &device), PG_E_INVALID_ARGUMENT, "the name is NULL");
  FAILS(pgc_load_plugin(NULL), PG_E_INVALID_ARGUMENT, "the path is NULL");
  FAILS(pgc_add_plugin_path(NULL), PG_E_INVALID_ARGUMENT, "the folder is NULL");
  FAILS(pgc_read(NULL, NULL, &file), PG_E_INVALID_ARGUMENT, "the path is NULL");
  CHECK(pgc_op_json(NULL) == NULL && pgc_layer_json(NULL) == NULL && pgc_optimizer_json(NULL) == NULL);
  pgc_retain(NULL);
  pgc_release(NULL);

  const char *name = "a", *path = "c_api_test.safetensors", *notes[] = {"key", "value"};
  CHECK(pgc_write(path, 1, &name, &x, 1, notes) == PG_OK && pgc_read(path, NULL, &file) == PG_OK);
  CHECK(pgc_file_count(file) == 1 && strcmp(pgc_file_name(file, 0), "a") == 0);
  CHECK(pgc_file_name(file, 1) == NULL && pgc_file_tensor(file, 1) == NULL);
  CHECK(strcmp(pgc_file_note_key(file, 0), "key") == 0 && pgc_file_note_key(file, 1) == NULL);
  CHECK(strcmp(pgc_file_note(file, "key"), "value") == 0 && pgc_file_note(file, "other") == NULL);
  pgc_file_close(file);
  remove(path);
  pgc_release(x);
}

static void test_files(void) {
  pgc_file* file = NULL;
  uint64_t checksum = 0;
  CHECK(pgc_read("/no/such/file.safetensors", NULL, &file) != PG_OK && file == NULL);
  CHECK(pgc_checksum("/no/such/file", &checksum) != PG_OK);
  CHECK(pgc_write_bytes("/no/such/folder/file", "x", 1) != PG_OK);
  CHECK(pgc_folder_names("/no/such/folder") == NULL && pgc_error()->message[0] != 0);
  CHECK(pgc_load_plugin("/no/such/plugin.so") != PG_OK && strstr(pgc_error()->message, "plugin.so") != NULL);
}

/* Settings of the process: each answers what was in force. */
static void test_settings(void) {
  const int32_t threads = pgc_threads();
  FAILS(pgc_set_threads(0), PG_E_INVALID_ARGUMENT, "0 threads; expected at least 1");
  CHECK(pgc_set_threads(threads + 1) == PG_OK && pgc_threads() == threads + 1 && pgc_set_threads(threads) == PG_OK);
  CHECK(pgc_deterministic() == 0 && pgc_set_deterministic(1) == 0 && pgc_deterministic() == 1);
  CHECK(pgc_set_deterministic(1) == 1 && pgc_set_deterministic(0) == 1 && pgc_deterministic() == 0);
}

/* The threads of a product stay in the parent: in the child of fork every operator is an error, and none of them hangs.
 */
static void test_fork(void) {
  enum { side = 256 };
  static float values[side * side];
  const int64_t shape[] = {side, side};
  uint32_t matmul = 0, exp = 0;
  pgc_tensor *x = NULL, *y = NULL;
  CHECK(pgc_set_threads(2) == PG_OK);
  CHECK(pgc_find_op("matmul", &matmul) == PG_OK && pgc_find_op("exp", &exp) == PG_OK);
  CHECK(pgc_from_host(PG_F32, 2, shape, values, cpu, &x) == PG_OK);
  for (int times = 0; times < 2; times++) {
    CHECK(pgc_call2(matmul, x, x, NULL, &y) == PG_OK);
    pgc_release(y);
  }
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    failures = 0;
    pgc_tensor* none = NULL;
    FAILS(pgc_call2(matmul, x, x, NULL, &none), PG_E_FAILED_PRECONDITION, "used after fork");
    FAILS(pgc_call(exp, &x, 1, NULL, NULL, 0, &none, 1), PG_E_FAILED_PRECONDITION, "used after fork");
    CHECK(none == NULL && pgc_to_host(x, values, sizeof values) == PG_OK);
    exit(failures != 0); /* with what runs at exit */
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(pgc_call2(matmul, x, x, NULL, &y) == PG_OK);
  pgc_release(y);
  pgc_release(x);
}

/* Code that asks from one address each: by a call, not by a jump. */
#define CODE_SIZE 255
__attribute__((noinline, aligned(CODE_SIZE + 1))) static int32_t ask_here(int32_t layer) {
  int32_t answer = pgc_profile_site(layer);
  __asm__ volatile("" : "+r"(answer));
  return answer;
}
__attribute__((noinline, aligned(CODE_SIZE + 1))) static int32_t ask_there(int32_t layer) {
  int32_t answer = pgc_profile_site(layer);
  __asm__ volatile("" : "+r"(answer));
  return answer;
}
static const char* origin_of_last(uint32_t neg, pgc_tensor* x, int32_t (*ask)(int32_t), int32_t layer) {
  const pgc_profile_record* records = NULL;
  uint64_t count = 0, lost = 0;
  pgc_tensor* made = NULL;
  CHECK(pgc_call1(neg, x, NULL, &made) == PG_OK);
  if (ask != NULL) CHECK(ask(layer) == 1);
  pgc_release(made);
  CHECK(pgc_profile_stop(&records, &count, &lost) == PG_OK && lost == 0);
  const char* origin = NULL;
  for (uint64_t i = 0; i < count; i++)
    if (records[i].kind == PGC_PROFILE_OP) origin = records[i].origin;
  CHECK(pgc_profile_start(100) == PG_OK);
  return origin;
}

static void test_sites(void) {
  const float value = 1;
  const char *one = pgc_interned("a.lua:1"), *two = pgc_interned("a.lua:2");
  uint32_t neg = 0;
  CHECK(pgc_find_op("neg", &neg) == PG_OK);
  pgc_tensor* x = tensor(PG_F32, 1, &value, cpu);
  CHECK(ask_here(0) == 0); /* nobody knows of sites */
  CHECK(pgc_profile_start(100) == PG_OK && pgc_profile_sites(1) == PG_OK);
  CHECK(ask_here(0) == 0);
  pgc_profile_place(one);
  CHECK(ask_here(0) == 0); /* nothing said that this is compiled code */
  CHECK(pgc_profile_code((const void*)(uintptr_t)ask_here, CODE_SIZE, 1) == PG_OK);
  CHECK(pgc_profile_code((const void*)(uintptr_t)ask_there, CODE_SIZE, 0) == PG_OK);
  CHECK(ask_here(0) == 0);
  pgc_profile_unsure();
  pgc_profile_place(one);
  CHECK(ask_here(0) == 0);
  pgc_profile_place(one);
  CHECK(origin_of_last(neg, x, ask_here, 0) == one);
  CHECK(ask_here(5) == 0); /* in another layer */
  pgc_profile_place(two);
  CHECK(origin_of_last(neg, x, ask_here, 5) == two);
  CHECK(origin_of_last(neg, x, ask_here, 0) == one);
  CHECK(origin_of_last(neg, x, NULL, 0) == NULL);
  CHECK(ask_there(0) == 0); /* its address serves many places */
  pgc_profile_place(one);
  CHECK(ask_there(0) == 0);
  CHECK(pgc_profile_code((const void*)(uintptr_t)ask_here, CODE_SIZE, 1) == PG_OK); /* compiled anew */
  CHECK(ask_here(0) == 0);
  pgc_profile_place(two);
  CHECK(origin_of_last(neg, x, ask_here, 0) == two);
  pgc_profile_offer(one); /* for the interpreter, which called pgc_profile_sites: not for others */
  CHECK(ask_there(1) == 0);
  CHECK(pgc_profile_sites(0) == PG_OK);
  CHECK(ask_here(0) == 0);
  pgc_profile_drop();
  pgc_release(x);
}

int main(int count, char** arguments) {
  if (count > 1) CHECK(pgc_add_plugin_path(arguments[1]) == PG_OK);
  CHECK(pgc_version()[0] != 0);
  FAILS(pgc_synchronize(7), PG_E_INVALID_ARGUMENT, "device number 7"); /* devices come with their first use */
  CHECK(pgc_find_device("cpu", &cpu) == PG_OK);
  test_operators();
  test_devices();
  test_gradients();
  test_graphs_and_modules();
  test_nothing();
  test_files();
  test_settings();
  test_sites();
  test_fork();
  const float one = 1;
  int64_t count_of_one = 1;
  pgc_tensor* late = NULL;
  CHECK(pgc_shutdown() == PG_OK);
  FAILS(pgc_from_host(PG_F32, 1, &count_of_one, &one, cpu, &late), PG_E_FAILED_PRECONDITION, "shut down");
  printf("%s\n", failures == 0 ? "c_api: all held" : "c_api: failed");
  return failures != 0;
}
