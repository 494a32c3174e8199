// The API reference: a page, its script and the description of the API, all from inside the executable, nothing from outside.
import { swagger } from "@elysiajs/swagger";
import scalarScript from "../../node_modules/@scalar/api-reference/dist/browser/standalone.js" with { type: "file" };
import { schemas } from "./schemas.ts";

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
        description: "Configures the gateway at run time.",
      },
      components: { schemas },
    } as NonNullable<Parameters<typeof swagger>[0]>["documentation"] & object,
  });
}

/** No fonts, proxies, telemetry or assistants of the reference's maker. */
const scalarConfig = {
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
