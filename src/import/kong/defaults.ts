// Reads the version of a declarative file of Kong, and fills in the defaults that decK keeps in it; knows no kind of object's fields.
import { type Document, isDocument } from "../../control/body.ts";
import { ApiError, invalid } from "../../model/error.ts";

const FORMATS: Readonly<Record<string, string>> = { "1": "1.1", "2": "2.1", "3": "3.0" };

/** Lists of which a file without a version has at least one. */
const LISTS = [
  ...["services", "routes", "plugins", "consumers", "upstreams", "certificates"],
  ...["ca_certificates", "consumer_groups", "vaults"],
];

export interface KongFormat {
  /** 1.1, 2.1 or 3.0. */
  readonly format: string;
  /** Whether the file does not say it: decK does not require it. */
  readonly isGuessed: boolean;
}

/** Throws a 400 for another version, and for a file that is not of Kong. */
export function formatOf(value: Document): KongFormat {
  const given = value["_format_version"] ?? null;
  if (given !== null) {
    const [, major = ""] = /^(\d)(?:\.\d+)?$/.exec(String(given)) ?? [];
    const format = FORMATS[major];
    if (format === undefined) throw invalid("_format_version", "must be one of 1.1, 2.1, 3.0");
    return { format, isGuessed: false };
  }
  if (!LISTS.some((name) => Array.isArray(value[name])))
    throw new ApiError(
      400,
      `_format_version: must be one of 1.1, 2.1, 3.0, or the file must have one of ${LISTS.join(", ")}`,
    );
  return { format: hasNewPaths(value) ? "3.0" : "2.1", isGuessed: true };
}

/** Since 3.0, expressions begin with `~`, and routes may be expressions as a whole. */
function hasNewPaths(value: Document): boolean {
  const routes = [...listOf(value["routes"]), ...listOf(value["services"]).flatMap(routesOf)];
  return routes.some(
    (route) =>
      Object.hasOwn(route, "expression") ||
      (Array.isArray(route["paths"]) &&
        route["paths"].some((path) => String(path).startsWith("~"))),
  );
}

const listOf = (value: unknown): readonly Document[] =>
  Array.isArray(value) ? value.filter(isDocument) : [];

const routesOf = (service: Document) => listOf(service["routes"]);

/** The file with `_info.defaults` in its services, routes, upstreams and targets. What an object sets, stays. */
export function withDefaults(value: Document): Document {
  const info = value["_info"];
  const defaults = isDocument(info) ? info["defaults"] : null;
  if (!isDocument(defaults)) return value;
  const of = (kind: string): Document => {
    const found = defaults[kind];
    return isDocument(found) ? found : {};
  };
  const each = (list: unknown, fill: (item: Document) => Document): unknown =>
    Array.isArray(list) ? list.map((item) => (isDocument(item) ? fill(item) : item)) : list;
  const inside = (item: Document, name: string, fill: (inner: Document) => Document): Document =>
    Object.hasOwn(item, name) ? { ...item, [name]: each(item[name], fill) } : item;
  const route = (item: Document) => filled(item, of("route"));
  const target = (item: Document) => filled(item, of("target"));
  const service = (item: Document) =>
    inside(
      filled(item, Object.hasOwn(item, "url") ? besideUrl(of("service")) : of("service")),
      "routes",
      route,
    );
  const upstream = (item: Document) => inside(filled(item, of("upstream")), "targets", target);
  const whole = { services: service, routes: route, upstreams: upstream, targets: target };
  return Object.entries(whole).reduce((all, [name, fill]) => inside(all, name, fill), value);
}

/** A URL already says these. */
const besideUrl = ({ protocol: _, host: __, port: ___, path: ____, ...rest }: Document): Document =>
  rest;

/** Objects are filled in at any depth, lists are not. */
function filled(item: Document, defaults: Document): Document {
  const added = Object.entries(defaults).flatMap(([name, value]) => {
    const own = Object.hasOwn(item, name) ? item[name] : undefined;
    if (own === undefined || own === null) return [[name, value] as const];
    return isDocument(own) && isDocument(value) ? [[name, filled(own, value)] as const] : [];
  });
  return { ...item, ...Object.fromEntries(added) };
}
