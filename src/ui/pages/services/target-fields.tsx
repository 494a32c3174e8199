// The servers of a service, edited inside its form; shows their health, which no form changes.
import { Box, Card, Group, NumberInput, Stack, Switch, Text } from "@mantine/core";
import type { Read, Schemas } from "../../api/resources.ts";
import { useResource } from "../../api/queries.ts";
import { AddButton, HostPortField, RemoveButton } from "../../parts/fields.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { StatusDot } from "../../parts/status.tsx";
import type { ServiceFieldsProps } from "./service-form.tsx";
import { newTarget } from "./service-values.ts";

interface Props extends ServiceFieldsProps {
  readonly stored: Read<"services"> | null;
}

export function TargetFields({ form, stored }: Props) {
  // The form keeps what it was opened with; health goes on.
  const live = useResource("services", stored?.id ?? null);
  const known = (live.data?.value.targets ?? []) as readonly Schemas["Target"][];
  const { targets } = form.values;
  return (
    <Section
      title="Targets"
      text="Servers that run it. With several, traffic is shared out by weight."
    >
      <Stack gap="sm">
        {targets.map((target, index) => (
          <Card
            key={target.id ?? `new ${index}`}
            withBorder
            p="sm"
            component="fieldset"
            aria-label={`Target ${index + 1}`}
          >
            <TargetRow
              form={form}
              index={index}
              health={known.find(({ id }) => id === target.id)?.health ?? null}
            />
          </Card>
        ))}
        {targets.length === 0 && (
          <Text size="sm" c="dimmed">
            Without a target every request is answered with an error.
          </Text>
        )}
        <AddButton label="Add a target" onClick={() => form.insertListItem("targets", newTarget)} />
      </Stack>
    </Section>
  );
}

interface RowProps extends ServiceFieldsProps {
  readonly index: number;
  readonly health: Schemas["Target"]["health"] | null;
}

function TargetRow({ form, index, health }: RowProps) {
  const at = `targets.${index}`;
  return (
    <Group align="flex-start" gap="sm">
      <Box style={{ flex: "1 1 16rem" }}>
        <HostPortField
          label="Host"
          host={form.getInputProps(`${at}.host`)}
          port={form.getInputProps(`${at}.port`)}
        />
      </Box>
      <NumberInput
        label="Weight"
        min={0}
        max={65_535}
        w={90}
        {...form.getInputProps(`${at}.weight`)}
      />
      <Stack gap={6} pt={4}>
        <Switch
          label="Enabled"
          size="sm"
          {...form.getInputProps(`${at}.enabled`, { type: "checkbox" })}
        />
        {health !== null && <StatusDot state={health.state} detail={health.last_error} />}
      </Stack>
      <Box pt={24}>
        <RemoveButton
          label={`Remove target ${index + 1}`}
          onClick={() => form.removeListItem("targets", index)}
        />
      </Box>
    </Group>
  );
}
