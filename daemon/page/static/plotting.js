// Shared by the graph and the charts: the palette's colours, and a plain figure.

export const Plot = () => window.Bokeh.Plotting;
export const Source = (data) => new window.Bokeh.ColumnDataSource({ data });
export const Range = (start, end) => new window.Bokeh.Range1d({ start, end });

const FONT = 'system-ui, "Segoe UI", Roboto, sans-serif';

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Returns a colour between two colours #rrggbb; `share` is from 0 to 1.
export function between(from, to, share) {
  const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map((i) => Math.round(part(from, i) + (part(to, i) - part(from, i)) * share));
  return "#" + mixed.map((value) => value.toString(16).padStart(2, "0")).join("");
}

export function dress(figure) {
  Object.assign(figure, {
    background_fill_color: null,
    border_fill_color: null,
    outline_line_color: null,
  });
  for (const axis of [...figure.below, ...figure.left]) {
    Object.assign(axis, {
      axis_line_color: colour("line"),
      major_tick_line_color: colour("line"),
      minor_tick_line_color: null,
      major_label_text_color: colour("soft"),
      major_label_text_font: FONT,
      major_label_text_font_size: "11px",
    });
  }
  for (const grid of figure.center) {
    if ("grid_line_color" in grid) grid.grid_line_color = colour("line");
    if ("label_text_color" in grid) {
      Object.assign(grid, {
        label_text_color: colour("ink"),
        label_text_font: FONT,
        label_text_font_size: "11px",
        background_fill_color: colour("card"),
        background_fill_alpha: 0.7,
        border_line_color: null,
      });
    }
  }
}

// Calls `dress` whenever the palette changes.
export function whenPaletteChanges(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
