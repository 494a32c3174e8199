// Formats log lines: the two formats of Apache, and templates; a record is always one line; knows no sink.
import type { RequestContext } from "../../pdk/context.ts";
import { compileTemplate } from "../../pdk/template.ts";
import { jsonFormat } from "./json-format.ts";
import { LineBuffer } from "./line-buffer.ts";
import type { Redaction } from "./redaction.ts";
import type { Config, LineConfig } from "./settings.ts";
import type { Subject } from "./subject.ts";
import { usesResponseHeaders, variablesOf } from "./variables.ts";

/** Formats one record, without the line end. */
export type Format = (subject: Subject, out: LineBuffer) => void;

type Text = (subject: Subject) => string;

type Include = Config["include"];

/** Whether lines need the response headers. */
export const needsResponse = ({ format, template }: LineConfig, include: Include): boolean =>
  format === "json"
    ? include.response_headers.length > 0
    : format === "template" && usesResponseHeaders(template ?? "");

export function formatOf(
  { format, template }: LineConfig,
  redaction: Redaction,
  include: Include,
): Format {
  switch (format) {
    case "json":
      return jsonFormat(redaction, include);
    case "clf":
      return asText(clfText(redaction));
    case "combined":
      return asText(clfText(redaction, endOfCombined(redaction)));
    case "template":
      return asText(templateText(template ?? "", redaction));
    default:
      return format satisfies never;
  }
}

/** For sinks that send messages. */
export function textOf(subject: Subject, format: Format): string {
  scratch.clear();
  format(subject, scratch);
  return scratch.toString();
}

const scratch = new LineBuffer();

const asText =
  (textOf: Text): Format =>
  (subject, out) =>
    out.text(textOf(subject));

/** Control characters, Unicode line ends, and bidirectional control characters. */
const ALL_UNSAFE = /["\\\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]|\p{Cs}/gu;
/** A fast check: nearly all texts are plain. */
const MAYBE_UNSAFE = /[^ !#-[\]-~]/;

/** For formats without escapes of their own, as in Apache: `\x0a`. */
function escaped(text: string): string {
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

/** A field between spaces. */
const word = (text: string) => (text === "" ? "-" : escaped(text).replaceAll(" ", "\\x20"));

const MONTHS = [
  ...["Jan", "Feb", "Mar", "Apr", "May", "Jun"],
  ...["Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
];

/** Cached for a whole second. */
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

/** `endOf`: formats the fields after the number of bytes. */
function clfText(
  redaction: Redaction,
  endOf: (context: RequestContext) => string = () => "",
): Text {
  const timeOf = clfClock();
  // Clients send several requests in a row, and few concatenations are faster than many.
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
    ? // The server does not report the version.
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

/** Caches the result until one of the three texts changes. */
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

function templateText(template: string, redaction: Redaction): Text {
  let current: Subject | null = null;
  const subject = () => {
    if (current === null) throw new Error("no line is being formatted");
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
