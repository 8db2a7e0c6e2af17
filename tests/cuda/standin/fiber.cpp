// SPDX-License-Identifier: Apache-2.0
#include "fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulator {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStackBytes = 512 << 10;
#else
constexpr size_t kStackBytes = 128 << 10;
#endif

#if defined(__SANITIZE_ADDRESS__)
Fiber* left = nullptr;  // last
#endif

}  // namespace

#if defined(__x86_64__)

// Pushes what a function must preserve, stores the stack pointer, takes the other's, pops and returns there.
extern "C" void perigee_fiber_switch(void** store, void* load);
asm(R"(
.text
.hidden perigee_fiber_switch
.globl perigee_fiber_switch
.type perigee_fiber_switch, @function
perigee_fiber_switch:
  .cfi_startproc
  endbr64
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .cfi_endproc
.size perigee_fiber_switch, .-perigee_fiber_switch
)");

namespace {
void* first_stack_pointer(char* stack, size_t bytes, FiberEntry entry) {
  auto* top = reinterpret_cast<void**>(stack + bytes);
  *--top = nullptr;  // returns to nowhere, and finds the stack aligned as a called function does
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; i++) *--top = nullptr;
  return top;
}
void switch_stacks(void** store, void* load) { perigee_fiber_switch(store, load); }
}  // namespace

#else

namespace {
void* first_stack_pointer(char* stack, size_t bytes, FiberEntry entry) {
  auto* context = new ucontext_t;  // as long as the fiber, which lives as long as the process
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = bytes;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}
void switch_stacks(void** store, void* load) {
  if (*store == nullptr) *store = new ucontext_t;
  swapcontext(static_cast<ucontext_t*>(*store), static_cast<ucontext_t*>(load));
}
}  // namespace

#endif

Fiber::Fiber(FiberEntry entry) : bytes_(kStackBytes) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* mapped = mmap(nullptr, bytes_ + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED || mprotect(static_cast<char*>(mapped) + page, bytes_, PROT_READ | PROT_WRITE) != 0) {
    std::perror("cuda emulator: a fiber's stack");
    std::abort();
  }
  mapped_ = static_cast<char*>(mapped);
  bottom_ = mapped_ + page;
  stack_pointer_ = first_stack_pointer(mapped_ + page, bytes_, entry);
}

Fiber::~Fiber() {
  if (mapped_ != nullptr) munmap(mapped_, bytes_ + static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

#if defined(__SANITIZE_ADDRESS__)

// On the stack that was switched to; tells whose bounds were not known before.
void Fiber::arrived(void* fake_stack) {
  const void* bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(fake_stack, &bottom, &bytes);
  if (left->mapped_ == nullptr) left->bottom_ = bottom, left->bytes_ = bytes;
}
void Fiber::switch_from(Fiber& from) {
  left = &from;
  __sanitizer_start_switch_fiber(&from.fake_stack_, bottom_, bytes_);
  switch_stacks(&from.stack_pointer_, stack_pointer_);
  arrived(from.fake_stack_);
}

#else

void Fiber::arrived(void*) {}
void Fiber::switch_from(Fiber& from) { switch_stacks(&from.stack_pointer_, stack_pointer_); }

#endif

void Fiber::entered() { arrived(nullptr); }

}  // namespace emulator
