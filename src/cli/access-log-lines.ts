// Finds the GET requests in access logs of other gateways, line by line; sends nothing.
import { isDocument } from "../control/body.ts";

/** A request to repeat. */
export interface LoggedRequest {
  readonly scheme: "http" | "https";
  readonly host: string;
  /** Path and query as sent. */
  readonly target: string;
}

/** Nginx Proxy Manager: `[time] 200 200 - GET https shop.test "/path" [Client 192.0.2.1] …`. */
const NPM = /^\[[^\]]+\] .*? - (GET) (https?) (\S+) "([^"]*)"/;
/** Common and combined format, which nginx, HAProxy and Traefik write; the host may stand in front. */
const COMMON = /^(?:(\S+?)(?::\d+)? )?\S+ \S+ \S+ \[[^\]]+\] "GET (\S+) HTTP\/[\d.]+"/;

/** Null: another line, or another method. `host`: of lines that name none. */
export function requestIn(line: string, host: string | null): LoggedRequest | null {
  if (line.startsWith("{")) return ofObject(line, host);
  const [, method, scheme, name = "", path = ""] = NPM.exec(line) ?? [];
  if (method !== undefined) return requestOf({ scheme, host: name, target: path });
  const [, first, target] = COMMON.exec(line) ?? [];
  if (target === undefined) return null;
  const isName = first !== undefined && /[a-z]/i.test(first) && first.includes(".");
  return requestOf({ host: host ?? (isName ? first : null), target });
}

/** JSON of Caddy, Traefik, and of this gateway's access-log. */
function ofObject(line: string, fallback: string | null): LoggedRequest | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isDocument(value)) return null;
  const inner = isDocument(value["request"]) ? value["request"] : value;
  const text = (...names: readonly string[]) => {
    const found = names.map((name) => inner[name]).find((one) => typeof one === "string");
    return typeof found === "string" ? found : null;
  };
  if (text("method", "RequestMethod") !== "GET") return null;
  const hasTls = inner["tls"] !== undefined || text("scheme", "RequestScheme") === "https";
  return requestOf({
    scheme: hasTls ? "https" : "http",
    host: text("host", "RequestHost") ?? fallback,
    target: text("uri", "target", "RequestPath", "path") ?? "",
  });
}

function requestOf({
  scheme = "http",
  host,
  target,
}: {
  readonly scheme?: string | undefined;
  readonly host: string | null;
  readonly target: string;
}): LoggedRequest | null {
  const name = (host ?? "").replace(/:\d+$/, "").toLowerCase();
  const isValid = /^[a-z0-9._-]+$/.test(name) && /^\/[\x21-\x7e]*$/.test(target);
  return isValid ? { scheme: scheme === "https" ? "https" : "http", host: name, target } : null;
}
