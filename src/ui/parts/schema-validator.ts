// Checks forms that are drawn from a JSON Schema without compiling code, which the policy of the page forbids; draws nothing.
import { type OutputUnit, Validator } from "@cfworker/json-schema";
import {
  type ErrorSchema,
  type RJSFSchema,
  type RJSFValidationError,
  toErrorList,
  toErrorSchema,
  type ValidatorType,
} from "@rjsf/utils";

/** For `<SchemaForm>`; takes what the API serves as schema of a plugin. */
export const schemaValidator: ValidatorType = {
  isValid: (schema, data, root) => check(within(schema, root), data).length === 0,
  rawValidation: <Result>(schema: RJSFSchema, data?: unknown) => ({
    errors: check(schema, data) as Result[],
  }),
  validateFormData(data, schema) {
    const errors = check(schema, data).map(toFormError);
    return { errors, errorSchema: toErrorSchema(errors) as ErrorSchema };
  },
  toErrorList: (schema?: ErrorSchema, path: string[] = []) => toErrorList(schema, path),
} as ValidatorType;

/** A part of a schema may refer to definitions of the whole. */
const within = (schema: RJSFSchema, root: RJSFSchema): RJSFSchema =>
  root === schema || root.definitions === undefined
    ? schema
    : { ...schema, definitions: root.definitions };

/** Keywords that only say that something below is wrong. */
const CARRIERS = new Set(["properties", "items", "prefixItems", "$ref", "additionalItems"]);

function check(schema: RJSFSchema, data: unknown): readonly OutputUnit[] {
  const validator = new Validator(schema as object, "2020-12", false);
  // Fields that are not filled in are undefined in forms, and absent in JSON.
  const plain: unknown = data === undefined ? undefined : JSON.parse(JSON.stringify(data));
  if (plain === undefined) return [];
  return validator.validate(plain).errors.filter(({ keyword }) => !CARRIERS.has(keyword));
}

function toFormError({ instanceLocation, error, keyword }: OutputUnit): RJSFValidationError {
  const path = instanceLocation
    .split("/")
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"));
  const missing = keyword === "required" ? /property "([^"]+)"/.exec(error)?.[1] : undefined;
  const property = [...path, ...(missing === undefined ? [] : [missing])];
  const message = missing === undefined ? error : "is required";
  return {
    name: keyword,
    message,
    property: property.map((name) => `.${name}`).join(""),
    stack: `${property.join(".")}: ${message}`,
  };
}
