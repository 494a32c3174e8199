// The paths of the API reference, its content security policy and its script; knows nothing of what is described.
import { join } from "node:path";
import { sendPacked } from "./ui.ts";

export const DOCS_PATH = "/docs";
export const DESCRIPTION_PATH = "/docs/json";
export const SCRIPT_PATH = "/docs/scalar.js";
export const YAML_PATH = "/openapi.yaml";
export const JSON_PATH = "/openapi.json";

/** The page runs the gateway's own script only and connects to this gateway only. */
const pagePolicy = [
  "default-src 'none'",
  // The element that carries the settings is a script of white space; the policy applies to it, too.
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

/** Headers of the page, its script and its data that replace the usual ones. */
export const docsHeaders: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [DOCS_PATH]: {
    "content-security-policy": pagePolicy,
    "content-type": "text/html; charset=utf-8",
  },
  [DESCRIPTION_PATH]: { "content-type": "application/json; charset=utf-8" },
  [JSON_PATH]: { "content-type": "application/json; charset=utf-8" },
  [SCRIPT_PATH]: { "cache-control": "private, max-age=3600" },
};

/** The executable holds it compressed; clients that do not accept that encoding get it uncompressed. */
export async function scriptResponse({ headers: asked }: Request): Promise<Response> {
  const headers = { "content-type": "text/javascript; charset=utf-8", vary: "accept-encoding" };
  const packed = await findPacked();
  if (packed === null) {
    // Not written as one literal, or the bundler would put it into the executable as well.
    const path = join(import.meta.dir, "../../node_modules", SCRIPT_FILE);
    return new Response(Bun.file(path), { headers });
  }
  const accepted = asked.get("accept-encoding");
  return await sendPacked(packed, { name: "scalar.js", accepted, fields: headers });
}

const SCRIPT_FILE = "@scalar/api-reference/dist/browser/standalone.js";

/** Null in a checkout without a build; the executable always has it. */
async function findPacked(): Promise<string | null> {
  try {
    return (await import("../../dist/packed/reference.js")).path;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND")
      return null;
    throw error;
  }
}
