// Converts TCP frontends of HAProxy to disabled stream routes; knows no HTTP.
import type { Output } from "../output.ts";
import type { Bind } from "./binds.ts";
import { type Condition, conditionOf, readAcls, type Test } from "./conditions.ts";
import { type Section, settingOf } from "./sections.ts";
import { addBackend } from "./servers.ts";
import { storedNameOf } from "../../model/host-name.ts";

export interface StreamFrontend {
  readonly section: Section;
  readonly sections: readonly Section[];
  readonly binds: readonly Bind[];
}

export function addStreams({ section, sections, binds }: StreamFrontend, output: Output): void {
  const label = `${section.kind} "${section.name}"`;
  const acls = readAcls(section.lines);
  const uses = section.lines.flatMap(({ words, number }) => {
    const [keyword, backend = "", ...rest] = words;
    if (keyword !== "use_backend") return [];
    const names = serverNames(conditionOf(rest, acls));
    if (names === null)
      output.report.omitted(
        `use_backend ${backend} of ${label} (line ${number})`,
        "stream routes have no conditions but TLS server names",
      );
    return names === null ? [] : [{ backend, names }];
  });
  const own = section.lines.some(({ words }) => words[0] === "server") ? section.name : null;
  const last = settingOf(section, "default_backend")?.[0] ?? own;
  const all = [...uses, ...(last === null ? [] : [{ backend: last, names: [] }])];
  const allow = allowedNetworks(section);
  const isOther = ({ words }: { readonly words: readonly string[] }) =>
    /^(?:tcp-request|filter|tcp-response)$/.test(words[0] ?? "") &&
    !/inspect-delay|track-sc/.test(words.join(" "));
  const isLost = allow === null && section.lines.some(isOther) && section.lines.some(denies);
  if (all.length === 0) return output.report.omitted(label, "it has no backend");
  const services = new Map<string, string | null>();
  for (const { backend, names } of all) {
    const target = sections.find(
      ({ kind, name }) => name === backend && (kind === "backend" || kind === "listen"),
    );
    if (!services.has(backend))
      services.set(
        backend,
        target === undefined ? null : (addBackend(target, output, { isStream: true })?.id ?? null),
      );
    const service = services.get(backend) ?? null;
    if (service === null) continue;
    // All stream routes of a port read the TLS server name, or none.
    const readsNames = uses.some((use) => use.names.length > 0);
    const frontend = { section, label, allow, isLost, readsNames };
    for (const bind of binds) addStream(bind, { backend, names, service, ...frontend }, output);
  }
}

interface Stream {
  readonly section: Section;
  readonly label: string;
  readonly backend: string;
  readonly names: readonly string[];
  readonly service: string;
  readonly allow: readonly string[] | null;
  /** Whether it has rules without an equivalent. */
  readonly isLost: boolean;
  readonly readsNames: boolean;
}

function addStream(
  { port, isTls, asksForCertificate }: Bind,
  stream: Stream,
  output: Output,
): void {
  const { section, label, backend, names, service, allow, isLost, readsNames } = stream;
  const where = `${label} on port ${port} for backend "${backend}"`;
  if (port === null) return output.report.omitted(where, "it listens on a socket");
  const name = output.name("stream_routes", `${section.name}-${backend}-${port}`);
  const mode = isTls ? "terminate" : readsNames ? "passthrough" : "none";
  const id = output.add(
    "stream_routes",
    { key: `${section.name} ${backend} ${port} ${names.join(" ")}`, label: where },
    {
      name,
      service_id: service,
      protocol: "tcp",
      listen_port: port,
      tls_mode: mode,
      sni: names,
      ...(allow === null ? {} : { allow }),
      enabled: false,
    },
  );
  if (isLost || asksForCertificate)
    output.loseProtection({ scope: { stream_route_id: id }, what: `rules of ${label}` });
  output.report.changed(
    where,
    `became the stream route ${name}, disabled: enable it when HAProxy no longer listens there`,
  );
}

const denies = ({ words }: { readonly words: readonly string[] }): boolean =>
  words[0] === "tcp-request" && words.some((word) => /^(?:reject|silent-drop)$/.test(word));

const isName = ({ kind, match }: Test) => kind === "sni" && (match === "exact" || match === "end");

/** Empty: any; null: another condition. */
function serverNames(condition: Condition | null): readonly string[] | null {
  if (condition === null) return null;
  const found = condition.map((literals) => {
    const [only] = literals;
    const isKnown =
      literals.length === 1 && only !== undefined && !only.isNegated && isName(only.test);
    if (!isKnown) return null;
    return only.test.values.map((value) =>
      storedNameOf(only.test.match === "end" ? `*${value}` : value).toLowerCase(),
    );
  });
  return found.includes(null) ? null : found.flatMap((names) => names ?? []);
}

/** `tcp-request connection reject unless { src … }`; null: there is no such rule, or another one. */
function allowedNetworks(section: Section): readonly string[] | null {
  const acls = readAcls(section.lines);
  const rules = section.lines.filter(denies);
  const [only] = rules;
  if (only === undefined || rules.length > 1) return null;
  const at = only.words.findIndex((word) => word === "if" || word === "unless");
  const condition = at === -1 ? null : conditionOf(only.words.slice(at), acls);
  const [literals] = condition ?? [];
  const isKnown =
    condition?.length === 1 &&
    literals?.every(({ test, isNegated }) => test.kind === "src" && isNegated) === true;
  return isKnown && literals !== undefined ? literals.flatMap(({ test }) => test.values) : null;
}
