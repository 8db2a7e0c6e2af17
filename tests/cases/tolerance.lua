-- SPDX-License-Identifier: Apache-2.0
-- The one table of tolerances: by operator class and dtype, relative to the larger of the expected element and
-- (for classes that add up) the largest expected element of the tensor.

local float64, float32, bfloat16, float16 = 2 ^ -52, 2 ^ -23, 2 ^ -7, 2 ^ -10 -- distance of numbers at 1

local function times(n, wide) return { float64 = n * float64, float32 = (wide or n) * float32,
                                       bfloat16 = bfloat16, float16 = float16 } end

return {
  -- Copies, comparisons, choices: no rounding at all.
  exact = { float64 = 0, float32 = 0, bfloat16 = 0, float16 = 0 },
  -- One rounding.
  arithmetic = times(2),
  -- Library functions and compositions of a few; vectorised approximations in float32.
  function_ = times(16, 8),
  -- Sums: relative to the largest element, as terms cancel.
  sum = { float64 = 32 * float64, float32 = 32 * float32, bfloat16 = bfloat16, float16 = float16, scaled = true },
  -- Several rounded tensors are combined: normalisation, losses.
  composed = { float64 = 64 * float64, float32 = 64 * float32, bfloat16 = 2 * bfloat16, float16 = 2 * float16,
               scaled = true },
  -- Gradients against references that are differences themselves; only their float64 entry is wide.
  differences = { float64 = 1e-7, float32 = 64 * float32, bfloat16 = 2 * bfloat16, float16 = 2 * float16,
                  scaled = true },
}
