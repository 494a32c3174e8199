// Where a plugin instance applies: the kind of place, then which; knows no plugin.
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
  /** The kind of place that was chosen; null: the one that the fields say. */
  readonly asked: string | null;
  readonly onAsk: (kind: string) => void;
}

export function ScopeSection({ form, schema, asked, onAsk }: Props) {
  const offered = scopes.filter(({ value }) => schema.scopes.includes(value));
  const chosen = kindOf(form.values, schema, asked);
  const facts = scopes.find(({ value }) => value === chosen);
  const choose = (next: string) => {
    onAsk(next);
    const kept = scopes.find(({ value }) => value === next)?.fields ?? [];
    for (const field of scopeFields) if (!kept.includes(field)) form.setFieldValue(field, null);
  };
  return (
    <Section title="Where it applies" text="The more special place wins over the more general one.">
      <Stack>
        <Radio.Group value={chosen} onChange={choose} aria-label="Where it applies">
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
                <PlaceField form={form} field={field} />
              </Grid.Col>
            ))}
          </Grid>
        )}
      </Stack>
    </Section>
  );
}

/** Before one is chosen, the fields alone do not say which kind of place is meant. */
function kindOf(values: PluginValues, schema: PluginSchema, asked: string | null): string {
  const stored = scopeOf(values);
  return asked ?? (schema.scopes.includes(stored) ? stored : (schema.scopes[0] ?? "global"));
}

/** Whether something is left to be chosen: what is put on no route would apply to everything. */
export function isPlaceMissing(
  values: PluginValues,
  schema: PluginSchema,
  asked: string | null,
): boolean {
  const kind = kindOf(values, schema, asked);
  const fields = scopes.find(({ value }) => value === kind)?.fields ?? [];
  return fields.some((field) => values[field] === null);
}

const lists = {
  service_id: "services",
  route_id: "routes",
  stream_route_id: "stream-routes",
} as const;

const labels: Readonly<Record<ScopeField, string>> = {
  ...{ service_id: "Service", route_id: "Route", consumer_id: "Consumer" },
  stream_route_id: "Stream route",
};

interface PlaceProps {
  readonly form: Props["form"];
  readonly field: ScopeField;
}

function PlaceField({ form, field }: PlaceProps) {
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
  return <ListedPlace form={form} field={field} />;
}

interface ListedProps extends PlaceProps {
  readonly field: keyof typeof lists;
}

function ListedPlace({ form, field }: ListedProps) {
  const { data = [] } = useResourceList(lists[field]);
  return (
    <Select
      label={labels[field]}
      placeholder="Choose"
      withAsterisk
      searchable
      nothingFoundMessage="There is none of this name"
      data={data.map((each) => ({ value: each.id, label: nameOf(each) }))}
      limit={100}
      {...form.getInputProps(field)}
    />
  );
}
