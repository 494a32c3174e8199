// What consistent_hash hashes of a request; knows no target.
import type { Service } from "../model/service.ts";
import { cookieValue } from "../http/cookie.ts";
import { hashText } from "./balancer/consistent-hash.ts";
import type { RequestContext } from "./request-context.ts";

type Source = Service["hash_on"]["source"];

/** 32 bits of the value that the service names, of the fallback when that is absent; null when both are. */
export function hashKey({ hash_on: hashOn }: Service, context: RequestContext): number | null {
  const { source, name, fallback } = hashOn;
  const value = textOf(source, name, context) ?? textOf(fallback, name, context);
  return value === null ? null : hashText(value);
}

/** Null when absent or empty: all requests without a value on one target would be no balance. */
function textOf(source: Source, name: string, context: RequestContext): string | null {
  return rawTextOf(source, name, context) || null;
}

function rawTextOf(source: Source, name: string, context: RequestContext): string | null {
  switch (source) {
    case "ip":
      return context.clientAddress();
    case "header":
      return context.header(name.toLowerCase());
    case "cookie":
      return cookieValue(context.header("cookie"), name);
    case "query":
      return new URLSearchParams(context.query).get(name);
    case "path":
      return context.path;
    case "consumer":
      // Nobody is recognised yet: the fallback decides.
      return null;
  }
}
