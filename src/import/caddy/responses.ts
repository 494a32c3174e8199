// Converts handlers of Caddy that respond without a target to plugins of a route without a service.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import { always } from "./terms.ts";
import { hasPlaceholder, withVariables } from "./placeholders.ts";
import type { Step } from "./steps.ts";

/** Requests that the handler responds to. */
interface Requests {
  /** Empty: any. */
  readonly hosts: readonly string[];
  /** Whether no earlier handler changed their paths. */
  readonly isSent: boolean;
}

/** Converts a handler; null, with a report entry, when it has no equivalent. */
type ResponseConverter = (handler: Members, requests: Requests) => Step | null;

const stepOf = (name: string, config: Document, handler: Members): Step => ({
  name,
  config,
  what: handler.label,
  protects: false,
  where: always,
});

const staticResponse: ResponseConverter = (handler, requests) => {
  const headers = new Map<string, string>();
  const given = handler.object("headers");
  for (const name of given?.names ?? []) headers.set(name, given?.texts(name)[0] ?? "");
  const body = handler.text("body") ?? "";
  handler.omit("close", "connections stay open", false);
  const code = Number(handler.raw("status_code") ?? 200);
  if (handler.flag("abort") === true) {
    handler.changed("abort", "the response is 403");
    return stepOf("respond", { status: 403 }, handler);
  }
  const location = [...headers].find(([name]) => name.toLowerCase() === "location")?.[1];
  if (location !== undefined && code >= 300 && code < 400)
    return redirect({ location, status: code }, handler, requests);
  const template = hasPlaceholder(body) ? withVariables(body) : null;
  if ([...headers.values(), template === null ? body : ""].some(hasPlaceholder))
    handler.changed("placeholders", "are sent literally");
  const fields = Object.fromEntries(
    [...headers].filter(([name]) => !/^content-length$/i.test(name)),
  );
  const text = template === null ? { body } : { template };
  const config = { status: code, headers: fields, ...(body === "" && code >= 400 ? {} : text) };
  return stepOf("respond", config, handler);
};

function redirect(
  { location, status }: { readonly location: string; readonly status: number },
  handler: Members,
  requests: Requests,
): Step | null {
  const config = destinationOf(location, requests);
  if (config !== null) return stepOf("redirect", { ...config, status }, handler);
  handler.drop(`the redirect to ${location} has no equivalent`);
  return null;
}

const URI = /\{http\.request\.(orig_)?uri(\.path)?\}$/;

/** Fields of the plugin redirect. */
function destinationOf(location: string, { hosts, isSent }: Requests): Document | null {
  const [kept, original, path] = URI.exec(location) ?? [];
  const front = kept === undefined ? location : location.slice(0, -kept.length);
  const isKept = kept !== undefined && !front.includes("?");
  if (isKept && !isSent && original === undefined) return null;
  const [, scheme] = /^(https?):\/\/\{http\.request\.host\}$/.exec(front) ?? [];
  if (isKept && path === undefined && scheme !== undefined) return { scheme };
  const to = withHost(isKept ? front : location, hosts).replaceAll("$", "%24");
  const keeps = { keep_path: isKept, keep_query: isKept && path === undefined };
  if (!hasPlaceholder(to)) return { to: to === "" ? "/" : to, ...keeps };
  // The gateway allows variables behind the host only.
  const [, host = "", rest = ""] = /^((?:https?:\/\/[^/?#{}]+)?)([/?].*)$/s.exec(to) ?? [];
  const behind = withVariables(rest);
  const isChanged = !isSent && rest.includes("{http.request.uri");
  return isKept || rest === "" || behind === null || isChanged
    ? null
    : { to: host + behind, ...keeps };
}

/** With the only host of a site in the place of its placeholders. */
function withHost(text: string, hosts: readonly string[]): string {
  const [host = ""] = hosts;
  if (hosts.length !== 1 || host.includes("*")) return text;
  const labels = host.split(".").toReversed();
  return text
    .replaceAll("{http.request.host}", host)
    .replaceAll(
      /\{http\.request\.host\.labels\.(\d+)\}/g,
      (whole, at: string) => labels[Number(at)] ?? whole,
    );
}

const error: ResponseConverter = (handler) => {
  const status = Number(handler.raw("status_code") ?? 500);
  handler.omit("error", "the gateway sends its own error page");
  return stepOf("respond", { status }, handler);
};

const notServed =
  (what: string): ResponseConverter =>
  (handler) => {
    handler.drop(what);
    return null;
  };

export const responses: Readonly<Record<string, ResponseConverter>> = {
  static_response: staticResponse,
  error,
  file_server: notServed("this gateway does not serve files: add a web server as a target"),
  php_fastcgi: notServed("this gateway does not support FastCGI: add a web server as a target"),
  acme_server: notServed("this gateway has no ACME server"),
  metrics: notServed("the management API serves metrics"),
};
