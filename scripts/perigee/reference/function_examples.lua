-- SPDX-License-Identifier: Apache-2.0
-- Examples of functions that are no operators by themselves, by the name users type. Most are one expression, which is
-- printed; what is more stands in program_examples.lua.

local M = "pg.tensor{{1, 2}, {3, 4}}" -- a matrix
local IMAGE = "pg.arange(16):reshape(1, 1, 4, 4)"
local LABELS = [[pg.tensor({0, 2, 2}, {dtype="int64"})]]

local prints = {
  -- made
  zeros = "pg.zeros{2, 3}", ones = "pg.ones{2, 2, dtype=\"int64\"}", full = "pg.full({2, 2}, 7)", eye = "pg.eye(2)",
  tensor = "pg.tensor{{1, 2}, {3, 4}}", linspace = "pg.linspace(0, 1, 5)", empty = "pg.empty{2, 3}.shape",
  rand = "pg.rand{2, 3}.shape", randn = "pg.randn{2, 3}.shape", zeros_like = "pg.zeros_like(pg.rand{3})",
  ones_like = "pg.ones_like(pg.rand{3})", full_like = "pg.full_like(pg.rand{3}, 7)",
  empty_like = "pg.empty_like(pg.rand{3}).shape", rand_like = "pg.rand_like(pg.ones{3}).shape",
  randn_like = "pg.randn_like(pg.ones{3}).shape", randint_like = "pg.randint_like(pg.ones{3}, 0, 10).shape",
  indices = "pg.arange(10)[pg.indices{1, 3}]", is_tensor = "pg.is_tensor(pg.ones{1}), pg.is_tensor(1)",
  get_default_dtype = "pg.get_default_dtype()", is_grad_enabled = "pg.is_grad_enabled()",
  -- products
  mm = M .. ":mm(pg.eye(2))", mv = M .. ":mv(pg.tensor{1, 10})", dot = "pg.tensor{1, 2}:dot(pg.tensor{3, 4})",
  inner = "pg.inner(pg.tensor{1, 2}, " .. M .. ")", outer = "pg.outer(pg.tensor{1, 2}, pg.tensor{3, 4})",
  bmm = "pg.bmm(pg.ones{2, 1, 3}, pg.ones{2, 3, 2})", kron = "pg.kron(pg.eye(2), pg.tensor{{1, 2}})",
  addmm = "pg.addmm(pg.ones{2, 2}, " .. M .. ", pg.eye(2), {beta=10})",
  baddbmm = "pg.baddbmm(pg.zeros{1, 1, 1}, pg.ones{1, 1, 3}, pg.ones{1, 3, 1})",
  bilinear = "pg.bilinear(pg.tensor{{1, 2}}, pg.tensor{{3}}, pg.ones{1, 2, 1})",
  cross = "pg.cross(pg.tensor{1, 0, 0}, pg.tensor{0, 1, 0})",
  einsum = "pg.einsum(\"ij,j->i\", " .. M .. ", pg.ones{2})",
  tensordot = "pg.tensordot(" .. M .. ", " .. M .. ", {axes=1})",
  cosine_similarity = "pg.cosine_similarity(pg.tensor{{1, 0}}, pg.tensor{{1, 1}})",
  pairwise_distance = "pg.pairwise_distance(pg.tensor{{0, 0}}, pg.tensor{{3, 4}})",
  normalize = "pg.normalize(pg.tensor{{3, 4}})", trace = M .. ":trace()",
  ["linalg.norm"] = "pg.linalg.norm(pg.tensor{3, 4})",
  ["linalg.vector_norm"] = "pg.linalg.vector_norm(pg.tensor{3, 4})",
  ["linalg.matrix_norm"] = "pg.linalg.matrix_norm(" .. M .. ")", norm = "pg.tensor{3, 4}:norm()",
  -- compared, counted, ordered
  max = M .. ":max(), " .. M .. ":max(1)", min = M .. ":min()", argmax = M .. ":argmax{axis=2}",
  argmin = M .. ":argmin()",
  aminmax = M .. ":aminmax()", allclose = "pg.ones{2}:allclose(pg.ones{2} + 1e-9)",
  equal = "pg.ones{2}:equal(pg.ones{2})",
  isclose = "pg.isclose(pg.tensor{1, 2}, pg.tensor{1, 3})", isin = "pg.isin(pg.tensor{1, 2, 3}, pg.tensor{1, 3})",
  bincount = LABELS .. ":bincount()", histc = "pg.tensor{0, 1, 1, 3}:histc(3, 0, 3)",
  bucketize = "pg.bucketize(pg.tensor{0.5, 2.5}, pg.tensor{1, 2, 3})",
  searchsorted = "pg.searchsorted(pg.tensor{1, 2, 3}, pg.tensor{0.5, 2.5})",
  quantile = "pg.tensor{1, 2, 3, 4}:quantile(0.5)", msort = "pg.tensor{3, 1, 2}:msort()",
  unique = "pg.tensor{2, 1, 2}:unique()", unique_consecutive = "pg.tensor{1, 1, 2, 1}:unique_consecutive()",
  var_mean = "pg.tensor{1, 2, 3}:var_mean()", std_mean = "pg.tensor{1, 2, 3}:std_mean()",
  diff = "pg.tensor{1, 4, 9}:diff()", trapezoid = "pg.trapezoid(pg.tensor{1, 2, 3})",
  softmin = "pg.tensor{1, 2}:softmin(1)",
  -- arranged
  stack = "pg.stack({pg.tensor{1, 2}, pg.tensor{3, 4}}, 1)", hstack = "pg.hstack{pg.tensor{1}, pg.tensor{2, 3}}",
  vstack = "pg.vstack{pg.tensor{1, 2}, pg.tensor{3, 4}}", dstack = "pg.dstack{pg.tensor{1}, pg.tensor{2}}",
  column_stack = "pg.column_stack{pg.tensor{1, 2}, pg.tensor{3, 4}}",
  block_diag = "pg.block_diag{pg.ones{1, 1}, pg.ones{2, 2}}",
  cartesian_prod = "pg.cartesian_prod{pg.tensor{1, 2}, pg.tensor{3, 4}}",
  meshgrid = "pg.meshgrid(pg.tensor{1, 2}, pg.tensor{3, 4})",
  broadcast_tensors = "pg.broadcast_tensors(pg.tensor{1, 2}, pg.zeros{2, 1})",
  broadcast_to = "pg.broadcast_to(pg.tensor{1, 2}, {2, 2})", split = "unpack(pg.arange(5):split(2))",
  chunk = "unpack(pg.arange(6):chunk(3))",
  tensor_split = "unpack(pg.arange(5):tensor_split(2))",
  unbind = "unpack(" .. M .. ":unbind())", flatten = M .. ":flatten()",
  ravel = M .. ":ravel()",
  unflatten = "pg.arange(6):unflatten(1, {2, 3})", transpose = M .. ":transpose(1, 2)", t = M .. ":t()",
  swapaxes = M .. ":swapaxes(1, 2)",
  moveaxis = "pg.ones{2, 3, 4}:moveaxis(1, 3).shape",
  row_stack = "pg.row_stack{pg.tensor{1, 2}, pg.tensor{3, 4}}",
  movedim = "pg.ones{2, 3, 4}:movedim(1, 3).shape", flip = "pg.arange(3):flip(1)", fliplr = M .. ":fliplr()",
  flipud = M .. ":flipud()", roll = "pg.arange(4):roll(1)", rot90 = M .. ":rot90()", tile = "pg.tensor{1, 2}:tile(2)",
  repeat_interleave = "pg.tensor{1, 2}:repeat_interleave(2)", diag = "pg.diag(pg.tensor{1, 2})",
  diag_embed = "pg.tensor{1, 2}:diag_embed()", tril = M .. ":tril()", triu = M .. ":triu()",
  detach = "pg.ones{2}:detach()",
  pad = "pg.tensor{1, 2}:pad({1, 1}, {mode=\"replicate\"})", narrow = "pg.arange(5):narrow(1, 2, 3)",
  select = M .. ":select(1, 2)", one_hot = LABELS .. ":one_hot(3)",
  -- by index
  take = "pg.take(" .. M .. ", pg.tensor({0, 3}, {dtype=\"int64\"}))",
  take_along = "pg.take_along(" .. M .. ", pg.tensor({{1}, {0}}, {dtype=\"int64\"}), {axis=2})",
  put = "pg.put(pg.zeros{2, 2}, pg.tensor({1}, {dtype=\"int64\"}), pg.tensor{5})",
  index_add = "pg.zeros{3}:index_add(" .. LABELS .. ", pg.ones{3}, 1)",
  index_copy = "pg.zeros{3}:index_copy(pg.tensor({2}, {dtype=\"int64\"}), pg.tensor{5}, 1)",
  index_fill = "pg.zeros{3}:index_fill(pg.tensor({2}, {dtype=\"int64\"}), 7, 1)",
  masked_scatter = "pg.zeros{3}:masked_scatter(pg.tensor{true, false, true}, pg.tensor{1, 2})",
  masked_fill = "pg.tensor{1, 2}:masked_fill(pg.tensor{true, false}, 0)",
  masked_select = "pg.tensor{1, 2}:masked_select(pg.tensor{true, false})",
  select_scatter = M .. ":select_scatter(pg.zeros{2}, 1, 2)",
  -- images and neural networks
  im2col = "pg.im2col(" .. IMAGE .. ", 2, {stride=2}).shape",
  col2im = "pg.col2im(pg.ones{1, 4, 4}, {4, 4}, 2, {stride=2}).shape",
  pixel_shuffle = "pg.pixel_shuffle(pg.rand{1, 4, 2, 2}, 2).shape",
  pixel_unshuffle = "pg.pixel_unshuffle(" .. IMAGE .. ", 2).shape",
  channel_shuffle = "pg.channel_shuffle(pg.arange(4):reshape(1, 4, 1), 2):flatten()",
  interpolate = "pg.interpolate(pg.tensor{{{1, 2}}}, {scale_factor=2})",
  lp_pool1d = "pg.lp_pool1d(pg.tensor{{3, 4}}, 2, 2)",
  lp_pool2d = "pg.lp_pool2d(pg.rand{1, 4, 4}, 2, 2).shape",
  local_response_norm = "pg.local_response_norm(pg.ones{1, 2, 2}, 2)",
  group_norm = "pg.group_norm(pg.tensor{{1, 3, 2, 6}}, 2)", instance_norm = "pg.instance_norm(pg.tensor{{{1, 3}}})",
  affine_grid = "pg.affine_grid(pg.tensor{{{1, 0, 0}, {0, 1, 0}}}, {1, 1, 2, 2}).shape",
  grid_sample = "pg.grid_sample(pg.ones{1, 1, 2, 2}, pg.zeros{1, 1, 1, 2})",
  embedding_bag = "pg.embedding_bag(" .. M .. ", pg.tensor({{0, 1}}, {dtype=\"int64\"}), {mode=\"sum\"})",
  ["nn.unfold"] = "nn.unfold(" .. IMAGE .. ", 2, {stride=2}).shape",
  ["nn.fold"] = "nn.fold(pg.ones{1, 4, 4}, {4, 4}, 2, {stride=2}).shape",
  ["nn.is_layer"] = "nn.is_layer(nn.ReLU{}), nn.is_layer(1)",
  ["nn.is_parameter"] = "nn.is_parameter(nn.Linear{2, 1}.weight)",
  ["nn.init.constant_"] = "nn.init.constant_(pg.empty{2}, 3)", ["nn.init.zeros_"] = "nn.init.zeros_(pg.empty{2})",
  ["nn.init.ones_"] = "nn.init.ones_(pg.empty{2})",
  ["nn.init.uniform_"] = "nn.init.uniform_(pg.empty{2, 3}, -1, 1).shape",
  ["nn.init.normal_"] = "nn.init.normal_(pg.empty{2, 3}, 0, 0.1).shape",
  ["nn.init.xavier_uniform_"] = "nn.init.xavier_uniform_(pg.empty{2, 4}):abs():max():le(1)",
  ["nn.init.xavier_normal_"] = "nn.init.xavier_normal_(pg.empty{2, 4}).shape",
  ["nn.init.kaiming_uniform_"] = "nn.init.kaiming_uniform_(pg.empty{2, 4}, {nonlinearity=\"relu\"}).shape",
  ["nn.init.kaiming_normal_"] = "nn.init.kaiming_normal_(pg.empty{2, 4}, {nonlinearity=\"relu\"}).shape",
  ["data.is_dataset"] = "data.is_dataset(data.range(3))", ["amp.is_autocast_enabled"] = "amp.is_autocast_enabled()",
  ["amp.get_autocast_dtype"] = "amp.autocast({dtype=\"bfloat16\"}, amp.get_autocast_dtype)",
}

