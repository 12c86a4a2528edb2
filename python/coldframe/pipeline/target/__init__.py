"""Where a migration ends: files, and the tables of Delta and Iceberg over them."""
