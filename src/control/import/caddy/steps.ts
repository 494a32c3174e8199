// Handlers of Caddy that a request passes on its way, as plugins.
import type { Document } from "../../body.ts";
import type { Members } from "../members.ts";
import { withVariables } from "./placeholders.ts";

/** A plugin for the routes behind it. */
export interface Step {
  readonly name: string;
  readonly config: Document;
  /** Where it stands. */
  readonly what: string;
  readonly protects: boolean;
  readonly when: Document | null;
}

interface Steps {
  readonly steps: readonly Step[];
  /** A protection that could not be carried over. */
  readonly lost: string | null;
}

const nothing: Steps = { steps: [], lost: null };

export function stepsOf(kind: string, handler: Members): Steps {
  switch (kind) {
    case "headers":
      return { steps: headerSteps(handler), lost: null };
    case "encode":
      return { steps: [encode(handler)], lost: null };
    case "authentication":
      return authentication(handler);
    case "vars":
      handler.drop("variables are not carried over");
      return nothing;
    case "templates":
    case "tracing":
    case "log_append":
    case "intercept":
    case "map":
    case "push":
    case "invoke":
      handler.drop("this gateway has nothing like it");
      return nothing;
    case "request_body":
      return { steps: sizeLimit(handler), lost: null };
    case "reverse_proxy":
      return forwardAuth(handler);
    default:
      handler.drop(`this gateway has no handler ${kind}`);
      // Nobody knows what it does: it may keep clients out.
      return { steps: [], lost: `${handler.path}: ${kind}` };
  }
}

/** Fields of requests and answers. */
export function headerSteps(handler: Members, without: readonly string[] = []): Step[] {
  const request = operationsOf(handler.object("request"), without);
  const response = operationsOf(handler.object("response"), []);
  const parts = [
    ...(request === null ? [] : [["request", { headers: request }] as const]),
    ...(response === null ? [] : [["response", { headers: response }] as const]),
  ];
  if (parts.length === 0) return [];
  return [
    {
      ...{
        name: "transform",
        config: Object.fromEntries(parts),
        what: `headers at ${handler.path}`,
      },
      ...{ protects: false, when: null },
    },
  ];
}

function operationsOf(members: Members | null, without: readonly string[]): Document | null {
  if (members === null) return null;
  members.raw("deferred");
  members.leaveOut("require", "fields are set in every answer");
  members.leaveOut("replace", "parts of fields cannot be replaced");
  const remove = members.texts("delete");
  const found = {
    ...filled("set", members.object("set"), without),
    ...filled("add", members.object("add"), without),
    ...(remove.length === 0 ? {} : { remove }),
  };
  return Object.keys(found).length === 0 ? null : found;
}

function filled(name: string, members: Members | null, without: readonly string[]): Document {
  if (members === null) return {};
  const pairs = members.names.flatMap((field) => {
    const value = withVariables(members.texts(field).join(", "));
    if (without.includes(field.toLowerCase())) return [];
    if (value !== null) return [[field, value] as const];
    members.changed(field, "is not set: its placeholder has no counterpart");
    return [];
  });
  return pairs.length === 0 ? {} : { [name]: Object.fromEntries(pairs) };
}

function encode(handler: Members): Step {
  const encodings = handler.object("encodings");
  const words = (encodings?.names ?? []).flatMap((name) => {
    encodings?.leaveOut(name, "the plugin compress has levels of its own");
    return name === "gzip" || name === "zstd" || name === "br" ? [name] : [];
  });
  const prefer = handler.texts("prefer");
  const least = handler.number("minimum_length");
  handler.leaveOut("match", "the plugin compress has types of its own");
  return {
    name: "compress",
    config: {
      encodings: prefer.length > 0 ? prefer : words,
      ...(least === null ? {} : { min_bytes: least }),
    },
    ...{ what: `encode at ${handler.path}`, protects: false, when: null },
  };
}

function sizeLimit(handler: Members): Step[] {
  for (const name of ["read_timeout", "write_timeout", "set"])
    handler.leaveOut(name, "the settings have body_read_timeout");
  const most = handler.number("max_size");
  if (most === null) return [];
  const what = `request_body at ${handler.path}`;
  const config = { max_body_bytes: most };
  return [{ name: "request-size-limit", config, what, protects: false, when: null }];
}

function authentication(handler: Members): Steps {
  const providers = handler.object("providers");
  const basic = providers?.object("http_basic") ?? null;
  const others = (providers?.names ?? []).filter((name) => name !== "http_basic");
  for (const name of others) providers?.leaveOut(name, "this gateway has nothing like it");
  const what = `authentication at ${handler.path}`;
  if (basic === null || others.length > 0) return { steps: [], lost: what };
  basic.object("hash")?.ignoreRest();
  basic.leaveOut("hash_cache", "passwords that were right are remembered for a minute", {});
  const realm = basic.text("realm");
  const users = basic.objects("accounts").flatMap((account) => {
    const username = account.text("username") ?? "";
    const password_hash = hashOf(account.text("password") ?? "");
    account.leaveOut("salt", "it is part of the hash");
    if (password_hash !== null) return [{ username, password_hash }];
    basic.report.leftOut(
      `user "${username}" of ${what}`,
      "the hash is neither bcrypt nor argon2id",
    );
    return [];
  });
  if (users.length === 0) return { steps: [], lost: what };
  const config = { users, hide_credentials: false, ...(realm === null ? {} : { realm }) };
  return { steps: [{ name: "basic-auth", config, what, protects: true, when: null }], lost: null };
}

/** Older versions write the hash in base64. */
function hashOf(text: string): string | null {
  const plain = text.startsWith("$") ? text : Buffer.from(text, "base64").toString("latin1");
  return /^\$(2[aby]|argon2id)\$/.test(plain) ? plain : null;
}

/** A service that is asked about each request (`forward_auth` of a Caddyfile). */
function forwardAuth(handler: Members): Steps {
  const what = `forward_auth at ${handler.path}`;
  const [upstream] = handler.objects("upstreams");
  const rewrite = handler.object("rewrite");
  const uri = rewrite?.text("uri") ?? null;
  const method = rewrite?.text("method") ?? null;
  const dial = upstream?.text("dial") ?? null;
  const copied = copiedOf(handler);
  const isTls = handler.object("transport")?.has("tls") ?? false;
  handler.ignoreRest();
  if (uri === null || dial === null || /[{}]/.test(uri + dial) || method !== "GET") {
    handler.drop("answers of targets are not looked into: use the plugin forward-auth");
    return { steps: [], lost: what };
  }
  const config = {
    url: `${isTls ? "https" : "http"}://${dial}${uri}`,
    response_headers_to_upstream: copied,
  };
  handler.changed("headers", "the plugin forward-auth sends the fields that its settings name");
  return {
    steps: [{ name: "forward-auth", config, what, protects: true, when: null }],
    lost: null,
  };
}

/** Fields of the answer that go upstream: placeholders name them. */
function copiedOf(handler: Members): string[] {
  const text = JSON.stringify(handler.raw("handle_response"));
  const found = text.matchAll(/\{http\.reverse_proxy\.header\.([\w-]+)\}/g);
  return [...new Set([...found].map(([, name = ""]) => name))];
}
