// A form drawn from a JSON Schema that the gateway serves, with the raw JSON beside it; knows no plugin.
import { Alert, Tabs } from "@mantine/core";
import Form from "@rjsf/mantine";
import type { RJSFSchema, UiSchema } from "@rjsf/utils";
import { useMemo, useState } from "react";
import { CodeField } from "./code-field.tsx";
import { schemaValidator } from "./schema-validator.ts";

interface Props {
  readonly schema: object;
  readonly value: Readonly<Record<string, unknown>>;
  readonly onChange: (value: Record<string, unknown>) => void;
  /** What the gateway said is wrong with it: `key: is required`. */
  readonly error?: string | null;
  /** Those who may not save see the form and cannot change it. */
  readonly isReadOnly?: boolean;
}

/** Only the fields: the page around it has the buttons. */
export default function SchemaForm({ schema, value, onChange, error, isReadOnly = false }: Props) {
  const [tab, setTab] = useState<string | null>("form");
  const prepared = useMemo(() => prepare(schema as RJSFSchema), [schema]);
  return (
    <Tabs value={tab} onChange={setTab} keepMounted={false}>
      <Tabs.List mb="sm">
        <Tabs.Tab value="form">Form</Tabs.Tab>
        <Tabs.Tab value="json">JSON</Tabs.Tab>
      </Tabs.List>
      {error !== null && error !== undefined && (
        <Alert color="red" role="alert" mb="sm">
          {error}
        </Alert>
      )}
      <Tabs.Panel value="form">
        <Form
          tagName="div"
          schema={prepared}
          uiSchema={uiSchema}
          formData={value}
          validator={schemaValidator}
          onChange={({ formData }) => onChange((formData ?? {}) as Record<string, unknown>)}
          liveValidate="onBlur"
          showErrorList={false}
          disabled={isReadOnly}
          omitExtraData={false}
        />
      </Tabs.Panel>
      <Tabs.Panel value="json">
        <CodeField
          label="Configuration"
          value={value}
          onChange={(next) => onChange(next as Record<string, unknown>)}
        />
      </Tabs.Panel>
    </Tabs>
  );
}

const uiSchema: UiSchema = { "ui:submitButtonOptions": { norender: true } };

/** Names of fields become labels, and the name of the plugin no second heading. */
function prepare(schema: RJSFSchema): RJSFSchema {
  const { title: _, description: __, ...rest } = schema;
  return titled(rest) as RJSFSchema;
}

function titled(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(titled);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (keyword !== "properties" || typeof value !== "object" || value === null)
        return [keyword, keyword === "default" || keyword === "enum" ? value : titled(value)];
      const properties = Object.entries(value as Record<string, object>).map(([name, part]) => [
        name,
        { title: toLabel(name), ...(titled(part) as object) },
      ]);
      return [keyword, Object.fromEntries(properties)];
    }),
  );
}

/** `max_body_bytes` is `Max body bytes`. */
const toLabel = (name: string): string => {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};
