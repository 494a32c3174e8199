// How the gateway finds out which targets of a service work; knows no target.
import { Select, SimpleGrid, Stack, Switch, TextInput } from "@mantine/core";
import { DurationField } from "../../parts/fields.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";

export function HealthFields({ form }: ServiceFieldsProps) {
  const isActive = form.values.health.active.enabled;
  return (
    <Section title="Health" text="Targets that do not work get no traffic.">
      <Stack>
        <Switch
          label="Learn from the traffic"
          description="A target that fails several times in a row is left out for a while"
          {...form.getInputProps("health.passive.enabled", { type: "checkbox" })}
        />
        <Switch
          label="Ask each target regularly"
          description="The gateway sends requests of its own"
          {...form.getInputProps("health.active.enabled", { type: "checkbox" })}
        />
        {isActive && (
          <SimpleGrid cols={{ base: 1, sm: 2 }}>
            <Select
              label="Kind of check"
              data={["http", "https", "tcp"]}
              allowDeselect={false}
              {...form.getInputProps("health.active.type")}
            />
            <TextInput label="Path to ask for" {...form.getInputProps("health.active.path")} />
            <DurationField
              label="Between two checks"
              unit="s"
              {...form.getInputProps("health.active.interval")}
            />
            <DurationField
              label="A check has failed after"
              unit="s"
              {...form.getInputProps("health.active.timeout")}
            />
          </SimpleGrid>
        )}
      </Stack>
    </Section>
  );
}
