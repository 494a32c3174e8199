// Request documents without the fields that the gateway sets; knows no HTTP.
import { invalid } from "../model/error.ts";

export type Document = Readonly<Record<string, unknown>>;

export function isDocument(value: unknown): value is Document {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The document without the fields that the gateway sets, so that a client can send back what it read. An `id` must be the
 * object's own; the other fields are ignored.
 */
export function withoutReadOnly(body: unknown, id: string, readOnly: readonly string[]): unknown {
  if (!isDocument(body)) throw invalid("", "body must be a JSON object");
  if (body["id"] !== undefined && body["id"] !== id)
    throw invalid("id", "must be the id in the path, or absent");
  const rest: Record<string, unknown> = { ...body };
  for (const field of ["id", "created_at", "updated_at", ...readOnly]) delete rest[field];
  return rest;
}

/** The document of a new object: it must not contain fields that the gateway sets. */
export function withoutIdentity(body: unknown, readOnly: readonly string[]): unknown {
  if (!isDocument(body)) throw invalid("", "body must be a JSON object");
  for (const field of ["id", "created_at", "updated_at", ...readOnly])
    if (field in body) throw invalid(field, "is set by the gateway and cannot be chosen");
  return body;
}
