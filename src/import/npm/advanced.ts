// Converts the nginx directives that users add to hosts and locations: what has an equivalent, and whether the rest may deny access.
import { isOfClient } from "../nginx/headers.ts";
import type { PluginDraft } from "../output.ts";
import { type Directive, isHarmless, parseDirectives } from "./nginx-lines.ts";

/** A location that the directives of a host define. */
export interface OwnLocation {
  /** As in nginx, with its modifier. */
  readonly path: string;
  readonly advanced: Advanced;
}

export type ResponsePlugin = Pick<PluginDraft, "name" | "config">;

export interface Advanced {
  /** Whether a directive without an equivalent may deny access. */
  readonly mayDeny: boolean;
  /** Names of such directives; empty with `mayDeny`: the text cannot be parsed. */
  readonly unknown: readonly string[];
  /** Fields of a service. */
  readonly timeouts: Readonly<Record<string, number>>;
  /** Bytes; 0: no limit; null: not set. */
  readonly maxBody: number | null;
  readonly requestHeaders: {
    readonly set: Readonly<Record<string, string>>;
    readonly remove: readonly string[];
  };
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly isWebsocket: boolean;
  /** What nginx responds before any check of access; null: nothing. */
  readonly response: ResponsePlugin | null;
  /** Target of `proxy_pass`, without variables. */
  readonly proxyPass: string | null;
  readonly locations: readonly OwnLocation[];
  /** Names of directives that have no equivalent and deny nothing. */
  readonly ignored: readonly string[];
}

/** Directives of the access phase, which nginx never reaches behind `return`. */
const ACCESS =
  /^(?:allow|deny|satisfy|auth_basic|auth_basic_user_file|auth_request|auth_request_set)$/;

export function readAdvanced(text: string): Advanced {
  const directives = parseDirectives(text);
  return directives === null ? { ...read([]), mayDeny: true } : read(directives, true);
}

function read(directives: readonly Directive[], isOfHost = false): Advanced {
  const reader = new Reader(isOfHost);
  for (const directive of directives) reader.read(directive);
  return reader.finish();
}

class Reader {
  readonly #isOfHost: boolean;
  readonly #timeouts: Record<string, number> = {};
  readonly #set: Record<string, string> = {};
  readonly #remove: string[] = [];
  readonly #responseHeaders: Record<string, string> = {};
  readonly #locations: OwnLocation[] = [];
  readonly #ignored = new Set<string>();
  readonly #unknown: string[] = [];
  #maxBody: number | null = null;
  #isWebsocket = false;
  #response: ResponsePlugin | null = null;
  #proxyPass: string | null = null;

  constructor(isOfHost: boolean) {
    this.#isOfHost = isOfHost;
  }

