"""Speed of prudent as ratios against named peers: `python -m benchmarks.ratios`."""
