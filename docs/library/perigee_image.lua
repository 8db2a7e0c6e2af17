---@meta _
-- SPDX-License-Identifier: Apache-2.0
-- Made by scripts/dev/docs. Editors complete `require "perigee"` from it: put its folder into Lua.workspace.library.

---@class perigee.image
local image = {}

---A picture moved, turned, sheared and scaled, as Pillow's Image.transform does it with AFFINE: of uint8 the same bits.
---@param ... perigee.Tensor|number[]|{image: perigee.Tensor, matrix: number[], size?: integer|integer[], filter?: "nearest"|"bilinear"|"bicubic", fill?: number} # image, matrix, size, filter=nearest, fill=0
---@return perigee.Tensor
function image.affine(...) end

---A uint8 picture of which each channel goes from 0 to 255.
---@param ... perigee.Tensor|{image: perigee.Tensor} # image
---@return perigee.Tensor
function image.autocontrast(...) end

---A picture that is `factor` times as bright.
---@param ... perigee.Tensor|number|{image: perigee.Tensor, factor: number} # image, factor
---@return perigee.Tensor
function image.brightness(...) end

---The part in the middle, where torchvision has it: a view.
---@param ... perigee.Tensor|integer|integer[]|{image: perigee.Tensor, size: integer|integer[]} # image, size
---@return perigee.Tensor
function image.center_crop(...) end

---A picture with other brightness, contrast, saturation and hue, changed in any order.
---@param ... perigee.Tensor|{image: perigee.Tensor, brightness?: number, contrast?: number, saturation?: number, hue?: number, seed: integer, epoch?: integer, sample?: integer} # image, brightness=0, contrast=0, saturation=0, hue=0, seed, epoch=1, sample=1
---@return perigee.Tensor
function image.color_jitter(...) end

---A picture whose colours are `factor` times as far from the mean of its luma. It has 1 channel or 3.
---@param ... perigee.Tensor|number|{image: perigee.Tensor, factor: number} # image, factor
---@return perigee.Tensor
function image.contrast(...) end

---The part of `height` rows and `width` columns behind the first `top` rows and `left` columns: a view.
---@param ... perigee.Tensor|integer|{image: perigee.Tensor, top: integer, left: integer, height: integer, width: integer} # image, top, left, height, width
---@return perigee.Tensor
function image.crop(...) end

---Pictures with a rectangle of the picture before them in the batch, and labels by the areas (Yun et al., 2019).
---`alpha` is 1 if not given. Answers images, of their dtype, and probabilities [n, classes].
---@param ... perigee.Tensor|{images: perigee.Tensor, labels: perigee.Tensor, alpha?: number, classes?: integer, channels_first?: boolean, seed: integer, epoch?: integer, sample?: integer} # images, labels, alpha, classes, channels_first=false, seed, epoch=1, sample=1
---@return perigee.Tensor
---@return perigee.Tensor
function image.cutmix(...) end

---A uint8 picture of which each channel has all values about equally often.
---@param ... perigee.Tensor|{image: perigee.Tensor} # image
---@return perigee.Tensor
function image.equalize(...) end

---A picture with a rectangle filled with `value`.
---@param ... perigee.Tensor|integer|{image: perigee.Tensor, top: integer, left: integer, height: integer, width: integer, value?: number} # image, top, left, height, width, value=0
---@return perigee.Tensor
function image.erase(...) end

---A picture with its columns in reverse order.
---@param ... perigee.Tensor|{image: perigee.Tensor} # image
---@return perigee.Tensor
function image.flip_left_right(...) end

---A picture with its rows in reverse order.
---@param ... perigee.Tensor|{image: perigee.Tensor} # image
---@return perigee.Tensor
function image.flip_up_down(...) end

---A picture in grey: Pillow's luma.
---@param ... perigee.Tensor|{image: perigee.Tensor, channels?: integer} # image, channels=1
---@return perigee.Tensor
function image.grey(...) end

---A batch as one uint8 picture, in rows: `pg.image.save("batch.png", pg.image.grid(x))`.
---@param ... perigee.Tensor|{images: perigee.Tensor, columns?: integer, padding?: integer, value?: number} # images, columns, padding=2, value=0
---@return perigee.Tensor
function image.grid(...) end

