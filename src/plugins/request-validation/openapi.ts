// Parses OpenAPI 3.0 and 3.1 documents and finds the operation of a request; knows no request and no network.
import type { Steps } from "../../pace.ts";
import {
  decodePointer,
  decodeSafely,
  holdsValues,
  isMap,
  isPlainPattern,
  lookThrough,
  sizeOf,
} from "./schema-text.ts";
import { type Check, Validator } from "./validator.ts";

type Obj = Readonly<Record<string, unknown>>;

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header" | "cookie";
  readonly isRequired: boolean;
  /** Validates the raw value; strings may stand for numbers. */
  readonly check: Check | null;
  readonly isList: boolean;
  /** Separator of list items; null: the parameter is repeated for each item. */
  readonly separator: string | null;
  /** Whether the value is JSON. */
  readonly isJson: boolean;
}

export interface Body {
  readonly isRequired: boolean;
  /** By lower-case media type, or range such as `application/*`; null: anything. */
  readonly content: ReadonlyMap<
    string,
    { readonly strict: Check | null; readonly lenient: Check | null }
  >;
}

export interface Operation {
  readonly parameters: readonly Parameter[];
  readonly body: Body | null;
}

interface PathEntry {
  readonly expression: RegExp;
  readonly names: readonly string[];
  readonly operations: ReadonlyMap<string, Operation>;
}

export interface Matched {
  readonly operation: Operation;
  readonly values: ReadonlyMap<string, string>;
}

/** `path`: no such path; `method`: the path does not have this method. */
export type Mismatch = "path" | "method";

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"] as const;

