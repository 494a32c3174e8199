// Converts handlers of Caddy that pass requests on to plugins.
import { type Document, isDocument } from "../../control/body.ts";
import type { Members } from "../members.ts";
import { GATEWAY_FIELDS } from "../../http/gateway-fields.ts";
import { always, type Bounds } from "./terms.ts";
import { hasPlaceholder, millisecondsOf, withVariables } from "./placeholders.ts";

/** A plugin for later routes. */
export interface Step {
  readonly name: string;
  readonly config: Document;
  /** Path in the source. */
  readonly what: string;
  /** Whether it denies access. */
  readonly protects: boolean;
  /** Whether clients could forge parts of the request without it. */
  readonly matters?: boolean;
  /** Whether it runs before plugins that deny access, as in the source. */
  readonly isFirst?: boolean;
  /** Conditions of the requests that it applies to. */
  readonly where: Bounds;
}

interface Steps {
  readonly steps: readonly Step[];
  /** A protection that could not be imported. */
  readonly lost: string | null;
  /** Names, in lower case, of request headers that it changes; `*`: any. */
  readonly changes: readonly string[];
}

const nothing: Steps = { steps: [], lost: null, changes: [] };

const stepOf = (step: Pick<Step, "name" | "config" | "what">, protects = false): Step => ({
  ...step,
  protects,
  where: always,
});

export function stepsOf(kind: string, handler: Members): Steps {
  switch (kind) {
    case "headers":
      return {
        ...nothing,
        steps: headerSteps(handler),
        changes: changedBy(handler.object("request")),
        lost: lostBy(handler),
      };
    case "encode":
      return { ...nothing, steps: [encode(handler)] };
    case "authentication":
      return authentication(handler);
    case "vars":
      // `root` is for files, and logs have their own settings.
      for (const name of ["root", "skip_log", "log_skip", "access_logger_names"]) handler.raw(name);
      if (handler.hasUnknown()) handler.drop("variables are not imported");
      return nothing;
    case "rate_limit":
      return rateLimits(handler);
    case "templates":
    case "tracing":
    case "log_append":
    case "intercept":
    case "map":
    case "push":
      handler.drop("this gateway has no equivalent");
      return nothing;
    case "request_body":
      return { ...nothing, steps: sizeLimit(handler) };
    case "reverse_proxy":
      return forwardAuth(handler);
    default:
      handler.drop(`this gateway has no equivalent of the handler ${kind}`);
      // An unknown handler may deny access.
      return { steps: [], lost: handler.label, changes: ["*"] };
  }
}