---A picture whose hues are turned: red becomes green by a third. Of uint8 as torchvision does it by Pillow's HSV. Grey
---pictures stay as they are.
---@param ... perigee.Tensor|number|{image: perigee.Tensor, turn: number} # image, turn
---@return perigee.Tensor
function image.hue(...) end

---Reads an image as a uint8 tensor [rows, columns, channels]. Channels are grey; grey and opacity; red, green and blue;
---or these and opacity, as in the file; palettes become colours, inks (CMYK) red, green and blue, 16 bits 8. What a
---camera noted of how it was held is not looked at. A damaged or cut file, and an animation, is an error with the code
---"data_loss" that names the file. With `crop` and `size` it is that part, resized as image.resize does it.
---@param ... string|{from: string, channels?: integer, scale?: integer, crop?: integer[], size?: integer|integer[], filter?: "nearest"|"bilinear"|"bicubic"|"lanczos"|"area", draft?: boolean, max_pixels?: integer} # from, channels, scale, crop, size, filter=bilinear, draft=false, max_pixels
---@return perigee.Tensor
function image.load(...) end

---Pictures and labels mixed with those before them in the batch, by a share that is drawn (Zhang et al., 2017). Images
---are floating ones; `alpha` is 0.2 if not given. Answers images and probabilities [n, classes].
---@param ... perigee.Tensor|{images: perigee.Tensor, labels: perigee.Tensor, alpha?: number, classes?: integer, seed: integer, epoch?: integer, sample?: integer} # images, labels, alpha, classes, seed, epoch=1, sample=1
---@return perigee.Tensor
---@return perigee.Tensor
function image.mixup(...) end

---(image - mean) / std of a floating picture, by channels.
---@param ... perigee.Tensor|{image: perigee.Tensor, mean?: number|number[], std?: number|number[]} # image, mean, std
---@return perigee.Tensor
function image.normalize(...) end

---A picture with more rows and columns around it.
---@param ... perigee.Tensor|integer|integer[]|{image: perigee.Tensor, padding: integer|integer[], value?: number, mode?: "constant"|"reflect"|"replicate"|"circular"} # image, padding, value=0, mode=constant
---@return perigee.Tensor
function image.pad(...) end

---A uint8 picture with fewer bits a sample.
---@param ... perigee.Tensor|integer|{image: perigee.Tensor, bits: integer} # image, bits
---@return perigee.Tensor
function image.posterize(...) end

---A uint8 picture changed in ways that are drawn: moved, turned, sheared, sharpened, of other colours (Cubuk et al.,
---2019), each as torchvision does it.
---@param ... perigee.Tensor|{image: perigee.Tensor, count?: integer, magnitude?: integer, filter?: "nearest"|"bilinear"|"bicubic", fill?: number, seed: integer, epoch?: integer, sample?: integer} # image, count=2, magnitude=9, filter=nearest, fill=0, seed, epoch=1, sample=1
---@return perigee.Tensor
function image.rand_augment(...) end

---A part of a picture, at any place.
---@param ... perigee.Tensor|integer|integer[]|{image: perigee.Tensor, size: integer|integer[], seed: integer, epoch?: integer, sample?: integer} # image, size, seed, epoch=1, sample=1
---@return perigee.Tensor
function image.random_crop(...) end

---A picture with a rectangle erased, or as it is (Zhong et al., 2017).
---@param ... perigee.Tensor|{image: perigee.Tensor, probability?: number, scale?: number[], ratio?: number[], value?: number, seed: integer, epoch?: integer, sample?: integer} # image, probability=0.5, scale={0.02, 0.33}, ratio={0.3, 3.3}, value=0, seed, epoch=1, sample=1
---@return perigee.Tensor
function image.random_erase(...) end

---A picture, or its mirror image.
---@param ... perigee.Tensor|{image: perigee.Tensor, probability?: number, direction?: "left_right"|"up_down", seed: integer, epoch?: integer, sample?: integer} # image, probability=0.5, direction=left_right, seed, epoch=1, sample=1
---@return perigee.Tensor
function image.random_flip(...) end

