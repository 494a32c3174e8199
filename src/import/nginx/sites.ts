// Divides a server into sites: requests with one content and one set of protections; knows no route and no host.
import type { Document } from "../../control/body.ts";
import { type Access, accessOf, deniedAccess } from "./access.ts";
import {
  type Branch,
  type Conditions,
  type Content,
  type ContentOptions,
  type Reading,
  readLocationContent,
  readServerContent,
} from "./content.ts";
import { type Location, type Locations, locationsOf, mayMatch } from "./locations.ts";
import { landingOf } from "./landings.ts";
import { type Variant, variantsOf } from "./maps.ts";
import type { NginxContext } from "./nginx.ts";
import { escaped } from "../expression.ts";
import { literalPath, pathExpression } from "./paths.ts";
import type { SitePath } from "./site-paths.ts";
import { Level, shownPlace } from "./tree.ts";

export interface Site {
  readonly path: SitePath;
  readonly conditions: Conditions;
  readonly content: Content;
  readonly access: Access;
  readonly level: Level;
  /** In the report: `location /api at nginx.conf:12`. */
  readonly label: string;
  /** Unique in the server. */
  readonly key: string;
}

/** In the order in which they are tried; together they match every request. */
export async function sitesOf(
  server: Level,
  own: Pick<ContentOptions, "serverName" | "hosts">,
  context: NginxContext,
): Promise<readonly Site[]> {
  const locations = locationsOf(server);
  const options = { ...own, named: locations.named, report: context.output.report };
  const whole = readServerContent(server, options);
  const { lost, methods } = whole;
  const maker = new SiteMaker(server, { locations, options, context, lost, methods });
  await maker.addBranches(whole.branches, null, server);
  if (whole.content !== null) {
    maker.addResponse(whole.content);
    return maker.sites;
  }
  if (server.last("ssl_reject_handshake")?.args[0] === "on") {
    maker.addResponse({ kind: "response", name: "respond", config: { status: 403 } });
    return maker.sites;
  }
  maker.addSlashes();
  for (const location of locations.inOrder) await maker.addLocation(location);
  if (!locations.inOrder.some(({ kind, value }) => kind === "prefix" && value === "/"))
    await maker.addRest();
  return maker.sites;
}

interface ServerParts {
  readonly locations: Locations;
  readonly options: ContentOptions;
  readonly context: NginxContext;
  /** What may deny access to the whole server. */
  readonly lost: readonly string[];
  /** All others are denied; null: no method is. */
  readonly methods: readonly string[] | null;
}

class SiteMaker {
  readonly #server: Level;
  readonly #parts: ServerParts;
  readonly #lost: readonly string[];
  readonly sites: Site[] = [];

  constructor(server: Level, parts: ServerParts) {
    this.#server = server;
    this.#parts = parts;
    const { unsupported } = parts.locations;
    this.#lost = [...parts.lost, ...unsupported.map(({ label }) => label)];
  }

