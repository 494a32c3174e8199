// A form generated from a JSON Schema, with a raw JSON editor; knows no plugin.
import { Alert, Button, Group, Input, Tabs, Text } from "@mantine/core";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { isDocument } from "../api/merge-patch.ts";
import { CodeField } from "./code-field.tsx";
import { Field } from "./schema/field.tsx";
import { focusField } from "./schema/focus.ts";
import { FormFactsContext, useErrorAt } from "./schema/field-frame.tsx";
import { problemsOf } from "./schema/problems.ts";
import type { JsonSchema } from "./schema/shape.ts";

interface Props {
  readonly schema: object;
  readonly value: Readonly<Record<string, unknown>>;
  readonly onChange: (value: Record<string, unknown>) => void;
  /** The API error of the whole value. */
  readonly error?: string | null;
  /** API errors by path: `limits.0.requests`; the empty path is the whole value. */
  readonly errors?: Readonly<Record<string, string>>;
  /** A valid example: it determines the main fields and can be filled in. */
  readonly example?: unknown;
  /** Whether write-only secrets may be stored, so that their inputs may stay empty. */
  readonly isStored?: boolean;
  /** Read-only for users without permission. */
  readonly isReadOnly?: boolean;
}

/** Only the inputs: the surrounding page has the buttons. */
export default function SchemaForm(props: Props) {
  const { schema, value, onChange, error = null, example, isReadOnly = false } = props;
  const [tab, setTab] = useState<string | null>("form");
  const errors = useErrors(props);
  const frame = useRef<HTMLDivElement>(null);
  useFocusOnError(frame, props.errors, () => setTab("form"));
  const facts = useMemo(
    () => ({
      field: Field,
      errors,
      isStored: props.isStored ?? false,
      isReadOnly,
      isPage: false,
      overrides: {},
    }),
    [errors, props.isStored, isReadOnly],
  );
  const isEmpty = Object.keys(value).length === 0;
  return (
    <Tabs value={tab} onChange={setTab} keepMounted={false} ref={frame}>
      <Group justify="space-between" mb="md" gap="xs" align="flex-end">
        <Tabs.List style={{ flex: 1 }}>
          <Tabs.Tab value="form">Form</Tabs.Tab>
          <Tabs.Tab value="json">JSON</Tabs.Tab>
        </Tabs.List>
        {isDocument(example) && isEmpty && !isReadOnly && (
          <Button size="xs" variant="default" onClick={() => onChange({ ...example })}>
            Fill in an example
          </Button>
        )}
      </Group>
      {error !== null && (
        <Alert color="red" role="alert" mb="sm">
          {error}
        </Alert>
      )}
      <FormFactsContext value={facts}>
        <Tabs.Panel value="form">
          <WholeError />
          <Whole
            schema={schema as JsonSchema}
            value={value}
            onChange={onChange}
            example={example}
          />
        </Tabs.Panel>
      </FormFactsContext>
      <Tabs.Panel value="json">
        <CodeField
          label="Configuration"
          description="The same values as JSON; omitted fields use their defaults"
          minRows={12}
          value={value}
          error={Object.entries(errors)
            .map(([path, text]) => (path === "" ? text : `${path}: ${text}`))
            .join("; ")}
          onChange={(next) => {
            if (isDocument(next)) onChange({ ...next });
          }}
        />
      </Tabs.Panel>
    </Tabs>
  );
}

type WholeProps = Pick<Props, "value" | "onChange" | "example"> & { readonly schema: JsonSchema };

function Whole({ schema, value, onChange, example }: WholeProps) {
  if (Object.keys(schema.properties ?? {}).length === 0)
    return <Text c="dimmed">This plugin has no settings.</Text>;
  // The description of the whole is shown above the form.
  const { description: _, ...plain } = schema;
  return (
    <Field
      info={{ path: "", name: "", label: "", schema: plain, isNeeded: true, example }}
      value={value}
      onChange={(next) => onChange((next ?? {}) as Record<string, unknown>)}
      isBare
    />
  );
}

function WholeError() {
  const error = useErrorAt("");
  return error === null ? null : <Input.Error mb="sm">{error}</Input.Error>;
}

const none: Readonly<Record<string, string>> = {};

/** Validation errors while typing, and API errors, which take precedence. */
function useErrors({ schema, value, errors = none, isStored = false }: Props) {
  return useMemo(() => {
    const problems = problemsOf(schema as JsonSchema, value);
    // Empty inputs are errors only after an attempt to save.
    const isTried = Object.keys(errors).length > 0 && !isStored;
    const shown = problems.filter(({ isMissing }) => !isMissing || isTried);
    const own = Object.fromEntries(shown.map(({ path, message }) => [path, message]));
    return { ...own, ...errors };
  }, [schema, value, errors, isStored]);
}

/** Focuses the field of an API error. */
function useFocusOnError(
  frame: React.RefObject<HTMLDivElement | null>,
  errors: Props["errors"] = none,
  open: () => void,
) {
  const [first] = Object.keys(errors);
  const show = useRef(open);
  show.current = open;
  // Before the user can choose the other tab.
  useLayoutEffect(() => {
    if (first === undefined) return;
    show.current();
    return focusField(frame.current, [first]);
  }, [first, frame]);
}
