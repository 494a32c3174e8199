// Parses the URL of an upstream into the fields of a service and a target; connects to nothing.
import { invalid } from "../model/error.ts";

export interface Upstream {
  readonly protocol: "http" | "https";
  /** Without a slash at the end: empty for none. */
  readonly path: string;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const ADDRESS = /^(https?):\/\/(?:\[([^\]]+)\]|([^:/[\]]+))(?::(\d{1,5}))?(\/.*)?$/;

/** Leaves hosts as written, because programs read unusual forms differently; throws a 400. */
export function parseUpstream(text: string): Upstream {
  const [, scheme, bracketed, plain, port, path = ""] = ADDRESS.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined)
    throw invalid("upstream", "must be an address such as http://10.0.0.5:3000");
  const protocol = scheme === "https" ? "https" : "http";
  const number = port === undefined ? (protocol === "https" ? 443 : 80) : Number(port);
  if (number < 1 || number > 65_535) throw invalid("upstream", "must have a port from 1 to 65535");
  return { protocol, path: path.replace(/\/+$/, ""), host, port: number };
}
