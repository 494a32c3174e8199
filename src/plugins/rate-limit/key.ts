// By what a request is counted: its key for one limit; knows no count.
import { claimsOf } from "../../pdk/authentication.ts";
import type { RequestContext } from "../../pdk/context.ts";
import { networkOf } from "../../pdk/net.ts";

type Read = (context: RequestContext) => string;

/** Parts that nobody knows before it is known who the client is. */
const OF_CLIENT = /^(?:consumer$|credential$|jwt:)/;

/** Whether the parts are only known after authentication. */
export const asksForClient = (parts: readonly string[]): boolean =>
  parts.some((part) => OF_CLIENT.test(part));

/** Prepares the key. Whoever leaves out what it is made of is counted by its address: it must not go uncounted. */
export function keyReader(parts: readonly string[], ipv6Prefix: number): Read {
  const reads = parts.map((part) => readerOf(part, ipv6Prefix));
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

function readerOf(part: string, ipv6Prefix: number): Read {
  const address: Read = (context) => networkOf(context.clientAddress(), ipv6Prefix);
  // An address has no equals sign, so no value can be taken for one.
  const orAddress =
    (read: (context: RequestContext) => string | null): Read =>
    (context) => {
      const value = read(context);
      return value === null ? address(context) : `=${value}`;
    };
  const colon = part.indexOf(":");
  const name = part.slice(colon + 1);
  switch (colon === -1 ? part : part.slice(0, colon)) {
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

/** A stand-in is nobody: all that it stands for would share one count. */
function clientOf({ consumer, isAnonymous, credentialId }: RequestContext): string | null {
  if (isAnonymous) return null;
  return consumer?.id ?? credentialId;
}

/** Only of a token that an authentication has accepted. */
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
