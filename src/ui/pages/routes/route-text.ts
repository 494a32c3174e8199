// What a route matches, in few words, and how paths are compared; renders nothing.
import type { Schemas } from "../../api/resources.ts";

type Route = Schemas["Route"];
export type PathMatch = Exclude<Route["paths"][number], string>;
export type PathType = PathMatch["type"];

/** The API also accepts strings, but returns objects. */
export const pathMatchOf = (path: Route["paths"][number]): PathMatch => {
  if (typeof path !== "string") return path;
  if (path.startsWith("=")) return { type: "exact", value: path.slice(1) };
  if (path.startsWith("~")) return { type: "regex", value: path.slice(1) };
  return { type: "prefix", value: path };
};

/** `/api/*`, `/api`, `~ ^/api`. */
function pathText({ type, value }: PathMatch): string {
  if (type === "exact") return value;
  return type === "regex" ? `~ ${value}` : `${value.replace(/\/$/, "")}/*`;
}

const some = (all: readonly string[], none: string): string => {
  const [first] = all;
  if (first === undefined) return none;
  return all.length === 1 ? first : `${first} +${all.length - 1}`;
};

/** `helloworld.Greeter/SayHello`, with `*` for any. */
const callText = ({ service, method }: Route["grpc_methods"][number]): string =>
  `/${service === "" ? "*" : service}/${method === "" ? "*" : method}`;

/** `shop.example.com/api/*`. */
export function matchText({
  hosts,
  paths,
  grpc_methods: methods,
}: Pick<Route, "hosts" | "paths" | "grpc_methods">): string {
  const path = some(
    [...paths.map((item) => pathText(pathMatchOf(item))), ...methods.map(callText)],
    "",
  );
  const host = some(hosts, "any host");
  if (path === "" || path === "/*") return host;
  return hosts.length === 1 && path.startsWith("/") ? host + path : `${host} ${path}`;
}

/** Conditions in addition to host and path: `GET, POST; 2 conditions`. */
export function conditionText(route: Route): string {
  const { methods, headers, query, cookies, client_cidrs, protocols } = route;
  const others = headers.length + query.length + cookies.length + client_cidrs.length;
  return [
    methods.join(", "),
    others === 0 ? "" : others === 1 ? "1 condition" : `${others} conditions`,
    protocols.length === 1 ? `only ${protocols[0]}` : "",
  ]
    .filter((part) => part !== "")
    .join("; ");
}

/** Whether a path matches, by the gateway's rules; null: the regular expression is invalid. */
export function matchesPath({ type, value }: PathMatch, path: string): boolean | null {
  if (type === "exact") return path === value;
  if (type === "prefix") {
    const prefix = value.replace(/\/$/, "");
    return path === prefix || path.startsWith(`${prefix}/`);
  }
  try {
    return new RegExp(value).test(path);
  } catch {
    return null;
  }
}

/** A URL that the route probably matches, as the initial value of a test. */
export function exampleUrl({ hosts, paths, protocols, grpc_methods: methods }: Route): string {
  const host = hosts[0]?.replace("*", "www") ?? location.hostname;
  const first = paths.map(pathMatchOf).find(({ type }) => type !== "regex");
  const [call] = methods;
  const path = call === undefined ? "/" : callText(call).replaceAll("*", "x");
  return `${protocols[0] ?? "http"}://${host}${first?.value ?? path}`;
}

/** Why a path cannot match; null: it can. */
export function pathProblem({ type, value }: PathMatch): string | null {
  if (value === "") return null;
  if (type === "regex") return regexProblem(value);
  if (!value.startsWith("/")) return "Must start with /";
  return /[?#\s]/.test(value) ? "Must not contain ? or #" : null;
}

function regexProblem(source: string): string | null {
  try {
    new RegExp(source);
    return null;
  } catch (error) {
    return error instanceof Error
      ? error.message.replace(/^Invalid regular expression: /, "")
      : "Not a valid regular expression";
  }
}
