# SPDX-License-Identifier: Apache-2.0
"""Reads a file with the package `tfrecord` and prints its records: python check.py FILE."""
import sys

from tfrecord.reader import tfrecord_loader

for record in tfrecord_loader(sys.argv[1], None):
    print({k: v.tolist() if hasattr(v, "tolist") else v for k, v in sorted(record.items())})
