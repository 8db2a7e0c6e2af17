# SPDX-License-Identifier: Apache-2.0
"""Reads a file of data.write_records with another package and prints it: python check_packed.py FILE. A .tfrecord by
tensorflow (.gz compressed), an archive by webdataset."""
import sys

path = sys.argv[1]
if ".tar" in path or path.endswith(".tgz"):
    import webdataset as wds

    for sample in wds.WebDataset(path, shardshuffle=False).decode("rgb8"):
        print({k: v.tolist() if hasattr(v, "tolist") else v for k, v in sorted(sample.items()) if k[:2] != "__"},
              sample["__key__"])
else:
    import tensorflow as tf

    for record in tf.data.TFRecordDataset(path, compression_type="GZIP" if path.endswith(".gz") else ""):
        print(record.numpy())
