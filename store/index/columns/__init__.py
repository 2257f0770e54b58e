"""What the index knows of texts, by row: mapped from a checkpoint's files, and beside that what came since, as objects.

So a start reads none of it, and the system can drop what nobody asks for.
"""
