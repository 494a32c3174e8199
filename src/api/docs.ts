// Where the API reference is, what its page may do, and its script; knows nothing of what is described.
import scalarScript from "../../node_modules/@scalar/api-reference/dist/browser/standalone.js" with { type: "file" };

export const DOCS_PATH = "/docs";
export const DESCRIPTION_PATH = "/docs/json";
export const SCRIPT_PATH = "/docs/scalar.js";
export const YAML_PATH = "/openapi.yaml";

/** The page runs our own script only, and talks to nobody but this gateway. */
const pagePolicy = [
  "default-src 'none'",
  // The element that carries the settings is a script of white space, which browsers judge like any other.
  "script-src 'self' 'sha256-TcUB1mzXiQO4GxpTRZ0EMpOXKMU3u+n/q1WrgVIcs1I='",
  // The reference writes its styles into the page.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Headers that the page, its script and its data need instead of the usual ones. */
export const docsHeaders: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [DOCS_PATH]: {
    "content-security-policy": pagePolicy,
    "content-type": "text/html; charset=utf-8",
  },
  [DESCRIPTION_PATH]: { "content-type": "application/json; charset=utf-8" },
  [SCRIPT_PATH]: { "cache-control": "private, max-age=3600" },
};

export function scriptResponse(): Response {
  return new Response(Bun.file(scalarScript), {
    headers: { "content-type": "text/javascript; charset=utf-8" },
  });
}
