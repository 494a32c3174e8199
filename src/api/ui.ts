// Serves the built web UI, only the files of its manifest; knows nothing of its pages.
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { ApiError } from "../model/error.ts";
import { hasTag } from "./preconditions.ts";

/** One built file. */
export interface UiFile {
  /** Path of its content, compressed with zstd, inside the executable. */
  readonly zstd: string;
  /** Changes with the content. */
  readonly tag: string;
}

export type UiFiles = Readonly<Record<string, UiFile>>;

/** Paths of the pages. The browser routes them; the gateway serves the same document for all. */
export const UI_PAGE_PATHS = ["/", "/ui", "/ui/*"] as const;
export const UI_ASSET_PATH = "/assets/:name";

/** Own scripts only. Components need inline styles for their layout. */
const PAGE_POLICY = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-ancestors 'none'",
].join("; ");

const PAGE = "index.html";
const HTML_TYPE = "text/html; charset=utf-8";

const contentTypes: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: HTML_TYPE,
  js: "text/javascript; charset=utf-8",
  json: "application/json; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

export interface Ui {
  /** The document of all pages; a notice when the UI was not built. */
  page(request: Request): Promise<Response>;
  /** A file of the manifest; throws a 404 for every other name. */
  asset(request: Request, name: string): Promise<Response>;
}

/** Reads nothing before the first request: a start must not wait for pages. */
export function createUi(load: () => Promise<UiFiles | null> = loadBuilt): Ui {
  let loaded: Promise<UiFiles | null> | null = null;
  const fileOf = async (name: string): Promise<UiFile | null> => {
    loaded ??= load();
    const files = await loaded;
    return files !== null && Object.hasOwn(files, name) ? (files[name] ?? null) : null;
  };
  return {
    async page({ headers }) {
      const file = await fileOf(PAGE);
      if (file === null) return notBuilt();
      const fields = {
        "cache-control": "no-cache",
        "content-security-policy": PAGE_POLICY,
        etag: `"${file.tag}"`,
        vary: "accept-encoding",
      };
      if (hasTag(headers.get("if-none-match"), fields.etag))
        return new Response(null, { status: 304, headers: fields });
      return await sendPacked(file.zstd, {
        name: PAGE,
        accepted: headers.get("accept-encoding"),
        fields,
      });
    },
    async asset({ headers }, name) {
      const file = name === PAGE ? null : await fileOf(name);
      if (file === null) throw new ApiError(404, "there is no such path");
      const fields = {
        "cache-control": "public, max-age=31536000, immutable",
        vary: "accept-encoding",
      };
      return await sendPacked(file.zstd, {
        name,
        accepted: headers.get("accept-encoding"),
        fields,
      });
    },
  };
}

interface Sending {
  readonly name: string;
  /** Accept-Encoding. */
  readonly accepted: string | null;
  readonly fields: Readonly<Record<string, string>>;
}

/** A file at `path` that is compressed with zstd, in a coding that the client accepts. */
export async function sendPacked(
  path: string,
  { name, accepted, fields }: Sending,
): Promise<Response> {
  const headers = { "content-type": contentTypeOf(name), ...fields };
  const packed = Bun.file(path);
  const coded = (body: BodyInit, coding: string) =>
    new Response(body, { headers: { ...headers, "content-encoding": coding } });
  if (accepts(accepted, "zstd")) return coded(packed, "zstd");
  const plain = new Uint8Array(await Bun.zstdDecompress(await packed.bytes()));
  // Browsers without zstd keep what they have loaded, so a second copy of every file is not worth its place.
  if (accepts(accepted, "gzip")) return coded(new Uint8Array(await toGzip(plain)), "gzip");
  return new Response(plain, { headers });
}

/** On another thread. */
const toGzip = promisify(gzip);

const contentTypeOf = (name: string): string =>
  contentTypes[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";

/** RFC 9110 12.5.3; a weight of zero refuses. */
function accepts(field: string | null, coding: string): boolean {
  for (const item of (field ?? "").split(",")) {
    const [word = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
    if (word === coding) return !parameters.some((part) => /^q=0(\.0*)?$/.test(part));
  }
  return false;
}

/** RFC 9110 13.1.2: compares weakly. */
function notBuilt(): Response {
  const text =
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Sluice</title><p>The web UI was not built: ' +
    '<code>make ui</code> builds it. The management API works without; see its <a href="/docs">reference</a>.</p></html>';
  return new Response(text, {
    headers: { "content-type": HTML_TYPE, "content-security-policy": PAGE_POLICY },
  });
}

/** Null when `make ui` has not run; in the executable it always has. */
async function loadBuilt(): Promise<UiFiles | null> {
  try {
    return (await import("../../dist/ui/embedded.js")).files;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND")
      return null;
    throw error;
  }
}
