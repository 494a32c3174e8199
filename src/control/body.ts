// Request bodies: which read-only fields clients may send back; knows no HTTP.
import { invalid } from "../model/error.ts";

export type Document = Readonly<Record<string, unknown>>;

export function isDocument(value: unknown): value is Document {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const IDENTITY = ["id", "created_at", "updated_at", "managed_by"];

/**
 * The document without read-only fields, so that clients can send back what they read. An `id` must be the object's own;
 * other read-only fields are ignored.
 */
export function withoutReadOnly(body: unknown, id: string, readOnly: readonly string[]): unknown {
  if (!isDocument(body)) throw invalid("", "body must be a JSON object");
  if (body["id"] !== undefined && body["id"] !== id)
    throw invalid("id", "must be the id in the path, or absent");
  const rest: Record<string, unknown> = { ...body };
  for (const field of [...IDENTITY, ...readOnly]) delete rest[field];
  return rest;
}

/** The document of a new object, which must not hold read-only fields. */
export function withoutIdentity(body: unknown, readOnly: readonly string[]): unknown {
  if (!isDocument(body)) throw invalid("", "body must be a JSON object");
  for (const field of [...IDENTITY, ...readOnly])
    if (field in body) throw invalid(field, "is set by the gateway and cannot be chosen");
  return body;
}
