// Converts proxy hosts of Nginx Proxy Manager: each becomes an application, and each of its locations a route beside it.
import { applicationInput } from "../../model/application.ts";
import { decode } from "../../model/decode.ts";
import { ApiError } from "../../model/error.ts";
import { parseUpstream } from "../../applications/upstream.ts";
import type { Members } from "../members.ts";
import { type Advanced, readAdvanced } from "./advanced.ts";
import {
  addAccessList,
  addAdvanced,
  addExtras,
  addHsts,
  combined,
  omitSettings,
  redirectOf,
  reportIgnored,
  type Security,
  securityOf,
} from "./host-parts.ts";
import {
  type Forward,
  forwardOf,
  isMain,
  isPlain,
  isWithinResponse,
  type Location,
  type Part,
  readLocation,
  readOwnLocation,
  routeMatchOf,
} from "./locations.ts";
import { isHarmlessHere, nginxHosts } from "./custom-files.ts";
import { addByNginx, type NginxHosts } from "./nginx-host.ts";
import type { NpmContext } from "./npm.ts";
import { idOf, isOn, isSet, omitState, rowsOf, timesOf } from "./rows.ts";
import { storedNameOf } from "../../model/host-name.ts";

export async function addProxyHosts(context: NpmContext): Promise<void> {
  const hosts = nginxHosts(context);
  const isCustom = [...hosts.http, ...hosts.server].some((one) => !isHarmlessHere(one));
  for (const members of rowsOf("proxy_host", context)) {
    const domains = [...new Set(members.texts("domain_names").map(storedNameOf))];
    members.setLabel(`proxy host "${domains.join(", ")}"`);
    const host = new HostImport(members, domains, context);
    if ((isCustom || host.needsNginx) && (await host.addByNginx(hosts))) continue;
    host.add(isCustom);
  }
}

class HostImport {
  readonly #members: Members;
  readonly #domains: readonly string[];
  readonly #context: NpmContext;
  readonly #name: string;
  readonly #security: Security;
  readonly #advanced: Advanced;
  readonly #accessList: number;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #isOn: boolean;
  readonly #extras: { readonly blocksExploits: boolean; readonly isCached: boolean };
  readonly #websocket: boolean;
  /** Ids by what a service consists of: locations of the same target share one. */
  readonly #services = new Map<string, string>();