  async addBranches(branches: readonly Branch[], path: SitePath, level: Level): Promise<void> {
    for (const { conditions, content, label, rewrite } of branches) {
      const own = conditions.path === undefined ? path : branchPath(conditions.path, path);
      const landed = rewrite === undefined ? null : landingOf(rewrite, this.#parts);
      const site = { path: own, conditions, label };
      if (landed === null) this.#add({ ...site, content, access: deniedAccess, level });
      else {
        const access = await this.#accessOf(landed.level, landed.content, landed);
        this.#add({ ...site, content: landed.content, access, level: landed.level });
      }
    }
  }

  addResponse(content: Content): void {
    const label = `server at ${shownPlace(this.#server.place)}`;
    this.#add({
      path: null,
      conditions: {},
      content,
      access: deniedAccess,
      level: this.#server,
      label,
    });
  }

  /** nginx redirects `/app` to a location `/app/` with a target before it tries expressions. */
  addSlashes(): void {
    const { inOrder } = this.#parts.locations;
    const literal = inOrder.filter(({ kind }) => kind !== "regex");
    const values = new Set(literal.map(({ value }) => value));
    for (const location of literal) {
      const { value, level, label, kind } = location;
      const bare = value.slice(0, -1);
      const redirects = value.endsWith("/") && bare !== "" && !values.has(bare);
      if (!redirects || level.own("proxy_pass").length === 0) continue;
      const first = inOrder.find((other) => mayMatch(other, bare) || other === location);
      if (kind === "prefix" && first === location) continue;
      const { content } = readLocationContent(level, this.#parts.options);
      const config = { to: value.replaceAll("$", "%24"), status: 301, keep_path: false };
      this.#add({
        path: { kind: "exact", value: bare, isCaseless: false, region: null, holes: [] },
        conditions: {},
        content:
          content?.kind === "closed" ? content : { kind: "response", name: "redirect", config },
        access: deniedAccess,
        level,
        label: `${label}, without the slash`,
      });
    }
  }

  async addLocation(location: Location): Promise<void> {
    const { level } = location;
    const path =
      location.kind === "prefix" && location.value === "/" && location.holes.length === 0
        ? null
        : location;
    const { branches } = readLocationContent(level, this.#parts.options);
    await this.addBranches(branches, path, level);
    for (const variant of variantsOf(level) ?? [{ conditions: {}, level }])
      await this.#addContent(location, path, variant);
  }

  async #addContent(
    location: Location,
    path: SitePath,
    { conditions, level }: Variant,
  ): Promise<void> {
    const { label } = location;
    const reading = readLocationContent(level, this.#parts.options);
    const { content } = reading;
    if (content === null) return;
    const isChallenge = location.value.startsWith("/.well-known/acme-challenge");
    const own: Content =
      isChallenge && content.kind === "closed"
        ? { ...content, status: 404, why: "the gateway responds to challenges of ACME itself" }
        : content;
    const access = await this.#accessOf(level, own, reading);
    const isDenied = own.kind === "closed" && (await this.#deniesAll(level));
    const denial = { kind: "response", name: "respond", config: { status: 403 } } as const;
    const what = isDenied ? denial : own;
    this.#add({ path, conditions, content: what, access, level, label });
  }

  async #deniesAll(level: Level): Promise<boolean> {
    const { protections, lost } = await this.#protectionsOf(level);
    return protections === null && lost.length === 0;
  }

  /** What no location matches. */
  async addRest(): Promise<void> {
    const serves = ["root", "try_files", "index"].some((name) => this.#server.own(name).length > 0);
    const { content } = readLocationContent(
      new Level({ block: this.#server.own("try_files"), place: this.#server.place }, this.#server),
      this.#parts.options,
    );
    if (content === null) return;
    const isFallback = content.kind === "proxy";
    const own: Content =
      isFallback || serves
        ? content
        : ({ kind: "response", name: "respond", config: { status: 404 } } as const);
    this.#add({
      path: null,
      conditions: {},
      content: own,
      // Without a location there is only what nginx finds as a file.
      access:
        isFallback || serves
          ? await this.#accessOf(this.#server, own, { lost: [], methods: null })
          : await this.#protectionsOf(this.#server),
      level: this.#server,
      label: `other paths of the server at ${shownPlace(this.#server.place)}`,
    });
  }

  async #accessOf(
    level: Level,
    content: Content,
    { lost, methods }: Pick<Reading, "lost" | "methods">,
  ): Promise<Access> {
    const isDenied = content.kind === "closed" && content.isDenial;
    // Responses go before all conditions but those of the same module.
    if (content.kind === "response" || isDenied)
      return { ...deniedAccess, lost: [...this.#lost, ...lost] };
    const limits = [this.#parts.methods, methods].filter((each) => each !== null);
    const own = withMethods(await this.#protectionsOf(level), limits);
    if (content.kind === "closed") return own;
    const inner =
      content.level === level ? own : withMethods(await this.#protectionsOf(content.level), limits);
    const isSame = JSON.stringify(inner.plugins) === JSON.stringify(own.plugins);
    const all = [
      ...this.#lost,
      ...lost,
      ...own.lost,
      ...inner.lost,
      ...(isSame ? [] : [`try_files at ${shownPlace(level.place)}`]),
    ];
    return all.length === 0 ? own : { ...own, lost: all, protections: null };
  }

  #protectionsOf(level: Level): Promise<Access> {
    return accessOf(level, this.#parts.context, (path) => {
      const { inOrder, named } = this.#parts.locations;
      const found = inOrder.find((location) => mayMatch(location, path));
      if (found?.kind === "regex" && pathExpression(found.value, found.isCaseless) === null)
        return null;
      if (found !== undefined)
        return { level: found.level, value: found.kind === "regex" ? null : found.value };
      const level = named.get(path);
      return level === undefined ? null : { level, value: null };
    });
  }

  #add(site: Omit<Site, "key">): void {
    this.sites.push({ ...site, key: `${site.label} ${this.sites.length}` });
  }
}

/** Denies all methods but these. */
function withMethods(access: Access, limits: readonly (readonly string[])[]): Access {
  if (limits.length === 0) return access;
  const rules = limits.map((method) => ({ when: { not: { method } }, action: "deny" }));
  const policy = access.plugins.find(({ name }) => name === "access-policy");
  const own = (policy?.config["rules"] ?? []) as readonly Document[];
  const plugin = {
    name: "access-policy",
    what: policy?.what ?? "methods",
    config: { ...policy?.config, rules: [...rules, ...own] },
  };
  const { protections } = access;
  return {
    ...access,
    plugins: [plugin, ...access.plugins.filter((each) => each !== policy)],
    protections:
      protections === null
        ? null
        : new Set([...protections, ...rules.map((rule) => JSON.stringify(rule))]),
  };
}

const EVERYTHING = /^\^?\/?\(?\.\*\)?\$?$|^\^\/?$/;

/** An expression inside of a location. */
function branchPath(source: string, outer: SitePath): SitePath {
  if (EVERYTHING.test(source)) return outer;
  const common = { kind: "regex", value: source, isCaseless: false, holes: [] } as const;
  if (outer === null) return { ...common, region: null };
  const text = literalPath(outer.value).text;
  if (outer.kind === "exact") return { ...common, region: `^${escaped(text)}$` };
  if (outer.kind === "prefix") return { ...common, region: `^${escaped(text)}` };
  const plain = pathExpression(outer.value, outer.isCaseless)?.plain ?? "";
  const inner = `[^]*?(?:${plain})`;
  return { ...common, region: outer.region === null ? inner : `(?=${outer.region})${inner}` };
}
