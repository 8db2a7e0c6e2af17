// SPDX-License-Identifier: Apache-2.0
// Memory of small objects that come and go by the thousand: a collector frees them in bulk, which general allocators
// answer by merging and splitting. Each thread keeps what it freed in a list, up to a bound.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace perigee {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t most_recycled = 0;  // a sanitizer must see every object come and go
#else
constexpr size_t most_recycled = 1 << 16;
#endif

// Base of classes whose objects are recycled. Derived classes of other sizes than T itself are not.
template <class T>
class Recycled {
 public:
  static void* operator new(size_t bytes) {
    List& l = list;
    if (l.first == nullptr || bytes != sizeof(T)) return ::operator new(bytes);
    Link* link = l.first;
    l.first = link->next;
    l.count--;
    return link;
  }
  static void operator delete(void* memory, size_t bytes) {
    List& l = list;
    if (bytes != sizeof(T) || l.count >= most_recycled) {
      ::operator delete(memory);
      return;
    }
    if (l.count == 0) owner.touch();  // the thread's end gives back what is left
    l.first = new (memory) Link{l.first};
    l.count++;
  }

 private:
  struct Link {
    Link* next;
  };
  struct List {
    Link* first = nullptr;
    size_t count = 0;
  };
  struct Owner {
    void touch() {}
    ~Owner() {
      while (list.first != nullptr) ::operator delete(std::exchange(list.first, list.first->next));
      list.count = most_recycled;  // what still dies later on this thread is freed at once
    }
  };
  static inline constinit thread_local List list __attribute__((tls_model("initial-exec"))){};
  static inline thread_local Owner owner;
};

}  // namespace perigee
