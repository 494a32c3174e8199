// The conditions of a plugin instance; knows no plugin.
import { Radio, Stack } from "@mantine/core";
import { lazy, Suspense, useMemo, useState } from "react";
import { Section } from "../../parts/page-layout.tsx";
import type { JsonSchema } from "../../parts/schema/shape.ts";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { type PluginFieldsProps, useErrorsBelow } from "./plugin-errors.ts";
import { usePluginSchemas } from "./plugin-schemas.ts";
import type { PluginValues } from "./plugin-values.ts";

const SchemaForm = lazy(() => import("../../parts/schema-form.tsx"));

export function WhenSection({ form }: PluginFieldsProps) {
  const { when } = form.values;
  const [isAsked, setRequested] = useState(when !== null);
  const { data } = usePluginSchemas();
  const schema = useMemo(
    () => find((data?.value ?? []).map((each) => each.schema as JsonSchema)),
    [data],
  );
  const errors = useErrorsBelow(form, "when");
  const isSome = isAsked || when !== null;
  const choose = (next: string) => {
    setRequested(next === "some");
    if (next === "all") form.setFieldValue("when", null);
  };
  return (
    <Section title="Conditions">
      <Stack>
        <Radio.Group aria-label="Conditions" value={isSome ? "some" : "all"} onChange={choose}>
          <Stack gap="xs">
            <Radio value="all" label="All requests" />
            <Radio
              value="some"
              label="Only matching requests"
              description="All conditions must match; of a list, one element is enough"
            />
          </Stack>
        </Radio.Group>
        {isSome && schema !== null && (
          <Suspense fallback={<FormSkeleton />}>
            <SchemaForm
              schema={schema}
              value={when ?? {}}
              errors={errors}
              onChange={(next) => {
                form.setFieldValue("when", next as PluginValues["when"]);
                for (const path of Object.keys(errors)) form.clearFieldError(`when.${path}`);
              }}
            />
          </Suspense>
        )}
      </Stack>
    </Section>
  );
}

/** All plugins share the schema of conditions, so any plugin that has them provides it. */
function find(schemas: readonly JsonSchema[]): JsonSchema | null {
  for (const schema of schemas) {
    if (schema["x-kind"] === "condition") return schema;
    const { properties = {}, patternProperties = {}, anyOf = [], items } = schema;
    const inner = [...Object.values(properties), ...Object.values(patternProperties), ...anyOf];
    const found = find(items === undefined ? inner : [...inner, items]);
    if (found !== null) return found;
  }
  return null;
}
