// Handlers of Caddy that answer by themselves, as plugins of a route without a service.
import type { Document } from "../../body.ts";
import type { Members } from "../members.ts";
import { always } from "./terms.ts";
import { hasPlaceholder } from "./placeholders.ts";
import type { Step } from "./steps.ts";

/** What becomes of a handler; null: nothing, which is reported. */
type Answer = (handler: Members) => Step | null;

const stepOf = (name: string, config: Document, handler: Members): Step => ({
  name,
  config,
  what: handler.path,
  protects: false,
  where: always,
});

const staticResponse: Answer = (handler) => {
  const headers = new Map<string, string>();
  const given = handler.object("headers");
  for (const name of given?.names ?? []) headers.set(name, given?.texts(name)[0] ?? "");
  const body = handler.text("body") ?? "";
  handler.leaveOut("close", "connections are kept", false);
  const code = Number(handler.raw("status_code") ?? 200);
  if (handler.flag("abort") === true) {
    handler.changed("abort", "the answer is 403");
    return stepOf("respond", { status: 403 }, handler);
  }
  const location = [...headers].find(([name]) => name.toLowerCase() === "location")?.[1];
  if (location !== undefined && code >= 300 && code < 400)
    return redirect({ location, status: code }, handler);
  if ([body, ...headers.values()].some(hasPlaceholder))
    handler.changed("placeholders", "stand in the answer as they are");
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
    handler.drop(`the redirect to ${location} has no counterpart`);
    return null;
  }
  const place = to === "" ? "/" : to.replaceAll("$", "%24");
  return stepOf("redirect", { to: place, status, keep_path: keeps, keep_query: keeps }, handler);
}

const error: Answer = (handler) => {
  const status = Number(handler.raw("status_code") ?? 500);
  handler.leaveOut("error", "the page of the gateway is shown");
  return stepOf("respond", { status }, handler);
};

const notServed =
  (what: string): Answer =>
  (handler) => {
    handler.drop(what);
    return null;
  };

export const answers: Readonly<Record<string, Answer>> = {
  static_response: staticResponse,
  error,
  file_server: notServed("this gateway serves no files: put a web server behind it"),
  php_fastcgi: notServed("this gateway speaks no FastCGI: put a web server behind it"),
  acme_server: notServed("there is no authority in this gateway"),
  metrics: notServed("metrics are at the management API"),
};
