"""Machine descriptions: a TOML file each, which `load.load_target` reads into a `target.Target`."""
