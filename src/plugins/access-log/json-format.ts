// Formats log lines as JSON objects; knows no sink.
import type { Format } from "./format.ts";
import type { LineBuffer } from "./line-buffer.ts";
import type { Redaction } from "./redaction.ts";
import type { Config } from "./settings.ts";
import type { Subject } from "./subject.ts";

type Include = Config["include"];

/** Characters that JSON does not escape, and that terminals or line readers interpret. */
const UNSAFE = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;
const ALL_UNSAFE = new RegExp(UNSAFE.source, "g");

const escaped = (character: string) =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

type Fields = Readonly<Record<string, unknown>>;

function json(value: Fields | string): string {
  const text = JSON.stringify(value);
  return UNSAFE.test(text) ? text.replace(ALL_UNSAFE, escaped) : text;
}

/** Members without braces; undefined ones are dropped. */
const members = (object: Fields) => json(object).slice(1, -1);

const FIRST_BYTE = Buffer.from(`,"first_byte_ms":`);
const CLOSE = 125;

/**
 * Caches the bytes of parts that often equal those of the previous line, because clients and routes repeat. Only the other
 * parts are formatted for each request.
 */
export function jsonFormat(redaction: Redaction, include: Include): Format {
  const beginOf = beginning();
  const clientOf = clientPart(redaction);
  const sizesOf = sizesPart();
  const wayOf = wayPart();
  const factsOf = factsPart(redaction);
  const fieldsOf = includedFields(redaction, include);
  return (subject, out) => {
    const { kind, context, result } = subject;
    const { upstream } = result;
    out.copy(beginOf(subject));
    quoted(context.id, out);
    out.copy(clientOf(subject));
    quoted(kind === "http" ? redaction.url(context.target) : context.host, out);
    out.copy(sizesOf(subject));
    out.milliseconds(result.durationMs);
    out.copy(FIRST_BYTE);
    out.milliseconds(result.firstByteMs);
    out.copy(wayOf(subject));
    out.milliseconds(upstream === null ? null : upstream.endMs - upstream.startMs);
    out.copy(factsOf(subject));
    if (fieldsOf !== null) out.text(fieldsOf(subject));
    out.byte(CLOSE);
  };
}

function quoted(text: string, out: LineBuffer): void {
  if (!out.plain(text)) out.text(json(text).slice(1, -1));
}

/** Formats a part of the line, or returns the cached bytes. */
type Part = (subject: Subject) => Uint8Array;

/** Up to the id. */
function beginning(): Part {
  const timeOf = isoClock();
  let time = "";
  let kind = "";
  let bytes = Buffer.alloc(0);
  return (subject) => {
    const now = timeOf(subject.context.startedAt);
    if (now !== time || subject.kind !== kind) {
      time = now;
      ({ kind } = subject);
      bytes = Buffer.from(`{${members({ time, kind })},"id":"`);
    }
    return bytes;
  };
}

/** Up to the target of a request, or the server name of a stream connection. */
function clientPart(redaction: Redaction): Part {
  let address: string | null = null;
  let scheme = "";
  let method = "";
  let host = "";
  let bytes = Buffer.alloc(0);
  return ({ kind, context }) => {
    const isHttp = kind === "http";
    const asked = isHttp ? context.host : "";
    const client = context.clientAddress();
    const isSame =
      client === address &&
      asked === host &&
      context.method === method &&
      context.scheme === scheme;
    if (isSame) return bytes;
    address = client;
    host = asked;
    ({ method, scheme } = context);
    const who = { client: redaction.address(client), scheme };
    bytes = isHttp
      ? Buffer.from(`",${members({ ...who, method, host })},"target":"`)
      : Buffer.from(`",${members(who)},"server_name":"`);
    return bytes;
  };
}

/** Up to the first duration. */
function sizesPart(): Part {
  let status: number | undefined = -1;
  let grpcStatus: number | null = null;
  let bytesIn = 0;
  let bytesOut = 0;
  let bytes = Buffer.alloc(0);
  return ({ kind, result }) => {
    const code = kind === "http" ? result.status : undefined;
    const isSame =
      code === status &&
      result.bytesIn === bytesIn &&
      result.bytesOut === bytesOut &&
      result.grpcStatus === grpcStatus;
    if (isSame) return bytes;
    status = code;
    ({ bytesIn, bytesOut, grpcStatus } = result);
    const grpc = grpcStatus === null ? {} : { grpc_status: grpcStatus };
    const sizes = { status, ...grpc, bytes_in: bytesIn, bytes_out: bytesOut };
    bytes = Buffer.from(`",${members(sizes)},"duration_ms":`);
    return bytes;
  };
}

