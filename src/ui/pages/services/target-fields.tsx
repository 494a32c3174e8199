// The targets of a new service, edited inside its form; knows no health.
import { Box, Card, Group, Stack, Text } from "@mantine/core";
import { AddButton, HostPortField, RemoveButton } from "../../parts/fields.tsx";
import { NumberField } from "../../parts/number-field.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";
import { newTarget } from "./service-values.ts";

export function TargetFields({ form }: ServiceFieldsProps) {
  const targets = form.values.targets ?? [];
  return (
    <Section title="Targets" text="Servers that run it. Traffic is distributed by weight.">
      <Stack gap="sm">
        {targets.map((_, index) => (
          <TargetRow
            // biome-ignore lint/suspicious/noArrayIndexKey: unsaved rows have no other key
            key={index}
            form={form}
            index={index}
            isAlone={targets.length === 1}
          />
        ))}
        {targets.length === 0 && (
          <Text size="sm" c="dimmed">
            Without a target every request gets an error response.
          </Text>
        )}
        <AddButton label="Add a target" onClick={() => form.insertListItem("targets", newTarget)} />
      </Stack>
    </Section>
  );
}

interface RowProps extends ServiceFieldsProps {
  readonly index: number;
  readonly isAlone: boolean;
}

function TargetRow({ form, index, isAlone }: RowProps) {
  const at = `targets.${index}`;
  return (
    <Card withBorder p="sm" component="fieldset" aria-label={`Target ${index + 1}`}>
      <Group align="flex-start" gap="sm">
        <Box style={{ flex: "1 1 16rem" }}>
          <HostPortField
            label="Host"
            host={form.getInputProps(`${at}.host`)}
            port={form.getInputProps(`${at}.port`)}
          />
        </Box>
        {!isAlone && (
          <Group gap="sm" wrap="nowrap" align="flex-start" style={{ flex: "0 1 13rem" }}>
            <NumberField
              label="Weight"
              max={65_535}
              empty={0}
              {...form.getInputProps(`${at}.weight`)}
            />
            <NumberField
              label="Tier"
              max={100}
              empty={0}
              {...form.getInputProps(`${at}.priority`)}
            />
          </Group>
        )}
        <Box pt={26}>
          <RemoveButton
            label={`Remove target ${index + 1}`}
            onClick={() => form.removeListItem("targets", index)}
          />
        </Box>
      </Group>
    </Card>
  );
}
