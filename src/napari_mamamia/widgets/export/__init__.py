"""The Export page: write the workspace's masks to other formats."""
