// Containers of a compose file with labels of Sluice, as discovery serves them; reads no file.
import type { Output } from "../output.ts";
import type { ComposeService } from "./compose-service.ts";
import { type LabelledSite, readLabels } from "./own-labels.ts";

/** Whether its labels are those of Sluice: then those of other proxies do not count. */
export const hasOwnLabels = ({ labels, missing }: ComposeService): boolean =>
  [...Object.keys(labels), ...missing.map(({ key }) => key)].some((key) => /^sluice\./i.test(key));

/** Whether it is served. */
export function addOwnSites(service: ComposeService, output: Output): boolean {
  const { report, plugins } = output;
  const what = `container "${service.name}"`;
  const missing = service.missing.filter(({ key }) => /^sluice\./i.test(key));
  for (const { key, variable } of missing)
    report.omitted(`${what}: ${key}`, `the value of \${${variable}} is not in the file`);
  // It may be what protects the site.
  if (missing.length > 0) return false;
  const allowedPlugins = [...plugins.keys()];
  const read = readLabels(service.labels, { plugins, allowedPlugins });
  const problems = read.isEnabled === true ? [...read.problems] : ["sluice.enable is not true"];
  if (problems.length === 0 && read.sites.length === 0)
    problems.push("label sluice.host is missing: it names the host of the site");
  for (const problem of problems) report.omitted(what, problem);
  if (problems.length > 0) return false;
  const added = read.sites.map((site) => {
    const suffix = site.number === "" ? "" : `-${site.number}`;
    return addSite(`${read.name ?? service.name}${suffix}`, { site, service, what }, output);
  });
  return added.includes(true);
}

interface SiteOf {
  readonly site: LabelledSite;
  readonly service: ComposeService;
  readonly what: string;
}

function addSite(wanted: string, { site, service, what }: SiteOf, output: Output): boolean {
  const port = site.port ?? service.targetPort(null);
  if (port === null) {
    output.report.omitted(what, "it exposes no port: add the label sluice.port");
    return false;
  }
  const { hosts, path, scheme, healthPath } = site;
  const name = output.name(["services", "routes"], wanted);
  const key = `sluice ${service.name} ${site.number}`;
  const active = { enabled: true, type: "http", path: healthPath ?? "/" };
  const serviceId = output.add(
    "services",
    { key, label: `service "${name}"` },
    {
      name,
      protocol: scheme,
      ...(healthPath === null ? {} : { health: { active } }),
      // The name in a container's certificate is seldom its address.
      ...(scheme === "https" ? { tls: { verify: false } } : {}),
    },
  );
  const { address, port: reached } = service.published(port);
  const host = address ?? service.address;
  const target = { service_id: serviceId, host, port: reached };
  output.add("targets", { key, label: `target "${host}:${reached}"` }, target);
  output.add(
    "routes",
    { key, label: `route "${name}"` },
    {
      name,
      service_id: serviceId,
      hosts,
      paths: path === null || path === "/" ? [] : [{ type: "prefix", value: path }],
      strip_path: site.stripPath,
    },
  );
  for (const plugin of site.plugins)
    output.plugin({
      ...plugin,
      scope: { service_id: serviceId },
      what: `plugin ${plugin.name} of ${what}`,
      key,
      protects: true,
    });
  output.report.imported(what, `became the route ${name}`);
  if (site.https !== "off")
    output.report.changed(
      what,
      "HTTPS: the import requests no certificate; create one for its hosts with source acme, or discover the container",
    );
  return true;
}
