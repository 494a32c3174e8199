// Parts of OpenAPI operations: parameters, bodies and responses that many endpoints share; knows no endpoint.
import { fleetHeaders, fleetParameters } from "./fleet-write.ts";

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: unknown) => ({ "application/json": { schema } });

/** A body of the named schema. */
export const bodyOf = (schema: string) => ({ required: true, content: json(ref(schema)) });

/** A merge patch, RFC 7396, of the named schema: any part of it. */
export const patchOf = (schema: string) => ({
  required: true,
  description: `Any members of ${schema}; null restores the default (RFC 7396)`,
  content: json({ type: "object" }),
});

const errors: Readonly<Record<number, string>> = {
  400: "The request is invalid; the message names the field",
  401: "Credentials are missing or wrong",
  403: "The role, the address or the origin of the client does not permit this",
  404: "The object does not exist",
  408: "The body did not arrive in time",
  409: "The change conflicts with an object that the message names; or, with Retry-After, an upgrade is in progress. Nothing was changed",
  412: "A condition in If-Match or If-None-Match does not hold",
  413: "The body is too large",
  415: "The body is not JSON",
  429: "Too many requests; Retry-After says when to retry",
  500: "Internal error",
  503: "No worker is running, the database cannot be written, such as on a full disk, or a node of a fleet cannot do this now. Nothing was changed; Retry-After says when to retry",
};

const errorParts = Object.fromEntries(
  Object.entries(errors).map(([status, description]) => [
    `Error${status}`,
    { description, content: json(ref("Error")) },
  ]),
);

/** Descriptions of errors. */
export const errorResponses = (statuses: readonly number[]) =>
  Object.fromEntries(statuses.map((status) => [String(status), errorParts[`Error${status}`]]));

const revisionHeader = {
  "X-Config-Revision": {
    description: "Revision of the configuration that all workers serve",
    schema: { type: "integer" },
  },
};
const etagHeader = { ETag: { description: "Version of the response", schema: { type: "string" } } };

/** Responses of a read: one object of the schema, or a list of them. */
export function readResponses(schema: string, { list = false } = {}) {
  return {
    "200": {
      description: list ? "All matches, oldest first" : "The object",
      headers: etagHeader,
      content: json(list ? { type: "array", items: ref(schema) } : ref(schema)),
    },
    ...errorResponses(list ? [400, 403, 500] : [403, 404, 500]),
  };
}

/** A list without conditions. */
export function listResponses(schema: string, errorStatuses: readonly number[]) {
  return {
    "200": {
      description: "All matches, oldest first",
      content: json({ type: "array", items: ref(schema) }),
    },
    ...errorResponses(errorStatuses),
  };
}

const changeHeaders = {
  ...etagHeader,
  ...revisionHeader,
  "X-Dry-Run": { description: "true: nothing was changed", schema: { type: "string" } },
  "X-Warning": {
    description: "Valid, but probably a mistake: at most ten sentences, and how many more",
    schema: { type: "string" },
  },
};

/** Responses of a change that returns an object of the schema. */
export function writeResponses(schema: string) {
  return {
    "200": {
      description: "Every worker serves the change",
      headers: changeHeaders,
      content: json(ref(schema)),
    },
    ...errorResponses([400, 403, 404, 409, 412, 413, 415, 500, 503]),
  };
}

export function deleteResponses() {
  return {
    "200": {
      description: "Every worker serves the change",
      headers: {
        ...revisionHeader,
        "X-Deleted": {
          description: "Other objects that were deleted: at most ten, and how many more",
          schema: { type: "string" },
        },
      },
      content: json(ref("Deleted")),
    },
    ...errorResponses([403, 404, 409, 412, 500, 503]),
  };
}

/** A response without conditions. */
export function plainResponses(
  schema: string,
  description: string,
  errorStatuses: readonly number[] = [403, 500],
) {
  return {
    "200": { description, content: json(ref(schema)) },
    ...errorResponses(errorStatuses),
  };
}

export const pathParameter = (description: string) => ({
  name: "id",
  in: "path",
  required: true,
  description,
  schema: { type: "string" },
});

export const queryParameter = (name: string, description: string) => ({
  name,
  in: "query",
  required: false,
  description,
  schema: { type: "string" },
});

export const filterParameters = [
  queryParameter("tag", "Only objects with this tag"),
  queryParameter("name", "Only the object with this name"),
  queryParameter("q", "Only objects whose name, description or hosts contain this text"),
];

export const dryRunParameter = queryParameter(
  "dry_run",
  "1: validate the change without making it",
);
export const forceParameter = queryParameter(
  "force",
  "1: make the change even if the new admin_allowed_cidrs lock out this client, which is a 409 otherwise",
);
export const managedParameter = queryParameter(
  "force",
  "1: also what a source manages, such as a container that is gone for good; only an admin may",
);

export const cascadeParameter = queryParameter(
  "cascade",
  "1: also delete the objects that refer to it",
);

export const ifMatchParameter = {
  name: "If-Match",
  in: "header",
  required: false,
  description: "Make the change only if the object still has this ETag",
  schema: { type: "string" },
};

export const ifNoneMatchParameter = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "`*`: only create, never replace",
  schema: { type: "string" },
};

const parameters = [
  ...filterParameters,
  ...[dryRunParameter, cascadeParameter, ifMatchParameter, ifNoneMatchParameter],
  ...fleetParameters,
];

/** `components` that operations refer to: written into each of them, they were more than half of the description. */
export const sharedParts = {
  responses: errorParts,
  headers: { ...changeHeaders, ...fleetHeaders },
  parameters: Object.fromEntries(parameters.map((one) => [one.name, one])),
};

const references = new Map<unknown, { readonly $ref: string }>(
  Object.entries(sharedParts).flatMap(([kind, parts]) =>
    Object.entries(parts).map(([name, part]) => [part, { $ref: `#/components/${kind}/${name}` }]),
  ),
);

/** The same with a reference in the place of each shared part. */
export function withReferences<T>(description: T): T {
  const visit = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    const reference = references.get(value);
    if (reference !== undefined) return reference;
    if (Array.isArray(value)) return value.map(visit);
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, visit(part)]));
  };
  return visit(description) as T;
}
