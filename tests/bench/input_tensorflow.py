# SPDX-License-Identifier: Apache-2.0
# input_tensorflow.py FOLDER BATCH WORKERS: the same as input.lua with tf.data, which decodes the part that is wanted alone;
# images a second, and milliseconds of processor time an image.
import glob
import sys
import time

import tensorflow as tf

folder, batch, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
paths = sorted(glob.glob(folder + "/*/*.jpg"))
mean = tf.constant([0.485, 0.456, 0.406])
std = tf.constant([0.229, 0.224, 0.225])


def one(path):
    contents = tf.io.read_file(path)
    shape = tf.image.extract_jpeg_shape(contents)
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape, tf.zeros([0, 0, 4]), area_range=(0.08, 1.0), aspect_ratio_range=(3 / 4, 4 / 3), max_attempts=10,
        use_image_if_no_bounding_boxes=True)
    window = tf.stack([begin[0], begin[1], size[0], size[1]])
    x = tf.image.decode_and_crop_jpeg(contents, window, channels=3)
    x = tf.image.resize(x, (224, 224), antialias=True)
    x = tf.image.random_flip_left_right(x)
    return tf.transpose((x / 255 - mean) / std, (2, 0, 1))


options = tf.data.Options()
options.threading.private_threadpool_size = workers
images = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths))
images = images.map(one, num_parallel_calls=workers).batch(batch).prefetch(4).with_options(options)
for _ in range(4):
    start, used, n = time.perf_counter(), time.process_time(), 0
    for x in images:
        n += len(x)
    rate = n / (time.perf_counter() - start)
    used = (time.process_time() - used) / n
print(rate, used * 1e3)
