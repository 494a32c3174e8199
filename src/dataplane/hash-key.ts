// The consistent hashing key of a request; knows no target.
import type { Service } from "../model/service.ts";
import { cookieValue } from "../http/cookie.ts";
import { hashText } from "./balancer/consistent-hash.ts";
import type { RouteSubject } from "./router/compiled-match.ts";

type Source = Service["hash_on"]["source"];

/** A 32-bit hash of `hash_on.source`, else of its fallback; null when both are absent. */
export function hashKey({ hash_on: hashOn }: Service, request: RouteSubject): number | null {
  const { source, name, fallback } = hashOn;
  const value = textOf(source, name, request) ?? textOf(fallback, name, request);
  return value === null ? null : hashText(value);
}

/** Null when absent or empty, because all requests without a value would go to one target. */
function textOf(source: Source, name: string, request: RouteSubject): string | null {
  return rawTextOf(source, name, request) || null;
}

function rawTextOf(source: Source, name: string, request: RouteSubject): string | null {
  switch (source) {
    case "ip":
      return request.clientAddress();
    case "header":
      return request.header(name.toLowerCase());
    case "cookie":
      return cookieValue(request.header("cookie"), name);
    case "query":
      return new URLSearchParams(request.query).get(name);
    case "path":
      return request.path;
    case "consumer":
      // The consumer is not known to the balancer: the fallback decides.
      return null;
  }
}
