-- SPDX-License-Identifier: Apache-2.0
-- Classes that loops make, for the reference: `texts` of layers by class, `losses` by class: the function's name,
-- `aliases`: layers under a second name.

return { texts = {}, losses = {}, aliases = { Dense = "Linear" } }
