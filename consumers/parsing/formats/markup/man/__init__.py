"""Man pages: roff with the macros man(7) or mdoc(7). No maintained Python library parses them."""
