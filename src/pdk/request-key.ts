// The key by which plugins count requests: the setting, and the key of a request; knows no count.
import { Type as t } from "@sinclair/typebox";
import { claimsOf } from "./authentication.ts";
import type { RequestContext, StreamContext } from "./context.ts";
import { isToken } from "./http.ts";
import { networkOf } from "./net.ts";

type Read = (context: RequestContext) => string;

const WORDS =
  "ip, consumer, credential, route, service, header:NAME, cookie:NAME, query:NAME or jwt:CLAIM";

const part = (description: string) =>
  t.String({
    maxLength: 300,
    pattern: "^(?:ip|consumer|credential|route|service|(?:header|cookie|query|jwt):.{1,256})$",
    errorMessage: `must be ${WORDS}`,
    description,
  });

/** The setting: one part, or a list of them. */
export const requestKey = (initial: string, description: string) =>
  t.Union(
    [
      part(description),
      t.Array(part("One part"), { minItems: 1, maxItems: 8, description: "Several together" }),
    ],
    { default: initial, description: `${description}: ${WORDS}, or a list of these` },
  );

export const partsOf = (key: string | readonly string[]): readonly string[] =>
  typeof key === "string" ? [key] : key;

/** The problem of a key beyond its schema; null: none. */
export function keyProblem(key: string | readonly string[]): string | null {
  const header = partsOf(key).find((each) => each.startsWith("header:") && !isToken(each.slice(7)));
  return header === undefined ? null : `"${header.slice(7)}" is not the name of a header field`;
}

/** Whether the key is only known after authentication. */
export const asksForClient = (key: string | readonly string[]): boolean =>
  partsOf(key).some((each) => /^(?:consumer$|credential$|jwt:)/.test(each));

/** Whether the key depends on the client, and not only on route and service. */
export const isOfClient = (key: string | readonly string[]): boolean =>
  partsOf(key).some((each) => each !== "route" && each !== "service");

/** Compiles the key. A request without the value is counted by its address, so that omitting the value evades no limit. */
export function keyReader(key: string | readonly string[], ipv6Prefix = 64): Read {
  const reads = partsOf(key).map((each) => readerOf(each, ipv6Prefix));
  const [only] = reads;
  if (reads.length === 1 && only !== undefined) return only;
  return (context) => {
    let text = "";
    for (const read of reads) {
      const value = read(context);
      // With its length: "a" and "b,c" must not be the key of "a,b" and "c".
      text += `${value.length}:${value}`;
    }
    return text;
  };
}

/** The same for stream connections, which have only address, route and service; other parts use the address. */
export function streamKeyReader(
  key: string | readonly string[],
  ipv6Prefix = 64,
): (context: StreamContext) => string {
  const parts = partsOf(key);
  return (context) =>
    parts
      .map((each) => {
        if (each === "route") return context.streamRoute.id;
        if (each === "service") return context.service?.id ?? "";
        return networkOf(context.clientAddress(), ipv6Prefix);
      })
      .join(" ");
}

function readerOf(each: string, ipv6Prefix: number): Read {
  const address: Read = (context) => networkOf(context.clientAddress(), ipv6Prefix);
  // An address has no equals sign, so that no value can collide with one.
  const orAddress =
    (read: (context: RequestContext) => string | null): Read =>
    (context) => {
      const value = read(context);
      return value === null ? address(context) : `=${value}`;
    };
  const colon = each.indexOf(":");
  const name = each.slice(colon + 1);
  switch (colon === -1 ? each : each.slice(0, colon)) {
    case "consumer":
      return orAddress(clientOf);
    case "credential":
      return orAddress(({ credentialId }) => credentialId);
    case "route":
      return ({ route }) => route?.id ?? "";
    case "service":
      return ({ service }) => service?.id ?? "";
    case "header": {
      const field = name.toLowerCase();
      return orAddress((context) => context.header(field));
    }
    case "cookie":
      return orAddress((context) => context.cookie(name));
    case "query":
      return orAddress((context) => context.queryValue(name));
    case "jwt":
      return orAddress((context) => claimText(context, name));
    default:
      return address;
  }
}

/** Anonymous clients would otherwise share one count. */
function clientOf({ consumer, isAnonymous, credentialId }: RequestContext): string | null {
  if (isAnonymous) return null;
  return consumer?.id ?? credentialId;
}

/** Only of a token that an authentication plugin has accepted. */
function claimText(context: RequestContext, name: string): string | null {
  const value = claimAt(claimsOf(context), name);
  if (typeof value === "string") return value;
  return value === undefined || value === null ? null : JSON.stringify(value);
}

function claimAt(claims: Readonly<Record<string, unknown>> | null, name: string): unknown {
  if (claims === null) return null;
  if (Object.hasOwn(claims, name)) return claims[name];
  let value: unknown = claims;
  for (const member of name.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, member)) return null;
    value = (value as Record<string, unknown>)[member];
  }
  return value;
}
