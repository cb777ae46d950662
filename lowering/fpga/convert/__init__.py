"""From functions of the braid dialect to designs of braid_hls."""
