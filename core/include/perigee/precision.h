/* SPDX-License-Identifier: Apache-2.0
 *
 * perigee/precision.h: what plugin.h's numeric classes and input flags were joined by for mixed precision. C, and without
 * a need for plugin.h.
 *
 * What autocast does with the 16 and 32 bit float inputs that an operator reads:
 *   PG_NUMERIC_KEEP    nothing
 *   PG_NUMERIC_LOWER   casts them to the scope's dtype
 *   PG_NUMERIC_FLOAT32 casts 16 bits to float32
 *   PG_NUMERIC_WIDEST  casts all to the widest among them: for operators that want one dtype and do not promote
 */
#ifndef PERIGEE_PRECISION_H
#define PERIGEE_PRECISION_H

#define PG_NUMERIC_WIDEST 3u

/* An optional input, the last, one bool: where it is given and true, the kernel writes into none of its inputs. The host
 * fills it in while a step must not happen if gradients overflowed (loss scaling), so that nobody waits for the device to
 * know. Operators that write and have no such input are then decided by the host, which does wait. */
#define PG_INPUT_CONDITION 64u

#endif