local methods = {
  numel = "pg.ones{2, 3}:numel()", dim = "pg.ones{2, 3}:dim()", size = "pg.ones{2, 3}:size(1)",
  stride = "table.concat(pg.ones{2, 3}:stride(), \" \")",
  item = "pg.tensor{7}:item()", totable = "pg.tensor{1, 2}:totable()[2]", has_shape = "pg.ones{2, 3}:has_shape{2, 3}",
  is_contiguous = M .. ":t():is_contiguous()", contiguous = M .. ":t():contiguous():is_contiguous()", mT = M .. ":mT()",
  view = M .. ":view(4)", view_as = M .. ":view_as(pg.ones{4})", reshape_as = M .. ":reshape_as(pg.ones{4})",
  expand_as = "pg.tensor{1, 2}:expand_as(pg.ones{2, 2})", to = "pg.tensor{1.5}:to(\"int64\")",
  cpu = "pg.ones{1}:cpu().device",
  float = LABELS .. ":float()", double = LABELS .. ":double()", half = LABELS .. ":half()",
  long = "pg.tensor{1.5}:long()",
  int = "pg.tensor{1.5}:int()", copy_ = "pg.zeros{2}:copy_(pg.tensor{1, 2})", fill_ = "pg.zeros{2}:fill_(7)",
  zero_ = "pg.ones{2}:zero_()",
  positions = LABELS .. ":positions()[3]", uniform_ = "pg.empty{2}:uniform_().shape",
  normal_ = "pg.empty{2}:normal_().shape",
  exponential_ = "pg.empty{2}:exponential_().shape", random_ = "pg.empty{2}:random_(0, 10).shape",
  clamp_ = "pg.tensor{-1, 2}:clamp_(0, 1)", where = "pg.tensor{true, false}:where(pg.ones{2}, 0)",
}

local list = {}
for name, code in pairs(prints) do
  local whole = "print(" .. code .. ")"
  list[name:find("%.") and name or "pg." .. name] = whole
  if not name:find("%.") then list["tensor:" .. name] = whole end
end
for name, code in pairs(methods) do list["tensor:" .. name] = "print(" .. code .. ")" end
return list
