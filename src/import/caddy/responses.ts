// Converts handlers of Caddy that respond without a target to plugins of a route without a service.
import type { Document } from "../../control/body.ts";
import type { Members } from "../members.ts";
import { always } from "./terms.ts";
import { hasPlaceholder } from "./placeholders.ts";
import type { Step } from "./steps.ts";

/** Converts a handler; null, with a report entry, when it has no equivalent. */
type ResponseConverter = (handler: Members) => Step | null;

const stepOf = (name: string, config: Document, handler: Members): Step => ({
  name,
  config,
  what: handler.path,
  protects: false,
  where: always,
});

const staticResponse: ResponseConverter = (handler) => {
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
    return redirect({ location, status: code }, handler);
  if ([body, ...headers.values()].some(hasPlaceholder))
    handler.changed("placeholders", "are sent literally");
  const fields = Object.fromEntries(
    [...headers].filter(([name]) => !/^content-length$/i.test(name)),
  );
  const config = { status: code, headers: fields, ...(body === "" && code >= 400 ? {} : { body }) };
  return stepOf("respond", config, handler);
};

const URI = "{http.request.uri}";

function redirect(
  { location, status }: { readonly location: string; readonly status: number },
  handler: Members,
): Step | null {
  const keeps = location.endsWith(URI);
  const to = keeps ? location.slice(0, -URI.length) : location;
  const [, scheme] = /^(https?):\/\/\{http\.request\.host\}$/.exec(to) ?? [];
  if (keeps && scheme !== undefined) return stepOf("redirect", { scheme, status }, handler);
  if (hasPlaceholder(to)) {
    handler.drop(`the redirect to ${location} has no equivalent`);
    return null;
  }
  const place = to === "" ? "/" : to.replaceAll("$", "%24");
  return stepOf("redirect", { to: place, status, keep_path: keeps, keep_query: keeps }, handler);
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
