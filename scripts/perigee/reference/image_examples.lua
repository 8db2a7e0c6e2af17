-- SPDX-License-Identifier: Apache-2.0
-- Examples of pg.image.

return {
  ["data.image_folder"] = "local folder = os.tmpname() .. \".d\"\nos.execute(\"mkdir -p \" .. folder .. \"/cat\")\n" ..
    "pg.image.save(folder .. \"/cat/1.png\", pg.ones{4, 6, 3, dtype=\"uint8\"})\n" ..
    "local ds = data.image_folder(folder)\nprint(#ds, ds[1].x.shape, ds:class_name(ds[1].y))",
  ["dataset:class_name"] = "local folder = os.tmpname() .. \".d\"\nos.execute(\"mkdir -p \" .. folder .. \"/cat\")\n" ..
    "pg.image.save(folder .. \"/cat/1.png\", pg.ones{4, 6, 3, dtype=\"uint8\"})\n" ..
    "print(data.image_folder(folder):class_name(0))",
  ["image.sides"] = "local path = os.tmpname() .. \".png\"\npg.image.save(path, pg.ones{4, 6, 1, dtype=\"uint8\"})\n" ..
    "print(pg.image.sides(path))",
  ["image.resize"] = "local x = (pg.rand{6, 8, 3} * 255):to\"uint8\"\n" ..
    "print(pg.image.resize(x, {3, 4}, {filter=\"lanczos\"}).shape)",
  ["image.crop"] = "print(pg.image.crop(pg.rand{6, 8, 3}, 1, 2, 4, 5).shape)",
  ["image.center_crop"] = "print(pg.image.center_crop(pg.rand{6, 8, 3}, 4).shape)",
  ["image.pad"] = "print(pg.image.pad(pg.rand{6, 8, 3}, {1, 2}, {value=0.5}).shape)",
  ["image.flip_left_right"] = "print(pg.image.flip_left_right(pg.arange(6):float():reshape(2, 3, 1)):squeeze())",
  ["image.flip_up_down"] = "print(pg.image.flip_up_down(pg.arange(6):float():reshape(2, 3, 1)):squeeze())",
  ["image.affine"] = "print(pg.image.affine(pg.rand{6, 8, 3}, {0.5, 0, 0, 0, 0.5, 0}, {size={12, 16}}).shape)",
  ["image.rotate"] = "print(pg.image.rotate(pg.rand{6, 8, 3}, 90, {expand=true}).shape)",
  ["image.erase"] = "print(pg.image.erase(pg.ones{3, 4, 1}, 1, 1, 2, 2):squeeze())",
  ["image.brightness"] = "print(pg.image.brightness((pg.rand{6, 8, 3} * 255):to\"uint8\", 1.2).dtype)",
  ["image.contrast"] = "print(pg.image.contrast((pg.rand{6, 8, 3} * 255):to\"uint8\", 0.5).shape)",
  ["image.saturation"] = "print(pg.image.saturation((pg.rand{6, 8, 3} * 255):to\"uint8\", 2).shape)",
  ["image.hue"] = "print(pg.image.hue(pg.tensor{{{1, 0, 0}}}, 1 / 3))",
  ["image.grey"] = "print(pg.image.grey((pg.rand{6, 8, 3} * 255):to\"uint8\").shape)",
  ["image.sharpness"] = "print(pg.image.sharpness((pg.rand{6, 8, 3} * 255):to\"uint8\", 2).shape)",
  ["image.posterize"] = "print(pg.image.posterize((pg.rand{6, 8, 3} * 255):to\"uint8\", 2).shape)",
  ["image.solarize"] = "print(pg.image.solarize(pg.tensor({{{10, 200, 90}}}, {dtype=\"uint8\"})))",
  ["image.autocontrast"] = "print(pg.image.autocontrast((pg.rand{6, 8, 3} * 255):to\"uint8\"):max())",
  ["image.equalize"] = "print(pg.image.equalize((pg.rand{6, 8, 3} * 255):to\"uint8\").shape)",
  ["image.normalize"] = "print(pg.image.normalize{pg.rand{6, 8, 3}, mean=0.5, std=0.25}.shape)",
  ["image.to_float"] = "print(pg.image.to_float{(pg.rand{6, 8, 3} * 255):to\"uint8\", mean={0.5, " ..
    "0.5, 0.5}, std=0.25, channels_first=true}.shape)",
  ["image.random_crop"] = "print(pg.image.random_crop{pg.rand{6, 8, 3}, 4, seed=1, epoch=2, sample=5}.shape)",
  ["image.random_resized_crop"] = "print(pg.image.random_resized_crop{pg.rand{6, 8, 3}, 4, seed=1, " ..
    "epoch=2, sample=5}.shape)",
  ["image.random_rectangle"] = "print(#pg.image.random_rectangle{375, 500, seed=1, sample=5})",
  ["image.random_flip"] = "print(pg.image.random_flip{pg.rand{6, 8, 3}, seed=1, epoch=2, sample=5}.shape)",
  ["image.color_jitter"] = "print(pg.image.color_jitter{(pg.rand{6, 8, 3} * 255):to\"uint8\", " ..
    "brightness=0.4, hue=0.1, seed=1, sample=5}.shape)",
  ["image.random_erase"] = "print(pg.image.random_erase{pg.rand{6, 8, 3}, seed=1, sample=5}.shape)",
  ["image.rand_augment"] = "print(pg.image.rand_augment{(pg.rand{6, 8, 3} * 255):to\"uint8\", " ..
    "count=2, magnitude=9, seed=1, sample=5}.shape)",
  ["image.mixup"] = "local x, y = pg.image.mixup{pg.rand{4, 6, 8, 3}, pg.tensor({0, 1, 2, 1}, " ..
    "{dtype=\"int64\"}), classes=3, seed=1}\n" ..
    "print(x.shape, y.shape)",
  ["image.cutmix"] = "local x, y = pg.image.cutmix{pg.rand{4, 6, 8, 3}, pg.tensor({0, 1, 2, 1}, " ..
    "{dtype=\"int64\"}), classes=3, seed=1}\n" ..
    "print(x.shape, y.shape)",
  ["image.grid"] = "print(pg.image.grid(pg.rand{5, 6, 8, 3}).shape)",
  ["image.text"] = "print(pg.image.text{pg.arange(32):float():reshape(4, 8, 1) / 32, color=false})",
  ["image.show"] = "pg.image.show(pg.ones{2, 4, 1})",
}
