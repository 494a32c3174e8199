// Resolves the middlewares of a router with their chains, and converts each by its type; knows no route.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import { type TraefikContext, withoutProvider } from "./context.ts";
import { access } from "./middlewares-access.ts";
import { headers } from "./middlewares-headers.ts";
import { traffic } from "./middlewares-traffic.ts";
import { type PathStep, rewriting } from "./rewrite.ts";

/** A plugin of the routes of a router. */
export interface MiddlewarePlugin {
  readonly name: string;
  readonly config: Document;
  readonly when?: Document;
  /** Whether clients could gain access without it. */
  readonly protects?: boolean;
}

/** Result of one middleware. */
export interface Converted {
  readonly plugins?: readonly MiddlewarePlugin[];
  readonly path?: PathStep;
  /** Fields of the route. */
  readonly fields?: Document;
  /** A protection that could not be converted, for people. */
  readonly lost?: string;
}

/** Converts the settings of one type; reports what it does not convert. */
export type MiddlewareConverter = (settings: Members) => Converted;

const converters: Readonly<Record<string, MiddlewareConverter>> = {
  ...access,
  ...headers,
  ...traffic,
  ...rewriting,
};

/** Types that deny access to some clients. */
const denying: ReadonlySet<string> = new Set([
  ...["basicAuth", "digestAuth", "forwardAuth", "ipAllowList", "ipWhiteList", "plugin"],
  "passTLSClientCert",
]);

export interface NamedConversion extends Converted {
  /** `middleware "auth"` */
  readonly what: string;
}

export interface RouterMiddlewares {
  readonly converted: readonly NamedConversion[];
  /** Each protection as a unique text. */
  readonly protections: ReadonlySet<string>;
}

const MAX_CHAINED = 200;

export function middlewaresOf(
  references: readonly string[],
  { http, output, usedMiddlewares }: TraefikContext,
): RouterMiddlewares {
  const all = http?.object("middlewares") ?? null;
  const converted: NamedConversion[] = [];
  const protections = new Set<string>();
  const lose = (what: string, why: string): void => {
    output.report.omitted(what, why);
    converted.push({ what, lost: what });
    protections.add(what);
  };
  let count = 0;
  const visit = (reference: string, above: readonly string[]): void => {
    const name = withoutProvider(reference);
    const what = `middleware "${name}"`;
    count += 1;
    usedMiddlewares.add(name);
    if (above.includes(name) || count > MAX_CHAINED) return lose(what, "its chain has a loop");
    const members = all?.has(name) === true ? all.object(name) : null;
    if (members === null) return lose(what, "it is not in the configuration");
    members.setLabel(what);
    const types = members.names.filter((type) => members.has(type));
    const [type] = types;
    if (type === undefined || types.length > 1) {
      members.ignoreRest();
      return lose(what, "it must have one type");
    }
    if (type === "chain") {
      const inner = members.object(type)?.texts("middlewares") ?? [];
      for (const one of inner) visit(one, [...above, name]);
      return;
    }
    const convert = Object.hasOwn(converters, type) ? converters[type] : undefined;
    const settings = members.object(type);
    if (convert === undefined || settings === null) {
      members.ignoreRest();
      return lose(what, `this gateway has no equivalent of ${type}`);
    }
    const result = convert(settings);
    // The unknown setting may be the one that denies access.
    const isUnknown = denying.has(type) && settings.hasUnknown();
    const lost = result.lost ?? (isUnknown ? `an unknown setting of ${what}` : undefined);
    converted.push({ what, ...result, ...(lost === undefined ? {} : { lost }) });
    const isProtection = result.plugins?.some(({ protects }) => protects) === true;
    if (denying.has(type) || isProtection || lost !== undefined)
      protections.add(JSON.stringify([type, name]));
  };
  for (const reference of references) visit(reference, []);
  return { converted, protections };
}

/** Reports middlewares that no router uses. */
export function omitUnusedMiddlewares({ http, usedMiddlewares }: TraefikContext): void {
  const all = http?.object("middlewares") ?? null;
  for (const name of all?.names ?? []) {
    if (usedMiddlewares.has(name)) continue;
    const members = all?.object(name);
    members?.setLabel(`middleware "${name}"`);
    members?.drop("no router uses it");
  }
}
