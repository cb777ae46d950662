"""Machine descriptions (TOML) and their loader."""
