// Keyboard, wheel and pointer control of the graph. Arrow keys move it, plus and minus zoom, 0 fits it.

export function addGraphControls(canvas, figure) {
  const step = 0.1;
  const moves = {
    ArrowLeft: [1, -step, 0],
    ArrowRight: [1, step, 0],
    ArrowUp: [1, 0, step],
    ArrowDown: [1, 0, -step],
    "+": [0.75],
    "=": [0.75],
    "-": [1 / 0.75],
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "0") figure.fit();
    else if (moves[event.key]) figure.zoom(...moves[event.key]);
    else return;
    event.preventDefault();
  });
  // The wheel scrolls the page until the graph has the focus.
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) event.stopImmediatePropagation();
    },
    { capture: true },
  );
  // Hide edges only after the library has recognised a drag: during a redraw it takes a slow pointer for a long press.
  let from = null;
  canvas.addEventListener(
    "pointerdown",
    (event) => {
      canvas.focus({ preventScroll: true });
      from = event;
    },
    { capture: true },
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
      if (from && Math.hypot(event.clientX - from.clientX, event.clientY - from.clientY) > 20) figure.rest(false);
    },
    { capture: true },
  );
  for (const end of ["pointerup", "pointercancel"]) {
    window.addEventListener(end, () => {
      from = null;
      figure.rest(true);
    });
  }
}