/** Throws an Error with a message for the user when it is not valid. */
function parseDocument(text: string): Obj {
  let document: unknown;
  try {
    document = /^\s*\{/.test(text) ? JSON.parse(text) : Bun.YAML.parse(text);
  } catch (error) {
    throw new Error(`must be JSON or YAML: ${(error as Error).message}`, { cause: error });
  }
  if (!isObject(document) || !isObject(document["paths"]))
    throw new Error("must be an OpenAPI document with paths");
  const version = String(document["openapi"] ?? "");
  if (!/^3\.[01](?:\.|$)/.test(version)) throw new Error("must be OpenAPI 3.0 or 3.1");
  return document;
}

export class ApiDocument {
  readonly #paths: readonly PathEntry[];
  /** Base paths of the servers. */
  readonly #bases: readonly string[];
  readonly #reader: Reader;
  /** Ignored patterns, which could backtrack without bound. */
  readonly ignored: readonly string[];

  /** Throws an Error with a message for problems found without compiling schemas. */
  constructor(text: string, { hasSafePatterns }: { readonly hasSafePatterns: boolean }) {
    const document = parseDocument(text);
    const { problems, regexes } = lookThrough(document);
    const [problem] = problems;
    this.ignored = hasSafePatterns
      ? []
      : regexes.map(({ source }) => source).filter((source) => !isPlainPattern(source));
    if (problem !== undefined) throw new Error(`${problem.path} ${problem.message}`.trim());
    const is30 = String(document["openapi"]).startsWith("3.0");
    const plain = toSchemas(document, { is30, isMap: false }) as Obj;
    const reader = new Reader(plain, hasSafePatterns);
    this.#bases = basesOf(document);
    this.#reader = reader;
    this.#paths = reader.paths();
  }

  /** The first problem of a schema in it; null: none. */
  schemaProblem(): Steps<string | null> {
    return this.#reader.schemaProblem();
  }

  /** `path`: percent-encoded, as received. */
  match(method: string, path: string): Matched | Mismatch {
    let mismatch: Mismatch = "path";
    for (const base of this.#bases) {
      if (base !== "" && path !== base && !path.startsWith(`${base}/`)) continue;
      const rest = path.slice(base.length) || "/";
      for (const { expression, names, operations } of this.#paths) {
        const found = expression.exec(rest);
        if (found === null) continue;
        const lower = method.toLowerCase();
        // An operation for GET also serves HEAD.
        const operation =
          operations.get(lower) ?? (lower === "head" ? operations.get("get") : undefined);
        if (operation === undefined) {
          mismatch = "method";
          continue;
        }
        const values = new Map(names.map((name, at) => [name, found[at + 1] ?? ""]));
        return { operation, values };
      }
    }
    return mismatch;
  }
}

const isObject = (value: unknown): value is Obj =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The base paths of the servers. */
function basesOf({ servers }: Obj): string[] {
  if (!Array.isArray(servers)) return [""];
  const bases = servers.flatMap((server) => {
    const url = isObject(server) ? server["url"] : undefined;
    if (typeof url !== "string" || url.includes("{")) return [];
    const path = URL.parse(url, "http://document/")?.pathname ?? "/";
    return [path.replace(/\/+$/, "")];
  });
  return bases.length === 0 ? [""] : [...new Set(bases)].sort((a, b) => b.length - a.length);
}

/** A copy with all schemas converted to JSON Schema 2020-12, and nothing else that could be read as one. */
function toSchemas(
  value: unknown,
  how: { readonly is30: boolean; readonly isMap: boolean },
): unknown {
  if (Array.isArray(value)) return value.map((item) => toSchemas(item, { ...how, isMap: false }));
  if (!isObject(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    if (how.isMap) copy[name] = toSchemas(member, { ...how, isMap: false });
    else if (name === "const" || name === "enum") copy[name] = member;
    else if (!holdsValues(name)) copy[name] = toSchemas(member, { ...how, isMap: isMap(name) });
  }
  if (how.isMap) return copy;
  if (how.is30) bringUpToDate(copy);
  requireNothingReadOnly(copy);
  return copy;
}

/** Converts keywords of OpenAPI 3.0. */
function bringUpToDate(schema: Record<string, unknown>): void {
  for (const [flag, limit] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (schema[flag] === true) {
      schema[flag] = schema[limit];
      delete schema[limit];
    } else if (schema[flag] === false) delete schema[flag];
  }
  if (typeof schema["$ref"] === "string")
    // OpenAPI 3.0 ignores siblings of a reference.
    for (const name of Object.keys(schema)) if (name !== "$ref") delete schema[name];
  if (typeof schema["nullable"] !== "boolean") return;
  if (schema["nullable"] && typeof schema["type"] === "string") {
    schema["type"] = [schema["type"], "null"];
    if (Array.isArray(schema["enum"])) schema["enum"] = [...schema["enum"], null];
  }
  delete schema["nullable"];
}

/** Members with `readOnly` are not required in requests. */
function requireNothingReadOnly(schema: Record<string, unknown>): void {
  const { required, properties } = schema;
  if (!Array.isArray(required) || !isObject(properties)) return;
  schema["required"] = required.filter((name) => {
    const member = properties[String(name)];
    return !isObject(member) || member["readOnly"] !== true;
  });
}

/** Values of all schemas that are compiled before the document is stored: a few seconds. */
const MAX_CHECKED = 100_000;

const escapePointer = (name: string) => name.replaceAll("~", "~0").replaceAll("/", "~1");

/** Builds the operations of a document with converted schemas. */
class Reader {
  readonly #document: Obj;
  readonly #strict: Validator;
  readonly #lenient: Validator;
  /** Validators of all operations. */
  readonly #schemas: { readonly at: string; readonly schema: object; readonly own: unknown }[] = [];

  constructor(document: Obj, hasSafePatterns: boolean) {
    this.#document = document;
    this.#strict = new Validator({ coerces: false, hasSafePatterns });
    this.#lenient = new Validator({ coerces: true, hasSafePatterns });
    this.#strict.addDocument(document);
    this.#lenient.addDocument(document);
  }

  *schemaProblem(): Steps<string | null> {
    const seen = new Set<string>();
    let left = MAX_CHECKED;
    for (const { at, schema, own } of this.#schemas) {
      const key = JSON.stringify(own);
      if (seen.has(key)) continue;
      seen.add(key);
      const size = sizeOf(own, this.#document);
      // Compiled at the first request in any case; a document of so many is compiled in part here.
      const problem = size.problem ?? (left > 0 ? this.#strict.problemOf(schema) : null);
      if (problem !== null) return `${at} ${problem}`;
      left -= size.values;
      yield;
    }
    return null;
  }

  /** Those without parameters first (OpenAPI 3.1 section 4.8.8.2), then those with fewer. */
  paths(): PathEntry[] {
    return Object.entries(this.#document["paths"] as Obj)
      .filter(([path]) => path.startsWith("/"))
      .map(([path, item]) => this.#path(path, item))
      .sort((a, b) => a.names.length - b.names.length);
  }

  #path(path: string, value: unknown): PathEntry {
    const pointer = `#/paths/${escapePointer(path)}`;
    const [item, at] = this.#resolve(value, pointer);
    const names: string[] = [];
    const source = path
      .split(/(\{[^{}]+\})/)
      .map((part, index) => {
        if (index % 2 === 0) return part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
        names.push(part.slice(1, -1));
        return "([^/]+)";
      })
      .join("");
    const operations = new Map<string, Operation>();
    for (const method of METHODS)
      if (isObject(item[method]))
        operations.set(
          method,
          this.#operation(item[method], {
            at: `${at}/${method}`,
            shared: item["parameters"],
            sharedAt: at,
          }),
        );
    return { expression: new RegExp(`^${source}/?$`), names, operations };
  }

  #operation(
    operation: Obj,
    by: { readonly at: string; readonly shared: unknown; readonly sharedAt: string },
  ): Operation {
    const parameters = new Map<string, Parameter>();
    for (const [list, at] of [
      [by.shared, by.sharedAt],
      [operation["parameters"], by.at],
    ] as const)
      if (Array.isArray(list))
        for (const [index, value] of list.entries()) {
          const parameter = this.#parameter(value, `${at}/parameters/${index}`);
          if (parameter !== null) parameters.set(`${parameter.in} ${parameter.name}`, parameter);
        }
    const body = operation["requestBody"];
    return {
      parameters: [...parameters.values()],
      body: isObject(body) ? this.#body(body, `${by.at}/requestBody`) : null,
    };
  }

  #parameter(value: unknown, pointer: string): Parameter | null {
    const [own, at] = this.#resolve(value, pointer);
    const { name, in: place, content } = own;
    if (typeof name !== "string" || !isPlace(place)) return null;
    // OpenAPI 3.1 section 4.8.12.2.1: these parameters are ignored.
    if (place === "header" && /^(?:accept|content-type|authorization)$/i.test(name)) return null;
    const isRequired = own["required"] === true || place === "path";
    const common = { name, in: place, isRequired };
    if (isObject(content)) {
      const [type = ""] = Object.keys(content);
      const check = this.#check(
        `${at}/content/${escapePointer(type)}`,
        content[type],
        this.#strict,
      );
      return { ...common, check, isList: false, separator: null, isJson: /json/i.test(type) };
    }
    const [schema] = this.#resolve(own["schema"], `${at}/schema`);
    const types = [schema["type"]].flat();
    // Object parameters are not parsed.
    const isOpen = types.includes("object") || own["style"] === "deepObject";
    const isList = types.includes("array");
    const explodes = own["explode"] ?? (place === "query" || place === "cookie");
    const style = SEPARATORS[String(own["style"])] ?? ",";
    return {
      ...common,
      check: isOpen ? null : this.#check(at, own, this.#lenient),
      isList,
      separator: isList && (place !== "query" || explodes !== true) ? style : null,
      isJson: false,
    };
  }

  #body(value: unknown, pointer: string): Body {
    const [own, at] = this.#resolve(value, pointer);
    const content = isObject(own["content"]) ? own["content"] : {};
    const all = Object.entries(content).map(([type, media]) => {
      const where = `${at}/content/${escapePointer(type)}`;
      const checks = {
        strict: this.#check(where, media, this.#strict),
        lenient: this.#check(where, media, this.#lenient),
      };
      return [(type.split(";")[0] ?? "").trim().toLowerCase(), checks] as const;
    });
    return { isRequired: own["required"] === true, content: new Map(all) };
  }

  /** The validator of the schema in this object; null: it has none. */
  #check(at: string, owner: unknown, validator: Validator): Check | null {
    if (!isObject(owner) || owner["schema"] === undefined) return null;
    const schema = { $ref: `document${at}/schema`.split("/").map(encodeSegment).join("/") };
    const own = owner["schema"];
    if (this.#schemas.at(-1)?.at !== at) this.#schemas.push({ at, schema, own });
    return validator.compile(schema, () => sizeOf(own, this.#document).problem);
  }

  /** Resolves a reference, to the value and its location. */
  #resolve(value: unknown, pointer: string): [Obj, string] {
    let [found, at] = [value, pointer];
    for (let step = 0; isObject(found) && typeof found["$ref"] === "string"; step++) {
      if (step > 20) throw new Error(`${pointer}: references go round in a circle`);
      at = found["$ref"];
      found = this.#document;
      for (const raw of at.split("/").slice(1)) {
        const name = decodePointer(raw);
        const container: unknown = found;
        if (typeof container !== "object" || container === null || !Object.hasOwn(container, name))
          throw new Error(`${at} is nowhere`);
        found = (container as Obj)[name];
      }
    }
    return [isObject(found) ? found : {}, at];
  }
}

const SEPARATORS: Readonly<Record<string, string>> = { spaceDelimited: " ", pipeDelimited: "|" };

const isPlace = (value: unknown): value is Parameter["in"] =>
  value === "path" || value === "query" || value === "header" || value === "cookie";

/** References are URIs, in which `{` and others are escaped. */
const encodeSegment = (segment: string) =>
  segment.startsWith("document#") ? segment : encodeURIComponent(decodeSafely(segment));
