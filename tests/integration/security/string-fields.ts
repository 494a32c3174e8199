// All fields of the management API that take text, found in its own description, and documents to put hostile text into.

// biome-ignore lint/suspicious/noExplicitAny: documents of every shape are walked through
export type Json = any;

/** As far as the description uses it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly patternProperties?: Readonly<Record<string, Schema>>;
}

export interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export type Place = readonly (string | number)[];

/** What PUT takes, and where in it a text may stand. */
export interface Writable {
  readonly path: string;
  readonly places: readonly Place[];
  /** Whether it can be read where it is put. */
  readonly isReadable: boolean;
}

/** Every object that can be put as a whole. */
export function writablesOf(description: Description): Writable[] {
  return Object.entries(description.paths).flatMap(([path, operations]) => {
    const schema = operations["put"]?.requestBody?.content["application/json"]?.schema;
    if (schema === undefined) return [];
    const places = unique(placesOf(schema, description, []));
    return [{ path, places, isReadable: operations["get"] !== undefined }];
  });
}

function placesOf(schema: Schema, description: Description, at: Place): Place[] {
  const name = schema.$ref?.split("/").at(-1);
  const target = name === undefined ? undefined : description.components.schemas[name];
  if (target !== undefined) return placesOf(target, description, at);
  const inner = (part: Schema, step: string | number) => placesOf(part, description, [...at, step]);
  return [
    ...(schema.type === "string" ? [at] : []),
    ...(schema.anyOf ?? []).flatMap((part) => placesOf(part, description, at)),
    ...Object.entries(schema.properties ?? {}).flatMap(([key, part]) => inner(part, key)),
    ...(schema.items === undefined ? [] : inner(schema.items, 0)),
    ...Object.values(schema.patternProperties ?? {}).flatMap((part) => inner(part, "key")),
  ];
}

function unique(places: readonly Place[]): Place[] {
  return [...new Map(places.map((place) => [place.join("."), place])).values()];
}

/** A copy of the document with the text at the place; what is missing on the way is made. */
export function withText(document: unknown, [step, ...rest]: Place, text: string): Json {
  if (step === undefined) return text;
  const inner = (document as Json)?.[step];
  if (typeof step === "number") {
    const list = Array.isArray(document) ? [...document] : [];
    list[step] = withText(inner, rest, text);
    return list;
  }
  const object = typeof document === "object" && document !== null ? document : {};
  return { ...object, [step]: withText(inner, rest, text) };
}

/** The value at the place. */
export function textAt(document: unknown, place: Place): unknown {
  return place.reduce<Json>((value, step) => value?.[step], document);
}

const match = { name: "X-A", op: "equals", value: "1" };

/** Documents that are accepted as they are. */
export const examples: Readonly<Record<string, object>> = {
  "/api/v1/services/{id}": {
    name: "example",
    hash_on: { source: "header", name: "X-A" },
    targets: [{ host: "127.0.0.1", port: 1, tags: ["a"] }],
    tags: ["a"],
  },
  "/api/v1/targets/{id}": { service_id: "base", host: "127.0.0.1", port: 2, tags: ["a"] },
  "/api/v1/routes/{id}": {
    name: "example",
    service_id: "base",
    hosts: ["a.example.org"],
    tags: ["a"],
    paths: [{ type: "prefix", value: "/x" }],
    methods: ["GET"],
    headers: [match],
    query: [match],
    cookies: [match],
    path_rewrite: { regex: "^/x", to: "/y" },
    maintenance: { bypass_cidrs: ["127.0.0.0/8"] },
  },
  "/api/v1/consumers/{id}": {
    username: "example",
    custom_id: "1",
    groups: ["a"],
    tags: ["a"],
  },
  "/api/v1/credentials/{id}": {
    consumer_id: "base",
    type: "hmac",
    identifier: "example",
    tags: ["a"],
    name: "x",
    secret: "a secret that is long enough to be one",
  },
  "/api/v1/plugins/{id}": {
    name: "key-auth",
    label: "example",
    route_id: null,
    config: { realm: "x" },
    tags: ["a"],
    when: { path: ["/nothing"], header: { "X-A": "1" } },
    enabled: false,
  },
  "/api/v1/settings": { default_site: { action: "redirect", to: "https://example.org/" } },
  "/api/v1/users/{id}": { email: "example@example.org", name: "Example", role: "viewer" },
  "/api/v1/secrets/{id}": { name: "example", value: "1", tags: ["a"] },
  "/api/v1/tokens/{id}": { name: "example", tags: ["a"] },
  "/api/v1/sso": { issuer: "https://id.example.org", client_id: "x", role_map: { key: "viewer" } },
};
