// What an alert tells, of what, and how often; knows nothing of where it goes.
import { Checkbox, MultiSelect, SimpleGrid, Stack, Switch, Text } from "@mantine/core";
import { useResourceList } from "../../api/queries.ts";
import { nameOf } from "../../api/resources.ts";
import { DurationField } from "../../parts/fields.tsx";
import { FoldedSection } from "../../parts/folded-section.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { eventWords } from "./alert-events.ts";
import type { AlertFieldsProps } from "./alert-form.tsx";

export function EventFields({ form }: AlertFieldsProps) {
  const hasThreshold = form.values.events.includes("error_share");
  return (
    <Section title="What is told">
      <Stack>
        <Checkbox.Group label="When" required {...form.getInputProps("events")}>
          <Stack gap="xs" mt={4}>
            {eventWords.map(({ event, label, text }) => (
              <Checkbox key={event} value={event} label={label} description={text} />
            ))}
          </Stack>
        </Checkbox.Group>
        {hasThreshold && (
          <Stack gap={4}>
            <Text size="sm" fw={500}>
              Too many errors are
            </Text>
            <SimpleGrid cols={{ base: 1, sm: 3 }}>
              <NumberField
                label="Percent of the answers"
                suffix=" %"
                {...{ min: 1, max: 100, empty: 5 }}
                {...form.getInputProps("threshold.percent")}
              />
              <DurationField
                label="Over the last"
                unit="s"
                {...form.getInputProps("threshold.window_seconds")}
              />
              <NumberField
                label="Of at least so many requests"
                {...{ min: 1, max: 1_000_000, empty: 20 }}
                {...form.getInputProps("threshold.min_requests")}
              />
            </SimpleGrid>
          </Stack>
        )}
      </Stack>
    </Section>
  );
}

export function ScopeFields({ form }: AlertFieldsProps) {
  const { service_ids: services, route_ids: routes } = form.values;
  const count = services.length + routes.length;
  return (
    <FoldedSection
      title="Only for some"
      text="Targets and errors of these services and routes alone. Certificates, workers and overload are always told."
      summary={count === 0 ? "Everything" : `${count} chosen`}
      isOpenAtFirst={count > 0}
      fields={["service_ids", "route_ids"]}
      errors={form.errors}
    >
      <Choice form={form} field="service_ids" resource="services" label="Services" />
      <Choice form={form} field="route_ids" resource="routes" label="Routes" />
    </FoldedSection>
  );
}

interface ChoiceProps extends AlertFieldsProps {
  readonly field: "service_ids" | "route_ids";
  readonly resource: "services" | "routes";
  readonly label: string;
}

function Choice({ form, field, resource, label }: ChoiceProps) {
  const { data = [] } = useResourceList(resource);
  return (
    <MultiSelect
      label={label}
      placeholder={form.values[field].length === 0 ? "All" : ""}
      data={data.map((object) => ({ value: object.id, label: nameOf(object) }))}
      searchable
      clearable
      limit={100}
      nothingFoundMessage="Nothing of this name"
      {...form.getInputProps(field)}
    />
  );
}

export function PaceFields({ form }: AlertFieldsProps) {
  return (
    <FoldedSection
      title="How often"
      text="One incident is one message when it begins and one when it is over, however often it is noticed."
      fields={["quiet_seconds", "repeat_after", "resolved"]}
      errors={form.errors}
    >
      <Switch
        label="Tell when it is over"
        {...form.getInputProps("resolved", { type: "checkbox" })}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DurationField
          label="Tell again while it lasts, every"
          unit="s"
          zero="once is enough"
          {...form.getInputProps("repeat_after")}
        />
        <DurationField
          label="Keep quiet about what comes and goes, for"
          unit="s"
          zero="tell each time"
          {...form.getInputProps("quiet_seconds")}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}
