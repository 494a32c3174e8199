// What needs attention, grouped by cause, each with the action that resolves it; renders nothing.
import type { Read, Role, Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { adviceFor } from "../certificates/certificate-advice.ts";

type Certificate = Read<"certificates">;
type Account = Read<"acme/accounts">;
type Target = Read<"targets">;

export interface AttentionItem {
  readonly label: string;
  readonly href: string | null;
  readonly detail: string | null;
  /** RFC 3339: since when, or the expiry. */
  readonly at: string | null;
}

export type AttentionAction =
  | { readonly kind: "link"; readonly label: string; readonly href: string; readonly needs: Role }
  | { readonly kind: "agree"; readonly account: Account; readonly ids: readonly string[] }
  | { readonly kind: "retry"; readonly ids: readonly string[] };

export interface AttentionGroup {
  /** `10 certificates wait for the terms of service of ACME account letsencrypt`. */
  readonly title: string;
  readonly tone: "bad" | "warn";
  readonly advice: string | null;
  readonly items: readonly AttentionItem[];
  readonly action: AttentionAction | null;
}

export interface AttentionFacts {
  /** Of the status: one sentence each. */
  readonly warnings: readonly string[];
  /** Ports that the gateway does not listen on, which the warnings name too. */
  readonly unbound: Schemas["Status"]["unbound_ports"];
  readonly certificates: readonly Certificate[];
  readonly accounts: readonly Account[];
  readonly targets: readonly Target[];
  /** Names by id. */
  readonly services: ReadonlyMap<string, string>;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/** Groups by cause: those that hurt traffic first, those of the machine last. */
export function attentionGroups(facts: AttentionFacts): readonly AttentionGroup[] {
  const traffic = [...portGroups(facts), ...certificateGroups(facts), ...targetGroups(facts)];
  const all = [...traffic, ...warningGroups(facts)];
  const rank = ({ tone, title }: AttentionGroup) =>
    tone === "bad" ? 0 : OF_MACHINE.test(title) ? 2 : 1;
  return all.toSorted((a, b) => rank(a) - rank(b));
}

/** Warnings about the machine, not about what its owner serves. */
const OF_MACHINE = /\bnet\.(?:core|ipv[46])\.|sysctl|ulimit|RLIMIT|open files|\/proc\/|kernel/i;

const counted = (count: number, word: string): string =>
  count === 1 ? `1 ${word}` : `${count} ${word}s`;

const DAY_MS = 86_400_000;
/** ACME certificates renew 30 days before expiry: fewer days mean that renewal fails. */
const SOON_MS = 21 * DAY_MS;

function certificateGroups(facts: AttentionFacts): AttentionGroup[] {
  const needLook = facts.certificates.filter(
    ({ enabled, status, not_after: end }) =>
      enabled && (status === "failed" || (end !== null && Date.parse(end) - facts.now < SOON_MS)),
  );
  const groups = Map.groupBy(needLook, causeOf);
  return [...groups].map(([cause, certificates]) => ({
    ...reasonOf(cause, certificates, facts),
    tone: certificates.some(({ status }) => status === "failed" || status === "expired")
      ? "bad"
      : "warn",
    items: certificates.map(({ id, name, last_error: detail, not_after: at }) => ({
      label: name,
      href: pagePath("certificates", id),
      // The title says it.
      detail: detail !== null && cause === WAITS.exec(detail)?.[0] ? null : detail,
      at,
    })),
  }));
}

const WAITS = /ACME account "(.+)" requires terms_agreed/;
const NO_ACCOUNT = /there is no ACME account/;

/** The same for certificates that one action helps. */
function causeOf({ source, last_error: error }: Certificate): string {
  if (error === null) return source;
  return (WAITS.exec(error) ?? NO_ACCOUNT.exec(error))?.[0] ?? adviceFor(error) ?? unnamed(error);
}

function reasonOf(
  cause: string,
  certificates: readonly Certificate[],
  { accounts }: AttentionFacts,
): Pick<AttentionGroup, "title" | "advice" | "action"> {
  const many = counted(certificates.length, "certificate");
  const verb = certificates.length === 1 ? "waits" : "wait";
  const ids = certificates.map(({ id }) => id);
  const waiting = WAITS.exec(cause)?.[1];
  const account = accounts.find(({ name }) => name === waiting);
  if (account !== undefined)
    return {
      title: `${many} ${verb} for the terms of service of ACME account ${account.name}`,
      advice: "The CA issues certificates after you agree to its terms of service.",
      action: { kind: "agree", account, ids },
    };
  if (NO_ACCOUNT.test(cause))
    return {
      title: `${many} ${verb} for an ACME account`,
      advice: "The gateway requests certificates with an account at a CA.",
      action: link("Create an ACME account", pagePath("acme-accounts", "new"), "editor"),
    };
  if (certificates.every(({ last_error: error }) => error === null)) {
    const href = `${pagePath("certificates")}?state=soon`;
    return {
      title: `${many} ${certificates.length === 1 ? "expires soon or has" : "expire soon or have"} expired`,
      advice: null,
      action: link("Show the certificates", href),
    };
  }
  return {
    title: `${many} could not be issued`,
    advice: adviceFor(certificates[0]?.last_error ?? ""),
    action: { kind: "retry", ids },
  };
}

const link = (label: string, href: string, needs: Role = "viewer"): AttentionAction => ({
  kind: "link",
  label,
  href,
  needs,
});

/** One for listeners, one for stream routes. */
function portGroups({ unbound }: AttentionFacts): AttentionGroup[] {
  return [...Map.groupBy(unbound, ({ object }) => object)].map(([object, ports]) => {
    const [word, page] =
      object === "listener"
        ? (["listener", "listeners"] as const)
        : (["stream route", "stream-routes"] as const);
    const count = new Set(ports.map(({ id }) => id)).size;
    return {
      title: `${counted(count, word)} ${count === 1 ? "does" : "do"} not listen on ${counted(ports.length, "port")}`,
      tone: "bad",
      advice: "Free the port, or choose another one. The gateway tries again automatically.",
      items: ports.map(({ id, name, transport, port, reason }) => ({
        label: name,
        href: pagePath(page, id),
        detail: `${transport === "udp" ? "UDP port" : "port"} ${port}: ${reason}`,
        at: null,
      })),
      action: link(`Show the ${word}s`, pagePath(page)),
    };
  });
}

function targetGroups({ targets, services }: AttentionFacts): AttentionGroup[] {
  const down = targets.filter(({ health: { state } }) => ["failing", "unhealthy"].includes(state));
  const groups = Map.groupBy(down, ({ health }) => unnamed(health.last_error ?? health.state));
  return [...groups.values()].map((group) => {
    const ids = [...new Set(group.map(({ service_id: id }) => id))];
    const error = group[0]?.health.last_error ?? null;
    return {
      title: `${counted(group.length, "target")} of ${
        ids.length === 1
          ? `service ${services.get(ids[0] ?? "") ?? ids[0]}`
          : counted(ids.length, "service")
      } unhealthy`,
      tone: "bad",
      advice: error,
      items: group.map(({ host, port, service_id: id, health }) => ({
        label: port === null ? host : `${host}:${port}`,
        href: pagePath("services", id),
        detail: ids.length === 1 ? null : (services.get(id) ?? null),
        at: health.since,
      })),
      action:
        ids.length === 1
          ? link("Open the service", pagePath("services", ids[0] ?? ""))
          : link("Show the services", pagePath("services")),
    };
  });
}

/** Pages that resolve a warning. */
const remedies: readonly (readonly [RegExp, AttentionAction])[] = [
  [/admin_allowed_cidrs/, link("Set the allowed networks", pagePath("gateway-settings"), "admin")],
  [/^route "/, link("Show the routes", pagePath("routes"))],
];

/** Certificates and ports have groups of their own. */
function warningGroups({ warnings, unbound }: AttentionFacts): AttentionGroup[] {
  const others = warnings.filter(
    (warning) =>
      !warning.startsWith('certificate "') &&
      (unbound.length === 0 || !warning.includes('" does not listen on ')),
  );
  return [...Map.groupBy(others, unnamed).values()].map((group) => {
    const [first = ""] = group;
    const [, word = "", rest = ""] = /^(\w+) ".*?" (.*)$/.exec(first) ?? [];
    const action = remedies.find(([pattern]) => pattern.test(first))?.[1] ?? null;
    if (group.length === 1) return { title: first, tone: "warn", advice: null, items: [], action };
    return {
      title: `${counted(group.length, word)}: ${rest.replace(/:.*/, "")}`,
      tone: "warn",
      advice: null,
      items: group.map((warning) => {
        const name = /"(.*?)"/.exec(warning)?.[1] ?? "";
        const href = word === "route" ? pagePath("routes", name) : null;
        return { label: name, href, detail: warning, at: null };
      }),
      action,
    };
  });
}

/** A sentence without names, addresses and numbers, which differ between objects with the same problem. */
const unnamed = (sentence: string): string =>
  sentence.replaceAll(/"[^"]*"|\[?[\da-f]*(?:[:.][\da-f]+){2,}\]?(?::\d+)?|\d+/gi, "…");
