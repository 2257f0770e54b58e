// Requests to the daemon that serves this page. A failure is an Error whose message is a sentence for the user.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(method, path, body, signal) {
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "hippod does not answer; is it still running?");
  }
  if (response.ok) return response;
  if (response.status === 401) throw new Refused(401, "This session is over. Reload the page to log in again.");
  let detail = `hippod answered with ${response.status}.`;
  try {
    const problem = await response.json();
    detail = problem.detail || problem.title || detail;
  } catch {
    // not a problem document, so only the status is known
  }
  throw new Refused(response.status, detail);
}

export const get = async (path) => (await ask("GET", path)).json();
export const getText = async (path) => (await ask("GET", path)).text();
export const post = async (path, body, signal) => (await ask("POST", path, body, signal)).json();
