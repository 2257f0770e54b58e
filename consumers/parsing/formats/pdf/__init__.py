"""PDF by PDFium (pypdfium2): the engine of Chromium, a tenth of pdfminer's time, and it repairs what browsers repair."""
