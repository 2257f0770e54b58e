"""The page that shows the memory grow: static files of our own, a library's from its package, and the door to them on TCP.

The page itself uses the API's routes as any client does; `routes` adds what only a page needs.
"""
