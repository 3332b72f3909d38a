"""Draw the card that other sites show beside a link to ours: ``python docs/make_card.py``."""

import io
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

from ccot import CCOT
from ccot.datasets import load_simulated
from ccot.plotting import plot_blocks

CARD = Path(__file__).parent / "_static" / "card.png"
SIZE = (1200, 630)  # what the sites that show cards ask for


def main() -> None:
    matrix = load_simulated("D2", random_state=0).data
    model = CCOT(random_state=0).fit(matrix)
    figure = plt.figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor="white")
    for left, before in ((0.06, True), (0.53, False)):
        axes = figure.add_axes((left, 0.07, 0.41, 0.62))
        plot_blocks(model, matrix, before=before, ax=axes, colorbar=False, max_pixels=240)
        axes.set_axis_off()
        axes.set_title("")
    figure.text(0.06, 0.86, "ccot", fontsize=44, weight="bold", va="center")
    line = "co-clustering through optimal transport: blocks, and how many there are"
    figure.text(0.06, 0.755, line, fontsize=19, va="center")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=100)
    buffer.seek(0)
    image = Image.open(buffer).convert("RGB")
    assert image.size == SIZE
    image.quantize(96, dither=Image.Dither.NONE).save(CARD, optimize=True)
    print(f"{CARD.name}: {CARD.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
