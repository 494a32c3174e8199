// The variables of log templates beside those of requests, and redacted ones; knows no format.
import { isToken } from "../../pdk/http.ts";
import type { OwnVariables } from "../../pdk/template.ts";
import type { Redaction } from "./redaction.ts";
import type { Subject } from "./subject.ts";

type Read = (subject: Subject, redaction: Redaction) => string | number | null;

const plain: Readonly<Record<string, Read>> = {
  time: ({ context }) => new Date(context.startedAt).toISOString(),
  kind: ({ kind }) => kind,
  status: ({ result }) => (result.status === 0 ? null : result.status),
  "grpc.status": ({ result }) => result.grpcStatus,
  bytes_in: ({ result }) => result.bytesIn,
  bytes_out: ({ result }) => result.bytesOut,
  duration_ms: ({ result }) => result.durationMs.toFixed(3),
  first_byte_ms: ({ result }) => result.firstByteMs?.toFixed(3) ?? null,
  "upstream.status": ({ result }) => result.upstreamStatus,
  "upstream.address": ({ result }) => result.upstream?.address ?? null,
  "upstream.duration_ms": ({ result: { upstream } }) =>
    upstream === null ? null : (upstream.endMs - upstream.startMs).toFixed(3),
  "target.id": ({ result }) => result.targetId,
  attempts: ({ result }) => result.attempts,
  reasons: ({ context }) => context.reasons.join(" "),
  // Variables of all templates, redacted.
  "request.target": ({ context }, redaction) => redaction.url(context.target),
  "request.query": ({ context }, redaction) => redaction.query(context.query),
  "client.address": ({ context }, redaction) => redaction.address(context.clientAddress()),
};

type ReadNamed = (subject: Subject, name: string, redaction: Redaction) => string | null;

const named: Readonly<Record<string, ReadNamed>> = {
  "response.header.": ({ responseHeaders }, name, redaction) =>
    hidden(responseHeaders?.get(name) ?? null, (value) =>
      redaction.header(name.toLowerCase(), value),
    ),
  "request.header.": ({ context }, name, redaction) =>
    hidden(context.header(name.toLowerCase()), (value) =>
      redaction.header(name.toLowerCase(), value),
    ),
  "request.query.": ({ context }, name, redaction) =>
    hidden(context.queryValue(name), (value) => redaction.parameter(name, value)),
  "request.cookie.": ({ context }, name, redaction) =>
    hidden(context.cookie(name), (value) => redaction.cookie(value)),
};

const hidden = (value: string | null, by: (value: string) => string) =>
  value === null ? null : by(value);

function readerOf(variable: string): Read | null {
  if (Object.hasOwn(plain, variable)) return plain[variable] ?? null;
  const prefix = Object.keys(named).find((each) => variable.startsWith(each));
  const read = prefix === undefined ? undefined : named[prefix];
  const name = variable.slice(prefix?.length ?? 0);
  if (read === undefined || !isToken(name)) return null;
  return (subject, redaction) => read(subject, name, redaction);
}

/** For the validation of a template. */
export const isKnownVariable: OwnVariables = (variable) =>
  readerOf(variable) === null ? null : () => null;

/** Reads the `current` subject at rendering. */
export const variablesOf =
  (current: () => Subject, redaction: Redaction): OwnVariables =>
  (variable) => {
    const read = readerOf(variable);
    return read === null
      ? null
      : () => {
          const value = read(current(), redaction);
          return value === null || value === "" ? "-" : String(value);
        };
  };

/** Whether a template uses response headers. */
export const usesResponseHeaders = (template: string): boolean =>
  template.includes("${response.header.");