/** Names, in lower case, of the request headers that a handler changes. */
function changedBy(request: Members | null): string[] {
  const names = [...setBy(request), ...(request?.texts("delete") ?? [])];
  return names.some((name) => /[*{]/.test(name)) ? ["*"] : names.map((name) => name.toLowerCase());
}

const setBy = (request: Members | null): readonly string[] =>
  ["set", "add", "replace"].flatMap((member) => request?.object(member)?.names ?? []);

/** Request headers that the handler removes by a part of their name. */
export function lostBy(handler: Members): string | null {
  const names = handler.object("request")?.texts("delete") ?? [];
  const some = names.filter((name) => name.includes("*"));
  return some.length === 0 ? null : `${some.join(", ")} removed by ${handler.label}`;
}

/** Headers of requests and responses. */
export function headerSteps(handler: Members, without: readonly string[] = []): Step[] {
  const request = operationsOf(handler.object("request"), { without, isRequest: true });
  const response = operationsOf(handler.object("response"), { without: [], isRequest: false });
  const parts = [
    ...(request === null ? [] : [["request", { headers: request }] as const]),
    ...(response === null ? [] : [["response", { headers: response }] as const]),
  ];
  if (parts.length === 0) return [];
  const what = `headers of ${handler.label}`;
  const step = stepOf({ name: "transform", config: Object.fromEntries(parts), what });
  return [{ ...step, matters: request !== null }];
}

interface Side {
  readonly without: readonly string[];
  readonly isRequest: boolean;
}

function operationsOf(members: Members | null, { without, isRequest }: Side): Document | null {
  if (members === null) return null;
  members.raw("deferred");
  members.omit("require", "headers are set in every response");
  members.omit("replace", "parts of headers cannot be replaced");
  const own = isRequest ? [...without, ...GATEWAY_FIELDS] : without;
  const set = filled(members.object("set"), own);
  const add = filled(members.object("add"), own);
  const deleted = members.texts("delete").filter((name) => !own.includes(name.toLowerCase()));
  // Remove what Caddy would overwrite: a client could forge it, such as its identity.
  const remove = [...deleted, ...(isRequest ? set.missing : [])];
  const found = {
    ...(set.pairs.length === 0 ? {} : { set: Object.fromEntries(set.pairs) }),
    ...(add.pairs.length === 0 ? {} : { add: Object.fromEntries(add.pairs) }),
    ...(remove.length === 0 ? {} : { remove }),
  };
  return Object.keys(found).length === 0 ? null : found;
}

function filled(members: Members | null, without: readonly string[]) {
  const missing: string[] = [];
  const pairs = (members?.names ?? []).flatMap((field) => {
    const value = withVariables(members?.texts(field).join(", ") ?? "");
    if (without.includes(field.toLowerCase())) {
      if (GATEWAY_FIELDS.has(field.toLowerCase()) && field.toLowerCase() !== "host")
        members?.changed(field, "the gateway sets this header itself");
      return [];
    }
    if (value !== null) return [[field, value] as const];
    members?.changed(field, "is removed: its placeholder has no equivalent");
    missing.push(field);
    return [];
  });
  return { pairs, missing };
}

function encode(handler: Members): Step {
  const encodings = handler.object("encodings");
  const words = (encodings?.names ?? []).flatMap((name) => {
    encodings?.omit(name, "set the level of the plugin compress");
    return name === "gzip" || name === "zstd" || name === "br" ? [name] : [];
  });
  const prefer = handler.texts("prefer");
  const least = handler.number("minimum_length");
  handler.omit("match", "set the content types of the plugin compress");
  const chosen = prefer.length > 0 ? prefer : words;
  const config = { encodings: chosen, ...(least === null ? {} : { min_bytes: least }) };
  return stepOf({ name: "compress", config, what: handler.label });
}

function sizeLimit(handler: Members): Step[] {
  for (const name of ["read_timeout", "write_timeout", "set"])
    handler.omit(name, "set body_read_timeout of the settings");
  const most = handler.number("max_size");
  if (most === null) return [];
  const config = { max_body_bytes: most };
  return [stepOf({ name: "request-size-limit", config, what: handler.label })];
}

/** The module caddy-ratelimit. */
function rateLimits(handler: Members): Steps {
  const zones = handler.object("rate_limits");
  const limits = (zones?.names ?? []).flatMap((name) => {
    const zone = zones?.object(name);
    const requests = zone?.number("max_events") ?? 0;
    const window = (millisecondsOf(zone?.raw("window") ?? null) ?? 0) / 1000;
    const key = rateKey(zone?.text("key") ?? "");
    const isWhole = Number.isInteger(window) && window > 0 && requests > 0;
    if (key !== null && isWhole && zone?.has("match") === false)
      return [{ name: limitName(name), requests, window, algorithm: "sliding", key }];
    zone?.drop("set the limit in the plugin rate-limit");
    return [];
  });
  for (const name of ["jitter", "sweep_interval", "distributed", "storage", "log_key"])
    handler.omit(name, "the plugin rate-limit has no setting for it");
  const what = handler.label;
  const steps =
    limits.length === 0 ? [] : [stepOf({ name: "rate-limit", config: { limits }, what })];
  const isWhole = zones !== null && limits.length === zones.names.length;
  return { ...nothing, steps, lost: isWhole ? null : what };
}

const limitName = (zone: string) => zone.replaceAll(/[^A-Za-z0-9_.-]/g, "-").slice(0, 64);

function rateKey(key: string): string | null {
  if (/^\{http\.(?:request\.remote\.host|vars\.client_ip|request\.client_ip)\}$/.test(key))
    return "ip";
  const [, header] = /^\{http\.request\.header\.([\w-]+)\}$/.exec(key) ?? [];
  if (header !== undefined) return `header:${header}`;
  return hasPlaceholder(key) ? null : "route";
}

function authentication(handler: Members): Steps {
  const providers = handler.object("providers");
  const basic = providers?.object("http_basic") ?? null;
  const others = (providers?.names ?? []).filter((name) => name !== "http_basic");
  for (const name of others) providers?.omit(name, "this gateway has no equivalent");
  const what = handler.label;
  if (basic === null || others.length > 0) return { ...nothing, lost: what };
  basic.object("hash")?.ignoreRest();
  basic.omit("hash_cache", "correct passwords are cached for a minute", {});
  const realm = basic.text("realm");
  const users = basic.objects("accounts").flatMap((account) => {
    const username = account.text("username") ?? "";
    const password_hash = hashOf(account.text("password") ?? "");
    account.omit("salt", "the salt is part of the hash");
    if (password_hash !== null) return [{ username, password_hash }];
    basic.report.omitted(
      `user "${username}" of ${what}`,
      "the hash is neither bcrypt nor argon2id",
    );
    return [];
  });
  if (users.length === 0) return { ...nothing, lost: what };
  const config = {
    users,
    consumers: false,
    hide_credentials: false,
    run_on_preflight: true,
    ...(realm === null ? {} : { realm }),
  };
  return { ...nothing, steps: [stepOf({ name: "basic-auth", config, what }, true)] };
}

/** Older versions encode the hash in base64. */
function hashOf(text: string): string | null {
  const plain = text.startsWith("$") ? text : Buffer.from(text, "base64").toString("latin1");
  return /^\$(2[aby]|argon2id)\$/.test(plain) ? plain : null;
}

/** External authorization of each request (`forward_auth` of a Caddyfile). */
function forwardAuth(handler: Members): Steps {
  const what = handler.label;
  const [upstream] = handler.objects("upstreams");
  const rewrite = handler.object("rewrite");
  const uri = rewrite?.text("uri") ?? null;
  const method = rewrite?.text("method") ?? null;
  const dial = upstream?.text("dial") ?? null;
  const copied = copiedOf(handler.raw("handle_response"));
  const headers = handler.object("headers") ?? handler.empty("headers");
  const asked = setBy(headers.object("request")).map((name) => name.toLowerCase());
  const hidden = headers.object("request")?.texts("delete") ?? [];
  const host = handler.object("headers")?.object("request")?.object("set")?.raw("Host") ?? null;
  const isTls = handler.object("transport")?.has("tls") ?? false;
  handler.ignoreRest();
  // The authorization server may depend on the additional headers.
  const isUsual =
    asked.every((name) => isAskedAlike(name, host)) && !hidden.some((name) => isAsked(name));
  if (uri === null || dial === null || /[{}]/.test(uri + dial) || method !== "GET") {
    handler.drop("responses of targets are not inspected: use the plugin forward-auth");
    return { ...nothing, lost: what, changes: ["*"] };
  }
  if (copied === null || !isUsual) {
    handler.drop("it does more than authorize and copy headers: use the plugin forward-auth");
    return { ...nothing, lost: what, changes: ["*"] };
  }
  const { same, renamed } = copied;
  const config = {
    url: `${isTls ? "https" : "http"}://${dial}${uri}`,
    request_headers: ASKED,
    response_headers_to_upstream: same,
    run_on_preflight: true,
  };
  handler.changed(
    "headers",
    `the plugin forward-auth sends ${ASKED.join(", ")} and X-Forwarded-*, and not all headers`,
  );
  const steps = [stepOf({ name: "forward-auth", config, what }, true)];
  if (renamed.length > 0) {
    handler.changed("copy_headers", `headers cannot be renamed: ${renamed.join(", ")} is removed`);
    const without = { request: { headers: { remove: renamed } } };
    steps.push(stepOf({ name: "transform", config: without, what: `headers of ${what}` }, true));
  }
  const changes = [...same, ...renamed].map((name) => name.toLowerCase());
  return { steps, lost: null, changes };
}

/** Headers by which authorization servers know clients, and tell pages from programs. */
const ASKED = ["Authorization", "Cookie", "Accept", "X-Requested-With", "User-Agent"];

const isAsked = (name: string): boolean =>
  name.includes("*") || ASKED.some((each) => each.toLowerCase() === name.toLowerCase());

/** Whether the plugin sends the same header: the Host is that of its URL. */
const isAskedAlike = (name: string, host: unknown): boolean =>
  name === "host"
    ? Array.isArray(host) && /^\{http\.reverse_proxy\.upstream\.\w+\}$/.test(String(host[0]))
    : /^x-forwarded-(?:method|uri)$/.test(name);

interface Copied {
  /** Headers of the response that are forwarded to targets. */
  readonly same: readonly string[];
  /** New names of headers that are forwarded under another name. */
  readonly renamed: readonly string[];
}

/** Null for a handler that does more than copy headers, or allows other statuses than 2xx. */
function copiedOf(responses: unknown): Copied | null {
  if (!Array.isArray(responses) || responses.length !== 1) return null;
  const [first] = responses as readonly unknown[];
  if (!isDocument(first) || !Bun.deepEquals(first["match"], { status_code: [2] })) return null;
  const text = JSON.stringify(first["routes"] ?? []);
  const kinds = [...text.matchAll(/"handler":"([^"]*)"/g)].map(([, kind = ""]) => kind);
  if (kinds.some((kind) => kind !== "headers" && kind !== "vars")) return null;
  const pairs = text.matchAll(/"([\w-]+)":\["\{http\.reverse_proxy\.header\.([\w-]+)\}"\]/g);
  const same = new Set<string>();
  const renamed = new Set<string>();
  for (const [, name = "", from = ""] of pairs)
    (name.toLowerCase() === from.toLowerCase() ? same : renamed).add(name);
  return { same: [...same], renamed: [...renamed] };
}