  constructor(members: Members, domains: readonly string[], context: NpmContext) {
    this.#members = members;
    this.#domains = domains;
    this.#context = context;
    omitState(members);
    omitSettings(members, context);
    const wanted = domains[0] ?? `proxy-host-${idOf(members)}`;
    this.#name = context.output.name(["applications", "services", "routes"], wanted);
    this.#security = securityOf(members, domains, context);
    this.#advanced = readAdvanced(members.text("advanced_config") ?? "");
    this.#accessList = members.number("access_list_id") ?? 0;
    this.#isOn = isOn(members);
    this.#fields = { hosts: domains, enabled: this.#isOn, ...timesOf(members) };
    this.#extras = {
      blocksExploits: isSet(members, "block_exploits"),
      isCached: isSet(members, "caching_enabled"),
    };
    this.#websocket = isSet(members, "allow_websocket_upgrade");
  }

  /** Whether a directive of its users has no equivalent in fields. */
  get needsNginx(): boolean {
    return this.#advanced.mayDeny || this.#locations().some(({ advanced }) => advanced.mayDeny);
  }

  /** In the order in which nginx reads them. */
  #locations(): readonly Location[] {
    const members = this.#members;
    return [
      ...this.#advanced.locations.map((own) => readOwnLocation(own, members)),
      ...members.objects("locations").map((source) => readLocation(source, members)),
    ];
  }

  /** As nginx reads it, with all of its directives; false: they cannot be read, and nothing is added. */
  async addByNginx(hosts: NginxHosts): Promise<boolean> {
    const members = this.#members;
    const context = this.#context;
    const { output, accessLists } = context;
    const forward = forwardOf(members);
    const list = accessLists.get(this.#accessList) ?? null;
    const { certificate, wantsRedirect, wantsHsts, isSecured, hasSubdomains } = this.#security;
    const sources = members.objects("locations");
    const read = sources.map((source) => readLocation(source, members));
    const hsts = `max-age=63072000${hasSubdomains ? "; includeSubDomains; preload" : ""}`;
    const routes = await addByNginx(
      {
        label: members.label,
        key: `${idOf(members)} ${members.path}`,
        domains: this.#domains,
        isOn: this.#isOn,
        target: forward.target,
        hasCertificate: certificate !== null,
        redirectsToHttps: this.#redirect(members.label, 301).https_redirect !== false,
        hsts: wantsRedirect && wantsHsts && isSecured ? hsts : null,
        isWebsocket: this.#websocket,
        accessList: list,
        advanced: members.text("advanced_config") ?? "",
        locations: read.map(({ path, forward: own }, at) => ({
          path,
          target: own?.target ?? "",
          advanced: sources[at]?.text("advanced_config") ?? "",
        })),
      },
      hosts,
      context,
    );
    if (routes === null) return false;
    output.report.imported(members.label, "became routes, as nginx reads its directives");
    const isUnknown = [members, ...sources].some((one) => one.hasUnknown());
    for (const { id, label, fields } of routes) {
      Object.assign(fields, { enabled: this.#isOn, ...timesOf(members) });
      const lose = (what: string) => output.loseProtection({ scope: { route_id: id }, what });
      if (isUnknown) lose(`an unknown setting of ${members.label}`);
      if (list?.isUnknown === true) lose(list.label);
      if (list === null && this.#accessList > 0) lose(`access list of ${members.label}`);
      const isForwarded = (fields["service_id"] ?? null) !== null;
      const { blocksExploits, isCached } = this.#extras;
      const extras = { blocksExploits, isCached: isCached && isForwarded };
      addExtras(extras, { routeId: id, of: label }, context);
    }
    return true;
  }

  /** `isClosed`: files of nginx beside the database may deny access. */
  add(isClosed: boolean): void {
    const members = this.#members;
    const found = this.#locations();
    const forward = forwardOf(members);
    const ownMain = found.find(isMain) ?? null;
    const locations = found.filter((location) => !isMain(location));
    const mainId = this.#addMain(ownMain, forward);
    const isAnswered = this.#advanced.response !== null;
    const isStrict =
      ownMain !== null && (ownMain.isProtected || ownMain.advanced.response !== null);
    const among = { all: locations, isStrict };
    const ids = isAnswered ? [] : locations.map((one) => this.#addLocation(one, among));
    for (const { label } of isAnswered ? locations : [])
      this.#context.output.report.omitted(
        label,
        "nginx never reaches it: the host responds itself",
      );
    reportIgnored(this.#advanced, members.label, this.#context);
    this.#close({ mainId, ids, ownMain, locations });
    if (isClosed)
      for (const route_id of [mainId, ...ids])
        this.#context.output.loseProtection({
          scope: { route_id },
          what: "a custom file of nginx",
        });
  }

  /** Directives of a host also apply to its locations. */
  #close({
    mainId,
    ids,
    ownMain,
    locations,
  }: {
    readonly mainId: string;
    readonly ids: readonly string[];
    readonly ownMain: Location | null;
    readonly locations: readonly Location[];
  }): void {
    const { output } = this.#context;
    const isWhole =
      this.#advanced.mayDeny ||
      this.#members.hasUnknown() ||
      (locations.some(({ isProtected }) => isProtected) && !locations.every(isPlain));
    const lose = (route_id: string, what: string) =>
      output.loseProtection({
        scope: { route_id },
        what: `a directive of nginx or an unknown setting of ${what}`,
      });
    if (isWhole || ownMain?.isProtected) lose(mainId, this.#members.label);
    for (const [at, id] of ids.entries()) {
      const own = locations[at];
      if (own?.isProtected) lose(id, own.label);
      else if (isWhole) lose(id, this.#members.label);
    }
  }

  #addMain(own: Location | null, forward: Forward): string {
    const { label, path: key } = this.#members;
    const { output } = this.#context;
    const advanced = own === null ? this.#advanced : combined(this.#advanced, own.advanced);
    const response = this.#advanced.response ?? own?.advanced.response ?? null;
    const target = response !== null ? null : own === null ? forward : own.forward;
    if (own !== null) reportIgnored(own.advanced, own.label, this.#context);
    const part: Part = {
      label,
      key: `${idOf(this.#members)} ${key}`,
      name: this.#name,
      forward: target,
      advanced: { ...advanced, response },
      match: {},
      isProtected: this.#isOn && (this.#accessList > 0 || this.#advanced.mayDeny),
      isStrict: false,
    };
    if (target === null) {
      const redirect = this.#redirect(label, 308);
      const { routeId } = this.#addRoute(part, redirect);
      addHsts(this.#security, { routeId, of: label }, this.#context);
      output.report.imported(label, "became a route, because it forwards nothing itself");
      return routeId;
    }
    const why = this.#problemOfApplication(target);
    const isApplication = why === null;
    const { wantsRedirect, isSecured, wantsHsts, hasSubdomains } = this.#security;
    const { routeId, serviceId } = this.#addRoute(
      part,
      isApplication
        ? { https_redirect: wantsRedirect && isSecured ? 308 : false }
        : this.#redirect(label, 308),
    );
    const isOwnHsts = !isApplication || (hasSubdomains && isSecured);
    if (isOwnHsts) addHsts(this.#security, { routeId, of: label }, this.#context);
    if (!isApplication) {
      output.report.changed(label, `became a service and a route, not an application: ${why}`);
      return routeId;
    }
    const times = timesOf(this.#members);
    const fields = { ...this.#application(target), ...times };
    const hsts = wantsHsts && !isOwnHsts;
    output.add(
      "applications",
      { key: part.key, label, parts: [serviceId, routeId] },
      { ...fields, https: { ...fields.https, hsts } },
    );
    output.report.imported(label, "became an application");
    const hstsText = hasSubdomains ? " and sends HSTS, not for subdomains," : " and sends HSTS";
    if (wantsRedirect && !isSecured)
      output.report.changed(
        label,
        `redirects to HTTPS${hsts ? hstsText : ""} as soon as its certificate is issued`,
      );
    return routeId;
  }

  #redirect(of: string, status: 301 | 308) {
    return redirectOf(this.#security, { of, status }, this.#context);
  }

  #application({ scheme, host, port, path }: Forward) {
    const { certificate, isCovered, wantsRedirect } = this.#security;
    const address = host.includes(":") ? `[${host}]` : host;
    return {
      name: this.#name,
      domains: this.#domains,
      upstream: `${scheme}://${address}:${port}${path}`,
      https: {
        ...(certificate !== null && isCovered
          ? { mode: "certificate", certificate_id: certificate.id }
          : { mode: "off" }),
        redirect: wantsRedirect,
      },
      enabled: this.#isOn,
    };
  }

  /** Why an application cannot hold the host; null: it can. */
  #problemOfApplication(target: Forward): string | null {
    try {
      const { upstream } = decode(applicationInput, this.#application(target));
      parseUpstream(upstream ?? "");
      return null;
    } catch (error) {
      if (error instanceof ApiError) return error.message;
      throw error;
    }
  }

  /** `isStrict`: the rest of the host is not forwarded. */
  #addLocation(
    location: Location,
    { all, isStrict }: { readonly all: readonly Location[]; readonly isStrict: boolean },
  ): string {
    const { output } = this.#context;
    const { label, path, advanced, forward, isProtected } = location;
    const response = isProtected ? null : advanced.response;
    const { fields, difference } = routeMatchOf(location, all);
    const part: Part = {
      label,
      key: `${idOf(this.#members)} ${location.key}`,
      name: output.name("routes", `${this.#name} ${path}`),
      forward: response === null ? forward : null,
      advanced: { ...combined(this.#advanced, advanced), response },
      match: fields,
      isProtected: this.#isOn && (isProtected || (this.#accessList > 0 && response === null)),
      isStrict: isStrict || isWithinResponse(location, all),
    };
    const { routeId } = this.#addRoute(part, this.#redirect(label, 308));
    addHsts(this.#security, { routeId, of: label }, this.#context);
    output.report.imported(label, "became a route of its own");
    if (difference !== null) output.report.changed(label, difference);
    reportIgnored(advanced, label, this.#context);
    return routeId;
  }

  #addRoute(
    part: Part,
    redirect: Readonly<Record<string, unknown>>,
  ): { readonly routeId: string; readonly serviceId: string } {
    const { output } = this.#context;
    const { label, key, name, forward, advanced, match, isProtected, isStrict } = part;
    const serviceId = forward === null ? null : this.#addService(part, forward);
    const routeId = output.add(
      "routes",
      { key, label, protects: isProtected },
      {
        ...this.#fields,
        websocket: this.#websocket || advanced.isWebsocket,
        ...redirect,
        name,
        service_id: serviceId,
        ...match,
      },
    );
    const of = { routeId, of: label };
    if (advanced.response === null) {
      addAccessList(this.#accessList, { ...of, isStrict }, this.#context);
      addAdvanced(advanced, { ...of, isForwarded: forward !== null }, this.#context);
    } else
      output.plugin({
        ...advanced.response,
        key: routeId,
        what: `response of ${label}`,
        scope: { route_id: routeId },
      });
    const { blocksExploits, isCached } = this.#extras;
    addExtras(
      { blocksExploits, isCached: isCached && advanced.response === null },
      of,
      this.#context,
    );
    return { routeId, serviceId: serviceId ?? "" };
  }

  #addService({ key, label, name, advanced }: Part, forward: Forward): string {
    const { output } = this.#context;
    const { scheme: protocol, host, port, path } = forward;
    const fields = {
      protocol,
      path,
      // nginx does not verify targets by default.
      tls: { verify: false },
      connect_timeout: 90_000,
      response_timeout: 90_000,
      read_timeout: 90_000,
      write_timeout: 90_000,
      ...advanced.timeouts,
    };
    const target = { host, port };
    const content = JSON.stringify([fields, target]);
    const known = this.#services.get(content);
    if (known !== undefined) return known;
    const isMainService = name === this.#name;
    const serviceId = output.add(
      "services",
      { key, label: `service of ${label}` },
      { name: isMainService ? name : output.name("services", name), ...fields },
    );
    output.add(
      "targets",
      { key, label: `target of ${label}` },
      { ...target, service_id: serviceId },
    );
    this.#services.set(content, serviceId);
    return serviceId;
  }
}
