// Validates values against JSON Schema 2020-12, with compilation at first use; knows no request and no document.
import type { Ajv2020, ValidateFunction } from "ajv/dist/2020.js";
import { isIP } from "node:net";
import { isPlainPattern, MAX_UNCHECKED_TEXT } from "./schema-text.ts";

/** Null: valid; otherwise path and reason, without values. */
export type Check = (value: unknown) => string | null;

const date = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/;
const time =
  /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d{1,9})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const isDate = (text: string) =>
  date.test(text) && new Date(`${text}T00:00:00Z`).toISOString().startsWith(text);

/** The checked formats; others are annotations. */
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

/** Dates out of range throw. */
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
  /** Whether strings of queries, headers and forms are converted to numbers and booleans. */
  readonly coerces: boolean;
  /** Whether all patterns were checked before; otherwise only simple ones are used, on short texts. */
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
      // Patterns are checked, and mostly written, without the u flag.
      unicodeRegExp: false,
      logger: false,
      // Inlined, one definition would be compiled again at each reference.
      inlineRefs: false,
      coerceTypes: coerces ? "array" : false,
      // Takes a tenth of a second in each worker; compilation of a schema finds its problems.
      validateSchema: false,
      // The package's optimizer takes seven eighths of the time of compilation, which blocks the thread, and gains little.
      code: { optimize: false, ...(hasSafePatterns ? {} : { regExp: this.#limited() }) },
    });
    for (const [name, check] of Object.entries(formats)) this.#ajv.addFormat(name, check);
    for (const [name, validate] of Object.entries(numberFormats))
      this.#ajv.addFormat(name, { type: "number", validate });
    this.#replaceUniqueItems();
  }

  /** Registers the document, so that `document#/...` resolves. */
  addDocument(document: object): void {
    this.#ajv.addSchema(document, "document", undefined, false);
  }

  /**
   * Compiles at first use: a document may have thousands of schemas, and compilation blocks the thread. With a problem, no value is
   * valid.
   */
  compile(schema: object | boolean, problemOf: () => string | null = () => null): Check {
    let validate: ValidateFunction | null = null;
    let problem: string | null = null;
    return (value) => {
      if (validate === null) problem ??= problemOf();
      if (problem !== null) return `cannot be checked: its schema ${problem}`;
      validate ??= this.#ajv.compile(schema);
      try {
        return validate(value) ? null : wordsOf(validate);
      } catch (error) {
        // Stack overflow.
        if (error instanceof RangeError) return "is too deep";
        throw error;
      }
    };
  }

  /** Compiles a schema and returns its problem; null: none. For the main thread. */
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
        // The package compares expressions by this.
        toString: () => source,
      };
    };
    return Object.assign(limited, { code: "limited" });
  }

  /** The package's algorithm is quadratic: a list of 100,000 items would block the worker for minutes. */
  #replaceUniqueItems(): void {
    this.#ajv.removeKeyword("uniqueItems");
    this.#ajv.addKeyword({
      keyword: "uniqueItems",
      type: "array",
      schemaType: "boolean",
      error: { message: "must not have duplicate items" },
      validate: (isWanted: boolean, items: unknown[]) =>
        !isWanted || new Set(items.map(canonical)).size === items.length,
    });
  }
}

/** Loaded at first use. */
function loadAjv(): typeof import("ajv/dist/2020.js") {
  return require("ajv/dist/2020.js");
}

/** Equal texts for values that are equal in JSON Schema. */
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
  if (first === undefined) return "is not valid";
  const path = first.instancePath
    .split("/")
    .slice(1)
    .map((raw) => raw.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`))
    .join("");
  const { additionalProperty } = first.params as { readonly additionalProperty?: string };
  const what = additionalProperty === undefined ? "" : ` (${additionalProperty})`;
  // Member names from clients must not break log lines.
  return `${path} ${first.message ?? "is not valid"}${what}`
    .replaceAll(/[^ -~]/g, "?")
    .slice(0, MAX_WORDS)
    .trim();
}
