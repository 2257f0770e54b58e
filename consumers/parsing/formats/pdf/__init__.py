"""PDF by PDFium (pypdfium2), Chromium's engine: ten times as fast as pdfminer, and repairs damaged files as Chromium does."""
