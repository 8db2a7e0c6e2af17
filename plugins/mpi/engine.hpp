// SPDX-License-Identifier: Apache-2.0
// The world of processes, groups of them, and calls in progress.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "peers.hpp"
#include "reductions.hpp"
#include "room.hpp"
#include "sums.hpp"

namespace mpi {

// One that is over is used again.
struct Request {
  uint64_t id = 0;
  std::vector<MPI_Request> handles;  // MPI's, by call
  std::vector<MPI_Status> statuses;
  std::vector<int64_t> receives;  // elements that a receive expects, by handle; -1: none
  std::vector<pg_collective> calls;
  std::vector<std::unique_ptr<Sum>> sums;  // ours, of calls whose handle is MPI_REQUEST_NULL; the first sum_count
  size_t sum_count = 0;
  std::string what;                      // "all_reduce"
  uint64_t number = 0;                   // of the group's calls that all make; 0: a send or receive
  double begun = 0, late = 0, look = 0;  // seconds; late: its deadline, or 0
  bool told = false;                     // the others know that this rank has come to it
  void clear();
  Sum& add_sum();
};

// "I have come to call `number`, all_reduce of 3 float32", sent by those who wait for long.
struct Arrived {
  uint64_t number;
  char what[120];
};

struct Group {
  std::vector<int> ranks;  // of the world
  int rank = 0;
  MPI_Comm comm = MPI_COMM_NULL;  // of what users send, and of MPI's collectives
  MPI_Comm own = MPI_COMM_NULL;   // the same ranks, for sums and what ranks tell each other
  uint64_t calls = 0;
  std::unique_ptr<Room> room;                      // where all are of one machine
  std::vector<std::unique_ptr<Request>> requests;  // in their order
  std::map<int, Arrived> arrived;                  // by rank: the last it said
};

class Engine {
 public:
  ~Engine();  // leaves the world, together with all others
  pg_world world();
  uint64_t create(const pg_group_info& info, double deadline);
  void destroy(uint64_t group);
  uint64_t submit(uint64_t group, uint32_t count, const pg_collective* const* calls);
  bool wait(uint64_t group, uint64_t request, double seconds);  // false: not yet
  void leave(const char* reason);
  void peers(uint64_t group, uint32_t count, uint32_t* states);

 private:
  void join();
  Group& find(uint64_t group);
  void begin(Group& group, Request& request, const pg_collective& call);
  void begin_sum(Group& group, Request& request, const pg_collective& call, int count, const Reduction& reduction);
  void advance_sums(const std::string& what);
  bool is_over(Request& request);
  void take_messages(const std::string& what);
  bool wait_long(Group& group, Request& request, double seconds);
  void finish(Group& group, Request& request);
  void look(Group& group, Request& request, double now);
  void tell(Group& group, Request& request);
  std::vector<int> find_absent(Group& group, const Request& request, std::string& elsewhere);
  struct Making;  // of a group, until its deadline
  MPI_Comm copy(MPI_Comm from, const Making& making);
  MPI_Comm make_some(const Making& making);
  std::unique_ptr<Room> make_room(const Group& group, const Making& making);
  void meet(const Making& making);
  void complete(MPI_Request request, const Making& making);
  [[noreturn]] void give_up_making(const Making& making);
  void check_peers(const std::vector<int>& ranks, const std::string& what);
  std::string absent_text(const std::vector<int>& absent);
  void say_last(const std::string& reason);
  [[noreturn]] void give_up(int32_t code, const std::string& what, const std::string& why);
  [[noreturn]] void break_all(int32_t code, const std::string& what, const std::string& why);
  void check(int code, const std::string& what);

  bool started_ = false, left_ = false;
  std::string broken_;  // why nothing can be called any more
  int rank_ = 0, size_ = 1;
  MPI_Comm control_ = MPI_COMM_NULL;
  std::vector<Process> processes_;
  std::map<uint64_t, std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<Request>> spare_;
  std::vector<Sum*> sums_;  // of all groups, that are not over
  std::string last_words_;  // what the others are told stays until it has left
  uint64_t last_group_ = 0, last_request_ = 0;
};

}  // namespace mpi
