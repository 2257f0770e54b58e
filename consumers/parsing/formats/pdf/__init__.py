"""PDF by PDFium (pypdfium2), the engine of Chromium: ten times as fast as pdfminer, with Chromium's repair of damaged files."""
