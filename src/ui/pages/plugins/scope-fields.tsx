// The scope of a plugin instance: its kind, then the object; knows no plugin.
import { Grid, Radio, Select, SimpleGrid, Stack, Text } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";
import { useResourceList } from "../../api/queries.ts";
import { nameOf } from "../../api/resources.ts";
import { Section } from "../../parts/page-layout.tsx";
import { ConsumerSelect } from "../../parts/schema/reference-fields.tsx";
import {
  type PluginSchema,
  type PluginValues,
  type ScopeField,
  scopeFields,
  scopeOf,
  scopes,
} from "./plugin-values.ts";

interface Props {
  readonly form: UseFormReturnType<PluginValues>;
  readonly schema: PluginSchema;
  /** The selected scope; null: derived from the fields. */
  readonly requested: string | null;
  readonly onRequest: (kind: string) => void;
}

export function ScopeSection({ form, schema, requested, onRequest }: Props) {
  const offered = scopes.filter(({ value }) => schema.scopes.includes(value));
  const chosen = kindOf(form.values, schema, requested);
  const facts = scopes.find(({ value }) => value === chosen);
  const choose = (next: string) => {
    onRequest(next);
    const kept = scopes.find(({ value }) => value === next)?.fields ?? [];
    for (const field of scopeFields) if (!kept.includes(field)) form.setFieldValue(field, null);
  };
  return (
    <Section title="Scope" text="The most specific scope wins.">
      <Stack>
        <Radio.Group value={chosen} onChange={choose} aria-label="Scope">
          <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="xs">
            {offered.map(({ value, label, text }) => (
              <Radio.Card key={value} value={value} p="sm" aria-label={label} className="choice">
                <Text size="sm" fw={600}>
                  {label}
                </Text>
                <Text size="xs" c="dimmed">
                  {text}
                </Text>
              </Radio.Card>
            ))}
          </SimpleGrid>
        </Radio.Group>
        {(facts?.fields ?? []).length > 0 && (
          <Grid>
            {facts?.fields.map((field) => (
              <Grid.Col key={field} span={{ base: 12, xs: 6 }}>
                <ScopeObjectField form={form} field={field} />
              </Grid.Col>
            ))}
          </Grid>
        )}
      </Stack>
    </Section>
  );
}

/** Without a selection, the fields alone do not determine the scope. */
function kindOf(values: PluginValues, schema: PluginSchema, requested: string | null): string {
  const stored = scopeOf(values);
  return requested ?? (schema.scopes.includes(stored) ? stored : (schema.scopes[0] ?? "global"));
}

/** Whether an id is missing: an instance without a route would be global. */
export function isScopeMissing(
  values: PluginValues,
  schema: PluginSchema,
  requested: string | null,
): boolean {
  const kind = kindOf(values, schema, requested);
  const fields = scopes.find(({ value }) => value === kind)?.fields ?? [];
  return fields.some((field) => values[field] === null);
}

const lists = {
  service_id: "services",
  route_id: "routes",
  stream_route_id: "stream-routes",
} as const;

const labels: Readonly<Record<ScopeField, string>> = {
  service_id: "Service",
  route_id: "Route",
  consumer_id: "Consumer",
  stream_route_id: "Stream route",
};

interface ScopeObjectProps {
  readonly form: Props["form"];
  readonly field: ScopeField;
}

function ScopeObjectField({ form, field }: ScopeObjectProps) {
  const { value, onChange, error } = form.getInputProps(field);
  if (field === "consumer_id")
    return (
      <ConsumerSelect
        label="Consumer"
        withAsterisk
        error={error}
        value={value}
        onChange={onChange}
      />
    );
  return <ListedObject form={form} field={field} />;
}

interface ListedProps extends ScopeObjectProps {
  readonly field: keyof typeof lists;
}

function ListedObject({ form, field }: ListedProps) {
  const { data = [] } = useResourceList(lists[field]);
  return (
    <Select
      label={labels[field]}
      placeholder="Choose"
      withAsterisk
      searchable
      nothingFoundMessage="No matches"
      data={data.map((each) => ({ value: each.id, label: nameOf(each) }))}
      limit={100}
      {...form.getInputProps(field)}
    />
  );
}
