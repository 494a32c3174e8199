// The API reference: a page, its script and the description of the API, all from inside the executable, nothing from outside.
import { swagger } from "@elysiajs/swagger";
import scalarScript from "../../node_modules/@scalar/api-reference/dist/browser/standalone.js" with { type: "file" };
import { schemas } from "./schemas.ts";
import { anyScheme, securitySchemes } from "./security-schemes.ts";

export const DOCS_PATH = "/docs";
export const DESCRIPTION_PATH = "/docs/json";
export const SCRIPT_PATH = "/docs/scalar.js";

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

/** Without quotation marks or angle brackets: the plugin puts it into the page's attributes as it is. */
const introduction = [
  "Configures the gateway at run time. A change is answered with 200 only when every worker serves it.",
  "An error is an object with the one field `error`: a message that names what is wrong. PUT replaces an object, absent fields return" +
    " to their defaults; PATCH changes the fields that are sent. An `:id` may be the id or the unique name." +
    " `?dry_run=1` checks a change without making it; `If-Match` with an `ETag` makes it only if nobody else was faster.",
  "While there are no users, everybody who reaches this address may do everything. From the first user on, a session cookie," +
    " an `Authorization` header with `Bearer` and a token, or an `X-Admin-Token` header is needed.",
].join("\n\n");

/** The plugin that serves the page and collects the description from the routes. */
export function docsPlugin(version: string) {
  return swagger({
    provider: "scalar",
    path: DOCS_PATH,
    specPath: DESCRIPTION_PATH,
    scalarCDN: SCRIPT_PATH,
    scalarConfig: scalarConfig as object,
    excludeStaticFile: false,
    documentation: {
      // Schemas use the null type, which came with 3.1.
      openapi: "3.1.0",
      info: {
        title: "Sluice management API",
        version,
        description: introduction,
      },
      components: { schemas, securitySchemes },
      security: anyScheme,
    } as NonNullable<Parameters<typeof swagger>[0]>["documentation"] & object,
  });
}

/** A gate in a stream; without one of the page's own, browsers ask for /favicon.ico. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E%3Cpath fill=%22%231a7fb5%22 d=%22M1 2h14v2h-2v3h-2V4H9v5H7V4H5v3H3V4H1zm0 9q1.75-2 3.5 0t3.5 0 3.5 0 3.5 0v2q-1.75 2-3.5 0t-3.5 0-3.5 0-3.5 0z%22/%3E%3C/svg%3E";

/** No fonts, proxies, telemetry or assistants of the reference's maker. */
const scalarConfig = {
  url: DESCRIPTION_PATH,
  // The plugin gives the address in a way that the reference calls deprecated on the console of every visitor.
  spec: { url: "" },
  favicon: ICON,
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
};

export function scriptResponse(): Response {
  return new Response(Bun.file(scalarScript), {
    headers: { "content-type": "text/javascript; charset=utf-8" },
  });
}
