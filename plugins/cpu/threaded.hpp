// SPDX-License-Identifier: Apache-2.0
// Threaded vector code: a program is a list of steps, each of which works on the tile of numbers that lies in all
// vector registers that a call can pass (the accumulator) and calls the next one with it. No step returns before the
// last has: what costs memory traffic otherwise, a result between two operators, stays in registers. Further operands
// lie in memory, as tiles of the loop's own (slots, constants) or as the tensors themselves.
//
// Numbers are words: of 4 bytes (float, and int32_t for the smaller integers and truth values) or of 8 (double,
// int64_t); a program is of one width.
#pragma once

#include "simd.hpp"

namespace cpu {

constexpr int kTileOperands = 224;
constexpr int64_t kTileMost = 256;  // bytes of a tile at most
constexpr int kWidths = 2;

// Element i of the block lies at + i * step; step 0: a tile, the same for all of the block.
struct TileOperand {
  char* at;
  int64_t step;
};

struct TileFrame {
  int64_t index;           // of the tile's first element in the block
  const char* parameters;  // of steps: words side by side
  TileOperand operand[kTileOperands];
};

using TileHandler = void (*)();  // of simd/threaded.cpp's own type

struct TileStep {
  TileHandler run;
  TileHandler loop;    // of a step that goes through a loop of simd.hpp: that
  uint16_t a, b;       // operands
  uint32_t parameter;  // bytes into the frame's parameters
};

// Steps that are not there are NULL.
struct Threaded {
  int64_t tile[kWidths];  // elements
  TileHandler load[kStorageCount][kWidths], store[kStorageCount][kWidths], past[kStorageCount][kWidths];
  TileHandler widen[kStorageCount][kWidths];         // operand b becomes words of operand a
  TileHandler keep;                                  // operand a becomes the accumulator
  TileHandler round[kStorageCount][kWidths];         // to what a storage type holds
  TileHandler to_float[kWidths], to_truth[kWidths];  // a whole number as a float; a float: whether it is not 0
  // By primitive and type of the arithmetic; operands are the accumulator, a, b. Results are of that type, or truth
  // values: 0 or 1.
  TileHandler primitive[kPrimitiveCount][kComputeCount];
  TileHandler reversed[kPrimitiveCount][kComputeCount];  // of two operands: a, the accumulator
  TileHandler end;
  // Runs a program over `tiles` whole tiles of a block.
  void (*run)(const TileStep* program, TileFrame* frame, int64_t tiles, int64_t tile);
};

// Of the instruction set that `simd` is of. The loop that a step of a costly primitive goes through stands in the step.
const Threaded& threaded();
// The loop of a primitive for TileStep::loop; NULL: the step needs none, or the primitive is not defined for the type.
TileHandler tile_loop(Primitive p, Compute c);

}  // namespace cpu
