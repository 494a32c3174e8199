// Describes which condition of a route a request fails; knows no order of routes and no response.
import { cookieValue } from "../http/cookie.ts";
import { queryValue } from "../http/query.ts";
import type { Route, ValueMatch } from "../model/route.ts";
import { matchedPaths } from "../snapshot/matched-paths.ts";
import type { RouteSubject } from "./router/compiled-match.ts";

/** Longer lists and values are cut. */
const MAX_ITEMS = 5;
const MAX_LENGTH = 100;

/** `field` as returned by `firstMismatch`. */
export function mismatchInWords(route: Route, field: string, subject: RouteSubject): string {
  return `${field}: ${wordsFor(route, field, subject)}`;
}

function wordsFor(route: Route, field: string, subject: RouteSubject): string {
  switch (field) {
    case "hosts":
      return `${shown(subject.host)} is none of ${listed(route.hosts)}`;
    case "paths":
      return `${shown(subject.path)} matches none of ${listed(matchedPaths(route).map(({ type, value }) => `${type} ${value}`))}`;
    case "methods":
      return `${shown(subject.method)} is none of ${listed(route.methods)}`;
    case "protocols":
      return `${subject.protocol} is none of ${listed(route.protocols)}`;
    case "listener_ids":
      return "the request comes through another listener";
    case "client_cidrs":
      return `${subject.clientAddress()} is in none of ${listed(route.client_cidrs)}`;
    default:
      return valueWords(route, field, subject);
  }
}

function valueWords(route: Route, field: string, subject: RouteSubject): string {
  const [, list = "", index = ""] = /^(headers|query|cookies)\[(\d+)\]$/.exec(field) ?? [];
  const match = (route as unknown as Record<string, ValueMatch[] | undefined>)[list]?.[
    Number(index)
  ];
  if (match === undefined) return "the request does not meet it";
  const { name, op, value } = match;
  const found = requestValue(list, name, subject);
  const is = found === null ? "is absent" : `is ${JSON.stringify(shown(found))}`;
  switch (op) {
    case "equals":
      return `${name} ${is} and not ${JSON.stringify(shown(value))}`;
    case "regex":
      return `${name} ${is} and does not match ${shown(value)}`;
    case "present":
      return `${name} is absent`;
    case "absent":
      return `${name} is present`;
    default:
      return op satisfies never;
  }
}

function requestValue(list: string, name: string, subject: RouteSubject): string | null {
  if (list === "query") return queryValue(subject.query, name);
  if (list === "cookies") return cookieValue(subject.header("cookie"), name);
  return subject.header(name.toLowerCase());
}

const shown = (text: string) => (text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text);

function listed(items: readonly string[]): string {
  const more = items.length - MAX_ITEMS;
  const named = items.slice(0, MAX_ITEMS).map(shown).join(", ");
  return more > 0 ? `${named} and ${more} more` : named;
}
