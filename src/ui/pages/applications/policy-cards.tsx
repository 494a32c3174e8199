// The policies of an application as cards, each with a switch and its fields by the schema; sends nothing.
import { Paper, SimpleGrid, Stack, Switch } from "@mantine/core";
import { type ReactNode, useMemo } from "react";
import { useMayChange } from "../../api/queries.ts";
import { Field } from "../../parts/schema/field.tsx";
import { PairsField } from "../../parts/schema/collection-fields.tsx";
import {
  type FieldInputProps,
  FormFactsContext,
  memberInfo,
  useFormFacts,
} from "../../parts/schema/field-frame.tsx";
import { problemsOf } from "../../parts/schema/problems.ts";
import type { JsonSchema } from "../../parts/schema/shape.ts";
import { withMember } from "../../parts/schema/values.ts";
import { AccessFields } from "./access-fields.tsx";
import type { ApplicationFieldsProps } from "./application-fields.tsx";
import { maintenanceSchema, policySchema } from "./application-values.ts";
import { PasswordUsers } from "./password-users.tsx";

const groupOf = (name: "policies" | "maintenance_options", schema: JsonSchema) => ({
  path: name,
  name,
  label: "",
  schema,
  isNeeded: true,
  example: undefined,
});
const whole = groupOf("policies", policySchema);
const page = groupOf("maintenance_options", maintenanceSchema);
const names = Object.keys(policySchema.properties ?? {});
const overrides = {
  "policies.headers.set": (props: FieldInputProps) => (
    <PairsField {...props} startsWithRow={!useFormFacts().isReadOnly} />
  ),
};

export function PolicyCards({ form }: ApplicationFieldsProps) {
  const { policies, maintenance, maintenance_options: options } = form.values;
  const isReadOnly = !useMayChange("editor");
  const facts = useMemo(() => {
    const typed = [
      { ...whole, value: policies },
      { ...page, value: options },
    ].flatMap(({ name, schema, value }) =>
      problemsOf(schema, value)
        .filter(({ isMissing }) => !isMissing)
        .map(({ path, message }) => [`${name}.${path}`, message] as const),
    );
    const errors = { ...Object.fromEntries(typed), ...form.errors } as Record<string, string>;
    return { field: Field, errors, isStored: false, isReadOnly, isPage: true, overrides };
  }, [policies, options, form.errors, isReadOnly]);
  const change = (group: "policies" | "maintenance_options", name: string, next: unknown) => {
    form.setFieldValue(group, withMember(form.values[group], name, next));
    form.setErrors((errors) =>
      Object.fromEntries(
        Object.entries(errors).filter(([at]) => !at.startsWith(`${group}.${name}`)),
      ),
    );
  };
  const card = (name: string) => (
    <PolicyCard key={name} isOn={policies[name] !== null}>
      <Field
        info={memberInfo(whole, name)}
        value={policies[name]}
        onChange={(next) => change("policies", name, next)}
      />
      {name === "login" && policies[name] !== null && <PasswordUsers form={form} />}
    </PolicyCard>
  );
  return (
    <FormFactsContext value={facts}>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        {names.map(card)}
        <PolicyCard isOn={form.values.access !== "public"}>
          <AccessFields form={form} />
        </PolicyCard>
        <PolicyCard isOn={maintenance}>
          <Switch
            label="Maintenance"
            description="Visitors get a maintenance page with status 503"
            {...form.getInputProps("maintenance", { type: "checkbox" })}
          />
          {maintenance &&
            Object.keys(options).map((name) => (
              <Field
                key={name}
                info={memberInfo(page, name)}
                value={options[name]}
                onChange={(next) => change("maintenance_options", name, next)}
              />
            ))}
        </PolicyCard>
      </SimpleGrid>
    </FormFactsContext>
  );
}

function PolicyCard({ isOn, children }: { readonly isOn: boolean; readonly children: ReactNode }) {
  return (
    <Paper withBorder p="md" className="policy" data-on={isOn || undefined}>
      <Stack gap="sm">{children}</Stack>
    </Paper>
  );
}
