// The state of an application and of its HTTPS, as a word and a sentence; renders nothing.
import type { Read, Schemas, Write } from "../../api/resources.ts";
import type { Probed } from "./upstream-probe.ts";
import { unusualPort } from "../listeners/listener-port.ts";
import { relativeTime, type Tone } from "../../parts/status.tsx";

export interface StateText {
  readonly state: string;
  readonly tone: Tone;
  /** One sentence. */
  readonly detail: string | null;
}

type Application = Read<"applications">;

const unprobed: Probed = { state: "unknown", message: null };

/** The state that clients see. */
export function stateOf(application: Application, probed = unprobed): StateText {
  const { enabled, maintenance, service } = application;
  if (!enabled) return { state: "off", tone: "idle", detail: "Disabled" };
  if (maintenance) return { state: "maintenance", tone: "warn", detail: "Clients get status 503" };
  if (service === null)
    return { state: "broken", tone: "bad", detail: "Its service was deleted: see Drift" };
  const targets = application.targets as readonly Schemas["Target"][];
  const used = targets.map(({ health }) => health.state);
  const isFailing = used.includes("failing");
  const bad = used.filter((state) => state === "unhealthy" || state === "failing").length;
  if (used.length === 0 && redirectOf(application) !== null)
    return { state: "redirects", tone: "good", detail: null };
  if (used.length === 0)
    return { state: "no servers", tone: "bad", detail: "The service has no targets" };
  if (bad === 0 && probed.state === "fails")
    return { state: "unreachable", tone: "bad", detail: probed.message };
  if (bad === 0)
    return used.includes("healthy") || probed.state === "responds"
      ? { state: "served", tone: "good", detail: null }
      : { state: "not checked", tone: "idle", detail: "No failed request is known" };
  const error = targets.find(({ health }) => health.last_error !== null)?.health.last_error;
  return bad === used.length
    ? {
        state: isFailing ? "failing" : "unreachable",
        tone: "bad",
        detail: error ?? "All servers are unhealthy",
      }
    : { state: "degraded", tone: "warn", detail: `${bad} of ${used.length} servers are unhealthy` };
}

/** Where an application without servers sends all requests; null: it has servers. */
export function redirectOf(application: Partial<Read<"applications"> | Write<"applications">>) {
  const { upstream, targets = [], policies } = application;
  return upstream === null && targets.length === 0 ? (policies?.redirect?.to ?? null) : null;
}

/** The state of HTTPS. */
export function httpsOf(application: Application): StateText {
  const { https } = application;
  if (https.mode === "off")
    return { state: "off", tone: "idle", detail: "Served over plain HTTP only" };
  const certificate = application.certificate as Schemas["Certificate"] | null;
  if (certificate === null)
    return { state: "no certificate", tone: "bad", detail: application.warnings[0] ?? null };
  const { status, last_error: error, not_after: end } = certificate;
  if (status === "valid" && certificate.source === "self_signed")
    return {
      state: "self-signed",
      tone: "warn",
      detail: application.warnings[0] ?? "Browsers show a warning unless they trust it",
    };
  if (status === "valid" && certificate.source === "local_ca")
    return {
      state: "local CA",
      tone: "good",
      detail: application.warnings[0] ?? "Devices that trust the local CA show no warning",
    };
  if (status === "valid" || status === "renewing")
    return {
      state: status,
      tone: error === null ? "good" : "warn",
      detail: error ?? (end === null ? null : `Expires ${relativeTime(end)}`),
    };
  return {
    state: status,
    tone: status === "pending" || status === "ordering" ? "warn" : "bad",
    detail: error,
  };
}

export const hasDrift = ({ drift }: Application): boolean => drift.length > 0;

/** The URL of a domain, HTTPS if available. Null for wildcards. */
export function openUrl(
  domain: string,
  https: Application["https"]["mode"],
  listeners: readonly Schemas["Listener"][],
): string | null {
  if (domain.startsWith("*.")) return null;
  const scheme = https === "off" ? "http" : "https";
  const port = unusualPort(scheme, listeners);
  return `${scheme}://${domain}${port === null ? "" : `:${port}`}`;
}
