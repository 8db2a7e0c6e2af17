# SPDX-License-Identifier: Apache-2.0
"""Prints what TensorBoard reads in a folder of event files, a line a fact, for events_test.lua."""
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.plugins.pr_curve import plugin_data_pb2 as pr_curve_pb2
from tensorboard.util import tensor_util

run = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0, "histograms": 0})
run.Reload()
tags = run.Tags()
for tag in sorted(tags["scalars"]):
    print("scalar", tag, *(f"{e.step}={e.value:.6g}" for e in run.Scalars(tag)))
for tag in sorted(tags["histograms"]):
    for e in run.Histograms(tag):
        h = e.histogram_value
        print(f"histogram {tag} {e.step} {h.min:g} {h.max:g} {h.num:g} {h.sum:g} {h.sum_squares:g} "
              f"{len(h.bucket)} {len(h.bucket_limit)} {sum(h.bucket):g}")
for tag in sorted(tags["tensors"]):
    plugin = run.SummaryMetadata(tag).plugin_data
    for e in run.Tensors(tag):
        values = tensor_util.make_ndarray(e.tensor_proto)
        if plugin.plugin_name == "images":
            kinds = ",".join("png" if v.startswith(b"\x89PNG") else "?" for v in values[2:])
            print("images", tag, e.step, values[0].decode(), values[1].decode(), kinds)
        elif plugin.plugin_name == "text":
            print("text", tag, e.step, values[0].decode())
        elif plugin.plugin_name == "pr_curves":
            content = pr_curve_pb2.PrCurvePluginData.FromString(plugin.content)
            print("curve", tag, e.step, content.num_thresholds, *(f"{v:g}" for v in values.flatten()))
for node in run.Graph().node:
    line = node.attr["line"].s.decode().rpartition("/")[2]
    shapes = ["x".join(str(d.size) for d in s.dim) for s in node.attr["_output_shapes"].list.shape]
    print("node", node.name, node.op, ",".join(node.input), node.device, line or "-", *shapes)
for tag, content in sorted(run.PluginTagToContent("hparams").items()):
    data = plugin_data_pb2.HParamsPluginData.FromString(content)
    kind = data.WhichOneof("data")
    if kind == "experiment":
        print("hparams", *(f"{i.name}:{i.type}" for i in data.experiment.hparam_infos),
              *(i.name.tag for i in data.experiment.metric_infos))
    elif kind == "session_start_info":
        values = data.session_start_info.hparams
        print("hparams values", *(f"{k}={getattr(v, v.WhichOneof('kind'))}" for k, v in sorted(values.items())))
    else:
        print("hparams end", data.session_end_info.status)
