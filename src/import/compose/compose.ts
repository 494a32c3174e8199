// Converts files of Docker Compose whose services a proxy finds by labels or variables; knows none of them.
import { type Document, isDocument } from "../../control/body.ts";
import { ApiError, invalid } from "../../model/error.ts";
import type { ConversionContext } from "../convert.ts";
import type { Output } from "../output.ts";
import { locateErrors, readText } from "../source-text.ts";
import { flagsToStatic } from "../traefik/flags.ts";
import { labelsToDynamic } from "../traefik/labels.ts";
import { mergeDynamic } from "../traefik/merge.ts";
import { convertTraefik } from "../traefik/traefik.ts";
import { type ComposeService, readService } from "./compose-service.ts";
import { caddyLabelSites } from "./caddy-labels.ts";
import { nginxProxySites } from "./nginx-proxy.ts";
import { addOwnSites, hasOwnLabels } from "./own-sites.ts";
import { sitesToDynamic } from "./site-routers.ts";

/** Throws a 400 for another file. */
export async function convertCompose(
  bytes: Uint8Array,
  output: Output,
  { parseJson }: Pick<ConversionContext, "parseJson">,
): Promise<void> {
  await locateErrors(await readText(bytes, parseJson), (value) => {
    const services = isDocument(value) ? value["services"] : null;
    if (!isDocument(services))
      throw new ApiError(400, "services: is required in a file of Docker Compose");
    const read = Object.entries(services).map(([name, service]) => {
      if (!isDocument(service)) throw invalid(`services.${name}`, "must be an object");
      return readService(name, service);
    });
    convertServices(read, output);
  });
}

/** Proxies, which serve the other services. */
const PROXIES =
  /(?:^|\/)(?:traefik|caddy-docker-proxy|nginx-proxy|acme-companion|docker-gen|letsencrypt-nginx-proxy-companion)(?:[:@]|$)/;

function convertServices(services: readonly ComposeService[], output: Output): void {
  const { report } = output;
  const flags =
    services.find(({ image }) => /(?:^|\/)traefik(?:[:@]|$)/.test(image))?.command ?? [];
  const { settings, isExposedByDefault } = flagsToStatic(flags);
  const documents: Document[] = [settings];
  const closed = new Map<string, string>();
  for (const service of services) {
    if (hasOwnLabels(service)) {
      if (addOwnSites(service, output)) reportTarget(service, output);
      continue;
    }
    const found = dynamicOf(service, isExposedByDefault, output);
    documents.push(...found.map(({ dynamic }) => dynamic));
    for (const one of found) for (const [name, why] of one.closed) closed.set(name, why);
    if (found.length > 0) reportTarget(service, output);
  }
  const { dynamic, conflicts } = mergeDynamic(documents);
  for (const name of conflicts) {
    report.omitted(name, "two containers define it differently, which Traefik rejects");
    for (const router of routersOf(dynamic, name)) closed.set(router, name);
  }
  convertTraefik({ ...settings, ...dynamic }, output, { closed, hasSites: true });
}

/** Routers that are not served in Traefik, because two containers define them or a middleware of theirs. */
function routersOf(dynamic: Document, conflict: string): readonly string[] {
  const [, kind = "", name = ""] = /^http\.([^.]+)\.(.*)$/s.exec(conflict) ?? [];
  if (kind === "routers") return [name];
  return kind === "middlewares" ? routersIn(dynamic) : [];
}

interface ServiceConfiguration {
  readonly dynamic: Document;
  readonly closed: ReadonlyMap<string, string>;
}

function dynamicOf(
  service: ComposeService,
  isExposedByDefault: boolean,
  output: Output,
): readonly ServiceConfiguration[] {
  const { name, labels, environment, missing } = service;
  const { report } = output;
  const what = `container "${name}"`;
  for (const { key, variable } of missing)
    report.omitted(`${what}: ${key}`, `the value of \${${variable}} is not in the file`);
  const target = { name, address: service.address, port: service.targetPort(null) };
  const found: ServiceConfiguration[] = [];
  const traefik = labelsToDynamic(labels, target);
  const isEnabled = traefik.isEnabled ?? isExposedByDefault;
  const hasLabels = Object.keys(traefik.dynamic).length > 0;
  if (hasLabels && !isEnabled) report.omitted(what, "traefik.enable is not true");
  if (isEnabled) for (const problem of traefik.problems) report.omitted(what, problem);
  if (hasLabels && isEnabled)
    found.push({ dynamic: withPublished(traefik.dynamic, service), closed: new Map() });
  for (const sites of [caddyLabelSites(labels, { name }), nginxProxySites(environment)]) {
    if (sites.length === 0) continue;
    const placed = sites.map((site) =>
      site.address === null ? { ...site, ...service.published(site.port ?? 80) } : site,
    );
    const { dynamic, closed, problems } = sitesToDynamic(placed, {
      name,
      address: service.address,
      port: 80,
    });
    for (const problem of problems) report.omitted(what, problem);
    found.push({ dynamic, closed });
  }
  if (found.length === 0 && !hasLabels)
    report.omitted(
      what,
      PROXIES.test(service.image)
        ? "this gateway replaces it"
        : "it has no labels or variables of a proxy",
    );
  const unknown = missing.find(({ key }) => !HARMLESS.test(key));
  if (unknown === undefined) return found;
  // The value may name a middleware that denies access.
  const why = `${unknown.key} of ${name}`;
  return found.map(({ dynamic }) => ({
    dynamic,
    closed: new Map(routersIn(dynamic).map((router) => [router, why])),
  }));
}

/** Without their value, a router is not served, or as protected as with it. */
const HARMLESS =
  /\.rule$|\.tls\.certresolver$|\.tls\.domains|\.loadbalancer\.|\.middlewares\.[^.]+\.|^caddy(?:_\d+)?$|^VIRTUAL_(?:HOST|PORT)$|^LETSENCRYPT_|^ACME_|^CERT_NAME$|^HTTPS_METHOD$/i;

function routersIn({ http }: Document): readonly string[] {
  const routers = isDocument(http) ? http["routers"] : null;
  return isDocument(routers) ? Object.keys(routers) : [];
}

/** Replaces the servers of the service by its published ports. */
function withPublished(dynamic: Document, service: ComposeService): Document {
  const text = JSON.stringify(dynamic);
  const origin = new RegExp(
    `(?<=["/])${service.name.replaceAll(/[^\w-]/g, "\\$&")}:(\\d+)(?=")`,
    "g",
  );
  return JSON.parse(
    text.replaceAll(origin, (whole, port: string) => {
      const { address, port: published } = service.published(Number(port));
      return address === null ? whole : `${address}:${published}`;
    }),
  ) as Document;
}

function reportTarget({ name, isPublished }: ComposeService, output: Output): void {
  output.report.changed(
    `targets of container "${name}"`,
    isPublished
      ? "are its published ports on this host, where it has them"
      : `have the host name ${name}: run the gateway in a network of this Compose project, or publish the port`,
  );
}
