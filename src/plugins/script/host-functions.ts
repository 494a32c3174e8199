// The functions that a script can call for its request, with plain values; knows no sandbox.
import { type PluginResponse, reject, reply } from "../../pdk/response.ts";
import type { RequestContext, ResponseDraft } from "../../pdk/context.ts";
import { GATEWAY_FIELDS, HOP_BY_HOP, isFieldValue, isToken } from "../../pdk/http.ts";
import type { PluginKit } from "../../pdk/kit.ts";

export type Plain = string | number | null | undefined;
export type HostFunction = (...values: readonly Plain[]) => Plain;

/** The running handler's request. One at a time: handlers cannot wait. */
export interface HandlerCall {
  readonly context: RequestContext;
  /** Null outside of `onResponse`. */
  readonly response: ResponseDraft | null;
  /** Whether the handler can still change the request or respond. */
  readonly isOpen: boolean;
  /** The script's response. */
  result: PluginResponse | undefined;
  logged: number;
  /** Whether the script has changed, noted or logged something. */
  isTouched: boolean;
}

/** Log lines per handler call. */
const MAX_LINES = 10;
const MAX_MESSAGE = 1000;
const REASON = /^[\w.:-]{1,100}$/;

const named = (object: { readonly id: string; readonly name: string | null } | null) =>
  object === null ? null : (object.name ?? object.id);

/** All functions; `current` throws when no handler runs. */
export function hostFunctions(
  current: () => HandlerCall,
  kit: Pick<PluginKit, "log">,
): Readonly<Record<string, HostFunction>> {
  const upstream = () => {
    const { context, isOpen } = current();
    if (!isOpen) throw new TypeError("the request has gone upstream already");
    current().isTouched = true;
    return context.upstream;
  };
  const response = () => {
    const draft = current().response;
    if (draft === null) throw new TypeError("there is no response yet");
    return draft;
  };
  const respond = (made: PluginResponse): undefined => {
    const call = current();
    if (!call.isOpen) throw new TypeError("the request has gone upstream already");
    call.isTouched = true;
    call.result = made;
  };
  return {
    fact: (name) => fact(current(), String(name)),
    find: (where, name) => find(current(), String(where), String(name).toLowerCase()),
    edit(what, name, value) {
      edit(upstream(), String(what), [String(name), value === null ? null : String(value)]);
      return undefined;
    },
    status: () => response().status,
    setStatus(status) {
      response().status = checkedStatus(status, 200);
      current().isTouched = true;
      return undefined;
    },
    editResponse(what, name, value) {
      const { headers } = response();
      current().isTouched = true;
      const key = checkedName(String(name));
      if (what === "delete") headers.delete(key);
      else if (what === "append") headers.append(key, checkedValue(String(value)));
      else headers.set(key, checkedValue(String(value)));
      return undefined;
    },
    reject: (status, detail, reason) =>
      respond(
        reject(checkedStatus(status, 400), checkedReason(reason ?? "script.rejected"), {
          detail: String(detail ?? "the request is not allowed").slice(0, MAX_MESSAGE),
        }),
      ),
    reply: (...[status, headers, body, reason]) =>
      respond(
        reply(checkedStatus(status, 200), checkedReason(reason ?? "script.replied"), {
          headers: checkedHeaders(String(headers)),
          body: body === null || body === undefined ? null : String(body),
        }),
      ),
    note(reason) {
      current().context.note(checkedReason(reason));
      current().isTouched = true;
      return undefined;
    },
    log(message) {
      const call = current();
      call.isTouched = true;
      call.logged += 1;
      if (call.logged <= MAX_LINES)
        kit.log("info", String(message).slice(0, MAX_MESSAGE), { request_id: call.context.id });
      return undefined;
    },
  };
}

function fact({ context, response }: HandlerCall, name: string): Plain {
  switch (name) {
    case "id":
    case "method":
    case "scheme":
    case "host":
    case "path":
    case "query":
      return context[name];
    case "clientAddress":
      return context.clientAddress();
    case "country":
      return context.country();
    case "route":
      return named(context.route);
    case "service":
      return named(context.service);
    case "headers":
    case "consumer":
    case "groups":
    case "reasons":
    case "result":
      return JSON.stringify(context[name]);
    case "source":
      return response?.source ?? null;
    default:
      throw new TypeError("unknown property");
  }
}

function find({ context, response }: HandlerCall, where: string, name: string): string | null {
  if (where === "cookie") return context.cookie(name);
  if (where === "query") return context.queryValue(name);
  if (where === "header") return context.header(name);
  return isToken(name) ? (response?.headers.get(name) ?? null) : null;
}

function edit(
  upstream: RequestContext["upstream"],
  what: string,
  [name, value]: readonly [string, string | null],
): void {
  switch (what) {
    case "setHeader":
      return upstream.setHeader(name, value ?? "");
    case "addHeader":
      return upstream.addHeader(name, value ?? "");
    case "removeHeader":
      return upstream.removeHeader(name);
    case "setQuery":
      return upstream.setQuery(name, value);
    case "setMethod":
      return upstream.setMethod(name);
    case "setPath":
      return upstream.setPath(name);
    case "setHost":
      return upstream.setHost(name);
    default:
      throw new TypeError("unknown change");
  }
}

function checkedStatus(status: Plain, least: number): number {
  if (typeof status !== "number" || !Number.isInteger(status) || status < least || status > 599)
    throw new TypeError(`the status must be from ${least} to 599`);
  return status;
}

function checkedReason(reason: Plain): string {
  if (typeof reason !== "string" || !REASON.test(reason))
    throw new TypeError("a reason is at most 100 letters, digits, dots, colons and dashes");
  return reason;
}

/** Headers for the framing of the response are reserved for the gateway. */
function checkedName(name: string): string {
  const lower = name.toLowerCase();
  if (!isToken(lower)) throw new TypeError("the name of the header is not valid");
  if (GATEWAY_FIELDS.has(lower) || HOP_BY_HOP.has(lower) || lower === "content-length")
    throw new TypeError(`the header ${lower} is reserved for the gateway`);
  return lower;
}

function checkedValue(value: string): string {
  if (!isFieldValue(value)) throw new TypeError("the value of the header is not valid");
  return value;
}

function checkedHeaders(text: string): [string, string][] {
  return Object.entries(JSON.parse(text) as Record<string, unknown>).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each): [string, string] => [
      checkedName(name),
      checkedValue(String(each)),
    ]),
  );
}
