// The events, scope and frequency of an alert; knows no destination.
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
    <Section title="Events">
      <Stack>
        <Checkbox.Group label="Events" required {...form.getInputProps("events")}>
          <Stack gap="xs" mt={4}>
            {eventWords.map(({ event, label, text }) => (
              <Checkbox key={event} value={event} label={label} description={text} />
            ))}
          </Stack>
        </Checkbox.Group>
        {hasThreshold && (
          <Stack gap={4}>
            <Text size="sm" fw={500}>
              Threshold of the error rate
            </Text>
            <SimpleGrid cols={{ base: 1, sm: 3 }}>
              <NumberField
                label="Percentage of responses"
                suffix=" %"
                min={1}
                max={100}
                empty={5}
                {...form.getInputProps("threshold.percent")}
              />
              <DurationField
                label="Window"
                unit="s"
                {...form.getInputProps("threshold.window_seconds")}
              />
              <NumberField
                label="Minimum number of requests"
                min={1}
                max={1_000_000}
                empty={20}
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
      title="Scope"
      text="Limits target and error events to these services and routes. Certificate, worker and overload events are always sent."
      summary={count === 0 ? "Global" : `${count} selected`}
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
      nothingFoundMessage="No matches"
      {...form.getInputProps(field)}
    />
  );
}

export function FrequencyFields({ form }: AlertFieldsProps) {
  return (
    <FoldedSection
      title="Frequency"
      text="Each incident sends one message when it begins and one when it is resolved."
      fields={["quiet_seconds", "repeat_after", "resolved"]}
      errors={form.errors}
    >
      <Switch
        label="Notify when resolved"
        {...form.getInputProps("resolved", { type: "checkbox" })}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <DurationField
          label="Repeat interval"
          unit="s"
          zero="no repeats"
          {...form.getInputProps("repeat_after")}
        />
        <DurationField
          label="Suppress repeated incidents for"
          unit="s"
          zero="notify each time"
          {...form.getInputProps("quiet_seconds")}
        />
      </SimpleGrid>
    </FoldedSection>
  );
}
