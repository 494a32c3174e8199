// Lines of a log: JSON, the two formats of Apache, and templates; whatever clients send, a record stays one line. Knows no sink.
import type { RequestContext } from "../../pdk/context.ts";
import { compileTemplate } from "../../pdk/template.ts";
import type { Redaction } from "./redaction.ts";
import type { Config, LineConfig } from "./settings.ts";
import type { Subject } from "./subject.ts";
import { asksForAnswer, variablesOf } from "./variables.ts";

export type Formatter = (subject: Subject) => string;

type Include = Config["include"];

/** Whether lines need the fields of the answer. */
export const needsAnswer = ({ format, template }: LineConfig, include: Include): boolean =>
  format === "json"
    ? include.response_headers.length > 0
    : format === "template" && asksForAnswer(template ?? "");

export function formatterOf(
  { format, template }: LineConfig,
  redaction: Redaction,
  include: Include,
): Formatter {
  switch (format) {
    case "json":
      return jsonFormatter(redaction, include);
    case "clf":
      return clfFormatter(redaction);
    case "combined":
      return clfFormatter(redaction, endOfCombined(redaction));
    case "template":
      return templateFormatter(template ?? "", redaction);
    default:
      return format satisfies never;
  }
}

/** Besides control characters: those that end a line for some programs, and those that turn the order of the text around. */
const ALL_UNSAFE = /["\\\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]|\p{Cs}/gu;
/** Whether there may be any: nearly all texts are plain, and this is several times as fast. */
const MAYBE_UNSAFE = /[^ !#-[\]-~]/;

/** For formats without an escaping of their own: as Apache does it, `\x0a`. */
export function escaped(text: string): string {
  if (!MAYBE_UNSAFE.test(text)) return text;
  return text.replace(ALL_UNSAFE, (character) => {
    if (character === '"' || character === "\\") return `\\${character}`;
    const code = character.charCodeAt(0);
    return code < 256
      ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

const quoted = (text: string) => `"${escaped(text)}"`;

/** A word between spaces. */
const word = (text: string) => (text === "" ? "-" : escaped(text).replaceAll(" ", "\\x20"));

const MONTHS = [
  ...["Jan", "Feb", "Mar", "Apr", "May", "Jun"],
  ...["Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
];

/** The same for a whole second. */
function clfClock(): (at: number) => string {
  let second = -1;
  let text = "";
  return (at) => {
    const whole = Math.floor(at / 1000);
    if (whole === second) return text;
    second = whole;
    const iso = new Date(whole * 1000).toISOString();
    const month = MONTHS[Number(iso.slice(5, 7)) - 1] ?? "";
    text = `${iso.slice(8, 10)}/${month}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`;
    return text;
  };
}

/** `endOf`: what stands behind the number of bytes. */
function clfFormatter(
  redaction: Redaction,
  endOf: (context: RequestContext) => string = () => "",
): Formatter {
  const timeOf = clfClock();
  // Clients ask several times in a row, and a line of few pieces is made quicker than one of many.
  const begin = lastOne((address, user, time) => {
    return `${redaction.address(address)} - ${word(user)} [${time}] "`;
  });
  return (subject) => {
    const { context, result } = subject;
    const { status, bytesOut } = result;
    const user = context.consumer?.username ?? "";
    const start = begin(context.clientAddress(), user, timeOf(context.startedAt));
    return `${start}${requestOf(subject, redaction)}" ${status === 0 ? "-" : status} ${bytesOut === 0 ? "-" : bytesOut}${endOf(context)}`;
  };
}

function requestOf({ kind, context }: Subject, redaction: Redaction): string {
  return kind === "http"
    ? // The server does not tell which version it was.
      `${escaped(context.method)} ${escaped(redaction.url(context.target))} HTTP/1.1`
    : `${context.scheme.toUpperCase()} ${escaped(context.route?.name ?? "-")}`;
}

/** Referer and User-Agent. */
function endOfCombined(redaction: Redaction): (context: RequestContext) => string {
  const field = (name: string, value: string) => quoted(redaction.header(name, value) || "-");
  const end = lastOne(
    (referer, agent) => ` ${field("referer", referer)} ${field("user-agent", agent)}`,
  );
  return (context) => end(context.header("referer") ?? "", context.header("user-agent") ?? "", "");
}

/** What was made of three texts is kept until they are others. */
function lastOne(make: (one: string, two: string, three: string) => string) {
  let [first, second, third] = ["", "", ""];
  let made: string | null = null;
  return (one: string, two: string, three: string): string => {
    if (made === null || one !== first || two !== second || three !== third) {
      made = make(one, two, three);
      [first, second, third] = [one, two, three];
    }
    return made;
  };
}

function templateFormatter(template: string, redaction: Redaction): Formatter {
  let current: Subject | null = null;
  const subject = () => {
    if (current === null) throw new Error("no line is being written");
    return current;
  };
  const fill = compileTemplate(template, escaped, variablesOf(subject, redaction));
  return (next) => {
    current = next;
    const line = fill(next.context);
    current = null;
    return line;
  };
}

/** What JSON leaves as it is, and a terminal or a program that reads lines takes for something else. */
const UNSAFE_IN_JSON = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/;
const ALL_UNSAFE_IN_JSON = new RegExp(UNSAFE_IN_JSON.source, "g");

const jsonEscape = (character: string) =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

function jsonFormatter(redaction: Redaction, include: Include): Formatter {
  const ofRequest = fieldPicker(include.request_headers, redaction);
  const ofAnswer = fieldPicker(include.response_headers, redaction);
  const time = isoClock();
  // One for all lines: a new one for each would be most of the garbage that a line leaves.
  const line = emptyLine();
  return (subject) => {
    const { context, result, kind } = subject;
    const { upstream } = result;
    const agent = context.header("user-agent");
    const referer = context.header("referer");
    const isHttp = kind === "http";
    line.time = time(context.startedAt);
    line.kind = kind;
    line.id = context.id;
    line.client = redaction.address(context.clientAddress());
    line.scheme = context.scheme;
    line.method = isHttp ? context.method : undefined;
    line.host = isHttp ? context.host : undefined;
    line.target = isHttp ? redaction.url(context.target) : undefined;
    line.status = isHttp ? result.status : undefined;
    line.server_name = isHttp ? undefined : context.host;
    line.bytes_in = result.bytesIn;
    line.bytes_out = result.bytesOut;
    line.duration_ms = rounded(result.durationMs);
    line.first_byte_ms = rounded(result.firstByteMs);
    line.route = context.route?.name ?? null;
    line.service = context.service?.name ?? null;
    line.target_id = result.targetId;
    line.upstream = upstream?.address;
    line.upstream_status = result.upstreamStatus;
    line.upstream_ms = upstream === null ? null : rounded(upstream.endMs - upstream.startMs);
    line.attempts = result.attempts;
    line.consumer = context.consumer?.username ?? null;
    line.reasons = context.reasons;
    line.tls_version = context.tls?.version ?? undefined;
    line.user_agent = agent === null ? undefined : redaction.header("user-agent", agent);
    line.referer = referer === null ? undefined : redaction.header("referer", referer);
    line.request_headers = ofRequest?.(context.headers);
    line.response_headers = ofAnswer?.(subject.answer?.toJSON() ?? {});
    const text = JSON.stringify(line);
    return UNSAFE_IN_JSON.test(text) ? text.replace(ALL_UNSAFE_IN_JSON, jsonEscape) : text;
  };
}

/** The members of a line in their order; those that are undefined are left out. */
const emptyLine = () => ({
  time: "",
  kind: "",
  id: "",
  client: "",
  scheme: "",
  method: undefined as string | undefined,
  host: undefined as string | undefined,
  target: undefined as string | undefined,
  status: undefined as number | undefined,
  server_name: undefined as string | undefined,
  bytes_in: 0,
  bytes_out: 0,
  duration_ms: null as number | null,
  first_byte_ms: null as number | null,
  route: null as string | null,
  service: null as string | null,
  target_id: null as string | null,
  upstream: undefined as string | undefined,
  upstream_status: null as number | null,
  upstream_ms: null as number | null,
  attempts: 0,
  consumer: null as string | null,
  reasons: [] as readonly string[],
  tls_version: undefined as string | undefined,
  user_agent: undefined as string | undefined,
  referer: undefined as string | undefined,
  request_headers: undefined as Fields | undefined,
  response_headers: undefined as Fields | undefined,
});

/** Microseconds are more than enough. */
const rounded = (ms: number | null) => (ms === null ? null : Math.round(ms * 1000) / 1000);

type Fields = Readonly<Record<string, unknown>>;

/** Null: nothing is wanted. */
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
    // Assigning a field named __proto__ would change the object itself.
    return Object.fromEntries(picked);
  };
}

/** Times come in order mostly: only what is below a second changes. */
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
