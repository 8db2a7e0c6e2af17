# SPDX-License-Identifier: Apache-2.0
"""The items of vision.lua for PyTorch, for model_step_torch.py."""
import torch
from torch import nn

from models_torch import fused


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12544, 128), nn.ReLU(), nn.Linear(128, 10))


class Block(nn.Module):
    def __init__(self, inputs, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.short = None
        if stride != 1 or inputs != out:
            self.short = nn.Sequential(nn.Conv2d(inputs, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu_()))
        return y.add_(x if self.short is None else self.short(x)).relu_()


def resnet18():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, out in enumerate((64, 128, 256, 512)):
        for i in range(2):
            layers.append(Block(inputs, out, 2 if stage > 0 and i == 0 else 1))
            inputs = out
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def images(*shape):
    return torch.rand(*shape).to(memory_format=torch.channels_last)


def items(train, infer):
    def convnet_step():
        model = convnet()
        return train(model, torch.rand(64, 1, 28, 28), torch.randint(0, 10, (64,)),
                     fused(torch.optim.Adam, model.parameters(), lr=1e-3))

    def resnet_step():
        model = resnet18()
        return train(model, images(16, 3, 224, 224), torch.randint(0, 1000, (16,)),
                     fused(torch.optim.SGD, model.parameters(), lr=0.1, momentum=0.9))

    return {
        "convnet_step": convnet_step, "resnet_step": resnet_step,
        "convnet_infer": lambda: infer(convnet(), torch.rand(1, 1, 28, 28)),
        "resnet_infer": lambda: infer(resnet18(), images(1, 3, 224, 224)),
    }
