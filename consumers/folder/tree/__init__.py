"""What lies in the folder on disk: its files and links, which of them are followed, and whether its drives are mounted."""
