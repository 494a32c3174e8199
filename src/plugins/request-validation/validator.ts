// Checks of values against JSON Schema 2020-12, compiled when they are first needed; knows no request and no document.
import type { Ajv2020, ValidateFunction } from "ajv/dist/2020.js";
import { isIP } from "node:net";
import { isPlainPattern, MAX_UNCHECKED_TEXT } from "./schema-text.ts";

/** Null: it fits; otherwise where and why not, in half a sentence without values. */
export type Check = (value: unknown) => string | null;

const date = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;
const time =
  /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const isDate = (text: string) =>
  date.test(text) && new Date(`${text}T00:00:00Z`).toISOString().startsWith(text);

/** Those that people use; others are notes for readers. */
const formats: Readonly<Record<string, (text: string) => boolean>> = {
  date: isSafely(isDate),
  time: (text) => time.test(text),
  "date-time": isSafely(
    (text) => /^.{10}[Tt ]/.test(text) && isDate(text.slice(0, 10)) && time.test(text.slice(11)),
  ),
  email: (text) => text.length <= 320 && /^[^\s@<>()",;:\\]{1,64}@[A-Za-z0-9.-]{1,255}$/.test(text),
  hostname: (text) =>
    text.length <= 253 &&
    text.split(".").every((label) => /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(label)),
  ipv4: (text) => isIP(text) === 4,
  ipv6: (text) => isIP(text) === 6,
  uri: (text) => /^[A-Za-z][A-Za-z0-9+.-]{0,63}:[!-~]+$/.test(text) && URL.canParse(text),
  uuid: (text) => /^[\dA-Fa-f]{8}(?:-[\dA-Fa-f]{4}){3}-[\dA-Fa-f]{12}$/.test(text),
  byte: (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text),
};

/** Dates beyond what there is throw. */
function isSafely(check: (text: string) => boolean): (text: string) => boolean {
  return (text) => {
    try {
      return check(text);
    } catch {
      return false;
    }
  };
}

const numberFormats: Readonly<Record<string, (value: number) => boolean>> = {
  int32: (value) => Number.isInteger(value) && value >= -(2 ** 31) && value < 2 ** 31,
  int64: (value) => Number.isInteger(value),
};

export interface ValidatorOptions {
  /** Whether texts of queries, fields and forms may stand for numbers and truths. */
  readonly coerces: boolean;
  /** Whether all patterns were found safe before; otherwise only plain ones are used, on short texts. */
  readonly hasSafePatterns: boolean;
}

/** Compiles schemas that may refer to a document. */
export class Validator {
  readonly #ajv: Ajv2020;

  constructor({ coerces, hasSafePatterns }: ValidatorOptions) {
    this.#ajv = new (loadAjv().Ajv2020)({
      strict: false,
      allErrors: false,
      ownProperties: true,
      // Patterns are judged, and written by most people, without the flag.
      unicodeRegExp: false,
      logger: false,
      coerceTypes: coerces ? "array" : false,
      // Takes a tenth of a second in each worker; what is wrong is found when a schema is compiled.
      validateSchema: false,
      ...(hasSafePatterns ? {} : { code: { regExp: this.#limited() } }),
    });
    for (const [name, check] of Object.entries(formats)) this.#ajv.addFormat(name, check);
    for (const [name, validate] of Object.entries(numberFormats))
      this.#ajv.addFormat(name, { type: "number", validate });
    this.#replaceUniqueItems();
  }

  /** Makes `#/...` of the document known as `document#/...`. */
  addDocument(document: object): void {
    this.#ajv.addSchema(document, "document", undefined, false);
  }

  /** Compiles when it is first used: a document may hold thousands, and others wait meanwhile. */
  compile(schema: object | boolean): Check {
    let validate: ValidateFunction | null = null;
    return (value) => {
      validate ??= this.#ajv.compile(schema);
      try {
        return validate(value) ? null : wordsOf(validate);
      } catch (error) {
        // So deep that the stack is not enough.
        if (error instanceof RangeError) return "is too deep";
        throw error;
      }
    };
  }

  /** What is wrong with a schema, which is compiled for it; null: nothing. For the main thread. */
  problemOf(schema: object): string | null {
    try {
      this.#ajv.compile(schema);
      return null;
    } catch (error) {
      return `is not a usable schema: ${(error as Error).message}`;
    }
  }

  #limited() {
    const limited = (source: string) => {
      if (!isPlainPattern(source)) {
        return { test: () => true, toString: () => `ignored ${source}` };
      }
      const expression = new RegExp(source);
      return {
        test: (text: string) => text.length <= MAX_UNCHECKED_TEXT && expression.test(text),
        // By this the package knows which expressions are the same.
        toString: () => source,
      };
    };
    return Object.assign(limited, { code: "limited" });
  }

  /** The package compares every item with every other one: a list of 100,000 would hold the worker up for minutes. */
  #replaceUniqueItems(): void {
    this.#ajv.removeKeyword("uniqueItems");
    this.#ajv.addKeyword({
      keyword: "uniqueItems",
      type: "array",
      schemaType: "boolean",
      error: { message: "must not hold an item twice" },
      validate: (isWanted: boolean, items: unknown[]) =>
        !isWanted || new Set(items.map(canonical)).size === items.length,
    });
  }
}

/** Loaded by whoever checks something, and not by every gateway at its start. */
function loadAjv(): typeof import("ajv/dist/2020.js") {
  return require("ajv/dist/2020.js");
}

/** The same text for what JSON Schema takes for the same. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

const MAX_WORDS = 300;

function wordsOf({ errors }: ValidateFunction): string {
  const [first] = errors ?? [];
  if (first === undefined) return "does not fit";
  const path = first.instancePath
    .split("/")
    .slice(1)
    .map((raw) => raw.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`))
    .join("");
  const { additionalProperty } = first.params as { readonly additionalProperty?: string };
  const what = additionalProperty === undefined ? "" : ` (${additionalProperty})`;
  // What a client has named its members must not break a line of a log.
  return `${path} ${first.message ?? "does not fit"}${what}`
    .replaceAll(/[^ -~]/g, "?")
    .slice(0, MAX_WORDS)
    .trim();
}
