// Converts projects of Docker Compose whose services a proxy finds by labels or variables; knows none of them.
import { type Document, isDocument } from "../../control/body.ts";
import { ApiError } from "../../model/error.ts";
import type { ConversionContext } from "../convert.ts";
import type { Output } from "../output.ts";
import { type SourceTree, treeOf } from "../set-up/tree.ts";
import { locateErrors, readText } from "../source-text.ts";
import { warnOfEntryPoints, withUsers } from "../traefik/files.ts";
import { labelsToDynamic } from "../traefik/labels.ts";
import { closedByConflicts, mergeDynamic, routersIn } from "../traefik/merge.ts";
import { convertTraefik } from "../traefik/traefik.ts";
import { type ComposeService, readService } from "./compose-service.ts";
import { caddyLabelSites } from "./caddy-labels.ts";
import { nginxProxySites } from "./nginx-proxy.ts";
import { NginxProxyFiles } from "./nginx-proxy-files.ts";
import { addOwnSites, hasOwnLabels } from "./own-sites.ts";
import { type ProjectService, readProjects } from "./project.ts";
import { sitesToDynamic } from "./site-routers.ts";
import { readTraefik, type TraefikSetUp } from "./traefik-files.ts";

/** Throws a 400 for another file. */
export async function convertCompose(
  bytes: Uint8Array,
  output: Output,
  context: Pick<ConversionContext, "parseJson">,
): Promise<void> {
  await locateErrors(await readText(bytes, context.parseJson), async (value) => {
    const services = isDocument(value) ? value["services"] : null;
    if (!isDocument(services))
      throw new ApiError(400, "services: is required in a file of Docker Compose");
    const tree = treeOf(new Map([[ALONE, bytes]]));
    await convertComposeProjects(tree, output, { ...context, mainFile: ALONE });
  });
}

const ALONE = "compose.yml";

/** The projects of a folder, with the files that their proxies read. Throws a 400 that names an invalid file. */
export async function convertComposeProjects(
  tree: SourceTree,
  output: Output,
  context: Pick<ConversionContext, "parseJson" | "mainFile">,
): Promise<void> {
  const { report } = output;
  const found = await readProjects(tree, { ...context, report });
  const services = found.map((of): PlacedService => {
    const service = readService(of.name, of.definition, of.project.variables);
    return { of, service };
  });
  const traefik = services.find(({ service }) => TRAEFIK.test(service.image)) ?? null;
  const setUp = await readTraefik(traefik, output, context);
  convertServices(services, { setUp, files: NginxProxyFiles.of(found) }, output);
}

interface PlacedService {
  readonly service: ComposeService;
  readonly of: ProjectService;
}

/** Configurations of the proxies themselves. */
interface ProxySetUp {
  readonly setUp: TraefikSetUp;
  /** Null: nginx-proxy is not in the files. */
  readonly files: NginxProxyFiles | null;
}

const TRAEFIK = /(?:^|\/)traefik(?:[:@]|$)/;

/** Proxies, which serve the other services. */
const PROXIES =
  /(?:^|\/)(?:traefik|caddy-docker-proxy|nginx-proxy|acme-companion|docker-gen|letsencrypt-nginx-proxy-companion)(?:[:@]|$)/;

function convertServices(
  services: readonly PlacedService[],
  proxies: ProxySetUp,
  output: Output,
): void {
  const { report } = output;
  const { settings, documents: files, lost } = proxies.setUp;
  const documents: Document[] = [...files];
  const closed = new Map<string, string>();
  for (const placed of services) {
    const { service } = placed;
    if (hasOwnLabels(service)) {
      if (addOwnSites(service, output)) reportTarget(service, output);
      continue;
    }
    const found = dynamicOf(placed, proxies, output);
    documents.push(...found.map(({ dynamic }) => dynamic));
    for (const one of found) for (const [name, why] of one.closed) closed.set(name, why);
    if (found.length > 0) reportTarget(service, output);
  }
  const { dynamic, conflicts } = mergeDynamic(documents);
  for (const name of conflicts)
    report.omitted(name, "two definitions of it differ, which Traefik rejects");
  for (const [router, why] of closedByConflicts(dynamic, conflicts)) closed.set(router, why);
  const whole = withUsers(dynamic, proxies.setUp.read);
  convertTraefik({ ...settings, ...whole }, output, { closed, hasSites: true });
  if (lost !== null)
    report.omitted(
      `${lost} of Traefik`,
      "the file is not in the files, and may deny access: import the folder of the project",
    );
}

interface ServiceConfiguration {
  readonly dynamic: Document;
  readonly closed: ReadonlyMap<string, string>;
}

function dynamicOf(
  { service, of }: PlacedService,
  { setUp, files }: ProxySetUp,
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
  const isEnabled = traefik.isEnabled ?? setUp.isExposedByDefault;
  const hasLabels = Object.keys(traefik.dynamic).length > 0;
  if (hasLabels && !isEnabled) report.omitted(what, "traefik.enable is not true");
  if (isEnabled) for (const problem of traefik.problems) report.omitted(what, problem);
  if (hasLabels && isEnabled) {
    if (!setUp.isThere) warnOfEntryPoints(traefik.dynamic, output);
    const dynamic = withPublished(traefik.dynamic, service);
    found.push({ dynamic, closed: closedFor(dynamic, setUp.lost) });
  }
  const proxied = nginxProxySites(
    environment,
    (host, path) => files?.of(host, path) ?? noHostFiles,
  );
  if (proxied.length > 0 && files === null)
    report.changed(
      "nginx-proxy",
      "is not in the files: its files in htpasswd, vhost.d and conf.d, which may deny access, are missing. Import all files together",
    );
  for (const sites of [caddyLabelSites(labels, { name }), proxied]) {
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
  const [absent] = of.missing;
  if (absent !== undefined)
    report.omitted(`${what}: ${absent}`, "it is not in the files, and may deny access");
  // The value may name a middleware that denies access.
  const lost = unknown?.key ?? absent ?? null;
  if (lost === null) return found;
  return found.map(({ dynamic }) => ({
    dynamic,
    closed: closedFor(dynamic, `${lost} of ${name}`),
  }));
}

const noHostFiles = { users: null, lost: null, problems: [] } as const;

/** All routers, when something is missing that may protect them. */
const closedFor = (dynamic: Document, lost: string | null): ReadonlyMap<string, string> =>
  new Map(lost === null ? [] : routersIn(dynamic).map((router) => [router, lost]));

/** Without their value, a router is not served, or as protected as with it. */
const HARMLESS =
  /\.rule$|\.tls\.certresolver$|\.tls\.domains|\.loadbalancer\.|\.middlewares\.[^.]+\.|^caddy(?:_\d+)?$|^VIRTUAL_(?:HOST|PORT)$|^LETSENCRYPT_|^ACME_|^CERT_NAME$|^HTTPS_METHOD$/i;

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
