"""The network of the learned brush as torch trains it."""

import torch
from torch import Tensor, nn

from napari_mamamia.smartpaint.learned.patch import CHANNELS, MASK

WIDTHS = (8, 24, 48)


class EditNetwork(nn.Module):
    """A U-shape of three levels; two convolutions of 3 x 3 x 3 at each level, down and up."""

    def __init__(self) -> None:
        super().__init__()
        first, second, third = WIDTHS

        def convolve(n_in: int, n_out: int) -> nn.Conv3d:
            return nn.Conv3d(n_in, n_out, 3, padding=1)

        self.down1a, self.down1b = convolve(CHANNELS, first), convolve(first, first)
        self.down2a, self.down2b = convolve(first, second), convolve(second, second)
        self.low_a, self.low_b = convolve(second, third), convolve(third, third)
        self.up2a, self.up2b = convolve(second + third, second), convolve(second, second)
        self.up1a, self.up1b = convolve(first + second, first), convolve(first, first)
        self.out, self.skip = nn.Conv3d(first, 1, 1), nn.Conv3d(CHANNELS, 1, 1, bias=False)
        for layer in self.modules():
            if isinstance(layer, nn.Conv3d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.skip.weight)
        with torch.no_grad():
            self.skip.weight[0, MASK] = 2.0  # it begins as the mask so far

    def forward(self, patch: Tensor) -> Tensor:
        """Return logits ``(batch, z, y, x)`` of patches ``(batch, channel, z, y, x)``."""
        fine = torch.relu(self.down1b(torch.relu(self.down1a(patch))))
        middle = nn.functional.max_pool3d(fine, 2)
        middle = torch.relu(self.down2b(torch.relu(self.down2a(middle))))
        low = nn.functional.max_pool3d(middle, 2)
        low = torch.relu(self.low_b(torch.relu(self.low_a(low))))
        low = nn.functional.interpolate(low, scale_factor=2, mode="nearest")
        middle = torch.relu(self.up2a(torch.cat([low, middle], 1)))
        middle = torch.relu(self.up2b(middle))
        middle = nn.functional.interpolate(middle, scale_factor=2, mode="nearest")
        fine = torch.relu(self.up1a(torch.cat([middle, fine], 1)))
        fine = torch.relu(self.up1b(fine))
        return (self.out(fine) + self.skip(patch))[:, 0]
