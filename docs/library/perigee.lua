---@meta perigee
-- SPDX-License-Identifier: Apache-2.0
-- Made by scripts/dev/docs. Editors complete `require "perigee"` from it: put its folder into Lua.workspace.library.

---@alias perigee.Dtype "float64"|"float32"|"float16"|"bfloat16"|"int64"|"int32"|"int16"|"int8"|"uint8"|"bool"|"float8_e4m3fn"|"float8_e5m2"|"complex64"|"complex128"
---@alias perigee.MemoryFormat "preserve"|"contiguous"|"channels_last"|"channels_last_3d"
---@alias perigee.LossName "bce"|"bce_with_logits"|"cosine_embedding"|"cross_entropy"|"ctc"|"focal"|"gaussian_nll"|"hinge"|"hinge_embedding"|"huber"|"kl_div"|"l1"|"margin_ranking"|"mse"|"multi_margin"|"multilabel_soft_margin"|"nll"|"poisson_nll"|"smooth_l1"|"soft_margin"|"triplet_margin"
---@alias perigee.MetricName "accuracy"|"auc"|"binary_accuracy"|"error"|"f1"|"mae"|"mse"|"precision"|"recall"|"top_k_accuracy"
---@alias perigee.Reduction "mean"|"sum"|"none"

---@class perigee
---@field nn perigee.nn # layers, losses, initialisers
---@field optim perigee.optim # optimizers and their schedules
---@field data perigee.data # input pipelines
---@field amp perigee.amp # mixed precision
---@field metrics perigee.metrics # how good outputs are
---@field callbacks perigee.callbacks # what fit calls while it trains
---@field linalg perigee.linalg # norms of vectors and matrices
---@field image perigee.image # pictures as tensors, from and to files
---@field prune perigee.prune # models with fewer weights
---@field compress perigee.compress # layers replaced by smaller ones
---@field quant perigee.quant # models with fewer bits a weight
---@field tune perigee.tune # settings of a training, found by trying
---@field dist perigee.dist # many processes that run one script
---@field json perigee.json # values as JSON text, and files of it
---@field memory perigee.memory # what devices have given out
---@field config perigee.config # settings of the process
---@field newaxis any # as an index: a new axis of size 1
local pg = {}

---The adapters of a model: what nn.lora and nn.adapters answer.
---@class perigee.Adapters
---@field model perigee.Layer
local Adapters = {}

---@class perigee.Average
---@field updates integer # how many there were
---@field shadow table<string|integer, perigee.Tensor> # averages by the names of the model's state, or from 1 for a list
local Average = {}

---@class perigee.BatchSizes
---@field batch_size integer # the smallest whose samples a second are within 5 percent of the most
---@field largest integer # the largest that was tried and had room
---@field full boolean # whether a larger one had no room
---@field rows { batch_size: integer, seconds: number, per_second: number, bytes: integer }[] # a step, and memory at most
local BatchSizes = {}

---What model:fit{callbacks={...}} takes: a table with any of these methods; the job that they are given has
---`model optimizer epoch step done history stop values()`. `job.stop = true` ends the training with the optimizer's
---next step; inside of an epoch on_interrupt comes before on_epoch_end, and fit{resume=true} goes on with the next
---batch.
---@class perigee.Callback
---@field last? boolean # true: behind the others
---@field rank_zero? boolean # true: of several processes that share a training, rank 0 alone has it
---@field on_train_begin? fun(self: perigee.Callback, job: table)
---@field on_epoch_begin? fun(self: perigee.Callback, job: table, epoch: integer)
---@field on_batch_end? fun(self: perigee.Callback, job: table, step: integer)
---@field on_interrupt? fun(self: perigee.Callback, job: table, step: integer)
---@field on_epoch_end? fun(self: perigee.Callback, job: table, entry: table)
---@field on_train_end? fun(self: perigee.Callback, job: table, history: perigee.History)
---@field state? fun(self: perigee.Callback): table # what checkpoints carry
---@field load_state? fun(self: perigee.Callback, saved: table, job: table)
local Callback = {}

---@class perigee.CheckpointManager
---@field dir string # the folder
---@field keep integer # how many of the newest stay
---@field skipped string[] # what the last restore passed over, and why
local CheckpointManager = {}

---@class perigee.Checkpoints
---@field dir string # the folder
---@field keep integer # how many of the newest stay
local Checkpoints = {}

---@class perigee.ClassRules
---@field noun string # what messages call an object: "a graph"
---@field call string # what a script may call it: "graph:print()"
---@field open? boolean # whether objects answer nil to names that they have not
---@field is? fun(v: any): boolean # by default whether the class is its metatable
---@field kinds? table<string, table[]> # parameters by method
---@field fields? string # names, with blanks between them, of fields that may be nil
---@field skip? string # functions that are no methods, in the same way
---@field hint? fun(key: string): string? # what to say of a name from elsewhere
local ClassRules = {}

---@class perigee.Comparison
---@field ratio number # the median over the rounds of b's time by a's: 2 says that a is twice as fast
---@field low number # a quarter of the rounds' ratios lie below
---@field high number # a quarter lies above
---@field a number # seconds a call, the median
---@field b number
---@field rounds integer
---@field verdict string # which one is faster, or that there is no difference
local Comparison = {}

---@class perigee.Compiled
---@overload fun(...: any): any
local Compiled = {}

---@class perigee.Dataset
---@field size integer? # how many elements, as #; nil where that is unknown
---@field batched boolean? # whether elements are batches
---@field [integer] any # an element, as at()
---@operator len: integer
local Dataset = {}

---@class perigee.GradScaler
local GradScaler = {}

---A callback of model:fit, or stepped by hand.
---@class perigee.Gradual: perigee.Callback
---@field done integer # steps taken
local Gradual = {}

---@class perigee.Graph
local Graph = {}

---Some of the processes, for collectives among them: `.ranks`, those of the world, `.rank`, this process's in the
---group, and `.size`.
---@class perigee.Group
---@field ranks integer[]
---@field rank integer
---@field size integer
local Group = {}

---@class perigee.History
---@field [integer] {epoch: integer, loss: number, val_loss: number?, seconds: number, [string]: number}
local History = {}

---What takes a hook away again.
---@class perigee.HookHandle
---@field remove fun(self?: perigee.HookHandle)
local HookHandle = {}

---What ds:each() returns: call it for the next step and element.
---@class perigee.Iterator
---@field epoch integer # whose order it has
---@field position integer # how many elements it has given
---@field size integer? # nil where the pipeline's length is unknown
---@overload fun(): integer?, any
local Iterator = {}

---@class perigee.LBFGS
---@field lr number # length of a step along its direction
local LBFGS = {}

---@class perigee.Layer
---@field training boolean # whether dropout and normalisation behave as in training
---@field [integer] perigee.Layer # an inner layer, of containers
---@field [string] any # what its init stored: layers, parameters, buffers, options
---@overload fun(...: any): perigee.Tensor, any
local Layer = {}

---What nn.class answers: called, it makes a layer.
---@class perigee.LayerClass: perigee.Layer
---@field init? fun(self: perigee.Layer, ...: any) # stores what the layer is made of
---@overload fun(...: any): perigee.Layer
local LayerClass = {}

---All processes, arranged along axes that have names: `mesh.model` is the group of those that differ from this one in
---their place along that axis alone.
---@class perigee.Mesh
---@field axes string[] # names, the outermost first
---@field sizes integer[] # of the axes
---@field [string] perigee.Group
local Mesh = {}

---What is known of a model's outputs so far, batch by batch: `update` it with each, read `value`, `reset` it. For
---fit{metrics={...}} and evaluate, which do so, it only says what to compute: they have one of their own for each pass.
---@class perigee.Metric
---@field name string # what histories call its values
---@field threshold? number # scores above it are positive
local Metric = {}

---Parameters of 16 bits step in float32 and keep float32 state, but no float32 copy of themselves: to have one, keep
---float32 parameters and compute under amp.autocast. Every hyperparameter may change between steps.
---@class perigee.Optimizer
---@field groups table[] # parameter groups from 1: group.params, and the hyperparameters as fields (group.lr = 0.01)
local Optimizer = {}

---Sequences of different lengths as what they hold, step by step: nn.utils.pack_padded_sequence makes one, recurrent
---layers take it and give one.
---@class perigee.PackedSequence
---@field data perigee.Tensor # [sum of the lengths, ...]: all first steps, the longest sequence's first, then all second
---@field batch_sizes perigee.Tensor # int64 [T]: how many sequences have a step t
---@field sorted_indices? perigee.Tensor # int64 [N]: the number of the sequence at each place, from 0; nil: as it came
---@field unsorted_indices? perigee.Tensor # int64 [N]: the place of each sequence, from 0
local PackedSequence = {}

---@class perigee.PartialRun
local PartialRun = {}

---Stages of a model, one after the other. `stages` are those that this process has, by their number from 1.
---@class perigee.Pipeline
---@field stages table<integer, perigee.Layer>
---@field micro_batches integer
local Pipeline = {}

---@class perigee.PipelineAdvice
---@field [integer] { line: string, stage: string, text: string, remedy: string }
local PipelineAdvice = {}

---@class perigee.PipelineReport
---@field elements integer # that were taken
---@field seconds number # that it took
---@field per_second number
---@field waited number # part of the time that the script waited for threads
---@field threads integer # at work at the end; 0: all ran on the script's thread
---@field ahead integer # elements that threads might have ready at the end
---@field stages { name: string, line: string, elements: integer, seconds: number, waited: number, script: boolean }[]
---@field verdict string # what holds it, and what to do
local PipelineReport = {}

---@class perigee.Plot
---@field series {x: number[], y: number[], label: string?}[]
local Plot = {}

--- kernels) and the script: what a device does that tells, else what the script's thread is at
---@class perigee.Profile
---@field seconds number # the whole time, but what looking for script lines took
---@field noting number # seconds of that
---@field rows perigee.ProfileRow[] # the longest first
---@field records table[] # all that was noted: { kind, name, from, to, shapes, line, layer, bytes, device, thread, stream }
---@field lost integer # how many records had no room
---@field parts table<string, number> # seconds of input, copies, kernels, waits, dispatch (operators without their
---@field busy number # share of the time in which kernels and copies ran or were waited for
---@field devices table<string, perigee.ProfileDevice> # by name
---@field stages perigee.ProfileStage[] # of pipelines, the longest first
---@field gaps {seconds: number, at: number, after: string?, origin: string?}[] # the longest times without any operator
---@field memory table<string, perigee.ProfileMemory> # by device
---@field verdict {kind: string, text: string, advice: string}
local Profile = {}

---@class perigee.ProfileDevice
---@field kernels number # seconds in which kernels ran; of one that tells nothing: nil
---@field copies number # seconds in which bytes were copied to or from it, and no kernel ran
---@field bytes number # that were copied
---@field busy number # share of the time
---@field gaps {seconds: number, at: number, after: string?, origin: string?}[] # the longest times without any work
local ProfileDevice = {}

---@class perigee.ProfileMemory
---@field peak integer # the most bytes of tensors that were live at one time
---@field at number # when that was, in seconds
---@field before integer # bytes that were live when the profile began
---@field holders {name: string, bytes: integer, count: integer}[] # of what was taken in the profile, at the peak
---@field curve {at: number, bytes: integer}[] # the most that was live in each of equal parts of the time
local ProfileMemory = {}

--- by the kernels' time; over 1 where the data lay in caches
---@class perigee.ProfileRow
---@field name string # operator, or upload, download, transfer, synchronize
---@field calls integer
---@field total number # seconds, without what it called: on the host, and on devices that tell what they do
---@field mean number # seconds a call
---@field share number # of the whole time
---@field host number # part of the total that the calling threads spent
---@field kernel number # seconds of its kernels; 0 on an asynchronous device that does not tell
---@field bytes number # that kernels read and wrote at least
---@field flops number # operations, estimated from shapes
---@field roofline number? # share of what the device could do: the least time that its arithmetic and its memory allow,
---@field bound string? # which of them allows no less, compute or memory
local ProfileRow = {}

---@class perigee.ProfileStage
---@field name string # of the pipeline's method
---@field line string? # of the script
---@field elements integer # that it made, of a batch stage batches
---@field seconds number # on all threads, without stages before it
---@field threads string[] # that made them
local ProfileStage = {}

---@class perigee.PruneReport
---@field rows {name: string, class: string, shapes: string, parameters: integer, zeros: integer, sparsity: number, bytes: integer}[] # a layer that holds parameters each, in order
---@field parameters integer # elements of all parameters, each counted once
---@field zeros integer # of them
---@field sparsity number # zeros / parameters
---@field bytes integer # of parameters and buffers, masks among them
local PruneReport = {}

---@class perigee.QuantObserver: perigee.Layer
---@overload fun(...: any): perigee.Tensor, any
local QuantObserver = {}

--- which its weight moved over that of the weight's own, `largest` the most that one number moved
---@class perigee.QuantReport
---@field rows {name: string, dtype: string, group_size: integer, error: number, largest: number, bytes: integer, bytes_before: integer}[] # a quantised layer each, in order: `error` is the root of the sum of the squares by
---@field left {name: string, why: string}[] # Linear and Conv2d layers that stay as they were
---@field folded {name: string, class: string, into: string}[] # what was computed behind a layer and is now part of it
---@field bytes integer # of the whole model's parameters and buffers now
---@field bytes_before integer # and before
local QuantReport = {}

---@class perigee.Schedule
---@field done integer # steps done: epochs or batches, whatever step() is called for
---@field wants_metric? boolean # whether step(metric) needs the value that is watched
local Schedule = {}

---@class perigee.Session
---@field graph perigee.Graph
local Session = {}

---A size that is known when the graph runs, not before. Arithmetic with whole numbers gives others; / rounds down.
---@class perigee.Size
---@operator add(integer|perigee.Size): integer|perigee.Size
---@operator sub(integer|perigee.Size): integer|perigee.Size
---@operator mul(integer|perigee.Size): integer|perigee.Size
---@operator div(integer|perigee.Size): integer|perigee.Size
---@operator mod(integer|perigee.Size): integer|perigee.Size
---@operator unm: integer|perigee.Size
---@operator concat(any): string
local Size = {}

---How a training is spread. `num_replicas_in_sync` is how many compute at once; `rank` which of them this process is,
---or, where one process has several, which one is computing (0 outside of strategy:run).
---@class perigee.Strategy
---@field num_replicas_in_sync integer
---@field rank integer
local Strategy = {}

---@class perigee.Summary
---@field rows {name: string, class: string, depth: integer, output: string?, parameters: integer, calls: integer, shared: boolean, bytes: integer}[]
---@field parameters integer # elements of all parameters, each counted once
---@field trainable integer
---@field bytes integer # of parameters and buffers
---@field output_bytes integer # of what all layers without layers inside gave: what training keeps, roughly
local Summary = {}

---@class perigee.SummaryWriter
---@field dir string # the folder
---@field path string # the event file
local SummaryWriter = {}

---@class perigee.Tape
local Tape = {}

---@class perigee.Tensor
---@field shape integer[] # a fresh list, which compares by value
---@field dtype perigee.Dtype
---@field device string # such as "cuda:0"
---@field grad perigee.Tensor? # what backward added up
---@field requires_grad boolean # whether gradients are wanted of it
---@field is_leaf boolean # whether no operator made it
---@field [integer] perigee.Tensor|any # a row, from 1
---@field [table] perigee.Tensor|any # what indices, slices, a mask or positions pick
---@operator add(perigee.Tensor|number): perigee.Tensor
---@operator sub(perigee.Tensor|number): perigee.Tensor
---@operator mul(perigee.Tensor|number): perigee.Tensor
---@operator div(perigee.Tensor|number): perigee.Tensor
---@operator pow(perigee.Tensor|number): perigee.Tensor
---@operator mod(perigee.Tensor|number): perigee.Tensor
---@operator concat(any): string
---@operator unm: perigee.Tensor
---@operator len: integer
local Tensor = {}

---@class perigee.Tokenizer
local Tokenizer = {}

---@class perigee.Usage
---@field unit string
---@field total number # of what adds up: seconds of the processor, joules; else the sum
---@field mean number
---@field least number
---@field most number
---@field count integer
local Usage = {}

---@class perigee.Vocabulary
---@field unknown string? # the token that stands for those that it does not have
local Vocabulary = {}

---@class perigee.amp
local amp = {}

---@class perigee.callbacks
local callbacks = {}

---@class perigee.callbacks.EarlyStopping: perigee.Callback
---@field best? number # the best value so far
---@field best_epoch? integer
local EarlyStopping = {}

---@class perigee.callbacks.ModelCheckpoint: perigee.Callback
---@field manager? perigee.CheckpointManager # what saves, once the training has begun
local ModelCheckpoint = {}

--- `energy of nvidia 0`
---@class perigee.callbacks.Monitor: perigee.Callback
---@field records {done: integer, name: string, norm: number, grad_norm: number?}[]
---@field usage table<string, perigee.Usage> # of `processor`, `memory`, `memory of cpu`, `energy`, `use of nvidia 0`,
local Monitor = {}

---@class perigee.callbacks.TensorBoard: perigee.Callback
---@field writer? perigee.SummaryWriter # what writes, once the training has begun
local TensorBoard = {}

---@class perigee.compress
local compress = {}

---@class perigee.config
local config = {}

---@class perigee.data
---@field text perigee.data.text # text as numbers
local data = {}

---@class perigee.data.text
local data_text = {}

---With `PERIGEE_DIST_DEBUG=1` in the environment processes compare, before each collective, what they are about to
---call: operator, shape and dtype. Where they differ, all of them raise, and name both sides with the script's lines.
---So do they where one of them has NaN in a gradient that is to be summed, unless a GradScaler looks for it.
---Without other processes every function works on the one there is: its rank is 0 of 1, and collectives answer copies.
---@class perigee.dist
local dist = {}

---@class perigee.events.Reader
---@field at integer # bytes in front of the next record
local Reader = {}

---@class perigee.events.Run
---@field name string
---@field curves table<string, {x: number[], y: number[], time: number[]}> # by tag, in the order of steps
---@field damage string[] # what could not be read
local Run = {}

---@class perigee.image
local image = {}

---Objects are tables with names, arrays tables with positions from 1. What was read is written as the same again:
---arrays are marked as such, so that an empty one stays one, and null is pg.json.null.
---@class perigee.json
---@field null any # what null is read as and written from: nil would leave holes in arrays
local json = {}

---@class perigee.linalg
local linalg = {}

---@class perigee.memory
local memory = {}

---@class perigee.metrics
local metrics = {}

---@class perigee.nn
---@field init perigee.nn.init
---@field utils perigee.nn.utils
local nn = {}

---@class perigee.nn.BatchNorm1d: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@field running_mean perigee.Tensor
---@field running_var perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local BatchNorm1d = {}

---@class perigee.nn.BatchNorm2d: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@field running_mean perigee.Tensor
---@field running_var perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local BatchNorm2d = {}

---@class perigee.nn.BatchNorm3d: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@field running_mean perigee.Tensor
---@field running_var perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local BatchNorm3d = {}

---x1 weight[k] x2 + bias[k] for every output k: [..., inputs1] and [..., inputs2] to [..., out]. weight is
---[out, inputs1, inputs2].
---@class perigee.nn.Bilinear: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local Bilinear = {}

---A Linear whose outputs are shared out: weight [outputs / N, inputs] and bias of the own ones, from [..., inputs] to
---[..., outputs / N], or with gather to [..., outputs] on all. With sequence_axis the input is a part of the sequence
---along that axis, and the result is of all of it. An nn.RowLinear goes on without a word in between.
---@class perigee.nn.ColumnLinear: perigee.Layer
---@field weight perigee.Tensor
---@field bias? perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local ColumnLinear = {}

---@class perigee.nn.Conv1d: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local Conv1d = {}

---@class perigee.nn.Conv2d: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local Conv2d = {}

---@class perigee.nn.Conv3d: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local Conv3d = {}

---@class perigee.nn.ConvTranspose1d: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local ConvTranspose1d = {}

---@class perigee.nn.ConvTranspose2d: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local ConvTranspose2d = {}

---@class perigee.nn.ConvTranspose3d: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local ConvTranspose3d = {}

---@class perigee.nn.Embedding: perigee.Layer
---@field weight perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local Embedding = {}

---Rows of weight [entries, features] summed, averaged or their largest values taken, a bag at a time: called as
---layer(index [B, L]) or layer(index [N], offsets [B]), int64 from 0; gives [B, features]. If mode is "sum" a third
---argument, in the index's shape, is what the rows are multiplied by.
---@class perigee.nn.EmbeddingBag: perigee.Layer
---@field weight perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local EmbeddingBag = {}

---Gated recurrent units (Cho et al., 2014): r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh), n = tanh(W_in x + b_in +
---r (W_hn h + b_hn)), h' = (1 - z) n + z h; rows come in the order r, z, n, and the reset gate is applied behind the
---product, as in PyTorch. `y, h = gru(x)`: x, y, h, `lengths` and packed sequences as of RNN.
---@class perigee.nn.GRU: perigee.Layer
---@field weight_ih_l0 perigee.Tensor # [3 hidden_size, input_size]; weight_ih_l1 and so on, weight_ih_l0_reverse
---@field weight_hh_l0 perigee.Tensor # [3 hidden_size, hidden_size]
---@field bias_ih_l0? perigee.Tensor # [3 hidden_size]
---@field bias_hh_l0? perigee.Tensor # [3 hidden_size]
---@overload fun(...: any): perigee.Tensor, any
local GRU = {}

---One step of nn.GRU: h = cell(x, h), x [N, input_size], h [N, hidden_size], or both without N. Without h it begins
---with zeros.
---@class perigee.nn.GRUCell: perigee.Layer
---@field weight_ih perigee.Tensor # [3 hidden_size, input_size]
---@field weight_hh perigee.Tensor # [3 hidden_size, hidden_size]
---@field bias_ih? perigee.Tensor # [3 hidden_size]
---@field bias_hh? perigee.Tensor # [3 hidden_size]
---@overload fun(...: any): perigee.Tensor, any
local GRUCell = {}

---Each group of channels of each example normalised by itself, then scaled and shifted by channel: [N, C, ...] in the
---same shape (Wu and He, 2018). (x - mean) / sqrt(var + eps) * weight + bias, mean and biased variance taken over a
---group's channels and all axes behind them.
---@class perigee.nn.GroupNorm: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local GroupNorm = {}

---@class perigee.nn.InstanceNorm: perigee.Layer
---@field weight? perigee.Tensor # with affine
---@field bias? perigee.Tensor # with affine
---@field running_mean? perigee.Tensor # with track_running_stats
---@field running_var? perigee.Tensor # with track_running_stats
---@overload fun(...: any): perigee.Tensor, any
local InstanceNorm = {}

---@class perigee.nn.InstanceNorm1d: perigee.nn.InstanceNorm
---@overload fun(...: any): perigee.Tensor, any
local InstanceNorm1d = {}

---@class perigee.nn.InstanceNorm2d: perigee.nn.InstanceNorm
---@overload fun(...: any): perigee.Tensor, any
local InstanceNorm2d = {}

---@class perigee.nn.InstanceNorm3d: perigee.nn.InstanceNorm
---@overload fun(...: any): perigee.Tensor, any
local InstanceNorm3d = {}

---Long short-term memory (Hochreiter and Schmidhuber, 1997) with forget gates: i, f, o = sigmoid, g = tanh of
---W_ih x + b_ih + W_hh h + b_hh, whose rows come in the order i, f, g, o; c' = f c + i g; h' = o tanh(c'), or W_hr of
---that with proj_size (Sak et al., 2014). `y, h, c = lstm(x)`: x, y, h, `lengths` and packed sequences as of RNN, with
---states of proj_size where there is one; c [num_layers D, N, hidden_size]. lstm(x, {h, c}), lstm(x, h, c) and
---lstm(x, {h0=h, c0=c}) begin with given states, in place of zeros. Parameters are called as PyTorch's.
---@class perigee.nn.LSTM: perigee.Layer
---@field weight_ih_l0 perigee.Tensor # [4 hidden_size, input_size]; weight_ih_l1 and so on, weight_ih_l0_reverse
---@field weight_hh_l0 perigee.Tensor # [4 hidden_size, hidden_size], or [..., proj_size]
---@field bias_ih_l0? perigee.Tensor # [4 hidden_size]
---@field bias_hh_l0? perigee.Tensor # [4 hidden_size]
---@field weight_hr_l0? perigee.Tensor # [proj_size, hidden_size]
---@overload fun(...: any): perigee.Tensor, any
local LSTM = {}

---One step of nn.LSTM: h, c = cell(x, {h, c}) or cell(x, h, c), x [N, input_size], h and c [N, hidden_size], or all
---without N. Without them it begins with zeros.
---@class perigee.nn.LSTMCell: perigee.Layer
---@field weight_ih perigee.Tensor # [4 hidden_size, input_size]
---@field weight_hh perigee.Tensor # [4 hidden_size, hidden_size]
---@field bias_ih? perigee.Tensor # [4 hidden_size]
---@field bias_hh? perigee.Tensor # [4 hidden_size]
---@overload fun(...: any): perigee.Tensor, any
local LSTMCell = {}

---@class perigee.nn.LayerNorm: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local LayerNorm = {}

---@class perigee.nn.Linear: perigee.Layer
---@field weight perigee.Tensor
---@field bias perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local Linear = {}

---Layers by name, none of which runs by itself: nn.ModuleDict{conv=..., pool=...}; dict.conv, and dict:names(). Names
---of one table come in alphabetical order; dict:add(name, layer) appends. Names of methods ("state", "fit") are like
---others, and weights load by them; the layer under one is dict:get("state"), since dict.state is the method.
---@class perigee.nn.ModuleDict: perigee.Layer
---@overload fun(...: any): perigee.Tensor, any
local ModuleDict = {}

---A list of layers that has no forward of its own; positions as in nn.Sequential.
---@class perigee.nn.ModuleList: perigee.Layer
---@overload fun(...: any): perigee.Tensor, any
local ModuleList = {}

---Attention of several heads (Vaswani et al., 2017), with PyTorch's parameter names: each head gives
---softmax(q k^T / sqrt(embed / heads)) v of its part of the projected query, key and value; the heads' results side by
---side go through a linear layer. Called as
---layer(query, key, value, options); key and value default to query. Tensors are [N, L, embed], or [L, N, embed] with
---batch_first=false (PyTorch's default, not ours), or [L, embed]. Options, as in PyTorch:
---attn_mask [L, S] or [N * heads, L, S]: bool, true where a query may NOT see a key (the opposite of
---scaled_dot_product_attention), or numbers added to the scores; key_padding_mask [N, S], without a batch [S]: bool,
---true where a key is padding; is_causal; need_weights (default false): returns the weights [N, L, S] too, averaged
---over the heads, or [N, heads, L, S] with average_attn_weights=false.
---@class perigee.nn.MultiheadAttention: perigee.Layer
---@field in_proj_weight? perigee.Tensor # [3 embed, embed]; none where kdim or vdim is another size
---@field q_proj_weight? perigee.Tensor # then there are three
---@field k_proj_weight? perigee.Tensor
---@field v_proj_weight? perigee.Tensor
---@field in_proj_bias perigee.Tensor
---@field bias_k? perigee.Tensor # with add_bias_kv
---@field bias_v? perigee.Tensor
---@field out_proj perigee.nn.Linear
---@overload fun(...: any): perigee.Tensor, any
local MultiheadAttention = {}

---@class perigee.nn.PReLU: perigee.Layer
---@field weight perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local PReLU = {}

---A list of parameters: list[1], #list; positions as in nn.Sequential.
---@class perigee.nn.ParameterList: perigee.Layer
---@field [integer] perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local ParameterList = {}

---The last axes, those that `shape` names, divided by their root mean square, then scaled (Zhang and Sennrich, 2019):
---x / sqrt(mean(x^2) + eps) * weight, in the same shape.
---@class perigee.nn.RMSNorm: perigee.Layer
---@field weight perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local RMSNorm = {}

---Recurrent layers (Elman, 1990): h' = f(W_ih x + b_ih + W_hh h + b_hh), f being tanh or relu, over the steps of
---sequences. `y, h = rnn(x)`: x [N, T, input_size], or [T, N, input_size] with batch_first=false (PyTorch's default,
---not ours), or one sequence [T, input_size]; y [N, T, D hidden_size] has the last layer's states of all steps, D being
---2 where it is bidirectional, else 1; h [num_layers D, N, hidden_size] the last states of all. rnn(x, h) and
---rnn(x, {h0=h}) begin with given ones, in place of zeros. rnn(x, {lengths={5, 3}}), a list or a tensor, ends each
---sequence at its own length: y is 0 behind it, h what it was there. Or x is packed, by nn.utils.pack_padded_sequence:
---then y is packed too. Parameters are called as PyTorch's. In a graph a number of steps that is known is recorded step
---by step, one that only a run tells as a pg.scan.
---@class perigee.nn.RNN: perigee.Layer
---@field weight_ih_l0 perigee.Tensor # [hidden_size, input_size]; weight_ih_l1 and so on, weight_ih_l0_reverse
---@field weight_hh_l0 perigee.Tensor # [hidden_size, hidden_size]
---@field bias_ih_l0? perigee.Tensor # [hidden_size]
---@field bias_hh_l0? perigee.Tensor # [hidden_size]
---@overload fun(...: any): perigee.Tensor, any
local RNN = {}

---One step of nn.RNN: h = cell(x, h), x [N, input_size], h [N, hidden_size], or both without N. Without h it begins
---with zeros.
---@class perigee.nn.RNNCell: perigee.Layer
---@field weight_ih perigee.Tensor # [hidden_size, input_size]
---@field weight_hh perigee.Tensor # [hidden_size, hidden_size]
---@field bias_ih? perigee.Tensor # [hidden_size]
---@field bias_hh? perigee.Tensor # [hidden_size]
---@overload fun(...: any): perigee.Tensor, any
local RNNCell = {}

---A Linear whose inputs are shared out: weight [outputs, inputs / N], from [..., inputs / N], as an nn.ColumnLinear
---leaves it, or with split from [..., inputs], to [..., outputs] on all. The bias is added once. With sequence_axis
---each process gets its part of the result along that axis.
---@class perigee.nn.RowLinear: perigee.Layer
---@field weight perigee.Tensor
---@field bias? perigee.Tensor # whole on all
---@overload fun(...: any): perigee.Tensor, any
local RowLinear = {}

---Layers one after the other: what one returns is the next one's input. model[2] is the second, model[-1] the last,
---model[{1, 2}] another Sequential of the first two; model[2] = layer replaces, model[2] = nil or model:remove(2) takes
---out. What is assigned over an entry is looked at in the next call or read: until then # may still count one that
---was set to nil, while remove is done at once. A convolution, batch normalisation or Linear and a ReLU behind it run
---as one operator, to the same numbers, where nothing sees what goes from one to the other.
---@class perigee.nn.Sequential: perigee.Layer
---@overload fun(...: any): perigee.Tensor, any
local Sequential = {}

---A MultiheadAttention of which each process has some of the heads, and the rows of the projections that are theirs;
---the result is that of all heads, on all. Called as one, with the same masks. With sequence=true query, key and value
---are parts of their sequences, and so is the result.
---@class perigee.nn.ShardedAttention: perigee.nn.MultiheadAttention
---@field in_proj_weight perigee.Tensor # [3 embed / N, embed]
---@field in_proj_bias perigee.Tensor
---@field out_proj perigee.nn.RowLinear
---@overload fun(...: any): perigee.Tensor, any
local ShardedAttention = {}

---A Dropout that draws other random numbers on each process of a group: for parts of activations.
---@class perigee.nn.ShardedDropout: perigee.Layer
---@overload fun(...: any): perigee.Tensor, any
local ShardedDropout = {}

---An Embedding whose rows are shared out: weight [entries / N, features]; from [...] int64 to [..., features] on all,
---or with sequence_axis each process's part of it along that axis of the result.
---@class perigee.nn.ShardedEmbedding: perigee.Layer
---@field weight perigee.Tensor
---@overload fun(...: any): perigee.Tensor, any
local ShardedEmbedding = {}

---BatchNorm1d, 2d or 3d, whose mean and variance while training are those of the whole batch where replicas of a
---strategy compute parts of it: [N, C, ...] in the same shape. Anywhere else it is a plain one. pg.dist.sync_batchnorm
---makes it of those in a model.
---@class perigee.nn.SyncBatchNorm: perigee.Layer
---@field weight? perigee.Tensor # with affine
---@field bias? perigee.Tensor # with affine
---@field running_mean? perigee.Tensor # with track_running_stats
---@field running_var? perigee.Tensor # with track_running_stats
---@overload fun(...: any): perigee.Tensor, any
local SyncBatchNorm = {}

---Encoder and decoder (Vaswani et al., 2017), each a stack that ends in a layer norm: model(source [N, S, embed],
---target [N, T, embed], options) gives [N, T, embed]; options source = {...} and target = {...} are those of the two
---stacks.
---@class perigee.nn.Transformer: perigee.Layer
---@field encoder perigee.nn.TransformerEncoder
---@field decoder perigee.nn.TransformerDecoder
---@overload fun(...: any): perigee.Tensor, any
local Transformer = {}

---`count` copies of a decoder layer one after the other, then `norm` if given: decoder(x, memory, options).
---@class perigee.nn.TransformerDecoder: perigee.Layer
---@field layers perigee.nn.ModuleList
---@field norm? perigee.Layer
---@overload fun(...: any): perigee.Tensor, any
local TransformerDecoder = {}

---As TransformerEncoderLayer, with attention over `memory` in between. layer(x, memory, options): options mask,
---key_padding_mask and is_causal for x, memory_mask, memory_key_padding_mask and memory_is_causal for memory.
---@class perigee.nn.TransformerDecoderLayer: perigee.Layer
---@field self_attn perigee.nn.MultiheadAttention
---@field multihead_attn perigee.nn.MultiheadAttention # over memory
---@field linear1 perigee.nn.Linear
---@field linear2 perigee.nn.Linear
---@field norm1 perigee.nn.LayerNorm
---@field norm2 perigee.nn.LayerNorm
---@field norm3 perigee.nn.LayerNorm
---@overload fun(...: any): perigee.Tensor, any
local TransformerDecoderLayer = {}

---`count` copies of an encoder layer one after the other, then `norm` if given: encoder(x, options).
---@class perigee.nn.TransformerEncoder: perigee.Layer
---@field layers perigee.nn.ModuleList
---@field norm? perigee.Layer
---@overload fun(...: any): perigee.Tensor, any
local TransformerEncoder = {}

---Self-attention and two linear layers, each with a residual and a layer norm (Vaswani et al., 2017):
---x = norm1(x + attention(x)), then norm2(x + linear2(activation(linear1(x)))); with norm_first (Xiong et al., 2020)
---x + attention(norm1(x)) and so on. layer(x, options): x [N, L, embed], in the same shape; options mask,
---key_padding_mask, is_causal as those of MultiheadAttention.
---@class perigee.nn.TransformerEncoderLayer: perigee.Layer
---@field self_attn perigee.nn.MultiheadAttention
---@field linear1 perigee.nn.Linear
---@field linear2 perigee.nn.Linear
---@field norm1 perigee.nn.LayerNorm
---@field norm2 perigee.nn.LayerNorm
---@overload fun(...: any): perigee.Tensor, any
local TransformerEncoderLayer = {}

---@class perigee.nn.init
local nn_init = {}

---@class perigee.nn.utils
local nn_utils = {}

---@class perigee.optim
---@field sched perigee.optim.sched
local optim = {}

---@class perigee.optim.sched
local optim_sched = {}

---@class perigee.profile.Meter
local Meter = {}

---@class perigee.prune
local prune = {}

---@class perigee.quant
local quant = {}

---@class perigee.tune
local tune = {}

---Copies in what state() gave, of a model that was adapted in the same way. All is looked at before anything changes.
---@param given table<string, perigee.Tensor>
---@param options? {strip_prefix?: string} # what names have in front, base_model.model. in PEFT's files
---@return perigee.Adapters
function Adapters:load_state(given, options) end

---Adds the adapters to the weights that they stand beside and takes them away: the model gives the same in evaluation,
---to rounding, as fast as it was. Its parameters stay frozen; model:unfreeze() trains them.
---@return perigee.Layer model
function Adapters:merge() end

---Names of the adapted layers, as in the model's state().
---@return string[]
function Adapters:names() end

---The parameters that are trained: for an optimizer.
---@return perigee.Tensor[]
function Adapters:parameters() end

---Takes the adapters away: the model is what it was. Its parameters stay frozen.
---@return perigee.Layer model
function Adapters:remove() end

---What is trained alone, by the names that it has in the model's state(): pg.save("adapters.safetensors",
---adapters:state()). Shares the model's memory.
---@return table<string, perigee.Tensor>
function Adapters:state() end

---Loss scaling for float16 with a scale that adapts itself (Micikevicius et al. 2018), with PyTorch's schedule.
---@param options? {init_scale?: number, growth_factor?: number, backoff_factor?: number, growth_interval?: integer, enabled?: boolean} # init_scale=65536, growth_factor=2, backoff_factor=0.5, growth_interval=2000, enabled=true
---@return perigee.GradScaler
function amp.GradScaler(options) end

---Runs fn(...) in mixed precision and returns what it returns. Products, convolutions and attention get their float32
---inputs in `dtype`, what loses by 16 bits (losses, exponentials, sums) in float32, the rest runs in what it is given.
---Scopes nest; `enabled = false` switches it off inside. Parameters are cast once, until they change or the outermost
---scope ends; gradients come back in their dtype, and backward runs in the dtypes of the forward pass.
---@param options {device?: string, dtype?: "bfloat16"|"float16", enabled?: boolean}
---@param fn function # what runs in mixed precision
---@param ... any # arguments of fn
---@return any ... what fn returns
function amp.autocast(options, fn, ...) end

---The dtype that autocast uses on a device now, or nil where it is off.
---@param device? string # the ambient device by default
---@return string?
function amp.get_autocast_dtype(device) end

---Whether autocast is on for a device now.
---@param device? string
---@return boolean
function amp.is_autocast_enabled(device) end

---What layers compute in: "mixed_bfloat16", "mixed_float16", or "float32", the default: in the dtype of their
---parameters. Parameters stay float32. Without an argument answers the policy's name; with a function the policy holds
---while that runs.
---@param name? string
---@param fn? function
---@return string old the policy before, or what fn returns
function amp.policy(name, fn) end

---Writes the averages into the model, or into another one of its kind.
---@param model? perigee.Layer
function Average:copy_to(model) end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
function Average:load_state(saved) end

---For load_state and for checkpoints.
---@return table
function Average:state() end

---Exchanges the model's weights with the averages, in place; a second call puts them back.
function Average:swap() end

---Takes the model's weights into the average. Call it after optimizer:step().
function Average:update() end

---Calls fn(...) with the averages in the model and puts its own weights back, also after an error.
---@param fn function
---@param ... any # arguments of fn
---@return any ... what fn returns
function Average:use(fn, ...) end

---The history as a table, a line an epoch, rewritten whole (and atomically) at each epoch's end: a run that was resumed
---has each epoch once.
---@param ... string|{path: string} # path
---@return perigee.Callback
function callbacks.CSVLogger(...) end

---Stops when `monitor` has not got better by more than min_delta for more than `patience` epochs. With restore_best the
---model has the weights of the best epoch (`callback.best`, `.best_epoch`) when the training ends, whatever ended it;
---checkpoints have those of their epoch.
---@param ... string|{monitor?: string, patience?: integer, min_delta?: number, mode?: "min"|"max", restore_best?: boolean} # monitor=val_loss, patience=0, min_delta=0, mode, restore_best=false
---@return perigee.callbacks.EarlyStopping
function callbacks.EarlyStopping(...) end

---Steps a schedule after every epoch, or with per="batch" after every batch. Where fit binds the optimizer, it is a
---function of that optimizer, which makes the schedule when the training begins. optim.sched.Plateau is given the value
---of `monitor`.
---@param ... (perigee.Schedule|fun(optimizer: perigee.Optimizer): perigee.Schedule)|{schedule: (perigee.Schedule|fun(optimizer: perigee.Optimizer): perigee.Schedule), per?: "epoch"|"batch", monitor?: string} # schedule, per=epoch, monitor=val_loss
---@return perigee.Callback
function callbacks.LRScheduler(...) end

---A checkpoint at the end of every `every`-th epoch, where job.stop ends the training and, with `steps`, after every so
---many batches (not between accumulated ones). `monitor` names the value by which one is the best; that one is kept
---too. `callback.manager` is what saves.
---@param ... string|{dir: string, keep?: integer, monitor?: string, mode?: "min"|"max", every?: integer, steps?: integer} # dir, keep=3, monitor, mode, every=1, steps
---@return perigee.callbacks.ModelCheckpoint
function callbacks.ModelCheckpoint(...) end

---After every so many batches the Euclidean norms of the parameters whose names fit the Lua pattern, and of their
---gradients, as they were in the last step. They are kept in `callback.records`: { done, name, norm, grad_norm }.
---What the process uses meanwhile is in `callback.usage`, each with { unit, total, mean, least, most, count }: of the
---processor (1: a whole core), of memory, of the memory of the device that the model is on, the energy of the whole
---processor where it tells (RAPL), and where NVIDIA's driver is (NVML), how busy each of its devices was and the energy
---that it took, whoever used it; it is printed at the end.
---@param ... integer|{every?: integer, pattern?: string, seconds?: number, print?: boolean} # every=100, pattern=, seconds=0.5, print=true
---@return perigee.callbacks.Monitor
function callbacks.Monitor(...) end

---Fit's bar as a callback, for fit{verbose=0}. 2: lines only.
---@param ... {verbose?: integer} # verbose=1
---@return perigee.Callback
function callbacks.ProgressBar(...) end

---Writes each epoch's values (`loss`, `val_loss`, metrics, `lr`, `seconds`) into an event file, which TensorBoard and
---`perigee watch` show; inside of epochs the means so far, as `batch/loss`. A point's step is the number of batches
---that the training has done, so that all curves of a run, taken up again or not, have one axis.
---@param ... string|{dir: string, every?: integer, histograms?: integer, input?: table} # dir, every=0, histograms=0, input
---@return perigee.callbacks.TensorBoard
function callbacks.TensorBoard(...) end

---Path, step and metric of the best checkpoint so far; nil before one was saved with a metric.
---@return string? path, integer? step, number? metric
function CheckpointManager:best() end

---Path and step of the file that was saved last; nil where there is none. It is looked at by restore.
---@return string? path, integer? step
function CheckpointManager:latest() end

---Loads the checkpoint that was saved last and is whole (or that of a step) into the objects, all or after an error
---none, and puts the random number generator where it was. Damaged files are passed over with a line on standard error
---each (also in `self.skipped`); where all are damaged, or one that was asked for by step, it is an error.
---@param step? integer
---@return table? values what save was given: values.step, ...; nil: there is no checkpoint
function CheckpointManager:restore(step) end

---Loads the best checkpoint's objects, as restore does.
---@return table? values what save was given
function CheckpointManager:restore_best() end

---Saves all objects, and whatever else is given: plain values, tensors, tables of them, and things with a state() such
---as what `ds:each()` returned. Durable when it returns.
---@param given { step: integer, metric: number? } # step: a count of what is done; metric: to judge the best by
---@return string path
function CheckpointManager:save(given) end

---The steps that there are files of, in the order in which they were saved.
---@return integer[]
function CheckpointManager:steps() end

---Loads the newest checkpoint, or that of a step; called by all processes, of which there may be another number than
---have written it, and whose models may be spread in another way. Answers what save was given; nil: there is none.
---@param step? integer
---@return table? values
function Checkpoints:restore(step) end

---Writes all objects, and plain values besides; called by all processes. Durable when it returns.
---@param given { step: integer } # and plain values
---@return string path the folder of the step
function Checkpoints:save(given) end

---The steps that there are checkpoints of, in their order.
---@return integer[]
function Checkpoints:steps() end

---The same as text, a line for each stretch that is planned.
---@return string
function Compiled:explain() end

---What the function has done so far: `calls`; `plans` that are kept; `hits`, stretches of calls that were launched as
---a plan; `recorded`, those that were noted; `replayed`, those that began as a plan and went on otherwise; `eager`,
---calls that were not looked at; `why`, how often for which reason something was not launched as a plan. Of the plan
---used last: `items`; `layers`, calls of plugins' layers among them that are compared as wholes; `launches`, the
---kernels that these are one by one, and `kernels`, those that are launched; `regions`, each with the `operators` that
---are one kernel, and how many `nodes`, `inputs` and `outputs`, what it does `about` layouts, and the bytes `packed`
---that it keeps of parameters; and bytes: `bytes` of its memory as it is laid out, `bound` of what lives at once at
---least, `separate` the same without reuse, `own` of what outlives the call, `eager_peak` of what eager code held at
---once. Of a plan that is captured on its device: `captures`, how often it was; `pieces`, what it is launched as beside
---kernels that are launched one by one, and `captured`, the kernels in them; `runtime`, bytes of numbers that are
---written before a launch; `copied`, bytes of arguments and results that lie elsewhere each time; `capture_why`, why it
---was captured anew, or why it is not.
---@return table figures
function Compiled:stats() end

---A copy of a model in which Linear layers and convolutions are two layers in sequence, of `rank` channels between
---them: the product of their weights is the matrix of that rank that is nearest to the weight (singular value
---decomposition; Eckart and Young, 1936). A convolution becomes one of `rank` filters and one of kernel 1. Layers that
---would not get smaller stay; where `targets` names one, or all would, that is an error. A weight of 500 rows and
---columns takes seconds, one of a thousand ten times as long.
---@param ... perigee.Layer|{model: perigee.Layer, rank?: integer, energy?: number, targets?: string[]} # model, rank, energy, targets
---@return perigee.Layer smaller
---@return {name: string, rank: integer, energy: number}[] factored what became of which layer, and how much was kept
function compress.low_rank(...) end

---The settings in force.
---@return {threads: integer, origins: boolean, matmul_precision: string, deterministic: boolean, log_device_placement: boolean, visible_devices: string[]?}
function config.get() end

---Several devices that stand for one, each with a share of its memory and streams of its own:
---`pg.config.logical_devices("gpu:0", {{memory_limit="4GB"}, {memory_limit="4GB"}})`. The device itself is the first;
---the others get the numbers that follow those of its kind. Answers their names. Called again, it changes the limits,
---and adds devices where the list is longer; taken away they cannot be. `config.memory_limit`, `memory_fraction` (of
---the whole device) and `memory_growth` go for each of them.
---@param ... string|{memory_limit: integer|string}[]|{device: string, parts: {memory_limit: integer|string}[]} # device, parts
---@return string[] names
function config.logical_devices(...) end

---At most this share of a device's memory: `pg.config.memory_fraction("gpu:0", 0.4)`.
---@param ... string|number|{device: string, fraction: number} # device, fraction
function config.memory_fraction(...) end

---Whether memory is taken from a device as it is needed, which is how it begins. false: the whole limit (without one,
---what the device has free; the processor needs one) is taken now and nothing more later, so that nobody else takes
---it; a new limit then takes more, or gives back what nobody uses.
---@param ... string|boolean|{device: string, on: boolean} # device, on
function config.memory_growth(...) end

---At most so much memory of a device: `pg.config.memory_limit("gpu:0", "10GB")`. 0: no limit. What is cached above it
---goes back to the device at once. An operator that would need more raises `out_of_memory`, which names what holds
---most: operators, the layers of plugins that called them, and the script's lines if they were recorded under
---`pg.config.set{origins=true}`.
---@param ... string|integer|{device: string, size: integer|string} # device, size
function config.memory_limit(...) end

---Settings of the process: `pg.config.set{threads=2}`.
---threads: that one operator on the CPU may use. origins: what fails on an asynchronous device, where errors show up
---late, names the script's line and the layer that called it; costs a walk over the stack an operator.
---matmul_precision: "highest", which is what every device computes with; there is no other yet.
---deterministic: on one device and with one number of threads a program gives the same bits in every run, always.
---true, which is not how it begins: bits depend on the number of threads, devices or workers no more either. Products
---and convolutions then take ways that hold to it, some of them slower, and an operator that has none raises by its
---name (all_reduce, of sums and means of floating tensors). Other kinds of processors and accelerators, and other
---versions of Perigee or its libraries, may still give other bits. log_device_placement: every operator that is
---called or recorded becomes a line on standard error, `add: (Add): /gpu:0`. visible_devices: as
---`config.visible_devices`.
---@param ... {threads?: integer, origins?: boolean, matmul_precision?: string, deterministic?: boolean, log_device_placement?: boolean, visible_devices?: table} # threads, origins, matmul_precision, deterministic, log_device_placement, visible_devices
function config.set(...) end

---Of all devices only these can be used from now on, besides the processor: `pg.config.visible_devices{"cuda:1"}`.
---Names stay what they are; "gpu:0" is the first one named. A device that has been used cannot be hidden any more.
---Without an argument all are visible. (CUDA_VISIBLE_DEVICES in the environment acts before the driver counts.)
---@param names? string[]
function config.visible_devices(names) end

---A tokenizer by byte-pair encoding, from a file: Hugging Face's tokenizer.json (GPT-2's and Llama 3's kind, over
---bytes)
---or tiktoken's ranks. The ids are those of the packages `tokenizers` and `tiktoken`; what a file asks for and is not
---here is refused by name. Needs PCRE2's library.
---@param ... string|{path: string, pattern?: string, special?: table} # path, pattern, special
---@return perigee.Tokenizer
function data_text.bpe(...) end

---The 256 bytes, each under its own number.
---@param ... any
---@return perigee.Vocabulary
function data_text.bytes(...) end

---The characters of a text, the most frequent first.
---@param ... string|{text: string, size?: integer, least?: integer, unknown?: string} # text, size, least=1, unknown
---@return perigee.Vocabulary
function data_text.chars(...) end

---Sequences laid end to end and cut into rows of `length`, so that nothing is padded but the last:
---`data.text.pack(sequences, 512, {separator=0})` has samples `ids`, int64 [length]. All are read at once.
---@param ... perigee.Dataset|(perigee.Tensor|integer[])[]|integer|{sequences: perigee.Dataset|(perigee.Tensor|integer[])[], length: integer, separator?: integer, pad?: integer, segments?: boolean, field?: string} # sequences, length, separator, pad, segments=false, field=ids
---@return perigee.Dataset
function data_text.pack(...) end

---Learns a tokenizer by byte-pair encoding: data.text.train_bpe(text, 4096). The same merges as `tokenizers` learns.
---@param ... string|string[]|integer|{texts: string|string[], size: integer, least?: integer, pattern?: string, special?: string[]} # texts, size, least=1, pattern, special
---@return perigee.Tokenizer
function data_text.train_bpe(...) end

---Words, the most frequent first; or what vocabulary:save wrote.
---@param ... string[]|string|{words: string[]|string, size?: integer, least?: integer, unknown?: string} # words, size, least=1, unknown
---@return perigee.Vocabulary
function data_text.vocabulary(...) end

---Element i of the pipeline, from 1, or from the end where negative, in the order of the current epoch: `ds[i]`.
---@param i integer
---@return table
function Dataset:at(i) end

---Groups of `size` elements; the last may be smaller. Tensors and numbers of samples are stacked, field by field, also
---in tables with names inside of samples; everything else becomes a list. Tensors of fields that `pad` names are filled
---behind their ends to the largest of the batch along each axis, on the script's thread: `pad={x=0, ["y.ids"]=-1}`.
---@param ... integer|{size: integer, drop_last?: boolean, pad?: table<string, number|boolean>} # size, drop_last=false, pad
---@return perigee.Dataset
function Dataset:batch(...) end

---Takes elements of an epoch as fast as they come, and says what each stage took, what waited for what, and what to do:
---print(ds:benchmark()). `step` stands for a training: with it, the report says whether the pipeline keeps up. The
---pipeline's epoch and the random numbers of the script stay as they were.
---@param ... {elements?: integer, seconds?: number, step?: number} # elements, seconds=5, step=0
---@return perigee.PipelineReport
function Dataset:benchmark(...) end

---Batches of samples whose lengths are alike, so that little is padded:
---`ds:bucket_by_length{"ids", boundaries={16, 64}, size={64, 16, 4}, pad={ids=0}}`. A sample goes to the first bucket
---whose boundary its length does not exceed. All samples are read once for their lengths; a shuffle before keeps its
---first order, as in split. Each epoch mixes the samples of a bucket, and the batches of all. Runs on the script's
---thread.
---@param ... (string|fun(sample: any): integer)|{by: (string|fun(sample: any): integer), boundaries: integer[], size: integer|integer[], pad?: table<string, number|boolean>, drop_last?: boolean, shuffle?: boolean, seed?: integer} # by, boundaries, size, pad, drop_last=false, shuffle=true, seed=0
---@return perigee.Dataset
function Dataset:bucket_by_length(...) end

---Elements are computed once, in the first pass that reaches them, and kept: in memory, or in a file that outlives the
---script. The order and the random draws are those of the first epoch: shuffle and augment behind it. A file appears
---under its name once it has all elements, holds checksums of them, and is refused where the stages, functions or data
---before it are others (files are told by their names only: give a `version`). Samples from memory share the memory of
---what is kept: change copies.
---@param ... string|{path?: string, version?: string} # path, version
---@return perigee.Dataset
function Dataset:cache(...) end

---The name of a class of a pipeline that data.image_folder began.
---@param id integer # from 0, as in `y`
---@return string
function Dataset:class_name(id) end

---`for step, element in ds:each() do`. Each call draws a new epoch's order. What it returns has :state() and :close();
---`ds:each{from=state}` goes on behind that state, in the same order: by position where that is possible, else elements
---before it are made again.
---@param ... {from?: table} # from
---@return perigee.Iterator|fun(): integer?, any
function Dataset:each(...) end

---How many orders have been drawn: each() takes the next. Set it to go on where another process was.
---@param set? integer
---@return integer
function Dataset:epoch(set) end

---The elements for which fn(sample) answers true. How many, nobody knows before the end: ds.size is nil. workers= as
---for map.
---@param ... (fun(sample: any): boolean)|{fn: (fun(sample: any): boolean), workers?: integer|"auto"} # fn, workers
---@return perigee.Dataset
function Dataset:filter(...) end

---Elements of the pipelines that fn(sample) answers, taken in turn: `block` of each, of `cycle` pipelines at a time.
---One that has ended gives its place to the next. How many there are, nobody knows before the end; the order is always
---the same. It runs on the script's thread, and threads of these pipelines beside it.
---@param ... (fun(sample: any): perigee.Dataset)|{fn: (fun(sample: any): perigee.Dataset), cycle?: integer, block?: integer} # fn, cycle=4, block=1
---@return perigee.Dataset
function Dataset:interleave(...) end

---What makes the pipeline slow, large or other than meant, each with the script's line and the remedy:
---print(ds:lint()). First elements are computed to see what they are.
---@return perigee.PipelineAdvice
function Dataset:lint() end

---fn(sample) -> sample, for each element. With workers it runs in Lua states of their own, on threads: what it refers
---to is copied once (nil, booleans, numbers, strings, plain tables, Lua functions; tensors of the cpu share their
---memory; modules are required again), and random draws in it depend on (seed, epoch, element) alone. Without, it runs
---on the script's thread, when the next element is wanted, while threads of stages before it work ahead. With
---on_error="skip" nobody knows how many elements are left before the end; ds:skipped() says what was left out.
---@param ... (fun(sample: any): any)|{fn: (fun(sample: any): any), workers?: integer|"auto", on_error?: "raise"|"skip"} # fn, workers, on_error=raise
---@return perigee.Dataset
function Dataset:map(...) end

---Elements are made ahead of the script, by a thread (or by map's workers), at most n of them. What functions of the
---script make (a generator, a map without workers) is made when the script asks for an element, and threads do the rest
---ahead.
---@param ... integer|"auto"|{n?: integer|"auto", memory?: integer|string, device?: string} # n=auto, memory, device
---@return perigee.Dataset
function Dataset:prefetch(...) end

---The pipeline n times over; an order that is drawn by epoch stays the same within one pass.
---@param n integer
---@return perigee.Dataset
function Dataset:repeated(n) end

---Every n-th element, beginning with element i, which counts from 0.
---@param ... integer|{n: integer, i: integer} # n, i
---@return perigee.Dataset
function Dataset:shard(...) end

---A new order at every each(). `buffer` limits how far an element may travel; without it all orders are possible.
---Elements that come one after the other (of a generator, a filter, or behind a function of the script that stands
---behind workers) pass through a buffer in memory, and need its size. What take and skip leave of it is another choice
---at every each(); the parts of split stay apart.
---@param ... integer|{buffer?: integer, seed?: integer, every_epoch?: boolean} # buffer, seed=0, every_epoch=true
---@return perigee.Dataset
function Dataset:shuffle(...) end

---All but the first n elements.
---@param n integer
---@return perigee.Dataset
function Dataset:skip(n) end

---How many elements maps with on_error="skip" have left out since the pipeline was made, in all its passes, and why: of
---each map the first thousand.
---@return integer count
---@return string[] messages
function Dataset:skipped() end

---Parts by fraction: local train, test = ds:split{0.8, 0.2}. The last takes what rounding leaves. No element is ever in
---two of them: a shuffle that comes before keeps its first order in them; one behind train gives it an order an epoch.
---@param ... number|number[]
---@return perigee.Dataset ...
function Dataset:split(...) end

---The first n elements.
---@param n integer
---@return perigee.Dataset
function Dataset:take(n) end

---A transform that a plugin brings, of each element: `ds:transform("jitter", {by=0.2})`. It takes and gives fields of
---the samples, runs in native code on the pipeline's threads, and draws from (seed, epoch, element) alone. A name or an
---option that is not there is an error with those that are. The option `workers` is ours: threads that run it.
---@param name string
---@param options? table<string, string|number|boolean|integer[]|string[]|perigee.Tensor|table<string, perigee.Tensor>>
---@return perigee.Dataset
function Dataset:transform(name, options) end

---Elements of several pipelines side by side, { a, b }: as many as the shortest has.
---@param ... perigee.Dataset
---@return perigee.Dataset
function Dataset:zip(...) end

---`pg.dist.Checkpoints{folder, keep=3, model=model, optimizer=optimizer, ...}`: checkpoints that all processes write
---together, each its share, where they hold parts (pg.dist.shard, pg.dist.tensor_parallel) or not; read by any number
---of processes, whose models may be spread otherwise, or by one. What they hold are whole tensors in safetensors files:
---`pg.load(folder .. "/step-00000010/model.safetensors.index.json", model)` reads a plain model's. Objects are layers,
---optimizers, averages, and what has state() and load_state() of plain values. `group`: who writes; all if not given.
---The folder must be one that all see.
---@param given table
---@return perigee.Checkpoints
function dist.Checkpoints(given) end

---The tensors of all processes behind each other along the first axis, in the order of ranks.
---@param ... perigee.Tensor|{t: perigee.Tensor, group?: perigee.Group} # t, group
---@return perigee.Tensor
function dist.all_gather(...) end

---The sum (`{op="mean"}`, "max", "min") of the tensors of all processes, element by element, on every one of them. All
---of them call it, in the same order as all other collectives. A gradient of a sum is the sum of all processes'.
---@param ... perigee.Tensor|{t: perigee.Tensor, op?: string, group?: perigee.Group} # t, op=sum, group
---@return perigee.Tensor
function dist.all_reduce(...) end

---Block k of the first axis goes to rank k, and block k of the result came from there.
---@param ... perigee.Tensor|{t: perigee.Tensor, group?: perigee.Group} # t, group
---@return perigee.Tensor
function dist.all_to_all(...) end

---Returns when all processes have called it.
---@param group? perigee.Group
function dist.barrier(group) end

---The tensor of one process, on all of them.
---@param ... perigee.Tensor|integer|{t: perigee.Tensor, root?: integer, group?: perigee.Group} # t, root=0, group
---@return perigee.Tensor
function dist.broadcast(...) end

---Seconds that anything between processes may take, 1800 at first, 0 for any time: what has not happened by then is an
---error that names who did not come. PERIGEE_DIST_DEADLINE in the environment sets it from the start.
---@param seconds number
---@return number before
function dist.deadline(seconds) end

---`pg.dist.group{0, 2}`: a group of these ranks, which all of them make together, and nobody else.
---@param ranks integer[] # rising
---@return perigee.Group
function dist.group(ranks) end

---Tensor and sequence parallelism: the parts of all processes of a group behind each other along an axis. Of the
---gradient each gets its own part.
---@param ... perigee.Tensor|integer|{t: perigee.Tensor, axis?: integer, group: perigee.Group} # t, axis=-1, group
---@return perigee.Tensor
function dist.join(...) end

---Copies whole tensors in by name, as model:load_state(state, options) does, where processes hold parts: each takes its
---own. It asks no other process.
---@param model perigee.Layer
---@param state table<string, perigee.Tensor> # by name, as pg.dist.whole_state or pg.load give them
---@param options? {strict?: boolean, strip_prefix?: string, add_prefix?: string}
---@return string[] missing, string[] unexpected
function dist.load_whole(model, state, options) end

---This process's number among those of the same machine, from 0: which of its devices to take.
---@return integer
function dist.local_rank() end

---How many of the processes are on this machine.
---@return integer
function dist.local_size() end

---`pg.dist.mesh{data=2, model=2}`: all processes in lines along axes with names, which all of them ask for together;
---sizes multiply to their number. `mesh.data` and `mesh.model` are the groups that this process is in: replicas, and
---those that hold parts of one. Ranks are counted along the last axis first: data, pipeline, others by name, model, or
---as `order={"model", "data"}` says.
---@param options table<string, integer>
---@return perigee.Mesh
function dist.mesh(options) end

---Data parallelism over devices of this process: `pg.dist.mirrored{devices={"gpu:0", "gpu:1"}}`. Each has parameters
---and buffers of its own, with the same contents. For `fit{strategy=}` and own loops, as pg.dist.multi_worker().
---@param ... {devices?: string[]} # devices
---@return perigee.Strategy
function dist.mirrored(...) end

---Data parallelism over all processes: each holds the model and computes its part of every batch. For `fit{strategy=}`
---and own loops (strategy:scope, :distribute, :run, :reduce). In one process alone it changes nothing, so that the same
---script runs with and without a launcher. Where TF_CONFIG is set, as many processes must have been launched as it
---names.
---Gradients are sent as backward computes them, from the second step on; `overlap=false` sends them before the step.
---The bits are the same. What a script does to `.grad` before the step comes behind strategy:reduce_gradients.
---With a mesh a replica is all processes that have the same place along its axis `data`: they hold its parts, get the
---same rows, and draw the same random numbers.
---@param ... {mesh?: perigee.Mesh, overlap?: boolean} # mesh, overlap=true
---@return perigee.Strategy
function dist.multi_worker(...) end

---Pipeline parallelism: stages of a model on several devices of this process (stage 1 on the first, 2 on the second,
---and where there are more stages than devices from the first again), or in as many processes, which compute parts of a
---batch at the same time. `pipeline:step(x, y)` adds gradients to those of the parameters, `pipeline(x)` evaluates,
---optimizers take `pipeline:parameters()`. A stage takes one tensor, and gives one. Gradients are those of
---loss(model(x), y), which must be a mean over samples. A place holds activations of as many micro-batches as there are
---places behind it (1f1b), or of all (gpipe), and waits for others
---(places - 1) / (micro_batches * stages of a place + places - 1) of the time. Devices of one process share the memory
---that a model takes, but overlap little: a copy between two waits for both.
---@param ... {stages: (perigee.Layer|function)[], devices?: string[], group?: perigee.Group, micro_batches?: integer, schedule?: "1f1b"|"interleaved"|"gpipe", loss?: function} # stages, devices, group, micro_batches=4, schedule=1f1b, loss
---@return perigee.Pipeline
function dist.pipeline(...) end

---This process's number among those that were launched together, from 0.
---@return integer
function dist.rank() end

---`pg.dist.receive(pg.empty{2, 3}, {from=0})`: what one process sends, as a new tensor of the shape, dtype and device
---of another.
---@param ... perigee.Tensor|integer|{like: perigee.Tensor, from: integer, tag?: integer, group?: perigee.Group} # like, from, tag=0, group
---@return perigee.Tensor
function dist.receive(...) end

---The sum (`{op="mean"}`, "max", "min") of all processes' tensors on one of them, zeros on the others.
---@param ... perigee.Tensor|integer|{t: perigee.Tensor, root?: integer, op?: string, group?: perigee.Group} # t, root=0, op=sum, group
---@return perigee.Tensor
function dist.reduce(...) end

---The sum (`{op="mean"}`, "max", "min") over all processes, of which each gets its block of the first axis.
---@param ... perigee.Tensor|{t: perigee.Tensor, op?: string, group?: perigee.Group} # t, op=sum, group
---@return perigee.Tensor # [n, ...]
function dist.reduce_scatter(...) end

---`pg.dist.send(t, {to=1})`: sends a tensor to one process, which receives it. Messages of one tag arrive in their
---order.
---@param ... perigee.Tensor|integer|{t: perigee.Tensor, to: integer, tag?: integer, group?: perigee.Group} # t, to, tag=0, group
function dist.send(...) end

---Spreads what all processes would have over them (Rajbhandari et al., 2020), so that each has its 1 / N of every
---parameter's elements: of states of optimizers at level 1, of gradients too at level 2, of the parameters themselves
---too at level 3, where a layer's are whole only while it computes. Called by all, with the same model
---(strategy:scope makes it so), before the optimizer is made. Answers the model.
---At levels 2 and 3 parameters outside of their layers' calls are vectors, this process's stretch, and `.grad` is that
---of the stretch, summed over all: the mean where no strategy is at work, weighted by samples where one is. A layer's
---parameters are read by its own call alone. Optimizers that go element by element work on them (SGD, Adam, AdamW and
---others); pg.dist.whole_state brings them together. Level 1 needs a strategy (pg.dist.multi_worker), which sums
---gradients.
---@param ... perigee.Layer|{model: perigee.Layer, level: integer, group?: perigee.Group, prefetch?: boolean} # model, level, group, prefetch=true
---@return perigee.Layer
function dist.shard(...) end

---Tensor parallelism: t as it is, the same on all processes of a group, for what each goes on with by itself; gradients
---are summed over them. The counterpart of pg.dist.total; nn.ColumnLinear begins so.
---@param ... perigee.Tensor|{t: perigee.Tensor, group: perigee.Group} # t, group
---@return perigee.Tensor
function dist.share(...) end

---How many processes were launched together; 1 for one alone.
---@return integer
function dist.size() end

---Tensor and sequence parallelism: of what all processes of a group have, the own part along an axis. Gradients are
---joined again.
---@param ... perigee.Tensor|integer|{t: perigee.Tensor, axis?: integer, group: perigee.Group} # t, axis=-1, group
---@return perigee.Tensor
function dist.split(...) end

---Makes nn.SyncBatchNorm of every BatchNorm1d, 2d and 3d in a model, with the same parameters and running statistics:
---inside of strategy:run and fit{strategy=} they are normalised over the whole batch. Before the optimizer is made or
---behind it. Answers the model: another layer where it is a batch norm itself.
---@param model perigee.Layer
---@return perigee.Layer
function dist.sync_batchnorm(model) end

---Tensor parallelism of transformers: attention becomes nn.ShardedAttention, and the two linear layers of each block of
---nn.TransformerEncoderLayer and its kin nn.ColumnLinear and nn.RowLinear, each process with its part of the weights
---that the model has. All processes of the group have the same model, make this call before its optimizer, and call the
---model with the same inputs; with sequence=true those of the blocks are `pg.dist.split(x, {axis=2, group=group})`, and
---pg.dist.join brings the results together. Answers the model.
---@param ... perigee.Layer|{model: perigee.Layer, group: perigee.Group, sequence?: boolean} # model, group, sequence=false
---@return perigee.Layer
function dist.tensor_parallel(...) end

---Tensor parallelism: the sum over a group, for what all of its processes go on with alike, up to one loss that all
---compute. Its gradient is the one that each has: pg.dist.all_reduce instead sums it once more, which is right where
---each process has a loss of its own.
---@param ... perigee.Tensor|{t: perigee.Tensor, group: perigee.Group} # t, group
---@return perigee.Tensor
function dist.total(...) end

---Parameters and buffers of a model by name, as model:state() gives them, where processes hold parts: these are brought
---together, one after the other, on every process. All that hold parts call it.
---@param model perigee.Layer
---@return table<string, perigee.Tensor>
function dist.whole_state(model) end

---Takes up where state() was taken.
---@param saved table
---@param job? any # fit gives it
---@return nil
function Gradual:load_state(saved, job) end

---The part that is to be pruned after `done` steps; nil: nothing is due yet.
---@return number?
function Gradual:sparsity() end

---What checkpoints carry; the masks are the model's.
---@return table
function Gradual:state() end

---Counts a step, and prunes where the schedule has one. Answers the part that is to be pruned by now.
---@return number
function Gradual:step() end

---Order: what fn(...) records runs after the nodes that made `deps`, which a run of any of it brings about, too:
---`g:after({update}, function() return w * 1 end)`. deps: a tensor of the graph, a name, or a list of them. Answers
---what fn returns.
---@param deps perigee.Tensor|string|(perigee.Tensor|string)[]
---@param fn function
---@param ... any # arguments of fn
---@return any ...
function Graph:after(deps, fn, ...) end

---A tensor that never changes: `g:constant({1, 2, 3}, {name="a"})`. A list alone, `g:constant{5}`, is the value.
---@param ... number|boolean|table|perigee.Tensor|{value: number|boolean|table|perigee.Tensor, name?: string, dtype?: perigee.Dtype} # value, name, dtype
---@return perigee.Tensor
function Graph:constant(...) end

---The graph in the dot language, written to a file when a path is given.
---@param path? string
---@return string
function Graph:dot(path) end

---A tensor of the graph by name, or by the name (of a list, the position) that it was returned under.
---@param name string|integer
---@return perigee.Tensor?
function Graph:find(name) end

---Adds the gradients of one tensor with respect to others: `g:gradients("loss", {"w"})` is a list. That the target
---does not depend on a source is an error, or nil in the list with `{allow_unused=true}`.
---@param target string|perigee.Tensor
---@param sources (string|perigee.Tensor)[]
---@param options? {allow_unused?: boolean}
---@return perigee.Tensor[]
function Graph:gradients(target, sources, options) end

---One tensor to fetch for several: `train = g:group{update1, update2}`. A run of it runs all of them; it is true, a
---bool tensor without axes.
---@param members (perigee.Tensor|string)[]
---@return perigee.Tensor
function Graph:group(members) end

---An input: `g:placeholder{"x", shape={"batch", 3}, dtype="float32"}`. Strings name sizes that the feeds
---decide; such a size, `x:size(1)`, is a value to compute with: `x:reshape{x:size(1) * 3}`.
---@param ... string|{name: string, shape: table, dtype?: perigee.Dtype} # name, shape, dtype
---@return perigee.Tensor
function Graph:placeholder(...) end

---Prints the graph's text.
function Graph:print() end

---A line per node, as text.
---@return string
function Graph:text() end

---State that lives between runs: `g:variable{"w", shape={3, 2}, init="glorot_uniform"}`. init is a tensor, numbers, a
---function of the shape, or zeros, ones, uniform, normal, glorot_uniform or glorot_normal (nn.init.xavier_*).
---@param ... string|{name: string, shape?: table, init?: "zeros"|"ones"|"uniform"|"normal"|"glorot_uniform"|"glorot_normal"|number|table|function|perigee.Tensor, dtype?: perigee.Dtype} # name, shape, init, dtype
---@return perigee.Tensor
function Graph:variable(...) end

---Ends it: further calls answer nil, and its threads have left.
function Iterator:close() end

---Whether no element follows. Where the length is unknown, the next one is made to see that.
---@return boolean
function Iterator:is_last() end

---Where it stands, as a plain table: for `ds:each{from=state}`.
---@return { epoch: integer, position: integer, size: integer? }
function Iterator:state() end

---Marks a table as an array: pg.json.array{} is written as [], while {} is written as {}. Arrays that were read are
---marked; tables with positions are arrays without it.
---@param list? any[] # without it a new one
---@return any[] list the same table
function json.array(list) end

---The value of a JSON text. Whole numbers from 2^53 on, which a Lua number would round, become int64 (as 1LL is); one
---that int64 does not hold, a name twice in an object, text that is not UTF-8, what is nested more than 1000 deep and
---whatever is not JSON is an error, with the code "data_loss", that says the line and the column.
---@param text string
---@return any value
function json.decode(text) end

---A value as JSON text, names in alphabetical order. Tables are arrays or objects, never both; numbers are written so
---that the same is read. Refused, with the place in the value: NaN and infinite numbers, holes, cycles, text that is no
---UTF-8, tensors, functions and objects of classes.
---@param value any # a text, number, int64, boolean, pg.json.null or a table of these
---@param options? {indent?: integer} # spaces a level, 0 to 16; without it one line
---@return string text
function json.encode(value, options) end

---Whether a table is marked as an array: those that were read are.
---@param v any # anything
---@return boolean
function json.is_array(v) end

---The value of a JSON file, as decode gives it.
---@param path string
---@return any value
function json.load(path) end

---Writes a value as a JSON file that ends with its line. Atomic: the file is the old one or the whole new one.
---@param path string
---@param value any # as of encode
---@param options? {indent?: integer} # as of encode
function json.save(path, value, options) end

---Calls fn(layer) for this and every inner layer.
---@param fn fun(layer: perigee.Layer)
---@return perigee.Layer
function Layer:apply(fn) end

---Registers state that is saved and moved with the layer but not trained.
---@param ... string|perigee.Tensor|{name: string, tensor: perigee.Tensor} # name, tensor
---@return perigee.Tensor
function Layer:buffer(...) end

---The layers directly inside.
---@return perigee.Layer[]
function Layer:children() end

---A copy with parameters and buffers of its own. Hooks stay behind.
---@return perigee.Layer
function Layer:clone() end

---Number of elements of all parameters.
---@param options? {trainable?: boolean} # only those that need gradients
---@return integer
function Layer:count_parameters(options) end

---Moves parameters and buffers to the processor, as to("cpu").
---@return perigee.Layer
function Layer:cpu() end

---Evaluation mode: dropout does nothing, batch norms use their running statistics.
---@return perigee.Layer
function Layer:eval() end

---Means over a dataset in evaluation mode: { loss=, accuracy= }. Loss and metrics are those of fit unless given.
---@param ... perigee.Dataset|{data?: perigee.Dataset, x?: perigee.Tensor, y?: perigee.Tensor, loss?: perigee.LossName|function|perigee.Layer, metrics?: (perigee.MetricName|function|perigee.Metric)[], batch_size?: integer} # data, x, y, loss, metrics, batch_size
---@return table<string, number>
function Layer:evaluate(...) end

---Trains. Options: data (a dataset of batches or samples x, y) or x= and y=, validation or validation_split, loss and
---metrics (names, functions, pg.metrics), optimizer, epochs, batch_size, shuffle and seed (of x and y: data has the
---order that ds:shuffle gives it), callbacks, verbose (0 nothing, 1 a bar on a terminal, 2 lines); accumulate (batches
---a step: as if they had been one, for a loss that is a mean over samples), clip_norm and clip_value (limits on the
---gradients of the optimizer's parameters, in this order), amp ("bfloat16", or "float16" with a GradScaler of fit's
---own; {dtype=..., scaler=...}; by default as amp.policy says), resume (true: go on, exactly, from the newest
---checkpoint of the callback pg.callbacks.ModelCheckpoint; begin where there is none), strategy
---(pg.dist.multi_worker() and pg.dist.mirrored{}: several processes or devices share each batch, whose size is that of
---all together; files and lines of callbacks are rank 0's; to resume, as many processes must see the folder).
---@param ... perigee.Dataset|{data?: perigee.Dataset, x?: perigee.Tensor, y?: perigee.Tensor, loss?: perigee.LossName|function|perigee.Layer, metrics?: (perigee.MetricName|function|perigee.Metric)[], batch_size?: integer, validation?: perigee.Dataset|table, validation_split?: number, optimizer?: perigee.Optimizer|string, epochs?: integer, accumulate?: integer, clip_norm?: number, clip_value?: number, amp?: "bfloat16"|"float16"|"float32"|table, callbacks?: perigee.Callback[]|perigee.Callback, verbose?: integer, shuffle?: boolean, seed?: integer, strategy?: perigee.Strategy, resume?: boolean} # data, x, y, loss, metrics, batch_size, validation, validation_split, optimizer, epochs=1, accumulate=1, clip_norm, clip_value, amp, callbacks, verbose=1, shuffle, seed, strategy, resume=false
---@return perigee.History history an entry an epoch: history[3].loss, .val_accuracy; #history
function Layer:fit(...) end

---What layer(...) computes; classes define it.
---@param ... any
---@return any
function Layer:forward(...) end

---Parameters need no gradients any more.
---@return perigee.Layer
function Layer:freeze() end

---Calls fn at every call of this layer, or in every backward pass through such a call. Several hooks of an event are
---called in the order in which they were set; each value that one returns and that is not nil replaces the one at its
---place, for those after it too.
--- "forward_pre"   fn(layer, inputs) before forward; inputs is a list, its length in `n`; returns new inputs
--- "forward"       fn(layer, inputs, output, ...) after forward, with all that it gave; returns new outputs
--- "backward_pre"  fn(layer, grad_outputs) once gradients of all outputs are known; returns new ones
--- "backward"      fn(layer, grad_inputs, grad_outputs) once those of all inputs are; returns new ones
---Lists of gradients have their length in `n`, and nil at the place of what needs or gets none: numbers and tables, and
---tensors inside of tables. Where no input needs a gradient "backward" is called all the same, with none. Backward
---hooks give forward aliases of its inputs, which it must not write into; in pg.grad they are called where it passes.
---Hooks stay behind when a layer is cloned or saved.
---@param event "forward"|"forward_pre"|"backward"|"backward_pre"
---@param fn fun(layer: perigee.Layer, values: any[], ...: any): any
---@return perigee.HookHandle handle
function Layer:hook(event, fn) end

---Copies tensors in by name. All names and shapes are checked before anything is changed. Of a tensor that has several
---names here (tied weights) one is enough; where there are more they must say the same. strict=false: names may be
---missing or left over. strip_prefix="model." is taken off the names that begin so, add_prefix put in front of all.
---@param given table<string, perigee.Tensor> # by name, as state() or pg.load give them
---@param options? {strict?: boolean, strip_prefix?: string, add_prefix?: string}
---@return string[] missing, string[] unexpected
function Layer:load_state(given, options) end

---The layer and all layers inside it, outermost first, each once.
---@return perigee.Layer[]
function Layer:modules() end

---Buffers, such as running statistics, by their names in state().
---@return fun(): string?, perigee.Tensor
function Layer:named_buffers() end

---`for name, parameter in model:named_parameters() do`: names as in state().
---@return fun(): string?, perigee.Tensor
function Layer:named_parameters() end

---Moves the layer to a device and keeps it there: calls bring their inputs along, and what forward makes is made there.
---A model whose layers are on several devices computes on one after the other, backward too, and its results are where
---its last layer is. model:to(device) brings all of it together again.
---@param device string
---@return perigee.Layer
function Layer:on(device) end

---All parameters, each once, in order.
---@return perigee.Tensor[]
function Layer:parameters() end

---The model's output for x [N, ...], computed in batches in evaluation mode, without gradients.
---@param ... perigee.Tensor|{x: perigee.Tensor, batch_size?: integer} # x, batch_size=256
---@return perigee.Tensor
function Layer:predict(...) end

---Bytes that parameters and buffers take.
---@return integer
function Layer:size() end

---Parameters and buffers by name, without history, sharing the layer's memory.
---@return table<string, perigee.Tensor>
function Layer:state() end

---Runs the model once, without gradients and as in evaluation, and prints a line a layer: the shape of its output, the
---parameters and bytes that it holds itself; then the totals. What occurs several times counts once. `input` is the
---shape of one sample, `{1, 28, 28}`, or a tensor; for a model of several inputs a list of these. `batch` samples are
---made, of zeros; `dtype` is one name or a list of them.
---@param options {input: integer[]|perigee.Tensor|table, dtype?: string|string[], batch?: integer}
---@return perigee.Summary summary what was printed: `.rows .parameters .trainable .bytes .output_bytes`
function Layer:summary(options) end

---Moves parameters and buffers in place: optimizers and averages that hold them keep working, and take their own state
---along. A dtype applies to floating tensors, a memory format to those with as many axes as it is for:
---`model:to{memory_format="channels_last"}`.
---@param target string|{device?: string, dtype?: string, memory_format?: string} # a device or a dtype
---@param second? string
---@return perigee.Layer
function Layer:to(target, second) end

---Training mode, in which dropout drops and batch norms learn their statistics; train(false) is eval().
---@param on? boolean
---@return perigee.Layer
function Layer:train(on) end

---Gives all parameters gradients again.
---@return perigee.Layer
function Layer:unfreeze() end

---Forgets the gradients of all parameters.
function Layer:zero_grad() end

---Raises: how often a step evaluates the loss depends on its values.
---@param pairs perigee.Tensor[][] # of a gradient and a variable each
---@return nil
function LBFGS:apply_gradients(pairs) end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
function LBFGS:load_state(saved) end

---Raises: how often a step evaluates the loss depends on its values.
---@param loss perigee.Tensor
---@return nil
function LBFGS:minimize(loss) end

---A plain table of what is remembered, for load_state.
---@return table
function LBFGS:state() end

---Up to max_iter iterations; each evaluates the closure.
---@param closure fun(): perigee.Tensor # clears gradients, computes the loss, calls backward, returns the loss
---@return number loss at the beginning
function LBFGS:step(closure) end

---Forgets the gradients of all parameters, or with set_to_none=false makes them zeros.
---@param options? boolean|{set_to_none: boolean?}
function LBFGS:zero_grad(options) end

---The norm of matrices in two axes (default: the last two).
---@param ... perigee.Tensor|number|string|integer[]|boolean|{x: perigee.Tensor, ord?: number|string, axis?: integer[], keepdim?: boolean} # x, ord, axis, keepdim=false
---@return perigee.Tensor
function linalg.matrix_norm(...) end

---Of a vector, or along one axis, the vector norm of order `ord`; of a matrix, or in two axes, the matrix norm. Without
---`ord` the root of the sum of squares, of any number of axes.
---@param ... perigee.Tensor|number|string|integer|integer[]|boolean|{x: perigee.Tensor, ord?: number|string, axis?: integer|integer[], keepdim?: boolean} # x, ord, axis, keepdim=false
---@return perigee.Tensor
function linalg.norm(...) end

---The norm of vectors along axes: (sum |x|^ord)^(1/ord).
---@param ... perigee.Tensor|number|integer|integer[]|boolean|{x: perigee.Tensor, ord?: number, axis?: integer|integer[], keepdim?: boolean} # x, ord, axis, keepdim=false
---@return perigee.Tensor
function linalg.vector_norm(...) end

---Releases everything that is unreachable, now, what compiled traces keep too: code is compiled anew afterwards.
function memory.collect() end

---Gives memory that no tensor uses back to the device, and pinned memory of the host that nobody uses.
---@param device? string
function memory.empty_cache(device) end

---Makes the peak of a device what is live there now: `.peak` then tells of what comes after.
---@param device? string
function memory.reset_peak(device) end

---Bytes `.live .reserved .peak .limit` and `.allocations` of a device. `.live` is what blocks in use take,
---`.requested` what was asked for of it, to the byte; `.grows`: whether memory is taken as it is needed.
---@param device? string
---@return {live: integer, reserved: integer, peak: integer, limit: integer, allocations: integer, requested: integer, grows: boolean}
function memory.stats(device) end

---The group of this process along an axis.
---@param name string
---@return perigee.Group
function Mesh:group(name) end

---Another one of its kind that has seen nothing.
---@param name? string # its name, where it is another
---@param threshold? number # its threshold, where it has none
---@return perigee.Metric
function Metric:fresh(name, threshold) end

---Takes up where state() was taken.
---@param saved table
---@param device? string # where the next batches will be
function Metric:load_state(saved, device) end

---Forgets all batches.
function Metric:reset() end

---What it has seen, for load_state and for checkpoints.
---@return table
function Metric:state() end

---Takes a batch in. Does not wait for the device.
---@param prediction perigee.Tensor # the model's output
---@param target perigee.Tensor
function Metric:update(prediction, target) end

---The value over all batches so far; NaN where there were none. Waits for the device.
---@return number
function Metric:value() end

---Area under the ROC curve, exact: how often a positive has a higher score than a negative, ties half. Scores and
---targets, 0 or 1, of one shape; it keeps all of them. NaN where one kind is missing. "auc" in fit{metrics={...}}.
---@param ... table
---@return perigee.Metric
function metrics.AUC(...) end

---Part of the samples whose highest score [N, C, ...] is at the label [N, ...]; of scores and targets [N] or [N, 1]:
---that are on the right side of the threshold. "accuracy" in fit{metrics={...}}.
---@param ... {threshold?: number} # threshold
---@return perigee.Metric
function metrics.Accuracy(...) end

---Part of the elements of a prediction that are on the same side of the threshold as the target, 0 or 1, of the same
---shape. "binary_accuracy" in fit{metrics={...}}.
---@param ... {threshold?: number} # threshold
---@return perigee.Metric
function metrics.BinaryAccuracy(...) end

---1 - Accuracy. "error" in fit{metrics={...}}.
---@param ... {threshold?: number} # threshold
---@return perigee.Metric
function metrics.ErrorRate(...) end

---2 precision recall / (precision + recall), over all batches together; of several classes the mean of theirs; as
---Precision. "f1" in fit{metrics={...}}.
---@param ... {threshold?: number} # threshold
---@return perigee.Metric
function metrics.F1(...) end

---Mean absolute difference of a prediction and a target of the same shape. "mae" in fit{metrics={...}}.
---@param ... table
---@return perigee.Metric
function metrics.MAE(...) end

---Mean squared difference of a prediction and a target of the same shape. "mse" in fit{metrics={...}}.
---@param ... table
---@return perigee.Metric
function metrics.MSE(...) end

---Of what was called positive, the part that is: hits / (hits + false alarms), over all batches together. Scores and
---targets, 0 or 1, of one shape; or scores [N, C, ...] and labels [N, ...]: then the mean over the classes that are
---there or were called. 0 where nothing was called. "precision" in fit{metrics={...}}.
---@param ... {threshold?: number} # threshold
---@return perigee.Metric
function metrics.Precision(...) end

---Of what is positive, the part that was called so: hits / (hits + misses), over all batches together; as Precision.
---"recall" in fit{metrics={...}}.
---@param ... {threshold?: number} # threshold
---@return perigee.Metric
function metrics.Recall(...) end

---Part of the samples whose label [N, ...] is among the k highest scores [N, C, ...]. "top_k_accuracy" in
---fit{metrics={...}} has k=5.
---@param ... integer|{k?: integer} # k=5
---@return perigee.Metric
function metrics.TopKAccuracy(...) end

---Adds a layer under a name, or puts it in the place of the one that has it.
---@param name string
---@param layer perigee.Layer
---@return perigee.nn.ModuleDict
function ModuleDict:add(name, layer) end

---The layer under a name, of whatever letters: dict.conv is dict:get("conv").
---@param name string
---@return perigee.Layer
function ModuleDict:get(name) end

---The names, in order.
---@return string[]
function ModuleDict:names() end

---Takes out the layer under a name.
---@param name string
---@return perigee.Layer removed
function ModuleDict:remove(name) end

---Adds a layer behind the others.
---@param layer perigee.Layer|function
---@return perigee.nn.ModuleList
function ModuleList:append(layer) end

---Adds layers behind the others.
---@param layers (perigee.Layer|function)[] # a list, or a layer that has positions
---@return perigee.nn.ModuleList
function ModuleList:extend(layers) end

---Adds a layer in front of the one at a position; those from there on move up by one.
---@param position integer # from 1 to #self + 1, negative from the end
---@param layer perigee.Layer|function
---@return perigee.nn.ModuleList
function ModuleList:insert(position, layer) end

---Takes out the layer at a position, the last one if not given; those behind it move down by one.
---@param position? integer # from 1, negative from the end
---@return perigee.Layer removed
function ModuleList:remove(position) end

---How much larger weights are to be for what a nonlinearity takes away: sqrt(2) for ReLU, and so on (He et al., 2015).
---@param ... "leaky_relu"|"relu"|"selu"|"tanh"|"sigmoid"|"linear"|"conv1d"|"conv2d"|"conv3d"|"conv_transpose1d"|"conv_transpose2d"|"conv_transpose3d"|number|{nonlinearity: "leaky_relu"|"relu"|"selu"|"tanh"|"sigmoid"|"linear"|"conv1d"|"conv2d"|"conv3d"|"conv_transpose1d"|"conv_transpose2d"|"conv_transpose3d", param?: number} # nonlinearity, param=0.01
---@return number
function nn_init.calculate_gain(...) end

---Fills t with a value.
---@param ... perigee.Tensor|number|{t: perigee.Tensor, value: number} # t, value
---@return perigee.Tensor
function nn_init.constant_(...) end

---Makes t [out, in, ...], a convolution's weight, one that passes its input on, as many channels as there are.
---@param ... perigee.Tensor|integer|{t: perigee.Tensor, groups?: integer} # t, groups=1
---@return perigee.Tensor
function nn_init.dirac_(...) end

---Makes the matrix t the identity: ones on the diagonal, zeros elsewhere.
---@param ... perigee.Tensor|{t: perigee.Tensor} # t
---@return perigee.Tensor
function nn_init.eye_(...) end

---Normal numbers of mean 0 and standard deviation gain / sqrt(fan) (He et al., 2015).
---@param ... perigee.Tensor|number|"fan_in"|"fan_out"|"leaky_relu"|"relu"|"selu"|"tanh"|"sigmoid"|"linear"|"conv1d"|"conv2d"|"conv3d"|"conv_transpose1d"|"conv_transpose2d"|"conv_transpose3d"|{t: perigee.Tensor, a?: number, mode?: "fan_in"|"fan_out", nonlinearity?: "leaky_relu"|"relu"|"selu"|"tanh"|"sigmoid"|"linear"|"conv1d"|"conv2d"|"conv3d"|"conv_transpose1d"|"conv_transpose2d"|"conv_transpose3d"} # t, a=0, mode=fan_in, nonlinearity=leaky_relu
---@return perigee.Tensor
function nn_init.kaiming_normal_(...) end

---Uniform numbers in +-gain sqrt(3 / fan) (He et al., 2015).
---@param ... perigee.Tensor|number|"fan_in"|"fan_out"|"leaky_relu"|"relu"|"selu"|"tanh"|"sigmoid"|"linear"|"conv1d"|"conv2d"|"conv3d"|"conv_transpose1d"|"conv_transpose2d"|"conv_transpose3d"|{t: perigee.Tensor, a?: number, mode?: "fan_in"|"fan_out", nonlinearity?: "leaky_relu"|"relu"|"selu"|"tanh"|"sigmoid"|"linear"|"conv1d"|"conv2d"|"conv3d"|"conv_transpose1d"|"conv_transpose2d"|"conv_transpose3d"} # t, a=0, mode=fan_in, nonlinearity=leaky_relu
---@return perigee.Tensor
function nn_init.kaiming_uniform_(...) end

---Fills t with normal random numbers.
---@param ... perigee.Tensor|number|{t: perigee.Tensor, mean?: number, std?: number} # t, mean=0, std=1
---@return perigee.Tensor
function nn_init.normal_(...) end

---Fills t with ones.
---@param ... perigee.Tensor|{t: perigee.Tensor} # t
---@return perigee.Tensor
function nn_init.ones_(...) end

---Makes t, its axes from the second on taken as one, a matrix of orthonormal rows, or columns where it has more rows,
---times gain (Saxe et al., 2013).
---@param ... perigee.Tensor|number|{t: perigee.Tensor, gain?: number} # t, gain=1
---@return perigee.Tensor
function nn_init.orthogonal_(...) end

---Fills the matrix t with normal random numbers of mean 0, a part of each column with zeros (Martens, 2010).
---@param ... perigee.Tensor|number|{t: perigee.Tensor, sparsity: number, std?: number} # t, sparsity, std=0.01
---@return perigee.Tensor
function nn_init.sparse_(...) end

---Fills t with normal random numbers, those outside [low, high] drawn again.
---@param ... perigee.Tensor|number|{t: perigee.Tensor, mean?: number, std?: number, low?: number, high?: number} # t, mean=0, std=1, low=-2, high=2
---@return perigee.Tensor
function nn_init.trunc_normal_(...) end

---Fills t with uniform random numbers in [low, high).
---@param ... perigee.Tensor|number|{t: perigee.Tensor, low?: number, high?: number} # t, low=0, high=1
---@return perigee.Tensor
function nn_init.uniform_(...) end

---Normal numbers of mean 0 and standard deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
---@param ... perigee.Tensor|number|{t: perigee.Tensor, gain?: number} # t, gain=1
---@return perigee.Tensor
function nn_init.xavier_normal_(...) end

---Uniform numbers in +-gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
---@param ... perigee.Tensor|number|{t: perigee.Tensor, gain?: number} # t, gain=1
---@return perigee.Tensor
function nn_init.xavier_uniform_(...) end

---Fills t with zeros.
---@param ... perigee.Tensor|{t: perigee.Tensor} # t
---@return perigee.Tensor
function nn_init.zeros_(...) end

---Sequences of different lengths without their padding, as recurrent layers take them. A layer does so itself where it
---is given lengths: lstm(x, {lengths={5, 3}}).
---@param ... perigee.Tensor|integer[]|boolean|{x: perigee.Tensor, lengths: integer[]|perigee.Tensor, batch_first?: boolean, enforce_sorted?: boolean} # x, lengths, batch_first=true, enforce_sorted=true
---@return perigee.PackedSequence
function nn_utils.pack_padded_sequence(...) end

---Sequences of different lengths, a list of tensors, packed as pack_padded_sequence does.
---@param ... perigee.Tensor[]|boolean|{sequences: perigee.Tensor[], enforce_sorted?: boolean} # sequences, enforce_sorted=true
---@return perigee.PackedSequence
function nn_utils.pack_sequence(...) end

---The sequences again with padding, [N, T, ...], and their lengths, int64 [N].
---@param ... perigee.PackedSequence|boolean|number|integer|{packed: perigee.PackedSequence, batch_first?: boolean, padding_value?: number, total_length?: integer} # packed, batch_first=true, padding_value=0, total_length
---@return perigee.Tensor padded, perigee.Tensor lengths
function nn_utils.pad_packed_sequence(...) end

---Sequences of different lengths as one tensor, [N, longest, ...], with padding behind their ends.
---@param ... perigee.Tensor[]|boolean|number|{sequences: perigee.Tensor[], batch_first?: boolean, padding_value?: number} # sequences, batch_first=true, padding_value=0
---@return perigee.Tensor
function nn_utils.pad_sequence(...) end

---Makes what nn.utils.spectral_norm has computed a parameter again, as it is now. Answers the layer.
---@param layer perigee.Layer
---@param options? {name?: string}
---@return perigee.Layer
function nn_utils.remove_spectral_norm(layer, options) end

---Makes what nn.utils.weight_norm has computed a parameter again, as it is now. Answers the layer.
---@param layer perigee.Layer
---@param options? {name?: string}
---@return perigee.Layer
function nn_utils.remove_weight_norm(layer, options) end

---Has a parameter divided by its largest singular value (Miyato et al., 2018, "Spectral normalization for generative
---adversarial networks"): `weight` becomes the parameter `weight_orig` and the buffers `weight_u` and `weight_v`, which
---estimate the singular vectors, by power iterations at every call in training mode; evaluation uses them as they are.
---`layer.weight` is what they make now. Files load in which they are called as PyTorch's newer function has them:
---parametrizations.weight.original, and parametrizations.weight.0._u and _v. Answers the layer.
---@param ... perigee.Layer|string|integer|number|{layer: perigee.Layer, name?: string, n_power_iterations?: integer, eps?: number, axis?: integer} # layer, name=weight, n_power_iterations=1, eps=1e-12, axis
---@return perigee.Layer
function nn_utils.spectral_norm(...) end

---Has a parameter computed of its direction v and its size g, as g v / ||v|| (Salimans and Kingma, 2016, "Weight
---normalization"), which are trained in its place: `weight` becomes `weight_g` and `weight_v`. `layer.weight` is still
---what they make now. Files load in which they are called parametrizations.weight.original0 and original1, as PyTorch's
---newer function has it. Answers the layer.
---@param ... perigee.Layer|string|integer|false|{layer: perigee.Layer, name?: string, axis?: integer|false} # layer, name=weight, axis=1
---@return perigee.Layer
function nn_utils.weight_norm(...) end

---Steps of the size that past steps had, in units of the parameter (Zeiler, 2012): v = rho v + (1 - rho) g^2, d = g
---sqrt(a + eps) / sqrt(v + eps), a = rho a + (1 - rho) d^2, w -= lr d.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, rho?: number, eps?: number, offload?: "host"} # lr=1, weight_decay=0, maximize=false, rho=0.9, eps=1e-06, offload
---@param ... any
---@return perigee.Optimizer
function optim.Adadelta(options, ...) end

---Adam's second moment of a matrix kept as a row and a column (Shazeer and Stern, 2018), as PyTorch defines it. In step
---t, with b = t^beta2_decay: r = (1 - b) r + b mean(g^2) over each row, c likewise over each column, v = r c / mean(r)
---(of vectors v = (1 - b) v + b g^2), u = g / sqrt(v), w = (1 - lr weight_decay) w - max(eps, rms(w)) min(lr, 1 /
---sqrt(t)) u / max(1, rms(u) / d).
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, beta2_decay?: number, eps?: number, d?: number, offload?: "host"} # lr=0.01, weight_decay=0, beta2_decay=-0.8, eps=0.001, d=1, offload
---@param ... any
---@return perigee.Optimizer
function optim.Adafactor(options, ...) end

---Steps divided by the root of all squared gradients g so far (Duchi, Hazan and Singer, 2011): s = s + g^2, w -= lr /
---(1 + (t - 1) lr_decay) g / (sqrt(s) + eps) in step t.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, lr_decay?: number, initial_accumulator_value?: number, eps?: number, offload?: "host"} # lr=0.01, weight_decay=0, maximize=false, lr_decay=0, initial_accumulator_value=0, eps=1e-10, offload
---@param ... any
---@return perigee.Optimizer
function optim.Adagrad(options, ...) end

---Steps scaled by running means of the gradient g and its square (Kingma and Ba, 2014): m = beta1 m + (1 - beta1) g, v
---= beta2 v + (1 - beta2) g^2, w -= lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) in step t.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, beta1?: number, beta2?: number, eps?: number, amsgrad?: boolean, betas?: number[], offload?: "host"} # lr=0.001, weight_decay=0, maximize=false, beta1=0.9, beta2=0.999, eps=1e-08, amsgrad=false, betas={0.9, 0.999}, offload
---@param ... any
---@return perigee.Optimizer
function optim.Adam(options, ...) end

---Adam with the weight decay outside the gradient (Loshchilov and Hutter, 2017): w = (1 - lr weight_decay) w, then
---Adam's step.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, beta1?: number, beta2?: number, eps?: number, amsgrad?: boolean, betas?: number[], offload?: "host"} # lr=0.001, weight_decay=0.01, maximize=false, beta1=0.9, beta2=0.999, eps=1e-08, amsgrad=false, betas={0.9, 0.999}, offload
---@param ... any
---@return perigee.Optimizer
function optim.AdamW(options, ...) end

---Adam in the infinity norm (Kingma and Ba, 2014): m = beta1 m + (1 - beta1) g, u = max(beta2 u, |g| + eps), w -= lr /
---(1 - beta1^t) m / u in step t.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, beta1?: number, beta2?: number, eps?: number, betas?: number[], offload?: "host"} # lr=0.002, weight_decay=0, maximize=false, beta1=0.9, beta2=0.999, eps=1e-08, betas={0.9, 0.999}, offload
---@param ... any
---@return perigee.Optimizer
function optim.Adamax(options, ...) end

---Exponential moving average of a model's parameters, or of a list of tensors: average = decay average + (1 - decay)
---weights at each update(). With warmup early weights are soon forgotten. Buffers are copied.
---@param ... perigee.Layer|perigee.Tensor[]|number|{model: perigee.Layer|perigee.Tensor[], decay?: number, warmup?: boolean} # model, decay=0.999, warmup=false
---@return perigee.Average
function optim.EMA(...) end

---Adam's direction with the length of the parameter (You et al., 2020, "Large Batch Optimization for Deep Learning"): m
---= beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) +
---weight_decay w, w -= lr |w| / |u| u in step t, the norms being Euclidean ones of a whole parameter.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, beta1?: number, beta2?: number, eps?: number, betas?: number[], offload?: "host"} # lr=0.001, weight_decay=0, beta1=0.9, beta2=0.999, eps=1e-06, betas={0.9, 0.999}, offload
---@param ... any
---@return perigee.Optimizer
function optim.LAMB(options, ...) end

---Gradient descent with a rate a parameter (You, Gitman and Ginsburg, 2017): d = trust |w| / (|g| + weight_decay |w| +
---eps) (g + weight_decay w), b = momentum b + d, w -= lr b; nesterov: w -= lr (d + momentum b).
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, momentum?: number, trust?: number, eps?: number, nesterov?: boolean, offload?: "host"} # lr=0.1, weight_decay=0, momentum=0.9, trust=0.001, eps=1e-08, nesterov=false, offload
---@param ... any
---@return perigee.Optimizer
function optim.LARS(options, ...) end

---Steps of Newton's kind (Liu and Nocedal, 1989): w -= lr H g, H being an estimate of the inverse of the second
---derivatives from past moves s = w' - w and turns y = g' - g of the gradient, by the two-loop recursion beginning with
---s y / (y y); the first step goes along the gradient. optimizer:step(closure), where closure clears gradients,
---computes the loss, calls backward and returns the loss. PyTorch's steps without a line search. All parameters must
---have one dtype and one device.
---@param ... perigee.Layer|perigee.Tensor[]|{params: perigee.Layer|perigee.Tensor[], lr?: number, max_iter?: integer, max_eval?: integer, tolerance_grad?: number, tolerance_change?: number, history_size?: integer} # params, lr=1, max_iter=20, max_eval, tolerance_grad=1e-07, tolerance_change=1e-09, history_size=100
---@return perigee.LBFGS
function optim.LBFGS(...) end

---Steps of equal length along the sign of the momentum (Chen et al., 2023): w = (1 - lr weight_decay) w - lr sign(beta1
---m + (1 - beta1) g), then m = beta2 m + (1 - beta2) g.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, beta1?: number, beta2?: number, betas?: number[], offload?: "host"} # lr=0.0001, weight_decay=0, maximize=false, beta1=0.9, beta2=0.99, betas={0.9, 0.99}, offload
---@param ... any
---@return perigee.Optimizer
function optim.Lion(options, ...) end

---Momentum made orthogonal (Jordan et al., 2024), for the matrices of hidden layers; axes behind the first count as
---one. Vectors, embeddings and the last layer belong to another optimizer. m = momentum m + (1 - momentum) g, u = m, or
---momentum m + (1 - momentum) g with nesterov; w = (1 - lr weight_decay) w - lr sqrt(max(1, rows / columns)) O(u), O(u)
---being near U V^T of u = U S V^T: x = u / |u|, then ns_steps times x = 3.4445 x + (-4.7750 a + 2.0315 a^2) x with a =
---x x^T.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, momentum?: number, nesterov?: boolean, ns_steps?: number, eps?: number, offload?: "host"} # lr=0.001, weight_decay=0.1, momentum=0.95, nesterov=true, ns_steps=5, eps=1e-07, offload
---@param ... any
---@return perigee.Optimizer
function optim.Muon(options, ...) end

---Adam with Nesterov's look ahead (Dozat, 2016): mu = beta1 (1 - 0.96^(t momentum_decay) / 2), and in place of Adam's
---mean mu' m / (1 - product of all mu and mu') + (1 - mu) g / (1 - product of all mu), mu' being that of the next step.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, beta1?: number, beta2?: number, eps?: number, momentum_decay?: number, betas?: number[], offload?: "host"} # lr=0.002, weight_decay=0, maximize=false, beta1=0.9, beta2=0.999, eps=1e-08, momentum_decay=0.004, betas={0.9, 0.999}, offload
---@param ... any
---@return perigee.Optimizer
function optim.NAdam(options, ...) end

---Adam that trusts the running mean of squares once enough steps are in it (Liu et al., 2020): with n = 2 / (1 - beta2)
--- - 1 and r = n - 2 t beta2^t / (1 - beta2^t), where r > 5 Adam's step times sqrt((r - 4) (r - 2) n / ((n - 4) (n - 2)
---r)), else w -= lr m / (1 - beta1^t).
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, beta1?: number, beta2?: number, eps?: number, betas?: number[], offload?: "host"} # lr=0.001, weight_decay=0, maximize=false, beta1=0.9, beta2=0.999, eps=1e-08, betas={0.9, 0.999}, offload
---@param ... any
---@return perigee.Optimizer
function optim.RAdam(options, ...) end

---Steps divided by a running root mean square of the gradient (Tieleman and Hinton, 2012): v = alpha v + (1 - alpha)
---g^2, d = g / (sqrt(v) + eps), w -= lr d. momentum: b = momentum b + d in place of d. centered: v less the square of
---the mean gradient (Graves, 2013).
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, alpha?: number, eps?: number, momentum?: number, centered?: boolean, offload?: "host"} # lr=0.01, weight_decay=0, maximize=false, alpha=0.99, eps=1e-08, momentum=0, centered=false, offload
---@param ... any
---@return perigee.Optimizer
function optim.RMSprop(options, ...) end

---A step length an element, by whether its gradient keeps its sign (Riedmiller and Braun, 1993): s is times etaplus
---where it does, and etaminus where it does not (there the gradient counts as 0), within step_min and step_max; w -= s
---sign(g). For whole batches.
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, etaminus?: number, etaplus?: number, step_min?: number, step_max?: number, offload?: "host"} # lr=0.01, weight_decay=0, maximize=false, etaminus=0.5, etaplus=1.2, step_min=1e-06, step_max=50, offload
---@param ... any
---@return perigee.Optimizer
function optim.Rprop(options, ...) end

---Stochastic gradient descent: w -= lr g. momentum (Sutskever et al., 2013): b = momentum b + (1 - dampening) g, and b
---= g in the first step; w -= lr b. nesterov: w -= lr (g + momentum b).
---@param options? perigee.Tensor[]|{lr?: number, weight_decay?: number, maximize?: boolean, momentum?: number, dampening?: number, nesterov?: boolean, offload?: "host"} # lr=0.001, weight_decay=0, maximize=false, momentum=0, dampening=0, nesterov=false, offload
---@param ... any
---@return perigee.Optimizer
function optim.SGD(options, ...) end

---The mean of all weights that update() was called with (stochastic weight averaging: Izmailov et al., 2018):
---average += (weights - average) / n at the n-th update. Running statistics are the model's last ones: run the averaged
---model over data in train() mode to renew them.
---@param ... perigee.Layer|perigee.Tensor[]|{model: perigee.Layer|perigee.Tensor[]} # model
---@return perigee.Average
function optim.SWA(...) end

---Scales all gradients so that the norm of all their elements together is at most `max_norm`. Waits for the device only
---with error_if_nonfinite. Of parameters of which several processes hold parts it is that of all parts, and all
---of these processes call it.
---@param ... perigee.Tensor[]|perigee.Layer|number|{params: perigee.Tensor[]|perigee.Layer, max_norm: number, norm_type?: number, error_if_nonfinite?: boolean} # params, max_norm, norm_type=2, error_if_nonfinite
---@return perigee.Tensor norm the norm before, 0-dim
function optim.clip_grad_norm_(...) end

---Limits every element of all gradients to [-limit, limit].
---@param ... perigee.Tensor[]|perigee.Layer|number|{params: perigee.Tensor[]|perigee.Layer, limit: number} # params, limit
function optim.clip_grad_value_(...) end

---Whether v is an optimizer.
---@param v any # anything
---@return boolean
function optim.is_optimizer(v) end

---Multiplies all gradients by a number.
---@param ... perigee.Tensor[]|perigee.Layer|number|{params: perigee.Tensor[]|perigee.Layer, factor: number} # params, factor
function optim.scale_grad_(...) end

---`optim.sched.Chain{first, second, ...}`: schedules all at once; their factors are multiplied (PyTorch's
---ChainedScheduler). With milestones={n, ...} one after the other, as Sequential.
---@param ... any
---@return perigee.Schedule
function optim_sched.Chain(...) end

---Times factor for total_iters steps, then the initial rate.
---@param ... perigee.Optimizer|number|integer|{optimizer: perigee.Optimizer, factor?: number, total_iters?: integer} # optimizer, factor=0.33333333333333, total_iters=5
---@return perigee.Schedule
function optim_sched.Constant(...) end

---Down along half a cosine in t_max steps (Loshchilov and Hutter, 2016): eta_min + (lr - eta_min)
---(1 + cos(pi t / t_max)) / 2 after t steps, lr the initial rate. There it stays; PyTorch's goes up again.
---@param ... perigee.Optimizer|integer|number|{optimizer: perigee.Optimizer, t_max: integer, eta_min?: number} # optimizer, t_max, eta_min=0
---@return perigee.Schedule
function optim_sched.Cosine(...) end

---Half cosines of t_0, t_0 t_mult, t_0 t_mult^2, ... steps, each from the initial rate (SGDR: Loshchilov and Hutter,
---2016): eta_min + (lr - eta_min) (1 + cos(pi t / T)) / 2, t steps into one of T.
---@param ... perigee.Optimizer|integer|number|{optimizer: perigee.Optimizer, t_0: integer, t_mult?: integer, eta_min?: number} # optimizer, t_0, t_mult=1, eta_min=0
---@return perigee.Schedule
function optim_sched.CosineRestarts(...) end

---Times gamma every step: lr gamma^t after t steps, lr the initial rate.
---@param ... perigee.Optimizer|number|{optimizer: perigee.Optimizer, gamma: number} # optimizer, gamma
---@return perigee.Schedule
function optim_sched.Exponential(...) end

---Times what a function answers: lr fn(t) after t steps, lr the initial rate. Its state does not hold the function.
---@param ... perigee.Optimizer|((fun(done: integer): number)|(fun(done: integer): number)[])|{optimizer: perigee.Optimizer, lr_lambda: ((fun(done: integer): number)|(fun(done: integer): number)[])} # optimizer, lr_lambda
---@return perigee.Schedule
function optim_sched.Lambda(...) end

---What Warmup is, with the order and the defaults of PyTorch's LinearLR: a factor that moves in a line from
---start_factor to end_factor for total_iters steps and stays.
---@param ... perigee.Optimizer|number|integer|{optimizer: perigee.Optimizer, start_factor?: number, end_factor?: number, total_iters?: integer} # optimizer, start_factor=0.33333333333333, end_factor=1, total_iters=5
---@return perigee.Schedule
function optim_sched.Linear(...) end

---Times gamma at each milestone: lr gamma^n after t steps, n the number of milestones up to t, lr the initial rate.
---@param ... perigee.Optimizer|integer[]|number|{optimizer: perigee.Optimizer, milestones: integer[], gamma?: number} # optimizer, milestones, gamma=0.1
---@return perigee.Schedule
function optim_sched.MultiStep(...) end

---Times what a function answers, at each step: lr fn(1) fn(2) ... fn(t) after t steps, lr the initial rate. A function
---must answer the same each time: it is asked again where a state is loaded.
---@param ... perigee.Optimizer|((fun(done: integer): number)|(fun(done: integer): number)[])|{optimizer: perigee.Optimizer, lr_lambda: ((fun(done: integer): number)|(fun(done: integer): number)[])} # optimizer, lr_lambda
---@return perigee.Schedule
function optim_sched.Multiplicative(...) end

---From max_lr / div_factor up to max_lr in pct_start total_steps - 1 steps and down to max_lr / div_factor /
---final_div_factor, the momentum (or beta1) the other way (Smith and Topin, 2018); between two ends a and b along
---b + (a - b) (1 + cos(pi part)) / 2, or a line. Behind total_steps it stays.
---@param ... perigee.Optimizer|number|number[]|integer|{optimizer: perigee.Optimizer, max_lr: number|number[], total_steps: integer, pct_start?: number, anneal_strategy?: "cos"|"linear", cycle_momentum?: boolean, base_momentum?: number, max_momentum?: number, div_factor?: number, final_div_factor?: number, three_phase?: boolean} # optimizer, max_lr, total_steps, pct_start=0.3, anneal_strategy=cos, cycle_momentum=true, base_momentum=0.85, max_momentum=0.95, div_factor=25, final_div_factor=10000, three_phase=false
---@return perigee.Schedule
function optim_sched.OneCycle(...) end

---Times factor when the value given to step(value) has not got better for more than `patience` steps: lr = max(lr
---factor, min_lr). Better: below best (1 - threshold), in mode max above best (1 + threshold), or best minus or plus
---threshold with threshold_mode abs.
---@param ... perigee.Optimizer|{optimizer: perigee.Optimizer, mode?: "min"|"max", factor?: number, patience?: integer, threshold?: number, threshold_mode?: "rel"|"abs", cooldown?: integer, min_lr?: number, eps?: number} # optimizer, mode=min, factor=0.1, patience=10, threshold=0.0001, threshold_mode=rel, cooldown=0, min_lr=0, eps=1e-08
---@return perigee.Schedule
function optim_sched.Plateau(...) end

---Down to 0 in total_iters steps, and 0 from there on: lr (1 - min(t, total_iters) / total_iters)^power after t steps,
---lr the initial rate.
---@param ... perigee.Optimizer|integer|number|{optimizer: perigee.Optimizer, total_iters: integer, power?: number} # optimizer, total_iters, power=1
---@return perigee.Schedule
function optim_sched.Polynomial(...) end

---`optim.sched.Sequential{first, second, ..., milestones={n, ...}}`: one schedule after the other, each beginning at
---its milestone, a count of steps: Sequential{Linear{opt, 0.1, total_iters=10}, Cosine{opt, 90}, milestones={10}}.
---@param ... any
---@return perigee.Schedule
function optim_sched.Sequential(...) end

---Times gamma every step_size steps: lr gamma^floor(t / step_size) after t steps, lr the initial rate.
---@param ... perigee.Optimizer|integer|number|{optimizer: perigee.Optimizer, step_size: integer, gamma?: number} # optimizer, step_size, gamma=0.1
---@return perigee.Schedule
function optim_sched.Step(...) end

---A factor that moves in a line for total_iters steps and stays: lr (start_factor + (end_factor - start_factor) min(t,
---total_iters) / total_iters) after t steps, lr the initial rate.
---@param ... perigee.Optimizer|integer|number|{optimizer: perigee.Optimizer, total_iters: integer, start_factor?: number, end_factor?: number} # optimizer, total_iters, start_factor=0.33333333333333, end_factor=1
---@return perigee.Schedule
function optim_sched.Warmup(...) end

---Adds a parameter group: { params = {...}, lr = ... }; what it does not say is as in the constructor.
---@param group table
---@return perigee.Optimizer
function Optimizer:add_group(group) end

---Inside of pg.graph: records a step by gradients that the graph has computed, { { gradient, variable }, ... }, as
---minimize does by those of a loss. A variable is a parameter or a g:variable.
---@param pairs perigee.Tensor[][] # of a gradient and a variable each
---@param options? {accumulate?: integer, clip_norm?: number, clip_value?: number, lr?: perigee.Tensor}
---@return perigee.Tensor
function Optimizer:apply_gradients(pairs, options) end

---Gives a recipe its parameters.
---@param params perigee.Tensor[]|perigee.Layer|table[]
---@return perigee.Optimizer
function Optimizer:bind(params) end

---Whether it has parameters; what has none is a recipe for fit.
---@return boolean
function Optimizer:is_bound() end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
function Optimizer:load_state(saved) end

---Inside of pg.graph: records the gradients of a loss and a step by them. Answers the training tensor: who runs it
---trains, and gets the number of steps done, int64 []. An optimizer without parameters takes all variables of the graph
---that want gradients and that the loss depends on.
---The optimizer's state and step count are variables of the graph ("adam/fc1.weight/exp_avg", "adam/step") and begin
---with what it holds; session:commit(optimizer) writes them back. Its hyperparameters are read at each run: what a
---script or a schedule sets in `optimizer.groups` holds from the next run on, bit by bit as in eager code. (Of LAMB,
---LARS, Adafactor and Muon that is the learning rate; others raise where they were changed.) `lr` is a tensor of the
---graph in place of the learning rates. Options as fit has them: accumulate=n steps in each n-th run with the mean of n
---gradients; clip_norm and clip_value limit the gradients; scaler scales the loss, leaves out steps whose gradients
---are not finite, and adapts its scale ("grad_scaler/scale"). What is recorded behind it sees nothing of the step.
---@param loss perigee.Tensor
---@param options? {accumulate?: integer, clip_norm?: number, clip_value?: number, scaler?: perigee.GradScaler, lr?: perigee.Tensor}
---@return perigee.Tensor
function Optimizer:minimize(loss, options) end

---Hyperparameters, step counts and state: groups[i] = { options = {...}, steps = {...}, slots = { name = {...} } }.
---@return table
function Optimizer:state() end

---Updates all parameters that have gradients: behind a call of closure(), which computes them, where one is given.
---@param closure? fun(): perigee.Tensor # clears gradients, computes the loss, calls backward, returns the loss
---@return perigee.Tensor? loss what the closure returned
function Optimizer:step(closure) end

---Forgets the gradients of all parameters, or with set_to_none=false makes them zeros.
---@param options? boolean|{set_to_none: boolean?}
function Optimizer:zero_grad(options) end

---The same sequences on another device, or of another dtype.
---@param target string
---@return perigee.PackedSequence
function PackedSequence:to(target) end

---Adds a tensor behind the others, as a parameter.
---@param p perigee.Tensor
---@return perigee.nn.ParameterList
function ParameterList:append(p) end

---Adds tensors behind the others, as parameters.
---@param list perigee.Tensor[]
---@return perigee.nn.ParameterList
function ParameterList:extend(list) end

---`pg.CheckpointManager{dir, keep=3, mode="min", model=model, optimizer=opt, ...}`: a folder of checkpoints (made if it
---is not there) of these objects: all that has state() and load_state(), under any names. The state of the random
---number generator always goes with them. Of the files the `keep` that were saved last stay, and the best where saves
---give a metric: those of earlier runs in the folder count too.
---@param ... any
---@return perigee.CheckpointManager
function pg.CheckpointManager(...) end

---Runs a graph: `pg.Session{g}`, then session:run("y", { x = ... }).
---@param ... perigee.Graph|{graph: perigee.Graph, log_device_placement?: boolean, allow_soft_placement?: boolean, commit?: table, fuse?: boolean, gpu_options?: table} # graph, log_device_placement, allow_soft_placement, commit, fuse=true, gpu_options
---@return perigee.Session
function pg.Session(...) end

---Writes what TensorBoard and `perigee watch` show into a new event file in the folder:
---`pg.SummaryWriter{"runs/first"}`. Steps count from 0 up; 0 if none is given. A record is in the file when the call
---returns.
---@param ... string|{dir: string, purge_step?: integer} # dir, purge_step
---@return perigee.SummaryWriter
function pg.SummaryWriter(...) end

---Absolute value.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.abs(x) end

---Absolute value.
---@return perigee.Tensor
function Tensor:abs() end

---x:abs, written into x.
---@return perigee.Tensor
function Tensor:abs_() end

---Arc cosine, in radians, in [0, pi].
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.acos(x) end

---Arc cosine, in radians, in [0, pi].
---@return perigee.Tensor
function Tensor:acos() end

---x:acos, written into x.
---@return perigee.Tensor
function Tensor:acos_() end

---Inverse hyperbolic cosine of x >= 1.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.acosh(x) end

---Inverse hyperbolic cosine of x >= 1.
---@return perigee.Tensor
function Tensor:acosh() end

---x:acosh, written into x.
---@return perigee.Tensor
function Tensor:acosh_() end

---One step of Adadelta (Zeiler 2012): v = rho v + (1 - rho) g^2, d = sqrt(a + eps) / sqrt(v + eps) g, a = rho a + (1 -
---rho) d^2, param -= lr d. g is grad / grad_scale, for maximize its negative, plus weight_decay param. All parameters
---step in one pass; where found_inf is true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param square_avgs perigee.Tensor[] # shapes of params: v
---@param acc_deltas perigee.Tensor[] # shapes of params: a
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, rho?: number, eps?: number} # maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, rho=0.9, eps=1e-06
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], square_avgs: perigee.Tensor[], acc_deltas: perigee.Tensor[], options: {maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, rho?: number, eps?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], square_avgs?: perigee.Tensor[], acc_deltas?: perigee.Tensor[], found_inf?: perigee.Tensor, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, rho?: number, eps?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.adadelta(params, grads, square_avgs, acc_deltas, found_inf, options, ...) end

---One step of Adagrad (Duchi, Hazan, Singer 2011): s = s + g^2, param -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) +
---eps); s is initial_accumulator_value before the first step. g is grad / grad_scale, for maximize its negative, plus
---weight_decay param. All parameters step in one pass; where found_inf is true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param sums perigee.Tensor[] # shapes of params: s
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, lr_decay?: number, initial_accumulator_value?: number, eps?: number} # maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, lr_decay=0, initial_accumulator_value=0, eps=1e-10
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], sums: perigee.Tensor[], options: {maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, lr_decay?: number, initial_accumulator_value?: number, eps?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], sums?: perigee.Tensor[], found_inf?: perigee.Tensor, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, lr_decay?: number, initial_accumulator_value?: number, eps?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.adagrad(params, grads, sums, found_inf, options, ...) end

---One step of Adam (Kingma, Ba 2015): m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, param -= lr (m / (1 -
---beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps). decoupled: no weight decay in g; param is first scaled by 1 - lr
---weight_decay (AdamW: Loshchilov, Hutter 2019). With max_exp_avg_sqs, the largest v so far stands in for v (AMSGrad:
---Reddi et al. 2018). g is grad / grad_scale, for maximize its negative, plus weight_decay param. All parameters step
---in one pass; where found_inf is true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param exp_avgs perigee.Tensor[] # shapes of params: m
---@param exp_avg_sqs perigee.Tensor[] # shapes of params: v
---@param max_exp_avg_sqs perigee.Tensor[] # shapes of params, or none: the largest v
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{decoupled?: boolean, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number} # decoupled=false, maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, beta1=0.9, beta2=0.999, eps=1e-08
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], exp_avgs: perigee.Tensor[], exp_avg_sqs: perigee.Tensor[], max_exp_avg_sqs: perigee.Tensor[], options: {decoupled?: boolean, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], exp_avgs?: perigee.Tensor[], exp_avg_sqs?: perigee.Tensor[], max_exp_avg_sqs?: perigee.Tensor[], found_inf?: perigee.Tensor, decoupled?: boolean, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, found_inf, options, ...) end

---One step of Adamax (Kingma, Ba 2015, section 7): m = beta1 m + (1 - beta1) g, u = max(beta2 u, |g| + eps), param -=
---lr / (1 - beta1^step) m / u. g is grad / grad_scale, for maximize its negative, plus weight_decay param. All
---parameters step in one pass; where found_inf is true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param exp_avgs perigee.Tensor[] # shapes of params: m
---@param exp_infs perigee.Tensor[] # shapes of params: u
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number} # maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, beta1=0.9, beta2=0.999, eps=1e-08
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], exp_avgs: perigee.Tensor[], exp_infs: perigee.Tensor[], options: {maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], exp_avgs?: perigee.Tensor[], exp_infs?: perigee.Tensor[], found_inf?: perigee.Tensor, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.adamax(params, grads, exp_avgs, exp_infs, found_inf, options, ...) end

---Mean of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of s elements.
---@param x perigee.Tensor # [N, C, L]
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, size: integer|integer[]}): perigee.Tensor
function pg.adaptive_avg_pool1d(x, options, ...) end

---Mean of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of s elements.
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
function Tensor:adaptive_avg_pool1d(options, ...) end

---Mean of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of s elements.
---@param x perigee.Tensor # [N, C, H, W]
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, size: integer|integer[]}): perigee.Tensor
function pg.adaptive_avg_pool2d(x, options, ...) end

---Mean of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of s elements.
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
function Tensor:adaptive_avg_pool2d(options, ...) end

---Mean of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of s elements.
---@param x perigee.Tensor # [N, C, D, H, W]
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, size: integer|integer[]}): perigee.Tensor
function pg.adaptive_avg_pool3d(x, options, ...) end

---Mean of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of s elements.
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
function Tensor:adaptive_avg_pool3d(options, ...) end

---Largest element of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of
---s elements. A NaN counts as largest, of equal ones the first.
---@param x perigee.Tensor # [N, C, L]
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, size: integer|integer[]}): perigee.Tensor
function pg.adaptive_max_pool1d(x, options, ...) end

---Largest element of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of
---s elements. A NaN counts as largest, of equal ones the first.
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
function Tensor:adaptive_max_pool1d(options, ...) end

---Largest element of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of
---s elements. A NaN counts as largest, of equal ones the first.
---@param x perigee.Tensor # [N, C, H, W]
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, size: integer|integer[]}): perigee.Tensor
function pg.adaptive_max_pool2d(x, options, ...) end

---Largest element of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of
---s elements. A NaN counts as largest, of equal ones the first.
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
function Tensor:adaptive_max_pool2d(options, ...) end

---Largest element of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of
---s elements. A NaN counts as largest, of equal ones the first.
---@param x perigee.Tensor # [N, C, D, H, W]
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, size: integer|integer[]}): perigee.Tensor
function pg.adaptive_max_pool3d(x, options, ...) end

---Largest element of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of
---s elements. A NaN counts as largest, of equal ones the first.
---@param options? integer|integer[]|{size: integer|integer[]} # size
---@param ... any
---@return perigee.Tensor
function Tensor:adaptive_max_pool3d(options, ...) end

---Sum of x and y. Of booleans: whether either is true.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.add(x, y) end

---Sum of x and y. Of booleans: whether either is true.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:add(y) end

---x:add, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:add_(y) end

---x + value * a / b.
---@param x perigee.Tensor # any shape
---@param a perigee.Tensor # a shape that broadcasts
---@param b perigee.Tensor # a shape that broadcasts
---@param options? number|{value?: number} # value=1
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, a?: perigee.Tensor, b?: perigee.Tensor, value?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.addcdiv(x, a, b, options) end

---x + value * a / b.
---@param a perigee.Tensor # a shape that broadcasts
---@param b perigee.Tensor # a shape that broadcasts
---@param options? number|{value?: number} # value=1
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {a?: perigee.Tensor, b?: perigee.Tensor, value?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:addcdiv(a, b, options) end

---x:addcdiv, written into x.
---@param a perigee.Tensor # a shape that broadcasts
---@param b perigee.Tensor # a shape that broadcasts
---@param options? number|{value?: number} # value=1
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {a?: perigee.Tensor, b?: perigee.Tensor, value?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:addcdiv_(a, b, options) end

---x + value * a * b.
---@param x perigee.Tensor # any shape
---@param a perigee.Tensor # a shape that broadcasts
---@param b perigee.Tensor # a shape that broadcasts
---@param options? number|{value?: number} # value=1
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, a?: perigee.Tensor, b?: perigee.Tensor, value?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.addcmul(x, a, b, options) end

---x + value * a * b.
---@param a perigee.Tensor # a shape that broadcasts
---@param b perigee.Tensor # a shape that broadcasts
---@param options? number|{value?: number} # value=1
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {a?: perigee.Tensor, b?: perigee.Tensor, value?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:addcmul(a, b, options) end

---x:addcmul, written into x.
---@param a perigee.Tensor # a shape that broadcasts
---@param b perigee.Tensor # a shape that broadcasts
---@param options? number|{value?: number} # value=1
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {a?: perigee.Tensor, b?: perigee.Tensor, value?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:addcmul_(a, b, options) end

---beta * x + alpha * (a times b), of matrices a [n, k] and b [k, m].
---@param ... perigee.Tensor|number|{x: perigee.Tensor, a: perigee.Tensor, b: perigee.Tensor, beta?: number, alpha?: number} # x, a, b, beta=1, alpha=1
---@return perigee.Tensor
function pg.addmm(...) end

---The grid [N, H, W, 2] for grid_sample that affine matrices x [N, 2, 3] make of images of `size` {N, C, H, W}.
---@param ... perigee.Tensor|integer|integer[]|boolean|{x: perigee.Tensor, size: integer|integer[], align_corners?: boolean} # x, size, align_corners=false
---@return perigee.Tensor
function pg.affine_grid(...) end

---Whether all elements are not zero.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.all(x, options, ...) end

---Whether all elements are not zero.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:all(options, ...) end

---Whether no element of any tensor is infinite or NaN.
---@param xs perigee.Tensor[] # any shapes
---@return perigee.Tensor
---@overload fun(arguments: {xs?: perigee.Tensor[]}): perigee.Tensor
function pg.all_finite(xs) end

---The x of all processes of a group, behind each other along the first axis in the order of ranks; of 0-dim ones a
---vector. Gradient: reduce_scatter.
---@param x perigee.Tensor # equal shapes on all ranks
---@param options? integer|{group?: integer, ranks?: integer} # group=0, ranks=1
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, group?: integer, ranks?: integer}): perigee.Tensor
function pg.all_gather(x, options, ...) end

---The x of all processes of a group, behind each other along the first axis in the order of ranks; of 0-dim ones a
---vector. Gradient: reduce_scatter.
---@param options? integer|{group?: integer, ranks?: integer} # group=0, ranks=1
---@param ... any
---@return perigee.Tensor
function Tensor:all_gather(options, ...) end

---Every y is the sum (mean, largest, smallest) of all xs, in their order. Of a group of processes: over all of theirs.
---Gradients of sum and mean are the same reduction of the cotangents. Under deterministic=true sums and means of
---several floating tensors are refused: their bits depend on how many devices there are.
---@param xs perigee.Tensor[] # equal shapes
---@param options? "sum"|"mean"|"max"|"min"|{op?: "sum"|"mean"|"max"|"min", group?: integer} # op=sum, group=0
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {xs?: perigee.Tensor[], op?: "sum"|"mean"|"max"|"min", group?: integer}): perigee.Tensor
function pg.all_reduce(xs, options, ...) end

---The first axis is in as many blocks as a group has processes: block k of x goes to rank k, and block k of y came from
---there. Gradient: the same.
---@param x perigee.Tensor # [ranks * n, ...], equal shapes on all ranks
---@param options? integer|{group?: integer, ranks?: integer} # group=0, ranks=1
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, group?: integer, ranks?: integer}): perigee.Tensor
function pg.all_to_all(x, options, ...) end

---The first axis is in as many blocks as a group has processes: block k of x goes to rank k, and block k of y came from
---there. Gradient: the same.
---@param options? integer|{group?: integer, ranks?: integer} # group=0, ranks=1
---@param ... any
---@return perigee.Tensor
function Tensor:all_to_all(options, ...) end

---Whether `isclose` holds everywhere.
---@param ... perigee.Tensor|number|boolean|{a: perigee.Tensor, b: perigee.Tensor, rtol?: number, atol?: number, equal_nan?: boolean} # a, b, rtol=1e-05, atol=1e-08, equal_nan=false
---@return boolean
function pg.allclose(...) end

---Largest element; NaN where there is one. Equal largest elements share the gradient.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.amax(x, options, ...) end

---Largest element; NaN where there is one. Equal largest elements share the gradient.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:amax(options, ...) end

---Smallest element; NaN where there is one. Equal smallest elements share the gradient.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.amin(x, options, ...) end

---Smallest element; NaN where there is one. Equal smallest elements share the gradient.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:amin(options, ...) end

---The smallest and the largest element, of all or along one axis.
---@param ... perigee.Tensor|integer|boolean|{x: perigee.Tensor, axis?: integer, keepdim?: boolean} # x, axis, keepdim=false
---@return perigee.Tensor min
---@return perigee.Tensor max
function pg.aminmax(...) end

---Whether any element is not zero.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.any(x, options, ...) end

---Whether any element is not zero.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:any(options, ...) end

---`pg.arange(5)`, `pg.arange(0, 10, 2)`: from start, step by step, stop excluded. int64 if all are whole.
---@param ... number|perigee.Size|{start: number|perigee.Size, stop?: number|perigee.Size, step?: number, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # start, stop, step=1, dtype, device, requires_grad
---@return perigee.Tensor
function pg.arange(...) end

---Where the largest element stands along an axis, or in the flattened tensor: contents from 0, int64.
---@param ... perigee.Tensor|integer|boolean|{x: perigee.Tensor, axis?: integer, keepdim?: boolean} # x, axis, keepdim=false
---@return perigee.Tensor
function pg.argmax(...) end

---Where the least element stands along an axis, or in the flattened tensor: contents from 0, int64.
---@param ... perigee.Tensor|integer|boolean|{x: perigee.Tensor, axis?: integer, keepdim?: boolean} # x, axis, keepdim=false
---@return perigee.Tensor
function pg.argmin(...) end

---Where the elements of each line along `axis` stand in rising order.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis?: integer, descending?: boolean, stable?: boolean} # axis=-1, descending=false, stable=true
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer, descending?: boolean, stable?: boolean}): perigee.Tensor
function pg.argsort(x, options, ...) end

---Where the elements of each line along `axis` stand in rising order.
---@param options? integer|{axis?: integer, descending?: boolean, stable?: boolean} # axis=-1, descending=false, stable=true
---@param ... any
---@return perigee.Tensor
function Tensor:argsort(options, ...) end

---p as it is, where all of it lies in [0, 1]; else an error that names the first element which does not.
---@param p perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {p?: perigee.Tensor}): perigee.Tensor
function pg.as_probability(p) end

---p as it is, where all of it lies in [0, 1]; else an error that names the first element which does not.
---@return perigee.Tensor
function Tensor:as_probability() end

---Arc sine, in radians, in [-pi/2, pi/2].
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.asin(x) end

---Arc sine, in radians, in [-pi/2, pi/2].
---@return perigee.Tensor
function Tensor:asin() end

---x:asin, written into x.
---@return perigee.Tensor
function Tensor:asin_() end

---Inverse hyperbolic sine.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.asinh(x) end

---Inverse hyperbolic sine.
---@return perigee.Tensor
function Tensor:asinh() end

---x:asinh, written into x.
---@return perigee.Tensor
function Tensor:asinh_() end

---x, or eps where that is more, with the gradient of x throughout.
---@param x perigee.Tensor # any shape
---@param options? number|{eps?: number} # eps=0
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, eps?: number}): perigee.Tensor
function pg.at_least(x, options) end

---x, or eps where that is more, with the gradient of x throughout.
---@param options? number|{eps?: number} # eps=0
---@return perigee.Tensor
function Tensor:at_least(options) end

---Arc tangent, in radians, in [-pi/2, pi/2].
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.atan(x) end

---Arc tangent, in radians, in [-pi/2, pi/2].
---@return perigee.Tensor
function Tensor:atan() end

---x:atan, written into x.
---@return perigee.Tensor
function Tensor:atan_() end

---Angle of the point (y, x), that is with x as the ordinate, in radians, in [-pi, pi].
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.atan2(x, y) end

---Angle of the point (y, x), that is with x as the ordinate, in radians, in [-pi, pi].
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:atan2(y) end

---x:atan2, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:atan2_(y) end

---Inverse hyperbolic tangent of x in [-1, 1].
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.atanh(x) end

---Inverse hyperbolic tangent of x in [-1, 1].
---@return perigee.Tensor
function Tensor:atanh() end

---x:atanh, written into x.
---@return perigee.Tensor
function Tensor:atanh_() end

---Mean of each window.
---@param x perigee.Tensor # [N, C, L]
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer} # kernel, stride, padding={0}, ceil_mode=false, count_include_pad=true, divisor_override=0
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer}): perigee.Tensor
function pg.avg_pool1d(x, options, ...) end

---Mean of each window.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer} # kernel, stride, padding={0}, ceil_mode=false, count_include_pad=true, divisor_override=0
---@param ... any
---@return perigee.Tensor
function Tensor:avg_pool1d(options, ...) end

---Mean of each window.
---@param x perigee.Tensor # [N, C, H, W]
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer} # kernel, stride, padding={0, 0}, ceil_mode=false, count_include_pad=true, divisor_override=0
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer}): perigee.Tensor
function pg.avg_pool2d(x, options, ...) end

---Mean of each window.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer} # kernel, stride, padding={0, 0}, ceil_mode=false, count_include_pad=true, divisor_override=0
---@param ... any
---@return perigee.Tensor
function Tensor:avg_pool2d(options, ...) end

---Mean of each window.
---@param x perigee.Tensor # [N, C, D, H, W]
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer} # kernel, stride, padding={0, 0, 0}, ceil_mode=false, count_include_pad=true, divisor_override=0
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer}): perigee.Tensor
function pg.avg_pool3d(x, options, ...) end

---Mean of each window.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], ceil_mode?: boolean, count_include_pad?: boolean, divisor_override?: integer} # kernel, stride, padding={0, 0, 0}, ceil_mode=false, count_include_pad=true, divisor_override=0
---@param ... any
---@return perigee.Tensor
function Tensor:avg_pool3d(options, ...) end

---beta * x + alpha * (a times b), of batches of matrices a [b, n, k] and b [b, k, m].
---@param ... perigee.Tensor|number|{x: perigee.Tensor, a: perigee.Tensor, b: perigee.Tensor, beta?: number, alpha?: number} # x, a, b, beta=1, alpha=1
---@return perigee.Tensor
function pg.baddbmm(...) end

---Each channel shifted and scaled to mean 0 and variance 1, then by weight and bias (Ioffe, Szegedy 2015). training:
---with the batch's statistics (biased variance), which also move the running ones (unbiased variance): running = (1 -
---momentum) running + momentum batch. Otherwise: with the running ones.
---@param x perigee.Tensor # [N, C, ...]
---@param weight? perigee.Tensor # [C]
---@param bias? perigee.Tensor # [C]
---@param running_mean? perigee.Tensor # [C]
---@param running_var? perigee.Tensor # [C]
---@param options? boolean|{training?: boolean, momentum?: number, eps?: number} # training=false, momentum=0.1, eps=1e-05
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, bias: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, bias: perigee.Tensor, running_mean: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, running_mean?: perigee.Tensor, running_var?: perigee.Tensor, training?: boolean, momentum?: number, eps?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.batch_norm(x, weight, bias, running_mean, running_var, options, ...) end

---Each channel shifted and scaled to mean 0 and variance 1, then by weight and bias (Ioffe, Szegedy 2015). training:
---with the batch's statistics (biased variance), which also move the running ones (unbiased variance): running = (1 -
---momentum) running + momentum batch. Otherwise: with the running ones.
---@param weight? perigee.Tensor # [C]
---@param bias? perigee.Tensor # [C]
---@param running_mean? perigee.Tensor # [C]
---@param running_var? perigee.Tensor # [C]
---@param options? boolean|{training?: boolean, momentum?: number, eps?: number} # training=false, momentum=0.1, eps=1e-05
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, bias: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, bias: perigee.Tensor, running_mean: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, running_mean?: perigee.Tensor, running_var?: perigee.Tensor, training?: boolean, momentum?: number, eps?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:batch_norm(weight, bias, running_mean, running_var, options, ...) end

---An activation of batch_norm, applied while the result is written: the same bits as one after the other. Statistics
---are those of x.
---@param x perigee.Tensor # [N, C, ...]
---@param weight? perigee.Tensor # [C]
---@param bias? perigee.Tensor # [C]
---@param running_mean? perigee.Tensor # [C]
---@param running_var? perigee.Tensor # [C]
---@param options? boolean|{training?: boolean, momentum?: number, eps?: number, activation?: "relu"} # training=false, momentum=0.1, eps=1e-05, activation=relu
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number, activation?: "relu"}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number, activation?: "relu"}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, bias: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number, activation?: "relu"}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, bias: perigee.Tensor, running_mean: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number, activation?: "relu"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, running_mean?: perigee.Tensor, running_var?: perigee.Tensor, training?: boolean, momentum?: number, eps?: number, activation?: "relu"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.batch_norm_activation(x, weight, bias, running_mean, running_var, options, ...) end

---An activation of batch_norm, applied while the result is written: the same bits as one after the other. Statistics
---are those of x.
---@param weight? perigee.Tensor # [C]
---@param bias? perigee.Tensor # [C]
---@param running_mean? perigee.Tensor # [C]
---@param running_var? perigee.Tensor # [C]
---@param options? boolean|{training?: boolean, momentum?: number, eps?: number, activation?: "relu"} # training=false, momentum=0.1, eps=1e-05, activation=relu
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, bias: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, bias: perigee.Tensor, running_mean: perigee.Tensor, options: {training?: boolean, momentum?: number, eps?: number, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, running_mean?: perigee.Tensor, running_var?: perigee.Tensor, training?: boolean, momentum?: number, eps?: number, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:batch_norm_activation(weight, bias, running_mean, running_var, options, ...) end

---log(1 - p) - log(p), logarithms being -100 at least: the gradient of binary_cross_entropy by y.
---@param p perigee.Tensor # probabilities
---@return perigee.Tensor
---@overload fun(arguments: {p?: perigee.Tensor}): perigee.Tensor
function pg.bce_odds(p) end

---log(1 - p) - log(p), logarithms being -100 at least: the gradient of binary_cross_entropy by y.
---@return perigee.Tensor
function Tensor:bce_odds() end

---Runs fn and measures each iteration with the devices synchronised. Times in seconds, throughput in items a second;
---tostring tells them.
---@param ... function|integer|number|{fn: function, warmup?: integer, iterations?: integer, items?: number} # fn, warmup=3, iterations=20, items=1
---@return { mean: number, p50: number, p99: number, min: number, throughput: number, iterations: integer }
function pg.bench(...) end

---Measures two functions by turns, in changing order, with the devices' work: what disturbs the machine meanwhile
---disturbs both. The verdict names one as faster where three quarters of the rounds say so, and by more than 1 percent.
---@param ... function|{a: function, b: function, rounds?: integer, warmup?: integer, seconds?: number} # a, b, rounds=15, warmup=2, seconds=0.01
---@return perigee.Comparison
function pg.bench_compare(...) end

---1 with probability p, else 0. A p outside of [0, 1], or NaN, is an error that names the first one.
---@param p perigee.Tensor # probabilities in [0, 1], any shape
---@return perigee.Tensor
---@overload fun(arguments: {p?: perigee.Tensor}): perigee.Tensor
function pg.bernoulli(p) end

---1 with probability p, else 0. A p outside of [0, 1], or NaN, is an error that names the first one.
---@return perigee.Tensor
function Tensor:bernoulli() end

---x[n] W[k] y[n]^T + bias[k] for every k: x [..., I], y [..., J], weight [K, I, J], bias [K] to [..., K].
---@param ... perigee.Tensor|{x: perigee.Tensor, y: perigee.Tensor, weight: perigee.Tensor, bias?: perigee.Tensor} # x, y, weight, bias
---@return perigee.Tensor
function pg.bilinear(...) end

---Cross entropy -(y log(p) + (1 - y) log(1 - p)) of probabilities p, logarithms being -100 at least. A p outside of [0,
---1] is an error that names it. The gradient (p - y) / (p (1 - p)) is divided by 1e-12 at least (float16: 2^-15).
---@param p perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(p: perigee.Tensor, y: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(arguments: {p?: perigee.Tensor, y?: perigee.Tensor, weight?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.binary_cross_entropy(p, y, weight, options) end

---Cross entropy -(y log(p) + (1 - y) log(1 - p)) of probabilities p, logarithms being -100 at least. A p outside of [0,
---1] is an error that names it. The gradient (p - y) / (p (1 - p)) is divided by 1e-12 at least (float16: 2^-15).
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, y: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, weight?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:binary_cross_entropy(y, weight, options) end

---Cross entropy -(pos_weight y log(s) + (1 - y) log(1 - s)) with s = sigmoid(x), safe for any size of x.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param pos_weight? perigee.Tensor # what positives cost; broadcasts against y
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, y: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(x: perigee.Tensor, y: perigee.Tensor, pos_weight: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, pos_weight?: perigee.Tensor, weight?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.binary_cross_entropy_with_logits(x, y, pos_weight, weight, options) end

---Cross entropy -(pos_weight y log(s) + (1 - y) log(1 - s)) with s = sigmoid(x), safe for any size of x.
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param pos_weight? perigee.Tensor # what positives cost; broadcasts against y
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, y: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, y: perigee.Tensor, pos_weight: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, pos_weight?: perigee.Tensor, weight?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:binary_cross_entropy_with_logits(y, pos_weight, weight, options) end

---How often each of the whole numbers from 0 occurs in x, or the sums of their weights: [largest + 1], or `minlength`
---if that is more.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, weights?: perigee.Tensor, minlength?: integer} # x, weights, minlength=0
---@return perigee.Tensor
function pg.bincount(...) end

---The bits that x and y both have.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.bitwise_and(x, y) end

---The bits that x and y both have.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_and(y) end

---x:bitwise_and, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_and_(y) end

---x times 2^y; 0 where y is negative or at least as many as x has bits.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.bitwise_left_shift(x, y) end

---x times 2^y; 0 where y is negative or at least as many as x has bits.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_left_shift(y) end

---x:bitwise_left_shift, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_left_shift_(y) end

---All bits turned over; of booleans, whether x is false.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.bitwise_not(x) end

---All bits turned over; of booleans, whether x is false.
---@return perigee.Tensor
function Tensor:bitwise_not() end

---x:bitwise_not, written into x.
---@return perigee.Tensor
function Tensor:bitwise_not_() end

---The bits that x or y has.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.bitwise_or(x, y) end

---The bits that x or y has.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_or(y) end

---x:bitwise_or, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_or_(y) end

---x / 2^y, rounded down; -1 or 0, by the sign of x, where y is negative or at least as many as x has bits.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.bitwise_right_shift(x, y) end

---x / 2^y, rounded down; -1 or 0, by the sign of x, where y is negative or at least as many as x has bits.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_right_shift(y) end

---x:bitwise_right_shift, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_right_shift_(y) end

---The bits that exactly one of x and y has.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.bitwise_xor(x, y) end

---The bits that exactly one of x and y has.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_xor(y) end

---x:bitwise_xor, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:bitwise_xor_(y) end

---The matrices (or vectors, as rows, and numbers) along the diagonal of one, which is zero elsewhere.
---@param ... perigee.Tensor|perigee.Tensor[]
---@return perigee.Tensor
function pg.block_diag(...) end

---Matrix products of [b, n, k] and [b, k, m].
---@param ... perigee.Tensor|{x: perigee.Tensor, y: perigee.Tensor} # x, y
---@return perigee.Tensor
function pg.bmm(...) end

---Every process of a group gets the x of one of them. Gradient: reduce, so that it arrives at the root alone.
---@param x perigee.Tensor # equal shapes on all ranks; read at the root
---@param options? integer|{root?: integer, group?: integer, ranks?: integer} # root=0, group=0, ranks=1
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, root?: integer, group?: integer, ranks?: integer}): perigee.Tensor
function pg.broadcast(x, options, ...) end

---Every process of a group gets the x of one of them. Gradient: reduce, so that it arrives at the root alone.
---@param options? integer|{root?: integer, group?: integer, ranks?: integer} # root=0, group=0, ranks=1
---@param ... any
---@return perigee.Tensor
function Tensor:broadcast(options, ...) end

---Views of the tensors in the shape that they broadcast to, as several results.
---@param ... perigee.Tensor|perigee.Tensor[]
---@return perigee.Tensor ...
function pg.broadcast_tensors(...) end

---x repeated to a shape, without a copy.
---@param ... perigee.Tensor|integer[]|{x: perigee.Tensor, shape: integer[]} # x, shape
---@return perigee.Tensor
function pg.broadcast_to(...) end

---In which bucket each element lies, given the buckets' rising boundaries: i where boundaries[i] < x <=
---boundaries[i + 1], with `right=true` where boundaries[i] <= x < boundaries[i + 1].
---@param ... perigee.Tensor|boolean|{x: perigee.Tensor, boundaries: perigee.Tensor, right?: boolean} # x, boundaries, right=false
---@return perigee.Tensor buckets int64 from 0 to n
function pg.bucketize(...) end

---Every combination of an element of each: [product of their sizes, number of them].
---@param ... perigee.Tensor|perigee.Tensor[] # of one axis
---@return perigee.Tensor
function pg.cartesian_prod(...) end

---x in another dtype. Floating to integer truncates towards zero; to bool: not equal to zero.
---@param x perigee.Tensor # any shape
---@param options? perigee.Dtype|{dtype: perigee.Dtype} # dtype
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, dtype: perigee.Dtype}): perigee.Tensor
function pg.cast(x, options) end

---x in another dtype. Floating to integer truncates towards zero; to bool: not equal to zero.
---@param options? perigee.Dtype|{dtype: perigee.Dtype} # dtype
---@return perigee.Tensor
function Tensor:cast(options) end

---The tensors behind each other along `axis`.
---@param xs perigee.Tensor[] # equal shapes but for `axis`
---@param options? integer|{axis?: integer} # axis=1
---@return perigee.Tensor
---@overload fun(arguments: {xs?: perigee.Tensor[], axis?: integer}): perigee.Tensor
function pg.cat(xs, options) end

---The distance (sum |x1 - x2|^p)^(1/p) of every row of x1 to every row of x2; for p = 0 the number of elements that
---differ, for p = inf the largest difference. Leading axes broadcast. Where two rows are the same the gradient is 0.
---@param x1 perigee.Tensor # [..., n, d]
---@param x2 perigee.Tensor # [..., m, d]
---@param options? number|{p?: number, compute_mode?: "use_mm_for_euclid_dist_if_necessary"|"use_mm_for_euclid_dist"|"donot_use_mm_for_euclid_dist"} # p=2, compute_mode=use_mm_for_euclid_dist_if_necessary
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x1?: perigee.Tensor, x2?: perigee.Tensor, p?: number, compute_mode?: "use_mm_for_euclid_dist_if_necessary"|"use_mm_for_euclid_dist"|"donot_use_mm_for_euclid_dist"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.cdist(x1, x2, options, ...) end

---The distance (sum |x1 - x2|^p)^(1/p) of every row of x1 to every row of x2; for p = 0 the number of elements that
---differ, for p = inf the largest difference. Leading axes broadcast. Where two rows are the same the gradient is 0.
---@param x2 perigee.Tensor # [..., m, d]
---@param options? number|{p?: number, compute_mode?: "use_mm_for_euclid_dist_if_necessary"|"use_mm_for_euclid_dist"|"donot_use_mm_for_euclid_dist"} # p=2, compute_mode=use_mm_for_euclid_dist_if_necessary
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {x2?: perigee.Tensor, p?: number, compute_mode?: "use_mm_for_euclid_dist_if_necessary"|"use_mm_for_euclid_dist"|"donot_use_mm_for_euclid_dist"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:cdist(x2, options, ...) end

---The smallest integer that is not below x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.ceil(x) end

---The smallest integer that is not below x.
---@return perigee.Tensor
function Tensor:ceil() end

---x:ceil, written into x.
---@return perigee.Tensor
function Tensor:ceil_() end

---x where x > 0, else alpha * (exp(x / alpha) - 1), whose slope is 1 at 0 (Barron 2017).
---@param x perigee.Tensor # any shape
---@param options? number|{alpha?: number} # alpha=1
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, alpha?: number}): perigee.Tensor
function pg.celu(x, options) end

---x where x > 0, else alpha * (exp(x / alpha) - 1), whose slope is 1 at 0 (Barron 2017).
---@param options? number|{alpha?: number} # alpha=1
---@return perigee.Tensor
function Tensor:celu(options) end

---x:celu, written into x.
---@param options? number|{alpha?: number} # alpha=1
---@return perigee.Tensor
function Tensor:celu_(options) end

---[N, C, ...] with the channels of `groups` groups interleaved (Zhang and others, 2018).
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, groups: integer} # x, groups
---@return perigee.Tensor
function pg.channel_shuffle(...) end

---A list of at most `count` parts of equal size along an axis; the last may be smaller. In a graph, of an axis whose
---size only a run tells, just `count` of one size: the run fails where that cannot be.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, count: integer, axis?: integer} # x, count, axis=1
---@return perigee.Tensor[]
function pg.chunk(...) end

---x limited to [min, max]; NaN stays. Where min > max the result is max. The gradient is that of x inside the limits,
---bounds included, and 0 outside.
---@param x perigee.Tensor # any shape
---@param options? number|{min?: number, max?: number} # min=-inf, max=inf
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, min?: number, max?: number}): perigee.Tensor
function pg.clamp(x, options, ...) end

---x limited to [min, max]; NaN stays. Where min > max the result is max. The gradient is that of x inside the limits,
---bounds included, and 0 outside.
---@param options? number|{min?: number, max?: number} # min=-inf, max=inf
---@param ... any
---@return perigee.Tensor
function Tensor:clamp(options, ...) end

---x:clamp, written into x.
---@param options? number|{min?: number, max?: number} # min=-inf, max=inf
---@param ... any
---@return perigee.Tensor
function Tensor:clamp_(options, ...) end

---Limits every element of all tensors to [min, max], in place. NaN stays.
---@param xs perigee.Tensor[] # any shapes
---@param options? number|{min?: number, max?: number} # min=-inf, max=inf
---@param ... any
---@overload fun(arguments: {xs?: perigee.Tensor[], min?: number, max?: number}): perigee.Tensor
function pg.clamp_all(xs, options, ...) end

---A dense copy, in the order of axes that x lies in, or another.
---@param x perigee.Tensor # any shape
---@param options? "preserve"|"contiguous"|"channels_last"|"channels_last_3d"|{memory_format?: "preserve"|"contiguous"|"channels_last"|"channels_last_3d"} # memory_format=preserve
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, memory_format?: "preserve"|"contiguous"|"channels_last"|"channels_last_3d"}): perigee.Tensor
function pg.clone(x, options) end

---A dense copy, in the order of axes that x lies in, or another.
---@param options? "preserve"|"contiguous"|"channels_last"|"channels_last_3d"|{memory_format?: "preserve"|"contiguous"|"channels_last"|"channels_last_3d"} # memory_format=preserve
---@return perigee.Tensor
function Tensor:clone(options) end

---The transpose of im2col: columns x [N, C * kh * kw, L] added up where they came from in images of `size`
---[N, C, H, W]. PyTorch's nn.functional.fold.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, size: integer|integer[], kernel: integer|integer[], dilation?: integer|integer[], padding?: integer|integer[], stride?: integer|integer[]} # x, size, kernel, dilation=1, padding=0, stride=1
---@return perigee.Tensor
function pg.col2im(...) end

---Beside each other; tensors of one axis are columns.
---@param ... perigee.Tensor|perigee.Tensor[]
---@return perigee.Tensor
function pg.column_stack(...) end

---pg.compile(fn, options): a function that does what fn does, with the same bits. fn runs at every call; what it asks
---for is compared with plans of earlier calls, and where it is the same, the plan's kernels are launched in one go, in
---memory that was laid out once. A call is a pg.scope: what fn returns or keeps stays. The first call runs as always,
---the second is noted.
---With `frozen=true`, for inference, fn runs without gradients, and only where a call's arguments are not yet known by
---their dtypes, shapes and devices (of tensors) or by what they are (of all else). Other calls launch what was noted,
---without fn: tensors that it met are read as they are at the call, numbers and branches stay those of then. What fn
---cannot do without itself (`:item()`, random numbers, backward) is an error. Convolutions and what stands around them
---may be one kernel, whose results differ from eager ones by rounding; not with `layout=false`.
---@param ... function|"bfloat16"|"float16"|boolean|{fn: function, amp?: "bfloat16"|"float16", fuse?: boolean, capture?: boolean, frozen?: boolean, layout?: boolean} # fn, amp, fuse=true, capture=true, frozen=false, layout=true
---@return perigee.Compiled
function pg.compile(...) end

---One of two functions, by a bool tensor of one element: `pg.cond(x:sum():gt(0), function() return x:sqrt() end,
---function() return -x end)`. Only the one that is taken runs. Each returns a tensor, or a table of them; what follows
---the functions is handed to the one that is taken. Gradients flow through it. A Lua boolean may stand for the tensor.
---In a graph both functions are recorded, as parts of one node, which runs one of them; they must return the same
---names, dtypes and numbers of axes. They may use tensors from outside, but not write into them.
---@param pred boolean|perigee.Tensor
---@param a fun(...): perigee.Tensor|table # when it is true
---@param b fun(...): perigee.Tensor|table # when it is false
---@param ... any # arguments of either
---@return perigee.Tensor|table
function pg.cond(pred, a, b, ...) end

---Cross-correlation of sequences with filters. Along each axis the result has (size + padding - dilation (k - 1) - 1) /
---stride + 1 elements, rounded down.
---@param x perigee.Tensor # [N, C, L]
---@param weight perigee.Tensor # [O, C / groups, k]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer} # stride={1}, padding={0}, dilation={1}, groups=1
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.conv1d(x, weight, bias, options, ...) end

---Cross-correlation of sequences with filters. Along each axis the result has (size + padding - dilation (k - 1) - 1) /
---stride + 1 elements, rounded down.
---@param weight perigee.Tensor # [O, C / groups, k]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer} # stride={1}, padding={0}, dilation={1}, groups=1
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:conv1d(weight, bias, options, ...) end

---An activation of conv1d(x, weight, bias), applied while the result is written: the same bits as one after the other.
---@param x perigee.Tensor # [N, C, L]
---@param weight perigee.Tensor # [O, C / groups, k]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"} # stride={1}, padding={0}, dilation={1}, groups=1, activation=relu
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.conv1d_activation(x, weight, bias, options, ...) end

---An activation of conv1d(x, weight, bias), applied while the result is written: the same bits as one after the other.
---@param weight perigee.Tensor # [O, C / groups, k]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"} # stride={1}, padding={0}, dilation={1}, groups=1, activation=relu
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:conv1d_activation(weight, bias, options, ...) end

---Cross-correlation of images with filters. Along each axis the result has (size + padding - dilation (k - 1) - 1) /
---stride + 1 elements, rounded down. Filters of 3x3 with stride 1 may go Winograd's way, gradients too: rounding
---differs from that of a sum of products, and an infinity or NaN may spread to results beside those that see it.
---@param x perigee.Tensor # [N, C, H, W]
---@param weight perigee.Tensor # [O, C / groups, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer} # stride={1, 1}, padding={0, 0}, dilation={1, 1}, groups=1
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.conv2d(x, weight, bias, options, ...) end

---Cross-correlation of images with filters. Along each axis the result has (size + padding - dilation (k - 1) - 1) /
---stride + 1 elements, rounded down. Filters of 3x3 with stride 1 may go Winograd's way, gradients too: rounding
---differs from that of a sum of products, and an infinity or NaN may spread to results beside those that see it.
---@param weight perigee.Tensor # [O, C / groups, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer} # stride={1, 1}, padding={0, 0}, dilation={1, 1}, groups=1
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:conv2d(weight, bias, options, ...) end

---An activation of conv2d(x, weight, bias), applied while the result is written: the same bits as one after the other.
---@param x perigee.Tensor # [N, C, H, W]
---@param weight perigee.Tensor # [O, C / groups, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"} # stride={1, 1}, padding={0, 0}, dilation={1, 1}, groups=1, activation=relu
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.conv2d_activation(x, weight, bias, options, ...) end

---An activation of conv2d(x, weight, bias), applied while the result is written: the same bits as one after the other.
---@param weight perigee.Tensor # [O, C / groups, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"} # stride={1, 1}, padding={0, 0}, dilation={1, 1}, groups=1, activation=relu
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:conv2d_activation(weight, bias, options, ...) end

---Cross-correlation of volumes with filters. Along each axis the result has (size + padding - dilation (k - 1) - 1) /
---stride + 1 elements, rounded down.
---@param x perigee.Tensor # [N, C, D, H, W]
---@param weight perigee.Tensor # [O, C / groups, kd, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer} # stride={1, 1, 1}, padding={0, 0, 0}, dilation={1, 1, 1}, groups=1
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.conv3d(x, weight, bias, options, ...) end

---Cross-correlation of volumes with filters. Along each axis the result has (size + padding - dilation (k - 1) - 1) /
---stride + 1 elements, rounded down.
---@param weight perigee.Tensor # [O, C / groups, kd, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer} # stride={1, 1, 1}, padding={0, 0, 0}, dilation={1, 1, 1}, groups=1
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:conv3d(weight, bias, options, ...) end

---An activation of conv3d(x, weight, bias), applied while the result is written: the same bits as one after the other.
---@param x perigee.Tensor # [N, C, D, H, W]
---@param weight perigee.Tensor # [O, C / groups, kd, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"} # stride={1, 1, 1}, padding={0, 0, 0}, dilation={1, 1, 1}, groups=1, activation=relu
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.conv3d_activation(x, weight, bias, options, ...) end

---An activation of conv3d(x, weight, bias), applied while the result is written: the same bits as one after the other.
---@param weight perigee.Tensor # [O, C / groups, kd, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"} # stride={1, 1, 1}, padding={0, 0, 0}, dilation={1, 1, 1}, groups=1, activation=relu
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[]|"same"|"valid", dilation?: integer|integer[], groups?: integer, activation?: "relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:conv3d_activation(weight, bias, options, ...) end

---Transpose of conv1d: each element of x times a filter, added up where filters overlap; also called deconvolution.
---Along each axis the result has (size - 1) stride - padding + dilation (k - 1) + output_padding + 1 elements, where
---padding counts both sides.
---@param x perigee.Tensor # [N, C, L]
---@param weight perigee.Tensor # [C, O / groups, k]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]} # stride={1}, padding={0}, dilation={1}, groups=1, output_padding={0}
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.conv_transpose1d(x, weight, bias, options, ...) end

---Transpose of conv1d: each element of x times a filter, added up where filters overlap; also called deconvolution.
---Along each axis the result has (size - 1) stride - padding + dilation (k - 1) + output_padding + 1 elements, where
---padding counts both sides.
---@param weight perigee.Tensor # [C, O / groups, k]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]} # stride={1}, padding={0}, dilation={1}, groups=1, output_padding={0}
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:conv_transpose1d(weight, bias, options, ...) end

---Transpose of conv2d: each element of x times a filter, added up where filters overlap; also called deconvolution.
---Along each axis the result has (size - 1) stride - padding + dilation (k - 1) + output_padding + 1 elements, where
---padding counts both sides.
---@param x perigee.Tensor # [N, C, H, W]
---@param weight perigee.Tensor # [C, O / groups, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]} # stride={1, 1}, padding={0, 0}, dilation={1, 1}, groups=1, output_padding={0, 0}
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.conv_transpose2d(x, weight, bias, options, ...) end

---Transpose of conv2d: each element of x times a filter, added up where filters overlap; also called deconvolution.
---Along each axis the result has (size - 1) stride - padding + dilation (k - 1) + output_padding + 1 elements, where
---padding counts both sides.
---@param weight perigee.Tensor # [C, O / groups, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]} # stride={1, 1}, padding={0, 0}, dilation={1, 1}, groups=1, output_padding={0, 0}
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:conv_transpose2d(weight, bias, options, ...) end

---Transpose of conv3d: each element of x times a filter, added up where filters overlap; also called deconvolution.
---Along each axis the result has (size - 1) stride - padding + dilation (k - 1) + output_padding + 1 elements, where
---padding counts both sides.
---@param x perigee.Tensor # [N, C, D, H, W]
---@param weight perigee.Tensor # [C, O / groups, kd, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]} # stride={1, 1, 1}, padding={0, 0, 0}, dilation={1, 1, 1}, groups=1, output_padding={0, 0, 0}
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.conv_transpose3d(x, weight, bias, options, ...) end

---Transpose of conv3d: each element of x times a filter, added up where filters overlap; also called deconvolution.
---Along each axis the result has (size - 1) stride - padding + dilation (k - 1) + output_padding + 1 elements, where
---padding counts both sides.
---@param weight perigee.Tensor # [C, O / groups, kd, kh, kw]
---@param bias? perigee.Tensor # [O]
---@param options? integer|integer[]|{stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]} # stride={1, 1, 1}, padding={0, 0, 0}, dilation={1, 1, 1}, groups=1, output_padding={0, 0, 0}
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, output_padding?: integer|integer[]}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:conv_transpose3d(weight, bias, options, ...) end

---Writes src, broadcast and cast, into dst.
---@param dst perigee.Tensor # any shape; only described: the host writes
---@param src perigee.Tensor # a shape that broadcasts to that of dst
---@return perigee.Tensor
---@overload fun(arguments: {dst?: perigee.Tensor, src?: perigee.Tensor}): perigee.Tensor
function pg.copy(dst, src) end

---Writes src, broadcast and cast, into dst.
---@param src perigee.Tensor # a shape that broadcasts to that of dst
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {src?: perigee.Tensor}): perigee.Tensor
function Tensor:copy(src) end

---The size of x with the sign of y.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.copysign(x, y) end

---The size of x with the sign of y.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:copysign(y) end

---x:copysign, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:copysign_(y) end

---Cosine of x in radians.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.cos(x) end

---Cosine of x in radians.
---@return perigee.Tensor
function Tensor:cos() end

---x:cos, written into x.
---@return perigee.Tensor
function Tensor:cos_() end

---Hyperbolic cosine.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.cosh(x) end

---Hyperbolic cosine.
---@return perigee.Tensor
function Tensor:cosh() end

---x:cosh, written into x.
---@return perigee.Tensor
function Tensor:cosh_() end

---The cosine of the angle between x and y along an axis; norms below eps count as eps. x and y broadcast.
---@param ... perigee.Tensor|integer|number|{x: perigee.Tensor, y: perigee.Tensor, axis?: integer, eps?: number} # x, y, axis=2, eps=1e-08
---@return perigee.Tensor
function pg.cosine_similarity(...) end

---How many elements are not zero, in int64.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.count_nonzero(x, options, ...) end

---How many elements are not zero, in int64.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:count_nonzero(options, ...) end

---The cross products of vectors of 3 elements along an axis (by default the first that has 3); other axes broadcast.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, y: perigee.Tensor, axis?: integer} # x, y, axis
---@return perigee.Tensor
function pg.cross(...) end

---Negative log-likelihood of the target classes under softmax(logits). The class axis is the second one, or the only
---one. Targets count from 0; one that is out of range is an error that names it.
---@param logits perigee.Tensor # [N, C], [N, C, ...] or [C]
---@param target perigee.Tensor # [N], [N, ...] or []: class indices
---@param weight? perigee.Tensor # [C]: weights of the classes
---@param options? integer|{ignore_index?: integer, reduction?: "mean"|"sum"|"none", label_smoothing?: number} # ignore_index=-100, reduction=mean, label_smoothing=0
---@param ... any
---@return perigee.Tensor
---@overload fun(logits: perigee.Tensor, target: perigee.Tensor, options: {ignore_index?: integer, reduction?: "mean"|"sum"|"none", label_smoothing?: number}): perigee.Tensor
---@overload fun(arguments: {logits?: perigee.Tensor, target?: perigee.Tensor, weight?: perigee.Tensor, ignore_index?: integer, reduction?: "mean"|"sum"|"none", label_smoothing?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.cross_entropy(logits, target, weight, options, ...) end

---Negative log-likelihood of the target classes under softmax(logits). The class axis is the second one, or the only
---one. Targets count from 0; one that is out of range is an error that names it.
---@param target perigee.Tensor # [N], [N, ...] or []: class indices
---@param weight? perigee.Tensor # [C]: weights of the classes
---@param options? integer|{ignore_index?: integer, reduction?: "mean"|"sum"|"none", label_smoothing?: number} # ignore_index=-100, reduction=mean, label_smoothing=0
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, target: perigee.Tensor, options: {ignore_index?: integer, reduction?: "mean"|"sum"|"none", label_smoothing?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {target?: perigee.Tensor, weight?: perigee.Tensor, ignore_index?: integer, reduction?: "mean"|"sum"|"none", label_smoothing?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:cross_entropy(target, weight, options, ...) end

---Negative log likelihood of a sequence of labels, over all ways to align it with the steps (Graves et al. 2006). The
---gradient is that of what log_softmax is taken of, as PyTorch's: exp(log_probs) - posterior. It has no gradient of its
---own.
---@param log_probs perigee.Tensor # [T, N, C]: log_softmax along C
---@param targets perigee.Tensor # [N, S]: labels from 0, none the blank; those behind a sequence's length are not read
---@param input_lengths perigee.Tensor # [N]: steps of each sequence, at most T
---@param target_lengths perigee.Tensor # [N]: labels of each sequence, at most S
---@param options? integer|{blank?: integer, zero_infinity?: boolean} # blank=0, zero_infinity=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {log_probs?: perigee.Tensor, targets?: perigee.Tensor, input_lengths?: perigee.Tensor, target_lengths?: perigee.Tensor, blank?: integer, zero_infinity?: boolean}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.ctc_loss(log_probs, targets, input_lengths, target_lengths, options, ...) end

---Negative log likelihood of a sequence of labels, over all ways to align it with the steps (Graves et al. 2006). The
---gradient is that of what log_softmax is taken of, as PyTorch's: exp(log_probs) - posterior. It has no gradient of its
---own.
---@param targets perigee.Tensor # [N, S]: labels from 0, none the blank; those behind a sequence's length are not read
---@param input_lengths perigee.Tensor # [N]: steps of each sequence, at most T
---@param target_lengths perigee.Tensor # [N]: labels of each sequence, at most S
---@param options? integer|{blank?: integer, zero_infinity?: boolean} # blank=0, zero_infinity=false
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {targets?: perigee.Tensor, input_lengths?: perigee.Tensor, target_lengths?: perigee.Tensor, blank?: integer, zero_infinity?: boolean}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:ctc_loss(targets, input_lengths, target_lengths, options, ...) end

---Largest element up to each, and its position: the last of equal ones. NaN counts as largest.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor y
---@return perigee.Tensor index
---@overload fun(arguments: {x?: perigee.Tensor, axis: integer}): perigee.Tensor, perigee.Tensor
function pg.cummax(x, options) end

---Largest element up to each, and its position: the last of equal ones. NaN counts as largest.
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor y
---@return perigee.Tensor index
function Tensor:cummax(options) end

---Smallest element up to each, and its position: the last of equal ones. NaN counts as smallest.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor y
---@return perigee.Tensor index
---@overload fun(arguments: {x?: perigee.Tensor, axis: integer}): perigee.Tensor, perigee.Tensor
function pg.cummin(x, options) end

---Smallest element up to each, and its position: the last of equal ones. NaN counts as smallest.
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor y
---@return perigee.Tensor index
function Tensor:cummin(options) end

---Products of the elements up to each; of integers and booleans in int64.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis: integer}): perigee.Tensor
function pg.cumprod(x, options) end

---Products of the elements up to each; of integers and booleans in int64.
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
function Tensor:cumprod(options) end

---Sums of the elements up to each; of integers and booleans in int64.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis: integer}): perigee.Tensor
function pg.cumsum(x, options) end

---Sums of the elements up to each; of integers and booleans in int64.
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
function Tensor:cumsum(options) end

---A function with a gradient of one's own:
--- local sign = pg.custom_grad{
---   forward = function(ctx, x) ctx.x = x; return x:sign() end,
---   backward = function(ctx, dy) return dy * ctx.x:abs():le(1) end,     -- straight through where |x| <= 1
--- }
--- sign(x):sum():backward()
---forward(ctx, ...) computes tensors of the arguments, which may be of any kind, without being recorded. What backward
---will need it keeps in ctx. backward(ctx, dy1, dy2, ...) gets the gradient of each output and returns one for each
---argument: a tensor like it, or nil. ctx.needed[i] tells whether that of argument i is asked for. Gradients of
---gradients work where backward is made of tensor operations.
---@param ... {forward: function, backward: function} # forward, backward
---@return fun(...): perigee.Tensor
function pg.custom_grad(...) end

---Degrees to radians.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.deg2rad(x) end

---Degrees to radians.
---@return perigee.Tensor
function Tensor:deg2rad() end

---x:deg2rad, written into x.
---@return perigee.Tensor
function Tensor:deg2rad_() end

---The weight that quantised numbers stand for: each times the scale of its group.
---@param q perigee.Tensor # int8 [out, in], of int4 uint8 [out, in / 2], of float8 uint8 [out, in]
---@param scale perigee.Tensor # [out, groups]: what each group of a row's numbers is multiplied by
---@param options? "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"|{format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"} # format=int8
---@return perigee.Tensor
---@overload fun(arguments: {q?: perigee.Tensor, scale?: perigee.Tensor, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.dequantize(q, scale, options) end

---The weight that quantised numbers stand for: each times the scale of its group.
---@param scale perigee.Tensor # [out, groups]: what each group of a row's numbers is multiplied by
---@param options? "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"|{format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"} # format=int8
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {scale?: perigee.Tensor, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:dequantize(scale, options) end

---The same memory without history.
---@param t perigee.Tensor
---@return perigee.Tensor
function pg.detach(t) end

---pg.detect_anomaly(fn, ...): the first operator of fn that makes NaN of no NaN, or Inf of finite numbers, fails,
---named with its layer and the script's line, also in backward. Slow: every result is looked at.
---@param fn function
---@param ... any # arguments of fn
---@return any ... what fn returns
function pg.detect_anomaly(fn, ...) end

---pg.device(name, fn, ...): what fn makes is made there. pg.device() names the device in force.
---@param name? string
---@param fn? function
---@param ... any # arguments of fn
---@return any ... what fn returns, or the name
function pg.device(name, fn, ...) end

---Devices there are: a list of { name, type, index, memory_total, ... }, with `.unavailable` giving reasons.
---`kind` narrows it to a type or to "gpu" (any accelerator).
---@param kind? string
---@return {name: string, type: string, index: integer, memory_total: integer}[]
function pg.devices(kind) end

---Of a vector the matrix with it on diagonal number `diagonal`, else zeros; of a matrix that diagonal.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, diagonal?: integer} # x, diagonal=0
---@return perigee.Tensor
function pg.diag(...) end

---Matrices, along two new axes, with the last axis of x on diagonal number `offset`, and zeros.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, offset?: integer, axis1?: integer, axis2?: integer} # x, offset=0, axis1=-2, axis2=-1
---@return perigee.Tensor
function pg.diag_embed(...) end

---A diagonal of the matrices that two axes of x make, as the last axis; without a copy.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis1?: integer, axis2?: integer} # axis1=1, axis2=2
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis1?: integer, axis2?: integer}): perigee.Tensor
function pg.diagonal(x, options, ...) end

---A diagonal of the matrices that two axes of x make, as the last axis; without a copy.
---@param options? integer|{axis1?: integer, axis2?: integer} # axis1=1, axis2=2
---@param ... any
---@return perigee.Tensor
function Tensor:diagonal(options, ...) end

---A copy of x with `part` where `diagonal` would read.
---@param x perigee.Tensor # [...]
---@param part perigee.Tensor # shape of the part
---@param options? integer|{axis1?: integer, axis2?: integer} # axis1=1, axis2=2
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, part?: perigee.Tensor, axis1?: integer, axis2?: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.diagonal_scatter(x, part, options, ...) end

---A copy of x with `part` where `diagonal` would read.
---@param part perigee.Tensor # shape of the part
---@param options? integer|{axis1?: integer, axis2?: integer} # axis1=1, axis2=2
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {part?: perigee.Tensor, axis1?: integer, axis2?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:diagonal_scatter(part, options, ...) end

---Differences of neighbours along an axis, n times over; `prepend` and `append` are put at the ends before.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, n?: integer, axis?: integer, prepend?: perigee.Tensor, append?: perigee.Tensor} # x, n=1, axis=-1, prepend, append
---@return perigee.Tensor
function pg.diff(...) end

---Derivative of lgamma.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.digamma(x) end

---Derivative of lgamma.
---@return perigee.Tensor
function Tensor:digamma() end

---x:digamma, written into x.
---@return perigee.Tensor
function Tensor:digamma_() end

---x divided by y; integers give a floating result.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.div(x, y) end

---x divided by y; integers give a floating result.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:div(y) end

---x:div, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:div_(y) end

---Sum of the products of two vectors' elements, 0-dim.
---@param ... perigee.Tensor|{x: perigee.Tensor, y: perigee.Tensor} # x, y
---@return perigee.Tensor
function pg.dot(...) end

---In training each element is kept with probability 1 - p and divided by 1 - p, else 0 (Srivastava et al. 2014);
---otherwise x. Element i, in row-major order, is kept where the float32 uniform of perigee/kernels/philox.hpp at (seed,
---offset, i) is at least p: the same on every device.
---@param x perigee.Tensor # any shape
---@param options? number|{p?: number, training?: boolean} # p=0.5, training=true
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, p?: number, training?: boolean}): perigee.Tensor
function pg.dropout(x, options, ...) end

---In training each element is kept with probability 1 - p and divided by 1 - p, else 0 (Srivastava et al. 2014);
---otherwise x. Element i, in row-major order, is kept where the float32 uniform of perigee/kernels/philox.hpp at (seed,
---offset, i) is at least p: the same on every device.
---@param options? number|{p?: number, training?: boolean} # p=0.5, training=true
---@param ... any
---@return perigee.Tensor
function Tensor:dropout(options, ...) end

---Which elements of `like` a dropout keeps: true with probability 1 - p. Element i, in row-major order, is kept where
---the float32 uniform of perigee/kernels/philox.hpp at (key[0], key[1], i) is at least p. The same key gives the same
---mask.
---@param key perigee.Tensor # [2] int64: seed and offset
---@param like perigee.Tensor # the shape of the mask
---@param options? number|{p?: number} # p=0.5
---@return perigee.Tensor
---@overload fun(arguments: {key?: perigee.Tensor, like?: perigee.Tensor, p?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.dropout_mask(key, like, options) end

---Which elements of `like` a dropout keeps: true with probability 1 - p. Element i, in row-major order, is kept where
---the float32 uniform of perigee/kernels/philox.hpp at (key[0], key[1], i) is at least p. The same key gives the same
---mask.
---@param like perigee.Tensor # the shape of the mask
---@param options? number|{p?: number} # p=0.5
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {like?: perigee.Tensor, p?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:dropout_mask(like, options) end

---Behind each other: along axis 3.
---@param ... perigee.Tensor|perigee.Tensor[]
---@return perigee.Tensor
function pg.dstack(...) end

---Products of elements, summed over the labels that the result lacks: `pg.einsum("bij,bjk->bik", x, y)`. Without
---an arrow the result has the labels that stand once, in alphabetical order. "..." stands for axes without a label.
---@param ... string|perigee.Tensor[]|{equation: string, tensors: perigee.Tensor[]} # equation, tensors
---@return perigee.Tensor
function pg.einsum(...) end

---x where x > 0, else alpha * (exp(x) - 1) (Clevert, Unterthiner, Hochreiter 2015).
---@param x perigee.Tensor # any shape
---@param options? number|{alpha?: number} # alpha=1
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, alpha?: number}): perigee.Tensor
function pg.elu(x, options) end

---x where x > 0, else alpha * (exp(x) - 1) (Clevert, Unterthiner, Hochreiter 2015).
---@param options? number|{alpha?: number} # alpha=1
---@return perigee.Tensor
function Tensor:elu(options) end

---x:elu, written into x.
---@param options? number|{alpha?: number} # alpha=1
---@return perigee.Tensor
function Tensor:elu_(options) end

---Rows of weight. An index out of range is an error that names it.
---@param weight perigee.Tensor # [V, D]
---@param index perigee.Tensor # [...]: from 0
---@param options? integer|{padding_idx?: integer} # padding_idx=-1
---@return perigee.Tensor
---@overload fun(arguments: {weight?: perigee.Tensor, index?: perigee.Tensor, padding_idx?: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.embedding(weight, index, options) end

---Rows of weight. An index out of range is an error that names it.
---@param index perigee.Tensor # [...]: from 0
---@param options? integer|{padding_idx?: integer} # padding_idx=-1
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, padding_idx?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:embedding(index, options) end

---Rows of weight [V, D] by index, summed, averaged or their largest values taken, a bag at a time. index [B, L] is B
---bags; index [N] with offsets [B] (positions from 0) is bags that begin there. Rows of padding_idx do not count. A
---bag of none is 0; the gradient of the largest goes to the first of equal ones.
---@param ... perigee.Tensor|"mean"|"sum"|"max"|boolean|integer|{weight: perigee.Tensor, index: perigee.Tensor, offsets?: perigee.Tensor, mode?: "mean"|"sum"|"max", per_sample_weights?: perigee.Tensor, include_last_offset?: boolean, padding_idx?: integer} # weight, index, offsets, mode=mean, per_sample_weights, include_last_offset=false, padding_idx=-1
---@return perigee.Tensor bags [B, D]
function pg.embedding_bag(...) end

---The largest values of rows of weight by index, a bag at a time; 0 for a bag of none. The first of equal ones has the
---gradient. An index out of range is an error that names it.
---@param weight perigee.Tensor # [V, D]
---@param index perigee.Tensor # [B, L], or [N] with offsets: from 0
---@param offsets? perigee.Tensor # [B]: where in index each bag begins, from 0
---@param options? boolean|{include_last_offset?: boolean, padding_idx?: integer} # include_last_offset=false, padding_idx=-1
---@param ... any
---@return perigee.Tensor
---@overload fun(weight: perigee.Tensor, index: perigee.Tensor, options: {include_last_offset?: boolean, padding_idx?: integer}): perigee.Tensor
---@overload fun(arguments: {weight?: perigee.Tensor, index?: perigee.Tensor, offsets?: perigee.Tensor, include_last_offset?: boolean, padding_idx?: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.embedding_bag_max(weight, index, offsets, options, ...) end

---The largest values of rows of weight by index, a bag at a time; 0 for a bag of none. The first of equal ones has the
---gradient. An index out of range is an error that names it.
---@param index perigee.Tensor # [B, L], or [N] with offsets: from 0
---@param offsets? perigee.Tensor # [B]: where in index each bag begins, from 0
---@param options? boolean|{include_last_offset?: boolean, padding_idx?: integer} # include_last_offset=false, padding_idx=-1
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, index: perigee.Tensor, options: {include_last_offset?: boolean, padding_idx?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, offsets?: perigee.Tensor, include_last_offset?: boolean, padding_idx?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:embedding_bag_max(index, offsets, options, ...) end

---Memory whose contents mean nothing yet. (It is zeroed.)
---@param ... integer|integer[]|{shape: integer|integer[], dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # shape, dtype, device, requires_grad
---@return perigee.Tensor
function pg.empty(...) end

---A tensor of x's shape whose contents do not matter, in x's dtype and on its device if not told otherwise.
---@param x perigee.Tensor
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}): perigee.Tensor
function pg.empty_like(x, options) end

---Calls fn(...) with recording on, inside of no_grad too, and returns what it returns.
---@param fn function
---@param ... any # arguments of fn
---@return any ... what fn returns
function pg.enable_grad(fn, ...) end

---Whether x equals y.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.eq(x, y) end

---Whether x equals y.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:eq(y) end

---x:eq, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:eq_(y) end

---Whether shapes, dtypes and all elements are the same.
---@param ... perigee.Tensor|{a: perigee.Tensor, b: perigee.Tensor} # a, b
---@return boolean
function pg.equal(...) end

---Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.erf(x) end

---Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.
---@return perigee.Tensor
function Tensor:erf() end

---x:erf, written into x.
---@return perigee.Tensor
function Tensor:erf_() end

---1 - erf(x), exact for large x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.erfc(x) end

---1 - erf(x), exact for large x.
---@return perigee.Tensor
function Tensor:erfc() end

---x:erfc, written into x.
---@return perigee.Tensor
function Tensor:erfc_() end

---The number whose error function is x, for x in [-1, 1].
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.erfinv(x) end

---The number whose error function is x, for x in [-1, 1].
---@return perigee.Tensor
function Tensor:erfinv() end

---x:erfinv, written into x.
---@return perigee.Tensor
function Tensor:erfinv_() end

---e to the power of x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.exp(x) end

---e to the power of x.
---@return perigee.Tensor
function Tensor:exp() end

---x:exp, written into x.
---@return perigee.Tensor
function Tensor:exp_() end

---2 to the power of x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.exp2(x) end

---2 to the power of x.
---@return perigee.Tensor
function Tensor:exp2() end

---x:exp2, written into x.
---@return perigee.Tensor
function Tensor:exp2_() end

---x repeated along axes of size 1, and along new leading axes, without a copy.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{shape: integer|integer[]} # shape
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, shape: integer|integer[]}): perigee.Tensor
function pg.expand(x, options, ...) end

---x repeated along axes of size 1, and along new leading axes, without a copy.
---@param options? integer|integer[]|{shape: integer|integer[]} # shape
---@param ... any
---@return perigee.Tensor
function Tensor:expand(options, ...) end

---x broadcast to the shape of `like`, without a copy.
---@param x perigee.Tensor # [...]
---@param like perigee.Tensor # a shape that x broadcasts to
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, like?: perigee.Tensor}): perigee.Tensor
function pg.expand_like(x, like) end

---x broadcast to the shape of `like`, without a copy.
---@param like perigee.Tensor # a shape that x broadcasts to
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {like?: perigee.Tensor}): perigee.Tensor
function Tensor:expand_like(like) end

---exp(x) - 1, exact near 0.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.expm1(x) end

---exp(x) - 1, exact near 0.
---@return perigee.Tensor
function Tensor:expm1() end

---x:expm1, written into x.
---@return perigee.Tensor
function Tensor:expm1_() end

---Exponentially distributed numbers: of density rate exp(-rate x).
---@param options? integer|integer[]|{shape: integer|integer[], dtype?: perigee.Dtype, rate?: number} # shape, dtype, rate=1
---@param ... any
---@return perigee.Tensor
function pg.exponential(options, ...) end

---The identity matrix, [n, m] (m defaults to n).
---@param ... integer|perigee.Size|{n: integer|perigee.Size, m?: integer|perigee.Size, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # n, m, dtype, device, requires_grad
---@return perigee.Tensor
function pg.eye(...) end

---What dequantising gives back of quantised numbers: q = round(x / scale) + zero_point (halves to the even one) kept
---within low..high (NaN becomes 0); then (q - zero_point) * scale. The gradient passes straight through where q is
---within low..high, and is 0 elsewhere (Bengio, Leonard, Courville 2013); scale and zero_point get none.
---@param x perigee.Tensor # any shape
---@param scale perigee.Tensor # broadcasts to x; above 0
---@param zero_point? perigee.Tensor # broadcasts to x: the whole number that stands for 0, which is 0 if it is absent
---@param options? integer|{low?: integer, high?: integer} # low=-127, high=127
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, scale: perigee.Tensor, options: {low?: integer, high?: integer}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, scale?: perigee.Tensor, zero_point?: perigee.Tensor, low?: integer, high?: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.fake_quantize(x, scale, zero_point, options, ...) end

---What dequantising gives back of quantised numbers: q = round(x / scale) + zero_point (halves to the even one) kept
---within low..high (NaN becomes 0); then (q - zero_point) * scale. The gradient passes straight through where q is
---within low..high, and is 0 elsewhere (Bengio, Leonard, Courville 2013); scale and zero_point get none.
---@param scale perigee.Tensor # broadcasts to x; above 0
---@param zero_point? perigee.Tensor # broadcasts to x: the whole number that stands for 0, which is 0 if it is absent
---@param options? integer|{low?: integer, high?: integer} # low=-127, high=127
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, scale: perigee.Tensor, options: {low?: integer, high?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {scale?: perigee.Tensor, zero_point?: perigee.Tensor, low?: integer, high?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:fake_quantize(scale, zero_point, options, ...) end

---A tensor whose elements all are `value`, converted to the dtype.
---@param options? integer|integer[]|{shape: integer|integer[], dtype?: perigee.Dtype, value?: number} # shape, dtype, value=0
---@param ... any
---@return perigee.Tensor
function pg.fill(options, ...) end

---x with `value` in place of every element, converted to its dtype. The in-place form is what fill_ does.
---@param x perigee.Tensor # any shape; only described
---@param options? number|{value: number} # value
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, value: number}): perigee.Tensor
function pg.filled(x, options) end

---x with `value` in place of every element, converted to its dtype. The in-place form is what fill_ does.
---@param options? number|{value: number} # value
---@return perigee.Tensor
function Tensor:filled(options) end

---x:filled, written into x.
---@param options? number|{value: number} # value
---@return perigee.Tensor
function Tensor:filled_(options) end

---Joins the axes from first to last.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, first?: integer, last?: integer} # x, first=1, last=-1
---@return perigee.Tensor
function pg.flatten(...) end

---x with the positions of `axes` in reverse order, copied.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis: integer|integer[]} # axis
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis: integer|integer[]}): perigee.Tensor
function pg.flip(x, options, ...) end

---x with the positions of `axes` in reverse order, copied.
---@param options? integer|integer[]|{axis: integer|integer[]} # axis
---@param ... any
---@return perigee.Tensor
function Tensor:flip(options, ...) end

---The same as tensor:fliplr. The columns in reverse order (axis 2).
---@param x perigee.Tensor
---@return perigee.Tensor
function pg.fliplr(x) end

---The same as tensor:flipud. The rows in reverse order (axis 1).
---@param x perigee.Tensor
---@return perigee.Tensor
function pg.flipud(x) end

---The largest integer that is not above x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.floor(x) end

---The largest integer that is not above x.
---@return perigee.Tensor
function Tensor:floor() end

---x:floor, written into x.
---@return perigee.Tensor
function Tensor:floor_() end

---floor(x / y), in the dtype of the operands. Integer division by zero is an error.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.floor_div(x, y) end

---floor(x / y), in the dtype of the operands. Integer division by zero is an error.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:floor_div(y) end

---x:floor_div, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:floor_div_(y) end

---The larger of x and y, and of a number and NaN the number. Of equal operands x gets the gradient.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.fmax(x, y) end

---The larger of x and y, and of a number and NaN the number. Of equal operands x gets the gradient.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:fmax(y) end

---x:fmax, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:fmax_(y) end

---The smaller of x and y, and of a number and NaN the number. Of equal operands x gets the gradient.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.fmin(x, y) end

---The smaller of x and y, and of a number and NaN the number. Of equal operands x gets the gradient.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:fmin(y) end

---x:fmin, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:fmin_(y) end

---x - y * trunc(x / y): has the sign of x. Integer division by zero is an error.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.fmod(x, y) end

---x - y * trunc(x / y): has the sign of x. Integer division by zero is an error.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:fmod(y) end

---x:fmod, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:fmod_(y) end

---x minus its whole part; has the sign of x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.frac(x) end

---x minus its whole part; has the sign of x.
---@return perigee.Tensor
function Tensor:frac() end

---x:frac, written into x.
---@return perigee.Tensor
function Tensor:frac_() end

---Every element `value`: `pg.full({2, 3}, 7)`. A boolean gives bool.
---@param ... integer|integer[]|number|boolean|{shape: integer|integer[], value: number|boolean, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # shape, value, dtype, device, requires_grad
---@return perigee.Tensor
function pg.full(...) end

---A tensor of x's shape filled with `value`, in x's dtype and on its device if not told otherwise.
---@param x perigee.Tensor
---@param value number|boolean
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, value?: number|boolean, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}): perigee.Tensor
function pg.full_like(x, value, options) end

---y[i][j]... = x[index[i][j]...][j]... for axis 1, and likewise for the others. An index out of range is an error that
---names it.
---@param x perigee.Tensor # [...]
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, index?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.gather(x, index, options) end

---y[i][j]... = x[index[i][j]...][j]... for axis 1, and likewise for the others. An index out of range is an error that
---names it.
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:gather(index, options) end

---(1 - (x - y)^2 / v) / (2 v) with v = at_least(var, eps): the gradient of gaussian_nll_loss by var.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target, a shape that broadcasts
---@param var perigee.Tensor # variance, a shape that broadcasts
---@param options? number|{eps?: number} # eps=1e-06
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, var?: perigee.Tensor, eps?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.gaussian_nll_by_var(x, y, var, options) end

---(1 - (x - y)^2 / v) / (2 v) with v = at_least(var, eps): the gradient of gaussian_nll_loss by var.
---@param y perigee.Tensor # target, a shape that broadcasts
---@param var perigee.Tensor # variance, a shape that broadcasts
---@param options? number|{eps?: number} # eps=1e-06
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, var?: perigee.Tensor, eps?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:gaussian_nll_by_var(y, var, options) end

---Negative log likelihood (log(var) + (x - y)^2 / var) / 2 of y under a normal distribution of mean x and variance var,
---of which what is below eps counts as eps, with its gradient (Nix and Weigend, 1994). A negative var is an error that
---names it.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param var perigee.Tensor # variance; broadcasts against the costs
---@param options? boolean|{full?: boolean, eps?: number, reduction?: "mean"|"sum"|"none"} # full=false, eps=1e-06, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, var?: perigee.Tensor, full?: boolean, eps?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.gaussian_nll_loss(x, y, var, options, ...) end

---Negative log likelihood (log(var) + (x - y)^2 / var) / 2 of y under a normal distribution of mean x and variance var,
---of which what is below eps counts as eps, with its gradient (Nix and Weigend, 1994). A negative var is an error that
---names it.
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param var perigee.Tensor # variance; broadcasts against the costs
---@param options? boolean|{full?: boolean, eps?: number, reduction?: "mean"|"sum"|"none"} # full=false, eps=1e-06, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, var?: perigee.Tensor, full?: boolean, eps?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:gaussian_nll_loss(y, var, options, ...) end

---Whether x is greater than or equal to y.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.ge(x, y) end

---Whether x is greater than or equal to y.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:ge(y) end

---x:ge, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:ge_(y) end

---x times the normal distribution function at x (Hendrycks, Gimpel 2016). approximate="tanh": 0.5 x (1 +
---tanh(sqrt(2/pi) (x + 0.044715 x^3))).
---@param x perigee.Tensor # any shape
---@param options? "none"|"tanh"|{approximate?: "none"|"tanh"} # approximate=none
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, approximate?: "none"|"tanh"}): perigee.Tensor
function pg.gelu(x, options) end

---x times the normal distribution function at x (Hendrycks, Gimpel 2016). approximate="tanh": 0.5 x (1 +
---tanh(sqrt(2/pi) (x + 0.044715 x^3))).
---@param options? "none"|"tanh"|{approximate?: "none"|"tanh"} # approximate=none
---@return perigee.Tensor
function Tensor:gelu(options) end

---x:gelu, written into x.
---@param options? "none"|"tanh"|{approximate?: "none"|"tanh"} # approximate=none
---@return perigee.Tensor
function Tensor:gelu_(options) end

---The dtype of what is made of fractions: float32, if pg.set_default_dtype does not say otherwise.
---@return perigee.Dtype
function pg.get_default_dtype() end

---The first half of x along `axis` times the sigmoid of the second (Dauphin, Fan, Auli, Grangier 2016).
---@param x perigee.Tensor # [...], even along `axis`
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer}): perigee.Tensor
function pg.glu(x, options) end

---The first half of x along `axis` times the sigmoid of the second (Dauphin, Fan, Auli, Grangier 2016).
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Tensor
function Tensor:glu(options) end

---Gradients of outputs with respect to inputs: one value an input. `{create_graph=true}` allows higher orders.
---@param ... perigee.Tensor[]|{outputs: perigee.Tensor[], inputs: perigee.Tensor[], grad_outputs?: perigee.Tensor[], retain_graph?: boolean, create_graph?: boolean, allow_unused?: boolean} # outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused
---@return perigee.Tensor? ... a gradient an input
function pg.grad(...) end

---Raises, naming the first element that differs, unless fn's gradients are right. Answers true.
---@param ... (fun(...): perigee.Tensor)|perigee.Tensor[]|{fn: (fun(...): perigee.Tensor), inputs: perigee.Tensor[], eps?: number, rtol?: number, atol?: number} # fn, inputs, eps=1e-06, rtol=0.0001, atol=1e-06
---@return boolean
function pg.gradcheck(...) end

---Builds a graph: fn(g) makes its nodes, and answers the results as a table by name, as a list, or one tensor, which
---is called "output". Eager tensors among them are read at each run. A run does what its fetches need, no more: to
---update variables, fetch what was computed of their new values, or the variables themselves under names of their own:
---`return { loss = loss, train = w }`.
---Layers that are called in fn are part of the graph as in TensorFlow: their parameters and buffers become its
---variables, named by their path in the outermost layer ("blocks.0.weight"). A session begins with what they hold when
---it is made; it updates its own, batch norm's statistics too where a run asks for its output; session:commit(model)
---writes them back. Models whose names clash get their class in front: "Linear_1.weight". Eager tensors that no layer
---holds are taken in as they are, and runs see what they hold then.
---@param fn fun(g: perigee.Graph): perigee.Tensor|table<string|integer, perigee.Tensor>
---@return perigee.Graph
function pg.graph(fn) end

---Images x [N, C, H, W] sampled at `grid` [N, Ho, Wo, 2] of (x, y) in [-1, 1], where -1 and 1 are the outer edges, or
---with align_corners the centres of the outer pixels (Jaderberg and others, 2015); volumes [N, C, D, H, W] at a grid
---[N, Do, Ho, Wo, 3] of (x, y, z). Modes: bilinear (of volumes, trilinear), nearest, and of images bicubic; padding
---modes: zeros, border, reflection. 16-bit floats are computed in float32.
---@param ... perigee.Tensor|"bilinear"|"nearest"|"bicubic"|"zeros"|"border"|"reflection"|boolean|{x: perigee.Tensor, grid: perigee.Tensor, mode?: "bilinear"|"nearest"|"bicubic", padding_mode?: "zeros"|"border"|"reflection", align_corners?: boolean} # x, grid, mode=bilinear, padding_mode=zeros, align_corners=false
---@return perigee.Tensor
function pg.grid_sample(...) end

---The channels of x [N, C, ...] in `groups` of equal size, each group of each example shifted and scaled to mean 0
---and variance 1; then scaled and shifted by weight [C] and bias [C] (Wu and He 2018).
---@param ... perigee.Tensor|integer|number|{x: perigee.Tensor, groups: integer, weight?: perigee.Tensor, bias?: perigee.Tensor, eps?: number} # x, groups, weight, bias, eps=1e-05
---@return perigee.Tensor
function pg.group_norm(...) end

---A step of a gated recurrent unit behind its products (Cho et al. 2014): r, z = sigmoid of x + hidden, n = tanh of x +
---r hidden, whose columns come in the order r, z, n; next = n + z (h - n). 16-bit floats are computed in float32.
---@param x perigee.Tensor # [n, 3 size]: the input's part of the gates
---@param hidden perigee.Tensor # [n, 3 size]: the state's part of the gates
---@param h perigee.Tensor # [n, size]: the state
---@return perigee.Tensor next
---@return perigee.Tensor gates
---@overload fun(arguments: {x?: perigee.Tensor, hidden?: perigee.Tensor, h?: perigee.Tensor}): perigee.Tensor, perigee.Tensor
function pg.gru_cell(x, hidden, h) end

---A step of a gated recurrent unit behind its products (Cho et al. 2014): r, z = sigmoid of x + hidden, n = tanh of x +
---r hidden, whose columns come in the order r, z, n; next = n + z (h - n). 16-bit floats are computed in float32.
---@param hidden perigee.Tensor # [n, 3 size]: the state's part of the gates
---@param h perigee.Tensor # [n, size]: the state
---@return perigee.Tensor next
---@return perigee.Tensor gates
---@overload fun(self: perigee.Tensor, arguments: {hidden?: perigee.Tensor, h?: perigee.Tensor}): perigee.Tensor, perigee.Tensor
function Tensor:gru_cell(hidden, h) end

---Whether x is greater than y.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.gt(x, y) end

---Whether x is greater than y.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:gt(y) end

---x:gt, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:gt_(y) end

---x, but 0 where -lambd <= x <= lambd.
---@param x perigee.Tensor # any shape
---@param options? number|{lambd?: number} # lambd=0.5
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, lambd?: number}): perigee.Tensor
function pg.hardshrink(x, options) end

---x, but 0 where -lambd <= x <= lambd.
---@param options? number|{lambd?: number} # lambd=0.5
---@return perigee.Tensor
function Tensor:hardshrink(options) end

---x:hardshrink, written into x.
---@param options? number|{lambd?: number} # lambd=0.5
---@return perigee.Tensor
function Tensor:hardshrink_(options) end

---relu6(x + 3) / 6.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.hardsigmoid(x) end

---relu6(x + 3) / 6.
---@return perigee.Tensor
function Tensor:hardsigmoid() end

---x:hardsigmoid, written into x.
---@return perigee.Tensor
function Tensor:hardsigmoid_() end

---x * relu6(x + 3) / 6 (Howard et al. 2019).
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.hardswish(x) end

---x * relu6(x + 3) / 6 (Howard et al. 2019).
---@return perigee.Tensor
function Tensor:hardswish() end

---x:hardswish, written into x.
---@return perigee.Tensor
function Tensor:hardswish_() end

---x limited to [min_val, max_val]; its slope at the bounds is 0.
---@param x perigee.Tensor # any shape
---@param options? number|{min_val?: number, max_val?: number} # min_val=-1, max_val=1
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, min_val?: number, max_val?: number}): perigee.Tensor
function pg.hardtanh(x, options, ...) end

---x limited to [min_val, max_val]; its slope at the bounds is 0.
---@param options? number|{min_val?: number, max_val?: number} # min_val=-1, max_val=1
---@param ... any
---@return perigee.Tensor
function Tensor:hardtanh(options, ...) end

---x:hardtanh, written into x.
---@param options? number|{min_val?: number, max_val?: number} # min_val=-1, max_val=1
---@param ... any
---@return perigee.Tensor
function Tensor:hardtanh_(options, ...) end

---x where y is 1 (pairs that belong together: a distance to be small), max(0, margin - x) where it is -1.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? number|{margin?: number, reduction?: "mean"|"sum"|"none"} # margin=1, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, margin?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.hinge_embedding_loss(x, y, options, ...) end

---x where y is 1 (pairs that belong together: a distance to be small), max(0, margin - x) where it is -1.
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? number|{margin?: number, reduction?: "mean"|"sum"|"none"} # margin=1, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, margin?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:hinge_embedding_loss(y, options, ...) end

---max(0, 1 - y x) for targets y of -1 and 1.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.hinge_loss(x, y, options) end

---max(0, 1 - y x) for targets y of -1 and 1.
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:hinge_loss(y, options) end

---How many elements lie in each of `bins` equal parts of [min, max] (of the range of x where both are 0). Others, and
---NaN, are left out.
---@param ... perigee.Tensor|integer|number|{x: perigee.Tensor, bins?: integer, min?: number, max?: number} # x, bins=100, min=0, max=0
---@return perigee.Tensor counts [bins]
function pg.histc(...) end

---Beside each other: along axis 2, or 1 for tensors of one axis.
---@param ... perigee.Tensor|perigee.Tensor[]
---@return perigee.Tensor
function pg.hstack(...) end

---Quadratic within delta, linear outside (Huber, 1964): with d = |x - y|, d^2 / 2 where d < delta, else delta (d -
---delta / 2).
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? number|{delta?: number, reduction?: "mean"|"sum"|"none"} # delta=1, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, y: perigee.Tensor, options: {delta?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, weight?: perigee.Tensor, delta?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.huber_loss(x, y, weight, options, ...) end

---Quadratic within delta, linear outside (Huber, 1964): with d = |x - y|, d^2 / 2 where d < delta, else delta (d -
---delta / 2).
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? number|{delta?: number, reduction?: "mean"|"sum"|"none"} # delta=1, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, y: perigee.Tensor, options: {delta?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, weight?: perigee.Tensor, delta?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:huber_loss(y, weight, options, ...) end

---sqrt(x^2 + y^2), without overflow.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.hypot(x, y) end

---sqrt(x^2 + y^2), without overflow.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:hypot(y) end

---x:hypot, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:hypot_(y) end

---The windows of images x [N, C, H, W] as columns: [N, C * kh * kw, L], L windows in row-major order.
---PyTorch's nn.functional.unfold.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, kernel: integer|integer[], dilation?: integer|integer[], padding?: integer|integer[], stride?: integer|integer[]} # x, kernel, dilation=1, padding=0, stride=1
---@return perigee.Tensor
function pg.im2col(...) end

---Pictures, or a rectangle of each, made into `size`, to Pillow's numbers.
---@param x perigee.Tensor # uint8 or floating [..., rows, columns, channels]
---@param box? perigee.Tensor # [4] or [n, 4]: top, left, height and width of the part that is resized; all if not given
---@param options? integer|integer[]|{size: integer|integer[], filter?: "nearest"|"bilinear"|"bicubic"|"lanczos"|"area", antialias?: boolean} # size, filter=bilinear, antialias=true
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, options: {size: integer|integer[], filter?: "nearest"|"bilinear"|"bicubic"|"lanczos"|"area", antialias?: boolean}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, box?: perigee.Tensor, size: integer|integer[], filter?: "nearest"|"bilinear"|"bicubic"|"lanczos"|"area", antialias?: boolean}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.image_resize(x, box, options, ...) end

---Pictures, or a rectangle of each, made into `size`, to Pillow's numbers.
---@param box? perigee.Tensor # [4] or [n, 4]: top, left, height and width of the part that is resized; all if not given
---@param options? integer|integer[]|{size: integer|integer[], filter?: "nearest"|"bilinear"|"bicubic"|"lanczos"|"area", antialias?: boolean} # size, filter=bilinear, antialias=true
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {box?: perigee.Tensor, size: integer|integer[], filter?: "nearest"|"bilinear"|"bicubic"|"lanczos"|"area", antialias?: boolean}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:image_resize(box, options, ...) end

---x * scale + shift of pictures of bytes, by channels, which may be brought before rows and columns.
---@param x perigee.Tensor # uint8 [..., rows, columns, channels]
---@param scale perigee.Tensor # float32 [channels] or [1]
---@param shift perigee.Tensor # shape of scale
---@param options? boolean|{channels_first?: boolean, dtype?: perigee.Dtype} # channels_first=false, dtype=float32
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, scale?: perigee.Tensor, shift?: perigee.Tensor, channels_first?: boolean, dtype?: perigee.Dtype}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.image_to_float(x, scale, shift, options, ...) end

---x * scale + shift of pictures of bytes, by channels, which may be brought before rows and columns.
---@param scale perigee.Tensor # float32 [channels] or [1]
---@param shift perigee.Tensor # shape of scale
---@param options? boolean|{channels_first?: boolean, dtype?: perigee.Dtype} # channels_first=false, dtype=float32
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {scale?: perigee.Tensor, shift?: perigee.Tensor, channels_first?: boolean, dtype?: perigee.Dtype}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:image_to_float(scale, shift, options, ...) end

---y[i...] = x[indices[1][i...]][indices[2][i...]]...: the elements, or for axes of x without an index the slices, at
---the contents of index tensors. An index out of range is an error that names it.
---@param x perigee.Tensor # [...]
---@param indices perigee.Tensor[] # int64 or int32, of shapes that broadcast with each other: from 0
---@param options? integer|{axis?: integer} # axis=1
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, indices?: perigee.Tensor[], axis?: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.index(x, indices, options) end

---y[i...] = x[indices[1][i...]][indices[2][i...]]...: the elements, or for axes of x without an index the slices, at
---the contents of index tensors. An index out of range is an error that names it.
---@param indices perigee.Tensor[] # int64 or int32, of shapes that broadcast with each other: from 0
---@param options? integer|{axis?: integer} # axis=1
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {indices?: perigee.Tensor[], axis?: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:index(indices, options) end

---x with `alpha` times each slice of source added at its index along an axis; equal indices add up.
---`x:index_add(index, source, axis)` or, as in PyTorch, `x:index_add(axis, index, source)`.
---@param x perigee.Tensor
---@param index perigee.Tensor # [n], from 0
---@param source perigee.Tensor # x with n slices along the axis
---@param axis integer # axis, from 1, negative from the end
---@param alpha? number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, index?: perigee.Tensor, source?: perigee.Tensor, axis?: integer, alpha?: number}): perigee.Tensor
function pg.index_add(x, index, source, axis, alpha) end

---x with each slice of source written at its index along an axis; of equal indices the last one stays.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, index: perigee.Tensor, source?: perigee.Tensor, axis?: integer} # x, index, source, axis
---@return perigee.Tensor
function pg.index_copy(...) end

---x with a number (or 0-dim tensor) written in the slices at the indices along an axis.
---@param x perigee.Tensor
---@param index perigee.Tensor # [n], from 0
---@param value number|perigee.Tensor
---@param axis integer # axis, from 1, negative from the end
---@return perigee.Tensor
function pg.index_fill(x, index, value, axis) end

---A copy of x with `values` (a number or a tensor that broadcasts) written, or with `accumulate` added, at `index`:
---what stands between the brackets of `x[...]`. Of equal places the last one stays, and with `accumulate` all add up.
---@param ... perigee.Tensor|integer|string|table|number|boolean|{x: perigee.Tensor, index: integer|string|table|perigee.Tensor, values: perigee.Tensor|number|boolean, accumulate?: boolean} # x, index, values, accumulate=false
---@return perigee.Tensor
function pg.index_put(...) end

---x:index_put, written into x.
---@param ... integer|string|table|perigee.Tensor|number|boolean|{index: integer|string|table|perigee.Tensor, values: perigee.Tensor|number|boolean, accumulate?: boolean} # index, values, accumulate=false
---@return perigee.Tensor
function Tensor:index_put_(...) end

---The slices of x at the indices along `axis`, copied. An index out of range is an error that names it.
---@param x perigee.Tensor # [...]
---@param index perigee.Tensor # [n] or []: from 0
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, index?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.index_select(x, index, options) end

---The slices of x at the indices along `axis`, copied. An index out of range is an error that names it.
---@param index perigee.Tensor # [n] or []: from 0
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:index_select(index, options) end

---Positions that count from 1 (Lua numbers) as an index tensor, whose contents count from 0.
---@param ... integer|integer[]
---@return perigee.Tensor
function pg.indices(...) end

---Calls fn(...) without recording, as no_grad does, and returns what it returns.
---@param fn function
---@param ... any # arguments of fn
---@return any ... what fn returns
function pg.inference_mode(fn, ...) end

---Sums of products over the last axes: x [..., n] and y [..., n] to [axes of x but the last, those of y but the
---last]; a tensor of no axes multiplies.
---@param ... perigee.Tensor|{x: perigee.Tensor, y: perigee.Tensor} # x, y
---@return perigee.Tensor
function pg.inner(...) end

---Each channel of each example of x [N, C, ...] shifted and scaled to mean 0 and variance 1 (Ulyanov et al. 2016);
---with use_input_stats=false by running_mean and running_var [C], which otherwise follow the input.
---@param ... perigee.Tensor|boolean|number|{x: perigee.Tensor, running_mean?: perigee.Tensor, running_var?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, use_input_stats?: boolean, momentum?: number, eps?: number} # x, running_mean, running_var, weight, bias, use_input_stats=true, momentum=0.1, eps=1e-05
---@return perigee.Tensor
function pg.instance_norm(...) end

---Images [N, C, L], [N, C, H, W] or [N, C, D, H, W] at another `size` of their last axes, or `scale_factor` times as
---large. Modes: nearest, linear (1 axis), bilinear, bicubic (2), trilinear (3), area (mean of what an output covers).
---@param ... perigee.Tensor|integer|integer[]|number|number[]|"nearest"|"linear"|"bilinear"|"bicubic"|"trilinear"|"area"|boolean|{x: perigee.Tensor, size?: integer|integer[], scale_factor?: number|number[], mode?: "nearest"|"linear"|"bilinear"|"bicubic"|"trilinear"|"area", align_corners?: boolean, recompute_scale_factor?: boolean} # x, size, scale_factor, mode=nearest, align_corners, recompute_scale_factor=false
---@return perigee.Tensor
function pg.interpolate(...) end

---Whether operators are recorded for backward now.
---@return boolean
function pg.is_grad_enabled() end

---Whether v is a tensor.
---@param v any # anything
---@return boolean
function pg.is_tensor(v) end

---Whether |a - b| <= atol + rtol * |b|, element by element, after broadcasting; infinities only equal themselves.
---@param ... perigee.Tensor|number|boolean|{a: perigee.Tensor, b: perigee.Tensor, rtol?: number, atol?: number, equal_nan?: boolean} # a, b, rtol=1e-05, atol=1e-08, equal_nan=false
---@return perigee.Tensor close bool
function pg.isclose(...) end

---Whether x is neither infinite nor NaN.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.isfinite(x) end

---Whether x is neither infinite nor NaN.
---@return perigee.Tensor
function Tensor:isfinite() end

---x:isfinite, written into x.
---@return perigee.Tensor
function Tensor:isfinite_() end

---Which elements of x are among those of `test` (a tensor or a number).
---@param ... perigee.Tensor|number|boolean|{x: perigee.Tensor, test: perigee.Tensor|number, invert?: boolean} # x, test, invert=false
---@return perigee.Tensor found bool
function pg.isin(...) end

---Whether x is infinite.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.isinf(x) end

---Whether x is infinite.
---@return perigee.Tensor
function Tensor:isinf() end

---x:isinf, written into x.
---@return perigee.Tensor
function Tensor:isinf_() end

---Whether x is not a number.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.isnan(x) end

---Whether x is not a number.
---@return perigee.Tensor
function Tensor:isnan() end

---x:isnan, written into x.
---@return perigee.Tensor
function Tensor:isnan_() end

---Whether x is infinite and negative.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.isneginf(x) end

---Whether x is infinite and negative.
---@return perigee.Tensor
function Tensor:isneginf() end

---x:isneginf, written into x.
---@return perigee.Tensor
function Tensor:isneginf_() end

---Whether x is infinite and positive.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.isposinf(x) end

---Whether x is infinite and positive.
---@return perigee.Tensor
function Tensor:isposinf() end

---x:isposinf, written into x.
---@return perigee.Tensor
function Tensor:isposinf_() end

---Keeps a tensor beyond the innermost scope. Answers it.
---@param t perigee.Tensor
---@return perigee.Tensor
function pg.keep(t) end

---y (log(y) - x), x being log probabilities and y probabilities, of which those of 0 cost nothing (Kullback and
---Leibler, 1951).
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? boolean|{log_target?: boolean, reduction?: "mean"|"sum"|"none"} # log_target=false, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, log_target?: boolean, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.kl_div(x, y, options, ...) end

---y (log(y) - x), x being log probabilities and y probabilities, of which those of 0 cost nothing (Kullback and
---Leibler, 1951).
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? boolean|{log_target?: boolean, reduction?: "mean"|"sum"|"none"} # log_target=false, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, log_target?: boolean, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:kl_div(y, options, ...) end

---Every element of x times the whole of y (Kronecker's product); missing axes count as 1 in front.
---@param ... perigee.Tensor|{x: perigee.Tensor, y: perigee.Tensor} # x, y
---@return perigee.Tensor
function pg.kron(...) end

---The k-th smallest element of each line along `axis` (k = 1: the smallest), and where it stands.
---@param x perigee.Tensor # [...], the axis not empty
---@param options? integer|{k: integer, axis?: integer, keepdim?: boolean} # k, axis=-1, keepdim=false
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
---@overload fun(arguments: {x?: perigee.Tensor, k: integer, axis?: integer, keepdim?: boolean}): perigee.Tensor, perigee.Tensor
function pg.kthvalue(x, options, ...) end

---The k-th smallest element of each line along `axis` (k = 1: the smallest), and where it stands.
---@param options? integer|{k: integer, axis?: integer, keepdim?: boolean} # k, axis=-1, keepdim=false
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
function Tensor:kthvalue(options, ...) end

---Absolute differences, |x - y|.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, y: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, weight?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.l1_loss(x, y, weight, options) end

---Absolute differences, |x - y|.
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, y: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, weight?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:l1_loss(y, weight, options) end

---The last `dims` axes shifted and scaled to mean 0 and variance 1 (biased), then by weight and bias (Ba, Kiros, Hinton
---2016).
---@param x perigee.Tensor # [..., normalised axes]
---@param weight? perigee.Tensor # [normalised axes]
---@param bias? perigee.Tensor # [normalised axes]
---@param options? integer|{dims?: integer, eps?: number} # dims=1, eps=1e-05
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, options: {dims?: integer, eps?: number}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {dims?: integer, eps?: number}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, dims?: integer, eps?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.layer_norm(x, weight, bias, options, ...) end

---The last `dims` axes shifted and scaled to mean 0 and variance 1 (biased), then by weight and bias (Ba, Kiros, Hinton
---2016).
---@param weight? perigee.Tensor # [normalised axes]
---@param bias? perigee.Tensor # [normalised axes]
---@param options? integer|{dims?: integer, eps?: number} # dims=1, eps=1e-05
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {dims?: integer, eps?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, dims?: integer, eps?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:layer_norm(weight, bias, options, ...) end

---Whether x is less than or equal to y.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.le(x, y) end

---Whether x is less than or equal to y.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:le(y) end

---x:le, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:le_(y) end

---x where x > 0, else negative_slope * x.
---@param x perigee.Tensor # any shape
---@param options? number|{negative_slope?: number} # negative_slope=0.01
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, negative_slope?: number}): perigee.Tensor
function pg.leaky_relu(x, options) end

---x where x > 0, else negative_slope * x.
---@param options? number|{negative_slope?: number} # negative_slope=0.01
---@return perigee.Tensor
function Tensor:leaky_relu(options) end

---x:leaky_relu, written into x.
---@param options? number|{negative_slope?: number} # negative_slope=0.01
---@return perigee.Tensor
function Tensor:leaky_relu_(options) end

---x + weight * (y - x): x for weight 0, y for weight 1.
---@param x perigee.Tensor|number|boolean # any shape
---@param y perigee.Tensor|number|boolean # a shape that broadcasts
---@param weight? perigee.Tensor|number|boolean # a shape that broadcasts, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean, weight?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.lerp(x, y, weight) end

---x + weight * (y - x): x for weight 0, y for weight 1.
---@param y perigee.Tensor|number|boolean # a shape that broadcasts
---@param weight? perigee.Tensor|number|boolean # a shape that broadcasts, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean, weight?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:lerp(y, weight) end

---x:lerp, written into x.
---@param y perigee.Tensor|number|boolean # a shape that broadcasts
---@param weight? perigee.Tensor|number|boolean # a shape that broadcasts, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean, weight?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:lerp_(y, weight) end

---Logarithm of the absolute value of the gamma function.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.lgamma(x) end

---Logarithm of the absolute value of the gamma function.
---@return perigee.Tensor
function Tensor:lgamma() end

---x:lgamma, written into x.
---@return perigee.Tensor
function Tensor:lgamma_() end

---x times the transposed weight, plus bias: the affine map of a fully connected layer.
---@param x perigee.Tensor # [..., in]
---@param weight perigee.Tensor # [out, in]
---@param bias? perigee.Tensor # [out]
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor}): perigee.Tensor
function pg.linear(x, weight, bias) end

---x times the transposed weight, plus bias: the affine map of a fully connected layer.
---@param weight perigee.Tensor # [out, in]
---@param bias? perigee.Tensor # [out]
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor}): perigee.Tensor
function Tensor:linear(weight, bias) end

---An activation of linear(x, weight, bias), applied while the product is written. relu's gradient comes from the
---result; for gelu_tanh's the product is computed again, so gelu(linear(...), {approximate="tanh"}) is the faster one
---to train and this one needs less memory.
---@param x perigee.Tensor # [..., in]
---@param weight perigee.Tensor # [out, in]
---@param bias? perigee.Tensor # [out]
---@param options? "relu"|"gelu_tanh"|{activation?: "relu"|"gelu_tanh"} # activation=relu
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, options: {activation?: "relu"|"gelu_tanh"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, activation?: "relu"|"gelu_tanh"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.linear_activation(x, weight, bias, options) end

---An activation of linear(x, weight, bias), applied while the product is written. relu's gradient comes from the
---result; for gelu_tanh's the product is computed again, so gelu(linear(...), {approximate="tanh"}) is the faster one
---to train and this one needs less memory.
---@param weight perigee.Tensor # [out, in]
---@param bias? perigee.Tensor # [out]
---@param options? "relu"|"gelu_tanh"|{activation?: "relu"|"gelu_tanh"} # activation=relu
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, options: {activation?: "relu"|"gelu_tanh"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, bias?: perigee.Tensor, activation?: "relu"|"gelu_tanh"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:linear_activation(weight, bias, options) end

---`count` numbers from first to last, both included. Computed in float64 and rounded once.
---@param ... number|integer|perigee.Size|{first: number, last: number, count: integer|perigee.Size, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # first, last, count, dtype, device, requires_grad
---@return perigee.Tensor
function pg.linspace(...) end

---One step of Lion (Chen et al. 2023): param = param (1 - lr weight_decay) - lr sign(beta1 m + (1 - beta1) g), then m =
---beta2 m + (1 - beta2) g. Weight decay is not part of g. g is grad / grad_scale, for maximize its negative, plus
---weight_decay param. All parameters step in one pass; where found_inf is true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param exp_avgs perigee.Tensor[] # shapes of params: m
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number} # maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, beta1=0.9, beta2=0.99
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], exp_avgs: perigee.Tensor[], options: {maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], exp_avgs?: perigee.Tensor[], found_inf?: perigee.Tensor, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.lion(params, grads, exp_avgs, found_inf, options, ...) end

---Reads a file of tensors. With a layer, loads them into it and returns the layer. Without one the options are the
---format's: `pg.load("table.csv", {skip=1})`. Tables, arrays and images are one tensor named `data`; a PNG image is
---[rows, columns, channels], uint8 or int32 of 16 bits, of at most `max_pixels` (2^28), and channels are grey, grey and
---opacity, red green blue, or these and opacity; JPEG and WebP images are uint8. A checkpoint in several files is read
---by its index, `pg.load("model.safetensors.index.json", model)`: into a layer a file at a time, so that beside it
---there is the memory of one; all names are looked at before.
---@param path string
---@param into? perigee.Layer
---@param options? {strict?: boolean, strip_prefix?: string, add_prefix?: string} # as in load_state
---@return table<string, perigee.Tensor>|perigee.Layer tensors by name, or the layer
---@return fun(key: string): string? note the file's notes
---@return string[]? missing of a layer: names that the file lacks
---@return string[]? unexpected names that the layer lacks
function pg.load(path, into, options) end

---Reads a graph that pg.save wrote of a session. `pg.Session{g}` runs it; its variables hold at first what they held
---when it was saved. g.inputs and g.outputs are the tensors to feed and to fetch, by the names for that. What a file
---says is checked call by call; operators that are not here are refused, all at once, with their plugins' names. A
---device that is not here is the default one, with a warning.
---@param path string # "m.pgraph"
---@param options? {device?: string} # where all of it goes
---@return perigee.Graph
function pg.load_graph(path, options) end

---The array of a .npy file, on the CPU.
---@param path string
---@return perigee.Tensor
function pg.load_npy(path) end

---The arrays of a .npz file (numpy.savez or savez_compressed) by name.
---@param path string
---@return table<string, perigee.Tensor>
function pg.load_npz(path) end

---Loads a plugin by its path; a relative one is relative to the current directory.
---@param path string
function pg.load_plugin(path) end

---Each element divided by (k + alpha * the mean of the squares over `size` neighbouring channels)^beta (Krizhevsky
---and others, 2012). x is [N, C, ...].
---@param ... perigee.Tensor|integer|number|{x: perigee.Tensor, size: integer, alpha?: number, beta?: number, k?: number} # x, size, alpha=0.0001, beta=0.75, k=1
---@return perigee.Tensor
function pg.local_response_norm(...) end

---Natural logarithm.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.log(x) end

---Natural logarithm.
---@return perigee.Tensor
function Tensor:log() end

---x:log, written into x.
---@return perigee.Tensor
function Tensor:log_() end

---Logarithm to base 10.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.log10(x) end

---Logarithm to base 10.
---@return perigee.Tensor
function Tensor:log10() end

---x:log10, written into x.
---@return perigee.Tensor
function Tensor:log10_() end

---log(1 + x), exact near 0.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.log1p(x) end

---log(1 + x), exact near 0.
---@return perigee.Tensor
function Tensor:log1p() end

---x:log1p, written into x.
---@return perigee.Tensor
function Tensor:log1p_() end

---Logarithm to base 2.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.log2(x) end

---Logarithm to base 2.
---@return perigee.Tensor
function Tensor:log2() end

---x:log2, written into x.
---@return perigee.Tensor
function Tensor:log2_() end

---Logarithm of `softmax`: x - log(sum(exp(x))), without overflow.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer}): perigee.Tensor
function pg.log_softmax(x, options) end

---Logarithm of `softmax`: x - log(sum(exp(x))), without overflow.
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Tensor
function Tensor:log_softmax(options) end

---log(exp(x) + exp(y)), without overflow.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.logaddexp(x, y) end

---log(exp(x) + exp(y)), without overflow.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logaddexp(y) end

---x:logaddexp, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logaddexp_(y) end

---log2(2^x + 2^y), without overflow.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.logaddexp2(x, y) end

---log2(2^x + 2^y), without overflow.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logaddexp2(y) end

---x:logaddexp2, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logaddexp2_(y) end

---log of the sum of exp(x) up to each element, without overflow.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis: integer, reverse?: boolean} # axis, reverse=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis: integer, reverse?: boolean}): perigee.Tensor
function pg.logcumsumexp(x, options, ...) end

---log of the sum of exp(x) up to each element, without overflow.
---@param options? integer|{axis: integer, reverse?: boolean} # axis, reverse=false
---@param ... any
---@return perigee.Tensor
function Tensor:logcumsumexp(options, ...) end

---Whether x and y are both not zero.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.logical_and(x, y) end

---Whether x and y are both not zero.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logical_and(y) end

---x:logical_and, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logical_and_(y) end

---Whether x is zero.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.logical_not(x) end

---Whether x is zero.
---@return perigee.Tensor
function Tensor:logical_not() end

---x:logical_not, written into x.
---@return perigee.Tensor
function Tensor:logical_not_() end

---Whether x or y is not zero.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.logical_or(x, y) end

---Whether x or y is not zero.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logical_or(y) end

---x:logical_or, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logical_or_(y) end

---Whether exactly one of x and y is not zero.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.logical_xor(x, y) end

---Whether exactly one of x and y is not zero.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logical_xor(y) end

---x:logical_xor, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:logical_xor_(y) end

---log(x / (1 - x)), the inverse of sigmoid.
---@param x perigee.Tensor # any shape
---@param options? number|{eps?: number} # eps=-1
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, eps?: number}): perigee.Tensor
function pg.logit(x, options) end

---log(x / (1 - x)), the inverse of sigmoid.
---@param options? number|{eps?: number} # eps=-1
---@return perigee.Tensor
function Tensor:logit(options) end

---x:logit, written into x.
---@param options? number|{eps?: number} # eps=-1
---@return perigee.Tensor
function Tensor:logit_(options) end

---log(sigmoid(x)), without overflow.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.logsigmoid(x) end

---log(sigmoid(x)), without overflow.
---@return perigee.Tensor
function Tensor:logsigmoid() end

---x:logsigmoid, written into x.
---@return perigee.Tensor
function Tensor:logsigmoid_() end

---log(sum(exp(x))), without overflow; of integers and booleans in float32.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.logsumexp(x, options, ...) end

---log(sum(exp(x))), without overflow; of integers and booleans in float32.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:logsumexp(options, ...) end

---The norm of each window of [N, C, L] or [C, L]: (sum of x^norm)^(1 / norm), as PyTorch defines it.
---@param ... perigee.Tensor|number|integer|integer[]|boolean|{x: perigee.Tensor, norm: number, kernel: integer|integer[], stride?: integer|integer[], ceil_mode?: boolean} # x, norm, kernel, stride, ceil_mode=false
---@return perigee.Tensor
function pg.lp_pool1d(...) end

---The norm of each window of [N, C, H, W] or [C, H, W]: (sum of x^norm)^(1 / norm), as PyTorch defines it.
---@param ... perigee.Tensor|number|integer|integer[]|boolean|{x: perigee.Tensor, norm: number, kernel: integer|integer[], stride?: integer|integer[], ceil_mode?: boolean} # x, norm, kernel, stride, ceil_mode=false
---@return perigee.Tensor
function pg.lp_pool2d(...) end

---A step of a long short-term memory behind its products (Hochreiter and Schmidhuber 1997, with forget gates): i, f, o
---= sigmoid and g = tanh of x + hidden, whose columns come in the order i, f, g, o; c' = f c + i g; h = o tanh(c').
---16-bit floats are computed in float32.
---@param x perigee.Tensor # [n, 4 size]: the input's part of the gates
---@param hidden perigee.Tensor # [n, 4 size]: the state's part of the gates
---@param c perigee.Tensor # [n, size]: the cell's state
---@return perigee.Tensor h
---@return perigee.Tensor next
---@return perigee.Tensor gates
---@overload fun(arguments: {x?: perigee.Tensor, hidden?: perigee.Tensor, c?: perigee.Tensor}): perigee.Tensor, perigee.Tensor, perigee.Tensor
function pg.lstm_cell(x, hidden, c) end

---A step of a long short-term memory behind its products (Hochreiter and Schmidhuber 1997, with forget gates): i, f, o
---= sigmoid and g = tanh of x + hidden, whose columns come in the order i, f, g, o; c' = f c + i g; h = o tanh(c').
---16-bit floats are computed in float32.
---@param hidden perigee.Tensor # [n, 4 size]: the state's part of the gates
---@param c perigee.Tensor # [n, size]: the cell's state
---@return perigee.Tensor h
---@return perigee.Tensor next
---@return perigee.Tensor gates
---@overload fun(self: perigee.Tensor, arguments: {hidden?: perigee.Tensor, c?: perigee.Tensor}): perigee.Tensor, perigee.Tensor, perigee.Tensor
function Tensor:lstm_cell(hidden, c) end

---All steps of a long short-term memory in one direction behind the product with its inputs: step t is lstm_cell(x[t],
---h weight^T, c), which makes the h and c of the next one.
---@param x perigee.Tensor # [T, n, 4 size]: the inputs' part of the gates
---@param weight perigee.Tensor # [4 size, size]: what h is multiplied with
---@param h perigee.Tensor # [n, size]: before the first step
---@param c perigee.Tensor # [n, size]
---@param options? boolean|{reverse?: boolean, keep?: boolean} # reverse=false, keep=true
---@param ... any
---@return perigee.Tensor y
---@return perigee.Tensor states
---@return perigee.Tensor gates
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, h?: perigee.Tensor, c?: perigee.Tensor, reverse?: boolean, keep?: boolean}): perigee.Tensor, perigee.Tensor, perigee.Tensor
---@overload fun(...: any): perigee.Tensor, perigee.Tensor, perigee.Tensor
function pg.lstm_steps(x, weight, h, c, options, ...) end

---All steps of a long short-term memory in one direction behind the product with its inputs: step t is lstm_cell(x[t],
---h weight^T, c), which makes the h and c of the next one.
---@param weight perigee.Tensor # [4 size, size]: what h is multiplied with
---@param h perigee.Tensor # [n, size]: before the first step
---@param c perigee.Tensor # [n, size]
---@param options? boolean|{reverse?: boolean, keep?: boolean} # reverse=false, keep=true
---@param ... any
---@return perigee.Tensor y
---@return perigee.Tensor states
---@return perigee.Tensor gates
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, h?: perigee.Tensor, c?: perigee.Tensor, reverse?: boolean, keep?: boolean}): perigee.Tensor, perigee.Tensor, perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor, perigee.Tensor, perigee.Tensor
function Tensor:lstm_steps(weight, h, c, options, ...) end

---Whether x is less than y.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.lt(x, y) end

---Whether x is less than y.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:lt(y) end

---x:lt, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:lt_(y) end

---Seeds every random draw that follows. A negative seed is the one of its two's complement: -1 is 2^64 - 1.
---@param seed integer
function pg.manual_seed(seed) end

---x with `value` (a number, a boolean or a tensor) where mask is true; the mask broadcasts with x.
---@param ... perigee.Tensor|number|boolean|{x: perigee.Tensor, mask: perigee.Tensor, value: number|boolean|perigee.Tensor} # x, mask, value
---@return perigee.Tensor
function pg.masked_fill(...) end

---x:masked_fill, written into x.
---@param ... perigee.Tensor|number|boolean|{mask: perigee.Tensor, value: number|boolean|perigee.Tensor} # mask, value
---@return perigee.Tensor
function Tensor:masked_fill_(...) end

---x with the elements of source, in row-major order, where mask (which broadcasts to x) is true. source has at least
---as many elements as the mask selects.
---@param ... perigee.Tensor|{x: perigee.Tensor, mask: perigee.Tensor, source: perigee.Tensor} # x, mask, source
---@return perigee.Tensor
function pg.masked_scatter(...) end

---The elements of x where mask is true, after broadcasting both, in row-major order: [n].
---@param ... perigee.Tensor|{x: perigee.Tensor, mask: perigee.Tensor} # x, mask
---@return perigee.Tensor
function pg.masked_select(...) end

---Matrix product of the last two axes; leading axes broadcast. A 1-D x is a row, a 1-D y a column, and that axis is
---missing in the result.
---@param x perigee.Tensor # [..., m, k] or [k]
---@param y perigee.Tensor # [..., k, n] or [k]
---@param options? boolean|{transpose_x?: boolean, transpose_y?: boolean} # transpose_x=false, transpose_y=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, transpose_x?: boolean, transpose_y?: boolean}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.matmul(x, y, options, ...) end

---Matrix product of the last two axes; leading axes broadcast. A 1-D x is a row, a 1-D y a column, and that axis is
---missing in the result.
---@param y perigee.Tensor # [..., k, n] or [k]
---@param options? boolean|{transpose_x?: boolean, transpose_y?: boolean} # transpose_x=false, transpose_y=false
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, transpose_x?: boolean, transpose_y?: boolean}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:matmul(y, options, ...) end

---The largest element of all; with an axis, the values along it and their positions, contents from 0; of two tensors,
---the larger elements.
---@param ... perigee.Tensor|integer|boolean|{x: perigee.Tensor, axis?: integer|perigee.Tensor, keepdim?: boolean} # x, axis, keepdim=false
---@return perigee.Tensor values
---@return perigee.Tensor? positions where an axis was given
function pg.max(...) end

---Largest element of each window; a NaN counts as largest, of equal ones the first in row-major order. Padding counts
---as minus infinity.
---@param x perigee.Tensor # [N, C, L]
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean} # kernel, stride, padding={0}, dilation={1}, ceil_mode=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean}): perigee.Tensor
function pg.max_pool1d(x, options, ...) end

---Largest element of each window; a NaN counts as largest, of equal ones the first in row-major order. Padding counts
---as minus infinity.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean} # kernel, stride, padding={0}, dilation={1}, ceil_mode=false
---@param ... any
---@return perigee.Tensor
function Tensor:max_pool1d(options, ...) end

---The elements of x at the indices, which max_pool gives.
---@param x perigee.Tensor # [N, C, L]
---@param indices perigee.Tensor # int64 [N, C, L']: where along L each maximum stands
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, indices?: perigee.Tensor}): perigee.Tensor
function pg.max_pool1d_gather(x, indices) end

---The elements of x at the indices, which max_pool gives.
---@param indices perigee.Tensor # int64 [N, C, L']: where along L each maximum stands
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {indices?: perigee.Tensor}): perigee.Tensor
function Tensor:max_pool1d_gather(indices) end

---Largest element of each window; a NaN counts as largest, of equal ones the first in row-major order. Padding counts
---as minus infinity.
---@param x perigee.Tensor # [N, C, H, W]
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean} # kernel, stride, padding={0, 0}, dilation={1, 1}, ceil_mode=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean}): perigee.Tensor
function pg.max_pool2d(x, options, ...) end

---Largest element of each window; a NaN counts as largest, of equal ones the first in row-major order. Padding counts
---as minus infinity.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean} # kernel, stride, padding={0, 0}, dilation={1, 1}, ceil_mode=false
---@param ... any
---@return perigee.Tensor
function Tensor:max_pool2d(options, ...) end

---The elements of x at the indices, which max_pool gives.
---@param x perigee.Tensor # [N, C, H, W]
---@param indices perigee.Tensor # int64 [N, C, H', W']: where in its plane each maximum stands, h * W + w
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, indices?: perigee.Tensor}): perigee.Tensor
function pg.max_pool2d_gather(x, indices) end

---The elements of x at the indices, which max_pool gives.
---@param indices perigee.Tensor # int64 [N, C, H', W']: where in its plane each maximum stands, h * W + w
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {indices?: perigee.Tensor}): perigee.Tensor
function Tensor:max_pool2d_gather(indices) end

---Largest element of each window; a NaN counts as largest, of equal ones the first in row-major order. Padding counts
---as minus infinity.
---@param x perigee.Tensor # [N, C, D, H, W]
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean} # kernel, stride, padding={0, 0, 0}, dilation={1, 1, 1}, ceil_mode=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean}): perigee.Tensor
function pg.max_pool3d(x, options, ...) end

---Largest element of each window; a NaN counts as largest, of equal ones the first in row-major order. Padding counts
---as minus infinity.
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], ceil_mode?: boolean} # kernel, stride, padding={0, 0, 0}, dilation={1, 1, 1}, ceil_mode=false
---@param ... any
---@return perigee.Tensor
function Tensor:max_pool3d(options, ...) end

---The elements of x at the indices, which max_pool gives.
---@param x perigee.Tensor # [N, C, D, H, W]
---@param indices perigee.Tensor # int64 [N, C, D', H', W']: where in its block each maximum stands, (d * H + h) * W + w
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, indices?: perigee.Tensor}): perigee.Tensor
function pg.max_pool3d_gather(x, indices) end

---The elements of x at the indices, which max_pool gives.
---@param indices perigee.Tensor # int64 [N, C, D', H', W']: where in its block each maximum stands, (d * H + h) * W + w
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {indices?: perigee.Tensor}): perigee.Tensor
function Tensor:max_pool3d_gather(indices) end

---The larger of x and y; NaN where either is NaN. Of equal operands each gets half the gradient.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.maximum(x, y) end

---The larger of x and y; NaN where either is NaN. Of equal operands each gets half the gradient.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:maximum(y) end

---x:maximum, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:maximum_(y) end

---Arithmetic mean.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.mean(x, options, ...) end

---Arithmetic mean.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:mean(options, ...) end

---The middle element of each line along `axis` in rising order, the lower one of two, and where it stands; NaN where
---there is one.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis?: integer, keepdim?: boolean} # axis=-1, keepdim=false
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer, keepdim?: boolean}): perigee.Tensor, perigee.Tensor
function pg.median(x, options, ...) end

---The middle element of each line along `axis` in rising order, the lower one of two, and where it stands; NaN where
---there is one.
---@param options? integer|{axis?: integer, keepdim?: boolean} # axis=-1, keepdim=false
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
function Tensor:median(options, ...) end

---The coordinates of a grid, a view a tensor: with "ij" tensor k runs along axis k, with "xy" the first along axis 2.
---@param ... perigee.Tensor[]|{tensors: perigee.Tensor[], indexing?: "ij"|"xy"} # tensors, indexing=ij
---@return perigee.Tensor ...
function pg.meshgrid(...) end

---The least element of all; with an axis, the values along it and their positions, contents from 0; of two tensors,
---the smaller elements.
---@param ... perigee.Tensor|integer|boolean|{x: perigee.Tensor, axis?: integer|perigee.Tensor, keepdim?: boolean} # x, axis, keepdim=false
---@return perigee.Tensor values
---@return perigee.Tensor? positions where an axis was given
function pg.min(...) end

---The smaller of x and y; NaN where either is NaN. Of equal operands each gets half the gradient.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.minimum(x, y) end

---The smaller of x and y; NaN where either is NaN. Of equal operands each gets half the gradient.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:minimum(y) end

---x:minimum, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:minimum_(y) end

---x * tanh(softplus(x)) (Misra 2019).
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.mish(x) end

---x * tanh(softplus(x)) (Misra 2019).
---@return perigee.Tensor
function Tensor:mish() end

---x:mish, written into x.
---@return perigee.Tensor
function Tensor:mish_() end

---Product of two matrices, [n, k] and [k, m].
---@param ... perigee.Tensor|{x: perigee.Tensor, y: perigee.Tensor} # x, y
---@return perigee.Tensor
function pg.mm(...) end

---The element that occurs most often in each line along `axis`, the smallest of several, and its last place.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis?: integer, keepdim?: boolean} # axis=-1, keepdim=false
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer, keepdim?: boolean}): perigee.Tensor, perigee.Tensor
function pg.mode(x, options, ...) end

---The element that occurs most often in each line along `axis`, the smallest of several, and its last place.
---@param options? integer|{axis?: integer, keepdim?: boolean} # axis=-1, keepdim=false
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
function Tensor:mode(options, ...) end

---The same as pg.movedim. Moves axes to new places: `x:movedim(1, -1)`, `x:movedim({1, 2}, {2, 1})`.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, from: integer|integer[], to: integer|integer[]} # x, from, to
---@return perigee.Tensor
function pg.moveaxis(...) end

---Moves axes to new places: `x:movedim(1, -1)`, `x:movedim({1, 2}, {2, 1})`.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, from: integer|integer[], to: integer|integer[]} # x, from, to
---@return perigee.Tensor
function pg.movedim(...) end

---Squared differences, (x - y)^2.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, y: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, weight?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.mse_loss(x, y, weight, options) end

---Squared differences, (x - y)^2.
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, y: perigee.Tensor, options: {reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, weight?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:mse_loss(y, weight, options) end

---The same as tensor:msort. The elements along axis 1 in rising order.
---@param x perigee.Tensor
---@return perigee.Tensor
function pg.msort(x) end

---Product of x and y. Of booleans: whether both are true.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.mul(x, y) end

---Product of x and y. Of booleans: whether both are true.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:mul(y) end

---x:mul, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:mul_(y) end

---Categories drawn with the given probabilities, which need not add up to 1; without replacement none twice.
---perigee/kernels/philox.hpp says which are drawn.
---@param p perigee.Tensor # [n] or [m, n]: finite, from 0
---@param options? integer|{num_samples: integer, replacement?: boolean} # num_samples, replacement=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {p?: perigee.Tensor, num_samples: integer, replacement?: boolean}): perigee.Tensor
function pg.multinomial(p, options, ...) end

---Categories drawn with the given probabilities, which need not add up to 1; without replacement none twice.
---perigee/kernels/philox.hpp says which are drawn.
---@param options? integer|{num_samples: integer, replacement?: boolean} # num_samples, replacement=false
---@param ... any
---@return perigee.Tensor
function Tensor:multinomial(options, ...) end

---Product of a matrix [n, k] and a vector [k].
---@param ... perigee.Tensor|{x: perigee.Tensor, y: perigee.Tensor} # x, y
---@return perigee.Tensor
function pg.mv(...) end

---One step of NAdam (Dozat 2016): m and v as in adam, mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2), and with mu =
---mu(step), mu' = mu(step + 1) and p the product of all mu up to this step's: param -= lr ((1 - mu) / (1 - p) g + mu' /
---(1 - p mu') m) / (sqrt(v / (1 - beta2^step)) + eps). g is grad / grad_scale, for maximize its negative, plus
---weight_decay param. All parameters step in one pass; where found_inf is true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param exp_avgs perigee.Tensor[] # shapes of params: m
---@param exp_avg_sqs perigee.Tensor[] # shapes of params: v
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number, momentum_decay?: number} # maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, beta1=0.9, beta2=0.999, eps=1e-08, momentum_decay=0.004
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], exp_avgs: perigee.Tensor[], exp_avg_sqs: perigee.Tensor[], options: {maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number, momentum_decay?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], exp_avgs?: perigee.Tensor[], exp_avg_sqs?: perigee.Tensor[], found_inf?: perigee.Tensor, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number, momentum_decay?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.nadam(params, grads, exp_avgs, exp_avg_sqs, found_inf, options, ...) end

---Calls fn(...); what it records into a graph is called "name/add" instead of "add", and placeholders and variables
---that it makes are fed and fetched as "name/x". Scopes inside of scopes join: "encoder/attention/add". Layers give the
---same by their path in the model. Eager code runs as without it.
---@param name string
---@param fn function
---@param ... any # arguments of fn
---@return any ... what fn returns
function pg.name_scope(name, fn, ...) end

---x with numbers in place of NaN and of infinities.
---@param x perigee.Tensor # any shape
---@param options? number|{nan?: number, posinf?: number, neginf?: number} # nan=0, posinf=nan, neginf=nan
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, nan?: number, posinf?: number, neginf?: number}): perigee.Tensor
function pg.nan_to_num(x, options, ...) end

---x with numbers in place of NaN and of infinities.
---@param options? number|{nan?: number, posinf?: number, neginf?: number} # nan=0, posinf=nan, neginf=nan
---@param ... any
---@return perigee.Tensor
function Tensor:nan_to_num(options, ...) end

---x:nan_to_num, written into x.
---@param options? number|{nan?: number, posinf?: number, neginf?: number} # nan=0, posinf=nan, neginf=nan
---@param ... any
---@return perigee.Tensor
function Tensor:nan_to_num_(options, ...) end

---Mean of the elements that are not NaN.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.nanmean(x, options, ...) end

---Mean of the elements that are not NaN.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:nanmean(options, ...) end

---The median of what is not NaN; NaN where nothing is left.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis?: integer, keepdim?: boolean} # axis=-1, keepdim=false
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer, keepdim?: boolean}): perigee.Tensor, perigee.Tensor
function pg.nanmedian(x, options, ...) end

---The median of what is not NaN; NaN where nothing is left.
---@param options? integer|{axis?: integer, keepdim?: boolean} # axis=-1, keepdim=false
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
function Tensor:nanmedian(options, ...) end

---Sum of the elements that are not NaN; of integers and booleans in int64.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.nansum(x, options, ...) end

---Sum of the elements that are not NaN; of integers and booleans in int64.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:nansum(options, ...) end

---`length` positions of an axis from position `start` (from 1). In a graph, a copy where start or length is a size
---that does not count from an end of the axis, such as another tensor's.
---@param ... perigee.Tensor|integer|perigee.Size|{x: perigee.Tensor, axis: integer, start: integer|perigee.Size, length: integer|perigee.Size} # x, axis, start, length
---@return perigee.Tensor
function pg.narrow(...) end

---Whether x differs from y.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.ne(x, y) end

---Whether x differs from y.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:ne(y) end

---x:ne, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:ne_(y) end

--- -x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.neg(x) end

--- -x.
---@return perigee.Tensor
function Tensor:neg() end

---x:neg, written into x.
---@return perigee.Tensor
function Tensor:neg_() end

---pg.no_grad(fn, ...): nothing in fn is recorded for gradients.
---@param fn function
---@param ... any # arguments of fn
---@return any ... what fn returns
function pg.no_grad(fn, ...) end

---Positions of the elements that are not zero, in row-major order, from 0; a column an axis.
---@param x perigee.Tensor # [...]
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.nonzero(x) end

---Positions of the elements that are not zero, in row-major order, from 0; a column an axis.
---@return perigee.Tensor
function Tensor:nonzero() end

---The p-norm of all elements or along axes: (sum |x|^p)^(1/p); p = 0 counts elements that are not 0,
---`math.huge` is the largest magnitude, "fro" is 2.
---@param ... perigee.Tensor|number|string|integer|integer[]|boolean|{x: perigee.Tensor, p?: number|string, axis?: integer|integer[], keepdim?: boolean} # x, p=2, axis, keepdim=false
---@return perigee.Tensor
function pg.norm(...) end

---Normal draws: of numbers `mean` and `std` in a shape, or of tensors of them, which broadcast.
---@param ... number|perigee.Tensor|integer[]|{mean?: number|perigee.Tensor, std?: number|perigee.Tensor, shape?: integer[], dtype?: perigee.Dtype, device?: string} # mean=0, std=1, shape, dtype, device
---@return perigee.Tensor
function pg.normal(...) end

---x divided by its p-norm along an axis, or by eps where that is larger.
---@param ... perigee.Tensor|number|integer|{x: perigee.Tensor, p?: number, axis?: integer, eps?: number} # x, p=2, axis=2, eps=1e-12
---@return perigee.Tensor
function pg.normalize(...) end

---A new last axis that is 1 at the index and 0 elsewhere: class c stands at position c + 1. Without `classes` there
---are as many as the largest index asks for.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, classes?: integer} # x, classes
---@return perigee.Tensor hot int64 [..., classes]
function pg.one_hot(...) end

---Ones: `pg.ones{2, 3}`.
---@param ... integer|integer[]|{shape: integer|integer[], dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # shape, dtype, device, requires_grad
---@return perigee.Tensor
function pg.ones(...) end

---Ones in x's shape, in x's dtype and on its device if not told otherwise.
---@param x perigee.Tensor
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}): perigee.Tensor
function pg.ones_like(x, options) end

---Products of every element of x [n] with every one of y [m]: [n, m].
---@param ... perigee.Tensor|{x: perigee.Tensor, y: perigee.Tensor} # x, y
---@return perigee.Tensor
function pg.outer(...) end

---Adds elements around x, or takes some away (negative widths). `pad` is {before, behind} of the last axis, then of
---the one before it, ...; or a pair an axis, first axis first. Modes: constant (`value`), reflect, replicate,
---circular.
---@param ... perigee.Tensor|table|"constant"|"reflect"|"replicate"|"circular"|number|{x: perigee.Tensor, pad: table, mode?: "constant"|"reflect"|"replicate"|"circular", value?: number} # x, pad, mode=constant, value=0
---@return perigee.Tensor
function pg.pad(...) end

---x with elements added at the ends of axes, or taken away.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{before?: integer|integer[], behind?: integer|integer[], mode?: "constant"|"reflect"|"replicate"|"circular", value?: number} # before, behind, mode=constant, value=0
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, before?: integer|integer[], behind?: integer|integer[], mode?: "constant"|"reflect"|"replicate"|"circular", value?: number}): perigee.Tensor
function pg.pad_axes(x, options, ...) end

---x with elements added at the ends of axes, or taken away.
---@param options? integer|integer[]|{before?: integer|integer[], behind?: integer|integer[], mode?: "constant"|"reflect"|"replicate"|"circular", value?: number} # before, behind, mode=constant, value=0
---@param ... any
---@return perigee.Tensor
function Tensor:pad_axes(options, ...) end

---The p-norm of x - y + eps along the last axis. x and y broadcast.
---@param ... perigee.Tensor|number|boolean|{x: perigee.Tensor, y: perigee.Tensor, p?: number, eps?: number, keepdim?: boolean} # x, y, p=2, eps=1e-06, keepdim=false
---@return perigee.Tensor
function pg.pairwise_distance(...) end

---Distances (pg.cdist) of all pairs of rows of a matrix [n, d], those of the first row first: [n (n - 1) / 2].
---@param ... perigee.Tensor|number|{x: perigee.Tensor, p?: number} # x, p=2
---@return perigee.Tensor
function pg.pdist(...) end

---The axes of x in another order.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis: integer|integer[]} # axis
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis: integer|integer[]}): perigee.Tensor
function pg.permute(x, options, ...) end

---The axes of x in another order.
---@param options? integer|integer[]|{axis: integer|integer[]} # axis
---@param ... any
---@return perigee.Tensor
function Tensor:permute(options, ...) end

---[..., C * r^2, H, W] to [..., C, H * r, W * r]: channels become pixels (Shi and others, 2016).
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, factor: integer} # x, factor
---@return perigee.Tensor
function pg.pixel_shuffle(...) end

---The inverse of pixel_shuffle: [..., C, H * r, W * r] to [..., C * r^2, H, W].
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, factor: integer} # x, factor
---@return perigee.Tensor
function pg.pixel_unshuffle(...) end

---Draws curves: in the terminal, or into a file. Every argument is a curve: a list of numbers, a tensor of one axis, a
---history of `fit` (its loss and val_loss, or the columns in `keys`), or `{y=..., x=..., label="..."}`; a tensor of two
---axes is a curve a row, a table of names a curve each. `pg.plot(history)`, `pg.plot{loss, title="loss",
---file="loss.png"}`, `pg.plot({train=a, test=b}, {title="loss"})`.
---Options: `x` positions common to all, `labels` a name a curve, `title xlabel ylabel`, `logy` a logarithmic axis,
---`file` (.svg or .png) where to write, `width height` in characters or pixels, `style` "braille" or "marks", `color`.
---@param ... perigee.Tensor|number[]|table
---@return perigee.Plot plot with :save(path); tostring(plot) is the text
function pg.plot(...) end

---All plugins found: a list of { name, kinds, version, path, state, reason }.
---`load=true` loads those that have not been asked for yet.
---@param ... {load?: boolean} # load
---@return table[]
function pg.plugins(...) end

---Negative log likelihood exp(x) - y x of counts y under Poisson's distribution of mean exp(x), or x - y log(x + eps)
---of mean x; without log(y!), which x does not change.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? boolean|{log_input?: boolean, full?: boolean, eps?: number, reduction?: "mean"|"sum"|"none"} # log_input=true, full=false, eps=1e-08, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, log_input?: boolean, full?: boolean, eps?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.poisson_nll_loss(x, y, options, ...) end

---Negative log likelihood exp(x) - y x of counts y under Poisson's distribution of mean exp(x), or x - y log(x + eps)
---of mean x; without log(y!), which x does not change.
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? boolean|{log_input?: boolean, full?: boolean, eps?: number, reduction?: "mean"|"sum"|"none"} # log_input=true, full=false, eps=1e-08, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, log_input?: boolean, full?: boolean, eps?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:poisson_nll_loss(y, options, ...) end

---The n-th derivative of digamma; digamma itself for n = 0.
---@param x perigee.Tensor # any shape
---@param options? integer|{n: integer} # n
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, n: integer}): perigee.Tensor
function pg.polygamma(x, options) end

---The n-th derivative of digamma; digamma itself for n = 0.
---@param options? integer|{n: integer} # n
---@return perigee.Tensor
function Tensor:polygamma(options) end

---x:polygamma, written into x.
---@param options? integer|{n: integer} # n
---@return perigee.Tensor
function Tensor:polygamma_(options) end

---x to the power of y. Integers stay integers, and then a negative exponent is an error.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.pow(x, y) end

---x to the power of y. Integers stay integers, and then a negative exponent is an error.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:pow(y) end

---x:pow, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:pow_(y) end

---x where x > 0, else weight * x (He, Zhang, Ren, Sun 2015).
---@param x perigee.Tensor # any shape
---@param weight perigee.Tensor # [1], or [size of axis 2 of x]: the slopes for negative x
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor}): perigee.Tensor
function pg.prelu(x, weight) end

---x where x > 0, else weight * x (He, Zhang, Ren, Sun 2015).
---@param weight perigee.Tensor # [1], or [size of axis 2 of x]: the slopes for negative x
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor}): perigee.Tensor
function Tensor:prelu(weight) end

---Product; of integers and booleans in int64.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.prod(x, options, ...) end

---Product; of integers and booleans in int64.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:prod(options, ...) end

---Runs fn once and notes every operator, kernel, copy, wait, gradient rule, optimizer step and allocation, with script
---lines and layers, the ranges of pg.range and of `fit`, and the stages of pipelines, on the script's thread and on
---those of pipelines. tostring tells the verdict, a table by operator, and who held memory when most was in use.
---Asynchronous devices tell themselves what they did and when where their plugin can (pg.profiler/0); else they are
---seen from the host: what was submitted, and what was waited for.
---@param ... function|{fn: function, trace?: string, origins?: boolean, roofline?: boolean, capacity?: integer} # fn, trace, origins=true, roofline=true, capacity=262144
---@return perigee.Profile
function pg.profile(...) end

---x with values written (or added) at the indices of flat x.
---@param ... perigee.Tensor|number|boolean|{x: perigee.Tensor, index: perigee.Tensor, values: perigee.Tensor|number, accumulate?: boolean} # x, index, values, accumulate=false
---@return perigee.Tensor
function pg.put(...) end

---The elements below which the shares `q` of each line along an axis (of all elements without one) lie. q is a
---number, or a list or tensor of them, which then come along a new first axis. Interpolation: linear (definition 7 of
---Hyndman and Fan, "Sample quantiles in statistical packages", 1996), lower, higher, midpoint, nearest.
---@param ... perigee.Tensor|number|number[]|integer|boolean|"linear"|"lower"|"higher"|"midpoint"|"nearest"|{x: perigee.Tensor, q: number|number[]|perigee.Tensor, axis?: integer, keepdim?: boolean, interpolation?: "linear"|"lower"|"higher"|"midpoint"|"nearest"} # x, q, axis, keepdim=false, interpolation=linear
---@return perigee.Tensor
function pg.quantile(...) end

---A weight as whole numbers: x / scale, rounded to the nearest (halves to the even one) and kept within -127..127 of
---int8 and -8..7 of int4; NaN becomes 0. As float8: the nearest number of the format, its largest (448 or 57344) for
---what is beyond; NaN stays. dequantize is the way back.
---@param x perigee.Tensor # [out, in]; of int4 an even in
---@param scale perigee.Tensor # [out, groups]: what each group of a row's numbers is multiplied by
---@param options? "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"|{format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"} # format=int8
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, scale?: perigee.Tensor, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.quantize(x, scale, options) end

---A weight as whole numbers: x / scale, rounded to the nearest (halves to the even one) and kept within -127..127 of
---int8 and -8..7 of int4; NaN becomes 0. As float8: the nearest number of the format, its largest (448 or 57344) for
---what is beyond; NaN stays. dequantize is the way back.
---@param scale perigee.Tensor # [out, groups]: what each group of a row's numbers is multiplied by
---@param options? "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"|{format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"} # format=int8
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {scale?: perigee.Tensor, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:quantize(scale, options) end

---conv2d(x, dequantize(weight, scale) as filters [out, C / groups, kh, kw], bias). activations="floating" leaves x as
---it is; "int8" and "uint8" make whole numbers of x first (as fake_quantize does), so that the product is one of whole
---numbers: by x_scale and x_zero_point where they are given (which is rounded and kept within 0..255), else by each
---image's largest magnitude (int8) or extremes and 0 (uint8). Gradients pass straight through x's rounding.
---@param x perigee.Tensor # [N, C, H, W]
---@param weight perigee.Tensor # a filter a row, in = C / groups * kh * kw: int8 [out, in], of int4 uint8 [out, in / 2], of float8 uint8 [out, in]
---@param scale perigee.Tensor # [out, groups]: what each group of a row's numbers is multiplied by
---@param bias? perigee.Tensor # [out]
---@param x_scale? perigee.Tensor # [1]
---@param x_zero_point? perigee.Tensor # [1], of uint8
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"} # kernel, stride={1, 1}, padding={0, 0}, dilation={1, 1}, groups=1, format=int8, activations=floating, activation=none
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, options: {kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, bias: perigee.Tensor, options: {kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, bias: perigee.Tensor, x_scale: perigee.Tensor, options: {kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, scale?: perigee.Tensor, bias?: perigee.Tensor, x_scale?: perigee.Tensor, x_zero_point?: perigee.Tensor, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.quantized_conv2d(x, weight, scale, bias, x_scale, x_zero_point, options, ...) end

---conv2d(x, dequantize(weight, scale) as filters [out, C / groups, kh, kw], bias). activations="floating" leaves x as
---it is; "int8" and "uint8" make whole numbers of x first (as fake_quantize does), so that the product is one of whole
---numbers: by x_scale and x_zero_point where they are given (which is rounded and kept within 0..255), else by each
---image's largest magnitude (int8) or extremes and 0 (uint8). Gradients pass straight through x's rounding.
---@param weight perigee.Tensor # a filter a row, in = C / groups * kh * kw: int8 [out, in], of int4 uint8 [out, in / 2], of float8 uint8 [out, in]
---@param scale perigee.Tensor # [out, groups]: what each group of a row's numbers is multiplied by
---@param bias? perigee.Tensor # [out]
---@param x_scale? perigee.Tensor # [1]
---@param x_zero_point? perigee.Tensor # [1], of uint8
---@param options? integer|integer[]|{kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"} # kernel, stride={1, 1}, padding={0, 0}, dilation={1, 1}, groups=1, format=int8, activations=floating, activation=none
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, options: {kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, bias: perigee.Tensor, options: {kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, bias: perigee.Tensor, x_scale: perigee.Tensor, options: {kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, scale?: perigee.Tensor, bias?: perigee.Tensor, x_scale?: perigee.Tensor, x_zero_point?: perigee.Tensor, kernel: integer|integer[], stride?: integer|integer[], padding?: integer|integer[], dilation?: integer|integer[], groups?: integer, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:quantized_conv2d(weight, scale, bias, x_scale, x_zero_point, options, ...) end

---linear(x, dequantize(weight, scale), bias). activations="floating" leaves x as it is; "int8" and "uint8" make whole
---numbers of x first (as fake_quantize does), so that the product is one of whole numbers: by x_scale and x_zero_point
---where they are given, else by each row's largest magnitude (int8) or extremes and 0 (uint8). Gradients pass straight
---through x's rounding. Where a device has a kernel for it, few rows of x read the small weight as it lies.
---@param x perigee.Tensor # [..., in]
---@param weight perigee.Tensor # int8 [out, in], of int4 uint8 [out, in / 2], of float8 uint8 [out, in]
---@param scale perigee.Tensor # [out, groups]: what each group of a row's numbers is multiplied by
---@param bias? perigee.Tensor # [out]
---@param x_scale? perigee.Tensor # [1]
---@param x_zero_point? perigee.Tensor # [1], of uint8
---@param options? "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"|{format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"} # format=int8, activations=floating, activation=none
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, options: {format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, bias: perigee.Tensor, options: {format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(x: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, bias: perigee.Tensor, x_scale: perigee.Tensor, options: {format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, scale?: perigee.Tensor, bias?: perigee.Tensor, x_scale?: perigee.Tensor, x_zero_point?: perigee.Tensor, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.quantized_linear(x, weight, scale, bias, x_scale, x_zero_point, options, ...) end

---linear(x, dequantize(weight, scale), bias). activations="floating" leaves x as it is; "int8" and "uint8" make whole
---numbers of x first (as fake_quantize does), so that the product is one of whole numbers: by x_scale and x_zero_point
---where they are given, else by each row's largest magnitude (int8) or extremes and 0 (uint8). Gradients pass straight
---through x's rounding. Where a device has a kernel for it, few rows of x read the small weight as it lies.
---@param weight perigee.Tensor # int8 [out, in], of int4 uint8 [out, in / 2], of float8 uint8 [out, in]
---@param scale perigee.Tensor # [out, groups]: what each group of a row's numbers is multiplied by
---@param bias? perigee.Tensor # [out]
---@param x_scale? perigee.Tensor # [1]
---@param x_zero_point? perigee.Tensor # [1], of uint8
---@param options? "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2"|{format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"} # format=int8, activations=floating, activation=none
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, options: {format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, bias: perigee.Tensor, options: {format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, weight: perigee.Tensor, scale: perigee.Tensor, bias: perigee.Tensor, x_scale: perigee.Tensor, options: {format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, scale?: perigee.Tensor, bias?: perigee.Tensor, x_scale?: perigee.Tensor, x_zero_point?: perigee.Tensor, format?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", activations?: "floating"|"int8"|"uint8", activation?: "none"|"relu"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:quantized_linear(weight, scale, bias, x_scale, x_zero_point, options, ...) end

---Radians to degrees.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.rad2deg(x) end

---Radians to degrees.
---@return perigee.Tensor
function Tensor:rad2deg() end

---x:rad2deg, written into x.
---@return perigee.Tensor
function Tensor:rad2deg_() end

---One step of RAdam (Liu et al. 2020): m and v as in adam, and with n = 2 / (1 - beta2) - 1, k = n - 2 step beta2^step
---/ (1 - beta2^step): param -= lr m / (1 - beta1^step) r, where r = sqrt((k - 4)(k - 2) n / ((n - 4)(n - 2) k)) sqrt(1
--- - beta2^step) / (sqrt(v) + eps) for k > 5, else 1. g is grad / grad_scale, for maximize its negative, plus
---weight_decay param. All parameters step in one pass; where found_inf is true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param exp_avgs perigee.Tensor[] # shapes of params: m
---@param exp_avg_sqs perigee.Tensor[] # shapes of params: v
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number} # maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, beta1=0.9, beta2=0.999, eps=1e-08
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], exp_avgs: perigee.Tensor[], exp_avg_sqs: perigee.Tensor[], options: {maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], exp_avgs?: perigee.Tensor[], exp_avg_sqs?: perigee.Tensor[], found_inf?: perigee.Tensor, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, beta1?: number, beta2?: number, eps?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.radam(params, grads, exp_avgs, exp_avg_sqs, found_inf, options, ...) end

---Uniform random numbers in [0, 1): `pg.rand{2, 3}`.
---@param ... integer|integer[]|{shape: integer|integer[], dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # shape, dtype, device, requires_grad
---@return perigee.Tensor
function pg.rand(...) end

---Uniform random numbers in [0, 1) in x's shape, in x's dtype and on its device if not told otherwise.
---@param x perigee.Tensor
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}): perigee.Tensor
function pg.rand_like(x, options) end

---Whole numbers from low (included) to high (excluded): `pg.randint(0, 10, {2, 3})`, `pg.randint(10, {2, 3})`.
---@param ... integer|integer[]|{low: integer, high: integer|integer[], shape?: integer|integer[], dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # low, high, shape, dtype, device, requires_grad
---@return perigee.Tensor
function pg.randint(...) end

---Whole numbers from low (0 where only one limit is given) to high - 1 in the shape, dtype and device of x.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, low: integer, high?: integer, dtype?: perigee.Dtype, device?: string} # x, low, high, dtype, device
---@return perigee.Tensor
function pg.randint_like(...) end

---Normal random numbers, of mean 0 and variance 1: `pg.randn{2, 3}`.
---@param ... integer|integer[]|{shape: integer|integer[], dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # shape, dtype, device, requires_grad
---@return perigee.Tensor
function pg.randn(...) end

---Normal random numbers, of mean 0 and variance 1, in x's shape, in x's dtype and on its device if not told
---otherwise.
---@param x perigee.Tensor
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}): perigee.Tensor
function pg.randn_like(x, options) end

---The numbers 0 to n-1 in random order.
---@param ... integer|perigee.Size|{n: integer|perigee.Size, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # n, dtype, device, requires_grad
---@return perigee.Tensor
function pg.randperm(...) end

---Calls fn(...) and answers what it returns. In a profile the time is marked with the name; otherwise it costs a
---tenth of a microsecond. Ranges named "input" count as waiting for data.
---@param name string
---@param fn function
---@param ... any # arguments of fn
---@return any ...
function pg.range(name, fn, ...) end

---The same as tensor:ravel. x as one axis: a view where its strides allow one.
---@param x perigee.Tensor
---@return perigee.Tensor picked [n]
function pg.ravel(x) end

---1 / x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.reciprocal(x) end

---1 / x.
---@return perigee.Tensor
function Tensor:reciprocal() end

---x:reciprocal, written into x.
---@return perigee.Tensor
function Tensor:reciprocal_() end

---fn(...), whose intermediate results are not kept for backward but computed once more there: memory for time. fn's
---random numbers are the same both times. It must not depend on anything that changes in between (a tensor among its
---arguments that was written to is noticed), nor have effects that must happen once; running statistics of a batch norm
---inside are updated twice. In a graph fn is recorded once, and its intermediate results are kept.
---@param fn fun(...): perigee.Tensor
---@param ... any # arguments of fn
---@return perigee.Tensor ... what fn returned
function pg.recompute(fn, ...) end

---One process of a group gets the sum (mean, largest, smallest) of the x of all, the others zeros. Gradient of sum and
---mean: broadcast.
---@param x perigee.Tensor # equal shapes on all ranks
---@param options? "sum"|"mean"|"max"|"min"|{op?: "sum"|"mean"|"max"|"min", root?: integer, group?: integer, ranks?: integer} # op=sum, root=0, group=0, ranks=1
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, op?: "sum"|"mean"|"max"|"min", root?: integer, group?: integer, ranks?: integer}): perigee.Tensor
function pg.reduce(x, options, ...) end

---One process of a group gets the sum (mean, largest, smallest) of the x of all, the others zeros. Gradient of sum and
---mean: broadcast.
---@param options? "sum"|"mean"|"max"|"min"|{op?: "sum"|"mean"|"max"|"min", root?: integer, group?: integer, ranks?: integer} # op=sum, root=0, group=0, ranks=1
---@param ... any
---@return perigee.Tensor
function Tensor:reduce(options, ...) end

---The sum (mean, largest, smallest) of the x of all processes of a group, of which each gets its block of the first
---axis: rank 0 the first. Gradient of sum and mean: all_gather.
---@param x perigee.Tensor # [ranks * n, ...], equal shapes on all ranks
---@param options? "sum"|"mean"|"max"|"min"|{op?: "sum"|"mean"|"max"|"min", group?: integer, ranks?: integer} # op=sum, group=0, ranks=1
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, op?: "sum"|"mean"|"max"|"min", group?: integer, ranks?: integer}): perigee.Tensor
function pg.reduce_scatter(x, options, ...) end

---The sum (mean, largest, smallest) of the x of all processes of a group, of which each gets its block of the first
---axis: rank 0 the first. Gradient of sum and mean: all_gather.
---@param options? "sum"|"mean"|"max"|"min"|{op?: "sum"|"mean"|"max"|"min", group?: integer, ranks?: integer} # op=sum, group=0, ranks=1
---@param ... any
---@return perigee.Tensor
function Tensor:reduce_scatter(options, ...) end

---max(x, 0); its slope at 0 is 0.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.relu(x) end

---max(x, 0); its slope at 0 is 0.
---@return perigee.Tensor
function Tensor:relu() end

---x:relu, written into x.
---@return perigee.Tensor
function Tensor:relu_() end

---x limited to [0, 6]; its slope at the bounds is 0.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.relu6(x) end

---x limited to [0, 6]; its slope at the bounds is 0.
---@return perigee.Tensor
function Tensor:relu6() end

---x:relu6, written into x.
---@return perigee.Tensor
function Tensor:relu6_() end

---x - y * floor(x / y): has the sign of y. Integer division by zero is an error.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.remainder(x, y) end

---x - y * floor(x / y): has the sign of y. Integer division by zero is an error.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:remainder(y) end

---x:remainder, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:remainder_(y) end

---Every position of an axis `count` times in a row, or each as often as an integer tensor says; without an axis, of
---the flat tensor.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, count: integer|perigee.Tensor, axis?: integer} # x, count, axis
---@return perigee.Tensor
function pg.repeat_interleave(...) end

---x with one axis interpolated to another size.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis?: integer, size: integer, mode?: "nearest"|"linear"|"cubic"|"area", align_corners?: boolean, scale?: number} # axis=-1, size, mode=linear, align_corners=false, scale=0
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer, size: integer, mode?: "nearest"|"linear"|"cubic"|"area", align_corners?: boolean, scale?: number}): perigee.Tensor
function pg.resample(x, options, ...) end

---x with one axis interpolated to another size.
---@param options? integer|{axis?: integer, size: integer, mode?: "nearest"|"linear"|"cubic"|"area", align_corners?: boolean, scale?: number} # axis=-1, size, mode=linear, align_corners=false, scale=0
---@param ... any
---@return perigee.Tensor
function Tensor:resample(options, ...) end

---x with its last two axes interpolated to other sizes.
---@param x perigee.Tensor # [..., H, W]
---@param options? integer|integer[]|{size: integer|integer[], mode?: "nearest"|"linear"|"cubic"|"area", align_corners?: boolean, scale_rows?: number, scale_columns?: number} # size, mode=linear, align_corners=false, scale_rows=0, scale_columns=0
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, size: integer|integer[], mode?: "nearest"|"linear"|"cubic"|"area", align_corners?: boolean, scale_rows?: number, scale_columns?: number}): perigee.Tensor
function pg.resample2d(x, options, ...) end

---x with its last two axes interpolated to other sizes.
---@param options? integer|integer[]|{size: integer|integer[], mode?: "nearest"|"linear"|"cubic"|"area", align_corners?: boolean, scale_rows?: number, scale_columns?: number} # size, mode=linear, align_corners=false, scale_rows=0, scale_columns=0
---@param ... any
---@return perigee.Tensor
function Tensor:resample2d(options, ...) end

---Back to how the process began, but for what the script holds: waits for all devices and forgets what has failed
---there, releases what is unreachable and all cached memory, lifts memory limits and lets memory grow, and restores
---the default dtype, the policy of layers (amp.policy), the number of threads and the other settings.
function pg.reset() end

---The elements of x, in row-major order, in another shape. A view where strides can say it, else a copy.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{shape: integer|integer[]} # shape
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, shape: integer|integer[]}): perigee.Tensor
function pg.reshape(x, options, ...) end

---The elements of x, in row-major order, in another shape. A view where strides can say it, else a copy.
---@param options? integer|integer[]|{shape: integer|integer[]} # shape
---@param ... any
---@return perigee.Tensor
function Tensor:reshape(options, ...) end

---x over the root mean square of its last `dims` axes, times weight (Zhang and Sennrich 2019).
---@param x perigee.Tensor # [..., normalised axes]
---@param weight? perigee.Tensor # [normalised axes]
---@param options? integer|{dims?: integer, eps?: number} # dims=1, eps=0
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, options: {dims?: integer, eps?: number}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, weight?: perigee.Tensor, dims?: integer, eps?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.rms_norm(x, weight, options, ...) end

---x over the root mean square of its last `dims` axes, times weight (Zhang and Sennrich 2019).
---@param weight? perigee.Tensor # [normalised axes]
---@param options? integer|{dims?: integer, eps?: number} # dims=1, eps=0
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {weight?: perigee.Tensor, dims?: integer, eps?: number}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:rms_norm(weight, options, ...) end

---One step of RMSprop (Tieleman, Hinton 2012): v = alpha v + (1 - alpha) g^2; with mean_gradients, a = alpha a + (1 -
---alpha) g and v - a^2 in place of v below (Graves 2013); d = g / (sqrt(v) + eps); with momentum_buffers, b = momentum
---b + d and d = b; param -= lr d. g is grad / grad_scale, for maximize its negative, plus weight_decay param. All
---parameters step in one pass; where found_inf is true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param square_avgs perigee.Tensor[] # shapes of params: v
---@param momentum_buffers perigee.Tensor[] # shapes of params, or none: b
---@param grad_avgs perigee.Tensor[] # shapes of params, or none: a
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, alpha?: number, eps?: number, momentum?: number} # maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, alpha=0.99, eps=1e-08, momentum=0
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], square_avgs: perigee.Tensor[], momentum_buffers: perigee.Tensor[], grad_avgs: perigee.Tensor[], options: {maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, alpha?: number, eps?: number, momentum?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], square_avgs?: perigee.Tensor[], momentum_buffers?: perigee.Tensor[], grad_avgs?: perigee.Tensor[], found_inf?: perigee.Tensor, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, alpha?: number, eps?: number, momentum?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.rmsprop(params, grads, square_avgs, momentum_buffers, grad_avgs, found_inf, options, ...) end

---Moves elements by `shifts` positions; what leaves at one end enters at the other. Without axes, of the flat tensor.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, shifts: integer|integer[], axis?: integer|integer[]} # x, shifts, axis
---@return perigee.Tensor
function pg.roll(...) end

---x with the positions of its axes moved; what leaves at one end enters at the other.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{shifts: integer|integer[]} # shifts
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, shifts: integer|integer[]}): perigee.Tensor
function pg.roll_axes(x, options, ...) end

---x with the positions of its axes moved; what leaves at one end enters at the other.
---@param options? integer|integer[]|{shifts: integer|integer[]} # shifts
---@param ... any
---@return perigee.Tensor
function Tensor:roll_axes(options, ...) end

---Turned by `times` quarter turns from the first towards the second of two axes.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, times?: integer, axes?: integer[]} # x, times=1, axes={1, 2}
---@return perigee.Tensor
function pg.rot90(...) end

---The nearest whole number, or number of `decimals` decimals; halves go to the even one.
---@param x perigee.Tensor # any shape
---@param options? integer|{decimals?: integer} # decimals=0
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, decimals?: integer}): perigee.Tensor
function pg.round(x, options) end

---The nearest whole number, or number of `decimals` decimals; halves go to the even one.
---@param options? integer|{decimals?: integer} # decimals=0
---@return perigee.Tensor
function Tensor:round(options) end

---x:round, written into x.
---@param options? integer|{decimals?: integer} # decimals=0
---@return perigee.Tensor
function Tensor:round_(options) end

---The same as pg.vstack. Below each other: along axis 1; tensors of one axis are rows.
---@param ... perigee.Tensor|perigee.Tensor[]
---@return perigee.Tensor
function pg.row_stack(...) end

---One step of Rprop (Riedmiller, Braun 1993): the step length of an element, lr at first, is scaled by etaplus where g
---keeps its sign, by etaminus where it changes (g then counts as 0), and kept within step_min and step_max; param -=
---sign(g) length. g is grad / grad_scale, for maximize its negative, plus weight_decay param. All parameters step in
---one pass; where found_inf is true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param prevs perigee.Tensor[] # shapes of params: the last g
---@param step_sizes perigee.Tensor[] # shapes of params: step lengths
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, etaminus?: number, etaplus?: number, step_min?: number, step_max?: number} # maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, etaminus=0.5, etaplus=1.2, step_min=1e-06, step_max=50
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], prevs: perigee.Tensor[], step_sizes: perigee.Tensor[], options: {maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, etaminus?: number, etaplus?: number, step_min?: number, step_max?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], prevs?: perigee.Tensor[], step_sizes?: perigee.Tensor[], found_inf?: perigee.Tensor, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, etaminus?: number, etaplus?: number, step_min?: number, step_max?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.rprop(params, grads, prevs, step_sizes, found_inf, options, ...) end

---1 / sqrt(x).
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.rsqrt(x) end

---1 / sqrt(x).
---@return perigee.Tensor
function Tensor:rsqrt() end

---x:rsqrt, written into x.
---@return perigee.Tensor
function Tensor:rsqrt_() end

---Writes a layer's state, or a table of tensors by name. Atomic: the file is the old one or the whole new one.
---An image is one tensor [rows, columns] or [rows, columns, channels], uint8 or int32 of 16 bits.
---A tensor that a layer has under several names (tied weights) is written once, under the first, as Hugging Face does.
---A session goes into a .pgraph file: its graph, with what its variables hold, for pg.load_graph.
---`inputs` and `outputs` say what is fed and fetched (placeholders and results, by default all): names or tensors, as a
---list or by the names that they are to have. `freeze` keeps what the outputs need alone, and makes constants of
---variables.
---Where the disk, a quota or a limit of file sizes is full, an error with the code "out_of_disk" names the path.
---@param path string # "model.safetensors"
---@param what perigee.Layer|table<string, perigee.Tensor>|perigee.Session
---@param options? {notes?: table<string, string>, inputs?: any, outputs?: any, freeze?: boolean}
function pg.save(path, what, options) end

---Writes a tensor as a .npy file: `t:save_npy(path)`. bfloat16 is not NumPy's: t:to("float32").
---@param t perigee.Tensor
---@param path string
function pg.save_npy(t, path) end

---Writes tensors by name as a .npz file, uncompressed, as numpy.savez does.
---@param path string
---@param tensors table<string, perigee.Tensor>
function pg.save_npz(path, tensors) end

---Multiplies all tensors by one factor, in place.
---@param xs perigee.Tensor[] # any shapes
---@param factor perigee.Tensor # []
---@overload fun(arguments: {xs?: perigee.Tensor[], factor?: perigee.Tensor}): perigee.Tensor
function pg.scale_all(xs, factor) end

---softmax(q k^T scale + mask) v: what attention is (Vaswani et al. 2017). q is [..., L, E], k [..., S, E], v
---[..., S, V]; the result is [..., L, V]. attn_mask broadcasts to [..., L, S]: bool, true where a query may see a
---key, or numbers that are added to the scores. is_causal: query i sees keys 1 to i, and what the mask allows.
---scale: 1 / sqrt(E) if not given. dropout_p: share of weights dropped, at every call. enable_gqa: q [..., H, L, E]
---may have a multiple of the heads of k and v. A query that may see nothing gets zeros.
---@param ... perigee.Tensor|number|boolean|{q: perigee.Tensor, k: perigee.Tensor, v: perigee.Tensor, attn_mask?: perigee.Tensor, dropout_p?: number, is_causal?: boolean, scale?: number, enable_gqa?: boolean} # q, k, v, attn_mask, dropout_p=0, is_causal=false, scale, enable_gqa=false
---@return perigee.Tensor
function pg.scaled_dot_product_attention(...) end

---A loop over the steps of tensors: `local last, ys = pg.scan{init=h, xs=x, body=function(h, x) h = cell(h, x);
---return h, h end}`. body(carry, x) gets what the step before handed on, at first `init`, and the step of xs; it
---returns what is handed on, of the same dtypes and sizes, and if it likes an output. Answers what the last step handed
---on, and the outputs stacked along axis 1. Carry, x and output each are a tensor or a table of them, by position or
---name; `init={}` hands nothing on. Gradients flow through it. In a graph the body is recorded once, as a part of one
---node, and the number of steps may be one that only a run tells; it may use tensors from outside, but not write into
---them.
---@param ... {init: perigee.Tensor|number|table, xs?: perigee.Tensor|table, body: (fun(carry, x): any, any?), length?: integer|perigee.Size, reverse?: boolean} # init, xs, body, length, reverse
---@return perigee.Tensor|table carry
---@return perigee.Tensor|table? outputs
function pg.scan(...) end

---x with y[index[i][j]...][j]... = src[i][j]... for axis 1, and likewise for the others; of equal places the last one
---stays. An index out of range is an error that names it, and nothing is written.
---@param x perigee.Tensor # [...]
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param src perigee.Tensor # dtype of x, shape of index
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, index?: perigee.Tensor, src?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.scatter(x, index, src, options) end

---x with y[index[i][j]...][j]... = src[i][j]... for axis 1, and likewise for the others; of equal places the last one
---stays. An index out of range is an error that names it, and nothing is written.
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param src perigee.Tensor # dtype of x, shape of index
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, src?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:scatter(index, src, options) end

---x:scatter, written into x.
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param src perigee.Tensor # dtype of x, shape of index
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, src?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:scatter_(index, src, options) end

---x with y[index[i][j]...][j]... += src[i][j]... for axis 1, and likewise for the others; equal places add up, in
---order. An index out of range is an error that names it, and nothing is written.
---@param x perigee.Tensor # [...]
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param src perigee.Tensor # dtype of x, shape of index
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, index?: perigee.Tensor, src?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.scatter_add(x, index, src, options) end

---x with y[index[i][j]...][j]... += src[i][j]... for axis 1, and likewise for the others; equal places add up, in
---order. An index out of range is an error that names it, and nothing is written.
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param src perigee.Tensor # dtype of x, shape of index
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, src?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:scatter_add(index, src, options) end

---x:scatter_add, written into x.
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param src perigee.Tensor # dtype of x, shape of index
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, src?: perigee.Tensor, axis: integer}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:scatter_add_(index, src, options) end

---x with each element that the index names reduced with the elements of src which `scatter` would write there. The mean
---of integers is rounded down. An index out of range is an error that names it.
---@param x perigee.Tensor # [...]
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param src perigee.Tensor # dtype of x, shape of index
---@param options? integer|{axis: integer, reduce: "sum"|"prod"|"mean"|"amax"|"amin", include_self?: boolean} # axis, reduce, include_self=true
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, index?: perigee.Tensor, src?: perigee.Tensor, axis: integer, reduce: "sum"|"prod"|"mean"|"amax"|"amin", include_self?: boolean}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.scatter_reduce(x, index, src, options, ...) end

---x with each element that the index names reduced with the elements of src which `scatter` would write there. The mean
---of integers is rounded down. An index out of range is an error that names it.
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param src perigee.Tensor # dtype of x, shape of index
---@param options? integer|{axis: integer, reduce: "sum"|"prod"|"mean"|"amax"|"amin", include_self?: boolean} # axis, reduce, include_self=true
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, src?: perigee.Tensor, axis: integer, reduce: "sum"|"prod"|"mean"|"amax"|"amin", include_self?: boolean}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:scatter_reduce(index, src, options, ...) end

---x:scatter_reduce, written into x.
---@param index perigee.Tensor # as many axes as x, none longer but `axis`: from 0
---@param src perigee.Tensor # dtype of x, shape of index
---@param options? integer|{axis: integer, reduce: "sum"|"prod"|"mean"|"amax"|"amin", include_self?: boolean} # axis, reduce, include_self=true
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, src?: perigee.Tensor, axis: integer, reduce: "sum"|"prod"|"mean"|"amax"|"amin", include_self?: boolean}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:scatter_reduce_(index, src, options, ...) end

---Runs fn(...) and closes every tensor it made, but for what it returns (also in a table) or gives to pg.keep.
---@param fn function
---@param ... any # arguments of fn
---@return any ... what fn returns
function pg.scope(fn, ...) end

---Where values (a tensor or a number) would be put into rows that are in rising order, as counts of the elements
---before them: before equal elements, or behind them with `right=true` or `side="right"`.
---@param ... perigee.Tensor|number|boolean|"left"|"right"|{sorted: perigee.Tensor, values: perigee.Tensor|number, right?: boolean, side?: "left"|"right"} # sorted, values, right=false, side
---@return perigee.Tensor indices from 0
function pg.searchsorted(...) end

---One position of an axis, which disappears.
---@param ... perigee.Tensor|integer|perigee.Size|{x: perigee.Tensor, axis: integer, index: integer|perigee.Size} # x, axis, index
---@return perigee.Tensor
function pg.select(...) end

---One position of an axis written anew in a copy of x.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, src: perigee.Tensor, axis: integer, index: integer} # x, src, axis, index
---@return perigee.Tensor
function pg.select_scatter(...) end

---1.0507 * (x where x > 0, else 1.6733 * (exp(x) - 1)), which keeps mean 0 and variance 1 (Klambauer et al. 2017).
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.selu(x) end

---1.0507 * (x where x > 0, else 1.6733 * (exp(x) - 1)), which keeps mean 0 and variance 1 (Klambauer et al. 2017).
---@return perigee.Tensor
function Tensor:selu() end

---x:selu, written into x.
---@return perigee.Tensor
function Tensor:selu_() end

---Where eager code makes tensors that no scope, no `device=` and no input says another device of, in this thread:
---`pg.set_default_device("gpu:0")`. What is computed stays where its inputs are. Graphs that are recorded from now on
---have there what no scope of theirs decides about; without a default that is the first accelerator there is, or the
---processor. nil: back to that.
---@param name? string
function pg.set_default_device(name) end

---The float dtype that numbers from Lua get. Answers the one before.
---@param name perigee.Dtype
---@return perigee.Dtype
function pg.set_default_dtype(name) end

---How tensors print: `pg.set_printoptions{precision=6}`. `precision` digits behind the point at most; tensors of more
---than `threshold` elements show `edgeitems` at each end of an axis; lines have `linewidth` characters; `suppress`
---keeps small numbers out of powers of ten; `sci_mode` true or false says when there are any ("auto": by the values);
---`profile` "default", "short" or "full" sets all of them.
---@param ... {precision?: integer, threshold?: number, edgeitems?: integer, linewidth?: integer, suppress?: boolean, sci_mode?: boolean|"auto", profile?: "default"|"short"|"full"} # precision, threshold, edgeitems, linewidth, suppress, sci_mode, profile
---@return table options what was in force before
function pg.set_printoptions(...) end

---One step of gradient descent: where there are momentum buffers, b = momentum b + (1 - dampening) g (b = g on the
---first step), and g = b, or g + momentum b for nesterov (Sutskever et al. 2013); param -= lr g. g is grad /
---grad_scale, for maximize its negative, plus weight_decay param. All parameters step in one pass; where found_inf is
---true, none does.
---@param params perigee.Tensor[] # any shapes
---@param grads perigee.Tensor[] # shapes of params
---@param momentum_buffers perigee.Tensor[] # shapes of params, or none: b
---@param found_inf? perigee.Tensor # []; true: nothing is changed
---@param options? boolean|{nesterov?: boolean, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, momentum?: number, dampening?: number} # nesterov=false, maximize=false, lr=0.001, weight_decay=0, step=1, grad_scale=1, momentum=0, dampening=0
---@param ... any
---@overload fun(params: perigee.Tensor[], grads: perigee.Tensor[], momentum_buffers: perigee.Tensor[], options: {nesterov?: boolean, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, momentum?: number, dampening?: number}): perigee.Tensor
---@overload fun(arguments: {params?: perigee.Tensor[], grads?: perigee.Tensor[], momentum_buffers?: perigee.Tensor[], found_inf?: perigee.Tensor, nesterov?: boolean, maximize?: boolean, lr?: number, weight_decay?: number, step?: number, grad_scale?: number, momentum?: number, dampening?: number}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.sgd(params, grads, momentum_buffers, found_inf, options, ...) end

---1 / (1 + exp(-x)).
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.sigmoid(x) end

---1 / (1 + exp(-x)).
---@return perigee.Tensor
function Tensor:sigmoid() end

---x:sigmoid, written into x.
---@return perigee.Tensor
function Tensor:sigmoid_() end

--- -1, 0 or 1, as x is negative, zero or positive.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.sign(x) end

--- -1, 0 or 1, as x is negative, zero or positive.
---@return perigee.Tensor
function Tensor:sign() end

---x:sign, written into x.
---@return perigee.Tensor
function Tensor:sign_() end

---Whether x is negative; of zeros, whether it is -0.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.signbit(x) end

---Whether x is negative; of zeros, whether it is -0.
---@return perigee.Tensor
function Tensor:signbit() end

---x:signbit, written into x.
---@return perigee.Tensor
function Tensor:signbit_() end

---x * sigmoid(x), also called swish (Elfwing, Uchibe, Doya 2017).
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.silu(x) end

---x * sigmoid(x), also called swish (Elfwing, Uchibe, Doya 2017).
---@return perigee.Tensor
function Tensor:silu() end

---x:silu, written into x.
---@return perigee.Tensor
function Tensor:silu_() end

---Sine of x in radians.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.sin(x) end

---Sine of x in radians.
---@return perigee.Tensor
function Tensor:sin() end

---x:sin, written into x.
---@return perigee.Tensor
function Tensor:sin_() end

---sin(pi x) / (pi x), and 1 at 0.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.sinc(x) end

---sin(pi x) / (pi x), and 1 at 0.
---@return perigee.Tensor
function Tensor:sinc() end

---x:sinc, written into x.
---@return perigee.Tensor
function Tensor:sinc_() end

---Hyperbolic sine.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.sinh(x) end

---Hyperbolic sine.
---@return perigee.Tensor
function Tensor:sinh() end

---x:sinh, written into x.
---@return perigee.Tensor
function Tensor:sinh_() end

---A part of x: one entry an axis, in order; axes without an entry stay whole. Ranges are half-open and clamped to the
---axis, as in Python.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{starts?: integer|integer[], stops?: integer|integer[], steps?: integer|integer[], drop?: integer|integer[]} # starts, stops, steps, drop
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, starts?: integer|integer[], stops?: integer|integer[], steps?: integer|integer[], drop?: integer|integer[]}): perigee.Tensor
function pg.slice(x, options, ...) end

---A part of x: one entry an axis, in order; axes without an entry stay whole. Ranges are half-open and clamped to the
---axis, as in Python.
---@param options? integer|integer[]|{starts?: integer|integer[], stops?: integer|integer[], steps?: integer|integer[], drop?: integer|integer[]} # starts, stops, steps, drop
---@param ... any
---@return perigee.Tensor
function Tensor:slice(options, ...) end

---A copy of x with `part` where `slice` would read.
---@param x perigee.Tensor # [...]
---@param part perigee.Tensor # shape of the part
---@param options? integer|integer[]|{starts?: integer|integer[], stops?: integer|integer[], steps?: integer|integer[], drop?: integer|integer[]} # starts, stops, steps, drop
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, part?: perigee.Tensor, starts?: integer|integer[], stops?: integer|integer[], steps?: integer|integer[], drop?: integer|integer[]}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.slice_scatter(x, part, options, ...) end

---A copy of x with `part` where `slice` would read.
---@param part perigee.Tensor # shape of the part
---@param options? integer|integer[]|{starts?: integer|integer[], stops?: integer|integer[], steps?: integer|integer[], drop?: integer|integer[]} # starts, stops, steps, drop
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {part?: perigee.Tensor, starts?: integer|integer[], stops?: integer|integer[], steps?: integer|integer[], drop?: integer|integer[]}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:slice_scatter(part, options, ...) end

---huber_loss divided by beta (Girshick, 2015): with d = |x - y|, d^2 / (2 beta) where d < beta, else d - beta / 2.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? number|{beta?: number, reduction?: "mean"|"sum"|"none"} # beta=1, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(x: perigee.Tensor, y: perigee.Tensor, options: {beta?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, weight?: perigee.Tensor, beta?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.smooth_l1_loss(x, y, weight, options, ...) end

---huber_loss divided by beta (Girshick, 2015): with d = |x - y|, d^2 / (2 beta) where d < beta, else d - beta / 2.
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param weight? perigee.Tensor # factor of each cost; broadcasts against them
---@param options? number|{beta?: number, reduction?: "mean"|"sum"|"none"} # beta=1, reduction=mean
---@param ... any
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, y: perigee.Tensor, options: {beta?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, weight?: perigee.Tensor, beta?: number, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:smooth_l1_loss(y, weight, options, ...) end

---log(1 + exp(-y x)) for targets y of -1 and 1.
---@param x perigee.Tensor # prediction, any shape
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, y?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(...: any): perigee.Tensor
function pg.soft_margin_loss(x, y, options) end

---log(1 + exp(-y x)) for targets y of -1 and 1.
---@param y perigee.Tensor # target; broadcasts with the prediction
---@param options? "mean"|"sum"|"none"|{reduction?: "mean"|"sum"|"none"} # reduction=mean
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor, reduction?: "mean"|"sum"|"none"}): perigee.Tensor
---@overload fun(self: perigee.Tensor, ...: any): perigee.Tensor
function Tensor:soft_margin_loss(y, options) end

---Exponentials scaled to sum to 1 along `axis`: exp(x) / sum(exp(x)), without overflow.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer}): perigee.Tensor
function pg.softmax(x, options) end

---Exponentials scaled to sum to 1 along `axis`: exp(x) / sum(exp(x)), without overflow.
---@param options? integer|{axis?: integer} # axis=-1
---@return perigee.Tensor
function Tensor:softmax(options) end

---softmax(-x): exp(-x) / sum(exp(-x)) along an axis.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, axis?: integer} # x, axis=-1
---@return perigee.Tensor
function pg.softmin(...) end

---log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x > threshold.
---@param x perigee.Tensor # any shape
---@param options? number|{beta?: number, threshold?: number} # beta=1, threshold=20
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, beta?: number, threshold?: number}): perigee.Tensor
function pg.softplus(x, options, ...) end

---log(1 + exp(beta * x)) / beta, without overflow; x itself where beta * x > threshold.
---@param options? number|{beta?: number, threshold?: number} # beta=1, threshold=20
---@param ... any
---@return perigee.Tensor
function Tensor:softplus(options, ...) end

---x:softplus, written into x.
---@param options? number|{beta?: number, threshold?: number} # beta=1, threshold=20
---@param ... any
---@return perigee.Tensor
function Tensor:softplus_(options, ...) end

---x moved by lambd towards 0, and 0 where it is no farther from it.
---@param x perigee.Tensor # any shape
---@param options? number|{lambd?: number} # lambd=0.5
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, lambd?: number}): perigee.Tensor
function pg.softshrink(x, options) end

---x moved by lambd towards 0, and 0 where it is no farther from it.
---@param options? number|{lambd?: number} # lambd=0.5
---@return perigee.Tensor
function Tensor:softshrink(options) end

---x:softshrink, written into x.
---@param options? number|{lambd?: number} # lambd=0.5
---@return perigee.Tensor
function Tensor:softshrink_(options) end

---x / (1 + |x|).
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.softsign(x) end

---x / (1 + |x|).
---@return perigee.Tensor
function Tensor:softsign() end

---x:softsign, written into x.
---@return perigee.Tensor
function Tensor:softsign_() end

---The elements of each line along `axis` in rising order, and where they stood.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis?: integer, descending?: boolean, stable?: boolean} # axis=-1, descending=false, stable=true
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer, descending?: boolean, stable?: boolean}): perigee.Tensor, perigee.Tensor
function pg.sort(x, options, ...) end

---The elements of each line along `axis` in rising order, and where they stood.
---@param options? integer|{axis?: integer, descending?: boolean, stable?: boolean} # axis=-1, descending=false, stable=true
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
function Tensor:sort(options, ...) end

---Numbers from first to last, both included, in equal steps: computed in float64 and rounded once. The front end says
---how many.
---@param options? perigee.Dtype|{dtype?: perigee.Dtype, first?: number, last?: number} # dtype, first=0, last=0
---@param ... any
---@return perigee.Tensor
function pg.spaced(options, ...) end

---A list of parts of `size` along an axis (the last may be smaller), or of the sizes in a list.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, size: integer|integer[], axis?: integer} # x, size, axis=1
---@return perigee.Tensor[]
function pg.split(...) end

---Square root.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.sqrt(x) end

---Square root.
---@return perigee.Tensor
function Tensor:sqrt() end

---x:sqrt, written into x.
---@return perigee.Tensor
function Tensor:sqrt_() end

---x * x.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.square(x) end

---x * x.
---@return perigee.Tensor
function Tensor:square() end

---x:square, written into x.
---@return perigee.Tensor
function Tensor:square_() end

---x without axes of size 1: without all of them, or without those of `axes` that have size 1.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[]} # axis
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[]}): perigee.Tensor
function pg.squeeze(x, options, ...) end

---x without axes of size 1: without all of them, or without those of `axes` that have size 1.
---@param options? integer|integer[]|{axis?: integer|integer[]} # axis
---@param ... any
---@return perigee.Tensor
function Tensor:squeeze(options, ...) end

---The tensors, all of one shape, along a new axis.
---@param xs perigee.Tensor[] # equal shapes
---@param options? integer|{axis?: integer} # axis=1
---@return perigee.Tensor
---@overload fun(arguments: {xs?: perigee.Tensor[], axis?: integer}): perigee.Tensor
function pg.stack(xs, options) end

---Standard deviation, the root of `var`.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean, correction?: integer} # axis, keepdim=false, correction=1
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean, correction?: integer}): perigee.Tensor
function pg.std(x, options, ...) end

---Standard deviation, the root of `var`.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean, correction?: integer} # axis, keepdim=false, correction=1
---@param ... any
---@return perigee.Tensor
function Tensor:std(options, ...) end

---Standard deviation and mean.
---@param ... perigee.Tensor|integer|integer[]|boolean|{x: perigee.Tensor, axis?: integer|integer[], correction?: integer, keepdim?: boolean} # x, axis, correction=1, keepdim=false
---@return perigee.Tensor deviation
---@return perigee.Tensor mean
function pg.std_mean(...) end

---Runs fn(...) with its operators on stream `index` (from 0) of the devices they run on, so that independent work may
---overlap on an asynchronous device. Tensors may cross streams: what touches them waits for what wrote them.
---@param index integer # 0 to 31
---@param fn function
---@param ... any # arguments of fn
---@return any ... what fn returns
function pg.stream(index, fn, ...) end

---x minus y.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.sub(x, y) end

---x minus y.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:sub(y) end

---x:sub, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:sub_(y) end

---Sum; of integers and booleans in int64.
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean}): perigee.Tensor
function pg.sum(x, options, ...) end

---Sum; of integers and booleans in int64.
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean} # axis, keepdim=false
---@param ... any
---@return perigee.Tensor
function Tensor:sum(options, ...) end

---The same as pg.transpose. Swaps two axes.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, a: integer, b: integer} # x, a, b
---@return perigee.Tensor
function pg.swapaxes(...) end

---Waits for a device (nil: for all). What failed asynchronously is raised here.
---@param device? string # device of the result
function pg.synchronize(device) end

---A matrix transposed; tensors of less than two axes as they are.
---@param t perigee.Tensor
---@return perigee.Tensor
function pg.t(t) end

---The elements at the indices of flat x, in the shape of index.
---@param ... perigee.Tensor|{x: perigee.Tensor, index: perigee.Tensor} # x, index
---@return perigee.Tensor
function pg.take(...) end

---The elements of x at `index` (contents from 0) along an axis; the other axes broadcast. Without an axis, of flat x.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, index: perigee.Tensor, axis?: integer} # x, index, axis
---@return perigee.Tensor
function pg.take_along(...) end

---Tangent of x in radians.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.tan(x) end

---Tangent of x in radians.
---@return perigee.Tensor
function Tensor:tan() end

---x:tan, written into x.
---@return perigee.Tensor
function Tensor:tan_() end

---Hyperbolic tangent.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.tanh(x) end

---Hyperbolic tangent.
---@return perigee.Tensor
function Tensor:tanh() end

---x:tanh, written into x.
---@return perigee.Tensor
function Tensor:tanh_() end

---x - tanh(x).
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.tanhshrink(x) end

---x - tanh(x).
---@return perigee.Tensor
function Tensor:tanhshrink() end

---x:tanhshrink, written into x.
---@return perigee.Tensor
function Tensor:tanhshrink_() end

---pg.tape(function(tape) ... return tape:gradient(loss, {w}) end): records whatever the ambient mode.
---@param fn fun(tape: perigee.Tape, ...): any
---@param ... any # arguments of fn
---@return any ... what fn returns
function pg.tape(fn, ...) end

---A tensor of numbers or booleans: a nested table, a number, or a copy of another tensor.
---@param ... number|boolean|table|perigee.Tensor|{data?: number|boolean|table|perigee.Tensor, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # data, dtype, device, requires_grad
---@return perigee.Tensor
function pg.tensor(...) end

---Parts along an axis, as views: as equal as can be where `parts` is their number, else cut behind the numbers of
---elements in the list `parts`.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, parts: integer|integer[], axis?: integer} # x, parts, axis=1
---@return perigee.Tensor[]
function pg.tensor_split(...) end

---Products summed over pairs of axes: over the last `axes` of x with the first of y where it is a number, else over
---those that its two lists name, pair by pair.
---@param ... perigee.Tensor|integer|integer[][]|{x: perigee.Tensor, y: perigee.Tensor, axes?: integer|integer[][]} # x, y, axes=2
---@return perigee.Tensor
function pg.tensordot(...) end

---x where x > threshold, else value.
---@param x perigee.Tensor # any shape
---@param options? number|{threshold: number, value: number} # threshold, value
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, threshold: number, value: number}): perigee.Tensor
function pg.threshold(x, options, ...) end

---x where x > threshold, else value.
---@param options? number|{threshold: number, value: number} # threshold, value
---@param ... any
---@return perigee.Tensor
function Tensor:threshold(options, ...) end

---x:threshold, written into x.
---@param options? number|{threshold: number, value: number} # threshold, value
---@param ... any
---@return perigee.Tensor
function Tensor:threshold_(options, ...) end

---x again and again: `x:tile(2, 3)` is twice along axis 1 and three times along axis 2. Fewer counts than axes are
---for the last axes, more make new axes in front.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, counts: integer|integer[]} # x, counts
---@return perigee.Tensor
function pg.tile(...) end

---The k largest (or smallest) elements of each line along `axis`, and where they stand; of equal ones the first.
---@param x perigee.Tensor # [...]
---@param options? integer|{k: integer, axis?: integer, largest?: boolean, sorted?: boolean} # k, axis=-1, largest=true, sorted=true
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
---@overload fun(arguments: {x?: perigee.Tensor, k: integer, axis?: integer, largest?: boolean, sorted?: boolean}): perigee.Tensor, perigee.Tensor
function pg.topk(x, options, ...) end

---The k largest (or smallest) elements of each line along `axis`, and where they stand; of equal ones the first.
---@param options? integer|{k: integer, axis?: integer, largest?: boolean, sorted?: boolean} # k, axis=-1, largest=true, sorted=true
---@param ... any
---@return perigee.Tensor values
---@return perigee.Tensor indices
function Tensor:topk(options, ...) end

---(sum |x|^p)^(1/p) over all elements of all tensors; p = inf: the largest |x|. Summed in float64 on the CPU, else in
---float32 or wider.
---@param xs perigee.Tensor[] # any shapes
---@param options? number|{p?: number} # p=2
---@return perigee.Tensor
---@overload fun(arguments: {xs?: perigee.Tensor[], p?: number}): perigee.Tensor
function pg.total_norm(xs, options) end

---The same as tensor:trace. The sum of the main diagonal of a matrix.
---@param x perigee.Tensor # [n, m]
---@return perigee.Tensor
function pg.trace(x) end

---x on another device.
---@param x perigee.Tensor # any shape
---@param options? string|{device: string} # device
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, device: string}): perigee.Tensor
function pg.transfer(x, options) end

---x on another device.
---@param options? string|{device: string} # device
---@return perigee.Tensor
function Tensor:transfer(options) end

---Swaps two axes.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, a: integer, b: integer} # x, a, b
---@return perigee.Tensor
function pg.transpose(...) end

---The integral of y along an axis by the trapezoidal rule, at points x or `dx` apart.
---@param ... perigee.Tensor|number|integer|{y: perigee.Tensor, x?: perigee.Tensor, dx?: number, axis?: integer} # y, x, dx=1, axis=-1
---@return perigee.Tensor
function pg.trapezoid(...) end

---The lower triangle of matrices: zeros above diagonal number `diagonal`.
---@param x perigee.Tensor # [..., n, m]
---@param options? integer|{diagonal?: integer} # diagonal=0
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, diagonal?: integer}): perigee.Tensor
function pg.tril(x, options) end

---The lower triangle of matrices: zeros above diagonal number `diagonal`.
---@param options? integer|{diagonal?: integer} # diagonal=0
---@return perigee.Tensor
function Tensor:tril(options) end

---x:tril, written into x.
---@param options? integer|{diagonal?: integer} # diagonal=0
---@return perigee.Tensor
function Tensor:tril_(options) end

---The upper triangle of matrices: zeros below diagonal number `diagonal`.
---@param x perigee.Tensor # [..., n, m]
---@param options? integer|{diagonal?: integer} # diagonal=0
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, diagonal?: integer}): perigee.Tensor
function pg.triu(x, options) end

---The upper triangle of matrices: zeros below diagonal number `diagonal`.
---@param options? integer|{diagonal?: integer} # diagonal=0
---@return perigee.Tensor
function Tensor:triu(options) end

---x:triu, written into x.
---@param options? integer|{diagonal?: integer} # diagonal=0
---@return perigee.Tensor
function Tensor:triu_(options) end

---x without its fraction.
---@param x perigee.Tensor # any shape
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor}): perigee.Tensor
function pg.trunc(x) end

---x without its fraction.
---@return perigee.Tensor
function Tensor:trunc() end

---x:trunc, written into x.
---@return perigee.Tensor
function Tensor:trunc_() end

---A list of the tensor at each position of an axis.
---@param ... perigee.Tensor|integer|{x: perigee.Tensor, axis?: integer} # x, axis=1
---@return perigee.Tensor[]
function pg.unbind(...) end

---One axis as several of the given sizes, of which one may be -1.
---@param ... perigee.Tensor|integer|integer[]|{x: perigee.Tensor, axis: integer, sizes: integer[]} # x, axis, sizes
---@return perigee.Tensor
function pg.unflatten(...) end

---Windows of `size` elements along `axis`, one every `step`, without a copy: y[..., w, ..., k] = x[..., w * step + k,
---...].
---@param x perigee.Tensor # [..., n, ...]
---@param options? integer|{axis: integer, size: integer, step?: integer} # axis, size, step=1
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis: integer, size: integer, step?: integer}): perigee.Tensor
function pg.unfold(x, options, ...) end

---Windows of `size` elements along `axis`, one every `step`, without a copy: y[..., w, ..., k] = x[..., w * step + k,
---...].
---@param options? integer|{axis: integer, size: integer, step?: integer} # axis, size, step=1
---@param ... any
---@return perigee.Tensor
function Tensor:unfold(options, ...) end

---Uniformly distributed numbers in [low, high).
---@param options? integer|integer[]|{shape: integer|integer[], dtype?: perigee.Dtype, low?: number, high?: number} # shape, dtype, low=0, high=1
---@param ... any
---@return perigee.Tensor
function pg.uniform(options, ...) end

---The distinct elements of x in rising order, or with `axis` its distinct slices; then, where asked for, the kind of
---each element (`return_inverse`) and the number of each kind (`return_counts`). NaN equals nothing.
---@param ... perigee.Tensor|integer|boolean|{x: perigee.Tensor, axis?: integer, return_inverse?: boolean, return_counts?: boolean, sorted?: boolean} # x, axis, return_inverse=false, return_counts=false, sorted=true
---@return perigee.Tensor values, perigee.Tensor? inverse, perigee.Tensor? counts
function pg.unique(...) end

---The same, but only neighbours count as equal, and the order stays.
---@param ... perigee.Tensor|integer|boolean|{x: perigee.Tensor, axis?: integer, return_inverse?: boolean, return_counts?: boolean} # x, axis, return_inverse=false, return_counts=false
---@return perigee.Tensor values, perigee.Tensor? inverse, perigee.Tensor? counts
function pg.unique_consecutive(...) end

---Which rows of x are different: the position of the first of each kind, the kinds in rising order; the kind of every
---row; and how many rows are of each. NaN equals nothing.
---@param x perigee.Tensor # [n] or [n, m]
---@param options? boolean|{consecutive?: boolean} # consecutive=false
---@return perigee.Tensor first
---@return perigee.Tensor inverse
---@return perigee.Tensor counts
---@overload fun(arguments: {x?: perigee.Tensor, consecutive?: boolean}): perigee.Tensor, perigee.Tensor, perigee.Tensor
function pg.unique_rows(x, options) end

---Which rows of x are different: the position of the first of each kind, the kinds in rising order; the kind of every
---row; and how many rows are of each. NaN equals nothing.
---@param options? boolean|{consecutive?: boolean} # consecutive=false
---@return perigee.Tensor first
---@return perigee.Tensor inverse
---@return perigee.Tensor counts
function Tensor:unique_rows(options) end

---Multiplies all tensors by inv_scale, in place, and tells whether an element of any was infinite or NaN before (loss
---scaling: Micikevicius et al. 2018).
---@param xs perigee.Tensor[] # any shapes
---@param options? number|{inv_scale?: number} # inv_scale=1
---@return perigee.Tensor
---@overload fun(arguments: {xs?: perigee.Tensor[], inv_scale?: number}): perigee.Tensor
function pg.unscale_all(xs, options) end

---x with a new axis of size 1.
---@param x perigee.Tensor # [...]
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis: integer}): perigee.Tensor
function pg.unsqueeze(x, options) end

---x with a new axis of size 1.
---@param options? integer|{axis: integer} # axis
---@return perigee.Tensor
function Tensor:unsqueeze(options) end

---Variance: sum((x - mean)^2) / (n - correction).
---@param x perigee.Tensor # [...]
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean, correction?: integer} # axis, keepdim=false, correction=1
---@param ... any
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, axis?: integer|integer[], keepdim?: boolean, correction?: integer}): perigee.Tensor
function pg.var(x, options, ...) end

---Variance: sum((x - mean)^2) / (n - correction).
---@param options? integer|integer[]|{axis?: integer|integer[], keepdim?: boolean, correction?: integer} # axis, keepdim=false, correction=1
---@param ... any
---@return perigee.Tensor
function Tensor:var(options, ...) end

---Variance and mean: `x:var_mean{axis = 2, correction = 1}`.
---@param ... perigee.Tensor|integer|integer[]|boolean|{x: perigee.Tensor, axis?: integer|integer[], correction?: integer, keepdim?: boolean} # x, axis, correction=1, keepdim=false
---@return perigee.Tensor variance
---@return perigee.Tensor mean
function pg.var_mean(...) end

---The version of Perigee.
---@return string
function pg.version() end

---Below each other: along axis 1; tensors of one axis are rows.
---@param ... perigee.Tensor|perigee.Tensor[]
---@return perigee.Tensor
function pg.vstack(...) end

---`where(condition, x, y)`: x where true, else y. `where(condition)`: positions of the true elements, [n, rank],
---contents from 0.
---@param ... perigee.Tensor|number|boolean|{condition: perigee.Tensor, x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean} # condition, x, y
---@return perigee.Tensor
function pg.where(...) end

---A loop: `pg.while_loop{state={x=x, n=0}, cond=function(s) return s.n:lt(10) end, body=function(s)
---return { x = s.x / 2, n = s.n + 1 } end}`. As long as cond(state), a bool tensor of one element, is true, body(state)
---gives the next state: a tensor, or a table of them by position or name, of the same dtypes and sizes. Answers the
---last one. Gradients flow through it. In a graph both functions are recorded once, as parts of one node; they may use
---tensors from outside, but not write into them.
---@param ... {state: perigee.Tensor|number|table, cond: (fun(state): boolean|perigee.Tensor), body: (fun(state): any), max_iterations?: integer} # state, cond, body, max_iterations
---@return perigee.Tensor|table state
function pg.while_loop(...) end

---x log(y); 0 where x is 0 and y is not NaN.
---@param x? perigee.Tensor|number|boolean # any shape, or a number
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean}): perigee.Tensor
function pg.xlogy(x, y) end

---x log(y); 0 where x is 0 and y is not NaN.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:xlogy(y) end

---x:xlogy, written into x.
---@param y? perigee.Tensor|number|boolean # a shape that broadcasts with x, or a number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {y?: perigee.Tensor|number|boolean}): perigee.Tensor
function Tensor:xlogy_(y) end

---Zeros: `pg.zeros(2, 3)`, `pg.zeros{2, 3, dtype="int64"}`.
---@param ... integer|integer[]|{shape: integer|integer[], dtype?: perigee.Dtype, device?: string, requires_grad?: boolean} # shape, dtype, device, requires_grad
---@return perigee.Tensor
function pg.zeros(...) end

---Zeros in x's shape, in x's dtype and on its device if not told otherwise.
---@param x perigee.Tensor
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
---@overload fun(arguments: {x?: perigee.Tensor, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}): perigee.Tensor
function pg.zeros_like(x, options) end

---The part of a step's time that places wait for each other where all stages take as long, backward `ratio` times what
---forward takes, and sending takes none: (places - 1) / (micro_batches * stages of a place + places - 1).
---@param ratio? number # 2 if not given
---@return number
function Pipeline:bubble(ratio) end

---The parameters of the stages that this process has.
---@return perigee.Tensor[]
function Pipeline:parameters() end

---What each place, a device or a process, does in a step, in its order: { kind = "F" or "B", stage, micro }.
---@return table[][]
function Pipeline:schedule() end

---A step's forward and backward passes: x and y are cut into micro-batches, of which each stage computes one while its
---neighbours compute others; gradients are added to those that parameters have, as loss:backward() does. All processes
---of a pipeline call it with the same batch.
---@param x perigee.Tensor # [N, ...]
---@param y? any # [N, ...], what the loss gets besides the last stage's result
---@return perigee.Tensor loss the mean over all samples, on every process
function Pipeline:step(x, y) end

---Writes the plot as a picture: "curve.svg" or "curve.png".
---@param path string
function Plot:save(path) end

---Writes the time line as Chrome's trace format, which ui.perfetto.dev shows.
---@param path string
function Profile:save(path) end

---Sparsity that grows while a model trains, fast at first and slower towards the end, as the cube of what is left of
---the time (Zhu and Gupta, 2017, "To prune, or not to prune"): at step t behind `begin` the part
---amount + (initial - amount) (1 - t / steps)^3 is pruned. model:fit{callbacks={gradual}} steps it behind every batch;
---by hand it is `gradual:step()` behind `optimizer:step()`. Masks are there from the start, and checkpoints carry how
---far it is.
---@param ... perigee.Layer|perigee.Layer[]|number|{target: perigee.Layer|perigee.Layer[], amount: number, steps: integer, initial?: number, begin?: integer, every?: integer, method?: "l1"|"random", together?: boolean, name?: string} # target, amount, steps, initial=0, begin=0, every=1, method=l1, together=false, name=weight
---@return perigee.Gradual
function prune.Gradual(...) end

---Prunes whole output channels of a model's Linear layers and convolutions, in each those of least norm: the weights
---that make them and those that read them, through activations, batch norms, pooling, dropout and nn.Flatten to the
---next Linear or convolution of nn.Sequential. What nn.Residual adds up is one set of channels. One always stays. A
---convolution with a group a channel is gone through, its filters going with their channels. The model computes with
---masks what pg.prune.shrink(model) computes with fewer channels. Channels that leave the model, or meet a layer that
---mixes them (a layer norm, groups of several channels, a script's own forward), stay: where `layers` names them, or
---nothing else is there, the error says why. Batches are the first axis.
---@param ... perigee.Layer|number|{model: perigee.Layer, amount?: number, count?: integer, n?: integer, layers?: perigee.Layer[]} # model, amount, count, n=2, layers
---@return perigee.Layer model
function prune.channels(...) end

---Prunes with a mask of one's own. Earlier masks go on holding.
---@param ... perigee.Layer|perigee.Tensor|{layer: perigee.Layer, mask: perigee.Tensor, name?: string} # layer, mask, name=weight
---@return perigee.Layer
function prune.custom_from_mask(...) end

---Prunes the elements of least magnitude of all layers together: layers that matter less lose more.
---@param ... perigee.Layer|perigee.Layer[]|number|{target: perigee.Layer|perigee.Layer[], amount?: number, count?: integer, name?: string, method?: "l1"|"random"} # target, amount, count, name=weight, method=l1
---@return perigee.Layer|perigee.Layer[]
function prune.global_unstructured(...) end

---Prunes whole heads of a model's nn.MultiheadAttention layers, in each those of least norm: their rows of the
---projections and their columns of out_proj. One always stays. pg.prune.shrink(model) then has fewer heads.
---@param ... perigee.Layer|number|{model: perigee.Layer, amount?: number, count?: integer, n?: integer} # model, amount, count, n=2
---@return perigee.Layer model
function prune.heads(...) end

---Whether a layer, or one inside of it, is pruned.
---@param layer perigee.Layer # or a model
---@return boolean
function prune.is_pruned(layer) end

---Prunes the elements of least magnitude of a layer's parameter, of a model's in every layer by itself. A second call
---prunes more: its amount is of what is left. Equal magnitudes go in the order of their places.
---@param ... perigee.Layer|perigee.Layer[]|number|{target: perigee.Layer|perigee.Layer[], amount?: number, count?: integer, name?: string} # target, amount, count, name=weight
---@return perigee.Layer|perigee.Layer[]
function prune.l1_unstructured(...) end

---Prunes whole slices of a parameter, those of least norm: rows of a Linear, filters of a convolution. The network
---keeps its size; pg.prune.channels with pg.prune.shrink makes a smaller one.
---@param ... perigee.Layer|perigee.Layer[]|number|{target: perigee.Layer|perigee.Layer[], amount?: number, count?: integer, name?: string, axis?: integer, n?: number} # target, amount, count, name=weight, axis=1, n=2
---@return perigee.Layer|perigee.Layer[]
function prune.ln_structured(...) end

---Leaves n of every m neighbours along an axis, those of greatest magnitude: with 2 of 4 the pattern that sparse matrix
---units take (Mishra et al., 2021). Of equal magnitudes the later stays. Elements that are pruned already count as 0.
---@param ... perigee.Layer|perigee.Layer[]|integer|{target: perigee.Layer|perigee.Layer[], n?: integer, m?: integer, axis?: integer, name?: string} # target, n=2, m=4, axis=2, name=weight
---@return perigee.Layer|perigee.Layer[]
function prune.n_of_m(...) end

---Prunes whole slices of a parameter at random.
---@param ... perigee.Layer|perigee.Layer[]|number|{target: perigee.Layer|perigee.Layer[], amount?: number, count?: integer, name?: string, axis?: integer} # target, amount, count, name=weight, axis=1
---@return perigee.Layer|perigee.Layer[]
function prune.random_structured(...) end

---Prunes elements at random, as pg.manual_seed has it: what magnitudes are compared with.
---@param ... perigee.Layer|perigee.Layer[]|number|{target: perigee.Layer|perigee.Layer[], amount?: number, count?: integer, name?: string} # target, amount, count, name=weight
---@return perigee.Layer|perigee.Layer[]
function prune.random_unstructured(...) end

---Makes pruning permanent: the parameter is one again, with zeros at the places that the mask took out, and nothing
---keeps later training from changing them. Optimizers go on with it. Answers the layer.
---@param ... perigee.Layer|string|{layer: perigee.Layer, name?: string} # layer, name
---@return perigee.Layer
function prune.remove(...) end

---How sparse a model is, a line a layer that has parameters: how many there are, how many of them are exactly 0, and
---the bytes of what the layer holds itself. `print(pg.prune.report(model))` shows it.
---@param ... perigee.Layer|{model: perigee.Layer} # model
---@return perigee.PruneReport
function prune.report(...) end

---Makes a fresh model what a pruned one was: it gets the masks and the sizes that a state has, and loads it.
---@param model perigee.Layer # made as the one that was pruned
---@param state table<string, perigee.Tensor> # state() of the pruned one, or what pg.load gave
---@return perigee.Layer model
function prune.restore(model, state) end

---A copy of a model without the channels and heads that nothing reads: those whose weights in all layers that take them
---are 0, as pg.prune.channels and pg.prune.heads leave them. In evaluation it computes what the model does, to
---rounding, in less time and memory. Masks of what remains stay. The model itself is as before; optimizers are to be
---made anew.
---@param ... perigee.Layer|{model: perigee.Layer} # model
---@return perigee.Layer smaller
function prune.shrink(...) end

---A copy of a model that pg.quant.qat made and that was trained, with weights of whole numbers: what ptq makes of
---others.
---@param ... perigee.Layer|{model: perigee.Layer} # model
---@return perigee.Layer quantised
---@return perigee.QuantReport report
function quant.convert(...) end

---A copy of a trained model whose Linear and Conv2d layers have weights of whole numbers of eight bits, or of four, or
---of float8, and a scale for every row or group (post-training quantisation, symmetric: the largest magnitude of a
---group becomes 127 or 7, or the format's largest number). A row is all that makes one output: of a Conv2d a filter.
---Memory and files shrink to about a quarter or an eighth. What goes through layers stays floating, or with
---mode="dynamic" and "static" is made whole numbers inside of each layer, which multiplies whole numbers then: the
---fastest where the processor multiplies bytes (VNNI). Only "static" looks at data. A BatchNorm2d right behind a Conv2d
---in an nn.Sequential, as it computes in evaluation, becomes part of its filters, a ReLU behind it part of the layer;
---where they stood is nn.Identity. Gradients reach inputs and biases, not the weights. Layers that share their weight,
---have hooks or a weight that is computed (a mask of pg.prune) stay as they are, which the report says; where `targets`
---names one that is an error.
---@param ... perigee.Layer|{model: perigee.Layer, dtype?: "int8"|"int4"|"float8_e4m3fn"|"float8_e5m2", mode?: "weight_only"|"dynamic"|"static", data?: perigee.Dataset|perigee.Tensor|any[], activations?: "int8"|"uint8", observer?: "minmax"|"percentile"|"mse", percentile?: number, group_size?: integer, targets?: string[]} # model, dtype=int8, mode, data, activations=int8, observer=minmax, percentile=99.99, group_size, targets
---@return perigee.Layer quantised
---@return perigee.QuantReport report by layer how far its weight moved and the bytes it takes; print shows it
function quant.ptq(...) end

---A copy of a model whose Linear and Conv2d layers round their weight, and with mode="dynamic" or "static" what goes
---in, as whole numbers would be, while the parameters stay floating and keep their names: trained on, it learns to be
---quantised (quantisation-aware training; gradients pass straight through the rounding, Bengio, Leonard and Courville
---2013). Batch norms and ReLUs behind them are taken in as by ptq: what was normalised is learnt with the filters.
---pg.quant.convert then makes the small model of it.
---@param ... perigee.Layer|{model: perigee.Layer, dtype?: "int8"|"int4", mode?: "weight_only"|"dynamic"|"static", activations?: "int8"|"uint8", group_size?: integer, targets?: string[]} # model, dtype=int8, mode=weight_only, activations=int8, group_size, targets
---@return perigee.Layer model to train
function quant.qat(...) end

---The scale; 1 where scaling is off.
---@return number
function GradScaler:get_scale() end

---Whether scaling is on.
---@return boolean
function GradScaler:is_enabled() end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
---@return perigee.GradScaler self
function GradScaler:load_state(saved) end

---A loss (or a list of them) times the scale.
---@param losses perigee.Tensor|perigee.Tensor[]
---@return perigee.Tensor|perigee.Tensor[]
function GradScaler:scale(losses) end

---What load_state takes: { scale, growth_factor, backoff_factor, growth_interval, growth_tracker }; {} where it is off.
---@return table
function GradScaler:state() end

---optimizer:step(), which changes nothing where a gradient is infinite or NaN. Does not wait for the device.
---@param optimizer perigee.Optimizer
---@return any ... what the step returns
function GradScaler:step(optimizer) end

---Divides the gradients of an optimizer's parameters by the scale, in place, and checks them: before they are clipped
---or looked at. Once between two updates; step does it where it was not done.
---@param optimizer perigee.Optimizer
function GradScaler:unscale(optimizer) end

---Ends a step: the scale shrinks where gradients overflowed, and grows after `growth_interval` steps in which none did.
---The one place that waits for the device.
---@param new_scale? number # sets the scale instead
---@return boolean skipped whether the steps since the last update did nothing
function GradScaler:update(new_scale) end

---Sets the rates of what is done.
function Schedule:apply() end

---Takes up where state() was taken. Everything is checked before anything is changed.
---@param saved table
function Schedule:load_state(saved) end

---The rates in force, a number a group.
---@return number[]
function Schedule:lr() end

---A plain table, for load_state.
---@return table
function Schedule:state() end

---Counts one more step and sets the rates that follow. Schedules that watch a value are given it.
---@param metric? number
function Schedule:step(metric) end

---Adds a layer behind the others.
---@param layer perigee.Layer|function
---@return perigee.nn.Sequential
function Sequential:append(layer) end

---Adds layers behind the others.
---@param layers (perigee.Layer|function)[] # a list, or a layer that has positions
---@return perigee.nn.Sequential
function Sequential:extend(layers) end

---Adds a layer in front of the one at a position; those from there on move up by one.
---@param position integer # from 1 to #self + 1, negative from the end
---@param layer perigee.Layer|function
---@return perigee.nn.Sequential
function Sequential:insert(position, layer) end

---Takes out the layer at a position, the last one if not given; those behind it move down by one.
---@param position? integer # from 1, negative from the end
---@return perigee.Layer removed
function Sequential:remove(position) end

---Calls fn(...) with this session as the default one: `t:eval(feeds)` in it is `session:run(t, feeds)`.
---@param fn function
---@param ... any # arguments of fn
---@return any ... what fn returns
function Session:as_default(fn, ...) end

---Ends the session and lets go of what it holds: first written back into the model that pg.Session's `commit` named.
---What was fetched stays. A session that nobody refers to ends by itself, and then writes nothing back.
function Session:close() end

---Writes what the session holds into the parameters and buffers of a model whose layers were called in the graph. They
---stay the tensors that they are, wherever the model is now. Everything is checked before anything is changed. The
---session goes on with what it holds. An optimizer that was recorded in the graph gets its state and step counts.
---@param model perigee.Layer|perigee.Optimizer
function Session:commit(model) end

---Gives the variables values as state() gave them: all of the graph's, of their shapes and dtypes.
---@param state table<string, perigee.Tensor>
function Session:load_state(state) end

---A part of a run that partial_run_setup began: fetches some of what it told, with what has been fed up to now. What
---earlier parts have computed is not computed again. Everything is fed once.
---@param handle perigee.PartialRun
---@param fetches string|integer|perigee.Tensor|table
---@param feeds? table<string, any>
---@return any
function Session:partial_run(handle, fetches, feeds) end

---Begins a run in parts: all that its parts will fetch, and names of all that they will feed. Answers what
---session:partial_run takes. Variables are what they are now, but for what the parts write.
---@param fetches (string|integer|perigee.Tensor)[]
---@param feeds? (string|perigee.Tensor)[]
---@return perigee.PartialRun
function Session:partial_run_setup(fetches, feeds) end

---Where everything is, as TensorFlow writes it: a mapping of the names of devices (`/gpu:0 -> cuda:0, NVIDIA H100`), a
---line a node (`add_1: (Add): /gpu:0`), and what a run copies between devices, in bytes, in which sizes that are not
---known before stand by their names. Constants are copied once for all runs.
---@return string
function Session:placement() end

---What the run that was asked for last does: how many kernels, views and copies between devices, and how large the
---block is in which what nobody fetches lies; then a line a step, with the bytes of its results and where they lie in
---the block. It is laid out when sizes come a second time, and is not there where sizes are known only when it runs
---(loops, dynamic results).
---@return string
function Session:plan() end

---Runs what is fetched: one name (of a list of results, a position) or tensor gives one result; a table gives a table:
---by name for what is listed by name, else by the key that stood there. Feeds are tensors, or numbers and tables of
---them, which take the placeholder's dtype. Any tensor of the graph can be fed: what it is computed of is then not
---needed, and symbols in its shape take their sizes from it. A variable's name gives what the variable holds after the
---run, and is no reason to update it.
---@param fetches string|integer|perigee.Tensor|(string|integer|perigee.Tensor)[]|table<string, string|perigee.Tensor>
---@param feeds? table<string, any>
---@return any
function Session:run(fetches, feeds) end

---What the variables hold, by name: `pg.save("w.safetensors", session:state())`. Of a model whose layers were called in
---the graph, session:state(model) gives what it would hold, by its own names: model:load_state takes that.
---@param model? perigee.Layer
---@return table<string, perigee.Tensor>
function Session:state(model) end

---Batches whose parts the replicas compute: rows behind each other, as equal as they can be. The batch size is that of
---all replicas together. Every process goes through the whole data set, in the same order, and keeps its part of each
---batch; for several devices strategy:run takes batches apart.
---@param dataset perigee.Dataset # of batches
---@return perigee.Dataset
function Strategy:distribute(dataset) end

---The sum ("mean", "max", "min") of a number or a tensor over all replicas; of several devices also of what
---strategy:run has returned.
---@param op string
---@param value number|perigee.Tensor
---@return any reduced a number of a number, a tensor of a tensor
function Strategy:reduce(op, value) end

---Sums the gradients of an optimizer's parameters over all replicas now, inside of strategy:run: before they are
---clipped or looked at. Each counts by its part of the batch. step() of the optimizer does it where it was not done.
---@param optimizer perigee.Optimizer
function Strategy:reduce_gradients(optimizer) end

---Calls fn(...), a step of a training, on every replica with its part of a batch (strategy:distribute). An optimizer's
---step in it uses the gradients of all replicas: the mean over all samples of the batch, whose parts may differ in
---size.
---Of several devices each calls fn with its own device in force (pg.device), its own parameters and buffers, and parts
---of batches that lie there. They take turns: where one comes to a step of an optimizer, a scaler, a schedule or an
---average, it waits until all have come to it, and the step is made once. What fn returns comes back as a list, a value
---a device, without gradients; a nil of all of them as nil.
---@param fn function
---@param ... any # a batch of strategy:distribute, and what fn needs besides
---@return any ... what fn returns on this replica
function Strategy:run(fn, ...) end

---Runs fn(...), which makes the model and its optimizer, so that all replicas begin with the same parameters: of
---several processes with the same random numbers, of several devices on the first one.
---@param fn function
---@param ... any
---@return any ... what fn returns
function Strategy:scope(fn, ...) end

---Names of the parameters that need gradients and had none on any replica when an optimizer last stepped: those of the
---model's state() where the model was made in strategy:scope or fit trains it, else "parameter 3", the third of its
---optimizer. They stay what they are.
---@return string[]
function Strategy:unused() end

---The nodes of a graph, with their devices, shapes and script lines.
---@param graph perigee.Graph|perigee.Session
---@return perigee.SummaryWriter self
function SummaryWriter:add_graph(graph) end

---How numbers are spread, from the least to the largest in equal steps: `w:add_histogram("fc/weight", w, step)`. What
---is not finite is left out.
---@param ... string|perigee.Tensor|number[]|integer|{tag: string, values: perigee.Tensor|number[], step?: integer, bins?: integer} # tag, values, step=0, bins=64
---@return perigee.SummaryWriter self
function SummaryWriter:add_histogram(...) end

---The settings of this run and what came out: `w:add_hparams({lr=0.1, model="small"}, {accuracy=0.93})`. TensorBoard
---compares the runs of a folder by them.
---@param params table<string, number|string|boolean>
---@param metrics? table<string, number|perigee.Tensor> # scalars that tell how good they were
---@return perigee.SummaryWriter self
function SummaryWriter:add_hparams(params, metrics) end

---A picture, or several under one tag: [H, W], [C, H, W] or [N, C, H, W], uint8 or floating from 0 to 1 (what lies
---outside is cut off).
---@param ... string|perigee.Tensor|integer|{tag: string, image: perigee.Tensor, step?: integer, layout?: "HW"|"CHW"|"HWC"|"NCHW"|"NHWC"} # tag, image, step=0, layout
---@return perigee.SummaryWriter self
function SummaryWriter:add_image(...) end

---Precision over recall of a classifier with two classes.
---@param ... string|perigee.Tensor|number[]|integer|{tag: string, labels: perigee.Tensor|number[], predictions: perigee.Tensor|number[], step?: integer, thresholds?: integer} # tag, labels, predictions, step=0, thresholds=127
---@return perigee.SummaryWriter self
function SummaryWriter:add_pr_curve(...) end

---A point of a curve: `w:add_scalar("loss", loss, step)`. It is kept as float32.
---@param ... string|number|perigee.Tensor|integer|{tag: string, value: number|perigee.Tensor, step?: integer} # tag, value, step=0
---@return perigee.SummaryWriter self
function SummaryWriter:add_scalar(...) end

---Points of several curves, TAG/NAME each: `w:add_scalars("loss", {train=0.2, test=0.3}, step)`.
---@param ... string|table<string, number|perigee.Tensor>|integer|{tag: string, values: table<string, number|perigee.Tensor>, step?: integer} # tag, values, step=0
---@return perigee.SummaryWriter self
function SummaryWriter:add_scalars(...) end

---A text; TensorBoard shows it as Markdown.
---@param ... string|integer|{tag: string, text: string, step?: integer} # tag, text, step=0
---@return perigee.SummaryWriter self
function SummaryWriter:add_text(...) end

---Closes the file. A second call does nothing.
function SummaryWriter:close() end

---Returns when the operating system has all records; each call of add_... does that.
---@return perigee.SummaryWriter self
function SummaryWriter:flush() end

---Gradients of a target with respect to a list of tensors, as a list.
---@param target perigee.Tensor
---@param sources perigee.Tensor[]
---@return perigee.Tensor[]
function Tape:gradient(target, sources) end

---beta * x + alpha * (a times b), of matrices a [n, k] and b [k, m].
---@param ... perigee.Tensor|number|{a: perigee.Tensor, b: perigee.Tensor, beta?: number, alpha?: number} # a, b, beta=1, alpha=1
---@return perigee.Tensor
function Tensor:addmm(...) end

---The grid [N, H, W, 2] for grid_sample that affine matrices x [N, 2, 3] make of images of `size` {N, C, H, W}.
---@param ... integer|integer[]|boolean|{size: integer|integer[], align_corners?: boolean} # size, align_corners=false
---@return perigee.Tensor
function Tensor:affine_grid(...) end

---Whether `isclose` holds everywhere.
---@param ... perigee.Tensor|number|boolean|{b: perigee.Tensor, rtol?: number, atol?: number, equal_nan?: boolean} # b, rtol=1e-05, atol=1e-08, equal_nan=false
---@return boolean
function Tensor:allclose(...) end

---The smallest and the largest element, of all or along one axis.
---@param ... integer|boolean|{axis?: integer, keepdim?: boolean} # axis, keepdim=false
---@return perigee.Tensor min
---@return perigee.Tensor max
function Tensor:aminmax(...) end

---Where the largest element stands along an axis, or in the flattened tensor: contents from 0, int64.
---@param ... integer|boolean|{axis?: integer, keepdim?: boolean} # axis, keepdim=false
---@return perigee.Tensor
function Tensor:argmax(...) end

---Where the least element stands along an axis, or in the flattened tensor: contents from 0, int64.
---@param ... integer|boolean|{axis?: integer, keepdim?: boolean} # axis, keepdim=false
---@return perigee.Tensor
function Tensor:argmin(...) end

---Adds the gradients of this tensor into `.grad` of the leaves it came from.
---@param ... perigee.Tensor|{gradient?: perigee.Tensor, retain_graph?: boolean, create_graph?: boolean} # gradient, retain_graph, create_graph
function Tensor:backward(...) end

---beta * x + alpha * (a times b), of batches of matrices a [b, n, k] and b [b, k, m].
---@param ... perigee.Tensor|number|{a: perigee.Tensor, b: perigee.Tensor, beta?: number, alpha?: number} # a, b, beta=1, alpha=1
---@return perigee.Tensor
function Tensor:baddbmm(...) end

---1 with probability p (a number, or a tensor that broadcasts to x), else 0, into x.
---@param p? number|perigee.Tensor
---@return perigee.Tensor
function Tensor:bernoulli_(p) end

---x[n] W[k] y[n]^T + bias[k] for every k: x [..., I], y [..., J], weight [K, I, J], bias [K] to [..., K].
---@param ... perigee.Tensor|{y: perigee.Tensor, weight: perigee.Tensor, bias?: perigee.Tensor} # y, weight, bias
---@return perigee.Tensor
function Tensor:bilinear(...) end

---How often each of the whole numbers from 0 occurs in x, or the sums of their weights: [largest + 1], or `minlength`
---if that is more.
---@param ... perigee.Tensor|integer|{weights?: perigee.Tensor, minlength?: integer} # weights, minlength=0
---@return perigee.Tensor
function Tensor:bincount(...) end

---Matrix products of [b, n, k] and [b, k, m].
---@param ... perigee.Tensor|{y: perigee.Tensor} # y
---@return perigee.Tensor
function Tensor:bmm(...) end

---x repeated to a shape, without a copy.
---@param ... integer[]|{shape: integer[]} # shape
---@return perigee.Tensor
function Tensor:broadcast_to(...) end

---In which bucket each element lies, given the buckets' rising boundaries: i where boundaries[i] < x <=
---boundaries[i + 1], with `right=true` where boundaries[i] <= x < boundaries[i + 1].
---@param ... perigee.Tensor|boolean|{boundaries: perigee.Tensor, right?: boolean} # boundaries, right=false
---@return perigee.Tensor buckets int64 from 0 to n
function Tensor:bucketize(...) end

---[N, C, ...] with the channels of `groups` groups interleaved (Zhang and others, 2018).
---@param ... integer|{groups: integer} # groups
---@return perigee.Tensor
function Tensor:channel_shuffle(...) end

---A list of at most `count` parts of equal size along an axis; the last may be smaller. In a graph, of an axis whose
---size only a run tells, just `count` of one size: the run fails where that cannot be.
---@param ... integer|{count: integer, axis?: integer} # count, axis=1
---@return perigee.Tensor[]
function Tensor:chunk(...) end

---The transpose of im2col: columns x [N, C * kh * kw, L] added up where they came from in images of `size`
---[N, C, H, W]. PyTorch's nn.functional.fold.
---@param ... integer|integer[]|{size: integer|integer[], kernel: integer|integer[], dilation?: integer|integer[], padding?: integer|integer[], stride?: integer|integer[]} # size, kernel, dilation=1, padding=0, stride=1
---@return perigee.Tensor
function Tensor:col2im(...) end

---The tensor itself when its elements lie in row-major order, or in the order of a memory format, else a copy that
---does.
---@param ... {memory_format?: "contiguous"|"channels_last"|"channels_last_3d"} # memory_format=contiguous
---@return perigee.Tensor
function Tensor:contiguous(...) end

---Writes a tensor's elements, or a number, into x; the source broadcasts and is converted to x's dtype.
---@param source perigee.Tensor|number|boolean
---@return perigee.Tensor
function Tensor:copy_(source) end

---The cosine of the angle between x and y along an axis; norms below eps count as eps. x and y broadcast.
---@param ... perigee.Tensor|integer|number|{y: perigee.Tensor, axis?: integer, eps?: number} # y, axis=2, eps=1e-08
---@return perigee.Tensor
function Tensor:cosine_similarity(...) end

---The same on the processor: x:to("cpu").
---@return perigee.Tensor
function Tensor:cpu() end

---The cross products of vectors of 3 elements along an axis (by default the first that has 3); other axes broadcast.
---@param ... perigee.Tensor|integer|{y: perigee.Tensor, axis?: integer} # y, axis
---@return perigee.Tensor
function Tensor:cross(...) end

---The same memory without history.
---@return perigee.Tensor
function Tensor:detach() end

---Of a vector the matrix with it on diagonal number `diagonal`, else zeros; of a matrix that diagonal.
---@param ... integer|{diagonal?: integer} # diagonal=0
---@return perigee.Tensor
function Tensor:diag(...) end

---Matrices, along two new axes, with the last axis of x on diagonal number `offset`, and zeros.
---@param ... integer|{offset?: integer, axis1?: integer, axis2?: integer} # offset=0, axis1=-2, axis2=-1
---@return perigee.Tensor
function Tensor:diag_embed(...) end

---Differences of neighbours along an axis, n times over; `prepend` and `append` are put at the ends before.
---@param ... integer|perigee.Tensor|{n?: integer, axis?: integer, prepend?: perigee.Tensor, append?: perigee.Tensor} # n=1, axis=-1, prepend, append
---@return perigee.Tensor
function Tensor:diff(...) end

---Number of axes.
---@return integer
function Tensor:dim() end

---Sum of the products of two vectors' elements, 0-dim.
---@param ... perigee.Tensor|{y: perigee.Tensor} # y
---@return perigee.Tensor
function Tensor:dot(...) end

---x:to("float64").
---@return perigee.Tensor
function Tensor:double() end

---Rows of weight [V, D] by index, summed, averaged or their largest values taken, a bag at a time. index [B, L] is B
---bags; index [N] with offsets [B] (positions from 0) is bags that begin there. Rows of padding_idx do not count. A
---bag of none is 0; the gradient of the largest goes to the first of equal ones.
---@param ... perigee.Tensor|"mean"|"sum"|"max"|boolean|integer|{index: perigee.Tensor, offsets?: perigee.Tensor, mode?: "mean"|"sum"|"max", per_sample_weights?: perigee.Tensor, include_last_offset?: boolean, padding_idx?: integer} # index, offsets, mode=mean, per_sample_weights, include_last_offset=false, padding_idx=-1
---@return perigee.Tensor bags [B, D]
function Tensor:embedding_bag(...) end

---A tensor of x's shape whose contents do not matter, in x's dtype and on its device if not told otherwise.
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
function Tensor:empty_like(options) end

---Whether shapes, dtypes and all elements are the same.
---@param ... perigee.Tensor|{b: perigee.Tensor} # b
---@return boolean
function Tensor:equal(...) end

---The value of a tensor of a graph, by the default session: `session:as_default(function() print(y:eval{x = 1}) end)`.
---@param feeds? table<string, any> # as session:run takes them
---@return any
function Tensor:eval(feeds) end

---A view in the shape of `other`, to which x broadcasts.
---@param other perigee.Tensor
---@return perigee.Tensor
function Tensor:expand_as(other) end

---Exponential draws of density rate exp(-rate x), into x.
---@param ... number|{rate?: number} # rate=1
---@return perigee.Tensor x
function Tensor:exponential_(...) end

---Writes a number into every element.
---@param value number|boolean
---@return perigee.Tensor
function Tensor:fill_(value) end

---Joins the axes from first to last.
---@param ... integer|{first?: integer, last?: integer} # first=1, last=-1
---@return perigee.Tensor
function Tensor:flatten(...) end

---The columns in reverse order (axis 2).
---@return perigee.Tensor
function Tensor:fliplr() end

---The rows in reverse order (axis 1).
---@return perigee.Tensor
function Tensor:flipud() end

---x:to("float32").
---@return perigee.Tensor
function Tensor:float() end

---Releases the tensor's memory now. Using it afterwards is an error.
function Tensor:free() end

---A tensor of x's shape filled with `value`, in x's dtype and on its device if not told otherwise.
---@param value number|boolean
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {value?: number|boolean, dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}): perigee.Tensor
function Tensor:full_like(value, options) end

---Images x [N, C, H, W] sampled at `grid` [N, Ho, Wo, 2] of (x, y) in [-1, 1], where -1 and 1 are the outer edges, or
---with align_corners the centres of the outer pixels (Jaderberg and others, 2015); volumes [N, C, D, H, W] at a grid
---[N, Do, Ho, Wo, 3] of (x, y, z). Modes: bilinear (of volumes, trilinear), nearest, and of images bicubic; padding
---modes: zeros, border, reflection. 16-bit floats are computed in float32.
---@param ... perigee.Tensor|"bilinear"|"nearest"|"bicubic"|"zeros"|"border"|"reflection"|boolean|{grid: perigee.Tensor, mode?: "bilinear"|"nearest"|"bicubic", padding_mode?: "zeros"|"border"|"reflection", align_corners?: boolean} # grid, mode=bilinear, padding_mode=zeros, align_corners=false
---@return perigee.Tensor
function Tensor:grid_sample(...) end

---The channels of x [N, C, ...] in `groups` of equal size, each group of each example shifted and scaled to mean 0
---and variance 1; then scaled and shifted by weight [C] and bias [C] (Wu and He 2018).
---@param ... integer|perigee.Tensor|number|{groups: integer, weight?: perigee.Tensor, bias?: perigee.Tensor, eps?: number} # groups, weight, bias, eps=1e-05
---@return perigee.Tensor
function Tensor:group_norm(...) end

---x:to("float16").
---@return perigee.Tensor
function Tensor:half() end

---Whether the shape is this: `t:has_shape{2, 3}`.
---@param ... integer|integer[]
---@return boolean
function Tensor:has_shape(...) end

---How many elements lie in each of `bins` equal parts of [min, max] (of the range of x where both are 0). Others, and
---NaN, are left out.
---@param ... integer|number|{bins?: integer, min?: number, max?: number} # bins=100, min=0, max=0
---@return perigee.Tensor counts [bins]
function Tensor:histc(...) end

---Calls fn(gradient) in every backward pass that uses the gradient of this tensor, once all that flows into it has
---been added up: for a leaf before it is added to `.grad`, for a computed tensor before it flows on. A tensor that fn
---returns takes its place, nil keeps it; several hooks are called in the order in which they were set. Gradients of
---gradients flow through what fn computes; it must not write into the gradient. A hook is of the tensor as it is when
---it is set, before later writes into it. It lasts as long as the tensor or something that was computed of it, and
---ends with a backward that does not retain what the tensor's own operator saved, with `requires_grad = false`, or
---with `handle:remove()`. A function that holds the tensor itself keeps it alive until then.
---@param fn fun(gradient: perigee.Tensor): perigee.Tensor?
---@return perigee.HookHandle handle
function Tensor:hook(fn) end

---The windows of images x [N, C, H, W] as columns: [N, C * kh * kw, L], L windows in row-major order.
---PyTorch's nn.functional.unfold.
---@param ... integer|integer[]|{kernel: integer|integer[], dilation?: integer|integer[], padding?: integer|integer[], stride?: integer|integer[]} # kernel, dilation=1, padding=0, stride=1
---@return perigee.Tensor
function Tensor:im2col(...) end

---x with `alpha` times each slice of source added at its index along an axis; equal indices add up.
---`x:index_add(index, source, axis)` or, as in PyTorch, `x:index_add(axis, index, source)`.
---@param index perigee.Tensor # [n], from 0
---@param source perigee.Tensor # x with n slices along the axis
---@param axis integer # axis, from 1, negative from the end
---@param alpha? number
---@return perigee.Tensor
---@overload fun(self: perigee.Tensor, arguments: {index?: perigee.Tensor, source?: perigee.Tensor, axis?: integer, alpha?: number}): perigee.Tensor
function Tensor:index_add(index, source, axis, alpha) end

---x:index_add, written into x.
---@param ... perigee.Tensor|integer|number|{index: perigee.Tensor, source: perigee.Tensor, axis: integer, alpha?: number} # index, source, axis, alpha
---@return perigee.Tensor
function Tensor:index_add_(...) end

---x with each slice of source written at its index along an axis; of equal indices the last one stays.
---@param ... perigee.Tensor|integer|{index: perigee.Tensor, source?: perigee.Tensor, axis?: integer} # index, source, axis
---@return perigee.Tensor
function Tensor:index_copy(...) end

---x:index_copy, written into x.
---@param ... perigee.Tensor|integer|{index: perigee.Tensor, source?: perigee.Tensor, axis?: integer} # index, source, axis
---@return perigee.Tensor
function Tensor:index_copy_(...) end

---x with a number (or 0-dim tensor) written in the slices at the indices along an axis.
---@param index perigee.Tensor # [n], from 0
---@param value number|perigee.Tensor
---@param axis integer # axis, from 1, negative from the end
---@return perigee.Tensor
function Tensor:index_fill(index, value, axis) end

---x:index_fill, written into x.
---@param ... perigee.Tensor|number|integer|{index: perigee.Tensor, value: number|perigee.Tensor, axis: integer} # index, value, axis
---@return perigee.Tensor
function Tensor:index_fill_(...) end

---A copy of x with `values` (a number or a tensor that broadcasts) written, or with `accumulate` added, at `index`:
---what stands between the brackets of `x[...]`. Of equal places the last one stays, and with `accumulate` all add up.
---@param ... integer|string|table|perigee.Tensor|number|boolean|{index: integer|string|table|perigee.Tensor, values: perigee.Tensor|number|boolean, accumulate?: boolean} # index, values, accumulate=false
---@return perigee.Tensor
function Tensor:index_put(...) end

---Sums of products over the last axes: x [..., n] and y [..., n] to [axes of x but the last, those of y but the
---last]; a tensor of no axes multiplies.
---@param ... perigee.Tensor|{y: perigee.Tensor} # y
---@return perigee.Tensor
function Tensor:inner(...) end

---Each channel of each example of x [N, C, ...] shifted and scaled to mean 0 and variance 1 (Ulyanov et al. 2016);
---with use_input_stats=false by running_mean and running_var [C], which otherwise follow the input.
---@param ... perigee.Tensor|boolean|number|{running_mean?: perigee.Tensor, running_var?: perigee.Tensor, weight?: perigee.Tensor, bias?: perigee.Tensor, use_input_stats?: boolean, momentum?: number, eps?: number} # running_mean, running_var, weight, bias, use_input_stats=true, momentum=0.1, eps=1e-05
---@return perigee.Tensor
function Tensor:instance_norm(...) end

---x:to("int32").
---@return perigee.Tensor
function Tensor:int() end

---Images [N, C, L], [N, C, H, W] or [N, C, D, H, W] at another `size` of their last axes, or `scale_factor` times as
---large. Modes: nearest, linear (1 axis), bilinear, bicubic (2), trilinear (3), area (mean of what an output covers).
---@param ... integer|integer[]|number|number[]|"nearest"|"linear"|"bilinear"|"bicubic"|"trilinear"|"area"|boolean|{size?: integer|integer[], scale_factor?: number|number[], mode?: "nearest"|"linear"|"bilinear"|"bicubic"|"trilinear"|"area", align_corners?: boolean, recompute_scale_factor?: boolean} # size, scale_factor, mode=nearest, align_corners, recompute_scale_factor=false
---@return perigee.Tensor
function Tensor:interpolate(...) end

---Whether the elements lie in memory one after the other, in the order of the axes or in that of a memory format.
---@param ... {memory_format?: "contiguous"|"channels_last"|"channels_last_3d"} # memory_format=contiguous
---@return boolean
function Tensor:is_contiguous(...) end

---Whether |a - b| <= atol + rtol * |b|, element by element, after broadcasting; infinities only equal themselves.
---@param ... perigee.Tensor|number|boolean|{b: perigee.Tensor, rtol?: number, atol?: number, equal_nan?: boolean} # b, rtol=1e-05, atol=1e-08, equal_nan=false
---@return perigee.Tensor close bool
function Tensor:isclose(...) end

---Which elements of x are among those of `test` (a tensor or a number).
---@param ... perigee.Tensor|number|boolean|{test: perigee.Tensor|number, invert?: boolean} # test, invert=false
---@return perigee.Tensor found bool
function Tensor:isin(...) end

---The one element as a Lua number or boolean.
---@return number|boolean
function Tensor:item() end

---The one element of an integer tensor as a 64-bit integer.
---@return integer
function Tensor:item_int64() end

---Every element of x times the whole of y (Kronecker's product); missing axes count as 1 in front.
---@param ... perigee.Tensor|{y: perigee.Tensor} # y
---@return perigee.Tensor
function Tensor:kron(...) end

---Each element divided by (k + alpha * the mean of the squares over `size` neighbouring channels)^beta (Krizhevsky
---and others, 2012). x is [N, C, ...].
---@param ... integer|number|{size: integer, alpha?: number, beta?: number, k?: number} # size, alpha=0.0001, beta=0.75, k=1
---@return perigee.Tensor
function Tensor:local_response_norm(...) end

---x:to("int64").
---@return perigee.Tensor
function Tensor:long() end

---The norm of each window of [N, C, L] or [C, L]: (sum of x^norm)^(1 / norm), as PyTorch defines it.
---@param ... number|integer|integer[]|boolean|{norm: number, kernel: integer|integer[], stride?: integer|integer[], ceil_mode?: boolean} # norm, kernel, stride, ceil_mode=false
---@return perigee.Tensor
function Tensor:lp_pool1d(...) end

---The norm of each window of [N, C, H, W] or [C, H, W]: (sum of x^norm)^(1 / norm), as PyTorch defines it.
---@param ... number|integer|integer[]|boolean|{norm: number, kernel: integer|integer[], stride?: integer|integer[], ceil_mode?: boolean} # norm, kernel, stride, ceil_mode=false
---@return perigee.Tensor
function Tensor:lp_pool2d(...) end

---The last two axes exchanged, a view.
---@return perigee.Tensor
function Tensor:mT() end

---x with `value` (a number, a boolean or a tensor) where mask is true; the mask broadcasts with x.
---@param ... perigee.Tensor|number|boolean|{mask: perigee.Tensor, value: number|boolean|perigee.Tensor} # mask, value
---@return perigee.Tensor
function Tensor:masked_fill(...) end

---x with the elements of source, in row-major order, where mask (which broadcasts to x) is true. source has at least
---as many elements as the mask selects.
---@param ... perigee.Tensor|{mask: perigee.Tensor, source: perigee.Tensor} # mask, source
---@return perigee.Tensor
function Tensor:masked_scatter(...) end

---x:masked_scatter, written into x.
---@param ... perigee.Tensor|{mask: perigee.Tensor, source: perigee.Tensor} # mask, source
---@return perigee.Tensor
function Tensor:masked_scatter_(...) end

---The elements of x where mask is true, after broadcasting both, in row-major order: [n].
---@param ... perigee.Tensor|{mask: perigee.Tensor} # mask
---@return perigee.Tensor
function Tensor:masked_select(...) end

---The largest element of all; with an axis, the values along it and their positions, contents from 0; of two tensors,
---the larger elements.
---@param ... integer|perigee.Tensor|boolean|{axis?: integer|perigee.Tensor, keepdim?: boolean} # axis, keepdim=false
---@return perigee.Tensor values
---@return perigee.Tensor? positions where an axis was given
function Tensor:max(...) end

---The least element of all; with an axis, the values along it and their positions, contents from 0; of two tensors,
---the smaller elements.
---@param ... integer|perigee.Tensor|boolean|{axis?: integer|perigee.Tensor, keepdim?: boolean} # axis, keepdim=false
---@return perigee.Tensor values
---@return perigee.Tensor? positions where an axis was given
function Tensor:min(...) end

---Product of two matrices, [n, k] and [k, m].
---@param ... perigee.Tensor|{y: perigee.Tensor} # y
---@return perigee.Tensor
function Tensor:mm(...) end

---The same as pg.movedim. Moves axes to new places: `x:movedim(1, -1)`, `x:movedim({1, 2}, {2, 1})`.
---@param ... integer|integer[]|{from: integer|integer[], to: integer|integer[]} # from, to
---@return perigee.Tensor
function Tensor:moveaxis(...) end

---Moves axes to new places: `x:movedim(1, -1)`, `x:movedim({1, 2}, {2, 1})`.
---@param ... integer|integer[]|{from: integer|integer[], to: integer|integer[]} # from, to
---@return perigee.Tensor
function Tensor:movedim(...) end

---The elements along axis 1 in rising order.
---@return perigee.Tensor
function Tensor:msort() end

---Product of a matrix [n, k] and a vector [k].
---@param ... perigee.Tensor|{y: perigee.Tensor} # y
---@return perigee.Tensor
function Tensor:mv(...) end

---`length` positions of an axis from position `start` (from 1). In a graph, a copy where start or length is a size
---that does not count from an end of the axis, such as another tensor's.
---@param ... integer|perigee.Size|{axis: integer, start: integer|perigee.Size, length: integer|perigee.Size} # axis, start, length
---@return perigee.Tensor
function Tensor:narrow(...) end

---The p-norm of all elements or along axes: (sum |x|^p)^(1/p); p = 0 counts elements that are not 0,
---`math.huge` is the largest magnitude, "fro" is 2.
---@param ... number|string|integer|integer[]|boolean|{p?: number|string, axis?: integer|integer[], keepdim?: boolean} # p=2, axis, keepdim=false
---@return perigee.Tensor
function Tensor:norm(...) end

---Normal draws, into x.
---@param ... number|{mean?: number, std?: number} # mean=0, std=1
---@return perigee.Tensor x
function Tensor:normal_(...) end

---x divided by its p-norm along an axis, or by eps where that is larger.
---@param ... number|integer|{p?: number, axis?: integer, eps?: number} # p=2, axis=2, eps=1e-12
---@return perigee.Tensor
function Tensor:normalize(...) end

---How many elements there are.
---@return integer
function Tensor:numel() end

---A new last axis that is 1 at the index and 0 elsewhere: class c stands at position c + 1. Without `classes` there
---are as many as the largest index asks for.
---@param ... integer|{classes?: integer} # classes
---@return perigee.Tensor hot int64 [..., classes]
function Tensor:one_hot(...) end

---Ones in x's shape, in x's dtype and on its device if not told otherwise.
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
function Tensor:ones_like(options) end

---Products of every element of x [n] with every one of y [m]: [n, m].
---@param ... perigee.Tensor|{y: perigee.Tensor} # y
---@return perigee.Tensor
function Tensor:outer(...) end

---Adds elements around x, or takes some away (negative widths). `pad` is {before, behind} of the last axis, then of
---the one before it, ...; or a pair an axis, first axis first. Modes: constant (`value`), reflect, replicate,
---circular.
---@param ... table|"constant"|"reflect"|"replicate"|"circular"|number|{pad: table, mode?: "constant"|"reflect"|"replicate"|"circular", value?: number} # pad, mode=constant, value=0
---@return perigee.Tensor
function Tensor:pad(...) end

---The p-norm of x - y + eps along the last axis. x and y broadcast.
---@param ... perigee.Tensor|number|boolean|{y: perigee.Tensor, p?: number, eps?: number, keepdim?: boolean} # y, p=2, eps=1e-06, keepdim=false
---@return perigee.Tensor
function Tensor:pairwise_distance(...) end

---Distances (pg.cdist) of all pairs of rows of a matrix [n, d], those of the first row first: [n (n - 1) / 2].
---@param ... number|{p?: number} # p=2
---@return perigee.Tensor
function Tensor:pdist(...) end

---[..., C * r^2, H, W] to [..., C, H * r, W * r]: channels become pixels (Shi and others, 2016).
---@param ... integer|{factor: integer} # factor
---@return perigee.Tensor
function Tensor:pixel_shuffle(...) end

---The inverse of pixel_shuffle: [..., C, H * r, W * r] to [..., C * r^2, H, W].
---@param ... integer|{factor: integer} # factor
---@return perigee.Tensor
function Tensor:pixel_unshuffle(...) end

---The contents of an index tensor as Lua numbers that count from 1.
---@return integer[]
function Tensor:positions() end

---x with values written (or added) at the indices of flat x.
---@param ... perigee.Tensor|number|boolean|{index: perigee.Tensor, values: perigee.Tensor|number, accumulate?: boolean} # index, values, accumulate=false
---@return perigee.Tensor
function Tensor:put(...) end

---x:put, written into x.
---@param ... perigee.Tensor|number|boolean|{index: perigee.Tensor, values: perigee.Tensor|number, accumulate?: boolean} # index, values, accumulate=false
---@return perigee.Tensor
function Tensor:put_(...) end

---The elements below which the shares `q` of each line along an axis (of all elements without one) lie. q is a
---number, or a list or tensor of them, which then come along a new first axis. Interpolation: linear (definition 7 of
---Hyndman and Fan, "Sample quantiles in statistical packages", 1996), lower, higher, midpoint, nearest.
---@param ... number|number[]|perigee.Tensor|integer|boolean|"linear"|"lower"|"higher"|"midpoint"|"nearest"|{q: number|number[]|perigee.Tensor, axis?: integer, keepdim?: boolean, interpolation?: "linear"|"lower"|"higher"|"midpoint"|"nearest"} # q, axis, keepdim=false, interpolation=linear
---@return perigee.Tensor
function Tensor:quantile(...) end

---Uniform random numbers in [0, 1) in x's shape, in x's dtype and on its device if not told otherwise.
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
function Tensor:rand_like(options) end

---Whole numbers from low (0 where only one limit is given) to high - 1 in the shape, dtype and device of x.
---@param ... integer|{low: integer, high?: integer, dtype?: perigee.Dtype, device?: string} # low, high, dtype, device
---@return perigee.Tensor
function Tensor:randint_like(...) end

---Normal random numbers, of mean 0 and variance 1, in x's shape, in x's dtype and on its device if not told
---otherwise.
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
function Tensor:randn_like(options) end

---Whole numbers from low to high - 1, into x.
---@param ... integer|{low: integer, high: integer} # low, high
---@return perigee.Tensor x
function Tensor:random_(...) end

---x as one axis: a view where its strides allow one.
---@return perigee.Tensor picked [n]
function Tensor:ravel() end

---Every position of an axis `count` times in a row, or each as often as an integer tensor says; without an axis, of
---the flat tensor.
---@param ... integer|perigee.Tensor|{count: integer|perigee.Tensor, axis?: integer} # count, axis
---@return perigee.Tensor
function Tensor:repeat_interleave(...) end

---Makes gradients flow to this tensor.
---@param on? boolean
---@return perigee.Tensor
function Tensor:requires_grad_(on) end

---The same elements in the shape of `other`.
---@param other perigee.Tensor
---@return perigee.Tensor
function Tensor:reshape_as(other) end

---Collects the gradient of a computed tensor in `.grad` too, as leaves do, from the next backward on.
---@return perigee.Tensor
function Tensor:retain_grad() end

---Moves elements by `shifts` positions; what leaves at one end enters at the other. Without axes, of the flat tensor.
---@param ... integer|integer[]|{shifts: integer|integer[], axis?: integer|integer[]} # shifts, axis
---@return perigee.Tensor
function Tensor:roll(...) end

---Turned by `times` quarter turns from the first towards the second of two axes.
---@param ... integer|integer[]|{times?: integer, axes?: integer[]} # times=1, axes={1, 2}
---@return perigee.Tensor
function Tensor:rot90(...) end

---for i, row in t:rows() do: the positions of the first axis.
---@return fun(): integer?, perigee.Tensor
function Tensor:rows() end

---Writes a tensor as a .npy file: `t:save_npy(path)`. bfloat16 is not NumPy's: t:to("float32").
---@param path string
function Tensor:save_npy(path) end

---softmax(q k^T scale + mask) v: what attention is (Vaswani et al. 2017). q is [..., L, E], k [..., S, E], v
---[..., S, V]; the result is [..., L, V]. attn_mask broadcasts to [..., L, S]: bool, true where a query may see a
---key, or numbers that are added to the scores. is_causal: query i sees keys 1 to i, and what the mask allows.
---scale: 1 / sqrt(E) if not given. dropout_p: share of weights dropped, at every call. enable_gqa: q [..., H, L, E]
---may have a multiple of the heads of k and v. A query that may see nothing gets zeros.
---@param ... perigee.Tensor|number|boolean|{k: perigee.Tensor, v: perigee.Tensor, attn_mask?: perigee.Tensor, dropout_p?: number, is_causal?: boolean, scale?: number, enable_gqa?: boolean} # k, v, attn_mask, dropout_p=0, is_causal=false, scale, enable_gqa=false
---@return perigee.Tensor
function Tensor:scaled_dot_product_attention(...) end

---Where values (a tensor or a number) would be put into rows that are in rising order, as counts of the elements
---before them: before equal elements, or behind them with `right=true` or `side="right"`.
---@param ... perigee.Tensor|number|boolean|"left"|"right"|{values: perigee.Tensor|number, right?: boolean, side?: "left"|"right"} # values, right=false, side
---@return perigee.Tensor indices from 0
function Tensor:searchsorted(...) end

---One position of an axis, which disappears.
---@param ... integer|perigee.Size|{axis: integer, index: integer|perigee.Size} # axis, index
---@return perigee.Tensor
function Tensor:select(...) end

---One position of an axis written anew in a copy of x.
---@param ... perigee.Tensor|integer|{src: perigee.Tensor, axis: integer, index: integer} # src, axis, index
---@return perigee.Tensor
function Tensor:select_scatter(...) end

---The size of an axis, or the shape.
---@param axis? integer # axis, from 1, negative from the end
---@return integer|integer[]
function Tensor:size(axis) end

---softmax(-x): exp(-x) / sum(exp(-x)) along an axis.
---@param ... integer|{axis?: integer} # axis=-1
---@return perigee.Tensor
function Tensor:softmin(...) end

---A list of parts of `size` along an axis (the last may be smaller), or of the sizes in a list.
---@param ... integer|integer[]|{size: integer|integer[], axis?: integer} # size, axis=1
---@return perigee.Tensor[]
function Tensor:split(...) end

---Standard deviation and mean.
---@param ... integer|integer[]|boolean|{axis?: integer|integer[], correction?: integer, keepdim?: boolean} # axis, correction=1, keepdim=false
---@return perigee.Tensor deviation
---@return perigee.Tensor mean
function Tensor:std_mean(...) end

---Elements between neighbours along each axis.
---@return integer[]
function Tensor:stride() end

---The same as pg.transpose. Swaps two axes.
---@param ... integer|{a: integer, b: integer} # a, b
---@return perigee.Tensor
function Tensor:swapaxes(...) end

---A matrix transposed; tensors of less than two axes as they are.
---@return perigee.Tensor
function Tensor:t() end

---The elements at the indices of flat x, in the shape of index.
---@param ... perigee.Tensor|{index: perigee.Tensor} # index
---@return perigee.Tensor
function Tensor:take(...) end

---The elements of x at `index` (contents from 0) along an axis; the other axes broadcast. Without an axis, of flat x.
---@param ... perigee.Tensor|integer|{index: perigee.Tensor, axis?: integer} # index, axis
---@return perigee.Tensor
function Tensor:take_along(...) end

---Parts along an axis, as views: as equal as can be where `parts` is their number, else cut behind the numbers of
---elements in the list `parts`.
---@param ... integer|integer[]|{parts: integer|integer[], axis?: integer} # parts, axis=1
---@return perigee.Tensor[]
function Tensor:tensor_split(...) end

---Products summed over pairs of axes: over the last `axes` of x with the first of y where it is a number, else over
---those that its two lists name, pair by pair.
---@param ... perigee.Tensor|integer|integer[][]|{y: perigee.Tensor, axes?: integer|integer[][]} # y, axes=2
---@return perigee.Tensor
function Tensor:tensordot(...) end

---x again and again: `x:tile(2, 3)` is twice along axis 1 and three times along axis 2. Fewer counts than axes are
---for the last axes, more make new axes in front.
---@param ... integer|integer[]|{counts: integer|integer[]} # counts
---@return perigee.Tensor
function Tensor:tile(...) end

---Another device, dtype or order of axes in memory: `t:to("cuda:0")`, `t:to("bfloat16")`,
---`t:to{device="cpu", dtype="float32"}`, `t:to(other)`, `t:to{memory_format="channels_last"}`.
---@param target string|perigee.Tensor|{device?: string, dtype?: perigee.Dtype, memory_format?: perigee.MemoryFormat}
---@param second? string
---@return perigee.Tensor
function Tensor:to(target, second) end

---Nested Lua tables of the elements; a number for a 0-dim tensor.
---@return any
function Tensor:totable() end

---The sum of the main diagonal of a matrix.
---@return perigee.Tensor
function Tensor:trace() end

---Swaps two axes.
---@param ... integer|{a: integer, b: integer} # a, b
---@return perigee.Tensor
function Tensor:transpose(...) end

---The integral of y along an axis by the trapezoidal rule, at points x or `dx` apart.
---@param ... perigee.Tensor|number|integer|{x?: perigee.Tensor, dx?: number, axis?: integer} # x, dx=1, axis=-1
---@return perigee.Tensor
function Tensor:trapezoid(...) end

---A list of the tensor at each position of an axis.
---@param ... integer|{axis?: integer} # axis=1
---@return perigee.Tensor[]
function Tensor:unbind(...) end

---One axis as several of the given sizes, of which one may be -1.
---@param ... integer|integer[]|{axis: integer, sizes: integer[]} # axis, sizes
---@return perigee.Tensor
function Tensor:unflatten(...) end

---Uniform draws from [low, high), into x.
---@param ... number|{low?: number, high?: number} # low=0, high=1
---@return perigee.Tensor x
function Tensor:uniform_(...) end

---The distinct elements of x in rising order, or with `axis` its distinct slices; then, where asked for, the kind of
---each element (`return_inverse`) and the number of each kind (`return_counts`). NaN equals nothing.
---@param ... integer|boolean|{axis?: integer, return_inverse?: boolean, return_counts?: boolean, sorted?: boolean} # axis, return_inverse=false, return_counts=false, sorted=true
---@return perigee.Tensor values, perigee.Tensor? inverse, perigee.Tensor? counts
function Tensor:unique(...) end

---The same, but only neighbours count as equal, and the order stays.
---@param ... integer|boolean|{axis?: integer, return_inverse?: boolean, return_counts?: boolean} # axis, return_inverse=false, return_counts=false
---@return perigee.Tensor values, perigee.Tensor? inverse, perigee.Tensor? counts
function Tensor:unique_consecutive(...) end

---Variance and mean: `x:var_mean{axis = 2, correction = 1}`.
---@param ... integer|integer[]|boolean|{axis?: integer|integer[], correction?: integer, keepdim?: boolean} # axis, correction=1, keepdim=false
---@return perigee.Tensor variance
---@return perigee.Tensor mean
function Tensor:var_mean(...) end

---As reshape: the same elements in another shape, of which one size may be -1.
---@param ... integer|integer[]
---@return perigee.Tensor
function Tensor:view(...) end

---As reshape_as: the same elements in the shape of `other`.
---@param other perigee.Tensor
---@return perigee.Tensor
function Tensor:view_as(other) end

---`condition:where(x, y)`: x where the condition is true, else y. `condition:where()`: positions of the true
---elements, [n, rank], contents from 0.
---@param ... perigee.Tensor|number|boolean|{x?: perigee.Tensor|number|boolean, y?: perigee.Tensor|number|boolean} # x, y
---@return perigee.Tensor
function Tensor:where(...) end

---Writes 0 into every element.
---@return perigee.Tensor
function Tensor:zero_() end

---Forgets the gradient.
function Tensor:zero_grad() end

---Zeros in x's shape, in x's dtype and on its device if not told otherwise.
---@param options? {dtype?: perigee.Dtype, device?: string, requires_grad?: boolean, memory_format?: string}
---@return perigee.Tensor
function Tensor:zeros_like(options) end

---The text of ids. Ids of a part of a text may end in the middle of a character.
---@param ... any
---@return string
function Tokenizer:decode(...) end

---The ids of a text, from 0, as a tensor [tokens] of int64.
---@param ... any
---@return perigee.Tensor
function Tokenizer:encode(...) end

---The id of a token, or nil.
---@param token string # its bytes
---@return integer? id
function Tokenizer:id(token) end

---The ids of a text, from 0, as a list.
---@param ... any
---@return integer[]
function Tokenizer:ids(...) end

---Writes a tokenizer.json, which data.text.bpe and the `tokenizers` package read.
---@param path string
function Tokenizer:save(path) end

---How many tokens it has.
---@return integer
function Tokenizer:size() end

---The bytes of a token.
---@param id integer # from 0
---@return string
function Tokenizer:token(id) end

---Which batch size trains most samples a second: 1, 2, 4, ... are tried, forward and backward, up to `limit` or until
---the device has no room. Answers the smallest that is within 5 percent of the best, and all that was measured. What an
---optimizer keeps comes on top of the memory. The model, its gradients and the random numbers stay as they were.
---@param ... perigee.Layer|{model: perigee.Layer, x: perigee.Tensor, y: perigee.Tensor, loss: perigee.LossName|function|perigee.Layer, limit?: integer, seconds?: number} # model, x, y, loss, limit=1024, seconds=0.1
---@return perigee.BatchSizes
function tune.batch_size(...) end

---The text of ids; of words the list.
---@param ids perigee.Tensor|integer[]
---@return string|string[]
function Vocabulary:decode(ids) end

---The ids of a text, or of a list of words, as a tensor [tokens] of int64.
---@param text string|string[] # a list where the vocabulary is one of words
---@return perigee.Tensor
function Vocabulary:encode(text) end

---The id of a token; of one that it does not have, that of `unknown`, or nil where there is none.
---@param token string
---@return integer? id
function Vocabulary:id(token) end

---Writes it as a JSON file, which data.text.vocabulary reads.
---@param path string
function Vocabulary:save(path) end

---How many tokens it has.
---@return integer
function Vocabulary:size() end

---The token with an id.
---@param id integer # from 0
---@return string
function Vocabulary:token(id) end

return pg
