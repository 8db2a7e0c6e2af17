// SPDX-License-Identifier: Apache-2.0
// State of the calling thread that operators depend on.
#pragma once

#include <cstdint>

#include "perigee/plugin.h"

namespace perigee {

struct Graph;
struct Autocast;
struct Condition;
class Device;
class ItemLog;
class LaunchLog;
class CaptureLog;
class Profile;

struct Ambient {
  bool grad_enabled = true;
  bool detect_anomaly = false;        // the first operator that makes NaN or Inf fails (call/anomaly.hpp)
  bool log_placement = false;         // a line for every operator: where it runs
  volatile bool interrupted = false;  // the next call from outside is to say so; set by signal handlers
  bool last_resort = false;           // memory is short and the front end has released what it could
  int32_t device = -1;                // explicit placement; -1: none
  int32_t usual = -1;                 // where eager code makes what no scope decides about; -1: the processor
  bool derived = false;               // what is recorded follows from something else: no scope is the script's wish
  uint32_t stream = 0;
  uint32_t default_dtype = PG_F32;
  const char* origin = nullptr;      // where the front end calls operators from, if it is asked to say; interned
  const char* layer = nullptr;       // of a plugin, that is being called: "Net.blocks.0 (Conv2d)"; interned
  Graph* graph = nullptr;            // recording into it
  const char* name_scope = nullptr;  // what names of recorded things begin with: "encoder/attention"; interned
  const Autocast* autocast = nullptr;
  Condition* condition = nullptr;  // of a step that may have to be skipped
  ItemLog* items = nullptr;        // of a compiled function that runs (tensor/watch.hpp)
  LaunchLog* launches = nullptr;   // while one of its items is recorded
  CaptureLog* capture = nullptr;   // while a plan's launches are captured (device/captured.hpp)
  Profile* profile = nullptr;      // of this thread, if one is under way (base/profile.hpp)
  Device* bound_for = nullptr;  // where a pipeline's batch goes next: it is made in memory that this device copies from
  uint64_t* taken = nullptr;    // of a pipeline's thread: bytes of memory that it has taken, given back or not
};

// Asked for several times by every operator: the model saves a call each time, and costs a few bytes of static space.
extern constinit thread_local Ambient thread_ambient __attribute__((tls_model("initial-exec")));
inline Ambient& ambient() { return thread_ambient; }

// Sets one member for the life of a scope.
template <class T>
class Scoped {
 public:
  Scoped(T& place, T value) : place_(place), old_(place) { place = value; }
  ~Scoped() { place_ = old_; }
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;

 private:
  T& place_;
  T old_;
};

}  // namespace perigee
