// The conditions of a plugin instance; knows no plugin.
import { Radio, Stack } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { Section } from "../../parts/page-layout.tsx";
import { optionsOf } from "../../parts/schema/shape.ts";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { type PluginFieldsProps, useErrorsBelow } from "./plugin-errors.ts";
import { pluginSchema, type PluginValues } from "./plugin-values.ts";

const SchemaForm = lazy(() => import("../../parts/schema-form.tsx"));
const [condition] = optionsOf(pluginSchema.properties?.["when"] ?? {});
const schema = { ...condition, "x-kind": "condition" };

export function WhenSection({ form }: PluginFieldsProps) {
  const { when } = form.values;
  const [isAsked, setRequested] = useState(when !== null);
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
        {isSome && (
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