  read(directive: Directive): void {
    if (this.#isConverted(directive)) return;
    if (isHarmless(directive)) this.#ignored.add(directive.name);
    else this.#unknown.push(directive.name);
  }

  finish(): Advanced {
    const isAnswered = this.#response !== null && this.#unknown.every((name) => ACCESS.test(name));
    return {
      mayDeny: this.#unknown.length > 0 && !isAnswered,
      unknown: isAnswered ? [] : [...new Set(this.#unknown)],
      timeouts: this.#timeouts,
      maxBody: this.#maxBody,
      requestHeaders: { set: this.#set, remove: this.#remove },
      responseHeaders: this.#responseHeaders,
      isWebsocket: this.#isWebsocket,
      response: this.#unknown.length === 0 || isAnswered ? this.#response : null,
      proxyPass: this.#proxyPass,
      locations: this.#locations,
      ignored: [...this.#ignored],
    };
  }

  #isConverted({ name, args, block }: Directive): boolean {
    if (name === "location" && block !== null) return this.#readLocation(args, block);
    if (block !== null) return false;
    switch (name) {
      case "proxy_connect_timeout":
        return this.#readTimeout(args, ["connect_timeout"]);
      case "proxy_read_timeout":
        return this.#readTimeout(args, ["response_timeout", "read_timeout"]);
      case "proxy_send_timeout":
        return this.#readTimeout(args, ["write_timeout"]);
      case "client_max_body_size":
        this.#maxBody = sizeOf(args[0] ?? "");
        return this.#maxBody !== null;
      case "proxy_http_version":
        return true;
      case "add_header":
        return this.#readResponseHeader(args);
      case "proxy_set_header":
        return this.#readRequestHeader(args);
      case "return":
        // Only the first one is reached.
        if (this.#response === null) this.#response = responseOf(args);
        return this.#response !== null;
      case "proxy_pass":
        if (this.#isOfHost || args.length !== 1 || args[0]?.includes("$") !== false) return false;
        this.#proxyPass = args[0];
        return true;
      default:
        return false;
    }
  }

  #readLocation(args: readonly string[], block: readonly Directive[]): boolean {
    const path = args.join(" ");
    if (!this.#isOfHost || !/^(?:(?:=|~\*|~|\^~) )?\S+$/.test(path) || path.startsWith("@"))
      return false;
    const advanced = read(block);
    const isServed = advanced.proxyPass !== null || advanced.response !== null;
    this.#locations.push({ path, advanced: isServed ? advanced : { ...advanced, mayDeny: true } });
    return true;
  }

  #readTimeout(args: readonly string[], fields: readonly string[]): boolean {
    const milliseconds = millisecondsOf(args.join(" "));
    if (milliseconds === null) return false;
    for (const field of fields) this.#timeouts[field] = Math.min(milliseconds, 86_400_000);
    return true;
  }

  #readResponseHeader([name = "", value, always = "always"]: readonly string[]): boolean {
    const converted = withVariables(value ?? "");
    if (!/^[\w-]+$/.test(name) || converted === null || converted === "" || always !== "always")
      return false;
    this.#responseHeaders[name] = converted;
    return true;
  }

  #readRequestHeader([name = "", value = ""]: readonly string[]): boolean {
    if (/^upgrade$/i.test(name)) this.#isWebsocket = value === "$http_upgrade";
    // The gateway writes the headers of a proxy itself.
    if (isHarmless({ name: "proxy_set_header", args: [name], block: null })) return true;
    const converted = withVariables(value);
    if (!/^[\w-]+$/.test(name) || converted === null) return false;
    // What clients send stays, and nothing is sent where they send nothing.
    if (isOfClient(name, value)) return true;
    if (converted === "") this.#remove.push(name);
    else this.#set[name] = converted;
    return true;
  }
}

const VARIABLES: Readonly<Record<string, string>> = {
  host: "request.host",
  http_host: "request.host",
  scheme: "request.scheme",
  request_uri: "request.target",
  uri: "request.path",
  document_uri: "request.path",
  args: "request.query",
  query_string: "request.query",
  request_method: "request.method",
  remote_addr: "client.address",
  request_id: "request.id",
};

/** The text with variables of the gateway; null without an equivalent. */
function withVariables(text: string): string | null {
  let isKnown = true;
  const converted = text.replaceAll(
    /\$(?:\{(\w+)\}|(\w+)|)/g,
    (_, braced?: string, bare?: string) => {
      const name = braced ?? bare ?? "";
      const header = /^http_(\w+)$/.exec(name)?.[1]?.replaceAll("_", "-");
      const known = VARIABLES[name] ?? (header === undefined ? null : `request.header.${header}`);
      isKnown &&= known !== null;
      return `\${${known}}`;
    },
  );
  return isKnown ? converted : null;
}

/** `return 301 https://new.example$request_uri`, `return 404`, `return 200 "text"`; null without an equivalent. */
function responseOf(args: readonly string[]): ResponsePlugin | null {
  const [first = "", text] = args;
  const isUrl = /^(?:https?:\/\/|\$scheme:\/\/)/.test(first);
  const status = isUrl ? 302 : Number(first);
  const target = isUrl ? first : text;
  if (args.length > 2 || !Number.isInteger(status) || status < 200 || status > 599) return null;
  if ([301, 302, 303, 307, 308].includes(status)) {
    const to = withVariables(target ?? "");
    if (to === null || to === "" || !/^(?:https?:\/\/|\$\{request\.scheme\}:\/\/|\/)/.test(to))
      return null;
    return { name: "redirect", config: { to, status, keep_path: false, keep_query: false } };
  }
  // 444 closes the connection.
  if (status === 444 || status < 200 || (target ?? "").includes("$")) return null;
  const body = target === undefined ? {} : { body: target };
  return { name: "respond", config: { status, ...body } };
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  "": 1000,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `3600`, `1h 30m`; null for others. */
function millisecondsOf(text: string): number | null {
  if (!/^(?:\d+(?:ms|[smhd])?\s*)+$/.test(text)) return null;
  const parts = [...text.matchAll(/(\d+)(ms|[smhd])?/g)];
  return parts.reduce(
    (sum, [, count = "", unit = ""]) => sum + Number(count) * (UNIT_MS[unit] ?? 0),
    0,
  );
}

/** `10m` in bytes; null for others. */
function sizeOf(text: string): number | null {
  const [, count, unit = ""] = /^(\d+)([kmg]?)$/i.exec(text) ?? [];
  if (count === undefined) return null;
  const power = ["", "k", "m", "g"].indexOf(unit.toLowerCase());
  return Number(count) * 1024 ** power;
}