/** Route, service and target, up to the duration of the attempt. */
function wayPart(): Part {
  let route: string | null = null;
  let service: string | null = null;
  let target: string | null = null;
  let address: string | undefined;
  let status: number | null = -1;
  let bytes = Buffer.alloc(0);
  return ({ context, result }) => {
    const routeName = context.route?.name ?? null;
    const serviceName = context.service?.name ?? null;
    const isSame =
      routeName === route &&
      serviceName === service &&
      result.targetId === target &&
      result.upstream?.address === address &&
      result.upstreamStatus === status;
    if (isSame) return bytes;
    [route, service, target] = [routeName, serviceName, result.targetId];
    address = result.upstream?.address;
    status = result.upstreamStatus;
    const way = { route, service, target_id: target, upstream: address, upstream_status: status };
    bytes = Buffer.from(`,${members(way)},"upstream_ms":`);
    return bytes;
  };
}

/** The rest, without configured headers. */
function factsPart(redaction: Redaction): Part {
  let attempts = -1;
  let consumer: string | null = null;
  let reasons: readonly string[] = [];
  let tls: string | undefined;
  let agent: string | null = null;
  let referer: string | null = null;
  let bytes = Buffer.alloc(0);
  const seen = (name: string, value: string | null) =>
    value === null ? undefined : redaction.header(name, value);
  return ({ context, result }) => {
    const name = context.consumer?.username ?? null;
    const version = context.tls?.version ?? undefined;
    const userAgent = context.header("user-agent");
    const from = context.header("referer");
    const isSame =
      result.attempts === attempts &&
      name === consumer &&
      context.reasons === reasons &&
      version === tls &&
      userAgent === agent &&
      from === referer;
    if (isSame) return bytes;
    ({ attempts } = result);
    [consumer, tls, agent, referer] = [name, version, userAgent, from];
    ({ reasons } = context);
    const optional = {
      tls_version: tls,
      user_agent: seen("user-agent", agent),
      referer: seen("referer", referer),
    };
    bytes = Buffer.from(`,${members({ attempts, consumer, reasons, ...optional })}`);
    return bytes;
  };
}

/** The configured headers; null: none. */
function includedFields(redaction: Redaction, include: Include) {
  const ofRequest = fieldPicker(include.request_headers, redaction);
  const responseHeadersOf = fieldPicker(include.response_headers, redaction);
  if (ofRequest === null && responseHeadersOf === null) return null;
  return ({ context, responseHeaders }: Subject): string => {
    const text = members({
      request_headers: ofRequest?.(context.headers),
      response_headers: responseHeadersOf?.(responseHeaders?.toJSON() ?? {}),
    });
    return `,${text}`;
  };
}

/** Null: none configured. */
function fieldPicker(names: readonly string[], redaction: Redaction) {
  if (names.length === 0) return null;
  const wanted = names.includes("*") ? null : names.map((name) => name.toLowerCase());
  return (fields: Fields): Record<string, unknown> => {
    const picked: [string, unknown][] = [];
    for (const name of wanted ?? Object.keys(fields)) {
      const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (typeof value === "string") picked.push([name, redaction.header(name, value)]);
      else if (Array.isArray(value))
        picked.push([name, value.map((each) => redaction.header(name, String(each)))]);
    }
    // Assigning __proto__ would change the prototype.
    return Object.fromEntries(picked);
  };
}

/** Consecutive times mostly differ only in the milliseconds. */
function isoClock(): (at: number) => string {
  let last = -1;
  let text = "";
  let second = -1;
  let begin = "";
  return (at) => {
    if (at === last) return text;
    last = at;
    const whole = Math.floor(at / 1000);
    if (whole !== second) {
      second = whole;
      begin = new Date(whole * 1000).toISOString().slice(0, 20);
    }
    const ms = Math.floor(at - whole * 1000);
    text = `${begin}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`;
    return text;
  };
}
