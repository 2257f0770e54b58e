// Gives the page's nonce to each <style> element that a script creates, because the security policy blocks others. The plotting
// library creates such elements, so this file runs before the library.
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
