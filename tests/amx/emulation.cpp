// SPDX-License-Identifier: Apache-2.0
// Preloaded, it gives a process on a processor with AVX-512 the bfloat16 and tile instructions that are missing: CPUID
// names them (Linux lets a process trap CPUID), and each, illegal as it is, is carried out here in its stead. It takes
// microseconds an instruction and is there to see that they are used, and rightly; not to time them.
// Source of encodings and semantics: Intel, Software Developer's Manual, volume 2, and Architecture Instruction Set
// Extensions (AMX-TILE, AMX-BF16, AVX512_BF16).
#include <cpuid.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr long kSetCpuid = 0x1012, kGetXcompPerm = 0x1022, kReqXcompPerm = 0x1023;  // of arch_prctl
constexpr unsigned kTileState = 3u << 17;        // XCR0: the tiles' configuration and data
constexpr unsigned kOtherState = 0xE7;           // XCR0: x87, SSE, AVX, AVX-512
constexpr unsigned kNone = 0, kF3 = 2, kF2 = 3;  // a VEX or EVEX prefix's pp
constexpr unsigned kRows = 16, kRowBytes = 64, kTiles = 8;

long kernel(long number, const std::array<long, 6>& a) {
  register long r10 asm("r10") = a[3];
  register long r8 asm("r8") = a[4];
  register long r9 asm("r9") = a[5];
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

long trap_cpuid(bool trapped) { return kernel(SYS_arch_prctl, {kSetCpuid, !trapped, 0, 0, 0, 0}); }

[[noreturn]] void stop(const char* why) {
  std::fprintf(stderr, "amx emulation: %s\n", why);
  std::abort();
}

// ---- CPUID ----

struct Leaf {
  unsigned a, b, c, d;
};

Leaf described(unsigned leaf, unsigned sub) {
  Leaf r{};
  trap_cpuid(false);
  __cpuid_count(leaf, sub, r.a, r.b, r.c, r.d);
  trap_cpuid(true);
  if (leaf == 0 && r.a < 0x1E) r.a = 0x1E;
  if (leaf == 7 && sub == 0) {
    if (r.a < 1) r.a = 1;
    r.d |= 1u << 22 | 1u << 24;  // AMX-BF16, AMX-TILE
  }
  if (leaf == 7 && sub == 1) r.a |= 1u << 5;  // AVX512_BF16
  if (leaf == 0xD && sub == 0) r.a |= kTileState;
  if (leaf == 0x1D && sub == 0) r = {1, 0, 0, 0};  // palettes
  if (leaf == 0x1D && sub == 1)
    r = {kRows * kRowBytes << 16 | kTiles * kRows * kRowBytes, kTiles << 16 | kRowBytes, kRows, 0};
  if (leaf == 0x1E && sub == 0) r = {0, kRowBytes << 8 | kRows, 0, 0};
  return r;
}

void on_fault(int signal, siginfo_t*, void* context) {
  constexpr greg_t kGeneralProtection = 13;
  greg_t* regs = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  auto* code = reinterpret_cast<const uint8_t*>(regs[REG_RIP]);
  if (regs[REG_TRAPNO] != kGeneralProtection || code[0] != 0x0F || code[1] != 0xA2) {
    std::signal(signal, SIG_DFL);  // it faults again, and ends the process
    return;
  }
  Leaf r = described(static_cast<unsigned>(regs[REG_RAX]), static_cast<unsigned>(regs[REG_RCX]));
  regs[REG_RAX] = r.a;
  regs[REG_RBX] = r.b;
  regs[REG_RCX] = r.c;
  regs[REG_RDX] = r.d;
  regs[REG_RIP] += 2;
}

// ---- the interrupted thread ----

enum Part { kSse = 1, kAvx = 2, kOpmask = 5, kZmmUpper = 6, kZmm16To31 = 7, kParts = 8 };  // of what XSAVE writes
std::array<unsigned, kParts> part_offset;
constexpr std::array<unsigned, kParts> kPartBytes{0, 256, 256, 0, 0, 64, 512, 1024};

union Vector {
  float f[16];
  uint16_t h[32];
  uint32_t w[16];
  uint8_t quarter[4][16];
};

class Thread {
 public:
  explicit Thread(mcontext_t& context) : regs_(context.gregs), state_(reinterpret_cast<uint8_t*>(context.fpregs)) {}

  uint64_t general(unsigned i) const {
    static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return static_cast<uint64_t>(regs_[kOrder[i]]);
  }

  uint64_t mask(unsigned k) {
    uint64_t bits;
    std::memcpy(&bits, part(kOpmask) + 8 * k, 8);
    return bits;
  }

  Vector read(unsigned reg) {
    Vector v;
    for (unsigned q = 0; q < 4; q++) std::memcpy(v.quarter[q], quarter(reg, q), 16);
    return v;
  }

  void write(unsigned reg, const Vector& v) {
    for (unsigned q = 0; q < 4; q++) std::memcpy(quarter(reg, q), v.quarter[q], 16);
  }

 private:
  uint8_t* part(Part p) {
    constexpr size_t kHeader = 512;  // its first word tells which parts are written; the others are zero
    uint64_t written;
    std::memcpy(&written, state_ + kHeader, 8);
    uint8_t* at = state_ + part_offset[p];
    if (written >> p & 1) return at;
    std::memset(at, 0, kPartBytes[p]);
    written |= 1u << p;
    std::memcpy(state_ + kHeader, &written, 8);
    return at;
  }

  uint8_t* quarter(unsigned reg, unsigned q) {
    if (reg >= 16) return part(kZmm16To31) + 64 * (reg - 16) + 16 * q;
    if (q >= 2) return part(kZmmUpper) + 32 * reg + 16 * (q - 2);
    return part(q == 0 ? kSse : kAvx) + 16 * reg;
  }

  greg_t* regs_;
  uint8_t* state_;
};

// An operand in memory and the instruction's end. A tile's rows lie `stride` apart, elsewhere that is the index.
struct Operand {
  uint64_t address, stride;
  const uint8_t* end;
};

// `at`: the ModRM byte; `b`, `x`: what extends base and index; an 8-bit displacement counts `unit` bytes.
Operand operand(const Thread& thread, const uint8_t* at, unsigned b, unsigned x, int unit) {
  unsigned mod = *at >> 6, rm = *at & 7;
  at++;
  Operand o{};
  int displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
  bool relative = mod == 0 && rm == 5;
  if (rm == 4) {
    unsigned scale = *at >> 6, index = (*at >> 3 & 7) | x << 3, base = *at & 7;
    at++;
    if (index != 4) o.stride = thread.general(index) << scale;
    if (mod == 0 && base == 5)
      displacement = 4;
    else
      o.address = thread.general(base | b << 3);
  } else if (relative) {
    displacement = 4;
  } else {
    o.address = thread.general(rm | b << 3);
  }
  int32_t offset = 0;
  if (displacement == 1) offset = static_cast<int8_t>(*at) * unit;
  if (displacement == 4) std::memcpy(&offset, at, 4);
  o.end = at + displacement;
  if (relative) o.address = reinterpret_cast<uint64_t>(o.end);
  o.address += static_cast<uint64_t>(static_cast<int64_t>(offset));
  return o;
}

// ---- AMX ----

struct Tiles {
  std::array<uint8_t, 64> config;
  uint8_t data[kTiles][kRows][kRowBytes];  // zero beyond a tile's rows and columns

  unsigned rows(unsigned t) const { return config[48 + t]; }
  unsigned row_bytes(unsigned t) const { return config[16 + 2 * t]; }
};
thread_local Tiles tiles;

void configure(const void* from) {
  tiles = {};
  if (from) std::memcpy(tiles.config.data(), from, tiles.config.size());
  if (tiles.config[0] > 1) stop("no such palette");
  if (tiles.config[0] == 0) tiles = {};
}

void load(unsigned t, const Operand& o) {
  std::memset(tiles.data[t], 0, sizeof tiles.data[t]);
  for (unsigned r = 0; r < tiles.rows(t); r++)
    std::memcpy(tiles.data[t][r], reinterpret_cast<const void*>(o.address + r * o.stride), tiles.row_bytes(t));
}

void store(unsigned t, const Operand& o) {
  for (unsigned r = 0; r < tiles.rows(t); r++)
    std::memcpy(reinterpret_cast<void*>(o.address + r * o.stride), tiles.data[t][r], tiles.row_bytes(t));
}

// A row's pairs of bfloat16, apart.
struct Pairs {
  float even[kRows], odd[kRows];

  explicit Pairs(const uint8_t* row) {
    for (unsigned i = 0; i < kRows; i++) {
      uint32_t pair;
      std::memcpy(&pair, row + 4 * i, 4);
      even[i] = std::bit_cast<float>(pair << 16);
      odd[i] = std::bit_cast<float>(pair & 0xFFFF0000u);
    }
  }
};

// TDPBF16PS: even and odd products are summed apart, then together, then into the tile.
void multiply(unsigned to, unsigned a, unsigned b) {
  unsigned pairs = tiles.row_bytes(a) / 4, columns = tiles.row_bytes(to) / 4;
  for (unsigned m = 0; m < tiles.rows(to); m++) {
    Pairs left(tiles.data[a][m]);
    float even[kRows] = {}, odd[kRows] = {}, sum[kRows];
    for (unsigned k = 0; k < pairs; k++) {
      Pairs right(tiles.data[b][k]);
      for (unsigned n = 0; n < kRows; n++) even[n] = std::fma(left.even[k], right.even[n], even[n]);
      for (unsigned n = 0; n < kRows; n++) odd[n] = std::fma(left.odd[k], right.odd[n], odd[n]);
    }
    std::memcpy(sum, tiles.data[to][m], kRowBytes);
    for (unsigned n = 0; n < kRows; n++) sum[n] += even[n] + odd[n];
    std::memcpy(tiles.data[to][m], sum, size_t{4} * columns);
  }
}

// What follows the instruction at `code`; null where it is none of AMX: VEX, map 0F38, W0, 128 bits.
const uint8_t* tile_instruction(Thread& thread, const uint8_t* code) {
  if (code[0] != 0xC4 || (code[1] & 0x1F) != 2 || (code[2] & 0x84) != 0) return nullptr;
  unsigned b = !(code[1] & 0x20), x = !(code[1] & 0x40);
  unsigned prefix = code[2] & 3, third = ~(code[2] >> 3) & 15, op = code[3], t = code[4] >> 3 & 7, second = code[4] & 7;
  if (code[4] >= 0xC0) {  // registers alone
    if (op == 0x49 && prefix == kNone)
      configure(nullptr);
    else if (op == 0x49 && prefix == kF2)
      std::memset(tiles.data[t], 0, sizeof tiles.data[t]);
    else if (op == 0x5C && prefix == kF3)
      multiply(t, second, third);
    else
      return nullptr;
    return code + 5;
  }
  Operand o = operand(thread, code + 4, b, x, 1);
  if (op == 0x49 && prefix == kNone)
    configure(reinterpret_cast<const void*>(o.address + o.stride));
  else if (op == 0x49)
    std::memcpy(reinterpret_cast<void*>(o.address + o.stride), &tiles.config, sizeof tiles.config);
  else if (op == 0x4B && prefix == kF3)
    store(t, o);
  else if (op == 0x4B && prefix != kNone)
    load(t, o);
  else
    return nullptr;
  return o.end;
}

// ---- AVX512_BF16 ----

float widened(uint16_t half) { return std::bit_cast<float>(static_cast<uint32_t>(half) << 16); }

uint16_t narrowed(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  if ((bits & 0x7F800000u) == 0) return static_cast<uint16_t>(bits >> 16 & 0x8000);  // denormals count as zero
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// Likewise: EVEX, map 0F38, W0.
const uint8_t* vector_instruction(Thread& thread, const uint8_t* code) {
  if (code[0] != 0x62 || (code[1] & 7) != 2 || (code[2] & 0x80) != 0) return nullptr;
  unsigned prefix = code[2] & 3, op = code[4], modrm = code[5];
  bool dot = op == 0x52 && prefix == kF3;   // VDPBF16PS
  bool one = op == 0x72 && prefix == kF3;   // VCVTNEPS2BF16
  bool both = op == 0x72 && prefix == kF2;  // VCVTNE2PS2BF16
  if (!dot && !one && !both) return nullptr;
  unsigned b = !(code[1] & 0x20), x = !(code[1] & 0x40);
  unsigned to = (modrm >> 3 & 7) | !(code[1] & 0x80) << 3 | !(code[1] & 0x10) << 4;
  unsigned other = (~(code[2] >> 3) & 15) | !(code[3] & 8) << 4;
  unsigned lanes = 4u << (code[3] >> 5 & 3), k = code[3] & 7;  // of 32 bits
  bool zeroing = code[3] & 0x80, broadcast = code[3] & 0x10;
  Vector second{}, first = thread.read(other), old = thread.read(to), result{};
  const uint8_t* end = code + 6;
  if (modrm >= 0xC0) {
    second = thread.read((modrm & 7) | b << 3 | x << 4);
  } else {
    Operand o = operand(thread, code + 5, b, x, broadcast ? 4 : static_cast<int>(4 * lanes));
    end = o.end;
    auto* from = reinterpret_cast<const uint8_t*>(o.address + o.stride);
    for (unsigned i = 0; i < lanes; i++) std::memcpy(&second.w[i], from + (broadcast ? 0 : 4 * i), 4);
  }
  uint64_t mask = k ? thread.mask(k) : ~uint64_t{0};
  for (unsigned i = 0; dot && i < lanes; i++) {
    float sum = std::fma(widened(first.h[2 * i + 1]), widened(second.h[2 * i + 1]), old.f[i]);
    result.f[i] = std::fma(widened(first.h[2 * i]), widened(second.h[2 * i]), sum);
    if (!(mask >> i & 1)) result.w[i] = zeroing ? 0 : old.w[i];
  }
  for (unsigned i = 0; !dot && i < (both ? 2 : 1) * lanes; i++) {
    result.h[i] = narrowed(i < lanes ? second.f[i] : first.f[i - lanes]);
    if (!(mask >> i & 1)) result.h[i] = zeroing ? 0 : old.h[i];
  }
  thread.write(to, result);
  return end;
}

void on_illegal(int signal, siginfo_t*, void* context) {
  mcontext_t& machine = static_cast<ucontext_t*>(context)->uc_mcontext;
  Thread thread(machine);
  auto* code = reinterpret_cast<const uint8_t*>(machine.gregs[REG_RIP]);
  constexpr unsigned kDenormalsAreZero = 0x8040;  // and results flushed to zero, as both families have it
  _mm_setcsr(_mm_getcsr() | kDenormalsAreZero);   // the thread's own comes back with its registers
  const uint8_t* end = tile_instruction(thread, code);
  if (!end) end = vector_instruction(thread, code);
  if (end)
    machine.gregs[REG_RIP] = reinterpret_cast<greg_t>(end);
  else
    std::signal(signal, SIG_DFL);
}

[[gnu::constructor]] void begin() {
  for (Part part : {kAvx, kOpmask, kZmmUpper, kZmm16To31}) {
    Leaf r{};
    __cpuid_count(0xD, part, r.a, r.b, r.c, r.d);
    part_offset[part] = r.b;
  }
  part_offset[kSse] = 160;
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  action.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &action, nullptr);
  action.sa_sigaction = on_illegal;
  sigaction(SIGILL, &action, nullptr);
  if (trap_cpuid(true) != 0) stop("the kernel does not trap CPUID here");
}

}  // namespace

// oneDNN asks Linux for the tiles' state by it.
extern "C" [[gnu::visibility("default")]] long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  std::array<long, 6> a;
  for (long& x : a) x = va_arg(list, long);
  va_end(list);
  if (number == SYS_arch_prctl && a[0] == kReqXcompPerm) return 0;
  if (number == SYS_arch_prctl && a[0] == kGetXcompPerm) {
    *reinterpret_cast<uint64_t*>(a[1]) = kOtherState | kTileState;
    return 0;
  }
  long result = kernel(number, a);
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}
