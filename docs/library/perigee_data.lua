---@meta _
-- SPDX-License-Identifier: Apache-2.0
-- Made by scripts/dev/docs. Editors complete `require "perigee"` from it: put its folder into Lua.workspace.library.

---@class perigee.data
local data = {}

---Small photographs of ten classes (Krizhevsky, 2009) from the binary version: data_batch_1.bin to data_batch_5.bin and
---test_batch.bin in the folder or its cifar-10-batches-bin, or the archive cifar-10-binary.tar.gz as it is: samples
---{ x = uint8 [32, 32, 3], y = int64 }. Nothing is fetched.
---@param ... string|{path: string, split?: "train"|"test"} # path, split=train
---@return perigee.Dataset
function data.cifar10(...) end

---A table in text, plain or .gz. Without `columns` a file of numbers as one tensor [rows, columns]; with it a dataset
---of its rows, by position: tensors without axes, a vector where a field is of several columns, strings. `default` is
---what an empty column stands for. Compressed files stay in memory. What is damaged is an error that names the line.
---@param ... string|string[]|{path: string|string[], delimiter?: string, skip?: integer, dtype?: perigee.Dtype, columns?: table, workers?: integer|"auto", on_error?: "raise"|"skip"} # path, delimiter, skip, dtype, columns, workers, on_error=raise
---@return perigee.Tensor|perigee.Dataset
function data.csv(...) end

---What bytes of a file hold, as a tensor: `data.decode(bytes, {codec="png"})`. Without `codec` it is told by how they
---begin. Other options are the codec's: max_pixels (what a header may claim), of some scale, top, left, height and
---width, and what a plugin adds.
---@param bytes string
---@param options? table<string, string|number|boolean|integer[]>
---@return perigee.Tensor
function data.decode(bytes, options) end

---A tensor as the bytes of a file: `data.encode(tensor, "png")`. Options are the codec's, such as quality.
---@param tensor perigee.Tensor
---@param codec string
---@param options? table<string, string|number|boolean|integer[]>
---@return string
function data.encode(tensor, codec, options) end

---The files that a pattern stands for, as samples { path = name }, in alphabetical order: data.files "set/*.csv".
---Names that begin with a dot are left out unless the pattern has the dot. They are looked up once, now.
---@param ... string|string[]|{pattern: string|string[]} # pattern
---@return perigee.Dataset
function data.files(...) end

---Samples that a function yields, one after the other; it begins anew for each pass, and its length is unknown. With a
---spec, each must have these fields and no others: numbers and tables become tensors of their dtype, and what does not
---fit is an error that names the field. The function runs on the script's thread when an element is wanted, and later
---stages beside it where they have threads; what it draws by pg depends on (seed, epoch) alone.
---@param ... (fun())|{fn: (fun()), spec?: table<string, any>} # fn, spec
---@return perigee.Dataset
function data.from_generator(...) end

---`n` samples by number: get(i), i from 1, returns a table.
---@param ... integer|(fun(i: integer): any)|{n: integer, get: (fun(i: integer): any)} # n, get
---@return perigee.Dataset
function data.from_index(...) end

---Samples are slices of tensors along their first axis: data.from_slices{ x=images, y=labels }. Nothing is copied
---before a batch is made. Those on a device are sliced there, by the script's thread.
---@param tensors table<string, perigee.Tensor>
---@return perigee.Dataset
function data.from_slices(tensors) end

---Pictures in folders that are named like their classes, as samples { x = uint8 [rows, columns, channels], y = class },
---classes from 0 in the order of the alphabet: `ds:class_name(y)`. Files are read when their samples are asked for; one
---that is damaged is an error that names it, or left out (see map).
---@param ... string|{path: string, channels?: integer, size?: integer|integer[], filter?: "nearest"|"bilinear"|"bicubic"|"lanczos"|"area", draft?: boolean, numbered?: boolean, workers?: integer|"auto", on_error?: "raise"|"skip"} # path, channels=3, size, filter=bilinear, draft=false, numbered=false, workers, on_error=raise
---@return perigee.Dataset
function data.image_folder(...) end

---Whether v is a data set.
---@param v any # anything
---@return boolean
function data.is_dataset(v) end

---Handwritten digits (LeCun et al., 1998) from the files train-images-idx3-ubyte, train-labels-idx1-ubyte,
---t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, as they are or .gz, in the folder or its raw or MNIST/raw: samples
---{ x = uint8 [28, 28, 1], y = int64 }. Sets that have MNIST's form (Fashion-MNIST) are read too. Nothing is fetched.
---@param ... string|{path: string, split?: "train"|"test"} # path, split=train
---@return perigee.Dataset
function data.mnist(...) end

---The numbers 0 .. n - 1, as samples { value = number }.
---@param ... integer|{n: integer} # n
---@return perigee.Dataset
function data.range(...) end

---Records of files, as samples. TFRecord: { data = bytes }, or with spec the fields of tf.train.Example: "int64",
---"float32" or "bytes", of the shape {} if not given, or a list, or "any" for a length of its own; bytes are strings,
---with one axis lists of strings; numbers are tensors. WebDataset's archives (.tar, .tar.gz, .tgz): files of one name
---are a sample, their endings its fields, and `__key__` the name; { "image", size=224 } takes options of image.load,
---{ "image", from="jpg;png" } the first ending that is there. Plain files are read by position; where some are
---compressed (gzip, or TensorFlow's ZLIB), records come one after the other, and a file is unpacked in memory at a
---time. With on_error="skip" the second result is a list of what was left out and why.
---@param ... string|string[]|{path: string|string[], spec?: table, on_error?: "raise"|"skip", workers?: integer|"auto"} # path, spec, on_error=raise, workers
---@return perigee.Dataset records
---@return string[] skipped
function data.records(...) end

---Samples of a source that a plugin brings: `data.source("lines", {path="a.txt"})`. What it is called, which options it
---has and what its samples hold, the plugin says; what is not there is an error with the names that are.
---@param name string
---@param options? table<string, string|number|boolean|integer[]|string[]|perigee.Tensor|table<string, perigee.Tensor>>
---@return perigee.Dataset
function data.source(name, options) end

---Writes samples as TFRecord files, or as WebDataset's archives, each under its name when it is whole. A sample's
---`__key__` is the name of its files in an archive; without one it is the sample's number.
---@param ... string|perigee.Dataset|table[]|string[]|{path: string, samples: perigee.Dataset|table[]|string[], per_file?: integer, compression?: "none"|"gzip"} # path, samples, per_file, compression
---@return string[] paths of the files that were written
function data.write_records(...) end
