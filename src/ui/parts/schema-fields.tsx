// The fields of a form by the schema of its object: its state, and how they are drawn; knows no resource.
import type { FormErrors, UseFormReturnType } from "@mantine/form";
import { type ComponentType, type ReactNode, useMemo } from "react";
import type { Document } from "../api/merge-patch.ts";
import { Field } from "./schema/field.tsx";
import { type FieldInputProps, FormFactsContext } from "./schema/field-frame.tsx";
import { PageSections } from "./schema/page-fields.tsx";
import { problemsOf } from "./schema/problems.ts";
import { hasSecret, type JsonSchema, optionsOf } from "./schema/shape.ts";
import { toChecked, toSent, withDefaults } from "./schema/values.ts";
import { withoutSecrets } from "./schema/without-secrets.ts";

/** What a schema determines of the state of its form. */
export const schemaOptions = (schema: JsonSchema) => ({
  toValues: (object: object) => withDefaults(schema, object),
  toBody: (values: Document) => toSent(schema, values),
  validate: (values: Document): FormErrors =>
    Object.fromEntries(
      problemsOf(schema, toChecked(schema, values)).map(({ path, message }) => [path, message]),
    ),
  hasField: (path: string) => isKnown(schema, path.split(".")),
  ...(hasSecret(schema)
    ? { withoutSecrets: (values: Document) => withoutSecrets(schema, values) as Document }
    : {}),
});

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

/** Whether the schema has a field at a path. */
function isKnown(schema: JsonSchema, [name = "", ...rest]: readonly string[]): boolean {
  return optionsOf(schema).some((option) => {
    const { properties, items } = option;
    const inner = properties === undefined ? (items ?? {}) : properties[name];
    if (inner === undefined || (properties === undefined && items === undefined)) return false;
    return rest.length === 0 || isKnown(inner, rest) || inner.properties === undefined;
  });
}

interface Props {
  readonly form: UseFormReturnType<Document>;
  readonly schema: JsonSchema;
  /** Whether write-only secrets may be stored, so that their inputs may stay empty. */
  readonly isStored: boolean;
  readonly isReadOnly: boolean;
  /** Inputs made by hand, by path. */
  readonly overrides?: Readonly<Record<string, ComponentType<FieldInputProps>>>;
  /** More content of a section, by its id. */
  readonly after?: Readonly<Record<string, ReactNode>>;
}

const none = {};

/** All fields of the form, in the sections of the schema. */
export function SchemaFields(props: Props) {
  const { form, schema, isStored, isReadOnly, overrides = none, after = none } = props;
  const { values, errors: refused } = form;
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
