-- SPDX-License-Identifier: Apache-2.0
-- What the files of the lower rooms make: functions and values of pg, methods of tensors, what tensors ask for
-- themselves (`index`, `tostring`) and what other files use of native.tensor. A file runs when one of its names is
-- asked for: every collector cycle walks through all that has run. tests/lua/tensor/contents_test.lua compares the
-- lists with what the files define.

return {
  ["tensor.settings"] = "get_default_dtype is_tensor manual_seed set_default_dtype",
  ["tensor.data"] = "indices tensor",
  ["tensor.creation"] = "creators rand_like randint randn_like",
  ["tensor.plain_fill"] = "empty empty_like full full_like ones ones_like zeros zeros_like",
  ["tensor.plain_draws"] = "rand randn randperm",
  ["tensor.plain_ranges"] = "arange eye linspace",
  ["tensor.random"] = "bernoulli_ check_limits exponential_ normal normal_ randint_like random_ uniform_",
  ["tensor.views"] =
    "axis_of contiguous copy_ cpu detach dim double expand_as fill_ flatten float free half has_shape int " ..
    "is_contiguous item item_int64 long mT movedim numel positions reshape_as size stride t to totable transpose " ..
    "view view_as zero_",
  ["tensor.parts"] = "TO_END chunk narrow part place rows select slice slice_axes slice_axis split unbind writer",
  ["tensor.indexing"] = "any_index any_newindex index_put index_put_ newaxis",
  ["tensor.plain_keys"] = "index newindex",
  ["tensor.scatter"] =
    "index_add index_add_ index_copy index_copy_ index_fill index_fill_ masked_scatter masked_scatter_ put put_ " ..
    "scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ take",
  ["tensor.compare"] = "allclose argmax argmin clamp clamp_ equal isclose max min where",
  ["tensor.compose"] =
    "addmm baddbmm bmm diag dot inner masked_fill masked_fill_ masked_select mm mv outer pdist repeat_interleave " ..
    "roll softmin take_along tile",
  ["tensor.arrange"] =
    "block_diag broadcast_tensors broadcast_to cartesian_prod column_stack cross diag_embed dstack fliplr flipud " ..
    "hstack kron meshgrid moveaxis one_hot ravel rot90 row_stack select_scatter swapaxes tensor_split tensordot " ..
    "trace unflatten vstack",
  ["tensor.order"] =
    "bincount bucketize histc isin median msort nanmedian quantile searchsorted unique unique_consecutive",
  ["tensor.reductions"] = "aminmax diff norm std_mean trapezoid var_mean",
  ["tensor.pad"] = "pad",
  printing = "set_printoptions tostring",
  ["neural.functions"] =
    "batch_norm bilinear cosine_similarity group_norm instance_norm layer_norm normalize pairwise_distance rms_norm " ..
    "scaled_dot_product_attention",
  ["neural.bags"] = "embedding_bag",
  ["neural.windows"] =
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d " ..
    "adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d col2im conv1d conv1d_activation conv2d conv2d_activation " ..
    "conv3d conv3d_activation conv_transpose1d conv_transpose2d conv_transpose3d im2col local_response_norm " ..
    "lp_pool1d lp_pool2d max_pool1d max_pool2d max_pool3d",
  ["neural.resampling"] = "affine_grid channel_shuffle grid_sample interpolate pixel_shuffle pixel_unshuffle",
  autograd =
    "backward detect_anomaly device enable_grad grad hook inference_mode is_grad_enabled keep no_grad " ..
    "requires_grad_ retain_grad scope tape zero_grad",
  devices = "config devices load_plugin memory plugins reset set_default_device stream synchronize version",
}
