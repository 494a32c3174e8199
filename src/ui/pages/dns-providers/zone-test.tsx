// Tests a DNS provider in a zone and shows each step; removes its test record again.
import { Button, Group, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "@tanstack/react-query";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { CheckLine, Checking } from "../applications/live-checks.tsx";

interface Props {
  readonly id: string;
  /** First zone of the provider, as the initial value. */
  readonly zone: string;
  /** Whether the form has unsaved changes. */
  readonly isDirty: boolean;
}

export function ZoneTest({ id, zone: first, isDirty }: Props) {
  const [zone, setZone] = useState(first);
  const connection = useConnection();
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: async () => {
      const body = zone.trim() === "" ? {} : { zone: zone.trim() };
      const path = `/dns-providers/${id}/test`;
      return (await connection.send<Schemas["CheckReport"]>(path, { method: "POST", body })).value;
    },
  });
  return (
    <Section
      title="Test"
      text="Writes a record _acme-challenge-test in the zone, checks it at the zone's name servers and deletes it."
    >
      <Stack gap="sm">
        <Group align="flex-end" gap="sm">
          <TextInput
            label="Zone"
            description="Empty: lists the visible zones"
            placeholder="example.com"
            value={zone}
            onChange={(event) => setZone(event.currentTarget.value)}
            onKeyDown={(event) => {
              // Enter would save the surrounding form.
              if (event.key !== "Enter") return;
              event.preventDefault();
              mutate();
            }}
            style={{ flex: "1 1 14rem" }}
          />
          <Button variant="light" loading={isPending} onClick={() => mutate()}>
            {zone.trim() === "" ? "List the zones" : "Test the zone"}
          </Button>
        </Group>
        {isDirty && (
          <CheckLine status="warning">Save first: the test uses the stored settings.</CheckLine>
        )}
        {isPending && <Checking text="This can take half a minute…" />}
        {error !== null && <ErrorPanel error={error} />}
        {data !== undefined && !isPending && (
          <Stack gap={4} aria-live="polite">
            {data.checks.map(({ name, status, message }) => (
              <CheckLine key={name} status={status as "ok"}>
                {message}
              </CheckLine>
            ))}
          </Stack>
        )}
      </Stack>
    </Section>
  );
}
