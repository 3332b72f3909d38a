"""Write made-up ratings, one a line: ``python -m tools.example_ratings ratings.csv``."""

import random
import sys
from pathlib import Path


def main() -> None:
    chance = random.Random(0)
    lines = ["user,item,rating"]
    for user in range(60):
        for item in range(40):
            if chance.random() < 0.4:
                liked = user % 2 == item % 2
                lines.append(
                    f"user {user},film {item},{chance.choice((4, 5) if liked else (1, 2))}"
                )
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
