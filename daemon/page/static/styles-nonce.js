// The drawing library writes its style sheets into <style> elements of its own. The policy admits those that carry the page's
// nonce, and no others; so every one that a script makes is given it. This file runs before the library.
"use strict";
{
  const nonce = document.currentScript.nonce;
  const make = document.createElement.bind(document);
  document.createElement = (name, options) => {
    const made = make(name, options);
    if (made instanceof HTMLStyleElement) made.nonce = nonce;
    return made;
  };
}
