// The time slider: the memory's commits, then "now".
import { byId, clock, number } from "./text.js";

const CALM_MS = 350;

export class TimeSlider {
  constructor(changed) {
    this.slider = byId("moment");
    this.text = byId("moment-text");
    this.back = byId("moment-now");
    this.commits = [];
    let timer = 0;
    this.slider.addEventListener("input", () => {
      this.tell();
      clearTimeout(timer);
      timer = setTimeout(changed, CALM_MS);
    });
    this.back.addEventListener("click", () => {
      this.slider.value = this.slider.max;
      this.tell();
      this.slider.focus();
      changed();
    });
    this.set([]);
  }

  // Sets the commits, in order. Keeps the chosen commit.
  set(commits) {
    const before = this.asOf();
    this.commits = [...commits]; // a copy, because the caller's list grows
    this.slider.max = String(commits.length);
    const kept = before === undefined ? -1 : commits.findIndex((each) => each.commit >= before);
    this.slider.value = String(kept < 0 ? commits.length : kept);
    this.slider.disabled = commits.length === 0;
    this.tell();
  }

  chosen() {
    return this.commits[Number(this.slider.value)];
  }

  // Returns the chosen commit; undefined for now.
  asOf() {
    return this.chosen()?.commit;
  }

  tell() {
    const at = this.chosen();
    const text = at ? `${clock(at.time)} · commit ${number.format(at.commit)}` : "now";
    this.text.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
    this.back.hidden = !at;
  }
}
