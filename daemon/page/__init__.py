"""The page that shows the memory grow: our static files, a library's from its package, and the login to them on TCP.

The page itself uses the API's routes as any client does; `routes` adds what only a page needs.
"""
