// The endpoint of the audit log: decodes the filter and streams the list; knows no table.
import type { AuditLog } from "../../control/audit.ts";
import type { AuditFilter, AuditEntry } from "../../model/audit-entry.ts";
import { ApiError } from "../../model/error.ts";
import { queryParameter, readResponses } from "../description.ts";
import type { Call, Endpoint } from "../endpoint.ts";
import { requireKnownQuery } from "../write-options.ts";

const texts = ["actor", "kind", "action", "object_id", "result", "q"] as const;

export function auditEndpoints(audit: AuditLog): Endpoint[] {
  return [
    {
      method: "GET",
      path: "/api/v1/audit",
      takesBody: false,
      description,
      answer: (call) => {
        const page = pageOf(call);
        if (page !== null) {
          const { entries, next } = audit.latest(filterOf(call), page);
          return {
            body: entries,
            headers: next === null ? {} : { "x-next": String(next) },
          };
        }
        const { tag, pages } = audit.list(filterOf(call));
        return new Response(listOf(pages), {
          headers: { "content-type": "application/json; charset=utf-8", etag: `"${tag}"` },
        });
      },
    },
  ];
}

const MAX_PAGE = 1000;

/** Null: all entries. */
function pageOf({
  query,
}: Call): { readonly limit: number; readonly before: number | null } | null {
  const before = numberOf(query.get("before"), { name: "before", max: Number.MAX_SAFE_INTEGER });
  const limit = numberOf(query.get("newest"), { name: "newest", max: MAX_PAGE });
  if (limit !== null) return { limit, before };
  if (before === null) return null;
  throw new ApiError(400, "before: is only valid with newest");
}

function numberOf(
  text: string | null,
  { name, max }: { readonly name: string; readonly max: number },
): number | null {
  if (text === null) return null;
  const number = /^\d{1,16}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= max) return number;
  throw new ApiError(400, `${name}: must be a number from 1 to ${max}`);
}

function filterOf(call: Call): AuditFilter {
  requireKnownQuery(call, ["since", "until", "newest", "before", ...texts]);
  const filter: Record<string, string> = {};
  for (const name of texts) {
    const value = call.query.get(name);
    if (value === null) continue;
    if (value === "" || value.length > 320)
      throw new ApiError(400, `${name}: must have 1 to 320 characters`);
    filter[name] = value;
  }
  for (const name of ["since", "until"]) {
    const value = call.query.get(name);
    if (value !== null) filter[name] = decodeTime(name, value);
  }
  return filter;
}

const TIME = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/i;

/** In the stored form, so that times compare as texts. */
function decodeTime(name: string, text: string): string {
  // In a query `+` is a space; offsets often come unescaped.
  const time = text.replace(/ (\d{2}:\d{2})$/, "+$1");
  const day = time.slice(0, 10);
  const at = TIME.test(time) ? Date.parse(time.toUpperCase()) : Number.NaN;
  // `Date` reads February 30 as March 2.
  if (Number.isNaN(at) || new Date(Date.parse(day)).toISOString().slice(0, 10) !== day)
    throw new ApiError(
      400,
      `${name}: must be a time such as 2026-01-31T12:00:00Z, or a day such as 2026-01-31`,
    );
  return new Date(at).toISOString();
}

/** Streams the list, so that a long one is never in memory as a whole. */
function listOf(pages: Iterable<readonly AuditEntry[]>): ReadableStream<Uint8Array> {
  const iterator = pages[Symbol.iterator]();
  let isFirst = true;
  return new ReadableStream({
    pull(controller) {
      const { done, value } = iterator.next();
      const opening = isFirst ? "[" : done ? "" : ",";
      isFirst = false;
      const rows = done ? "]" : value.map((entry) => JSON.stringify(entry)).join(",");
      controller.enqueue(Buffer.from(opening + rows));
      if (done) controller.close();
    },
  });
}

const responses = readResponses("AuditEntry", { list: true });
const nextHeader = {
  description: "With newest: `before` of the next page; absent: this is the last page",
  schema: { type: "string" },
};

const description = {
  summary: "List the audit log",
  description:
    "Changes, sign-ins and rejected requests, oldest first, within settings.retention. Secrets are" +
    " masked; `*** (changed)` marks a changed secret.",
  tags: ["Audit log"],
  parameters: [
    queryParameter("since", "RFC 3339: only entries from this time on"),
    queryParameter("until", "RFC 3339: only entries before this time"),
    queryParameter("actor", "Only entries of this user or token: e-mail address or name"),
    queryParameter("kind", "Only this kind of object: `user`, `route` and so on"),
    queryParameter("action", "Only this action: `create`, `update`, `delete`, `login` and so on"),
    queryParameter("object_id", "Only entries about the object with this ID"),
    queryParameter("result", "Only `ok`, `refused` or `failed`"),
    queryParameter("newest", "1 to 1000: only this many entries, newest first"),
    queryParameter("before", "With newest: X-Next of the previous page"),
    queryParameter("q", "Only entries whose actor, object or address contains this text"),
  ],
  responses: {
    ...responses,
    "200": {
      ...responses["200"],
      headers: { ...responses["200"].headers, "X-Next": nextHeader },
    },
  },
};
