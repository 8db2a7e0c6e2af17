# SPDX-License-Identifier: Apache-2.0
"""Writes the files of this folder with the package `tfrecord`: python make.py FOLDER."""
import sys

import tfrecord

folder = sys.argv[1]
writer = tfrecord.TFRecordWriter(folder + "/examples.tfrecord")
for i in range(5):
    writer.write({
        "id": (i, "int"),
        "big": (-(2**63) + i, "int"),
        "name": (f"number {i}".encode(), "byte"),
        "weights": ([i + 0.5, -i, 1e-3], "float"),
        "tokens": (list(range(10, 10 + i + 1)), "int"),
    })
writer.close()
