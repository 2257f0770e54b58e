"""Access control: identifies the client of a request, checks its rights, and limits each request to what the client may see.

Every request passes this package once, whatever its route.
"""
