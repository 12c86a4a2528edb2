"""What a Hive estate knows of itself beside its files."""
