// The fields of a form by the schema of its object: its state, and how they are drawn; knows no resource.
import type { FormErrors, UseFormReturnType } from "@mantine/form";
import { type ComponentType, type ReactNode, useMemo } from "react";
import { type Document, isSame } from "../api/merge-patch.ts";
import { Field } from "./schema/field.tsx";
import { type FieldInputProps, FormFactsContext } from "./schema/field-frame.tsx";
import { PageSections } from "./schema/page-fields.tsx";
import { problemsOf } from "./schema/problems.ts";
import { hasSecret, isSecret, type JsonSchema, memberOf, optionsOf } from "./schema/shape.ts";
import { besideValues, toChecked, toSent, withDefaults } from "./schema/values.ts";
import { withoutSecrets } from "./schema/without-secrets.ts";

interface SchemaFacts {
  /** Whether write-only secrets are stored, so that they may stay empty. */
  readonly isStored?: boolean;
  /** The schema where it depends on values, such as a type. */
  readonly schemaFor?: (values: Document) => JsonSchema;
  /** More errors, by path. */
  readonly check?: (values: Document) => FormErrors;
}

/** What a schema determines of the state of its form. */
export function schemaOptions(whole: JsonSchema, facts: SchemaFacts = {}) {
  const { isStored = false, check = () => ({}) } = facts;
  const schemaFor = (values: Document) => besideValues(facts.schemaFor?.(values) ?? whole, values);
  const toValues = (object: object) => withDefaults(schemaFor(object as Document), object);
  return {
    toValues,
    toBody: (values: Document) => toSent(schemaFor(values), values),
    validate(values: Document): FormErrors {
      const schema = schemaFor(values);
      const problems = problemsOf(schema, toChecked(schema, values)).filter(
        ({ isMissing, path }) => !(isStored && isMissing && isSecretAt(schema, path.split("."))),
      );
      const found = problems.map(({ path, message }) => [path, message] as const);
      return { ...Object.fromEntries(found), ...check(values) };
    },
    hasField: (path: string, values: Document) =>
      fieldAt(schemaFor(values), path.split(".")) !== null,
    ...(hasSecret(whole) || facts.schemaFor !== undefined
      ? {
          withoutSecrets: (values: Document) =>
            withoutSecrets(schemaFor(values), values) as Document,
        }
      : {}),
  };
}

/** The fields of a new object that have their default, where another value has changed that. */
export function movedDefaults(
  schema: JsonSchema,
  before: Document,
  after: Document,
): [name: string, value: unknown][] {
  const { properties: former = {} } = besideValues(schema, before);
  const { properties: present = {} } = besideValues(schema, after);
  return Object.keys(present)
    .filter((name) => !isSame(former[name]?.default, present[name]?.default))
    .filter((name) => isSame(after[name], former[name]?.default))
    .map((name) => [name, present[name]?.default]);
}

/** The schema of stored objects. */
export function ofStored(schema: JsonSchema): JsonSchema {
  const { properties = {}, required = [] } = schema;
  const isKept = (name: string) => properties[name]?.form?.isNewOnly !== true;
  return {
    ...schema,
    properties: Object.fromEntries(Object.entries(properties).filter(([name]) => isKept(name))),
    required: required.filter(isKept),
  };
}

/** A kind of object whose `config` has a schema of its own. */
interface ConfigType {
  readonly type: string;
  readonly title: string;
  readonly schema: unknown;
}

/** The schema with the `config` of its `type`, and a choice of types. */
export function schemaOfType(whole: JsonSchema, types: readonly ConfigType[], type: unknown) {
  const { properties = {} } = whole;
  const { schema } = types.find((one) => one.type === type) ?? {};
  const options = Object.fromEntries(types.map((one) => [one.type, one.title]));
  const form = { ...(schema as JsonSchema | undefined)?.form, ...properties["config"]?.form };
  return {
    ...whole,
    properties: {
      ...properties,
      type: { ...properties["type"], form: { ...properties["type"]?.form, options } },
      config: { ...(schema as JsonSchema | undefined), default: {}, form },
    },
  };
}

/** The field at a path; null: there is none. */
function fieldAt(schema: JsonSchema, [name = "", ...rest]: readonly string[]): JsonSchema | null {
  for (const { properties, items, ...option } of optionsOf(schema)) {
    const inner = properties?.[name] ?? items ?? memberOf(option) ?? null;
    if (inner === null) continue;
    return rest.length === 0 ? inner : fieldAt(inner, rest);
  }
  return null;
}

const isSecretAt = (schema: JsonSchema, path: readonly string[]): boolean => {
  const field = fieldAt(schema, path);
  return field !== null && isSecret(field);
};

interface Props {
  readonly form: UseFormReturnType<Document>;
  readonly schema: JsonSchema;
  /** Whether write-only secrets may be stored, so that their inputs may stay empty. */
  readonly isStored: boolean;
  readonly isReadOnly: boolean;
  /** Inputs made by hand, by path. */
  readonly overrides?: Readonly<Record<string, ComponentType<FieldInputProps>>>;
  /** Follows a change by changes of other fields. */
  readonly onChange?: (name: string, value: unknown) => void;
  /** More content of a section, by its id. */
  readonly after?: Readonly<Record<string, ReactNode>>;
}

const none = {};

/** All fields of the form, in the sections of the schema. */
export function SchemaFields(props: Props) {
  const { form, isStored, isReadOnly, overrides = none, after = none } = props;
  const { values, errors: refused } = form;
  const schema = useMemo(() => besideValues(props.schema, values), [props.schema, values]);
  const facts = useMemo(() => {
    // Empty inputs are errors only after an attempt to save.
    const typed = problemsOf(schema, toChecked(schema, values))
      .filter(({ isMissing }) => !isMissing)
      .map(({ path, message }) => [path, message] as const);
    const errors = { ...Object.fromEntries(typed), ...refused } as Record<string, string>;
    return { field: Field, errors, isStored, isReadOnly, isPage: true, overrides };
  }, [schema, values, refused, isStored, isReadOnly, overrides]);
  const change = (name: string, value: unknown) => {
    form.setFieldValue(name, value as never);
    if (!isStored)
      for (const [other, next] of movedDefaults(props.schema, values, { ...values, [name]: value }))
        form.setFieldValue(other, next as never);
    props.onChange?.(name, value);
    form.setErrors((current) =>
      Object.fromEntries(
        Object.entries(current).filter(([at]) => at !== name && !at.startsWith(`${name}.`)),
      ),
    );
  };
  return (
    <FormFactsContext value={facts}>
      <PageSections
        schema={schema}
        value={withDefaults(schema, values)}
        entered={values}
        onChange={change}
        after={after}
      />
    </FormFactsContext>
  );
}
