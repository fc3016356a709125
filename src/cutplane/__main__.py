"""``python -m cutplane`` is the command ``cutplane``."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
