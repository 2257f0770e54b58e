"""HTTP details that clients and the API share: paths, media types, problem documents, client behaviour, same-origin check."""