---The rectangle {top, left, height, width} that random_resized_crop takes of a picture of that size: image.load can
---decode it alone.
---@param ... integer|{rows: integer, columns: integer, scale?: number[], ratio?: number[], seed: integer, epoch?: integer, sample?: integer} # rows, columns, scale={0.08, 1}, ratio={0.75, 1.3333333333333}, seed, epoch=1, sample=1
---@return number[]
function image.random_rectangle(...) end

---A part of a picture, of any place, size and shape, resized: how pictures are usually trained on.
---@param ... perigee.Tensor|integer|integer[]|{image: perigee.Tensor, size: integer|integer[], scale?: number[], ratio?: number[], filter?: "nearest"|"bilinear"|"bicubic"|"lanczos"|"area", seed: integer, epoch?: integer, sample?: integer} # image, size, scale={0.08, 1}, ratio={0.75, 1.3333333333333}, filter=bilinear, seed, epoch=1, sample=1
---@return perigee.Tensor
function image.random_resized_crop(...) end

---A picture, or a part of it, in another size, to Pillow's numbers: of uint8 the same bits. `area` is Pillow's BOX.
---Channels are resized each for itself. Differentiable in floating pictures.
---@param ... perigee.Tensor|integer|integer[]|{image: perigee.Tensor, size: integer|integer[], filter?: "nearest"|"bilinear"|"bicubic"|"lanczos"|"area", box?: number[], antialias?: boolean} # image, size, filter=bilinear, box, antialias=true
---@return perigee.Tensor
function image.resize(...) end

---A picture turned around its middle, to Pillow's numbers.
---@param ... perigee.Tensor|number|{image: perigee.Tensor, degrees: number, filter?: "nearest"|"bilinear"|"bicubic", expand?: boolean, fill?: number} # image, degrees, filter=nearest, expand=false, fill=0
---@return perigee.Tensor
function image.rotate(...) end

---A picture whose colours are `factor` times as far from their grey. Grey pictures stay as they are.
---@param ... perigee.Tensor|number|{image: perigee.Tensor, factor: number} # image, factor
---@return perigee.Tensor
function image.saturation(...) end

---Writes a uint8 image. Atomic: the file is the old one or the whole new one. A PNG has 1 to 4 channels and a WebP 3 or
---4; both are read as what was written. A JPEG has 1 or 3 channels and is read as something that looks alike.
---@param ... string|perigee.Tensor|{path: string, image: perigee.Tensor, quality?: integer} # path, image, quality
function image.save(...) end

---A picture whose edges are `factor` times as sharp: 0 is smoothed by a window of 3 x 3.
---@param ... perigee.Tensor|number|{image: perigee.Tensor, factor: number} # image, factor
---@return perigee.Tensor
function image.sharpness(...) end

---Prints a picture, or a batch of them as a grid, into the terminal: as pixels where it shows such (kitty, Ghostty,
---WezTerm, Konsole; sixels in foot, mlterm, iTerm2 and others), else in characters, in colours where it is a terminal.
---@param ... perigee.Tensor|{image: perigee.Tensor, width?: integer, protocol?: "auto"|"blocks"|"sixel"|"kitty"} # image, width, protocol=auto
function image.show(...) end

---Rows and columns of an image's file, from its header alone.
---@param ... string|{from: string} # from
---@return integer rows
---@return integer columns
function image.sides(...) end

---A picture whose brighter samples are turned around.
---@param ... perigee.Tensor|number|{image: perigee.Tensor, threshold?: number} # image, threshold=128
---@return perigee.Tensor
function image.solarize(...) end

---A picture, or a batch of them as a grid, as text: a character shows two pixels, one above the other.
---@param ... perigee.Tensor|{image: perigee.Tensor, width?: integer, color?: boolean} # image, width=80, color=true
---@return string
function image.text(...) end

---A uint8 picture as numbers from 0 to 1 for a model, less `mean` and divided by `std`.
---@param ... perigee.Tensor|{image: perigee.Tensor, mean?: number|number[], std?: number|number[], channels_first?: boolean, dtype?: perigee.Dtype} # image, mean, std, channels_first=false, dtype=float32
---@return perigee.Tensor
function image.to_float(...) end
