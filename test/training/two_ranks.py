"""Started by a launcher: trains as the configuration file says, one process of several."""

import os
import sys

from groot_ros.cli.finetune import main

if __name__ == "__main__":
    print(f"one of {os.environ['WORLD_SIZE']} ranks", flush=True)
    sys.exit(main(sys.argv[1:]))
