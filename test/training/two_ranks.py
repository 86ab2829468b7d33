"""Started by a launcher: trains as the configuration file says, one process of several."""

import sys

from groot_ros.cli.finetune import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
