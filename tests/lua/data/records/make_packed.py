# SPDX-License-Identifier: Apache-2.0
"""Writes the compressed files of this folder: python make_packed.py FOLDER tensorflow, then with webdataset."""
import sys

import numpy as np

folder, package = sys.argv[1:]
if package == "tensorflow":
    import tensorflow as tf

    for kind, ending in (("GZIP", "gzip"), ("ZLIB", "zlib")):
        with tf.io.TFRecordWriter(f"{folder}/{ending}.tfrecord", options=kind) as writer:
            for i in range(4):
                feature = {
                    "id": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                    "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"number {i}".encode()])),
                    "weights": tf.train.Feature(float_list=tf.train.FloatList(value=[i + 0.5, -i])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
else:
    import webdataset as wds

    for name in ("shard.tar", "shard.tar.gz"):
        with wds.TarWriter(f"{folder}/{name}") as writer:
            for i in range(3):
                image = np.full((4, 6, 3), 50 * i, np.uint8)
                writer.write({
                    "__key__": f"deep/{'long' * 30 if i == 2 else 'short'}-{i}",
                    "png": image,
                    "cls": i,
                    "json": {"name": f"number {i}", "list": [i, None]},
                    "w.npy": np.array([i, 0.5], np.float32),
                    "txt": f"text {i}",
                })
