"""Services for documents: adding, listing and showing them, their states, and a note about documents not indexed yet."""
